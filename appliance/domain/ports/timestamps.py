"""Whoever makes timestamps."""

from collections.abc import Sequence
from typing import Protocol

from appliance.domain.keys.hsm_keys import DigestAlgorithm


class TimestampAuthority(Protocol):
    """Says when something existed, in a signed token (RFC 3161)."""

    async def stamp(self, imprint: bytes, digest: DigestAlgorithm) -> bytes:
        """Have a timestamp made.

        Args:
            imprint: digest of what is stamped, as long as its algorithm says.
            digest: what made the imprint.

        Returns:
            TimeStampToken, a CMS ContentInfo in DER, over that imprint; its
            signature, certificate and content were checked.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`.

        Source: RFC 3161, 2.4.2.
        """
        ...


class OwnTimestampAuthority(TimestampAuthority, Protocol):
    """The installation's own, which makes several at once for less."""

    async def stamp_all(
        self, imprints: Sequence[bytes], digest: DigestAlgorithm
    ) -> list[bytes]:
        """Have timestamps made, one for each imprint, in their order.

        Args:
            imprints: digests of what is stamped, as `stamp` takes them.
            digest: what made the imprints.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`; none of them is given then.
        """
        ...
