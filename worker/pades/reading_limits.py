"""Bounds what reading a document may cost in a process that holds a PIN.

    prepared = await read_apart(prepare, original, plan, fonts)

A document is laid out here only after the sandbox did the same with the same code and
the same bytes, within its own limits; this is what holds should that ever be untrue.
The work is done in a thread, so that the event loop and the HSM's thread go on, and is
ended when it used up its CPU time, or made as many objects as a gigabyte holds. A
thread cannot be killed; an exception is raised in it instead, at its next step, which
Python has (`PyThreadState_SetAsyncExc`) and pyHanko, being Python, takes at once.

One interpreter runs one thread at a time, so what reads for seconds holds up all that
its process does. Three things keep that small: threads give way twenty times sooner
than Python has them do; readings that are not quick come one after the other, and use
at most half of a host's cores and every other worker (`read_beside_others`); and a
worker leaves a hand free for others (`worker.signing_role`).
"""

import asyncio
import ctypes
import fcntl
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from appliance.domain.errors import (
    ApplianceError,
    DocumentRefusedError,
    ErrorCode,
)
from appliance.system.cpu_count import usable_cores

_Result = TypeVar("_Result")
CPU_S: Final = 5.0
"""CPU time of one reading, in seconds; a file of 100 MB takes a tenth of it."""
OBJECTS: Final = 8_000_000
"""Blocks of Python's small objects that one reading makes: about 1 GiB of them. Buffers
are none, so documents that others have in work do not count; what a stream unfolds to
is bounded by pyHanko."""
_QUICK_S: Final = 0.1
"""CPU time after which a reading begins again where they come one after the other."""
_LOOK_S: Final = 0.05
_GIVE_WAY_S: Final = 0.000_25
"""Python's own is 5 ms: a signature waits for it some forty times."""
_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_collecting: Final[set[int]] = set()
"""Threads that look for cycles. What runs there meanwhile is others' destructors and
callbacks, which would be left half done."""
_calling_back: Final[dict[str, object]] = {}
"""The collector's phase, `start` or `stop`, while its callbacks run; else empty.

Python drops what is raised in a callback. `_begin_collecting` is one itself, and its
thread is in `_collecting` only once it has run: the phase is set before it, and removed
after `_end_collecting`, by methods of `dict`, which are done without a step of Python.
"""


def _begin_collecting(phase: str, _info: object) -> None:
    if phase == "start":
        _collecting.add(threading.get_ident())


def _end_collecting(phase: str, _info: object) -> None:
    if phase == "stop":
        _collecting.discard(threading.get_ident())


# Around all other callbacks, as far as they are known by now.
gc.callbacks[:] = [
    _calling_back.__setitem__,
    _begin_collecting,
    *gc.callbacks,
    _end_collecting,
    _calling_back.pop,
]


class _OutOfBounds(BaseException):
    """Raised in a thread from outside; no `except Exception` on its way takes it."""


@dataclass(slots=True, eq=False)
class _Reading:
    """What one thread reads."""

    thread: int
    clock: int
    """Of the thread's CPU time."""
    ends_at: float
    """By that clock."""
    objects: int
    """That it may make."""
    blocks: int | None = None
    """That this process had in use when it was first looked at: most never are."""
    is_over: bool = False
    """It was told to end."""


class _Watch:
    """Looks after the threads that read, from a thread of its own.

    It looks only while one of them does, twenty times a second: a reading takes
    milliseconds, and is hardly ever seen.
    """

    def __init__(self) -> None:
        self._readings: set[_Reading] = set()
        self._changed = threading.Condition()
        self._is_idle = False
        threading.Thread(target=self._run, name="readings", daemon=True).start()

    @contextmanager
    def ended_after(self, cpu_s: float, objects: int) -> Iterator[None]:
        """Watch the calling thread, and raise in it when it has used up either.

        Raises:
            _OutOfBounds: it has.
        """
        thread = threading.get_ident()
        clock = time.pthread_getcpuclockid(thread)
        ends_at = time.clock_gettime(clock) + cpu_s
        reading = _Reading(thread, clock, ends_at, objects)
        with self._changed:
            self._readings.add(reading)
            if self._is_idle:
                self._changed.notify()
        try:
            yield
        finally:
            # Watched no more; what was not raised yet is taken back.
            while True:
                try:
                    with self._changed:
                        self._readings.discard(reading)
                        if reading.is_over:
                            _raise_in(ctypes.c_ulong(thread), None)
                except _OutOfBounds:
                    # It was raised just here: the reading may be watched still.
                    continue
                break

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._readings:
                    self._is_idle = True
                    self._changed.wait()
                    self._is_idle = False
                blocks = sys.getallocatedblocks()
                for reading in list(self._readings):
                    self._look_at(reading, blocks)
            time.sleep(_LOOK_S)

    def _look_at(self, reading: _Reading, blocks: int) -> None:
        if reading.blocks is None:
            reading.blocks = blocks
        is_late = time.clock_gettime(reading.clock) >= reading.ends_at
        if is_late or blocks - reading.blocks >= reading.objects:
            reading.is_over = True
            thread = ctypes.c_ulong(reading.thread)
            error = ctypes.py_object(_OutOfBounds)
            # Python switches threads after calls and in loops, and there is neither
            # between this test and the raise: no collection begins in the meantime.
            if not _calling_back and reading.thread not in _collecting:
                # At each look anew: a destructor swallows what is raised in it.
                _raise_in(thread, error)


