"""`rubrica` as a process of its own, started as a test needs it.

    done = run_rubrica("--settings", str(file), "check-config")
    with start_rubrica("--settings", str(file), "demo", "host") as process:
        …

In a run of pytest a process that has loaded everything forks it
(`tests.support.processes.fork_server`),
which saves a second of importing; elsewhere, where `exec` is asked for, and where the
environment has what acts when a program is loaded, Python is started.
"""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.support.processes.fork_server import program
from tests.support.processes.forked_process import Running, Started, Stream

_MAIN: Final = "from appliance.cli import main; import sys; sys.exit(main())"
_AT_LOAD: Final = ("LD_", "GLIBC_", "MALLOC_", "LC_", "OPENSSL_", "PYTHON", "COVERAGE_")
_ALSO_AT_LOAD: Final = ("LANG", "LANGUAGE", "TZ")
"""Variables, or what they begin with, that are read before a program runs."""
_ROOT: Final = Path(__file__).parents[3]
_END_S: Final = 60.0


class Loaded:
    """The loaded process of this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        self._at_load = _acts_at_load(os.environ)
        with theirs:
            self.process = subprocess.Popen(
                program(theirs.fileno()),
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )

    def may_fork(self, environment: Mapping[str, str]) -> bool:
        """Whether what it forks would have been the same if it were executed."""
        return _acts_at_load(environment) == self._at_load

    def start(
        self,
        arguments: tuple[str, ...],
        environment: Mapping[str, str],
        folder: Path,
        *streams: Stream,
    ) -> Started:
        """Fork a process."""
        with self._lock:
            return Started(self._control, arguments, environment, folder, *streams)

    def end(self) -> None:
        """End it and all that it forked."""
        self._control.close()
        self.process.wait(_END_S)


def _acts_at_load(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_AT_LOAD) or name in _ALSO_AT_LOAD
    }


class _Here:
    """The loaded process of this run, made when it is first wanted."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.wanted = False
        self.loaded: Loaded | None = None

    def get(self) -> Loaded | None:
        with self.lock:
            if self.wanted and self.loaded is None:
                self.loaded = Loaded()
            return self.loaded

    def end(self) -> None:
        with self.lock:
            self.wanted = False
            if self.loaded is not None:
                self.loaded.end()
                self.loaded = None


_here: Final = _Here()


def begin_run() -> Callable[[], None]:
    """Have what is started from here on be forked.

    Returns:
        What ends the run, and all that was forked.
    """
    _here.wanted = True
    return _here.end


def command_line(*arguments: str) -> list[str]:
    """How `rubrica` is executed."""
    return [sys.executable, "-c", _MAIN, *arguments]


def start_rubrica(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = subprocess.PIPE,
    stderr: Stream = subprocess.PIPE,
    execute: bool = False,
) -> Running:
    """Start `rubrica`.

    Args:
        *arguments: of it.
        environment: all of it; by default that of this process.
        folder: that it runs in; by default that of this process.
        stdin: as of Popen; a pipe is text.
        stdout: the same.
        stderr: the same.
        execute: whether Python is started in any case, for tests of what a
            process has and is by itself: its memory, its command line.
    """
    variables = dict(os.environ if environment is None else environment)
    folder = folder or Path.cwd()
    loaded = None if execute else _here.get()
    if loaded is not None and loaded.may_fork(variables):
        return loaded.start(arguments, variables, folder, stdin, stdout, stderr)
    return subprocess.Popen(
        command_line(*arguments),
        env=variables,
        cwd=folder,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        text=True,
    )


def run_rubrica(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    typed: str | None = None,
    stderr: Stream = subprocess.PIPE,
    timeout: float | None = None,
    execute: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `rubrica` to its end.

    Args:
        *arguments: of it.
        environment: as of `start_rubrica`.
        typed: what it reads.
        stderr: as of Popen.
        timeout: in seconds; then it is killed.
        execute: as of `start_rubrica`.
    """
    with start_rubrica(
        *arguments,
        environment=environment,
        stdin=subprocess.DEVNULL if typed is None else subprocess.PIPE,
        stderr=stderr,
        execute=execute,
    ) as process:
        try:
            out, err = process.communicate(typed, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess([*arguments], process.returncode, out, err)
