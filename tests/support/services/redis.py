"""A private redis-server on a unix socket, to be stopped and started at will."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from redis import Redis
from redis.exceptions import RedisError

_START_S: Final = 60


class RedisServer:
    """One server in a folder of its own; it forgets everything when it stops.

    Args:
        folder: a short, private, existing folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.socket = folder / "redis.sock"

    @property
    def url(self) -> str:
        """Its address for redis-py."""
        return f"unix://{self.socket}"

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            RuntimeError: it does not answer within a minute.
        """
        if self._process is not None:
            return
        command = ["redis-server", "--port", "0", "--unixsocket", str(self.socket)]
        command += ["--unixsocketperm", "700", "--dir", str(self._folder)]
        command += ["--save", "", "--appendonly", "no", "--loglevel", "warning"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        until = time.monotonic() + _START_S
        while not self._answers():
            if time.monotonic() > until or self._process.poll() is not None:
                self.kill()
                raise RuntimeError("redis-server does not answer")
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop it gracefully."""
        self._end(kill=False)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(kill=True)

    @contextlib.contextmanager
    def hung(self) -> Iterator[None]:
        """Have it accept connections and answer nothing for the time of a block."""
        if self._process is None:
            raise RuntimeError("redis-server is not started")
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def flush(self) -> None:
        """Delete all it holds, as FLUSHALL does."""
        with contextlib.closing(Redis(unix_socket_path=str(self.socket))) as client:
            client.flushall()

    def command(self, *words: str | bytes | int) -> object:
        """Send it any command."""
        with contextlib.closing(Redis(unix_socket_path=str(self.socket))) as client:
            return client.execute_command(*words)  # type: ignore[no-untyped-call]  # redis-py types it so

    def _end(self, *, kill: bool) -> None:
        """End the process and collect it."""
        process, self._process = self._process, None
        if process is None:
            return
        if kill:
            process.kill()
        else:
            process.terminate()
        process.wait()
        self.socket.unlink(missing_ok=True)

    def _answers(self) -> bool:
        """Say whether a PING is answered."""
        with contextlib.closing(Redis(unix_socket_path=str(self.socket))) as client:
            try:
                return bool(client.ping())
            except RedisError:
                return False
