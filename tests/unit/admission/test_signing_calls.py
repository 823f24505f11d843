"""Who signs at once, and who is told to come again. Source: docs/limits.md."""

import asyncio
import itertools
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from appliance.admission.fair_queue import FairLimits
from appliance.admission.signing_calls import SigningCalls, limits_of
from appliance.admission.single_calls_here import SingleCallsHere
from appliance.admission.work_owner import working_for
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from tests.support.processes.played_time import in_played_time

ONE: Final = replace(limits_of(2), places=1)
_REQUESTS: Final = map(RequestId, itertools.count(1_000))


@in_played_time
async def test_who_finds_no_place_is_told_at_once() -> None:
    """With when to come again; a place that is given back is somebody else's."""
    limits = limits_of(2)
    calls = _calls_of(limits)
    async with AsyncExitStack() as rest:
        async with AsyncExitStack() as held:
            for number in range(limits.places):
                with working_for(f"person:{number}", f"person:{number}"):
                    stack = held if number == 0 else rest
                    await stack.enter_async_context(calls.place(next(_REQUESTS)))
            waiting = [
                asyncio.create_task(_placed(calls, f"person:{number}"))
                for number in range(100, 100 + limits.waiting)
            ]
            await asyncio.sleep(0)
            with pytest.raises(ApplianceError) as refused:
                await _placed(calls, "person:200")

        assert refused.value.code is ErrorCode.OVERLOADED
        assert refused.value.extras == {"retryAfter": 2}
        await waiting[0]
    await asyncio.gather(*waiting)


