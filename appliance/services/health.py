"""Whether this installation can do its work, part by part."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError
from appliance.domain.ports import PdfInspector
from appliance.domain.records import Store
from appliance.domain.records.tasks import WorkerStatus
from appliance.services.signing_hosts import ALIVE

OK: Final = "ok"
_TIMEOUT_S: Final = 3


class Health:
    """The use case of `/readyz`.

    Args:
        store: the record.
        inspector: the sandbox.
        clock: the time.
        migrated: tells whether the tables are of this version.
    """

    def __init__(
        self,
        store: Store,
        inspector: PdfInspector,
        clock: Clock,
        migrated: Callable[[], Awaitable[bool]],
    ) -> None:
        self._store = store
        self._inspector = inspector
        self._clock = clock
        self._migrated = migrated

    async def ready(self) -> dict[str, str]:
        """Each part with `ok` or a code; nothing in it is secret."""
        checks: Mapping[str, Callable[[], Awaitable[str]]] = {
            "database": self._database,
            "sandbox": self._sandbox,
            "hsm": self._hsm,
        }
        return {name: await _within(check) for name, check in checks.items()}

    async def _database(self) -> str:
        return OK if await self._migrated() else "NOT_MIGRATED"

    async def _sandbox(self) -> str:
        await self._inspector.ping()
        return OK

    async def _hsm(self) -> str:
        workers = await signing_workers(self._store, self._clock)
        if not workers:
            return "NO_WORKER"
        return OK if any(w.hsm == "ready" for w in workers) else "HSM_UNAVAILABLE"


async def signing_workers(store: Store, clock: Clock) -> list[WorkerStatus]:
    """Signing workers that said within 15 s that they are alive."""
    async with store.read() as records:
        alive = await records.workers.alive(clock.now() - ALIVE)
    return [status for status in alive if status.slot.startswith("signing/")]


async def _within(check: Callable[[], Awaitable[str]]) -> str:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            return await check()
    except ApplianceError as exc:
        return exc.code.value
    except TimeoutError:
        return "TIMEOUT"
