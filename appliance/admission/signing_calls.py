"""How many calls that sign one document a process has in work.

All that is in work shares the processors: no more than keep them busy, so that each
ends soon. Some more wait, in order: what this machine signs in not quite half a
second, by how fast places come free. Beyond what can be signed a longer queue only
makes everybody wait. So a call that finds no room is told at once, by `Retry-After`,
when to come again. Who comes for the first time has a place before those who have many.

A call that lasts gives its place back: what holds it up, a worker that was killed say,
is not how many there are, and nobody is to be refused for it.

Source: docs/limits.md.
"""

import asyncio
import math
import os
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from structlog.contextvars import bind_contextvars, get_contextvars

from appliance.admission.fair_queue import FairLimits, FairQueue, Place
from appliance.admission.single_calls_here import SingleCallsHere
from appliance.admission.work_owner import WORK_OWNER, WorkOwner
from appliance.domain.errors import ALL_SIGNING, ApplianceError
from appliance.domain.ids import RequestId
from appliance.system.cpu_count import usable_cores

_T = TypeVar("_T")
_HELD_S: Final = 5.0
_PATIENCE_S: Final = 2 * _HELD_S
"""All who have a place have given it back by then."""
_OF_A_CORE: Final = 4
"""That many keep it busy while some of them wait for a disk or each other."""
_LEAST: Final = 8
_WAITING_S: Final = 0.4
_COMES_S: Final = 0.25
"""Who found room comes for it by then: to read record and body takes less."""
_SOON_S: Final = 0.02
"""Who is refused is to know by then."""
_LATEST_S: Final = 10.0
"""Longest that who is refused is told to wait."""
_ROUNDING_S: Final = 0.001
_SHARES_KEPT: Final = 1_024


def limits_of(cores: int) -> FairLimits:
    """Places, of which one person has three quarters at most.

    Args:
        cores: that the process may run on.
    """
    places = max(_LEAST, cores * _OF_A_CORE)
    most = places * 3 // 4
    return FairLimits(
        places=places,
        per_share=most,
        per_party=most,
        waiting=2 * places,
        waiting_per_share=2 * most,
        waiting_per_party=2 * most,
        waiting_s=_WAITING_S,
        displaced_within_s=_SOON_S,
        patience_s=_PATIENCE_S,
        retry_after_s=2,
        in_order=True,
    )


@dataclass(slots=True, eq=False)
class _Calls:
    """Calls of one person for one request, and the place that they have together."""

    placing: asyncio.Task[Place]
    over: asyncio.TimerHandle | None = None
    """Ends what is theirs; set once they have a place."""
    users: int = 0
    """Of them that wait for the place, or work."""