@in_played_time
async def test_who_would_find_no_place_is_told_before_they_ask() -> None:
    """Whether or not they have a call here, of which one more might be a part."""
    calls = _calls_of(replace(ONE, waiting=1))
    with working_for("person:1", "person:1"):
        async with calls.place(next(_REQUESTS)) as leave:
            waiting = asyncio.create_task(_placed(calls, "person:2"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            for person in ("person:1", "person:2", "person:3"):
                told = _refused_room(calls, person)
                assert told is not None
                assert told.code is ErrorCode.OVERLOADED
                assert told.extras == {"retryAfter": 2}
            leave()
        await waiting


@in_played_time
async def test_room_is_kept_for_who_was_told_that_there_is() -> None:
    """Until they come, or for a moment."""
    now = 0.0
    calls = SigningCalls(replace(ONE, waiting=2), now=lambda: now)
    async with calls.place(next(_REQUESTS)):
        assert _refused_room(calls, "person:1") is None
        assert _refused_room(calls, "person:2") is None
        assert _refused_room(calls, "person:3") is not None
        waiting = asyncio.create_task(_placed(calls, "person:1"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert _refused_room(calls, "person:3") is not None
        # Nobody comes for the other one.
        now = 1.0
        assert _refused_room(calls, "person:3") is None
    await waiting


@in_played_time
async def test_one_person_leaves_places() -> None:
    """Their surplus is refused, and another person has a place at once."""
    limits = limits_of(2)
    calls = _calls_of(limits)
    async with AsyncExitStack() as held:
        with working_for("person:1", "person:1"):
            for _ in range(limits.per_share):
                await held.enter_async_context(calls.place(next(_REQUESTS)))
            waiting = [
                asyncio.create_task(_placed(calls, "person:1"))
                for _ in range(limits.waiting_per_party)
            ]
            await asyncio.sleep(0)
            with pytest.raises(ApplianceError):
                await _placed(calls, "person:1")
        for number in range(2, 10):
            async with asyncio.timeout(1):
                await _placed(calls, f"person:{number}")
        assert not any(each.done() for each in waiting)
    await asyncio.gather(*waiting)


@in_played_time
async def test_calls_for_one_request_have_one_place() -> None:
    """As many as there are: each gets what the first one makes."""
    limits = limits_of(2)
    calls = _calls_of(limits)
    async with AsyncExitStack() as held:
        with working_for("person:1", "person:1"):
            for _ in range(2 * limits.places):
                await held.enter_async_context(calls.place(RequestId(7)))
            for _ in range(limits.per_share - 1):
                await held.enter_async_context(calls.place(next(_REQUESTS)))
        # Who names somebody else's request has no part in it.
        for number in range(2, 2 + limits.places - limits.per_share):
            with working_for(f"person:{number}", f"person:{number}"):
                await held.enter_async_context(calls.place(RequestId(7)))
        waiting = asyncio.create_task(_placed(calls, "person:100", RequestId(7)))
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


@in_played_time
async def test_repeat_of_what_waits_waits_too() -> None:
    """For the same place: so nobody has twice as many in work."""
    calls = _calls_of(ONE)
    async with AsyncExitStack() as held:
        with working_for("person:1", "person:1"):
            first = await held.enter_async_context(calls.place(next(_REQUESTS)))
        request = next(_REQUESTS)
        waiting = [
            asyncio.create_task(_placed(calls, "person:2", request)) for _ in range(3)
        ]
        await asyncio.sleep(0)
        assert not any(each.done() for each in waiting)
        # Who waits no more leaves the others their place in the queue.
        waiting[0].cancel()
        await asyncio.sleep(0)
        first()
        await asyncio.gather(*waiting[1:])
    async with asyncio.timeout(5):
        await _placed(calls, "person:3")


@in_played_time
async def test_who_hangs_up_keeps_the_place_until_the_work_is_over() -> None:
    """What was begun goes on, so others wait; no repeat gives that place back."""
    here = SingleCallsHere()
    calls = _calls_of(ONE, here=here)
    request, over = next(_REQUESTS), asyncio.Event()
    working = await _hung_up(calls, "person:1", request, over)
    other = asyncio.create_task(_placed(calls, "person:2"))
    await _placed(calls, "person:1", request)
    await asyncio.sleep(0)
    assert not other.done()
    assert here.are_any()
    over.set()
    async with asyncio.timeout(5):
        await other
    assert working == ["begun", "over"]
    assert not here.are_any()


@in_played_time
async def test_who_hangs_up_when_nothing_is_to_be_done_frees_the_place_at_once() -> (
    None
):
    """Such as for a request that nobody has."""
    calls = _calls_of(ONE)
    over = asyncio.Event()
    over.set()
    await _hung_up(calls, "person:1", next(_REQUESTS), over)
    async with asyncio.timeout(5):
        await _placed(calls, "person:2")


@in_played_time
async def test_who_hangs_up_while_they_wait_has_nothing_done() -> None:
    """And their place in the queue is the next one's."""
    calls = _calls_of(ONE)
    over, never = asyncio.Event(), asyncio.Event()
    await _hung_up(calls, "person:1", next(_REQUESTS), over)
    waiting = await _hung_up(calls, "person:2", next(_REQUESTS), never)
    other = asyncio.create_task(_placed(calls, "person:3"))
    over.set()
    async with asyncio.timeout(5):
        await other
    assert waiting == []


@in_played_time
async def test_work_of_who_hung_up_ends_with_the_process() -> None:
    """It is cancelled; what must not be is shielded by itself."""
    calls = _calls_of(ONE)
    working = await _hung_up(calls, "person:1", next(_REQUESTS), asyncio.Event())
    async with asyncio.timeout(5):
        await calls.close()
        await _placed(calls, "person:2")
    assert working == ["begun"]


async def test_end_of_the_process_waits_for_work_to_clean_up() -> None:
    """What the work holds is given back before the process goes on ending."""
    calls = SigningCalls(ONE, held_s=60)
    cleaned: list[str] = []

    async def work(leave: object) -> None:
        del leave
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            cleaned.append("connection")

    with working_for("person:1", "person:1"):
        call = asyncio.create_task(calls.run(next(_REQUESTS), work))
    for _ in range(4):
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)

    async with asyncio.timeout(5):
        await calls.close()

    assert cleaned == ["connection"]


@in_played_time
async def test_call_that_only_waits_has_no_place() -> None:
    """Unless another one of its person works in that place."""
    calls = _calls_of(ONE)
    request = next(_REQUESTS)
    with working_for("person:1", "person:1"):
        async with calls.place(request), calls.place(request) as leave:
            leave()
            other = asyncio.create_task(_placed(calls, "person:2"))
            await asyncio.sleep(0)
            assert not other.done()
        await other
        async with calls.place(request) as leave:
            leave()
            async with asyncio.timeout(5):
                await _placed(calls, "person:2")


@in_played_time
async def test_many_who_are_refused_come_again_one_after_the_other() -> None:
    """As places come free; of another person none later for it."""
    calls = _calls_of(replace(ONE, waiting=0))
    async with calls.place(next(_REQUESTS)):
        told = [await _refused(calls, "person:1") for _ in range(20)]
        assert told == sorted(told)
        assert set(told) == set(range(2, 11))
        assert await _refused(calls, "person:2") == 2


@in_played_time
async def test_call_without_a_place_is_known() -> None:
    """A frame's: workers make way for it."""
    here = SingleCallsHere()
    calls = _calls_of(ONE, here=here)
    with calls.known():
        assert here.are_any()
    assert not here.are_any()


@in_played_time
async def test_call_that_is_held_up_keeps_nobody_out() -> None:
    """Its place is free again after a while."""
    limits = limits_of(2)
    calls = _calls_of(limits, held_s=0.05)
    async with AsyncExitStack() as held:
        for number in range(limits.places):
            with working_for(f"person:{number}", f"person:{number}"):
                await held.enter_async_context(calls.place(next(_REQUESTS)))
        async with asyncio.timeout(5):
            await _placed(calls, "person:1000")


@in_played_time
async def test_workers_of_the_host_know_of_them(tmp_path: Path) -> None:
    """From the first that has a place until the last is over."""
    here = SingleCallsHere(tmp_path)
    calls = _calls_of(limits_of(2), here=here)
    with working_for("person:1", "person:1"):
        async with calls.place(next(_REQUESTS)):
            async with calls.place(next(_REQUESTS)):
                assert here.are_any()
            assert here.are_any()
        assert not here.are_any()


def _calls_of(
    limits: FairLimits, held_s: float = 60, here: SingleCallsHere | None = None
) -> SigningCalls:
    """By the played time."""
    return SigningCalls(limits, held_s, here, asyncio.get_running_loop().time)


async def _placed(
    calls: SigningCalls, person: str, request: RequestId | None = None
) -> None:
    with working_for(person, person):
        async with calls.place(request or next(_REQUESTS)):
            pass


async def _hung_up(
    calls: SigningCalls, person: str, request: RequestId, over: asyncio.Event
) -> list[str]:
    """A call whose caller left; what was done of its work, which lasts until `over`."""
    done: list[str] = []

    async def work(leave: object) -> None:
        del leave
        done.append("begun")
        await over.wait()
        done.append("over")

    with working_for(person, person):
        call = asyncio.create_task(calls.run(request, work))
    for _ in range(4):
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    return done


async def _refused(calls: SigningCalls, person: str) -> int:
    """What somebody who finds no place is told."""
    with pytest.raises(ApplianceError) as refused:
        await _placed(calls, person)
    again_s = refused.value.extras["retryAfter"]
    assert isinstance(again_s, int)
    return again_s


def _refused_room(calls: SigningCalls, person: str) -> ApplianceError | None:
    """What somebody is told who asks for room, if there is none."""
    with working_for(person, person):
        try:
            calls.demand_room()
        except ApplianceError as exc:
            return exc
    return None
