"""Bounds what reading a document may cost in a process that holds a PIN.

    prepared = await read_apart(prepare, original, plan, fonts)

A document is laid out here only after the sandbox did the same with the same code and
the same bytes, within its own limits; this is what holds should that ever be untrue.
The work is done in a thread, so that the event loop and the HSM's thread go on, and is
ended when it used up its CPU time. A thread cannot be killed; an exception is raised
in it instead, at its next step, which Python has (`PyThreadState_SetAsyncExc`) and
pyHanko, being Python, takes at once.
"""

import asyncio
import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from appliance.domain.errors import DocumentRefusedError, ErrorCode

_Result = TypeVar("_Result")
CPU_S: Final = 5.0
"""CPU time of one reading, in seconds; a file of 100 MB takes a tenth of it."""
_LOOK_S: Final = 0.1
_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc


class _OutOfTime(BaseException):
    """Raised in a thread from outside; no `except Exception` on its way takes it."""


@dataclass(slots=True, eq=False)
class _Reading:
    """What one thread reads."""

    thread: int
    clock: int
    """Of the thread's CPU time."""
    ends_at: float
    """By that clock."""
    is_over: bool = False
    """It was told to end."""


class _Watch:
    """Looks after the threads that read, from a thread of its own.

    It looks only while one of them does, ten times a second: a reading takes
    milliseconds, and is hardly ever seen.
    """

    def __init__(self) -> None:
        self._readings: set[_Reading] = set()
        self._changed = threading.Condition()
        self._is_idle = False
        threading.Thread(target=self._run, name="readings", daemon=True).start()

    def begin(self, cpu_s: float) -> _Reading:
        """Watch the calling thread."""
        thread = threading.get_ident()
        clock = time.pthread_getcpuclockid(thread)
        reading = _Reading(thread, clock, time.clock_gettime(clock) + cpu_s)
        with self._changed:
            self._readings.add(reading)
            if self._is_idle:
                self._changed.notify()
        return reading

    def end(self, reading: _Reading) -> None:
        """Watch it no more, and take back what was not raised yet."""
        while True:
            try:
                with self._changed:
                    self._readings.discard(reading)
                    if reading.is_over:
                        _raise_in(ctypes.c_ulong(reading.thread), None)
            except _OutOfTime:
                # It was raised just here: the reading may be watched still.
                continue
            return

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._readings:
                    self._is_idle = True
                    self._changed.wait()
                    self._is_idle = False
                for reading in list(self._readings):
                    self._look_at(reading)
            time.sleep(_LOOK_S)

    def _look_at(self, reading: _Reading) -> None:
        if time.clock_gettime(reading.clock) >= reading.ends_at:
            reading.is_over = True
            # At each look anew: what is raised while a destructor runs is swallowed.
            _raise_in(ctypes.c_ulong(reading.thread), ctypes.py_object(_OutOfTime))


_watches: Final[dict[int, _Watch]] = {}
_making: Final = threading.Lock()


def _watch() -> _Watch:
    """The watch of this process: a forked one has none of its parent's threads."""
    process = os.getpid()
    with _making:
        if process not in _watches:
            _watches[process] = _Watch()
        return _watches[process]


@contextmanager
def bounded(cpu_s: float = CPU_S) -> Iterator[None]:
    """End what is read in here when it used up its CPU time.

    Args:
        cpu_s: of the calling thread, in seconds; looked at ten times a second.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`.
    """
    watch = _watch()
    try:
        reading = watch.begin(cpu_s)
        try:
            yield
        finally:
            watch.end(reading)
    except _OutOfTime:
        reason = "reading it takes too long"
        raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, reason) from None


async def read_apart(work: Callable[..., _Result], *args: Any) -> _Result:
    """Do what reads a document in a thread, within bounds.

    Args:
        work: it.
        args: of it.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, or what it raises.
    """
    return await asyncio.to_thread(_bounded, work, args)


def _bounded(work: Callable[..., _Result], args: tuple[Any, ...]) -> _Result:
    with bounded():
        return work(*args)
