"""Chores: what fails is tried again, and stops no other."""

import asyncio

import pytest
from structlog.testing import capture_logs

from appliance.domain.errors import ApplianceError, ErrorCode
from worker.periodic_jobs import attempt, repeat


@pytest.mark.parametrize(
    "error", [ApplianceError(ErrorCode.STORE_UNAVAILABLE), OSError("no such folder")]
)
async def test_chore_that_fails_is_done_again(error: Exception) -> None:
    """Whatever it raised, which the log tells."""
    times = 0
    again = asyncio.Event()

    async def chore() -> None:
        nonlocal times
        times += 1
        if times == 1:
            raise error
        again.set()

    with capture_logs() as logs:
        task = asyncio.create_task(repeat(0, chore))
        await again.wait()
        task.cancel()

    (told,) = [line for line in logs if line["event"] == "worker.chore_failed"]
    assert told["chore"].endswith("chore")


async def test_chore_is_cancelled_like_any_task() -> None:
    """Only failures are passed over."""
    task = asyncio.create_task(attempt(asyncio.Event().wait))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
