"""A progress bar on a terminal; plain lines where nobody looks."""

import sys
import time
from typing import Final, TextIO

_WIDTH: Final = 30
_PLAIN_STEP: Final = 10
"""Percent between two plain lines."""
_REDRAW_S: Final = 0.1


class ProgressBar:
    """Shows how far something is.

    Args:
        what: is done, in a few words.
        total: how many there are.
        stream: where to show it; standard error unless told.
    """

    def __init__(self, what: str, total: int, stream: TextIO | None = None) -> None:
        self._what = what
        self._total = total
        self._stream = stream or sys.stderr
        self._done = 0
        self._begun = time.monotonic()
        self._drawn = 0.0
        self._told = 0

    def advance(self, count: int) -> None:
        """So many more are done."""
        self._done += count
        if self._stream.isatty():
            self._draw()
        else:
            self._tell()

    def finish(self) -> None:
        """Leave the last state behind."""
        if self._stream.isatty():
            self._drawn = 0.0
            self._draw()
            self._stream.write("\n")
            self._stream.flush()

    def _percent(self) -> int:
        # More may come while it runs.
        return 100 * self._done // max(self._total, self._done, 1)

    def _draw(self) -> None:
        now = time.monotonic()
        if now - self._drawn < _REDRAW_S:
            return
        self._drawn = now
        percent = self._percent()
        filled = _WIDTH * percent // 100
        bar = "#" * filled + "." * (_WIDTH - filled)
        text = f"\r{self._what} [{bar}] {percent:3} % {self._done}/{self._total}"
        self._stream.write(f"{text}{self._left(now)}  ")
        self._stream.flush()

    def _left(self, now: float) -> str:
        if not self._done or self._done >= self._total:
            return ""
        left_s = (now - self._begun) * (self._total - self._done) / self._done
        return f", {left_s:.0f} s left"

    def _tell(self) -> None:
        percent = self._percent()
        if percent // _PLAIN_STEP > self._told:
            self._told = percent // _PLAIN_STEP
            line = f"{self._what}: {percent} %, {self._done} of {self._total}\n"
            self._stream.write(line)
            self._stream.flush()
