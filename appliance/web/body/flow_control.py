"""A body that is taken from the connection only as fast as somebody reads it.

Quart would gather all of it while nobody reads. Here the next piece is asked for
when the last one was read, so a body that no view wants, or that comes faster than it
is wanted, stays with its sender: the connection's window closes.
"""

import asyncio
from collections.abc import Awaitable, Callable

from quart.wrappers.request import Body


class ArrivingBody(Body):
    """The body of one request, one piece at a time.

    Args:
        expected_content_length: unused: limits are the readers' (`chunks`).
        max_content_length: unused.
    """

    def __init__(
        self,
        expected_content_length: int | None = None,
        max_content_length: int | None = None,
    ) -> None:
        del expected_content_length, max_content_length
        super().__init__(None, None)
        self._room = asyncio.Event()
        self._room.set()
        self.wanted: Callable[[], Awaitable[None]] | None = None
        """Called once, when somebody begins to read."""

    async def room(self) -> None:
        """Wait until what came was read, or nobody will read any more."""
        await self._room.wait()

    def append(self, data: bytes) -> None:
        """Take what came.

        Args:
            data: the next piece; empty where the connection sent none.
        """
        if data:
            self._room.clear()
        super().append(data)

    async def __anext__(self) -> bytes:
        """The next piece."""
        if self.wanted is not None:
            wanted, self.wanted = self.wanted, None
            await wanted()
        data = await super().__anext__()
        self._room.set()
        return data

    def abandon(self) -> None:
        """Forget what was not read: the answer is on its way."""
        self.clear()
        self._room.set()
