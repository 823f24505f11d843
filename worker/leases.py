"""What every worker does with a claim: keep its lease, and fail its documents."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import structlog

from appliance.core import metrics
from appliance.domain.activation import ActivationDocument, Claim
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.signing.claims import Claims

_log = structlog.get_logger(__name__)
_RETRIABLE: Final = frozenset(
    {
        ErrorCode.HSM_UNAVAILABLE,
        ErrorCode.STORE_UNAVAILABLE,
        ErrorCode.STORAGE_FULL,
        ErrorCode.CERTIFICATE_NOT_USABLE,
        ErrorCode.ACTIVATION_EXPIRED,
        ErrorCode.ACTIVATION_INVALID,
    }
)
"""What sends a request back to its signer; all else is final."""


class FencedOffError(Exception):
    """Another worker has claimed since; what this one does counts no more."""


@asynccontextmanager
async def keep_lease(
    renew: Callable[[], Awaitable[bool]], every_s: float
) -> AsyncIterator[None]:
    """Hold a claim's lease as long as this is entered.

    Args:
        renew: prolongs it; False where another worker has claimed since.
        every_s: time between renewals, in seconds.
    """
    # From the event loop, which a hung HSM does not stop.
    task = asyncio.create_task(_renew(renew, every_s))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _renew(renew: Callable[[], Awaitable[bool]], every_s: float) -> None:
    """Renew a lease until it is lost; a record that is away is asked again."""
    is_held = True
    while is_held:
        await asyncio.sleep(every_s)
        with contextlib.suppress(ApplianceError):
            is_held = await renew()


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
