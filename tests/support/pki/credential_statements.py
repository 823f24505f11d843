"""Checks of credentials as a signing worker makes them.

statements = worker_statements(settings, store, clock)
"""

from collections.abc import Sequence

from cryptography.hazmat.primitives.serialization import Encoding

from appliance.domain.clock import Clock
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.keys.activation_format import PinnedFormat
from appliance.pki.validation.pinned_anchors import PinnedAnchors
from appliance.pki.validation.trust_anchors import Trust
from appliance.record.unit_of_work import Database
from appliance.settings import Settings
from hsm_config.provisioning.ca_certificates import read_ca, read_root
from worker.signing.credential_statement import CredentialStatements


def worker_statements(
    settings: Settings, store: Database, clock: Clock
) -> CredentialStatements:
    """Checks by the files of an installation, and by the trust store of a record.

    Args:
        settings: of the installation, after `hsm init`.
        store: the record.
        clock: the time.
    """
    trust = Trust(store, clock, lambda: None)

    async def recorded() -> Sequence[bytes]:
        return await trust.roots(AnchorPurpose.SIGNERS)

    return CredentialStatements(
        tuple(
            each.public_bytes(Encoding.DER)
            for each in (read_root(settings), read_ca(settings))
        ),
        PinnedAnchors(settings.outside_anchors_file),
        PinnedFormat(settings.activation_format_file),
        recorded,
    )
