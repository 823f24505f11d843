"""An event loop whose clock a test need not wait for.

    @in_played_time
    async def test_waiter_gives_up(...) -> None:
        async with asyncio.timeout(60):
            ...

Time stands still while anything can run, and goes on to the next timer when nothing
can. A time-out of sixty seconds then means: nothing else could happen any more. No
machine is too slow for it, and none has to wait.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

Given = ParamSpec("Given")


class PlayedLoop(asyncio.SelectorEventLoop):
    """A loop for work that waits for timers and for other tasks alone.

    Work of other threads and processes takes no played time: a timer may come first.
    """

    def __init__(self) -> None:
        # No time at all stands for none in some places.
        self._now = 1_000.0
        super().__init__(_PlayedSelector(self._forward))

    def time(self) -> float:
        """Seconds, of any beginning."""
        return self._now

    def _forward(self, seconds: float) -> None:
        self._now += seconds


class _PlayedSelector(selectors.DefaultSelector):
    """Has the time go on instead of waiting for it.

    Args:
        forward: has it go on by so many seconds.
    """

    def __init__(self, forward: Callable[[float], None]) -> None:
        super().__init__()
        self._forward = forward

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        """See `selectors.BaseSelector`."""
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        if not (events := super().select(0)):
            self._forward(timeout)
        return events


def in_played_time(
    test: Callable[Given, Coroutine[Any, Any, None]],
) -> Callable[Given, None]:
    """Have a test run in a loop of its own, by a `PlayedLoop`'s clock."""

    @functools.wraps(test)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> None:
        with asyncio.Runner(loop_factory=PlayedLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
