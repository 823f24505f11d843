"""`rubrica health`: what a container's check is told of each role."""

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.runtime.liveness_file import LATEST_S, last_beat_s, pulse_path
from tests.support.appliance.appliance import Appliance
from tests.support.faults.fault_injection import until
from tests.support.processes.scratch import short_folder

_ROLES = ("api", "embed", "admin", "sandbox", "chores", "signing", "metrics", "up")


@pytest.fixture(scope="module")
def running() -> Iterator[Appliance]:
    """An appliance whose processes are stopped and let go on."""
    with short_folder() as folder, Appliance.made(Path(folder)) as made:
        yield made


@pytest.mark.parametrize("role", _ROLES)
def test_role_that_gets_on_is_well(running: Appliance, role: str) -> None:
    """Exit 0, and one line that says by what it is known."""
    done = running.rubrica("health", role)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{role}: ")


@pytest.mark.parametrize("kind", ["signing", "chores"])
def test_worker_that_stands_still_is_not_well(running: Appliance, kind: str) -> None:
    """It has a process, and that does nothing: the file that it touches grows old."""
    pulse = pulse_path(running.settings.run_dir, kind, 1)
    worker = int(pulse.read_text())
    os.kill(worker, signal.SIGSTOP)
    try:
        # In place of the time that it would take to look so old.
        long_ago = time.time() - LATEST_S - 1
        os.utime(pulse, (long_ago, long_ago))
        still = running.rubrica("health", kind, "--slot", "1")
    finally:
        os.kill(worker, signal.SIGCONT)

    assert still.returncode == 1
    (told,) = re.findall(r"got on (\d+) s ago", still.stdout)
    assert int(told) > LATEST_S
    until(lambda: last_beat_s(pulse) < LATEST_S)
    assert running.rubrica("health", kind).returncode == 0


def test_worker_that_never_ran_is_not_well(running: Appliance) -> None:
    """The file that it would touch is named."""
    done = running.rubrica("health", "signing", "--slot", "9")

    assert done.returncode == 1
    assert "signing-9.lock" in done.stdout


def test_role_that_is_away_is_not_well(running: Appliance) -> None:
    """Where it would listen is named; nothing is a traceback."""
    text = running.settings_file.read_text()
    port = running.base_url.rpartition(":")[2]
    elsewhere = running.folder / "elsewhere.toml"
    elsewhere.write_text(text.replace(f'"127.0.0.1:{port}"', '"127.0.0.1:1"'))

    done = running.rubrica("health", "api", settings_file=elsewhere)

    assert (done.returncode, done.stderr) == (1, "")
    assert "127.0.0.1:1: " in done.stdout


def test_first_process_that_is_no_role_is_told(running: Appliance) -> None:
    """Without a role the container's first process is meant; here it is another."""
    done = running.rubrica("health")

    assert done.returncode == 78
    assert "name one" in done.stderr
