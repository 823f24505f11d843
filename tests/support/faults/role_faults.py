"""Faults of an installation's processes and of its HSM, for as long as a block lasts.

with stopped(appliance, "signing-1"), token_away(appliance, "pki"):
...
"""

import json
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from appliance.metrics.metrics_file import FORMAT
from tests.support.appliance.appliance import Appliance
from tests.support.processes.other_version import other_version
from tests.support.processes.rubrica import command_line

_ROOT: Final = Path(__file__).resolve().parents[3]


@contextmanager
def stopped(appliance: Appliance, *roles: str) -> Iterator[None]:
    """Have roles hang for the time of a block."""
    processes = [one for role in roles for one in appliance.children(role)]
    assert len(processes) == len(roles)
    for one in processes:
        one.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for one in processes:
            one.send_signal(signal.SIGCONT)


@contextmanager
def cramped(process: psutil.Process) -> Iterator[None]:
    """Have a process be allowed few more files than it has open."""
    before = process.rlimit(psutil.RLIMIT_NOFILE)
    most = process.num_fds() * 5 // 4 - 1
    process.rlimit(psutil.RLIMIT_NOFILE, (most, before[1]))
    try:
        yield
    finally:
        process.rlimit(psutil.RLIMIT_NOFILE, before)


@contextmanager
def left_over(
    appliance: Appliance, folder: Path, environment: Mapping[str, str]
) -> Iterator[None]:
    """A third worker that runs in an older version.

    Args:
        appliance: that it belongs to.
        folder: to be made.
        environment: more variables of it.
    """
    path = f"{other_version(folder, '0.0.7')}:{_ROOT}"
    process = subprocess.Popen(
        command_line(
            *("--settings", str(appliance.settings_file)),
            *("worker", "signing", "--slot", "3"),
        ),
        env={"PATH": "/usr/bin:/bin", **environment, "PYTHONPATH": path},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)
        # As docs/alerts.md has it, of a worker that is not to come back.
        (appliance.settings.metrics_dir / "signing/3.json").unlink()


@contextmanager
def garbage(appliance: Appliance) -> Iterator[None]:
    """A file that holds no figures, beside those that do."""
    file = appliance.settings.metrics_dir / "embed" / "9.json"
    file.write_bytes(b"\0" * 1000)
    try:
        yield
    finally:
        file.unlink()


@contextmanager
def handed_over(appliance: Appliance, role: str, **figures: float) -> Iterator[None]:
    """Figures of a ninth process of a role, which go on being handed over.

    Args:
        appliance: that it belongs to.
        role: of the process.
        figures: values by name.
    """
    file = appliance.settings.metrics_dir / role / "9.json"
    samples = [[name, {}, value] for name, value in figures.items()]
    host = socket.gethostname()
    file.write_text(json.dumps({"format": FORMAT, "samples": samples, "host": host}))
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(1):
            file.touch()

    process = threading.Thread(target=go_on)
    process.start()
    try:
        yield
    finally:
        ended.set()
        process.join()
        file.unlink()
