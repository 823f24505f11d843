"""Who makes way for whom in a signing worker."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from appliance.domain.ids import PersonId
from tests.support.processes.played_time import in_played_time
from worker.signing.turns import Turn, Turns

PERSON, OTHER = PersonId("p"), PersonId("o")
LONG_S = 60.0


def nowhere() -> bool:
    """No other process has any."""
    return False


@asynccontextmanager
async def group(turns: Turns, person: PersonId = PERSON) -> AsyncIterator[Turn]:
    """A group's turn."""
    async with turns.turn(person, of_batch=True) as turn:
        yield turn


@asynccontextmanager
async def single(turns: Turns, person: PersonId = OTHER) -> AsyncIterator[Turn]:
    """A single document's turn."""
    async with turns.turn(person, of_batch=False) as turn:
        yield turn


async def has_turn(turns: Turns, person: PersonId = OTHER) -> None:
    """A group that has nothing to do."""
    async with group(turns, person):
        pass


async def comes_by_itself(waited: Coroutine[object, object, None]) -> bool:
    """Whether something is done without anybody's further doing."""
    task = asyncio.create_task(waited)
    for _ in range(20):
        await asyncio.sleep(0)
    done = task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return done


async def worked(turns: Turns, seconds: float) -> None:
    """Have a group work so long."""
    async with group(turns):
        await asyncio.sleep(seconds)


@in_played_time
async def test_groups_are_signed_one_after_the_other() -> None:
    """Another one begins when the first has ended."""
    turns = Turns(4, 3, nowhere)
    async with group(turns):
        waiting = asyncio.create_task(has_turn(turns))
        assert not await comes_by_itself(has_turn(turns))
        assert not waiting.done()
    await waiting


@in_played_time
async def test_group_that_takes_too_long_holds_up_no_other() -> None:
    """It is waited for a second; the place is the first one's all the same."""
    turns = Turns(4, 3, nowhere)
    async with asyncio.timeout(LONG_S), group(turns):
        await has_turn(turns)
        assert not await comes_by_itself(has_turn(turns))


@pytest.mark.parametrize("long", [True, False])
@in_played_time
async def test_another_group_goes_on_meanwhile(*, long: bool) -> None:
    """While one waits for an HSM or a disk; it waits for its place again then."""
    turns = Turns(4, 3, nowhere)
    left = asyncio.Event()

    async def other() -> None:
        async with group(turns, OTHER):
            left.set()
            await asyncio.Event().wait()

    async with asyncio.timeout(LONG_S), group(turns) as turn:
        async with turn.waiting(long=long):
            task = asyncio.create_task(other())
            await left.wait()
        assert not await comes_by_itself(has_turn(turns))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@in_played_time
async def test_what_is_quick_leaves_no_place() -> None:
    """An HSM or a disk that answers at once is not worth it."""
    turns = Turns(4, 3, nowhere)
    async with group(turns) as turn, turn.waiting():
        assert not await comes_by_itself(has_turn(turns))


@in_played_time
async def test_single_document_waits_for_no_group() -> None:
    """It works beside a group, and beside another single one."""
    turns = Turns(4, 3, nowhere)
    async with group(turns), single(turns) as one, single(turns):
        assert await comes_by_itself(one.make_way())


@in_played_time
async def test_group_makes_way_for_longer_than_groups_have_worked() -> None:
    """Up to half a second; then it goes on, beside a single one that does not end."""
    turns = Turns(4, 3, nowhere)
    await worked(turns, 0.2)
    async with single(turns), group(turns) as batch:
        begun = asyncio.get_running_loop().time()
        await batch.make_way()
        assert asyncio.get_running_loop().time() - begun == pytest.approx(0.5)


@in_played_time
async def test_group_makes_way_for_those_of_other_processes() -> None:
    """Until they are over, or it has made way for long enough."""
    elsewhere = [True]
    turns = Turns(4, 3, lambda: elsewhere[0])
    await worked(turns, 0.1)
    async with asyncio.timeout(LONG_S), group(turns) as batch:
        begun = asyncio.get_running_loop().time()
        await batch.make_way()
        assert asyncio.get_running_loop().time() - begun == pytest.approx(0.3)
    await worked(turns, 0.2)
    async with asyncio.timeout(LONG_S), group(turns) as batch:
        waiting = asyncio.create_task(batch.make_way())
        assert not await comes_by_itself(batch.make_way())
        elsewhere[0] = False
        await waiting


@in_played_time
async def test_group_goes_on_when_single_documents_are_over() -> None:
    """The last one's end is enough."""
    turns = Turns(4, 3, nowhere)
    await worked(turns, 0.4)
    async with group(turns) as batch:
        async with single(turns), single(turns, PERSON):
            waiting = asyncio.create_task(batch.make_way())
            assert not await comes_by_itself(batch.make_way())
            assert not waiting.done()
        for _ in range(20):
            await asyncio.sleep(0)
        assert waiting.done()


@in_played_time
async def test_what_is_looked_for_is_made_way_for() -> None:
    """A look for work may find a single document."""
    turns = Turns(4, 3, nowhere)
    await worked(turns, 0.3)
    async with group(turns) as batch:
        with turns.ahead():
            assert not await comes_by_itself(batch.make_way())
        assert await comes_by_itself(batch.make_way())


@in_played_time
async def test_group_that_has_not_worked_makes_no_way() -> None:
    """Nothing was taken that is to be given back."""
    turns = Turns(4, 3, nowhere)
    async with asyncio.timeout(LONG_S), single(turns), group(turns) as batch:
        for _ in range(100):
            await batch.make_way()


@in_played_time
async def test_one_person_has_so_many_hands() -> None:
    """The rest is for others, whatever is waited for."""
    turns = Turns(2, 1, nowhere)
    async with single(turns, PERSON), single(turns, OTHER):
        pass

    async def another() -> None:
        async with single(turns, PERSON):
            pass

    async with single(turns, PERSON):
        assert not await comes_by_itself(another())
        async with single(turns, OTHER):
            pass
    assert await comes_by_itself(another())


@in_played_time
async def test_own_groups_hold_up_no_single_document() -> None:
    """Of a person whose batch has all the hands that it may have, and all there are."""
    turns = Turns(2, 1, nowhere)
    async with AsyncExitStack() as stack:
        for person in (PERSON, OTHER):
            turn = await stack.enter_async_context(group(turns, person))
            await stack.enter_async_context(turn.waiting(long=True))
        assert not await comes_by_itself(has_turn(turns, PERSON))
        for person in (PERSON, OTHER):
            async with single(turns, person):
                pass


@in_played_time
async def test_waiting_for_a_turn_is_no_work() -> None:
    """Who left meanwhile has nothing that way is to be made for."""
    turns = Turns(4, 3, nowhere)
    async with group(turns):
        waiting = asyncio.create_task(has_turn(turns, OTHER))
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with group(turns) as turn, single(turns):
        begun = asyncio.get_running_loop().time()
        await turn.make_way()
        # Three times the one that worked, and nothing for the one that waited.
        assert asyncio.get_running_loop().time() - begun == pytest.approx(0.3)


@in_played_time
async def test_group_that_fails_leaves_its_place() -> None:
    """Wherever it was."""
    turns = Turns(4, 3, nowhere)

    async def fail(turn: Turn) -> None:
        async with turn.waiting(long=True):
            await asyncio.sleep(0)
            raise ZeroDivisionError

    async with group(turns) as turn:
        with pytest.raises(ZeroDivisionError):
            await fail(turn)
    assert await comes_by_itself(has_turn(turns))
