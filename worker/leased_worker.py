"""The loop of workers that take work from the record, each piece under a lease.

Notified, such a worker is quick; it also looks by itself every few seconds, so with
Redis gone it works on, slower. A record that is away is asked again at the next look.
"""

import asyncio
import contextlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import structlog
from structlog.contextvars import bind_contextvars

from appliance.domain.errors import ApplianceError

_log = structlog.get_logger(__name__)
C = TypeVar("C")
GiveBack = Callable[[], Awaitable[object]]
"""Ends a claim whose work is not done."""


class FencedOffError(Exception):
    """Another worker has claimed since; what this one does counts no more."""


@dataclass(slots=True, eq=False)
class Work(Generic[C]):
    """One kind of work, and what is in hand of it.

    Args:
        name: what a claim is of, as the log names it.
        id_of: its id, for the log.
        claim: takes one, in a transaction of its own; None where there is none, or no
            hand is free.
        renew: prolongs a lease; False where another worker has claimed since.
        handle: does it. What it gives is called once the lease is not renewed any more.
        renew_s: time between two renewals, in seconds.
        until_the_end: whether it is taken after the stop too, as long as other work is
            in hand, which may wait for it.
        may_leave: whether some may wait that the last claim, which gave none, had no
            hand for; then the next hand that is free is a reason to look.
    """

    name: str
    id_of: Callable[[C], str]
    claim: Callable[[], Awaitable[C | None]]
    renew: Callable[[C], Awaitable[bool]]
    handle: Callable[[C], Awaitable[GiveBack | None]]
    renew_s: float
    until_the_end: bool = False
    may_leave: Callable[[], bool] = lambda: True
    in_hand: list[C] = field(init=False, default_factory=list)


@dataclass(slots=True)
class LeasedWorker:
    """Has pieces of work in hand until it is told to stop.

    Args:
        kinds: of work, in the order in which they are claimed.
        poll_s: longest time between two looks for work, in seconds.
        is_fit: whether anything may be claimed now; always, if not given.
        tell: told how much is in hand, whenever that has changed.
    """

    kinds: Sequence[Work[Any]]
    poll_s: float
    is_fit: Callable[[], Awaitable[bool]] | None = None
    tell: Callable[[float], None] = lambda _: None
    wake: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    """Set it, and the worker looks for work at once."""
    running: dict[asyncio.Task[bool], Work[Any]] = field(
        init=False, default_factory=dict
    )
    """All that is in hand."""
    _has_left: bool = field(init=False, default=True)
    """Whether work may wait for a hand, as far as the last look tells."""

    async def run(
        self, stop: asyncio.Event, *beside: Coroutine[object, object, object]
    ) -> None:
        """Work until told to stop, then let what is in hand come to its end.

        Args:
            stop: set when it is to.
            beside: what runs as long, such as that which hears notifications; an error
                of theirs ends the worker.
        """
        helpers = [asyncio.create_task(each) for each in beside]
        stopping = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                await self._drain(self.kinds, lambda: not stop.is_set())
                await self._pause({stopping, *helpers})
                for helper in helpers:
                    if helper.done():
                        # A worker without a heart is better started anew.
                        helper.result()
        finally:
            stopping.cancel()
            await self._finish()
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    async def _finish(self) -> None:
        """Let what is in hand come to its end, and do the work it may wait for."""
        last = [kind for kind in self.kinds if kind.until_the_end]
        while waited := {
            task for task, kind in self.running.items() if kind not in last
        }:
            await self._drain(last, partial(_are_any_running, waited))
            await self._pause(waited)
        if self.running:
            await asyncio.wait(self.running)

    async def _pause(self, others: set[asyncio.Task[Any]]) -> None:
        """Wait for a notification, the end of the interval, or one of the others."""
        waking = asyncio.create_task(self.wake.wait())
        await asyncio.wait(
            {waking, *others},
            timeout=self.poll_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
        waking.cancel()
        self.wake.clear()

    async def _drain(
        self, kinds: Sequence[Work[Any]], goes_on: Callable[[], bool]
    ) -> None:
        """Take work in hand until there is none, or no hand is free.

        Args:
            kinds: of work.
            goes_on: asked before each claim. Work that ends quickly frees hands as
                fast as they fill, so that a backlog alone would go on to its end.
        """
        self._has_left = True
        has_left = kinds is not self.kinds
        try:
            if self.is_fit is not None and not await self.is_fit():
                return
            for kind in kinds:
                while goes_on() and (claim := await kind.claim()) is not None:
                    task = asyncio.create_task(hold(kind, claim))
                    self.running[task] = kind
                    kind.in_hand.append(claim)
                    self.tell(len(self.running))
                    task.add_done_callback(partial(self._ended, claim))
                has_left = has_left or kind.may_leave()
            self._has_left = has_left
        except ApplianceError as exc:
            _log.warning("worker.cannot_claim", code=exc.code.value)

    def _ended(self, claim: object, task: asyncio.Task[bool]) -> None:
        self.running.pop(task).in_hand.remove(claim)
        self.tell(len(self.running))
        failed = None if task.cancelled() else task.exception()
        if failed is not None:
            _log.error("worker.work_failed", exc_info=failed)
        # A hand is free: look whether there is more. Not where all was taken that
        # there was, and is done: what came since has rung.
        if self._has_left or task.cancelled() or failed or not task.result():
            self.wake.set()


def _are_any_running(tasks: Collection[asyncio.Task[Any]]) -> bool:
    return any(not task.done() for task in tasks)


async def hold(work: Work[C], claim: C) -> bool:
    """Do one piece of work, keeping its lease; whether it is done for good."""
    # First of all: the renewal's task has the same words for the log.
    bind_contextvars(**{work.name: work.id_of(claim)})
    try:
        async with keep_lease(partial(work.renew, claim), work.renew_s):
            give_back = await work.handle(claim)
    except FencedOffError:
        _log.warning("worker.fenced_off")
        return False
    except ApplianceError as exc:
        # The record is away: the lease will end and somebody resume.
        _log.warning("worker.let_go", code=exc.code.value)
        return False
    if give_back is not None:
        # Only now: a renewal that came after it would hold what was given back.
        await give_back()
    return give_back is None


@asynccontextmanager
async def keep_lease(
    renew: Callable[[], Awaitable[bool]], every_s: float
) -> AsyncIterator[None]:
    """Hold a claim's lease as long as this is entered.

    Args:
        renew: prolongs it; False where another worker has claimed since.
        every_s: time between renewals, in seconds.
    """
    # From the event loop, which a hung HSM does not stop.
    task = asyncio.create_task(_renew(renew, every_s))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _renew(renew: Callable[[], Awaitable[bool]], every_s: float) -> None:
    """Renew a lease until it is lost; a record that is away is asked again."""
    is_held = True
    while is_held:
        await asyncio.sleep(every_s)
        with contextlib.suppress(ApplianceError):
            is_held = await renew()
