"""A server that runs on a host of a network, and how it ends."""

import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.hosts.network import Host


@dataclass
class HostServer:
    """One server, which `start` of each kind starts.

    Args:
        host: where it runs.
        folder: its own.
    """

    host: Host
    folder: Path
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, sig: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(sig)
            process.wait()
