"""Noticing that the other end of a connection is gone without a word.

A host that lost its power or its link says nothing. TCP alone lets whoever waits for it
wait for a quarter of an hour after the last word, or for ever: options of the socket
make that seconds, for the database and for Redis.

Source: tcp(7); RFC 9293, 3.8.3 and 3.8.4; RFC 5482.
"""

import socket
from collections.abc import Mapping
from typing import Final, Protocol

NOTICED_S: Final = 5
"""After so long without a sign of the other end a connection is broken, in seconds."""
OPTIONS: Final[Mapping[int, int]] = {
    # Who waits for an answer says nothing: the kernel asks the other end's kernel.
    socket.TCP_KEEPIDLE: 2,
    socket.TCP_KEEPINTVL: 1,
    socket.TCP_KEEPCNT: 3,
    # What was sent and not acknowledged: keep-alive does not ask meanwhile.
    socket.TCP_USER_TIMEOUT: NOTICED_S * 1000,
}
"""Of a TCP socket that has `SO_KEEPALIVE`."""
_TCP: Final = (socket.AF_INET, socket.AF_INET6)


class Socket(Protocol):
    """As much of a socket, or of what asyncio shows of one, as is needed here."""

    @property
    def family(self) -> int:
        """Its address family."""

    def setsockopt(self, level: int, name: int, value: int, /) -> None:
        """Set an option."""


def notice_dead_link(connected: Socket) -> None:
    """Have a connection break within `NOTICED_S` of its link; a Unix socket has none.

    Args:
        connected: of TCP, or any other.
    """
    if connected.family not in _TCP:
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in OPTIONS.items():
        connected.setsockopt(socket.IPPROTO_TCP, name, value)
