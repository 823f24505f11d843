"""Work that goes on when its caller leaves, and is waited for at the end."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class Shielded:
    """What was begun under it and is not done yet."""

    def __init__(self) -> None:
        self._running: set[asyncio.Future[Any]] = set()

    async def run(self, work: Coroutine[object, object, _T]) -> _T:
        """Run to the end whether or not the caller stays (see `close`).

        Args:
            work: it may raise, to a caller that stays.
        """
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Wait for what was begun; call it before the store closes."""
        while self._running:
            await asyncio.wait(self._running)
