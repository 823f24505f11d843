"""The pace at which bodies that nobody wants are dropped."""

import asyncio

import pytest

from appliance.web.server.exchange import Pace
from tests.support.processes.played_time import in_played_time

RATE = 1_000_000.0
PIECE = 16_384


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each who asked was told to wait, in seconds; nobody waits."""
    told: list[float] = []

    async def sleep(delay: float) -> None:
        told.append(delay)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return told


@in_played_time
async def test_all_who_ask_have_so_many_bytes_a_second(waits: list[float]) -> None:
    """Whoever comes waits for all before, so the sum of all keeps the rate."""
    pace = Pace(RATE)
    for _ in range(1000):
        await pace.spend(100_000)

    assert waits[0] == pytest.approx(0.1)
    assert waits[-1] == pytest.approx(1000 * 100_000 / RATE)


@in_played_time
async def test_small_piece_costs_as_much_as_a_large_one(waits: list[float]) -> None:
    """16 KiB: who sends byte by byte is read no more often."""
    pace = Pace(RATE)
    for _ in range(100):
        await pace.spend(1)

    assert waits[-1] == pytest.approx(100 * PIECE / RATE)


@in_played_time
async def test_nothing_is_saved_up(waits: list[float]) -> None:
    """A quiet time gives nobody more afterwards."""
    loop = asyncio.get_running_loop()
    pace = Pace(RATE)
    await pace.spend(PIECE)
    await asyncio.wait([loop.create_future()], timeout=PIECE / RATE)
    await pace.spend(PIECE)

    assert waits == [pytest.approx(PIECE / RATE)] * 2
