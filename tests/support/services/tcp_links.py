"""A TCP link that can be cut: what is sent is lost, and nobody is told.

    with Link(port) as link:
        connect(link.port)
        with link.cut():
            …  # connections hang, new ones too

As a firewall that drops, or a cable that is pulled: no end of the connection learns of
it but by waiting.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

_PIECE: Final = 65_536
_LOOK_S: Final = 0.05


class Link:
    """Connections to a port of 127.0.0.1, passed on while the link holds.

    Args:
        target: the port that is behind it.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._holds = threading.Event()
        self._holds.set()
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.settimeout(_LOOK_S)
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listener]
        """All of them: what is cut stays open, so that nobody is told."""
        self._threads: list[threading.Thread] = []
        self.accepted = 0
        """Connections that came so far, while it held or was cut."""

    def __enter__(self) -> Self:
        self._begin(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Pass nothing on; what was open stays dead, what comes after works."""
        self._holds.clear()
        try:
            yield
        finally:
            self._holds.set()

    def passed(self, piece: bytes) -> bytes:
        """What becomes of what is passed on."""
        return piece

    def _begin(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                here, _ = self._listener.accept()
            except TimeoutError:
                continue
            self.accepted += 1
            self._sockets.append(here)
            if not self._holds.is_set():
                continue
            there = socket.create_connection(("127.0.0.1", self._target))
            self._sockets.append(there)
            for one, other in ((here, there), (there, here)):
                one.settimeout(_LOOK_S)
                self._begin(self._pass_on, one, other)

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        """Pass on what comes from one side, until it ends; once cut, never again."""
        while not self._ended.is_set():
            try:
                piece = one.recv(_PIECE)
            except TimeoutError:
                piece = None
            except OSError:
                piece = b""
            if not self._holds.is_set():
                return
            if piece is None:
                continue
            try:
                if not piece:
                    other.shutdown(socket.SHUT_WR)
                    return
                self._send(other, self.passed(piece))
            except OSError:
                return

    def _send(self, to: socket.socket, piece: bytes) -> None:
        """Send all of it, however slow the other is; not when that is cut."""
        left = memoryview(piece)
        while left and self._holds.is_set() and not self._ended.is_set():
            try:
                left = left[to.send(left) :]
            except TimeoutError:
                continue


class DeafLink(Link):
    """One whose other end never hears of a condition of HTTP's."""

    def passed(self, piece: bytes) -> bytes:
        """Have the header be one that nobody knows."""
        return piece.replace(b"if-none-match", b"x-none-at-all")
