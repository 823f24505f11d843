"""A worker that takes leased rows, on both databases: here HSM tasks, done by a test.

The record's clock is moved by hand, the worker's waits are real and short.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter

import pytest
from structlog.contextvars import get_contextvars
from structlog.testing import capture_logs

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import TaskId, new_id
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import TaskKind, TaskState
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import HsmTasks
from tests.support.installation.record import CoreFixture
from tests.support.patience import CALL_S
from worker.leased_worker import FencedOffError, GiveBack, LeasedWorker, Work

pytestmark = pytest.mark.storage

ONE = (TaskKind.RENEW,)
OVER = {TaskState.DONE, TaskState.FAILED}
Then = Callable[[TaskClaim], Awaitable[GiveBack | None]]


@dataclass
class Scene:
    """A worker of two kinds of work, two hands for the first and one for the last."""

    core: CoreFixture
    tasks: HsmTasks
    worker: LeasedWorker = field(init=False)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """What work waits for, once it has begun."""
    begun: list[TaskId] = field(default_factory=list)
    named: list[dict[str, object]] = field(default_factory=list)
    """What the log names with each."""
    counts: list[float] = field(default_factory=list)
    """How much was in hand after each change."""
    is_away: bool = False
    is_fit: bool = True
    then: Then | None = None
    """What work does at last, in place of being done."""
    asked: int = 0
    """How often the worker asked whether it may work."""
    vain: int = 0
    """How often it looked for all kinds of work, and found none of the last."""
    renewals: int = 0
    """Leases that were renewed."""

    def __post_init__(self) -> None:
        self.first = self._work("first", self._first)
        self.last = replace(self._work("last", self._last), until_the_end=True)
        self.worker = LeasedWorker(
            [self.first, self.last],
            0.05,
            self._fit,
            self.counts.append,
        )

    def _work(
        self, name: str, claim: Callable[[], Awaitable[TaskClaim | None]]
    ) -> Work[TaskClaim]:
        return Work(name, attrgetter("id"), claim, self._renew, self._do, 0.05)

    async def _fit(self) -> bool:
        self.asked += 1
        if self.is_away:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)
        return self.is_fit

    async def _first(self) -> TaskClaim | None:
        if len(self.first.in_hand) == 2:
            return None
        return await self.tasks.claim_next(ONE)

    async def _last(self) -> TaskClaim | None:
        if self.last.in_hand:
            return None
        claim = await self.tasks.claim_next((TaskKind.PUBLISH,))
        self.vain += claim is None
        return claim

    async def _renew(self, claim: TaskClaim) -> bool:
        is_ours = await self.tasks.renew(claim)
        self.renewals += 1
        return is_ours

    async def _do(self, claim: TaskClaim) -> GiveBack | None:
        self.begun.append(claim.id)
        self.named.append(get_contextvars())
        if claim.kind is TaskKind.RENEW:
            await self.gate.wait()
        if self.then is not None:
            return await self.then(claim)
        async with self.core.store.write() as transaction:
            assert await HsmTaskStore(transaction).close(claim, TaskState.DONE)
        return None

    @asynccontextmanager
    async def working(self) -> AsyncIterator[asyncio.Event]:
        """The worker works meanwhile; it is stopped after, and waited for."""
        stop = asyncio.Event()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(self.worker.run(stop))
            try:
                yield stop
            finally:
                self.gate.set()
                stop.set()

    async def add(self, kind: TaskKind = TaskKind.RENEW) -> TaskId:
        """One more piece of work, younger than those before."""
        self.core.clock.forward(0.1)
        task = TaskId(new_id())
        async with self.core.store.write() as transaction:
            await HsmTaskStore(transaction).add(task, kind, {}, self.core.now)
        return task

    async def state(self, task: TaskId) -> TaskState:
        """How a task stands."""
        async with self.core.store.read() as transaction:
            status = await HsmTaskStore(transaction).status(task)
        assert status is not None
        return status.state

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for something that the test sees, until the worker's time is over."""
        while not is_so():  # noqa: ASYNC110 (several tasks' own pace)
            await asyncio.sleep(0.01)

    async def until_more(self, counted: Callable[[], int], times: int = 2) -> None:
        """Wait until something has happened so often from now on."""
        enough = counted() + times
        await self.until(lambda: counted() >= enough)

    async def until_over(self, *tasks: TaskId) -> list[TaskState]:
        """Wait until tasks are over, and give how they ended."""
        while True:
            states = [await self.state(task) for task in tasks]
            if all(state in OVER for state in states):
                return states
            await asyncio.sleep(0.01)


@pytest.fixture
def scene(core: CoreFixture) -> Scene:
    """On each database."""
    return Scene(core, HsmTasks(core.store, core.clock, "signing/h/1", "p"))


