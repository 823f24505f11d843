"""Turns work away at once where what is under way would have it wait too long.

    async with admission.place(WORK_OWNER.get()):
        ...

Below its most a service answers everybody. Above it a queue only makes all wait, at
last longer than anybody does: those who come are better told so at once. How long one
would wait is what is under way times what one takes, which is measured while a queue
stands; so nothing has to be set for a slow machine or a quick one. A burst is let in,
and so are those who come while nothing moves, as with a database that is restarted:
only a queue that stands, and moves, is kept short.

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

    wait_s: float = 1.2
    """Longest time that who comes would wait, in seconds."""
    calm: int = 12
    """So much may be under way however long it takes; a queue that was longer stands
    until it is down to half of that."""
    burst_s: float = 0.3
    """All are let in who come within so many seconds of its beginning."""
    stall_s: float = 3.0
    """Where nothing ends for so long, it is no crowd that makes them wait."""
    known_s: float = 60.0
    """For so many seconds after a queue what it took is believed of the next one."""
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
        self._standing_since: float | None = None
        """Since when a queue stands; None where there is none."""
        self._alone_s: float | None = None
        """What one took at last that ended without a queue, by those beside it: at
        most what it takes."""
        self._last_end = clock()
        """Of work while a queue stood, or the beginning of that."""
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
        self._look_at_queue()
        begun, beside = self._clock(), self._under_way.total()
        try:
            yield
            self._ended((self._clock() - begun) / beside)
        finally:
            self._under_way[share] -= 1
            if not self._under_way[share]:
                del self._under_way[share]
            self._look_at_queue()

    def _look_at_queue(self) -> None:
        """Note whether a queue begins or ends here."""
        under_way = self._under_way.total()
        if self._standing_since is None and under_way > self._limits.calm:
            now = self._clock()
            if now - self._last_end > self._limits.known_s:
                self._gaps_s.clear()
            self._standing_since = self._last_end = now
        elif under_way <= self._limits.calm // 2:
            self._standing_since = None

    def _waits_too_long(self, share: str) -> bool:
        limits, since, now = self._limits, self._standing_since, self._clock()
        if (
            since is None
            or self._under_way.total() < limits.calm
            or now - since < limits.burst_s
            or now - self._last_end > limits.stall_s
        ):
            return False
        one_s = self._alone_s
        if len(self._gaps_s) >= _ENOUGH:
            one_s = sum(self._gaps_s) / len(self._gaps_s)
        if one_s is None:
            return False
        bearable = limits.wait_s / max(one_s, 1e-6)
        if self._under_way.total() < bearable:
            return False
        # Who has less than a fair part under way waits behind no flood of another's.
        mine = self._under_way[share] + 1
        shares = len(self._under_way) + (mine == 1)
        return mine > bearable / shares

    def _ended(self, alone_s: float) -> None:
        """Learn from work that came to its end.

        Args:
            alone_s: its time, by those who were under way when it began.
        """
        if self._standing_since is None:
            self._alone_s = alone_s
            return
        now = self._clock()
        gap_s, self._last_end = now - self._last_end, now
        if gap_s <= self._limits.stall_s:
            self._gaps_s.append(gap_s)
