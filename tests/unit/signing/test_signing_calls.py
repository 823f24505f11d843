"""Who signs at once, and who is told to come again. Source: docs/limits.md."""

import asyncio
import itertools
from contextlib import AsyncExitStack
from typing import Final

import pytest

from appliance.core.work_owner import working_for
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.signing.signing_calls import SigningCalls, limits_of

_REQUESTS: Final = map(RequestId, itertools.count(1_000))


async def test_who_finds_no_place_is_told_at_once() -> None:
    """With when to come again; a place that is given back is somebody else's."""
    limits = limits_of(2)
    calls = SigningCalls(limits, held_s=60)
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


async def test_one_person_leaves_places() -> None:
    """Their surplus is refused, and another person has a place at once."""
    limits = limits_of(2)
    calls = SigningCalls(limits, held_s=60)
    async with AsyncExitStack() as held:
        with working_for("person:1", "person:1"):
            for _ in range(limits.per_share):
                await held.enter_async_context(calls.place(next(_REQUESTS)))
            waiting = asyncio.create_task(_placed(calls, "person:1"))
            await asyncio.sleep(0)
            with pytest.raises(ApplianceError):
                await _placed(calls, "person:1")
        for number in range(2, 10):
            async with asyncio.timeout(1):
                await _placed(calls, f"person:{number}")
        assert not waiting.done()
    await waiting


async def test_calls_for_one_request_have_one_place() -> None:
    """As many as there are: each gets what the first one makes."""
    limits = limits_of(2)
    calls = SigningCalls(limits, held_s=60)
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


async def test_call_that_is_held_up_keeps_nobody_out() -> None:
    """Its place is free again after a while."""
    limits = limits_of(2)
    calls = SigningCalls(limits, held_s=0.05)
    async with AsyncExitStack() as held:
        for number in range(limits.places):
            with working_for(f"person:{number}", f"person:{number}"):
                await held.enter_async_context(calls.place(next(_REQUESTS)))
        async with asyncio.timeout(5):
            await _placed(calls, "person:1000")


async def _placed(
    calls: SigningCalls, person: str, request: RequestId | None = None
) -> None:
    with working_for(person, person):
        async with calls.place(request or next(_REQUESTS)):
            pass
