"""A program `rubrica` for shells, which has the loaded process fork the real one.

    folder.joinpath("rubrica").write_text(command_script("--settings", str(file)))

It hands over its arguments, environment, folder and standard streams, and ends with
the status that comes back. A shell's script of the manual runs a dozen of them; each
that executes Python imports for a second.
"""

import functools
import json
import os
import secrets
import socket
import sys
import threading
from pathlib import Path
from typing import Any, Final

from tests.support.processes.rubrica import start_rubrica

_STREAMS: Final = 3
_MOST: Final = 1 << 16
_SIGNALLED: Final = 128
"""A shell adds it to the signal that ended a program. Source: POSIX, "Exit Status"."""
_PROGRAM: Final = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as told:
    told.connect({address!r})
    wanted = {{
        "arguments": [*{arguments!r}, *sys.argv[1:]],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
    }}
    socket.send_fds(told, [b"+"], [0, 1, 2])
    told.sendall(json.dumps(wanted).encode())
    told.shutdown(socket.SHUT_WR)
    status = told.recv(1)
sys.exit(status[0] if status else "the tests' process is away")
"""


def command_script(*arguments: str) -> str:
    """The text of the program.

    Args:
        *arguments: that come before those of each call.
    """
    return _PROGRAM.format(
        python=sys.executable, address=_address(), arguments=arguments
    )


@functools.cache
def _address() -> str:
    """Where this process waits for calls, to its end."""
    # Of Linux's abstract ones: no folder's path is too long for it, none stays behind.
    address = f"\0rubrica-test-{secrets.token_hex(8)}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    threading.Thread(target=_serve, args=(listener,), daemon=True).start()
    return address


def _serve(listener: socket.socket) -> None:
    while True:
        called, _ = listener.accept()
        threading.Thread(target=_run, args=(called,), daemon=True).start()


def _run(called: socket.socket) -> None:
    """Run what one call wants, and tell its status."""
    with called:
        _, streams, _, _ = socket.recv_fds(called, 1, _STREAMS)
        try:
            wanted = _read(called)
            process = start_rubrica(
                *wanted["arguments"],
                environment=wanted["environment"],
                folder=Path(wanted["folder"]),
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
            )
        finally:
            for stream in streams:
                os.close(stream)
        status = process.wait()
        called.send(bytes([status if status >= 0 else _SIGNALLED - status]))


def _read(called: socket.socket) -> dict[str, Any]:
    parts = []
    while part := called.recv(_MOST):
        parts.append(part)
    wanted: dict[str, Any] = json.loads(b"".join(parts))
    return wanted
