"""Readiness that strangers ask for: one look at a time, and never a fault."""

import asyncio

import pytest

from appliance.keys import health
from appliance.keys.health import SharedHealth


class Slow:
    """Counts looks; each one ends when it may."""

    def __init__(self) -> None:
        self.looks = 0
        self.database = "ok"
        self.go = asyncio.Event()

    async def ready(self) -> dict[str, str]:
        """One look."""
        self.looks += 1
        await self.go.wait()
        return {"database": self.database}


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


async def test_what_is_amiss_is_looked_at_sooner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is kept for a moment too, a shorter one than that all is well."""
    slow = Slow()
    slow.go.set()
    slow.database = "STORE_UNAVAILABLE"
    shared = SharedHealth(slow)  # type: ignore[arg-type]  # played
    assert await shared.ready() == await shared.ready() == {"database": slow.database}
    assert slow.looks == 1

    assert health.KEPT_AMISS_S < health.KEPT_S
    monkeypatch.setattr(health, "KEPT_AMISS_S", -1.0)
    shared = SharedHealth(slow)  # type: ignore[arg-type]  # played
    await shared.ready()
    await shared.ready()
    assert slow.looks == 3
    slow.database = "ok"
    await shared.ready()
    assert await shared.ready() == {"database": "ok"}
    assert slow.looks == 4
