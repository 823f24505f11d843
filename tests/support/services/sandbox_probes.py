"""Jobs that say what a confined job can do, and the process that serves them.

They run after a job's real start-up. Nothing else of the tests is imported here,
so that the process holds what the role itself would hold.
"""

import ctypes
import json
import os
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from appliance.metrics.metrics_file import MetricsFile
from worker.sandbox.server import SandboxLimits, serve

FONTS = Path("/usr/share/fonts/truetype/liberation2")


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
        "listdir": attempt(lambda: list(Path("/").iterdir())),
        "unlink": attempt(Path("/tmp/x").unlink),  # noqa: S108
        "fork": attempt(os.fork),
        "execute": attempt(lambda: os.execv("/bin/true", ["true"])),  # noqa: S606
        "kill": attempt(lambda: os.kill(os.getppid(), 0)),
        "memfd": attempt(lambda: os.memfd_create("x")),
        "setuid": attempt(lambda: os.setuid(0)),
    }


def probe_state(_pdf: bytes) -> dict[str, object]:
    """Hold still until SIGURG comes, to be looked at from outside."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG})
    signal.sigwait({signal.SIGURG})
    return {}


def probe_memory(_pdf: bytes) -> dict[str, object]:
    """Take memory until there is none."""
    taken = []
    while True:
        taken.append(bytearray(16_777_216))


def probe_memory_kept(_pdf: bytes) -> dict[str, object]:
    """Take memory until there is none, and give none back."""
    # Not in a list: where that has no room to grow, others still have some.
    kept: object = None
    for size in (16_777_216, 65_536, 512, 1):
        with suppress(MemoryError):
            while True:
                kept = (kept, bytearray(size))
    _KEPT["memory"] = kept
    return {}


_KEPT: dict[str, object] = {"memory": None}


def probe_cpu(_pdf: bytes) -> dict[str, object]:
    """Compute for ever."""
    while True:
        pass


def probe_compute(_pdf: bytes) -> dict[str, object]:
    """Compute for 0.4 s of the processor's time."""
    return _compute(0.4)


def probe_compute_long(_pdf: bytes) -> dict[str, object]:
    """Compute for 2 s of the processor's time."""
    return _compute(2)


def _compute(seconds: float) -> dict[str, object]:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return {}


def probe_sleep(_pdf: bytes) -> dict[str, object]:
    """Wait for ever."""
    while True:
        time.sleep(60)


def probe_crash(_pdf: bytes) -> dict[str, object]:
    """Die as a native library dies."""
    ctypes.string_at(0)
    return {}


def probe_environment(_pdf: bytes) -> dict[str, object]:
    """Say what the process was given."""
    return {"environment": sorted(os.environ), "modules": sorted(sys.modules)}


def probe_late_import(_pdf: bytes) -> dict[str, object]:
    """Import a module that nothing has loaded."""

    def load() -> None:
        import this  # noqa: F401, PLC0415 (that is the probe)

    return {"import": attempt(load)}


class _Failing:
    """An object whose finalizer raises, which no caller can catch."""

    def __del__(self) -> None:
        raise RuntimeError


def probe_complaints(_pdf: bytes) -> dict[str, object]:
    """Warn, and fail in a finalizer."""
    warnings.warn("for standard error", stacklevel=1)
    del [_Failing()][0]
    return {}


PROBES = {
    name.removeprefix("probe_"): value
    for name, value in list(globals().items())
    if name.startswith("probe_")
}


def main() -> None:
    """Serve on the listener that was handed over."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    limits = SandboxLimits(**json.loads(sys.argv[2]))
    figures = [MetricsFile(Path(each), "sandbox", 1) for each in sys.argv[3:]]
    serve(listener, limits, FONTS, PROBES, *figures)