class SigningCalls:
    """The places of one process.

    Args:
        limits: how many; by default of the processors that it may run on.
        held_s: longest that a call has its place, in seconds.
        here: where workers of this host look; by default they do not.
        now: the time in seconds.
    """

    def __init__(
        self,
        limits: FairLimits | None = None,
        held_s: float = _HELD_S,
        here: SingleCallsHere | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now = now
        self._held_s = held_s
        self._here = here or SingleCallsHere()
        self._in_work = 0
        self._together: dict[tuple[WorkOwner, RequestId], _Calls] = {}
        self._limits = limits or limits_of(usable_cores())
        self._queue = FairQueue(self._limits, "signing_calls", now)
        self._coming: deque[tuple[WorkOwner, float]] = deque()
        """For whom there was room, until when it is kept."""
        self._working: set[asyncio.Task[Any]] = set()
        self._due: OrderedDict[str, float] = OrderedDict()
        """When who was refused last is to come again, by share."""

    def demand_room(self) -> None:
        """Refuse who would find no room before anything is done; else keep it a while.

        Also who repeats a call that is here, and would have a part in its place: which
        request it is for stands in a body that is not read yet.

        Raises:
            ApplianceError: `OVERLOADED`.
        """
        if self._queue.state().held < self._limits.places:
            # Any number of equal calls have one of them together.
            return
        owner, now = WORK_OWNER.get(), self._now()
        while self._coming and self._coming[0][1] <= now:
            self._coming.popleft()
        try:
            coming = [each for each, _ in self._coming]
            is_room = self._queue.demand_room(owner, coming)
        except ApplianceError as exc:
            raise self._refused(exc, owner) from exc
        if is_room:
            self._coming.append((owner, now + _COMES_S))

    async def run(
        self,
        request: RequestId,
        work: Callable[[Callable[[], None]], Coroutine[object, object, _T]],
    ) -> _T:
        """Do the work of a call once it has a place (`place`).

        Who leaves while they wait for it wait no more. What was begun goes on to its
        end, and has its place until then, whether or not anybody waits for it.

        Args:
            request: that is signed.
            work: gets what gives the place back before.

        Raises:
            ApplianceError: `OVERLOADED`, or of the work.
            CancelledError: the caller left.
        """
        is_begun = False

        async def placed() -> _T:
            nonlocal is_begun
            async with self.place(request) as leave:
                is_begun = True
                return await work(leave)

        context = copy_context()
        task = asyncio.create_task(placed(), context=context)
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not is_begun:
                task.cancel()
            raise
        finally:
            # Lines of the call's log name what the work was about.
            bind_contextvars(**context.run(get_contextvars))

    async def close(self) -> None:
        """End all work; what must not be ended is shielded by itself."""
        for task in self._working:
            task.cancel()
        if self._working:
            await asyncio.wait(self._working)

    @asynccontextmanager
    async def place(self, request: RequestId) -> AsyncIterator[Callable[[], None]]:
        """Have a place for the time of the block, or for as long as one is had.

        Calls of one person for one request have one together: all of them get what
        the first one makes.

        Args:
            request: that is signed.

        Returns:
            What gives it back before, for a call that only waits for another one.

        Raises:
            ApplianceError: `OVERLOADED`.
        """
        key = WORK_OWNER.get(), request
        has_room = self._has_come(key[0])
        calls = self._together.get(key)
        if calls is None:
            placing = asyncio.create_task(
                self._queue.acquire(key[0], has_room=has_room)
            )
            calls = self._together[key] = _Calls(placing)
        calls.users += 1
        try:
            await self._wait(key, calls)
        except BaseException:
            calls.users -= 1
            if not calls.users:
                self._forget(key, calls)
            raise
        leave = partial(self._leave, key, calls)
        try:
            yield leave
        finally:
            leave()
            calls.users -= 1

    @contextmanager
    def known(self) -> Iterator[None]:
        """Have workers make way for the time of the block, for a call without a place.

        Where a person sits in front of it, that is: a frame.
        """
        self._begin()
        try:
            yield
        finally:
            self._finish()

    def _has_come(self, owner: WorkOwner) -> bool:
        """Whether one for whom there was room is here; it is kept no more."""
        for number, (each, _) in enumerate(self._coming):
            if each == owner:
                del self._coming[number]
                return True
        return False

    async def _wait(self, key: tuple[WorkOwner, RequestId], calls: _Calls) -> None:
        """Wait until they have a place.

        Raises:
            ApplianceError: `OVERLOADED`.
        """
        try:
            await asyncio.shield(calls.placing)
        except ApplianceError as exc:
            raise self._refused(exc, key[0]) from exc
        if calls.over is None:
            loop = asyncio.get_running_loop()
            calls.over = loop.call_later(self._held_s, self._run_out, key, calls)
            self._begin()

    def _forget(self, key: tuple[WorkOwner, RequestId], calls: _Calls) -> None:
        """Wait for no place that nobody wants any more; another one works in it."""
        if calls.over is not None or self._together.get(key) is not calls:
            return
        del self._together[key]
        placing = calls.placing
        if placing.cancel() or placing.cancelled():
            return
        if placing.exception() is None:
            placing.result().release()

    def _leave(self, key: tuple[WorkOwner, RequestId], calls: _Calls) -> None:
        """Give the place back, where no other call has a part in it."""
        if calls.users > 1 or self._together.get(key) is not calls:
            return
        if calls.over is not None:
            calls.over.cancel()
        self._give_back(key, calls)

    def _run_out(self, key: tuple[WorkOwner, RequestId], calls: _Calls) -> None:
        """Give the place back after its time, whoever has a part in it."""
        self._give_back(key, calls, is_held_up=True)

    def _give_back(
        self,
        key: tuple[WorkOwner, RequestId],
        calls: _Calls,
        *,
        is_held_up: bool = False,
    ) -> None:
        del self._together[key]
        self._finish()
        calls.placing.result().release(is_held_up=is_held_up)

    def _begin(self) -> None:
        self._in_work += 1
        self._here.note(os.getpid(), has_any=True)

    def _finish(self) -> None:
        self._in_work -= 1
        if not self._in_work:
            self._here.note(os.getpid(), has_any=False)

    def _refused(self, exc: ApplianceError, owner: WorkOwner) -> ApplianceError:
        """What they are told: that nothing was signed, and when to come again."""
        again_s = self._again_s(owner.share)
        return ApplianceError(
            exc.code, extras={"retryAfter": again_s}, sentence=ALL_SIGNING
        )

    def _again_s(self, share: str) -> int:
        """When one of a share is to come again: of many not all at once."""
        now = asyncio.get_running_loop().time()
        least = now + self._limits.retry_after_s
        due = max(self._due.pop(share, 0.0) + 1 / self._limits.places, least)
        self._due[share] = min(due, now + _LATEST_S)
        if len(self._due) > _SHARES_KEPT:
            self._due.popitem(last=False)
        return math.floor(self._due[share] - now + _ROUNDING_S)
