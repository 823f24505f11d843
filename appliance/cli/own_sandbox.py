"""A sandbox for one command, where no appliance runs beside it."""

import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance.runtime.processes import bind
from appliance.runtime.supervisor import fork_role, load_role
from appliance.settings import Settings


@contextmanager
def sandbox_at_hand(settings: Settings) -> Iterator[Settings]:
    """Settings with a sandbox that answers: the running one, or one of our own.

    It is the same role, as confined, in a process that ends with the block. Call it
    before there are threads: it forks.

    Args:
        settings: of the installation.

    Raises:
        SettingsError: no socket can be made.
    """
    if _answers(settings.sandbox_socket):
        yield settings
        return
    with tempfile.TemporaryDirectory(prefix="rubrica-") as folder:
        path = Path(folder) / "sandbox.sock"
        log = settings.log.model_copy(update={"level": "error"})
        sandbox = settings.sandbox.model_copy(update={"socket": path})
        ours = settings.model_copy(update={"log": log, "sandbox": sandbox})
        listener = bind(f"unix:{path}", 8)
        role = load_role("sandbox")
        pid = fork_role("sandbox", role, ours, 1, listener, [])
        listener.close()
        try:
            yield ours
        finally:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)


def _answers(path: Path) -> bool:
    """Whether somebody listens there whom this user may ask."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True
