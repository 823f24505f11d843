"""What processes share: listeners, stop signals, dying with the parent."""

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import socket
import stat
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path

from appliance.settings import SettingsError
from appliance.system.held_listeners import take_held
from appliance.system.passed_sockets import passed_listener
from appliance.system.port_holders import holder_of

SUPERVISED = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT})
"""Signals that the parent of `rubrica up` blocks; each child unblocks them."""
_PR_SET_PDEATHSIG = 1
_PROBE_S = 1.0
_SHARED = 0o660
"""Of files that processes share: never others, and what the umask leaves."""
_LOOK_AGAIN_S = 0.1


def bind(address: str, backlog: int) -> socket.socket:
    """Bind and listen, or take the listener that was opened for this process.

    A socket unit opens it, or `rubrica init --then` at the start of a trial.

    Args:
        address: `host:port`, `[v6]:port` or `unix:/path`.
        backlog: connections that may wait; a socket unit has its own `Backlog=`.

    Raises:
        SettingsError: the address cannot be had; the text says which and why.
    """
    passed = passed_listener(address)
    if passed is not None:
        return passed
    held = take_held(address)
    if held is not None:
        held.listen(backlog)
        return held
    try:
        if address.startswith("unix:"):
            return _bind_unix(Path(address.removeprefix("unix:")), backlog)
        host, _, port = address.rpartition(":")
        host = host.strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # By its protocol's name: asyncio has connections of no other send at once, and
        # half of an answer would wait 40 ms for the client to confirm the first half.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        with _closed_on_error(made) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, int(port)))
            listener.listen(backlog)
            return listener
    except (OSError, ValueError, OverflowError) as exc:
        msg = f"{address}: cannot be listened on ({_why(address, exc)})"
        raise SettingsError(msg) from exc


def _why(address: str, exc: Exception) -> str:
    """What keeps an address from being had; of a port in use, who uses it."""
    if getattr(exc, "errno", None) != errno.EADDRINUSE or address.startswith("unix:"):
        return str(exc)
    holder = holder_of(int(address.rpartition(":")[2]))
    return f"it is in use by {holder}" if holder else f"{exc}; by whom cannot be seen"


@contextlib.contextmanager
def _closed_on_error(listener: socket.socket) -> Iterator[socket.socket]:
    try:
        yield listener
    except BaseException:
        listener.close()
        raise


def _bind_unix(path: Path, backlog: int) -> socket.socket:
    """Take over the path of a dead process, never that of a living one.

    Roles may run as users of their own that share a group: the socket is open to
    owner and group as far as the umask lets it be, and to nobody else.

    Raises:
        SettingsError: a living process listens there, or it is no socket.
    """
    if path.exists():
        if not path.is_socket():
            msg = f"unix:{path}: there is a file that is no socket"
            raise SettingsError(msg)
        if _answers(path):
            msg = f"unix:{path}: another process listens there"
            raise SettingsError(msg)
        path.unlink()
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _closed_on_error(unix) as listener:
        listener.bind(str(path))
        path.chmod(stat.S_IMODE(path.stat().st_mode) & _SHARED)
        listener.listen(backlog)
        return listener


def _answers(path: Path) -> bool:
    """Whether a living process listens at a unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # One whose queue is full would have the probe wait for ever.
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        except (BlockingIOError, TimeoutError):
            return True
        return True


def hold_alone(path: Path, patience_s: float) -> int:
    """Hold a lock file for the life of this process and of all its children.

    Children inherit the lock, so that it outlives a parent that was killed
    until the last of them has stopped: nobody takes their sockets meanwhile.

    Args:
        path: of the lock file, made when it is not there.
        patience_s: longest wait for others to let go, in seconds.

    Returns:
        Its descriptor, closed in programs that are executed.

    Raises:
        SettingsError: others still hold it.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            if time.monotonic() > deadline:
                os.close(lock)
                msg = f"{path}: another one runs here and does not stop"
                raise SettingsError(msg) from exc
            time.sleep(_LOOK_AGAIN_S)
        else:
            return lock


def die_with_parent(parent: int) -> None:
    """Have this process killed when the process that forked it dies.

    Killed, not told to stop: a front that stops gracefully waits for what its
    calls await, and the workers that would bring it about are going too. No
    state is lost by it, and whoever starts next finds nobody in the way.

    Args:
        parent: id of the parent, as it was before the fork.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It died between the fork and the line above.
        os._exit(0)


def stop_event() -> asyncio.Event:
    """An event of the running loop that SIGTERM and SIGINT set."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, event.set)
    return event


@contextlib.asynccontextmanager
async def background(*works: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run coroutines beside a block; a failure of one ends the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
