"""An open front that is used again: to open one anew costs more than what it does.

Each engine of a database compiles its statements for itself; one that was opened for
a single call compiles them for a single use.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from appliance.bootstrap import ServiceRegistry, open_front
from appliance.domain.clock import Clock, SystemClock
from appliance.settings import Settings

Result = TypeVar("Result")
Work = Callable[[ServiceRegistry], Awaitable[Result]]
_ROLE: Final = "operator"


async def with_front(settings: Settings, work: Work[Result], clock: Clock) -> Result:
    """Run something over a front that is opened for it alone.

    Args:
        settings: of the installation.
        work: it.
        clock: the time that the front goes by.
    """
    async with open_front(settings, clock, _ROLE) as front:
        return await work(front)


@dataclass
class _Opened:
    """A front, and how many use it now."""

    front: ServiceRegistry
    state: object
    task: asyncio.Task[None]
    over: asyncio.Event
    users: int = 0


@dataclass
class KeptFront:
    """Open from its first use on, in one event loop, until somebody closes it.

    What it read when it was opened may change: it is opened anew where settings,
    secrets or the file of the database are others, and after a call that failed.
    """

    settings_file: Path
    read_settings: Callable[[], Settings]
    """What they are now, for whoever opens it."""
    _opened: _Opened | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, work: Work[Result]) -> Result:
        """Run something over it.

        Args:
            work: it.
        """
        async with self._turn:
            opened = await self._get()
            opened.users += 1
        try:
            return await work(opened.front)
        except BaseException:
            if self._opened is opened:
                self._opened = None
            raise
        finally:
            opened.users -= 1
            await self._end_unused(opened)

    async def close(self) -> None:
        """Close it, after what runs over it."""
        async with self._turn:
            opened, self._opened = self._opened, None
        if opened is not None:
            await self._end_unused(opened)

    async def _get(self) -> _Opened:
        state = self._state()
        opened = self._opened
        if opened is not None and opened.state == state:
            return opened
        self._opened = None
        if opened is not None:
            await self._end_unused(opened)
        self._opened = await self._open(state)
        return self._opened

    async def _open(self, state: object) -> _Opened:
        """Open one, in a task of its own: who opens it has to close it."""
        ready = asyncio.get_running_loop().create_future()
        over = asyncio.Event()

        async def hold(front: ServiceRegistry) -> None:
            ready.set_result(front)
            await over.wait()

        task = asyncio.create_task(
            with_front(self.read_settings(), hold, SystemClock())
        )
        await asyncio.wait((ready, task), return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            await task
        return _Opened(ready.result(), state, task, over)

    async def _end_unused(self, opened: _Opened) -> None:
        """Close one that is used no more and is not to be used again."""
        if opened.users == 0 and self._opened is not opened:
            opened.over.set()
            await opened.task

    def _state(self) -> object:
        """What it stands on: another one asks for another front."""
        folder = self.settings_file.parent
        database = [path.stat().st_ino for path in folder.glob("rubrica.db")]
        secrets = [
            (path.name, path.stat().st_ino, path.stat().st_mtime_ns)
            for path in folder.glob("secrets/*")
        ]
        return self.settings_file.read_bytes(), database, sorted(secrets)