_watches: Final[dict[int, _Watch]] = {}
_making: Final = threading.Lock()


def _watch() -> _Watch:
    """The watch of this process: a forked one has none of its parent's threads."""
    process = os.getpid()
    with _making:
        if process not in _watches:
            _watches[process] = _Watch()
        return _watches[process]


_lock: Final[list[Path]] = []
"""The file that who reads what is not quick holds, once it is known."""


def read_beside_others(folder: Path, role: str, number: int) -> None:
    """Have what this process reads hold up little else, here and on this host.

    A signature is made in many short steps, on the event loop and threads beside it;
    for each it may have to wait until a thread that reads gives way.

    Args:
        folder: that all processes of the role on this host can write in.
        role: of the process.
        number: of it among those of its role, from 1.
    """
    sys.setswitchinterval(_GIVE_WAY_S)
    _lock[:] = [folder / f"readings-{role}-{lane(number, usable_cores())}.lock"]


def lane(number: int, cores: int) -> int:
    """Which of a host's lanes is that worker's.

    Two workers at least share one: all would be slow at once where each had its own.

    Args:
        number: of the worker, from 1.
        cores: of the host.
    """
    return (number - 1) // 2 % max(1, cores // 2)


@contextmanager
def _alone() -> Iterator[None]:
    """Wait for who else of this lane reads what is not quick."""
    if not _lock:
        yield
        return
    with _lock[0].open("a") as file:
        # Given up by the system, should this process die.
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def bounded(cpu_s: float = CPU_S, objects: int = OBJECTS) -> Iterator[None]:
    """End what is read in here when it used up its CPU time, or memory.

    Args:
        cpu_s: of the calling thread, in seconds; looked at twenty times a second.
        objects: that this process makes meanwhile and does not let go.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`.
    """
    is_ended = False
    try:
        with _watch().ended_after(cpu_s, objects):
            yield
    except _OutOfBounds:
        is_ended = True
    if is_ended:
        # Outside of `except`: the frames with all that was read go at once.
        reason = "reading it takes too much time or memory"
        raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, reason)


async def read_apart(work: Callable[..., _Result], *args: Any) -> _Result:
    """Do what reads a document in a thread, within bounds.

    What is not quick is done a second time, from its beginning, after all such of
    this process that came before, and while no process of its lane does such.

    Args:
        work: it; changes nothing.
        args: of it.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, or what it raises.
    """
    result = await asyncio.to_thread(_quick, work, args)
    if isinstance(result, _NotQuick):
        loop = asyncio.get_running_loop()
        lane = _slow_lane(os.getpid())
        return await loop.run_in_executor(lane, _bounded, work, args)
    return result


async def read_all_apart(
    calls: Sequence[Callable[[], _Result]],
) -> list[_Result | ApplianceError]:
    """Do what reads several documents, each within the bounds of `read_apart`.

    Args:
        calls: each reads one; changes nothing.

    Returns:
        What each gave, or how it was refused.
    """

    def quick() -> list[_Result | ApplianceError | _NotQuick]:
        return [_refused_or(_quick, call, ()) for call in calls]

    results: list[_Result | ApplianceError] = []
    for call, found in zip(calls, await asyncio.to_thread(quick), strict=True):
        if isinstance(found, _NotQuick):
            loop, lane = asyncio.get_running_loop(), _slow_lane(os.getpid())
            results.append(
                await loop.run_in_executor(lane, _refused_or, _bounded, call, ())
            )
        else:
            results.append(found)
    return results


def _refused_or(work: Callable[..., _Result], *args: Any) -> _Result | ApplianceError:
    """What some work gives, or how it is refused."""
    try:
        return work(*args)
    except ApplianceError as exc:
        return exc


class _NotQuick:
    """Says that a reading takes longer than most."""


def _quick(work: Callable[..., _Result], args: tuple[Any, ...]) -> _Result | _NotQuick:
    try:
        with _watch().ended_after(_QUICK_S, OBJECTS):
            return work(*args)
    except _OutOfBounds:
        return _NotQuick()


def _bounded(work: Callable[..., _Result], args: tuple[Any, ...]) -> _Result:
    with _alone():
        # What reads for long makes objects by the million; to look through them for
        # cycles, again and again, would stop all other threads longer than it reads.
        gc.disable()
        try:
            with bounded():
                return work(*args)
        finally:
            gc.enable()


@cache
def _slow_lane(process: int) -> ThreadPoolExecutor:
    """The one thread of this process for what is not quick."""
    return ThreadPoolExecutor(1, thread_name_prefix=f"slow-reading-{process}")
