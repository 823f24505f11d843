"""Authorities outside, by the names that a profile gives.

token = await OutsideAuthorities(client).stamp(("tsa.example",), imprint, digest, nonce)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from appliance.domain.errors import TsaUnavailableError
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from worker.circuit_breaker import CircuitBreaker
from worker.network.tsa_client import TsaClient


@dataclass(frozen=True, slots=True)
class OutsideAuthorities:
    """Asks those of some names, and leaves them alone after they were asked in vain.

    Args:
        client: asks them.
    """

    client: TsaClient
    _quiet: CircuitBreaker = field(default_factory=CircuitBreaker)

    async def stamp(
        self,
        names: Sequence[str],
        imprint: bytes,
        digest: DigestAlgorithm,
        nonce: int | None,
    ) -> bytes:
        """Have one of these stamp.

        Args:
            names: of authorities outside, in the order to ask them.
            imprint: digest of what is stamped.
            digest: algorithm of the imprint.
            nonce: that the token has to repeat.

        Raises:
            TsaUnavailableError: none did.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        whom = tuple(names)
        if not self._quiet.is_over(whom):
            raise TsaUnavailableError("asked in vain a moment ago")
        with self._quiet.asking(whom):
            return await self.client.stamp_by(names, imprint, digest, nonce)
