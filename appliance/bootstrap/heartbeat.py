"""Processes that say they are alive, so that the console sees one that is not.

Signing workers say so themselves, with the state of their HSM; here is what
faces and chores say. Who stops in order takes the row back; who is killed, or
hangs, falls silent.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog

from appliance.bootstrap.core import Core
from appliance.domain.errors import ApplianceError
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.keys.worker_store import WorkerStore

EVERY_S: Final = 5.0
"""Three of these are missed before somebody counts as silent (`ALIVE`)."""
_LEAVE_S: Final = 2.0
_log = structlog.get_logger(__name__)


@asynccontextmanager
async def heartbeat(
    core: Core, role: str, number: int, every_s: float = EVERY_S
) -> AsyncIterator[None]:
    """Say that this process is alive, as long as it is.

    Args:
        core: of the process.
        role: `api`, `embed`, `admin` or `chores`.
        number: among its kind on this host.
        every_s: time between two signs of life, in seconds.
    """
    slot = f"{role}/{socket.gethostname()}/{number}"
    beating = asyncio.create_task(_beat(core, slot, every_s))
    try:
        yield
    finally:
        beating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beating
        with contextlib.suppress(ApplianceError, TimeoutError):
            async with asyncio.timeout(_LEAVE_S), core.store.write() as transaction:
                await WorkerStore(transaction).leave(slot, core.process)


async def _beat(core: Core, slot: str, every_s: float) -> None:
    while True:
        try:
            async with core.store.write() as transaction:
                await WorkerStore(transaction).beat(
                    WorkerStatus(slot, core.process, core.clock.now(), "none", "")
                )
        except ApplianceError as exc:
            # The database is away; what this process is there for goes on.
            _log.warning("heartbeat.failed", slot=slot, code=exc.code.value)
        await asyncio.sleep(every_s)
