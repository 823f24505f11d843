"""A bounded number of places, of which nobody gets all.

    queue = FairQueue(FairLimits(places=8, per_share=6, per_party=2), "sandbox")
    async with queue.place(WORK_OWNER.get()):
        ...

Who finds no place waits, for a bounded time and among a bounded number; beyond that
`OVERLOADED` is raised at once, so that a flood costs the one who makes it. The
installation's own work (a command that looks at 1,000 files) waits as it likes. A free
place goes to the share that has the fewest, then to the one that was served longest
ago (start-time fair queueing with equal weights), then to who came first.
"""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from appliance.core import metrics
from appliance.core.work_owner import INSTALLATION, WorkOwner
from appliance.domain.errors import ApplianceError, ErrorCode

_SHARES_KEPT: Final = 1_024


@dataclass(frozen=True, slots=True)
class FairLimits:
    """How many places there are, and how many may wait for one."""

    places: int
    per_share: int
    """Places of one share; of `INSTALLATION` and others alike."""
    per_party: int
    """Places of one party of a share; the nameless party has no such limit."""
    waiting: int = 64
    waiting_per_share: int = 32
    waiting_per_party: int = 8
    patience_s: float = 10
    """Seconds that anybody waits at most."""
    retry_after_s: int = 2
    """What those are told who find no place."""


@dataclass(slots=True, eq=False)
class Place:
    """A place that is held until it is released, once."""

    _queue: "FairQueue | None"
    _owner: WorkOwner

    def release(self) -> None:
        """Give it back."""
        if self._queue is not None:
            self._queue._give_back(self._owner)  # noqa: SLF001 (its own)
            self._queue = None


@dataclass(slots=True, eq=False)
class _Waiter:
    owner: WorkOwner
    granted: asyncio.Future[None]


class FairQueue:
    """The places of one pool of one process, for use in one event loop.

    Args:
        limits: see there.
        name: of the pool, for `/metrics`.
    """

    def __init__(self, limits: FairLimits, name: str) -> None:
        self._limits = limits
        self._name = name
        metrics.watch_pool(name, self, FairQueue.state)
        self._running: Counter[WorkOwner] = Counter()
        self._of_share: Counter[str] = Counter()
        # In the order they came.
        self._waiting: list[_Waiter] = []
        self._served: OrderedDict[str, int] = OrderedDict()
        self._turn = 0

    @asynccontextmanager
    async def place(self, owner: WorkOwner) -> AsyncIterator[None]:
        """Hold a place for the time of the block.

        Raises:
            ApplianceError: `OVERLOADED`.
        """
        place = await self.acquire(owner)
        try:
            yield
        finally:
            place.release()

    def state(self) -> metrics.PoolState:
        """How many places are held, and how many wait for one."""
        return metrics.PoolState(
            self._limits.places, self._running.total(), len(self._waiting)
        )

    async def acquire(self, owner: WorkOwner) -> Place:
        """Wait for a place; whoever gets one releases it.

        Raises:
            ApplianceError: `OVERLOADED`: too many wait, or it took too long.
        """
        # Who comes later never passes those who wait and may run.
        if self._may_run(owner) and not any(
            self._may_run(each.owner) for each in self._waiting
        ):
            self._take(owner)
            return Place(self, owner)
        self._demand_room(owner)
        waiter = _Waiter(owner, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        began = time.monotonic()
        patience_s = None if owner == INSTALLATION else self._limits.patience_s
        try:
            async with asyncio.timeout(patience_s):
                await waiter.granted
        except BaseException as exc:
            self._leave(waiter)
            if isinstance(exc, TimeoutError):
                raise self._overloaded("late") from None
            raise
        finally:
            metrics.POOL_WAITS.labels(self._name).inc()
            waited_s = time.monotonic() - began
            metrics.POOL_WAIT_SECONDS.labels(self._name).inc(waited_s)
        return Place(self, owner)

    def _leave(self, waiter: _Waiter) -> None:
        """Stop waiting, whether or not the place came in the same moment."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)
        elif waiter.granted.done() and not waiter.granted.cancelled():
            self._give_back(waiter.owner)

    def _demand_room(self, owner: WorkOwner) -> None:
        """Refuse who would have to wait behind too many.

        Raises:
            ApplianceError: `OVERLOADED`.
        """
        if owner == INSTALLATION:
            return
        limits, owners = self._limits, [each.owner for each in self._waiting]
        of_share = [each for each in owners if each.share == owner.share]
        if (
            len(owners) >= limits.waiting
            or len(of_share) >= limits.waiting_per_share
            or (owner.party and of_share.count(owner) >= limits.waiting_per_party)
        ):
            raise self._overloaded("full")

    def _overloaded(self, cause: str) -> ApplianceError:
        metrics.count_refused(self._name, cause)
        return ApplianceError(
            ErrorCode.OVERLOADED, extras={"retryAfter": self._limits.retry_after_s}
        )

    def _may_run(self, owner: WorkOwner) -> bool:
        limits = self._limits
        return (
            self._running.total() < limits.places
            and self._of_share[owner.share] < limits.per_share
            and (not owner.party or self._running[owner] < limits.per_party)
        )

    def _take(self, owner: WorkOwner) -> None:
        self._running[owner] += 1
        self._of_share[owner.share] += 1
        self._turn += 1
        self._served[owner.share] = self._turn
        self._served.move_to_end(owner.share)
        while len(self._served) > _SHARES_KEPT:
            self._served.popitem(last=False)

    def _give_back(self, owner: WorkOwner) -> None:
        """Have a place free again, and give free places to those who wait."""
        self._running[owner] -= 1
        self._of_share[owner.share] -= 1
        if not self._running[owner]:
            del self._running[owner]
        if not self._of_share[owner.share]:
            del self._of_share[owner.share]
        while able := [each for each in self._waiting if self._may_run(each.owner)]:
            # `min` keeps the order in which they came among equals.
            chosen = min(able, key=lambda each: self._rank(each.owner.share))
            self._waiting.remove(chosen)
            if not chosen.granted.done():
                self._take(chosen.owner)
                chosen.granted.set_result(None)

    def _rank(self, share: str) -> tuple[int, int]:
        return self._of_share[share], self._served.get(share, 0)
