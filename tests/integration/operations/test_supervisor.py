"""The parent of `rubrica up`: restarts what dies, stops in stages, dies with all.

A small program runs the supervisor over roles of its own, which write down what
happens to them.
"""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from appliance.runtime.hang_watchdog import CallWatch
from appliance.runtime.redis_process import start_redis
from appliance.runtime.supervisor import Child, Supervisor
from appliance.settings import RedisSettings, SettingsError
from tests.support.installation.settings import settings_in

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from appliance.runtime.hang_watchdog import CallWatch
from appliance.runtime.logging import configure_logging
from appliance.runtime.processes import bind
from appliance.settings import SettingsError
from appliance.runtime.supervisor import Child, Supervisor, fork_role
from tests.support.installation.settings import settings_in

folder, graceful_s = Path(sys.argv[1]), float(sys.argv[2])
settings = settings_in(folder)
listeners = [bind(f"unix:{folder}/{name}.sock", 5) for name in "ab"]

def note(name, what):
    with (folder / "events").open("a") as file:
        file.write(f"{time.monotonic()} {name} {what} {os.getpid()}\\n")

def steady(name, stop_s=0.0, heeds=True):
    def run(settings, number, listener):
        told = []
        signal.signal(signal.SIGTERM, lambda *_: told.append(1) if heeds else None)
        note(name, "up")
        while not told:
            time.sleep(0.01)
        time.sleep(stop_s)
        note(name, "down")
        return 0
    return run

def crash(settings, number, listener):
    note("crash", "up")
    return 3

def fail(settings, number, listener):
    note("fail", "up")
    raise ZeroDivisionError("on purpose")

def refuse(settings, number, listener):
    note("refuse", "up")
    raise SettingsError("a file: a reason")

def probe(settings, number, listener):
    mine = [each.fileno() >= 0 for each in listeners]
    note("probe", f"{listener is listeners[0]}-{mine[0]}-{mine[1]}")
    return steady("probe")(settings, number, listener)

def hang(settings, number, listener):
    note("hang", "up")
    with CallWatch(folder / "hang.call").calling(2):
        time.sleep(3600)

roles = {
    "hang": (hang, 1),
    "steady": (steady("steady"), 1),
    "slow": (steady("slow", 0.3), 1),
    "second": (steady("second"), 2),
    "third": (steady("third"), 3),
    "stubborn": (steady("stubborn", heeds=False), 1),
    "crash": (crash, 1),
    "fail": (fail, 1),
    "refuse": (refuse, 1),
    "probe": (probe, 1),
}
supervisor = Supervisor(graceful_s)
watch = CallWatch(folder / "hang.call")
for name in sys.argv[3:]:
    run, stage = roles[name]
    supervisor.children.append(
        Child(
            name,
            lambda name=name, run=run: fork_role(
                name, run, settings, 1, listeners[0], listeners
            ),
            stage,
            watch if name == "hang" else None,
            0.3,
        )
    )
configure_logging(settings.log, "up")
note("parent", "up")
sys.exit(supervisor.run())
"""


@dataclass(frozen=True)
class Event:
    """Something that a role wrote down."""

    at: float
    name: str
    what: str
    pid: int


class Supervised:
    """The program, running."""

    def __init__(self, folder: Path, graceful_s: float, roles: tuple[str, ...]) -> None:
        self.folder = folder
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(folder), str(graceful_s), *roles],
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        self.until(lambda: self.events("parent"))

    def events(self, name: str = "", what: str = "") -> list[Event]:
        """What was written down, by name and kind."""
        path = self.folder / "events"
        found = []
        for line in path.read_text().splitlines() if path.exists() else []:
            at, who, kind, pid = line.split()
            if name in ("", who) and what in ("", kind):
                found.append(Event(float(at), who, kind, int(pid)))
        return found

    def until(self, condition: Callable[[], object], timeout_s: float = 60) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.01)

    def up(self, name: str, times: int = 1) -> Event:
        """Wait until a role has started that often; its last start."""
        self.until(lambda: len(self.events(name, "up")) >= times)
        return self.events(name, "up")[-1]

    def stop(self) -> int:
        """Stop it as an operator does; the exit status."""
        self.process.terminate()
        return self.process.wait(120)

    def clean_up(self) -> None:
        """End what a failed test left."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


Start = Callable[..., Supervised]


@pytest.fixture
def start(short_dir: Path) -> Iterator[Start]:
    """Start the program with roles of its list."""
    started: list[Supervised] = []

    def begin(*roles: str, graceful_s: float = 60) -> Supervised:
        started.append(Supervised(short_dir, graceful_s, roles))
        return started[-1]

    yield begin
    for each in started:
        each.clean_up()


