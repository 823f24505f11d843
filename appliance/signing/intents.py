"""The use of a person's key for one document: intended first, then told of.

Within the caller's transaction, and fenced: False, and nothing changed, when
another worker has claimed since.

Source: design §3, 4 and 5.
"""

from datetime import datetime

from appliance.core.unit_of_work import Transaction
from appliance.domain.activation import ActivationDocument, SignatureValue
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.records.activations import Claim
from appliance.domain.vocab import EventKind
from appliance.keys.credential_store import CredentialStore
from appliance.pki.revocation import is_found_revoked
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.audit_events import item_event


class CertificateChangedError(Exception):
    """A credential was certified anew: what was prepared names the one before."""


async def intend(
    transaction: Transaction,
    claim: Claim,
    item: ActivationDocument,
    digest: str,
    certificate: bytes,
    *,
    now: datetime,
    actor: str,
) -> bool:
    """Record, before the key is used, the exact digest to be signed.

    Args:
        transaction: the caller's.
        claim: of the worker.
        item: of it.
        digest: hex.
        certificate: DER; what is to be signed names it as the signer's.
        now: the time.
        actor: for the audit.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE`.
        CertificateChangedError: the credential has another one now.
    """
    # Locked: a revocation is either seen here or waits for this commit.
    credential = await CredentialStore(transaction).get(claim.credential, lock=True)
    if credential is None or not credential.usable_at(now):
        raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
    if credential.certificate != certificate:
        # Whoever finishes it looks at the credential: both must agree.
        raise CertificateChangedError
    if await is_found_revoked(transaction, credential):
        raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
    if not await ActivationStore(transaction).intend(claim, item.seq, digest, now):
        return False
    transaction.audit.add(
        item_event(
            EventKind.KEY_INTENDED,
            actor,
            claim,
            item,
            {"digest": digest, "documentSha256": item.document_sha256},
        )
    )
    return True


async def keep_signature(
    transaction: Transaction,
    claim: Claim,
    item: ActivationDocument,
    made: SignatureValue,
    digest: str,
    *,
    now: datetime,
    actor: str,
) -> bool:
    """Store what the key yielded; no item left to key means `finishing`.

    Args:
        transaction: the caller's.
        claim: of the worker.
        item: of it.
        made: the signature, and what it stands in.
        digest: hex, as it was intended.
        now: the time.
        actor: for the audit.
    """
    if not await ActivationStore(transaction).keyed(claim, item.seq, made, now):
        return False
    await ActivationStore(transaction).settle(claim, now)
    transaction.audit.add(
        item_event(EventKind.KEY_USED, actor, claim, item, {"digest": digest})
    )
    return True
