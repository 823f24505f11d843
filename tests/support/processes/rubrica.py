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
    """The loaded process of this one.

    Args:
        control: a connection to one that was loaded for several; by default it is
            loaded here.
    """

    def __init__(self, control: socket.socket | None = None) -> None:
        self._lock = threading.Lock()
        self._at_load = _acts_at_load(os.environ)
        self._loading: subprocess.Popen[bytes] | None = None
        if control is None:
            self._loading, (control,) = _load(1)
        self._control = control

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
        """End all that it forked here, and itself if it was loaded here."""
        self._control.close()
        if self._loading is not None:
            self._loading.wait(_END_S)


def _load(users: int) -> tuple[subprocess.Popen[bytes], list[socket.socket]]:
    """Load it, with a connection for each of its users."""
    pairs = [socket.socketpair() for _ in range(users)]
    numbers = [theirs.fileno() for _, theirs in pairs]
    process = subprocess.Popen(
        program(*numbers), cwd=_ROOT, stdin=subprocess.DEVNULL, pass_fds=numbers
    )
    for _, theirs in pairs:
        theirs.close()
    return process, [ours for ours, _ in pairs]


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
    return end_run


def end_run() -> None:
    """End what was forked for this process."""
    _here.end()


class Shared:
    """A loaded process for several processes that this one is going to fork.

    Args:
        users: how many.
    """

    def __init__(self, users: int) -> None:
        self._process, self._controls = _load(users)

    def take(self, number: int) -> None:
        """Have this process, forked as user `number`, use it.

        Whoever is forked for it again, since the first has died, loads one.
        """
        for other, control in enumerate(self._controls):
            if other != number:
                control.close()
        if self._controls[number].fileno() >= 0:
            _here.loaded = Loaded(self._controls[number])

    def has_forked(self, number: int) -> None:
        """Leave the connection to the user: by its end the user's end is known."""
        self._controls[number].close()

    def end(self) -> None:
        """End it, after its users."""
        for control in self._controls:
            control.close()
        self._process.wait(_END_S)


def shared(users: int) -> Shared | None:
    """Load it once for processes that are going to be forked; None outside of a run.

    Args:
        users: how many.
    """
    return Shared(users) if _here.wanted else None


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
