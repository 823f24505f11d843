"""Who stamps, by the names that a profile gives: outside, or this installation.

tsa = NamedAuthorities(internal, client)(("tsa.example", "internal"))
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from appliance.domain.errors import ApplianceError, ErrorCode, TsaUnavailableError
from appliance.domain.keys import DigestAlgorithm
from appliance.domain.ports import TimestampAuthority
from appliance.domain.requests.levels import INTERNAL_TSA
from worker.circuit_breaker import CircuitBreaker
from worker.network.tsa_client import TsaClient


@dataclass(frozen=True, slots=True)
class NamedAuthorities:
    """Gives the authority that asks those of some names, in order.

    Args:
        internal: the installation's own.
        client: asks the ones outside.
    """

    internal: TimestampAuthority
    client: TsaClient
    _quiet: CircuitBreaker = field(default_factory=CircuitBreaker)

    def __call__(self, names: tuple[str, ...]) -> TimestampAuthority:
        """The authority that asks these.

        Args:
            names: in the order to ask them.
        """
        return _InOrder(self, names)

    async def ask(
        self, names: Sequence[str], imprint: bytes, digest: DigestAlgorithm
    ) -> bytes:
        """Have one of these stamp.

        Args:
            names: of authorities outside, or of the own one.
            imprint: digest of what is stamped.
            digest: what made the imprint.

        Raises:
            TsaUnavailableError: none did.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if INTERNAL_TSA in names:
            return await self.internal.stamp(imprint, digest)
        whom = tuple(names)
        if not self._quiet.is_over(whom):
            raise TsaUnavailableError("asked in vain a moment ago")
        with self._quiet.asking(whom):
            return await self.client.stamp_by(names, imprint, digest)


@dataclass(frozen=True, slots=True)
class _InOrder:
    """Asks the own one where it stands among the others."""

    authorities: NamedAuthorities
    names: tuple[str, ...]

    async def stamp(self, imprint: bytes, digest: DigestAlgorithm) -> bytes:
        """Stamp a digest; see `TimestampAuthority`.

        Raises:
            TsaUnavailableError: none of them did.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        reasons = []
        for _, group in groupby(self.names, key=INTERNAL_TSA.__eq__):
            try:
                return await self.authorities.ask(list(group), imprint, digest)
            except ApplianceError as exc:
                if exc.code is not ErrorCode.TSA_UNAVAILABLE:
                    raise
                reasons.append(getattr(exc, "reason", "") or str(exc))
        raise TsaUnavailableError("; ".join(reasons))