def other(scene: Scene) -> HsmTasks:
    """Another worker's transactions."""
    return HsmTasks(scene.core.store, scene.core.clock, "signing/h/2", "q")


async def test_work_is_taken_while_hands_are_free(scene: Scene) -> None:
    """In order; the next as soon as one ends; another kind has hands of its own."""
    waiting = [await scene.add() for _ in range(3)]
    urgent = await scene.add(TaskKind.PUBLISH)
    async with scene.working():
        await scene.until_over(urgent)
        assert scene.begun == [*waiting[:2], urgent]
        assert [each.id for each in scene.first.in_hand] == waiting[:2]
        # It is over in the record a moment before it is out of hand.
        await scene.until(lambda: scene.last.in_hand == [])
        await scene.until(lambda: len(scene.worker.running) == 2)
        assert scene.last.in_hand == []
        assert len(scene.worker.running) == 2
        scene.gate.set()
        await scene.until_over(*waiting)

    assert scene.begun[3:] == waiting[2:]
    assert scene.named[2:] == [{"last": urgent}, {"first": waiting[2]}]
    assert (max(scene.counts), scene.counts[-1]) == (3, 0)


async def test_notification_wakes_the_worker(scene: Scene) -> None:
    """Without waiting for the next look by itself."""
    scene.worker.poll_s = 60
    async with scene.working():
        await scene.until(lambda: scene.vain > 0)
        task = await scene.add(TaskKind.PUBLISH)
        scene.worker.wake.set()
        await scene.until_over(task)


async def test_lease_is_kept_as_long_as_it_takes(scene: Scene) -> None:
    """Nobody else gets what is in hand, however far the clock goes on."""
    task = await scene.add()
    async with scene.working():
        await scene.until(lambda: scene.begun == [task])
        for _ in range(3):
            scene.core.clock.forward(20)
            # One may have been going on, by the time of before.
            await scene.until_more(lambda: scene.renewals)
            assert await other(scene).claim_next(ONE) is None


async def test_what_is_given_back_is_so_after_its_last_renewal(scene: Scene) -> None:
    """No renewal comes after it, which would hold what was put off or given up."""
    task = await scene.add()
    begun: list[TaskId] = []
    seen: list[bool] = []

    async def give_up(claim: TaskClaim) -> None:
        renewals = len(begun), len(seen)
        for _ in range(20):
            await asyncio.sleep(0)
        assert (len(begun), len(seen)) == renewals
        assert await scene.tasks.failed(claim, "no")

    async def then(claim: TaskClaim) -> GiveBack:
        await scene.until(lambda: bool(seen))
        return partial(give_up, claim)

    async def renew(claim: TaskClaim) -> bool:
        begun.append(claim.id)
        seen.append(await scene.tasks.renew(claim))
        return True

    # One after the other: another one would begin at the loop's next turn.
    scene.first = replace(scene.first, renew=renew, renew_s=0)
    scene.worker.kinds = [scene.first]
    scene.then = then
    scene.gate.set()
    async with scene.working():
        assert await scene.until_over(task) == [TaskState.FAILED]

    assert set(seen) == {True}


async def test_fenced_off_and_away_are_told_and_cost_no_other_work(
    scene: Scene,
) -> None:
    """Of what breaks otherwise there is a trace; the worker goes on with the next."""
    errors: list[Exception] = [
        FencedOffError(),
        ApplianceError(ErrorCode.STORE_UNAVAILABLE),
        ZeroDivisionError(),
    ]
    tasks = [await scene.add() for _ in range(4)]

    async def then(claim: TaskClaim) -> None:
        place = tasks.index(claim.id)
        if place < len(errors):
            raise errors[place]
        async with scene.core.store.write() as transaction:
            await HsmTaskStore(transaction).close(claim, TaskState.DONE)

    scene.then = then
    scene.gate.set()
    with capture_logs() as logs:
        async with scene.working():
            await scene.until_over(tasks[3])

    told = [entry["event"] for entry in logs]
    assert sorted(told) == [
        "worker.fenced_off",
        "worker.let_go",
        "worker.work_failed",
    ]
    assert [await scene.state(task) for task in tasks[:3]] == [TaskState.RUNNING] * 3


async def test_nothing_is_taken_while_the_record_is_away_or_nothing_fits(
    scene: Scene,
) -> None:
    """It is asked again at each look, and told of."""
    task = await scene.add(TaskKind.PUBLISH)
    scene.is_away = True
    with capture_logs() as logs:
        async with scene.working():
            await scene.until(lambda: len(logs) >= 2)
            scene.is_fit, scene.is_away = False, False
            await scene.until_more(lambda: scene.asked)
            assert scene.begun == []
            scene.is_fit = True
            await scene.until_over(task)

    assert {(entry["event"], entry["code"]) for entry in logs} == {
        ("worker.cannot_claim", "STORE_UNAVAILABLE")
    }


