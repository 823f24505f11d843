"""The one source of the time of day; everything else is handed a `Clock`."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time; tests hand in one that they move themselves."""

    def now(self) -> datetime:
        """The current time, aware, in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The current time, aware, in UTC."""
        return datetime.now(UTC)
