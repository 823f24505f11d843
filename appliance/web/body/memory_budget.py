"""Bytes of bodies that a process holds at once, and everybody's share of them.

A body counts from its first byte until its request is answered. Who asks holds at
most a part of the whole, so that one cannot take all of it; what goes beyond is
refused at once, before it is read.

Source: decisions "size of bodies".
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from appliance.core import metrics
from appliance.domain.errors import ApplianceError, ErrorCode

ANYONE: Final = "anyone"
"""All who have not said who they are, together."""
PARTY_PART: Final = 4
"""One person, session or administrator holds a quarter at most, or one body."""
GROUP_PART: Final = 2
"""One integrator, or all unknown callers, a half."""
ADDRESS_PART: Final = 16
"""One address of unknown callers."""


class Budget:
    """The bytes of one process.

    Args:
        total: bytes of all bodies.
        largest: of one body, which always finds room where nothing is held.
    """

    def __init__(self, total: int, largest: int) -> None:
        self._total = max(total, largest)
        self._largest = largest
        self._held: Counter[str] = Counter()
        self._sum = 0
        metrics.watch_pool("body_bytes", self, Budget.state)

    def state(self) -> metrics.PoolState:
        """How many bytes there are, and how many are held."""
        return metrics.PoolState(self._total, self._sum)

    @property
    def held(self) -> int:
        """Bytes that are held now."""
        return self._sum

    def open(self, holders: Mapping[str, int]) -> "Held":
        """Begin to hold a body.

        Args:
            holders: who holds it, each with the part of the whole that is theirs
                (4 is a quarter).
        """
        return Held(self, holders)

    def take(self, holders: Mapping[str, int], size: int) -> None:
        """Take bytes.

        Raises:
            ApplianceError: `OVERLOADED` when there is no room for them.
        """
        if self._sum + size > self._total or any(
            self._held[name] + size > self._share(part)
            for name, part in holders.items()
        ):
            metrics.count_refused("body_bytes", "full")
            raise ApplianceError(ErrorCode.OVERLOADED)
        self._sum += size
        for name in holders:
            self._held[name] += size

    def give_back(self, holders: Mapping[str, int], size: int) -> None:
        """Give bytes back.

        Args:
            holders: as `take` had them.
            size: of what they held.
        """
        self._sum -= size
        for name in holders:
            self._held[name] -= size
            if not self._held[name]:
                del self._held[name]

    def _share(self, part: int) -> int:
        return max(self._total // part, self._largest)


class Held:
    """What one request holds.

    Args:
        budget: of the process.
        holders: as `Budget.open` has them.
    """

    def __init__(self, budget: Budget, holders: Mapping[str, int]) -> None:
        self._budget = budget
        self._holders = dict(holders)
        self._size = 0

    def grow(self, size: int) -> None:
        """Hold that many bytes from now on, or as many as before if more.

        Args:
            size: of the body so far, or of all of it where that is known.

        Raises:
            ApplianceError: `OVERLOADED`.
        """
        if size > self._size:
            self._budget.take(self._holders, size - self._size)
            self._size = size

    def release(self) -> None:
        """Hold nothing any more."""
        self._budget.give_back(self._holders, self._size)
        self._size = 0
