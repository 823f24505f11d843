"""Calls of validators that end: each in a process of its own, killed when it is late.

pyHanko can compare the revisions of a small file for ten minutes, and a thread cannot
be told to stop.
"""

import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

Result = TypeVar("Result")


class TooLateError(Exception):
    """A call did not end in its time, or took its process along."""


class BoundedCalls:
    """One process that calls are made in, made anew after each that was killed.

    Args:
        seconds: that a call may take.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._process: SpawnProcess | None = None
        self._line: Connection | None = None

    def call(self, work: Callable[..., Result], *args: object) -> Result:
        """Make a call; function, arguments and result are pickled.

        Args:
            work: a function of a module.
            args: of it.

        Raises:
            TooLateError: it takes longer.
            Exception: what it raises.
        """
        line = self._line or self._start()
        try:
            line.send((work, args))
            answered = line.poll(self._seconds)
            reply: tuple[bool, Any] = (
                line.recv() if answered else (False, TooLateError())
            )
        except (EOFError, OSError) as exc:
            self.close()
            raise TooLateError from exc
        if not answered:
            self.close()
        is_good, result = reply
        if not is_good:
            raise result
        good: Result = result
        return good

    def _start(self) -> Connection:
        # Spawned, not forked: this process has threads, and maybe an HSM's login.
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        return self._line

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None
        if self._line is not None:
            self._line.close()
            self._line = None


class BoundedPool:
    """Bounded calls for several threads, a process for each.

    Args:
        seconds: that a call may take.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._own = threading.local()
        self._all: list[BoundedCalls] = []

    def call(self, work: Callable[..., Result], *args: object) -> Result:
        """See `BoundedCalls.call`."""
        calls = getattr(self._own, "calls", None)
        if calls is None:
            calls = self._own.calls = BoundedCalls(self._seconds)
            self._all.append(calls)
        done: Result = calls.call(work, *args)
        return done

    def close(self) -> None:
        """End all processes."""
        for each in self._all:
            each.close()


def _serve(line: Any) -> None:
    """Make calls until the other end is closed."""
    while True:
        try:
            work, args = line.recv()
        except EOFError:
            return
        try:
            answer = True, work(*args)
        except Exception as exc:  # noqa: BLE001 (it is handed on)
            answer = False, RuntimeError(f"{type(exc).__name__}: {exc}"[:300])
        line.send(answer)
