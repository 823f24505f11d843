"""Readiness that strangers ask for: one look at a time, and never a fault."""

import asyncio

import pytest

from appliance.services import health
from appliance.services.health import SharedHealth


class Slow:
    """Counts looks; each one ends when it may."""

    def __init__(self) -> None:
        self.looks = 0
        self.go = asyncio.Event()

    async def ready(self) -> dict[str, str]:
        """One look."""
        self.looks += 1
        await self.go.wait()
        return {"database": "ok"}


async def test_callers_share_one_look() -> None:
    """Eighty at once are one look; who leaves does not end it."""
    slow = Slow()
    shared = SharedHealth(slow)  # type: ignore[arg-type]  # played
    calls = [asyncio.create_task(shared.ready()) for _ in range(80)]
    await asyncio.sleep(0)
    calls[0].cancel()
    slow.go.set()
    told = await asyncio.gather(*calls[1:])

    assert slow.looks == 1
    assert told == [{"database": "ok"}] * 79


async def test_what_was_found_is_kept_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then it is looked at anew."""
    slow = Slow()
    slow.go.set()
    shared = SharedHealth(slow)  # type: ignore[arg-type]  # played
    await shared.ready()
    await shared.ready()
    assert slow.looks == 1

    monkeypatch.setattr(health, "KEPT_S", -1.0)
    shared = SharedHealth(slow)  # type: ignore[arg-type]  # played
    await shared.ready()
    await shared.ready()
    assert slow.looks == 3
