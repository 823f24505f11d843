"""A real sandbox in a process of its own."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from appliance.documents.sandbox_client import SandboxClient
from appliance.domain.sandbox import encode
from tests.support.processes.scratch import short_folder
from worker.sandbox.limits import SandboxLimits

ROOT = Path(__file__).parents[3]
LIMITS = SandboxLimits(
    memory_bytes=1_073_741_824,
    cpu_s=10,
    # CPU time bounds a job; on a busy machine it takes far longer by the clock.
    wall_s=600,
    jobs=4,
    render_cpu_s=3,
    render_wall_s=600,
    document_bytes=50_000_000,
    pages=5_000,
)
_START_S = 60.0
_ANSWER_S = 600.0
"""A job has its seconds of the processor, however busy the machine is."""
_MAIN = "from tests.support.services.sandbox_probes import main; main()"


class SandboxServer:
    """A running sandbox.

    Args:
        folder: a folder with a short path.
        limits: what a job may use.
        figures: folder of all roles, where it hands its own over; None: nowhere.
    """

    def __init__(
        self, folder: Path, limits: SandboxLimits, figures: Path | None = None
    ) -> None:
        self.path = folder / "sandbox.sock"
        self.client = SandboxClient(self.path, timeout_s=_ANSWER_S)
        self._limits = limits
        self._figures = [] if figures is None else [str(figures)]
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self._listener.listen(64)
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        number = self._listener.fileno()
        # Nothing of the environment that the role would not have either.
        return subprocess.Popen(
            [
                sys.executable,
                "-c",
                _MAIN,
                str(number),
                json.dumps(asdict(self._limits)),
                *self._figures,
            ],
            pass_fds=[number],
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        )

    def kill(self) -> None:
        """Kill the template, as a crash would."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Start a new template on the same listener."""
        self.process = self._start()

    def close_listener(self) -> None:
        """Let go of the listener, so that nobody can connect any more."""
        self._listener.close()

    def stop(self) -> int:
        """Ask the template to end, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_START_S)

    def probe(self, name: str, pdf: bytes = b"%PDF") -> dict[str, Any]:
        """Run a probe in a job, and return what it says."""
        request = encode({"operation": name, "params": {}})
        reply = self.client._run(request, pdf, time.monotonic() + _ANSWER_S)
        result: dict[str, Any] = reply.head["result"]
        return result

    def jobs(self) -> list[int]:
        """Processes of the jobs that run now."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
        return [int(child) for child in children.split()]


@contextmanager
def running_sandbox(
    figures: Path | None = None, /, **limits: Any
) -> Iterator[SandboxServer]:
    """Run a sandbox with the usual limits but for those given."""
    with short_folder() as folder:
        server = SandboxServer(folder, replace(LIMITS, **limits), figures)
        try:
            yield server
        finally:
            server.kill()
            server.close_listener()
