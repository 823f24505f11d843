"""Free ports and short private folders for what a test starts."""

import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SCRATCH: Final = Path(os.environ.get("RUBRICA_TEST_SCRATCH", "/tmp"))  # noqa: S108 (private folders in it)
"""Where what is made for a moment lies; `./check` names a file system in memory."""
_BELOW_EPHEMERAL = range(15_000, 32_000)
"""Ports that no kernel gives to whoever connects or asks for any port."""
_found: set[int] = set()


def free_port() -> int:
    """Find a TCP port on 127.0.0.1 that nobody listens on, each time another one.

    It is below the ephemeral ports (`ip_local_port_range`): of those a client that
    connects takes one at any time, and the kernel itself names the same one twice
    as long as nobody listens there.
    """
    while True:
        port = secrets.choice(_BELOW_EPHEMERAL)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _found:
            _found.add(port)
            return port


@contextmanager
def short_folder() -> Iterator[Path]:
    """Make a private folder with a short path, for unix sockets.

    A socket's path may have 107 bytes; pytest's own folders come close to it.
    """
    folder = Path(tempfile.mkdtemp(prefix="rbk-", dir=SCRATCH))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
