"""A bounded number of places, of which nobody gets all.

    queue = FairQueue(FairLimits(places=8, per_share=6, per_party=2), "sandbox")
    async with queue.place(WORK_OWNER.get()):
        ...

Who finds no place waits, for a bounded time and among a bounded number; beyond that
`OVERLOADED` is raised at once, so that a flood costs the one who makes it: where all
wait that may, who has nothing takes the place of the last of who has most. A pool may
say too how long they would wait at most, by how fast places came free of late: the same
number of them is half a second's work on one machine and three on another. The
installation's own work (a command that looks at 1,000 files) waits as it likes. A free
place goes to the share that has the fewest, then to the one whose turn it is
(`appliance.domain.turns`; not where places are given in order), then to who came first.

Shares of a group (`STRANGERS`) have all this among themselves. To others the group is
one share, which leaves a quarter of the places and of the room to wait to them. So who
is known waits for no crowd of new addresses, and these have their turns as one. Where
a pool's work costs more than its places, a group also has a part of their time alone.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from appliance.admission.work_owner import INSTALLATION, WorkOwner
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.turns import Turns
from appliance.metrics import metrics

_LONGEST_S: Final = 1.0
"""Longer than this from one place to the next is a hold-up, not a pace. A place that
is held for longer counts as held for so long: a group rests for work, and not for a
database that is slow."""
_NOT_DONE: Final = frozenset({ErrorCode.STORE_UNAVAILABLE, ErrorCode.OVERLOADED})
"""Codes of work that found no room or no database: its group does not rest for it."""
_BUSY: Final = 2
"""Fewer that are held leave others idle, whatever there is to be done."""
_SEVERAL: Final = 2
"""Who has fewer is displaced by nobody."""
_KEPT_PART: Final = 4
"""One part in so many is kept from groups."""


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
    waiting_s: float = math.inf
    """Seconds that who comes last would wait, by how fast places came free of late:
    who would wait longer is refused, unless fewer wait than half of the places."""
    displaced_within_s: float = math.inf
    """Who has waited longer is displaced by nobody: to be refused is news soon, or not
    at all."""
    retry_after_s: int = 2
    """What those are told who find no place."""
    in_order: bool = False
    """Of shares that hold as many places, who came first goes first, whoever was served
    last: nobody waits much longer than others who came at the same time."""
    for_anybody: bool = False
    """No part is kept from groups: most who come are strangers."""
    group_part: float = 1
    """Part of the places' time that all shares of a group may use, over 0 to 1. A group
    that had more rests, though places are free: its work also costs what no place
    counts (processors, statements), and that is left to others."""

    @property
    def per_group(self) -> int:
        """Places of all shares of a group; one place alone is for all."""
        return self.places - self._kept(self.places)

    @property
    def waiting_per_group(self) -> int:
        """How many of a group may wait."""
        return self.waiting - self._kept(self.waiting)

    def _kept(self, of_all: int) -> int:
        return 0 if self.for_anybody or of_all < _SEVERAL else -(-of_all // _KEPT_PART)


@dataclass(slots=True, eq=False)
class Place:
    """A place that is held until it is released, once."""

    _queue: "FairQueue | None"
    _owner: WorkOwner
    _since: float

    def begin(self) -> None:
        """Have its work begin now: what its group uses is counted from here on."""
        if self._queue is not None:
            self._since = self._queue._now()  # noqa: SLF001 (its own)

    def release(self, *, is_held_up: bool = False, is_undone: bool = False) -> None:
        """Give it back.

        Args:
            is_held_up: its work is not over, and says nothing of how long work takes.
            is_undone: its work could not be done, and its group does not rest for it.
        """
        queue, self._queue = self._queue, None
        if queue is None:
            return
        if not is_undone:
            queue._count_rest(self._owner.group, self._since)  # noqa: SLF001 (its own)
        queue._give_back(self._owner, is_held_up=is_held_up)  # noqa: SLF001 (its own)


@dataclass(slots=True, eq=False)
class _Waiter:
    owner: WorkOwner
    granted: asyncio.Future[None]
    since: float


class _Pace:
    """How fast places come free: from when all are held until few are.

    Calls that came together end together: so what is mean is the time from each to the
    next, the last ones included, not only what passed before the first.

    Args:
        places: of the queue; the mean is of some twice as many.
        now: the time in seconds.
    """

    def __init__(self, places: int, now: Callable[[], float]) -> None:
        self._now = now
        self._places = places
        self._few = max(_BUSY, places // 4)
        self._fade = 1 - 1 / (2 * places)
        self._count = 0.0
        self._sum_s = 0.0
        self._since: float | None = None
        """When the last one came free, or all were held; None while it is not busy."""

    def taken(self, held: int) -> None:
        """One more of them is held: so many now."""
        if held >= self._places and self._since is None:
            self._since = self._now()

    def freed(self, held: int, *, is_held_up: bool) -> None:
        """One of them came free again: so many are held still."""
        if self._since is None:
            return
        now = self._now()
        if not is_held_up:
            taken_s = min(now - self._since, _LONGEST_S)
            self._count = self._count * self._fade + 1
            self._sum_s = self._sum_s * self._fade + taken_s
        self._since = None if held < self._few else now

    def within(self, seconds: float) -> float:
        """How many come free in that time; no end of them before it is known."""
        if self._count < self._places or not self._sum_s:
            return math.inf
        return seconds * self._count / self._sum_s


class FairQueue:
    """The places of one pool of one process, for use in one event loop.

    Args:
        limits: see there.
        name: of the pool, for `/metrics`.
        now: the time in seconds, of any beginning.
    """

    def __init__(
        self,
        limits: FairLimits,
        name: str,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._name = name
        self._now = now
        metrics.watch_pool(name, self, FairQueue.state)
        self._running: Counter[WorkOwner] = Counter()
        self._of_share: Counter[str] = Counter()
        self._of_lead: Counter[str] = Counter()
        # In the order they came.
        self._waiting: list[_Waiter] = []
        self._lead_turns = Turns()
        self._share_turns = Turns()
        # Groups are a fixed few, so these are too.
        self._rests_until: dict[str, float] = {}
        self._resting: asyncio.TimerHandle | None = None
        timed = math.isfinite(limits.waiting_s)
        self._pace = _Pace(limits.places, now) if timed else None

    @asynccontextmanager
    async def place(self, owner: WorkOwner) -> AsyncIterator[None]:
        """Hold a place for the time of the block.

        Raises:
            ApplianceError: `OVERLOADED`.
        """
        place = await self.acquire(owner)
        try:
            yield
        except ApplianceError as exc:
            place.release(is_undone=exc.code in _NOT_DONE)
            raise
        finally:
            place.release()

    def state(self) -> metrics.PoolState:
        """How many places are held, and how many wait for one."""
        return metrics.PoolState(
            self._limits.places, self._running.total(), len(self._waiting)
        )

    async def acquire(self, owner: WorkOwner, *, has_room: bool = False) -> Place:
        """Wait for a place; whoever gets one releases it.

        Args:
            owner: who works in it.
            has_room: they were told before that there is room to wait.

        Raises:
            ApplianceError: `OVERLOADED`: too many wait, or it took too long.
        """
        # Who comes later never passes those who wait and may run.
        if self._may_run(owner) and not any(
            self._may_run(each.owner) for each in self._waiting
        ):
            self._take(owner)
            return Place(self, owner, self._now())
        if not has_room and (displaced := self._room(owner)):
            self._remove(displaced)
            if not displaced.granted.done():
                displaced.granted.set_exception(self._overloaded("full"))
        granted = asyncio.get_running_loop().create_future()
        waiter = _Waiter(owner, granted, began := self._now())
        self._append(waiter)
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
            waited_s = self._now() - began
            metrics.POOL_WAIT_SECONDS.labels(self._name).inc(waited_s)
        return Place(self, owner, self._now())

    def demand_room(self, owner: WorkOwner, coming: Sequence[WorkOwner] = ()) -> bool:
        """Refuse who would find neither a place nor room to wait; nobody is displaced.

        Args:
            owner: who will come.
            coming: those before them who will wait, and have not come yet.

        Returns:
            Whether they would wait without displacing anybody: only then there is
            room that can be kept for them.

        Raises:
            ApplianceError: `OVERLOADED`.
        """
        return not self._may_run(owner) and self._room(owner, coming) is None

    def _append(self, waiter: _Waiter) -> None:
        self._waiting.append(waiter)
        self._lead_turns.come(_lead(waiter.owner))
        self._share_turns.come(waiter.owner.share)
        self._wake_after_rest()

    def _remove(self, waiter: _Waiter) -> None:
        """Take somebody from those who wait; their turn goes to who waits with them."""
        self._waiting.remove(waiter)
        owners = [each.owner for each in self._waiting]
        if all(_lead(each) != _lead(waiter.owner) for each in owners):
            self._lead_turns.leave(_lead(waiter.owner))
        if all(each.share != waiter.owner.share for each in owners):
            self._share_turns.leave(waiter.owner.share)

    def _leave(self, waiter: _Waiter) -> None:
        """Stop waiting, whether or not the place came in the same moment."""
        if waiter in self._waiting:
            self._remove(waiter)
        elif (
            waiter.granted.done()
            and not waiter.granted.cancelled()
            and waiter.granted.exception() is None
        ):
            self._give_back(waiter.owner, is_held_up=True)

    def _room(
        self, owner: WorkOwner, coming: Sequence[WorkOwner] = ()
    ) -> _Waiter | None:
        """Who is displaced if one more waits; None: nobody has to be.

        Raises:
            ApplianceError: `OVERLOADED`: there would be too many before them.
        """
        if owner == INSTALLATION:
            return None
        limits = self._limits
        owners = [*(each.owner for each in self._waiting), *coming]
        of_share = [each for each in owners if each.share == owner.share]
        most = self._most_waiting()

        def part(of_all: int) -> int:
            return -(-of_all * most // max(1, limits.waiting))

        if len(of_share) >= part(limits.waiting_per_share) or (
            owner.party and of_share.count(owner) >= part(limits.waiting_per_party)
        ):
            raise self._overloaded("full")
        of_group = sum(each.group == owner.group for each in owners)
        full = owner.group and of_group >= part(limits.waiting_per_group)
        if len(owners) < most and not full:
            return None
        displaced = self._displaced(owner)
        if displaced is None:
            raise self._overloaded("full")
        return displaced

    def _most_waiting(self) -> int:
        limits = self._limits
        if self._pace is None:
            return limits.waiting
        soon = max(self._pace.within(limits.waiting_s), limits.places // 2)
        return int(min(limits.waiting, soon))

    def _displaced(self, owner: WorkOwner) -> _Waiter | None:
        """The last of who has most, for one who has nothing.

        Of all who wait; of a group that has something already, among its own shares.
        """
        others = [each for each in self._waiting if each.owner != INSTALLATION]
        last = self._last_of_largest(others, self._of_lead, _lead, owner)
        if last is None and owner.group:
            others = [each for each in others if each.owner.group == owner.group]
            last = self._last_of_largest(others, self._of_share, _share, owner)
        if last is None:
            return None
        waited_s = self._now() - last.since
        return last if waited_s <= self._limits.displaced_within_s else None

    @staticmethod
    def _last_of_largest(
        others: Sequence[_Waiter],
        held: Counter[str],
        key: Callable[[WorkOwner], str],
        owner: WorkOwner,
    ) -> _Waiter | None:
        """The last of the key that has most places and waiters, for one without any."""
        waiting = Counter(key(each.owner) for each in others)
        if held[key(owner)] or waiting[key(owner)] or not waiting:
            return None
        largest = max(waiting, key=lambda each: waiting[each] + held[each])
        if waiting[largest] + held[largest] < _SEVERAL:
            return None
        return next(each for each in reversed(others) if key(each.owner) == largest)

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
            and (not owner.group or self._of_lead[owner.group] < limits.per_group)
            and not self._rest_s(owner.group)
            and (not owner.party or self._running[owner] < limits.per_party)
        )

    def _take(self, owner: WorkOwner) -> None:
        self._running[owner] += 1
        self._of_share[owner.share] += 1
        self._of_lead[_lead(owner)] += 1
        self._lead_turns.take(_lead(owner))
        self._share_turns.take(owner.share)
        for each in self._waiting:
            if _lead(each.owner) == _lead(owner):
                self._lead_turns.come(_lead(owner))
            if each.owner.share == owner.share:
                self._share_turns.come(owner.share)
        if self._pace is not None:
            self._pace.taken(self._running.total())

    def _give_back(self, owner: WorkOwner, *, is_held_up: bool) -> None:
        """Have a place free again, and give free places to those who wait."""
        self._running[owner] -= 1
        if self._pace is not None:
            self._pace.freed(self._running.total(), is_held_up=is_held_up)
        self._of_share[owner.share] -= 1
        self._of_lead[_lead(owner)] -= 1
        for held, key in (
            (self._of_share, owner.share),
            (self._of_lead, _lead(owner)),
        ):
            if not held[key]:
                del held[key]
        if not self._running[owner]:
            del self._running[owner]
        self._give_free_places()

    def _give_free_places(self) -> None:
        while able := [each for each in self._waiting if self._may_run(each.owner)]:
            # `min` keeps the order in which they came among equals.
            chosen = min(able, key=lambda each: self._rank(each.owner))
            if chosen.granted.done():
                self._remove(chosen)
                continue
            self._waiting.remove(chosen)
            self._take(chosen.owner)
            chosen.granted.set_result(None)
        self._wake_after_rest()

    def _count_rest(self, group: str, since: float) -> None:
        """Have a group rest for what it used since then."""
        if group and self._limits.group_part < 1:
            used_s = min(self._now() - since, _LONGEST_S) / self._limits.places
            begun = max(since, self._rests_until.get(group, since))
            self._rests_until[group] = begun + used_s / self._limits.group_part

    def _rest_s(self, group: str) -> float:
        """Seconds that a group has to rest still."""
        return max(0.0, self._rests_until.get(group, 0.0) - self._now())

    def _wake_after_rest(self) -> None:
        """Look again for whom to give a place to, when a group has rested."""
        rests = [self._rest_s(each.owner.group) for each in self._waiting]
        soonest = min((each for each in rests if each), default=None)
        if soonest is None or self._resting is not None:
            return

        def wake() -> None:
            self._resting = None
            self._give_free_places()

        self._resting = asyncio.get_running_loop().call_later(soonest, wake)

    def _rank(self, owner: WorkOwner) -> tuple[float, ...]:
        """What the least of goes first: places held, then turns; by group, by share."""
        lead, share = _lead(owner), owner.share
        if self._limits.in_order:
            return self._of_lead[lead], bool(owner.group), self._of_share[share]
        return (
            self._of_lead[lead],
            self._lead_turns.of(lead),
            bool(owner.group),
            self._of_share[share],
            self._share_turns.of(share),
        )


def _lead(owner: WorkOwner) -> str:
    """The key under which somebody competes with all others."""
    return owner.group or owner.share


def _share(owner: WorkOwner) -> str:
    return owner.share
