"""Listeners that `rubrica init --then` opened for the commands of a trial.

A trial's ports are chosen by one command and served by later ones. The listeners stay
open from one to the other, so that no other program gets a port in between. They are
handed on through `exec` as open descriptors, named in an environment variable.
"""

import json
import os
import socket
from collections.abc import Mapping
from typing import Final

from appliance.system.passed_sockets import addresses_of, name_of

VARIABLE: Final = "RUBRICA_LISTENERS"
"""JSON: the descriptor of each listener by its name."""


def hand_on(listeners: Mapping[str, socket.socket]) -> str:
    """Keep listeners open for the program that this process executes.

    Args:
        listeners: by name.

    Returns:
        The value of `VARIABLE`.
    """
    for listener in listeners.values():
        listener.set_inheritable(True)
    return json.dumps({name: each.fileno() for name, each in listeners.items()})


def held_address(name: str) -> str:
    """Return the address of a listener; empty if none of that name is open.

    Args:
        name: as it was handed on.
    """
    found = _open(_descriptors().get(name))
    if found is None:
        return ""
    address = name_of(found)
    found.detach()
    return address


def take_held(address: str) -> socket.socket | None:
    """Take the listener that is open at an address; None if there is none.

    Args:
        address: `host:port`, `[v6]:port` or `unix:/path`.
    """
    descriptors, wanted = _descriptors(), addresses_of(address)
    for name, number in descriptors.items():
        found = _open(number)
        if found is None:
            continue
        if name_of(found) in wanted:
            found.set_inheritable(False)
            _keep({**descriptors, name: None})
            return found
        found.detach()
    return None


def close_held() -> None:
    """Close the listeners that this process did not take."""
    for number in _descriptors().values():
        found = _open(number)
        if found is not None:
            found.close()
    os.environ.pop(VARIABLE, None)


def _descriptors() -> dict[str, object]:
    try:
        told = json.loads(os.environ.get(VARIABLE, ""))
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _keep(descriptors: Mapping[str, object]) -> None:
    os.environ[VARIABLE] = json.dumps(
        {name: number for name, number in descriptors.items() if number is not None}
    )


def _open(number: object) -> socket.socket | None:
    """The listener of a descriptor; None if it is closed, or anything else."""
    # The first three are never listeners: a wrong value must not close them.
    if not isinstance(number, int) or number <= 2:  # noqa: PLR2004 (standard streams)
        return None
    try:
        found = socket.socket(fileno=number)
    except (OSError, OverflowError):
        return None
    try:
        listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        name_of(found)
    except (OSError, ValueError):
        listens = 0
    if listens:
        return found
    found.detach()
    return None
