"""Turns among the processes that write one SQLite file, first come, first served.

    turn = FileTurn(path, wait_s=5)
    async with turn.held():
        ...

Who waits for SQLite's own lock looks again now and then, up to ten times a second.
Where others write without a pause it finds the lock taken each time: of eight
processes some wrote hundreds of times in ten seconds, and some once. The kernel wakes
those who wait for a lock of a file in their order, and frees it when its holder dies.

Source: flock(2); SQLite, "sqlite3_busy_timeout".
"""

import asyncio
import fcntl
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

_MODE: Final = 0o660
"""What a group may do is for the umask to say, as with the database."""


class FileTurn:
    """One process's place in the queue; one task at a time may enter.

    Args:
        path: of a file that stands for the turn; made where there is none.
        wait_s: longest wait for it.
    """

    def __init__(self, path: Path, wait_s: float) -> None:
        self._path = path
        self._wait_s = wait_s
        self._coming: asyncio.Future[int] | None = None

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Wait for the turn, and leave it to the next after the block.

        Raises:
            TimeoutError: others kept it for `wait_s`.
            OSError: the file cannot be opened.
        """
        coming = self._queue_up()
        try:
            async with asyncio.timeout(self._wait_s):
                lock = await asyncio.shield(coming)
        except (TimeoutError, asyncio.CancelledError):
            # The thread waits on; the turn goes to whoever enters next, or back.
            coming.add_done_callback(self._give_back)
            raise
        try:
            yield
        finally:
            os.close(lock)

    def _queue_up(self) -> asyncio.Future[int]:
        """The place in the queue: one that a task left, or a new one."""
        # One that is done is on its way back already.
        if self._coming is not None and not self._coming.done():
            self._coming.remove_done_callback(self._give_back)
            return self._coming
        loop = asyncio.get_running_loop()
        self._coming = loop.create_future()
        # A daemon: the end of the process waits for nobody's turn.
        threading.Thread(
            target=_queue_in_thread, args=(self._path, loop, self._coming), daemon=True
        ).start()
        return self._coming

    def _give_back(self, coming: asyncio.Future[int]) -> None:
        """Leave a turn that came when nobody waited for it any more."""
        if coming.exception() is None:
            os.close(coming.result())


def _queue_in_thread(
    path: Path, loop: asyncio.AbstractEventLoop, coming: asyncio.Future[int]
) -> None:
    """Take the lock, however long that takes, and tell the loop its descriptor."""
    descriptor: int | None = None
    try:
        # Opened anew for each turn, so that descriptor and lock end together.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _MODE)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        loop.call_soon_threadsafe(coming.set_result, descriptor)
    except (OSError, RuntimeError) as exc:
        if descriptor is not None:
            os.close(descriptor)
        with suppress(RuntimeError):  # the loop ended meanwhile
            loop.call_soon_threadsafe(coming.set_exception, exc)
