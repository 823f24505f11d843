"""What a role answers where it listens on this machine."""

import http.client
import socket
from typing import Final

_ANSWER_S: Final = 5.0
_SOME_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 (asked, not bound)


def ask(address: str, path: str) -> tuple[int, str]:
    """The status and the text of its answer.

    Not by the public address: what is before the role may be down, or answer for
    another host, and the way there may be shut to this machine.

    Args:
        address: `web.listen_…` of the settings.
        path: what is asked for.

    Raises:
        OSError: nobody answers there.
        HTTPException: whoever does speaks no HTTP.
    """
    connection = http.client.HTTPConnection("localhost", timeout=_ANSWER_S)
    connection.sock = _connected(address)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()


def _connected(address: str) -> socket.socket:
    """A connection to a listener of the settings."""
    if address.startswith("unix:"):
        unix = socket.socket(socket.AF_UNIX)
        try:
            unix.settimeout(_ANSWER_S)
            unix.connect(address.removeprefix("unix:"))
        except OSError:
            unix.close()
            raise
        return unix
    host, _, port = address.rpartition(":")
    host = _SOME_ADDRESS.get(host, host).strip("[]")
    return socket.create_connection((host, int(port)), timeout=_ANSWER_S)
