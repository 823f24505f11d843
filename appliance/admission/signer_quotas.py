"""How often a signer may call, whatever face of the API the calls come through.

Source: decisions "Limits"; docs/api.md "List".
"""

from typing import Final

from appliance.admission.call_rates import CallRates, RatePolicy, RateState
from appliance.domain.ids import PersonId
from appliance.settings import SigningSettings

_MINUTE_S: Final = 60


class SignerQuotas:
    """Counts what signers call for.

    Args:
        rates: count.
        settings: how much there is.
    """

    def __init__(self, rates: CallRates, settings: SigningSettings) -> None:
        self._rates = rates
        self._commands = RatePolicy("firmar", settings.commands_per_minute, _MINUTE_S)
        self._lists = RatePolicy("listar", settings.lists_per_minute, _MINUTE_S)

    async def command(self, person: PersonId) -> RateState:
        """Count a signing command, of one request or of many.

        Raises:
            ApplianceError: `RATE_LIMITED`, as of the other.
        """
        return await self._rates.take(self._commands, person)

    async def not_begun(self, person: PersonId) -> RateState:
        """Count a signing command no more that found the service too busy."""
        return await self._rates.give_back(self._commands, person)

    async def list(self, person: PersonId) -> RateState:
        """Count a look at the list of requests."""
        return await self._rates.take(self._lists, person)
