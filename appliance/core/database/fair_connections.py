"""Connections to the record by turns of those for whom a process works.

    turns = ConnectionTurns(engines)
    async with turns.reading(), engines.reader.connect() as connection:
        ...

Of several connections no owner gets all, and who waits in vain is told `OVERLOADED`.
The installation's own work passes: a worker that holds a claim has to finish it.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Final, TypeAlias

from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import QueuePool

from appliance.core.database.engines import Engines
from appliance.core.fair_queue import FairLimits, FairQueue
from appliance.core.work_owner import INSTALLATION, work_owner

_WAITING: Final = 1_024
_holds: ContextVar[bool] = ContextVar("rubrica.holds_connection", default=False)

Turn: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]
"""Holds a place for a block, or raises `OVERLOADED`."""


class ConnectionTurns:
    """Gives out the connections of one process.

    Args:
        engines: whose pools have a fixed size.
    """

    def __init__(self, engines: Engines) -> None:
        readers = writers = FairQueue(_limits(engines.reader), "database_turns")
        # On PostgreSQL both are one pool.
        if engines.writer is not engines.reader:
            writers = FairQueue(_limits(engines.writer), "database_write_turns")
        self.reading: Turn = partial(_turn, readers)
        self.writing: Turn = partial(_turn, writers)


def _limits(engine: AsyncEngine) -> FairLimits:
    pool = engine.pool
    places = pool.size() if isinstance(pool, QueuePool) else 1
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
    owner = work_owner()
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
