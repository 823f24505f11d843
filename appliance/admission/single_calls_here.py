"""Which processes of this host have calls in work that sign one document.

What such a call computes before and after its worker (a password's hash above all)
shares this host's processors with the workers that sign batches: so these make way
for it from its beginning. When a process began its last one stands in a word of a small
file that all of them have open: to write it and to look at it take one system call
each, and what a process left that died counts no more after a second.

It is read and written, not mapped: who maps a file is killed by whoever cuts it off.

Source: docs/signing.md "Turns".
"""

import os
import socket
import sys
import time
import weakref
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final

import structlog

_log = structlog.get_logger(__name__)
_NAME: Final = "single-calls"
_FOLDER: Final = "calls"
"""In `run_dir`, where there is one: containers share it, and have a `run_dir` each."""
_WORDS: Final = 256
"""Processes that each have one; more share."""
_WORD: Final = 8
_BYTES: Final = _WORD * _WORDS
_COUNTS_NS: Final = 1_000_000_000
"""How long it counts that a process said so; a call that lasts longer is held up by
something else than batches."""
_MODE: Final = 0o660


class SingleCallsHere:
    """The words of all processes of this host.

    Args:
        run_dir: folder that all of them can write in; without one, or where they cannot
            share a file there, each knows of itself alone.
        clock_ns: monotonic time, the same in all processes of the host.
    """

    def __init__(
        self,
        run_dir: Path | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._run_dir = run_dir
        self._clock_ns = clock_ns
        self._word = b""
        """What stands in this process's, as far as it wrote it."""
        # Containers each count their processes from one; each has a name of its own.
        self._first = zlib.crc32(socket.gethostname().encode())

    @cached_property
    def _file(self) -> int:
        """Opened when it is first used: a command that an operator runs never does."""
        file = -1 if self._run_dir is None else _opened(_place(self._run_dir))
        if file < 0:
            if self._run_dir is not None:
                _log.warning("single_calls.alone")
            file = os.memfd_create(_NAME, os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, file)
        return file

    def note(self, process: int, *, has_any: bool) -> None:
        """Say that a process has begun one, or has none any more.

        Args:
            process: its number.
            has_any: which of both.
        """
        place = (self._first + process) % _WORDS * _WORD
        # Where the disk or memory is full, nobody makes way: that is no fault.
        with suppress(OSError):
            if has_any:
                self._word = self._clock_ns().to_bytes(_WORD, sys.byteorder)
                os.pwrite(self._file, self._word, place)
            # Otherwise another process shares the word, and has begun one since.
            elif os.pread(self._file, _WORD, place) == self._word:
                os.pwrite(self._file, bytes(_WORD), place)

    def are_any(self) -> bool:
        """Whether a process began one lately that is not over."""
        words = b""
        with suppress(OSError):  # somebody put another kind of file there
            words = os.pread(self._file, _BYTES, 0)
        now = self._clock_ns()
        return any(
            # What is yet to come was written before the machine was started anew.
            word and 0 <= now - word < _COUNTS_NS
            for word in memoryview(words[: len(words) // _WORD * _WORD]).cast("Q")
        )


def _place(run_dir: Path) -> Path:
    shared = run_dir / _FOLDER
    return (shared if shared.is_dir() else run_dir) / _NAME


def _opened(path: Path) -> int:
    """The file, made when it is not there; -1 where that cannot be."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    # In a sticky folder a kernel may refuse to make what another user has made, or
    # makes in this moment: so it is looked at before and after.
    for how in (flags, flags | os.O_CREAT | os.O_EXCL, flags):
        try:
            file = os.open(path, how, _MODE)
        except OSError:
            continue
        if how & os.O_CREAT:
            # Whatever the umask was: roles are of one group.
            os.fchmod(file, _MODE)
        return file
    return -1
