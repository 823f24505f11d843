"""News between processes: that there is work, and that it ended."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from appliance.domain.ids import ActivationId, RequestBatchId, TaskId, UpkeepWorkId


class WorkNotifier(Protocol):
    """Wakes a worker. A notification may be lost; the record is the database."""

    async def notify(
        self, work: ActivationId | TaskId | RequestBatchId | UpkeepWorkId
    ) -> None:
        """Tell any worker that there is work; never raises."""
        ...


class Subscription(Protocol):
    """A caller waiting for activations' outcomes."""

    async def wait(self, timeout_s: float) -> bool:
        """Wait for news or the time-out; True for news."""
        ...


class CompletionNotifier(Protocol):
    """Tells fronts that an activation ended. News may be lost."""

    def subscribe(
        self, *activations: ActivationId
    ) -> AbstractAsyncContextManager[Subscription]:
        """Listen from now on, to any of them; enter it before the work is committed."""
        ...

    async def publish(self, activation: ActivationId) -> None:
        """Wake whoever subscribed to it; never raises."""
        ...

    async def run(self) -> None:
        """Listen for news of other processes, until cancelled."""
