"""Whether this machine's clock can be believed.

No signature is made, and no timestamp, by one that is more than 5 s off.

It is compared with the database's, which all hosts of an installation share, and
with what the kernel says of itself. Neither need be known: a trial on SQLite has
the kernel's word alone, and a hardened service not even that.

Source: decisions "Limits" (clock drift).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.clock import Clock
from appliance.system.kernel_clock import kernel_error

MOST: Final = timedelta(seconds=5)
_KEPT_S: Final = 5.0
"""A look is good for so long, unless the clock is set meanwhile."""
_STEP_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class ClockState:
    """What was found of the clock."""

    from_database: timedelta | None
    """How far it surely is from the database's, or None where that is not known."""
    from_kernel: timedelta | None
    """The same by the kernel's own word."""

    @property
    def off(self) -> timedelta:
        """The larger of the two; nothing where neither is known."""
        known = (self.from_database, self.from_kernel)
        return max((each for each in known if each is not None), default=timedelta(0))

    @property
    def is_right(self) -> bool:
        """Whether signatures and timestamps may bear its time."""
        return self.off <= MOST


class ClockCheck:
    """Looks at the clock now and then, and at once when it was set.

    Args:
        clock: that is checked.
        database_time: asks the database's clock; it gives None where that is this
            machine's.
        kernel: asks the kernel how far it is off.
    """

    def __init__(
        self,
        clock: Clock,
        database_time: Callable[[], Awaitable[datetime | None]],
        kernel: Callable[[], timedelta | None] = kernel_error,
    ) -> None:
        self._clock = clock
        self._database_time = database_time
        self._kernel = kernel
        self._looking = asyncio.Lock()
        self._state: ClockState | None = None
        self._at_s = 0.0
        self._apart_s = 0.0

    async def look(self) -> ClockState:
        """How the clock stands.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._looking:
            apart_s = self._clock.now().timestamp() - time.monotonic()
            fresh = (
                time.monotonic() - self._at_s < _KEPT_S
                and abs(apart_s - self._apart_s) < _STEP_S
            )
            if self._state is None or not fresh:
                self._state = ClockState(await self._from_database(), self._kernel())
                self._at_s, self._apart_s = time.monotonic(), apart_s
            return self._state

    async def _from_database(self) -> timedelta | None:
        """The least that the two clocks are apart, whenever in the call it was read."""
        before = self._clock.now()
        there = await self._database_time()
        after = self._clock.now()
        if there is None:
            return None
        return max(before - there, there - after, timedelta(0))
