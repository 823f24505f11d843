"""How many calls that sign one document a process has in work.

Beyond what it can sign a queue only makes everybody wait. So a call that finds no
place is told at once, by `Retry-After`, when to come again. Who comes for the first
time has a place before those who have many.

A call that lasts gives its place back: what holds it up, a worker that was killed say,
is not how many there are, and nobody is to be refused for it.

Source: docs/limits.md.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from appliance.core.fair_queue import FairLimits, FairQueue
from appliance.core.system.cpu_count import usable_cores
from appliance.core.work_owner import WORK_OWNER, WorkOwner
from appliance.domain.ids import RequestId

_HELD_S: Final = 5.0
_PATIENCE_S: Final = 2.0
_OF_A_CORE: Final = 12
"""About what it signs in a second."""
_LEAST: Final = 24


def limits_of(cores: int) -> FairLimits:
    """Places, of which one person has five sixths at most.

    Args:
        cores: that the process may run on.
    """
    places = max(_LEAST, cores * _OF_A_CORE)
    most = places * 5 // 6
    return FairLimits(
        places=places,
        per_share=most,
        per_party=most,
        waiting=places // 4,
        # Of those who have places enough none waits before one who has none.
        waiting_per_share=1,
        waiting_per_party=1,
        patience_s=_PATIENCE_S,
        retry_after_s=2,
    )


class SigningCalls:
    """The places of one process.

    Args:
        limits: how many; by default of the processors that it may run on.
        held_s: longest that a call has its place, in seconds.
    """

    def __init__(
        self, limits: FairLimits | None = None, held_s: float = _HELD_S
    ) -> None:
        self._held_s = held_s
        self._together: set[tuple[WorkOwner, RequestId]] = set()
        self._queue = FairQueue(limits or limits_of(usable_cores()), "signing_calls")

    @asynccontextmanager
    async def place(self, request: RequestId) -> AsyncIterator[None]:
        """Have a place for the time of the block, or for as long as one is had.

        Calls of one person for one request have one together: all of them get what
        the first one makes.

        Args:
            request: that is signed.

        Raises:
            ApplianceError: `OVERLOADED`.
        """
        owner = WORK_OWNER.get()
        together = (owner, request)
        if together in self._together:
            yield
            return
        self._together.add(together)
        try:
            place = await self._queue.acquire(owner)
            over = asyncio.get_running_loop().call_later(self._held_s, place.release)
            try:
                yield
            finally:
                over.cancel()
                place.release()
        finally:
            self._together.discard(together)
