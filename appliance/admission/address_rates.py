"""How often one address may ask what is public, counted in each process."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode

_WINDOW: Final = timedelta(minutes=1)


class AddressRate:
    """Counts by address in windows of a minute; forgets at each one's end.

    Args:
        most: questions of one address in a window.
        clock: the time.
    """

    def __init__(self, most: int, clock: Clock) -> None:
        self._most = most
        self._clock = clock
        self._until: datetime | None = None
        self._counts: Counter[str] = Counter()

    def count(self, address: str) -> None:
        """Count a question.

        Args:
            address: as `appliance.web.server.client_address.client_address` gives it.

        Raises:
            ApplianceError: `RATE_LIMITED`.
        """
        now = self._clock.now()
        if self._until is None or now >= self._until:
            self._until = now + _WINDOW
            self._counts.clear()
        self._counts[address] += 1
        if self._counts[address] > self._most:
            left = max(1, int((self._until - now).total_seconds()))
            raise ApplianceError(ErrorCode.RATE_LIMITED, extras={"retryAfter": left})
