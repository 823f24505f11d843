"""A sandbox whose jobs record what they open and import after the fork.

    python -c "from tests.support.services.late_loads import main; main()" N …

The recorder is installed here, in a process of the tests: the product has no setting
for it. Nothing else of the tests is imported, so that the template holds what the role
itself would hold.
"""

import ctypes
import json
import mmap
import os
import socket
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from tests.support.services.sandbox_probes import FONTS, PROBES
from worker.sandbox.server import SandboxLimits, serve

RECORD_BYTES: Final = 1_048_576
LENGTH_BYTES: Final = 8
_PR_GET_SECCOMP: Final = 21
_FILTERED: Final = 2
_FRAMES: Final = 6
_PATH_EVENTS: Final = frozenset(
    {
        "ctypes.dlopen",
        "open",
        "os.exec",
        "os.listdir",
        "os.posix_spawn",
        "os.scandir",
        "os.system",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "subprocess.Popen",
        "tempfile.mkdtemp",
        "tempfile.mkstemp",
    }
)
"""Audit events of a file, a folder, a host or a process that is opened by its name."""


class LoadRecorder:
    """Audit hook that records loads in jobs, into memory that the test shares.

    Source: PEP 578; "Audit events table" of the Python library reference.

    Args:
        descriptor: a memfd of `RECORD_BYTES`: a length of 8 bytes, little-endian, and
            that many bytes of JSON lines.
    """

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, RECORD_BYTES)
        self._is_job = False

    def after_fork(self) -> None:
        """Start recording in a child of the confined template.

        Earlier children prepare the template: they have no filter.
        """
        libc = ctypes.CDLL(None)
        self._is_job = libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) == _FILTERED

    def hook(self, event: str, arguments: tuple[object, ...]) -> None:
        """Record one audit event if it is a load."""
        if self._is_job and (name := _loaded(event, arguments)) is not None:
            self._append({"event": event, "name": name, "stack": _stack()})

    def _append(self, record: dict[str, object]) -> None:
        line = json.dumps(record).encode() + b"\n"
        start = int.from_bytes(self._memory[:LENGTH_BYTES], "little")
        end = start + len(line)
        if LENGTH_BYTES + end <= RECORD_BYTES:
            self._memory[LENGTH_BYTES + start : LENGTH_BYTES + end] = line
            self._memory[:LENGTH_BYTES] = end.to_bytes(LENGTH_BYTES, "little")


def _loaded(event: str, arguments: tuple[object, ...]) -> str | None:
    """Name of the module or path that an audit event loads, None if it loads none."""
    if event == "import":
        # A module that is there already is only looked up.
        return None if arguments[0] in sys.modules else str(arguments[0])
    if event in _PATH_EVENTS:
        return str(arguments[0])
    if event == "compile":
        return _file_of(arguments[1])
    if event == "exec" and isinstance(arguments[0], CodeType):
        return _file_of(arguments[0].co_filename)
    return None


def _file_of(name: object) -> str | None:
    """Path of compiled code, None for code that was made in memory (`<string>`)."""
    text = name.decode() if isinstance(name, bytes) else str(name)
    return None if name is None or text.startswith("<") else text


def _stack() -> list[str]:
    """The innermost frames, without those of this module and of `importlib`."""
    frame: FrameType | None = sys._getframe(2)
    found: list[str] = []
    while frame is not None and len(found) < _FRAMES:
        file = frame.f_code.co_filename
        if "importlib" not in file and file != __file__:
            found.append(f"{Path(file).name}:{frame.f_lineno}")
        frame = frame.f_back
    return found


def main() -> None:
    """Serve on the listener that was handed over, with a recorder of loads."""
    listener, descriptor = (int(each) for each in sys.argv[1:3])
    recorder = LoadRecorder(descriptor)
    sys.addaudithook(recorder.hook)
    os.register_at_fork(after_in_child=recorder.after_fork)
    limits = SandboxLimits(**json.loads(sys.argv[3]))
    serve(socket.socket(fileno=listener), limits, FONTS, PROBES)
