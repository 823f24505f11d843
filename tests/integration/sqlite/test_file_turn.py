"""Turns among the processes that write one SQLite file."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Final

import pytest

from appliance.database.engines import FileTurn
from appliance.database.migrate import migrate
from appliance.domain.errors import ApplianceError, ErrorCode
from tests.support.installation.record import open_record
from tests.support.installation.settings import settings_in
from tests.support.processes.record_writers import written_by

LONG_S: Final = 60
MOST: Final = 2.0
"""How many times as often as another a process may write."""


async def test_processes_write_in_turn(tmp_path: Path) -> None:
    """Of some that write without a pause, each writes about as often as any other."""
    settings = settings_in(tmp_path)
    await migrate(settings)

    ratios: list[float] = []
    # Other work of the machine takes from one or another: the best of some rounds.
    while len(ratios) < 3 and min(ratios, default=MOST + 1) > MOST:
        counts = await asyncio.to_thread(written_by, settings, processes=4, seconds=3)
        ratios.append(max(counts) / max(1, min(counts)))

    assert min(ratios) <= MOST, ratios


async def test_first_come_first_served(tmp_path: Path) -> None:
    """Those who wait enter in their order."""
    path = tmp_path / "turn"
    entered = []

    async def enter(name: int) -> None:
        async with FileTurn(path, LONG_S).held():
            entered.append(name)

    async with FileTurn(path, LONG_S).held():
        tasks = []
        for name in range(5):
            tasks.append(asyncio.create_task(enter(name)))
            await waiting(path, name + 1)
        assert entered == []
    await asyncio.gather(*tasks)

    assert entered == [0, 1, 2, 3, 4]


async def test_wait_has_an_end(tmp_path: Path) -> None:
    """Who waited in vain leaves the turn to others once it comes."""
    turns = [FileTurn(tmp_path / "turn", wait_s) for wait_s in (LONG_S, 0.05, LONG_S)]
    async with turns[0].held():
        with pytest.raises(TimeoutError):
            await turns[1].held().__aenter__()

    async with asyncio.timeout(LONG_S), turns[2].held():
        pass


async def test_place_in_the_queue_is_kept(tmp_path: Path) -> None:
    """What a task left another of the process takes, before those that came later."""
    path = tmp_path / "turn"
    holder, early, late = (FileTurn(path, LONG_S) for _ in range(3))
    entered = []

    async def enter(turn: FileTurn, name: str) -> None:
        async with turn.held():
            entered.append(name)

    async with holder.held():
        left = asyncio.create_task(enter(early, "left"))
        await waiting(path, 1)
        tasks = [asyncio.create_task(enter(late, "late"))]
        await waiting(path, 2)
        left.cancel()
        await asyncio.wait([left])
        tasks.append(asyncio.create_task(enter(early, "early")))
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)

    assert entered == ["early", "late"]


async def test_turn_is_free_after_tasks_left_at_any_moment(tmp_path: Path) -> None:
    """Cancelled while it waits, enters or leaves, a task keeps nothing."""
    turns = [FileTurn(tmp_path / "turn", LONG_S) for _ in range(3)]

    async def enter(turn: FileTurn) -> None:
        async with turn.held():
            await asyncio.sleep(0.0005)

    for wait in range(60):
        tasks = [asyncio.create_task(enter(turn)) for turn in turns]
        await asyncio.sleep(wait * 0.0001)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async with asyncio.timeout(LONG_S), FileTurn(tmp_path / "turn", LONG_S).held():
        pass


async def test_turn_of_a_killed_process_is_free(tmp_path: Path) -> None:
    """The kernel takes it back."""
    path = tmp_path / "turn"
    holder = await asyncio.create_subprocess_exec(
        "flock", str(path), "cat", stdin=-1, stdout=-1, start_new_session=True
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write(b"held\n")
    assert await holder.stdout.readline() == b"held\n"
    with pytest.raises(TimeoutError):
        await FileTurn(path, 0.05).held().__aenter__()

    os.killpg(holder.pid, signal.SIGKILL)
    await holder.wait()

    async with asyncio.timeout(LONG_S), FileTurn(path, LONG_S).held():
        pass


async def test_turn_that_cannot_be_had_is_a_store_that_is_away(tmp_path: Path) -> None:
    """A file that cannot be opened is told as a database that is away."""
    settings = settings_in(tmp_path)
    await migrate(settings)
    (tmp_path / "rubrica.db-turn").unlink()
    (tmp_path / "rubrica.db-turn").mkdir()

    async with open_record(settings) as core:
        with pytest.raises(ApplianceError) as caught:
            async with core.store.write():
                pass

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE


async def waiting(path: Path, number: int) -> None:
    """Until so many wait for the lock of a file."""
    inode = f":{path.stat().st_ino} "
    while True:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
        if sum(" -> FLOCK " in line and inode in line for line in lines) >= number:
            return
        await asyncio.sleep(0.005)
