"""How much an integrator's backend may call for, by its key and by its integrator.

Source: decisions "Limits"; docs/integration.md "Limits".
"""

from typing import Final

from appliance.admission.call_rates import CallRates, RatePolicy, RateState
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import IntegratorId
from appliance.settings import IntegrationSettings

_MINUTE_S: Final = 60
_DAY_S: Final = 86_400


class BackendQuotas:
    """Counts what backends call for.

    Args:
        rates: count.
        settings: how much there is.
    """

    def __init__(self, rates: CallRates, settings: IntegrationSettings) -> None:
        self._rates = rates
        self._calls = RatePolicy("llamadas", settings.calls_per_minute, _MINUTE_S)
        self._sessions = RatePolicy("sesiones", settings.sessions_per_minute, _MINUTE_S)
        self._requests = RatePolicy("solicitudes", settings.requests_per_day, _DAY_S)
        self._bytes = RatePolicy("bytes", settings.upload_bytes_per_day, _DAY_S)

    async def call(self, key: str) -> RateState:
        """Count a call with a key.

        Args:
            key: its id.

        Raises:
            ApplianceError: `RATE_LIMITED`, as of the others.
        """
        return await self._rates.take(self._calls, key)

    async def session(self, key: str) -> RateState:
        """Count a session that is opened with a key."""
        return await self._rates.take(self._sessions, key)

    async def demand_requests(self, whose: IntegratorId, count: int = 1) -> RateState:
        """Make sure that an integrator may make so many requests more.

        Raises:
            FieldInvalidError: more than there ever may be at once.
            ApplianceError: `RATE_LIMITED`.
        """
        if count > self._requests.most:
            raise FieldInvalidError("documentos", f"1..{self._requests.most} objects")
        return await self._rates.demand(self._requests, whose, count)

    async def made_requests(self, whose: IntegratorId, count: int = 1) -> RateState:
        """Count requests that an integrator has made; never refuses."""
        return await self._rates.spend(self._requests, whose, count)

    async def demand_bytes(self, whose: IntegratorId, size_bytes: int) -> RateState:
        """Make sure that an integrator may send so much more.

        Raises:
            ApplianceError: `BODY_TOO_LARGE` for more than there ever may be at once;
                `RATE_LIMITED`.
        """
        if size_bytes > self._bytes.most:
            raise ApplianceError(ErrorCode.BODY_TOO_LARGE)
        return await self._rates.demand(self._bytes, whose, size_bytes)

    async def sent_bytes(self, whose: IntegratorId, size_bytes: int) -> RateState:
        """Count what an integrator has sent."""
        return await self._rates.take(self._bytes, whose, size_bytes)

    async def repeated_bytes(self, whose: IntegratorId, size_bytes: int) -> RateState:
        """Count the same of what makes nothing new; never refuses."""
        return await self._rates.spend(self._bytes, whose, size_bytes)

    async def left(self, key: str, integrator: IntegratorId) -> list[RateState]:
        """What is left of each; nothing is counted."""
        return [
            await self._rates.look(policy, whose)
            for policy, whose in (
                (self._calls, key),
                (self._sessions, key),
                (self._requests, integrator),
                (self._bytes, integrator),
            )
        ]