async def test_stopped_worker_ends_what_is_in_hand(scene: Scene) -> None:
    """It takes no more, but what that may wait for."""
    tasks = [await scene.add() for _ in range(3)]
    async with scene.working() as stop:
        await scene.until(lambda: len(scene.begun) == 2)
        stop.set()
        awaited = await scene.add(TaskKind.PUBLISH)
        await scene.until_over(awaited)

    states = [await scene.state(task) for task in tasks]
    assert states == [TaskState.DONE, TaskState.DONE, TaskState.WAITING]
    assert scene.worker.running == {}


@dataclass
class Backlog:
    """Work that ends at once: a hand is free at each look, and work is left."""

    at_last: int
    """Piece of work that ends something, such as the worker."""
    ended: asyncio.Event
    until_the_end: bool = False
    begun: int = 0

    @property
    def work(self) -> Work[int]:
        """For a worker."""
        return Work(
            *("quick", str, self._claim, self._renew, self._do, CALL_S),
            until_the_end=self.until_the_end,
        )

    async def _claim(self) -> int | None:
        await asyncio.sleep(0)
        # One that goes on to the end of it would never end otherwise.
        return self.begun + 1 if self.begun < 100 * self.at_last else None

    async def _renew(self, _: int) -> bool:
        return True

    async def _do(self, _: int) -> None:
        self.begun += 1
        if self.begun == self.at_last:
            self.ended.set()


async def test_stopped_worker_leaves_a_backlog_of_quick_work() -> None:
    """It does not go on to the end of it."""
    stop = asyncio.Event()
    backlog = Backlog(5, stop)

    await LeasedWorker([backlog.work], 0.05).run(stop)

    assert 5 <= backlog.begun < 10


async def test_stopped_worker_leaves_the_backlog_of_what_is_waited_for() -> None:
    """It takes from that one as long as other work may wait for it."""
    stop, waited_for = asyncio.Event(), asyncio.Event()
    backlog = Backlog(5, waited_for, until_the_end=True)
    claims = iter([1])

    async def claim() -> int | None:
        return next(claims, None)

    async def renew(_: int) -> bool:
        return True

    async def wait(_: int) -> None:
        stop.set()
        await waited_for.wait()

    waiting = Work("waiting", str, claim, renew, wait, CALL_S)
    await LeasedWorker([waiting, backlog.work], 0.05).run(stop)

    assert 5 <= backlog.begun < 10


async def test_error_of_what_runs_beside_ends_the_worker(scene: Scene) -> None:
    """What is in hand is done all the same, and its other helpers are cancelled."""
    task = await scene.add()
    cancelled = asyncio.Event()

    async def heart() -> None:
        await scene.until(lambda: scene.begun == [task])
        scene.gate.set()
        raise ZeroDivisionError

    async def helper() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(
            scene.worker.run(asyncio.Event(), heart(), helper()), timeout=CALL_S
        )

    assert await scene.state(task) is TaskState.DONE
    assert cancelled.is_set()


async def test_who_had_taken_all_looks_no_more_when_it_ends(scene: Scene) -> None:
    """What came since has rung; a look for nothing costs as much as one for work."""
    scene.worker.poll_s = 60
    scene.first.may_leave = scene.last.may_leave = lambda: False
    task = await scene.add()
    async with scene.working():
        await scene.until(lambda: scene.begun == [task])
        await scene.until(lambda: not scene.worker._has_left)
        scene.gate.set()
        await scene.until_over(task)
        await scene.until(lambda: not scene.worker.running)
        assert not scene.worker.wake.is_set()


async def test_hand_that_gets_free_takes_what_was_left(scene: Scene) -> None:
    """Without a notification, and long before the next look by itself."""
    scene.worker.poll_s = 60
    scene.first.may_leave = lambda: len(scene.first.in_hand) == 2
    scene.last.may_leave = lambda: False
    waiting = [await scene.add() for _ in range(3)]
    async with scene.working():
        await scene.until(lambda: scene.begun == waiting[:2])
        scene.gate.set()
        await scene.until_over(*waiting)


async def test_what_was_given_back_is_looked_for_at_once(scene: Scene) -> None:
    """By who gave it back, also where all else was taken."""
    scene.worker.poll_s = 60
    scene.first.may_leave = scene.last.may_leave = lambda: False
    task = await scene.add()

    async def put_back(claim: TaskClaim) -> None:
        async with scene.core.store.write() as transaction:
            await HsmTaskStore(transaction).renew(claim, scene.core.now)

    async def not_yet(claim: TaskClaim) -> GiveBack:
        scene.then = None
        return partial(put_back, claim)

    scene.then = not_yet
    scene.gate.set()
    async with scene.working():
        assert await scene.until_over(task) == [TaskState.DONE]
    assert scene.begun == [task, task]
