"""Use cases around certificates that several roles build alike."""

from datetime import datetime
from functools import partial

from cryptography import x509

from appliance.bootstrap.core import Core
from appliance.console.expiry_notices import Expiry
from appliance.domain.pki.trust_store import AnchorPurpose, ExpiringKind
from appliance.domain.vocab import CertificateKind
from appliance.keys.activation_format import PinnedFormat
from appliance.pki.automatic_renewal import AutoRenewal
from appliance.pki.ca_files import read_certificate
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.certificates import Certificates
from appliance.pki.credential_faults import CredentialFaults
from appliance.pki.validation.pinned_anchors import PinnedAnchors
from appliance.pki.validation.signer_roots import SignerRoots
from appliance.pki.validation.trust_anchors import Trust
from appliance.record.unit_of_work import Transaction


def open_trust(core: Core) -> Trust:
    """The trust store of the installation.

    Args:
        core: open.
    """
    path = core.settings.root_file
    return Trust(core.store, core.clock, lambda: read_certificate(path))


def open_signer_roots(core: Core) -> SignerRoots:
    """Roots by which this machine believes who signed.

    Args:
        core: open.
    """
    settings = core.settings
    return SignerRoots(
        lambda: read_certificate(settings.root_file),
        PinnedAnchors(settings.outside_anchors_file),
        PinnedFormat(settings.activation_format_file),
        partial(open_trust(core).roots, AnchorPurpose.SIGNERS),
    )


def open_credential_faults(core: Core) -> CredentialFaults:
    """Credentials that signing workers refuse.

    Args:
        core: open.
    """
    settings = core.settings
    files = settings.root_file, settings.ca_file

    def own() -> tuple[bytes | None, bytes | None]:
        root, ca = files
        return read_certificate(root), read_certificate(ca)

    return CredentialFaults(core.store, open_trust(core), own)


def open_expiry(core: Core) -> Expiry:
    """Warnings of what ends, the CA's own certificates among it.

    Args:
        core: open.
    """
    settings = core.settings
    files = (settings.root_file, settings.ca_file)

    async def own(transaction: Transaction) -> list[tuple[ExpiringKind, bytes]]:
        found = [
            (ExpiringKind.CA, der) for path in files if (der := read_certificate(path))
        ]
        for kind, name in (
            (CertificateKind.OCSP, ExpiringKind.OCSP),
            (CertificateKind.TSA, ExpiringKind.TSA),
        ):
            in_force = await CertificateStore(transaction).in_force(kind)
            found += [(name, one.der) for one in in_force]
        return found

    return Expiry(core.store, core.clock, own)


def open_auto_renewal(core: Core) -> AutoRenewal:
    """Renewals of the internal CA's certificates.

    Args:
        core: open.
    """
    settings = core.settings

    def ca_end() -> datetime | None:
        found = read_certificate(settings.ca_file)
        if found is None:
            return None
        return x509.load_der_x509_certificate(found).not_valid_after_utc

    certificates = Certificates(core.store, core.clock)
    return AutoRenewal(
        core.store, certificates, core.clock, settings.pki.renew_days, ca_end
    )
