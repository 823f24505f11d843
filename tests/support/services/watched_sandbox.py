"""A real sandbox whose jobs are watched: by an audit hook, and by strace.

with watching_sandbox(trace) as server:
    …
    loads = server.new_loads()
calls = refused_calls(trace)
"""

import json
import mmap
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from tests.support.processes.scratch import short_folder
from tests.support.services.late_loads import LENGTH_BYTES, RECORD_BYTES
from tests.support.services.sandbox_server import LIMITS, ROOT, SandboxServer
from worker.sandbox.limits import SandboxLimits

_ONE_JOB = replace(LIMITS, jobs=1)

_MAIN: Final = "from tests.support.services.late_loads import main; main()"
_STRACE: Final = ("strace", "-D", "-f", "-qq", "-s", "0", "-e", "signal=none", "-o")
"""`-s 0` leaves strings out; paths are always whole. `-D` makes the server, not the
tracer, the test's own child; the tracer ends with it."""
_LINE: Final = re.compile(r"(\d+) +(.*)")
_KILL: Final = re.compile(r"\d+ +kill\((-?\d+), SIGKILL")
_FILTER: Final = "seccomp(SECCOMP_SET_MODE_FILTER"
_ENDED: Final = ("+++ exited", "+++ killed")
_REFUSED: Final = "= -1 EPERM"
_BY_PATH: Final = re.compile(
    r"(?:open|openat|openat2|access|faccessat2?|stat|lstat|newfstatat|statx|readlink"
    r"|readlinkat|getcwd|chdir|execve|statfs|connect|bind)"
    r'\((?:[^",]+, )?(?:\{sa_family=|"[^"])'
)
"""A call that names a file or a host, whatever comes of it."""


@dataclass(frozen=True, slots=True)
class LateLoad:
    """One audit event of a job that loads something."""

    event: str
    name: str
    """Module, or path."""
    stack: tuple[str, ...]
    """Innermost frames first, as `file:line`."""

    def __str__(self) -> str:
        return f"{self.event} {self.name} at {' < '.join(self.stack)}"


class WatchedSandbox(SandboxServer):
    """A sandbox with one job at a time, whose jobs record what they load.

    Args:
        folder: a folder with a short path.
        trace: file for the calls of the template and its jobs; None: no strace.
        limits: with one job at a time.
    """

    def __init__(
        self, folder: Path, trace: Path | None, limits: SandboxLimits = _ONE_JOB
    ) -> None:
        self._memory = os.memfd_create("loads")
        os.ftruncate(self._memory, RECORD_BYTES)
        self._loads = mmap.mmap(self._memory, RECORD_BYTES)
        self._tracer = () if trace is None else (*_STRACE, str(trace))
        # Only the server and its tracer keep the writing end, so the pipe's end of
        # file means that both have ended.
        self._ended, self._held = os.pipe()
        super().__init__(folder, limits)
        os.close(self._held)

    def _start(self) -> subprocess.Popen[bytes]:
        handed = (self._listener.fileno(), self._memory)
        return subprocess.Popen(
            [
                *self._tracer,
                sys.executable,
                "-c",
                _MAIN,
                *map(str, handed),
                json.dumps(asdict(self._limits)),
            ],
            pass_fds=[*handed, self._held],
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        )

    def new_loads(self) -> list[LateLoad]:
        """Return what jobs have loaded since the last call, and forget it."""
        length = int.from_bytes(self._loads[:LENGTH_BYTES], "little")
        lines = self._loads[LENGTH_BYTES : LENGTH_BYTES + length].splitlines()
        self._loads[:LENGTH_BYTES] = bytes(LENGTH_BYTES)
        records = [json.loads(line) for line in lines]
        return [
            LateLoad(each["event"], each["name"], tuple(each["stack"]))
            for each in records
        ]

    def close(self) -> None:
        """Kill the template, and wait until its tracer has written everything."""
        self.kill()
        os.read(self._ended, 1)
        os.close(self._ended)
        self._loads.close()
        os.close(self._memory)
        self.close_listener()


@contextmanager
def watching_sandbox(
    trace: Path | None = None, wall_s: float = LIMITS.wall_s
) -> Iterator[WatchedSandbox]:
    """Run a watched sandbox.

    Args:
        trace: as of `WatchedSandbox`.
        wall_s: seconds after which a job is killed.
    """
    with short_folder() as folder:
        server = WatchedSandbox(folder, trace, replace(_ONE_JOB, wall_s=wall_s))
        try:
            yield server
        finally:
            server.close()


def why_not_traced() -> str | None:
    """Reason why strace cannot watch a process here, None if it can."""
    try:
        done = subprocess.run(
            ["strace", "-D", "-f", "-o", os.devnull, "true"],
            check=False,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        return "strace is not installed"
    return None if done.returncode == 0 else f"strace: {done.stderr.strip()}"


def late_calls(trace: Path) -> list[list[str]]:
    """Calls of each job that were refused, or that name a file or a host.

    Args:
        trace: what strace wrote.

    Returns:
        One list for each job that was confined, in the order of their start.
    """
    jobs: list[list[str]] = []
    running: dict[str, list[str]] = {}
    template = None
    for line in trace.read_text("utf-8", errors="replace").splitlines():
        if (matched := _LINE.fullmatch(line)) is None:
            continue
        pid, call = matched.groups()
        template = template or pid
        if call.startswith(_FILTER) and pid != template:
            jobs.append([])
            running[pid] = jobs[-1]
        elif call.startswith(_ENDED):
            running.pop(pid, None)
        elif pid in running and (_REFUSED in call or _BY_PATH.match(call)):
            running[pid].append(call)
    return jobs


def kills(trace: Path) -> list[str]:
    """Targets of the template's calls of `kill`, in order, those of no effect too.

    Args:
        trace: what strace wrote.
    """
    found = map(_KILL.match, trace.read_text("utf-8", errors="replace").splitlines())
    return [matched[1] for matched in found if matched is not None]
