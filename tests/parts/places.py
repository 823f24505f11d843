"""Free ports and short private folders for what a test starts."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def free_port() -> int:
    """Find a TCP port on 127.0.0.1 that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def short_folder() -> Iterator[Path]:
    """Make a private folder with a short path, for unix sockets.

    A socket's path may have 107 bytes; pytest's own folders come close to it.
    """
    folder = Path(tempfile.mkdtemp(prefix="rbk-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
