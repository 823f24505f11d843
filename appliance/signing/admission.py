"""Turns work away at once where what is under way would have it wait too long.

    async with admission.place(WORK_OWNER.get()):
        ...

Below its most a service answers everybody. Above it a queue only makes all wait, at
last longer than anybody does: those who come are better told so at once. How long one
would wait is what is under way times what one takes, which is measured while a queue
stands; so nothing has to be set for a slow machine or a quick one. A burst is let in,
and so are those who come while nothing moves, as with a database that is restarted:
only a queue that moves, and grows, is kept short.

Source: Little's law, L = λW.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from appliance.core import metrics
from appliance.core.work_owner import WorkOwner
from appliance.domain.errors import ApplianceError, ErrorCode

_MEASURED: Final = 16
"""Gaps between two ends that are remembered."""
_ENOUGH: Final = 4
"""Of them, so many tell how long one takes."""


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """When work is turned away."""

    wait_s: float = 1.0
    """Longest time that who comes would wait, in seconds."""
    calm: int = 8
    """So much is under way without anybody having to wait."""
    stall_s: float = 1.0
    """Where nothing ends for so long, what ended before says nothing more."""
    retry_after_s: int = 2
    """What those are told who are turned away."""


class Admission:
    """Lets work of one kind in, or turns it away; for use in one event loop.

    Args:
        limits: see there.
        name: of the pool, for `/metrics`.
        clock: monotonic time in seconds.
    """

    def __init__(
        self,
        limits: AdmissionLimits,
        name: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._name = name
        self._clock = clock
        self._under_way: Counter[str] = Counter()
        """By share."""
        self._gaps_s: deque[float] = deque(maxlen=_MEASURED)
        self._last_end: float | None = None
        """Of work, or of the calm; None as long as it is calm."""
        metrics.watch_pool(name, self, Admission.state)

    def state(self) -> metrics.PoolState:
        """How much is let in without a look at the time, and is under way."""
        return metrics.PoolState(self._limits.calm, self._under_way.total(), 0)

    @contextmanager
    def place(self, owner: WorkOwner) -> Iterator[None]:
        """Be under way for the time of the block.

        Work that fails tells nothing of how long work takes.

        Args:
            owner: in whose share.

        Raises:
            ApplianceError: `OVERLOADED`, at once.
        """
        share = owner.share
        if self._waits_too_long(share):
            metrics.count_refused(self._name, "late")
            raise ApplianceError(
                ErrorCode.OVERLOADED, extras={"retryAfter": self._limits.retry_after_s}
            )
        self._under_way[share] += 1
        if self._last_end is None and self._is_busy():
            self._last_end = self._clock()
        try:
            yield
            self._ended()
        finally:
            self._under_way[share] -= 1
            if not self._under_way[share]:
                del self._under_way[share]
            if not self._is_busy():
                # The next queue is measured anew.
                self._last_end = None
                self._gaps_s.clear()

    def _is_busy(self) -> bool:
        return self._under_way.total() > self._limits.calm

    def _waits_too_long(self, share: str) -> bool:
        if not self._is_busy() or len(self._gaps_s) < _ENOUGH:
            return False
        now = self._clock()
        if self._last_end is not None and now - self._last_end > self._limits.stall_s:
            return False
        one_s = sum(self._gaps_s) / len(self._gaps_s)
        bearable = self._limits.wait_s / max(one_s, 1e-6)
        if self._under_way.total() < bearable:
            return False
        # Who has less than a fair part under way waits behind no flood of another's.
        mine = self._under_way[share] + 1
        shares = len(self._under_way) + (mine == 1)
        return mine > bearable / shares

    def _ended(self) -> None:
        """Learn from work that came to its end."""
        if self._last_end is None:
            return
        now = self._clock()
        gap_s, self._last_end = now - self._last_end, now
        if gap_s > self._limits.stall_s:
            self._gaps_s.clear()
        else:
            self._gaps_s.append(gap_s)
