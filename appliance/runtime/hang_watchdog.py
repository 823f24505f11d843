"""Which call of a process runs since when, for whoever ends calls that hang.

A call into an HSM that does not return cannot be cancelled, only its process can
be killed. So a signing worker writes the start of each call into a small file
that others have mapped: `rubrica up` looks at it between signals, and under
systemd the worker's own event loop does, which then stops saying that it is
alive. It is words of memory, so that looking costs nothing and writing survives
the kill: the next start sees at which token the last one hung. Of several calls at
once the words have the one that has taken longest.
"""

import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from appliance.settings import SettingsError

_WORD: Final = 8
TOKENS: Final = 16
"""Tokens that a process may use: firma, pki, and as many replicas as the settings
allow."""
_START, _TOKEN, _HUNG_AT, _HANGS = 0, 1, 2, 2 + TOKENS
_EVER: Final = 2 + 2 * TOKENS
_BYTES: Final = _WORD * (2 + 3 * TOKENS)
_SECOND: Final = 1_000_000_000


class CallWatch:
    """The words of one process; any number of processes may map them.

    One writes at a time: the process itself, or after its death nobody.

    Args:
        path: of the file, made when it is not there; None for memory that this
            process alone has.
        clock_ns: monotonic time, the same in all processes of the machine.

    Raises:
        SettingsError: the file cannot be made.
    """

    def __init__(
        self,
        path: Path | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._clock_ns = clock_ns
        memory = mmap.mmap(-1, _BYTES) if path is None else _map(path)
        self._words = memoryview(memory).cast("Q")
        self._running: list[tuple[int, int]] = []
        self._turn = threading.Lock()

    def begin(self) -> None:
        """Say that the process has just started and no call runs."""
        self._words[_START] = 0

    @contextmanager
    def calling(self, token: int) -> Iterator[None]:
        """Say that a call runs, while it does. Any number of threads may.

        Args:
            token: number of the token it goes to, below `TOKENS`.
        """
        with self._turn:
            call = self._clock_ns(), token
            self._running.append(call)
            self._show_oldest()
        try:
            yield
        finally:
            with self._turn:
                self._running.remove(call)
                self._show_oldest()

    def _show_oldest(self) -> None:
        begun, token = self._running[0] if self._running else (0, 0)
        if begun == self._words[_START]:
            return
        # Never the start of one call with the token of another.
        self._words[_START] = 0
        if begun:
            self._words[_TOKEN] = token
            self._words[_START] = begun

    def running_s(self, since_s: float = 0.0) -> float:
        """How long the running call has taken.

        Args:
            since_s: monotonic time of the process's start; what began earlier is
                of a process that is dead.

        Returns:
            Seconds; 0 when none runs.
        """
        begun = self._words[_START]
        if not begun:
            return 0.0
        return max(self._clock_ns() / _SECOND - max(begun / _SECOND, since_s), 0.0)

    def note_hang(self) -> None:
        """Keep, past the kill, that the running call hangs. May be repeated."""
        token, begun = self._words[_TOKEN], self._words[_START]
        if begun and token < TOKENS and self._words[_HUNG_AT + token] < begun:
            self._words[_HUNG_AT + token] = self._clock_ns()
            self._words[_HANGS + token] += 1
            self._words[_EVER + token] += 1

    def answered(self, token: int) -> None:
        """A token works: what hung there before counts no more."""
        self._words[_HANGS + token] = 0

    def hangs(self, token: int) -> tuple[int, float]:
        """How often in a row calls to a token hung, and when the last one did.

        Returns:
            Times, and monotonic seconds; a time yet to come (the machine was
            started anew since) counts as none.
        """
        hung_at = self._words[_HUNG_AT + token]
        if hung_at > self._clock_ns():
            return 0, 0.0
        return self._words[_HANGS + token], hung_at / _SECOND

    def ever(self, token: int) -> int:
        """How often calls to a token hung, whatever came after, in all processes.

        Args:
            token: its number, below `TOKENS`.
        """
        return self._words[_EVER + token]


def watch_path(run_dir: Path, number: int) -> Path:
    """Where signing worker `number` has its words."""
    return run_dir / f"signing-{number}.call"


def _map(path: Path) -> mmap.mmap:
    """Map a file, made when it is not there.

    Raises:
        SettingsError: it cannot be made.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, _BYTES)
            return mmap.mmap(descriptor, _BYTES)
        finally:
            os.close(descriptor)
    except OSError as exc:
        msg = f"{path}: cannot be made ({exc.strerror})"
        raise SettingsError(msg) from exc
