"""News between processes: that there is work, and that it ended."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from appliance.domain.ids import ActivationId, TaskId


class Doorbell(Protocol):
    """Wakes a worker. A ring may be lost; the record is the database."""

    async def ring(self, work: ActivationId | TaskId) -> None:
        """Tell any worker that there is work; never raises."""
        ...


class Expectation(Protocol):
    """A caller waiting for one activation's outcome."""

    async def wait(self, timeout_s: float) -> bool:
        """Wait for news or the time-out; True for news."""
        ...


class Outcomes(Protocol):
    """Tells fronts that an activation ended. News may be lost."""

    def expect(
        self, activation: ActivationId
    ) -> AbstractAsyncContextManager[Expectation]:
        """Listen from now on; enter it before the work is committed."""
        ...

    async def announce(self, activation: ActivationId) -> None:
        """Wake whoever expects it; never raises."""
        ...

    async def run(self) -> None:
        """Listen for news of other processes, until cancelled."""
