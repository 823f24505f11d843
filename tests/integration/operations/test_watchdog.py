"""systemd is told that a worker lives, and no more when a call hangs."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from appliance.runtime.hang_watchdog import CallWatch
from appliance.runtime.systemd_notify import ServiceManager
from tests.support.processes.played_time import in_played_time
from worker.hsm.watchdog import calls_guarded


@pytest.fixture
def systemd(short_dir: Path) -> Iterator[socket.socket]:
    """Where systemd listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(short_dir / "notify"))
        listening.setblocking(False)  # noqa: FBT003 (the standard library's)
        yield listening


def told(systemd: socket.socket) -> list[str]:
    """All that it was told since the last look."""
    said = []
    while True:
        try:
            said.append(systemd.recv(100).decode())
        except BlockingIOError:
            return said


def manager(systemd: socket.socket, **more: str) -> ServiceManager:
    """As a unit with WatchdogSec= has it."""
    environment = {
        "NOTIFY_SOCKET": str(systemd.getsockname()),
        "WATCHDOG_USEC": "90000",
        **more,
    }
    return ServiceManager(environment)


async def until(true: Callable[[], bool]) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 (another task's own pace)
            await asyncio.sleep(0.01)


async def test_worker_says_that_it_is_ready_and_lives(systemd: socket.socket) -> None:
    """READY once, then WATCHDOG three times within the time."""
    said: list[str] = []

    def heard_four() -> bool:
        said.extend(told(systemd))
        return len(said) >= 4

    async with calls_guarded(CallWatch(), 20, manager(systemd)):
        await until(heard_four)

    assert said[0] == "READY=1"
    assert set(said[1:]) == {"WATCHDOG=1"}


@in_played_time
async def test_silence_while_a_call_hangs(systemd: socket.socket) -> None:
    """And the hang is noted for the next start; a call that ends is forgiven."""
    now = asyncio.get_running_loop().time
    watch = CallWatch(clock_ns=lambda: int(now() * 1e9))
    async with calls_guarded(watch, 20, manager(systemd)):
        with watch.calling(1):
            await asyncio.sleep(19)
            assert watch.hangs(1)[0] == 0
            await asyncio.sleep(2)
            assert watch.hangs(1)[0] > 0
            told(systemd)
            await asyncio.sleep(2)
            assert told(systemd) == []
        await asyncio.sleep(2)
        assert told(systemd)


def test_nobody_is_told_where_nobody_listens(systemd: socket.socket) -> None:
    """Without systemd, with a socket that is gone, with another's watchdog."""
    ServiceManager({}).ready()
    ServiceManager({"NOTIFY_SOCKET": "/nowhere"}).alive()
    assert ServiceManager({}).watchdog_s == 0
    assert manager(systemd, WATCHDOG_PID="1").watchdog_s == 0
    assert manager(systemd).watchdog_s == pytest.approx(0.09)
    assert told(systemd) == []


def test_abstract_socket_is_told() -> None:
    """A leading @ names one of the abstract namespace."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0rubrica-test-notify")
        ServiceManager({"NOTIFY_SOCKET": "@rubrica-test-notify"}).stopping()

        assert listening.recv(100) == b"STOPPING=1"
