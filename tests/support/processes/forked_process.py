"""A process that the loaded one forked; as much of `subprocess.Popen` as tests use."""

import array
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Protocol, Self

from tests.support.processes.fork_server import STATUS

_STATUS_BYTES: Final = array.array(STATUS).itemsize
Stream = int | IO[Any] | None
"""`subprocess.PIPE`, `DEVNULL` or `STDOUT`, a file, or None for the one of here."""


class Running(Protocol):
    """A started process, whoever forked it. Source: subprocess.Popen."""

    pid: int
    returncode: int | Any
    stdin: IO[str] | None
    stdout: IO[str] | None
    stderr: IO[str] | None

    def poll(self) -> int | None:
        """Its status, or None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; its status."""

    def communicate(
        self, typed: str | None = None, /, timeout: float | None = None
    ) -> tuple[str, str]:
        """Write all its input, read all its output, and wait."""

    def send_signal(self, sig: int) -> None:
        """Send it a signal, unless it has ended."""

    def terminate(self) -> None:
        """Tell it to stop."""

    def kill(self) -> None:
        """End it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class Started:
    """A process that was forked.

    Args:
        control: socket of the loaded process, nobody else using it just now.
        arguments: of `rubrica`.
        environment: all of it.
        folder: that it runs in.
        stdin: as of Popen; a pipe is text.
        stdout: the same.
        stderr: the same.
    """

    def __init__(
        self,
        control: socket.socket,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        stdin: Stream = None,
        stdout: Stream = None,
        stderr: Stream = None,
    ) -> None:
        self.args = [*arguments]
        self.returncode: int | None = None
        self._lock = threading.Lock()
        self._readers: list[_Reader] = []
        given: list[int] = []
        self.stdin, own_in = _stream(stdin, 0, given)
        self.stdout, own_out = _stream(stdout, 1, given)
        self.stderr, own_err = (
            (None, own_out)
            if stderr == subprocess.STDOUT
            else _stream(stderr, 2, given)
        )
        self._told, theirs = socket.socketpair()
        try:
            with theirs:
                streams = [theirs.fileno(), own_in, own_out, own_err]
                socket.send_fds(control, [b"+"], streams)
            self._told.sendall(_request(arguments, environment, folder))
            self._told.shutdown(socket.SHUT_WR)
            pid, descriptors, _, _ = socket.recv_fds(self._told, _STATUS_BYTES, 1)
            self._pidfd = descriptors[0]
        except (OSError, IndexError) as exc:
            self._told.close()
            raise RuntimeError("it was not forked; stderr has the reason") from exc
        finally:
            for descriptor in given:
                os.close(descriptor)
        self.pid: int = array.array(STATUS, pid)[0]

    def __del__(self) -> None:
        # Not earlier: another thread may be about to send a signal by it.
        with suppress(AttributeError):
            os.close(self._pidfd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self.wait()

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        self._look(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; its status.

        Args:
            timeout: in seconds.

        Raises:
            TimeoutExpired: it runs on.
        """
        self._look(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def _look(self, timeout_s: float | None) -> None:
        """Take the status if it comes in time."""
        if not self._lock.acquire(timeout=-1 if timeout_s is None else timeout_s):
            return  # another thread is waiting for it
        try:
            if self.returncode is not None:
                return
            poll = select.poll()
            poll.register(self._told, select.POLLIN)
            if poll.poll(None if timeout_s is None else timeout_s * 1000):
                told = self._told.recv(_STATUS_BYTES)
                self._told.close()
                # Without a loaded process nothing lives that it forked.
                self.returncode = (
                    array.array(STATUS, told)[0] if told else -signal.SIGKILL
                )
        finally:
            self._lock.release()

    def communicate(
        self, typed: str | None = None, /, timeout: float | None = None
    ) -> tuple[str, str]:
        """Write all its input, read all its output, and wait for its end.

        Args:
            typed: for a pipe, which is closed after it.
            timeout: in seconds.

        Returns:
            Output and errors, empty where there is no pipe.

        Raises:
            TimeoutExpired: it runs on; it may be called again.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._readers:
            self._readers = [_Reader(self.stdout), _Reader(self.stderr)]
        if self.stdin is not None and not self.stdin.closed:
            with suppress(BrokenPipeError):
                self.stdin.write(typed or "")
            with suppress(BrokenPipeError):
                self.stdin.close()
        for reader in self._readers:
            reader.join(_left(deadline))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(_left(deadline))
        out, err = (reader.text for reader in self._readers)
        return out, err

    def send_signal(self, sig: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, sig)

    def terminate(self) -> None:
        """Tell it to stop."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


class _Reader(threading.Thread):
    """Reads a pipe to its end."""

    def __init__(self, pipe: IO[str] | None) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self.text = ""
        self.start()

    def run(self) -> None:
        if self._pipe is not None:
            with self._pipe:
                self.text = self._pipe.read()


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)


def _stream(
    wanted: Stream, number: int, given: list[int]
) -> tuple[IO[str] | None, int]:
    """Our end of a stream if there is one, and the descriptor for the process.

    Args:
        wanted: as of Popen.
        number: of the standard stream.
        given: what is to be closed here when the process has it is added.
    """
    if wanted is None:
        return None, number
    if wanted == subprocess.DEVNULL:
        given.append(os.open(os.devnull, os.O_RDWR))
        return None, given[-1]
    if wanted != subprocess.PIPE:
        return None, wanted if isinstance(wanted, int) else wanted.fileno()
    reads, writes = os.pipe()
    ours, theirs = (writes, reads) if number == 0 else (reads, writes)
    given.append(theirs)
    return os.fdopen(ours, "w" if number == 0 else "r", encoding="utf-8"), theirs


def _request(
    arguments: Sequence[str], environment: Mapping[str, str], folder: Path
) -> bytes:
    """What the process is to be, besides its streams."""
    status = Path("/proc/self/status").read_text("ascii", errors="replace")
    # Asking for the umask by os.umask would change it for other threads.
    umask = int(status.partition("\nUmask:")[2].split()[0], 8)
    wanted = {
        "arguments": [*arguments],
        "environment": dict(environment),
        "folder": str(folder),
        "umask": umask,
    }
    return json.dumps(wanted).encode()
