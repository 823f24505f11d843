"""What a role answers where it listens on this machine."""

import http.client
import socket
from collections.abc import Mapping
from email.message import Message
from typing import Final, NamedTuple

from appliance.settings import Settings
from appliance.settings.web import INSTALLATION_HEADER

_ANSWER_S: Final = 5.0
_ANOTHER: Final = (
    "what answers there is not the API of the installation in {folder}, or still runs "
    "an earlier release of it; `rubrica check-ports` says which process it is"
)
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
    answer = _get(address, path, {})
    return answer.status, answer.text


def ask_api(settings: Settings, path: str) -> tuple[int, str]:
    """Ask the `api` role of an installation, and no other's.

    Args:
        settings: of the installation.
        path: what is asked for.

    Returns:
        Status and text.

    Raises:
        OSError: nobody answers there, or another installation does.
        HTTPException: whoever answers speaks no HTTP.
    """
    wanted = settings.folder_id
    asked = {INSTALLATION_HEADER: wanted} if wanted else {}
    answer = _get(settings.web.listen("api"), path, asked)
    if not wanted or answer.headers.get(INSTALLATION_HEADER) != wanted:
        raise ConnectionError(_ANOTHER.format(folder=settings.data_dir))
    return answer.status, answer.text


class _Answer(NamedTuple):
    status: int
    text: str
    headers: Message


def _get(address: str, path: str, headers: Mapping[str, str]) -> _Answer:
    connection = http.client.HTTPConnection("localhost", timeout=_ANSWER_S)
    connection.sock = _connected(address)
    try:
        connection.request("GET", path, headers=dict(headers))
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        return _Answer(answer.status, text, answer.headers)
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