def test_child_that_dies_is_back_at_once(start: Start) -> None:
    """Killed, it is restarted; others are not."""
    supervised = start("steady", "second")
    first, other = supervised.up("steady"), supervised.up("second")

    os.kill(first.pid, signal.SIGKILL)
    again = supervised.up("steady", 2)

    assert again.pid != first.pid
    assert psutil.pid_exists(other.pid)
    assert "SIGKILL" in supervised.log.read_text()
    assert supervised.stop() == 0


def test_first_end_of_a_child_costs_no_pause() -> None:
    """It is due again at once."""
    child = Child("role", lambda: 0, 1, started=time.monotonic())

    Supervisor(1)._ended(child, 0)

    assert child.restart_at <= time.monotonic()


def test_child_whose_call_hangs_is_killed(start: Start) -> None:
    """Nothing else ends it; it is back at once, and where it hung is kept."""
    supervised = start("hang", "second")
    first, other = supervised.up("hang"), supervised.up("second")

    again = supervised.up("hang", 2)

    assert again.pid != first.pid
    assert not psutil.pid_exists(first.pid)
    assert psutil.pid_exists(other.pid)
    log = supervised.log.read_text()
    assert "role.hangs" in log
    assert "SIGKILL" in log
    assert CallWatch(supervised.folder / "hang.call").hangs(2)[0] >= 1
    assert supervised.stop() == 0


def test_crash_loop_is_slowed_down(start: Start) -> None:
    """At once, then after 0.1, 0.2, 0.4, … seconds, while others live on."""
    supervised = start("crash", "steady")

    supervised.up("crash", 6)
    starts = [event.at for event in supervised.events("crash", "up")][:6]
    gaps = [after - before for before, after in itertools.pairwise(starts)]

    for gap, least in zip(gaps, (0, 0.1, 0.2, 0.4, 0.8), strict=True):
        assert gap >= least
    assert "exit 3" in supervised.log.read_text()
    assert len(supervised.events("steady", "up")) == 1
    assert supervised.stop() == 0


def test_stop_goes_stage_by_stage(start: Start) -> None:
    """What is slow in the first stage is waited for before the second is told."""
    supervised = start("third", "second", "slow", "steady")
    for name in ("third", "second", "slow", "steady"):
        supervised.up(name)

    assert supervised.stop() == 0

    down = [event.name for event in supervised.events(what="down")]
    assert down == ["steady", "slow", "second", "third"]


def test_stop_kills_what_does_not_stop(start: Start) -> None:
    """After the graceful time and a second it is ended, and the rest follows."""
    supervised = start("stubborn", "second", graceful_s=0.2)
    stubborn = supervised.up("stubborn")
    supervised.up("second")
    begun = time.monotonic()

    assert supervised.stop() == 0

    assert time.monotonic() - begun >= 1.2
    assert not psutil.pid_exists(stubborn.pid)
    assert [event.name for event in supervised.events(what="down")] == ["second"]


def test_nothing_is_restarted_while_stopping(start: Start) -> None:
    """A role that stopped stays stopped."""
    supervised = start("steady", "slow")
    supervised.up("steady")
    supervised.up("slow")

    supervised.stop()

    assert len(supervised.events(what="up")) == 3  # two roles and the parent


def test_children_end_with_a_parent_that_is_killed(start: Start) -> None:
    """`kill -9` of the parent: each role is killed with it, and none is left."""
    supervised = start("steady", "second")
    pids = [supervised.up(name).pid for name in ("steady", "second")]

    supervised.process.kill()
    supervised.process.wait()

    supervised.until(lambda: not any(psutil.pid_exists(pid) for pid in pids))


def test_role_that_fails_is_logged_and_restarted(start: Start) -> None:
    """An error of a role is its own: logged with its trace, and tried again."""
    supervised = start("fail", "refuse", "steady")

    supervised.up("fail", 2)
    supervised.up("refuse", 2)

    supervised.until(lambda: "exit 78" in supervised.log.read_text())
    log = supervised.log.read_text()
    assert "ZeroDivisionError: on purpose" in log
    assert "exit 70" in log
    assert "a file: a reason" in log
    assert supervised.stop() == 0


def test_role_keeps_its_own_listener_alone(start: Start) -> None:
    """Listeners of other roles are closed in it."""
    supervised = start("probe")
    supervised.up("probe")

    (found,) = [event.what for event in supervised.events("probe") if "-" in event.what]

    assert found == "True-True-False"
    assert supervised.stop() == 0


def test_redis_that_is_not_installed_is_named(short_dir: Path) -> None:
    """The key of the settings and the program, in one line."""
    settings = settings_in(short_dir).model_copy(
        update={"redis": RedisSettings(command="no-such-program")}
    )

    with pytest.raises(SettingsError, match=r"redis\.command: no-such-program cannot"):
        start_redis(settings, 0)
