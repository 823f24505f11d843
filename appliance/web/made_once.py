"""Pages that cost something to make: each is made once, one at a time, and kept.

    kept: MadeOnce[str, bytes] = MadeOnce()
    page = await kept.get("es", lambda: render("es"))

Whoever asks while it is made waits for that one, so that a burst of first calls, which
nobody signs in for, costs what one does.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Page = TypeVar("_Page")


class MadeOnce(Generic[_Key, _Page]):
    """Keeps what was made; the keys that there may be are few, and the caller's."""

    def __init__(self) -> None:
        self._made: dict[_Key, _Page] = {}
        self._making = asyncio.Lock()

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._made)

    async def get(self, key: _Key, make: Callable[[], _Page]) -> _Page:
        """What stands under a key.

        Args:
            key: one of a known few.
            make: makes it, in a thread; what it raises is raised, and nothing is kept.
        """
        if key not in self._made:
            async with self._making:
                if key not in self._made:
                    self._made[key] = await asyncio.to_thread(make)
        return self._made[key]
