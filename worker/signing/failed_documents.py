"""How a document that cannot be signed ends, by the reason."""

from typing import Final

import structlog

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.signing.activation import ActivationDocument, Claim
from appliance.metrics import metrics
from appliance.signing.claims import Claims
from worker.leased_worker import FencedOffError

_log = structlog.get_logger(__name__)
_RETRIABLE: Final = frozenset(
    {
        ErrorCode.HSM_UNAVAILABLE,
        ErrorCode.STORE_UNAVAILABLE,
        ErrorCode.STORAGE_FULL,
        ErrorCode.DOCUMENT_DAMAGED,
        ErrorCode.SANDBOX_UNAVAILABLE,
        ErrorCode.OVERLOADED,
        ErrorCode.CERTIFICATE_NOT_USABLE,
        ErrorCode.ACTIVATION_EXPIRED,
        ErrorCode.ACTIVATION_INVALID,
    }
)
"""What sends a request back to its signer; all else is final."""


async def fail_documents(
    claims: Claims,
    claim: Claim,
    documents: list[ActivationDocument],
    exc: ApplianceError,
) -> None:
    """Give requests back, or up, by the reason that they cannot be signed.

    Args:
        claims: this worker's transactions.
        claim: in hand.
        documents: of it.
        exc: the reason.

    Raises:
        FencedOffError: another worker has claimed since.
    """
    code, layer = exc.code, getattr(exc, "layer", "")
    _log.warning(
        "document.not_signed",
        activation=claim.id,
        requests=[document.request for document in documents],
        code=code.value,
        layer=layer,
        reason=getattr(exc, "reason", ""),
    )
    metrics.SIGNATURES.labels(code.value).inc(len(documents))
    if code in _RETRIABLE:
        done = await claims.returned(claim, documents, code, layer)
    else:
        done = await claims.failed(claim, documents, code)
    if not done:
        raise FencedOffError from exc
