"""A program in a bounded time, and the end of all that it started.

    python -m tests.support.mutation.keeper SECONDS COMMAND…

The exit status is that of the command, or 124 if it took longer. Whatever the command
started and left running becomes a child of this process and is killed by its id.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

import psutil

OVERDUE: Final = 124
"""The exit status of a command that took too long. Source: coreutils, timeout."""
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_TO_STOP_S: Final = 20.0
"""For fixtures to take down what they have made."""
_TO_END_S: Final = 10.0
_ROUNDS: Final = 10
"""Processes that fork while they are killed are looked for again."""


def command_line(seconds: float, *command: str) -> list[str]:
    """How the keeper is executed.

    Args:
        seconds: longest that the command may take.
        *command: with its arguments.
    """
    return [sys.executable, "-m", __spec__.name, str(seconds), *command]


def keep(seconds: float, command: Sequence[str]) -> int:
    """Run the command; returns the exit status."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, _stop)
    try:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                _interrupt(process)
                return OVERDUE
            except SystemExit:
                process.kill()
                raise
    finally:
        _end_all()


def _stop(*_: object) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_TO_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _end_all() -> None:
    own = psutil.Process(os.getpid())
    for _ in range(_ROUNDS):
        left = own.children(recursive=True)
        if not left:
            return
        for each in left:
            try:
                each.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(left, _TO_END_S)


if __name__ == "__main__":
    sys.exit(keep(float(sys.argv[1]), sys.argv[2:]))
