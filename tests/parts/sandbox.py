"""A real sandbox in a process of its own, and probes of its confinement.

The probes run inside a confined job, after its real start-up, and say what they
could do there.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from appliance.storage.sandbox import SandboxClient
from tests.parts.places import short_folder
from worker.sandbox.limits import SandboxLimits

FONTS = Path("/usr/share/fonts/truetype/liberation2")
ROOT = Path(__file__).parents[2]
LIMITS = SandboxLimits(
    memory_bytes=1_073_741_824,
    cpu_s=10,
    wall_s=20,
    jobs=4,
    document_bytes=50_000_000,
    pages=5_000,
)
_START_S = 60.0
_MAIN = "from tests.parts.sandbox import main; main()"


class SandboxServer:
    """A running sandbox.

    Args:
        folder: a folder with a short path.
        limits: what a job may use.
    """

    def __init__(self, folder: Path, limits: SandboxLimits) -> None:
        self.path = folder / "sandbox.sock"
        self.client = SandboxClient(self.path, timeout_s=_START_S)
        self._limits = limits
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

    def jobs(self) -> list[int]:
        """Processes of the jobs that run now."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
        return [int(child) for child in children.split()]


@contextmanager
def running_sandbox(**limits: Any) -> Iterator[SandboxServer]:
    """Run a sandbox with the usual limits but for those given."""
    with short_folder() as folder:
        server = SandboxServer(folder, replace(LIMITS, **limits))
        try:
            yield server
        finally:
            server.kill()
            server.close_listener()


def attempt(action: Callable[[], object]) -> str:
    """What came of trying something: `done`, or the name of the error."""
    try:
        action()
    except OSError as exc:
        return type(exc).__name__
    return "done"


def probe_powers(_pdf: bytes) -> dict[str, str]:
    """Try what a job must never be able to do."""
    inet, stream = socket.AF_INET, socket.SOCK_STREAM
    return {
        "socket": attempt(lambda: socket.socket(inet, stream)),
        "unix_socket": attempt(lambda: socket.socket(socket.AF_UNIX, stream)),
        "open": attempt(lambda: os.open("/etc/hostname", os.O_RDONLY)),
        "open_own": attempt(lambda: os.open("/proc/self/mem", os.O_RDONLY)),
        "create": attempt(lambda: os.open("/tmp/x", os.O_CREAT | os.O_WRONLY)),  # noqa: S108
        "listdir": attempt(lambda: os.listdir("/")),
        "unlink": attempt(lambda: Path("/tmp/x").unlink()),  # noqa: S108
        "fork": attempt(os.fork),
        "execute": attempt(lambda: os.execv("/bin/true", ["true"])),
        "kill": attempt(lambda: os.kill(os.getppid(), 0)),
        "memfd": attempt(lambda: os.memfd_create("x")),
        "setuid": attempt(lambda: os.setuid(0)),
        "write_document": attempt(lambda: os.pwrite(4, b"x", 0)),
    }


def probe_state(_pdf: bytes) -> dict[str, object]:
    """Hold still for a moment, to be looked at from outside."""
    time.sleep(2)
    return {"pid": os.getpid()}


def probe_memory(_pdf: bytes) -> dict[str, object]:
    """Take memory until there is none."""
    taken = []
    while True:
        taken.append(bytearray(16_777_216))


def probe_cpu(_pdf: bytes) -> dict[str, object]:
    """Compute for ever."""
    while True:
        pass


def probe_sleep(_pdf: bytes) -> dict[str, object]:
    """Wait for ever."""
    while True:
        time.sleep(60)


def probe_crash(_pdf: bytes) -> dict[str, object]:
    """Die as a native library dies."""
    signal.raise_signal(signal.SIGSEGV)
    os.abort()


def probe_environment(_pdf: bytes) -> dict[str, object]:
    """Say what the process was given."""
    return {"environment": sorted(os.environ), "modules": sorted(sys.modules)}


PROBES = {
    name.removeprefix("probe_"): value
    for name, value in list(globals().items())
    if name.startswith("probe_")
}


def main() -> None:
    """Serve on the listener that was handed over."""
    # Only here: the tests' own process must not load what a job loads.
    from worker.sandbox.server import serve  # noqa: PLC0415

    listener = socket.socket(fileno=int(sys.argv[1]))
    limits = SandboxLimits(**json.loads(sys.argv[2]))
    serve(listener, limits, FONTS, PROBES)
