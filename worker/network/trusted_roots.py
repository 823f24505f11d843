"""Readers of the trust store, in the form that checks take them."""

from collections.abc import Awaitable, Callable, Sequence

from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.pki.validation.trust_anchors import Trust
from appliance.pki.validation.validation_material import Anchors


def anchors_of(trust: Trust) -> Anchors:
    """Read the roots that are trusted for any purpose.

    Args:
        trust: the trust store.
    """

    async def anchors() -> Sequence[bytes]:
        return [
            *await trust.roots(AnchorPurpose.SIGNERS),
            *await trust.roots(AnchorPurpose.TIMESTAMPS),
        ]

    return anchors


def stampers_of(trust: Trust) -> Callable[[], Awaitable[Sequence[bytes]]]:
    """Read the roots that are trusted for timestamps.

    Args:
        trust: the trust store.
    """

    async def roots() -> Sequence[bytes]:
        return await trust.roots(AnchorPurpose.TIMESTAMPS)

    return roots
