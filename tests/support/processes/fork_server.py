"""A process that has loaded all of Rúbrica, and forks what a test starts.

Importing takes a second, most of what a short command costs. What is forked has
arguments, environment, folder, umask and standard streams of its own, and ends with
the output and status of a program of its own.

    python -m tests.support.processes.fork_server SOCKET…   (descriptors)

For each start a socket brings one byte and four descriptors: a socket of that
start, and its standard streams. The start's socket brings the request, JSON up to
its end; back go the process id with a pidfd, and at the end the exit status.
The end of such a socket ends all that was started by it, however it came about: it is
the end of the tests that held the other end. The end of all ends this process.
"""

import array
import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NoReturn

from appliance.runtime.process_title import show_arguments
from appliance.runtime.processes import die_with_parent
from appliance.settings import SettingsError
from tests.support.hosts.network import PLACE, move_to
from tests.support.plugins.compile_cache import compile_routes_late

PACKAGES: Final = ("appliance", "worker", "hsm_config", "admin_ui", "embed")
LIBRARIES: Final = (
    "sqlalchemy.dialects.postgresql.asyncpg",
    "sqlalchemy.dialects.sqlite.aiosqlite",
)
"""Loaded when they are used, in nearly every process."""
FONTS: Final = Path("/usr/share/fonts/truetype/liberation2")
"""As settings have it, where they say nothing."""
_PREPARED: Final = (
    "worker.pades.appearance.embedded_font",
    "worker.pades.appearance.fonts",
    "embed.assets",
    "worker.sandbox.job",
    "worker.sandbox.prewarm",
)
_NOT_LOADED: Final = ("appliance.database.migrations", "appliance.web.vendor")
"""Programs for others to run, not modules."""
_ROOM: Final = " " * 1024
"""An argument for nothing: what is forked shows its own arguments in its place."""
_DESCRIPTORS: Final = 4
_PAGES: Final = 10
"""More than a sample has."""
_EX_FLUSH: Final = 120
"""Where output cannot be written at the end. Source: Python, `sys.exit`."""
STATUS: Final = "i"
"""The exit status as it goes back: one C int, negative for a signal."""


def program(*controls: int) -> list[str]:
    """The arguments of this process.

    Args:
        *controls: the descriptors of its sockets, which it inherits; one or more.
    """
    return [sys.executable, "-m", __spec__.name, *map(str, controls), _ROOM]


