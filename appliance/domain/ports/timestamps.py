"""Whoever makes timestamps."""

from typing import Protocol

from appliance.domain.keys import DigestAlgorithm


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
