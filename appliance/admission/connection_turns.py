"""Turns for the connections of a process, among those for whom it works.

Of several connections no owner gets all, and who waits in vain is told `OVERLOADED`.
The installation's own work passes: a worker that holds a claim has to finish it.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Final

from appliance.admission.fair_queue import FairLimits, FairQueue
from appliance.admission.work_owner import INSTALLATION, WORK_OWNER
from appliance.database.engines import Engines

_WAITING: Final = 1_024
"""Most callers that wait for a connection."""
_holds: ContextVar[bool] = ContextVar("rubrica.holds_connection", default=False)


class ConnectionTurns:
    """Fair turns by the owner of the present work (`WORK_OWNER`).

    Args:
        engines: whose connections they are for.
    """

    def __init__(self, engines: Engines) -> None:
        self._readers = self._writers = FairQueue(
            _limits_of(engines.reading_at_once), "database_turns"
        )
        if not engines.is_one_pool:
            self._writers = FairQueue(
                _limits_of(engines.writing_at_once), "database_write_turns"
            )

    def reading(self) -> AbstractAsyncContextManager[None]:
        """See `appliance.record.unit_of_work.Turns`."""
        return _turn(self._readers)

    def writing(self) -> AbstractAsyncContextManager[None]:
        """See `appliance.record.unit_of_work.Turns`."""
        return _turn(self._writers)


def _limits_of(places: int) -> FairLimits:
    """Everybody's share of so many connections."""
    return FairLimits(
        places=places,
        per_share=max(1, places - 1),
        per_party=max(1, places // 2),
        waiting=_WAITING,
        waiting_per_share=_WAITING // 2,
        waiting_per_party=_WAITING // 8,
    )


@asynccontextmanager
async def _turn(queue: FairQueue) -> AsyncIterator[None]:
    """Hold a connection's place for the block.

    Raises:
        ApplianceError: `OVERLOADED`.
    """
    owner = WORK_OWNER.get()
    # Who holds a connection and needs another does not wait: all others might, too.
    if owner == INSTALLATION or _holds.get():
        yield
        return
    async with queue.place(owner):
        token = _holds.set(True)
        try:
            yield
        finally:
            # A block that is left by the collector ends in a context of another.
            with suppress(ValueError):
                _holds.reset(token)
