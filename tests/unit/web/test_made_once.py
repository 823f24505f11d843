"""What costs something is made once, however many ask at the same time."""

import asyncio
import threading

import pytest

from appliance.web.made_once import MadeOnce


async def test_a_burst_of_first_calls_makes_it_once() -> None:
    """All get the same; another key is another one."""
    kept: MadeOnce[str, str] = MadeOnce()
    made: list[str] = []
    all_ask = threading.Event()

    def make() -> str:
        assert all_ask.wait(60)
        made.append("page")
        return "page"

    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(kept.get("es", make)) for _ in range(50)]
        await asyncio.sleep(0)
        all_ask.set()

    assert {task.result() for task in asking} == {"page"}
    assert made == ["page"]
    assert await kept.get("en", lambda: "another") == "another"


async def test_what_could_not_be_made_is_tried_again() -> None:
    """Nothing is kept of a failure."""
    kept: MadeOnce[str, int] = MadeOnce()

    with pytest.raises(ZeroDivisionError):
        await kept.get("es", lambda: 1 // 0)
    assert await kept.get("es", lambda: 1) == 1
