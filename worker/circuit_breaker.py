"""Leaves alone, for as long as it cost, what was just asked in vain.

Somebody who does not answer costs a time-out at each question. With this, half of the
time at most goes there: in the other half whoever asks is refused at once, so that what
can do without goes on. A refusal that came quickly costs nothing, and is asked again.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class CircuitBreaker:
    """Who is left alone, by name."""

    def __init__(self) -> None:
        self._until: dict[object, float] = {}

    def is_over(self, whom: object) -> bool:
        """Whether somebody may be asked.

        Args:
            whom: by name.
        """
        return self._until.get(whom, 0.0) <= asyncio.get_running_loop().time()

    @contextmanager
    def asking(self, whom: object) -> Iterator[None]:
        """Ask somebody; whoever fails is left alone for as long as that took.

        Args:
            whom: by name.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            yield
        except Exception:
            now = loop.time()
            self._until[whom] = now + (now - began)
            raise
        self._until.pop(whom, None)