def modules() -> Iterator[str]:
    """All modules that a command or a role may import."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.startswith(_NOT_LOADED) and "__main__" not in found.name:
                yield found.name
    yield from LIBRARIES


@dataclass(frozen=True, slots=True)
class _Forked:
    """A process that was forked and has not ended.

    Args:
        pid: of it.
        control: the descriptor of the socket that asked for it.
        told: the descriptor of the socket that wants to know its end.
    """

    pid: int
    control: int
    told: int


def serve(controls: list[int]) -> None:
    """Fork what is asked for until all sockets end; returns in what was forked.

    Args:
        controls: descriptors of the sockets.
    """
    # Ctrl-C is for what was forked, which stops as an operator has it stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in modules():
        importlib.import_module(name)
    _prepare()
    gc.collect()
    gc.freeze()
    asked = {control: socket.socket(fileno=control) for control in controls}
    running: dict[int, _Forked] = {}
    poll = select.poll()
    for control in controls:
        poll.register(control, select.POLLIN)
    while asked:
        for ready, _ in poll.poll():
            if ready not in asked:
                poll.unregister(ready)
                _tell_end(ready, running.pop(ready))
                continue
            byte, descriptors, _, _ = socket.recv_fds(asked[ready], 1, _DESCRIPTORS)
            if not byte:
                poll.unregister(ready)
                asked.pop(ready).close()
                _kill(pidfd for pidfd, one in running.items() if one.control == ready)
                continue
            if (pid := _fork(asked.values(), descriptors)) == 0:
                return
            pidfd = os.pidfd_open(pid)
            running[pidfd] = _Forked(pid, ready, descriptors[0])
            poll.register(pidfd, select.POLLIN)
    # Whatever it forked is killed by this, and nothing is to be saved.
    os._exit(0)


def _fork(asked: Iterable[socket.socket], descriptors: list[int]) -> int:
    """The process id of what was asked for; 0 in itself."""
    parent = os.getpid()
    if (pid := os.fork()) == 0:
        for one in asked:
            one.detach()
        die_with_parent(parent)
        _become(*descriptors)
    else:
        for stream in descriptors[1:]:
            os.close(stream)
    return pid


def _kill(pidfds: Iterable[int]) -> None:
    for pidfd in pidfds:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def _prepare() -> None:
    """Have ready what every `rubrica up` would make anew out of the same files.

    Each still reads and checks its own; what is missing is told by who needs it.
    """
    one, stamp, assets, job, prewarm = map(importlib.import_module, _PREPARED)
    compile_routes_late()
    with suppress(SettingsError):
        assets.load_assets()
    with suppress(one.FontsUnusableError, RuntimeError):
        limits = SimpleNamespace(pages=_PAGES)
        fonts = stamp.load_fonts(FONTS)
        prewarm.warm(
            job.Tools(limits, fonts, rules=None, null=0, template=0, probes={})
        )
        # What that loads and opens lazily is there in each process that is forked.
        vars(prewarm)["warm"] = _is_warm


def _is_warm(tools: object) -> None:
    """In the place of what `_prepare` has done for all sandboxes."""


def _tell_end(pidfd: int, ended: _Forked) -> None:
    _, status = os.waitpid(ended.pid, 0)
    os.close(pidfd)
    code = os.waitstatus_to_exitcode(status)
    with socket.socket(fileno=ended.told) as told:
        try:
            told.send(array.array(STATUS, [code]).tobytes(), socket.MSG_NOSIGNAL)
        except OSError:
            return  # nobody wants to know it any more


def _become(request: int, *streams: int) -> None:
    """Make this process what was asked for.

    The request is read here alone: whatever stands in it, no later one has it in
    its memory.
    """
    asked = socket.socket(fileno=request)
    with asked.makefile("rb") as file:
        wanted: dict[str, Any] = json.load(file)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, request)
    os.closerange(request + 1, os.sysconf("SC_OPEN_MAX"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.umask(wanted["umask"])
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    if (place := os.environ.pop(PLACE, None)) is not None:
        move_to(place)
    # As of `python -c`: what was imported from here is imported.
    sys.argv = ["-c", *wanted["arguments"]]
    sys.path[0] = ""
    shown = [sys.executable, *sys.argv]
    show_arguments(b"\0".join(os.fsencode(each) for each in shown))
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())
    # Only now: before, a signal would not have met what was asked for.
    own = os.pidfd_open(os.getpid())
    with asked:
        socket.send_fds(asked, [array.array(STATUS, [os.getpid()]).tobytes()], [own])
    os.close(own)


def end_after(main: Callable[[], int]) -> NoReturn:
    """Run a program, and end this process as Python's own end would.

    But for taking all modules apart: that writes to all the memory that is shared
    with the loaded process, which costs a tenth of a second.

    Args:
        main: gives the exit status.
    """
    try:
        status = main()
    except SystemExit as exc:
        status = _status_of(exc)
    except BaseException:  # noqa: BLE001 (the outermost shell of the process)
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads and pools
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError as exc:
        told = f"Exception ignored in: {sys.stdout!r}\nOSError: {exc}\n"
        sys.stderr.write(told)
        status = _EX_FLUSH
    sys.stderr.flush()
    os._exit(status & 0xFF)


def _status_of(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    sys.stderr.write(f"{end.code}\n")
    return 1


if __name__ == "__main__":
    serve(list(map(int, sys.argv[1:-1])))
    from appliance.cli import main

    end_after(main)
