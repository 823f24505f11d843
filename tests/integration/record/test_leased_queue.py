"""A queue of rows under leases, on both databases: here that of HSM tasks."""

import asyncio
from datetime import datetime, timedelta

import pytest
from sqlalchemy import case

from appliance.database.tables import hsm_task
from appliance.domain.ids import TaskId, new_id
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import TaskKind
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.record.leased_queue import LeasedQueue
from tests.support.installation.record import CoreFixture

pytestmark = pytest.mark.storage

LEASE = timedelta(seconds=10)
ATTEMPTS = 3


class Queue(LeasedQueue):
    """Tasks, whatever their state."""

    table, tries = hsm_task, hsm_task.c.fence


async def add(core: CoreFixture, kind: TaskKind = TaskKind.RENEW) -> TaskId:
    """One more row, younger than those before."""
    core.clock.forward(1)
    task = TaskId(new_id())
    async with core.store.write() as transaction:
        await HsmTaskStore(transaction).add(task, kind, {}, core.now)
    return task


async def claim(core: CoreFixture, owner: str = "w/1/p") -> TaskClaim | None:
    """Take what comes first, of what was not tried too often: urgent kinds first."""
    rank = case((hsm_task.c.kind == TaskKind.PUBLISH.value, 0), else_=1)
    claimable = Queue.unheld(core.now) & ~Queue.quarantined(ATTEMPTS)
    async with core.store.write() as transaction:
        until = core.now + LEASE
        claiming = Queue.claiming(claimable, rank)
        row = await Queue(transaction)._claim(claiming, owner, until)
    return row and TaskClaim(TaskId(row.id), TaskKind(row.kind), row.input, row.fence)


async def claimed(core: CoreFixture, owner: str = "w/1/p") -> TaskClaim:
    """Take something that is there."""
    found = await claim(core, owner)
    assert found is not None
    return found


async def next_tries(core: CoreFixture) -> int | None:
    """How often what comes first was claimed."""
    async with core.store.read() as transaction:
        looking = Queue.looking(Queue.tries, Queue.unheld(core.now))
        tries: int | None = await transaction.connection.scalar(looking)
        assert await Queue(transaction)._any(looking) is (tries is not None)
    return tries


async def renewed(core: CoreFixture, held: TaskClaim, until: datetime) -> bool:
    """Prolong a lease."""
    async with core.store.write() as transaction:
        return await Queue(transaction).renew(held, until)


async def put_off(core: CoreFixture, held: TaskClaim, until: datetime) -> bool:
    """Let go of a row, with a word of why."""
    async with core.store.write() as transaction:
        values = {"lease_until": until, "reason": "away"}
        return await Queue(transaction)._fenced(held, values)


async def test_rows_are_claimed_by_rank_and_then_by_turns(core: CoreFixture) -> None:
    """What was let go of comes after what has not been in hand for longer."""
    first, second = await add(core), await add(core)
    urgent = await add(core, TaskKind.PUBLISH)

    taken = [await claimed(core) for _ in range(3)]
    nothing = await claim(core)
    core.clock.forward(1)
    assert await put_off(core, taken[1], core.now)
    third = await add(core)
    again = [await claimed(core) for _ in range(2)]

    assert [each.id for each in taken] == [urgent, first, second]
    assert nothing is None
    assert [each.id for each in again] == [first, third]
    assert [each.fence for each in again] == [2, 1]


async def test_row_is_claimed_once(core: CoreFixture) -> None:
    """Of twenty that ask at once, three get the three that there are."""
    made = {await add(core) for _ in range(3)}

    taken = await asyncio.gather(*(claim(core, f"w/{n}/p") for n in range(20)))

    assert {each.id for each in taken if each} == made
    assert sum(each is not None for each in taken) == 3


async def test_lease_is_renewed_until_another_claims(core: CoreFixture) -> None:
    """After that, nothing that the first one writes touches the row."""
    await add(core)
    slow = await claimed(core)
    core.clock.forward(9)
    assert await renewed(core, slow, core.now + LEASE)
    core.clock.forward(9)
    assert await next_tries(core) is None
    core.clock.forward(1)

    other = await claimed(core, "w/2/p")

    assert not await renewed(core, slow, core.now + LEASE)
    assert not await put_off(core, slow, core.now)
    async with core.store.write() as transaction:
        queue = Queue(transaction)
        assert not await queue._fenced(slow, {"reason": "late"})
        assert await queue._fenced(other, {"reason": "in time"})


async def test_row_that_is_put_off_is_left_alone_until_then(core: CoreFixture) -> None:
    """Neither looked at nor claimed before."""
    await add(core)
    assert await put_off(core, await claimed(core), core.now + timedelta(seconds=60))
    core.clock.forward(59)
    assert (await next_tries(core), await claim(core)) == (None, None)
    core.clock.forward(1)

    assert await next_tries(core) == 1
    assert (await claimed(core)).fence == 2


async def test_what_kills_its_workers_is_quarantined(core: CoreFixture) -> None:
    """After so many claims nobody takes it; what ends it refuses who wakes late."""
    poison = await add(core)
    claims = []
    for _ in range(ATTEMPTS):
        claims.append(await claimed(core))
        core.clock.forward(10)
    assert await claim(core) is None
    assert await next_tries(core) == ATTEMPTS

    async with core.store.write() as transaction:
        which = Queue.unheld(core.now) & Queue.quarantined(ATTEMPTS)
        values = {"reason": "attempts used up"}
        ended = await Queue(transaction)._fence_off(which, values)

    assert [(row.id, row.fence, row.reason) for row in ended] == [
        (poison, ATTEMPTS + 1, "attempts used up")
    ]
    assert not await renewed(core, claims[-1], core.now + LEASE)


async def test_leases_of_a_dead_process_end(core: CoreFixture) -> None:
    """Those of its slot alone; `_` and `%` in a name stand for nothing else."""
    mine, _ = await add(core), await add(core)
    await claimed(core, "w/h_1/p")
    await claimed(core, "w/hx1/p")

    async with core.store.write() as transaction:
        released = await Queue(transaction).release_of("w/h_1/", core.now)

    assert released == 1
    assert (await claimed(core)).id == mine
