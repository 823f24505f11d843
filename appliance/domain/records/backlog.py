"""What waits for a worker, counted for operators."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Backlog:
    """What one queue holds that nobody has in hand."""

    length: int
    oldest: datetime | None
    """When the oldest of it came; None of none."""


class BacklogRecords(Protocol):
    """What waits for a worker."""

    async def activations(self, at: datetime, *, outside: bool) -> Backlog:
        """Activations that may be claimed; with `outside` all that are not done.

        Args:
            at: now.
            outside: those that are for the role with a network, or the others.
        """
        ...

    async def tasks(self, at: datetime) -> Backlog:
        """HSM tasks that may be claimed."""
        ...
