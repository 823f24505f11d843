"""Listeners that a process was given, as systemd's socket units do.

A socket unit keeps its listener while the service behind it is restarted: callers
wait meanwhile, and nobody is refused.

Source: sd_listen_fds(3); systemd.socket(5).
"""

import ipaddress
import os
import socket
from pathlib import Path
from typing import Final

from appliance.settings import SettingsError

_FIRST: Final = 3
"""Descriptor of the first listener."""
_VARIABLES: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def passed_listener(address: str) -> socket.socket | None:
    """Take the listener that this process was given.

    Args:
        address: where it is to listen: `host:port`, `[v6]:port` or `unix:/path`.

    Returns:
        It; None where the process was given none, or has taken it.

    Raises:
        SettingsError: it was given others than that one; the text names them.
    """
    given = os.environ.get("LISTEN_PID"), os.environ.get("LISTEN_FDS")
    for name in _VARIABLES:
        # Not for the processes that this one starts.
        os.environ.pop(name, None)
    if given[0] != str(os.getpid()) or not (given[1] or "").isdigit():
        return None
    listeners = [socket.socket(fileno=_FIRST + n) for n in range(int(given[1] or ""))]
    for listener in listeners:
        os.set_inheritable(listener.fileno(), False)  # noqa: FBT003 (the library's own)
    if len(listeners) == 1 and name_of(listeners[0]) in addresses_of(address):
        return listeners[0]
    told = ", ".join(map(name_of, listeners))
    msg = (
        f"{address}: the socket unit listens on {told or 'nothing'} instead; give "
        "ListenStream= in the unit and the settings the same address"
    )
    for listener in listeners:
        listener.close()
    raise SettingsError(msg)


def name_of(listener: socket.socket) -> str:
    """Write a listener's address as settings do.

    Args:
        listener: bound.
    """
    name = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return f"unix:{name}"
    host, port = name[:2]
    return _joined(host, port)


def addresses_of(address: str) -> frozenset[str]:
    """Write an address of the settings with numbers in place of a host's name.

    `localhost` is 127.0.0.1 and ::1, in an order that differs by machine: who listens
    on either listens on it.

    Args:
        address: `host:port`, `[v6]:port` or `unix:/path`.

    Returns:
        Each address that it may stand for, as `name_of` writes them; itself where no
        host is found.
    """
    if address.startswith("unix:"):
        return frozenset({f"unix:{Path(address.removeprefix('unix:'))}"})
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return frozenset({address})
    return frozenset(_joined(str(each[4][0]), int(port)) for each in found)


def _joined(host: str, port: int) -> str:
    number = ipaddress.ip_address(host)
    return f"[{number}]:{port}" if number.version == 6 else f"{number}:{port}"  # noqa: PLR2004 (IPv6)
