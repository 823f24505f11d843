"""Whether this installation can do its work, part by part."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, DocumentsAwayError
from appliance.domain.ports import PdfInspector
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.keys.signing_hosts import ALIVE, SigningHosts
from appliance.keys.worker_store import WorkerStore
from appliance.record.unit_of_work import Database
from appliance.system.clock_check import ClockCheck

OK: Final = "ok"
KEPT_S: Final = 2.0
"""How long it is told that all is well, in seconds."""
KEPT_AMISS_S: Final = 0.25
"""How long it is told that something is not: who starts us waits for its end."""
_TIMEOUT_S: Final = 3


class Health:
    """The use case of `/readyz`.

    Args:
        store: the record.
        inspector: the sandbox.
        clock: the time.
        tables: gives `ok`, or a code where this version may not use the tables.
        clock_check: tells whether the clock can be believed.
        documents: raises where their folder is away, or not ours.
        hosts: those that unlock keys are sealed to; None: a worker with its HSM is
            enough.
    """

    def __init__(
        self,
        store: Database,
        inspector: PdfInspector,
        clock: Clock,
        tables: Callable[[], Awaitable[str]],
        clock_check: ClockCheck,
        documents: Callable[[], Awaitable[None]],
        hosts: SigningHosts | None = None,
    ) -> None:
        self._store = store
        self._inspector = inspector
        self._clock = clock
        self._tables = tables
        self._clock_check = clock_check
        self._documents = documents
        self._hosts = hosts

    async def ready(self) -> dict[str, str]:
        """Each part with `ok` or a code; nothing in it is secret."""
        checks: Mapping[str, Callable[[], Awaitable[str]]] = {
            "database": self._database,
            "documents": self._documents_are_ours,
            "sandbox": self._sandbox,
            "hsm": self._hsm,
            "clock": self._clock_is_right,
        }
        states = await asyncio.gather(*(_within(check) for check in checks.values()))
        return dict(zip(checks, states, strict=True))

    async def _database(self) -> str:
        return await self._tables()

    async def _documents_are_ours(self) -> str:
        try:
            await self._documents()
        except DocumentsAwayError:
            return "DOCUMENTS_AWAY"
        return OK

    async def _sandbox(self) -> str:
        await self._inspector.ping()
        return OK

    async def _clock_is_right(self) -> str:
        state = await self._clock_check.look()
        return OK if state.is_right else "CLOCK_DRIFT"

    async def _hsm(self) -> str:
        workers = await signing_workers(self._store, self._clock)
        if not workers:
            return "NO_WORKER"
        states = {worker.hsm for worker in workers}
        if "ready" in states:
            return OK if self._hosts is None else await self._hosts.readiness()
        return "HSM_TAKEN_OVER" if "left" in states else "HSM_UNAVAILABLE"


class SharedHealth:
    """The same for any number of strangers: one look at a time, kept for a moment.

    Each look runs a job in the sandbox and a query; callers that come meanwhile get
    what it finds.

    Args:
        health: looks.
    """

    def __init__(self, health: Health) -> None:
        self._health = health
        self._look: asyncio.Task[dict[str, str]] | None = None
        self._until = 0.0

    async def ready(self) -> dict[str, str]:
        """Each part with `ok` or a code, at most `KEPT_S` old.

        One that was amiss, at most `KEPT_AMISS_S`.
        """
        now = asyncio.get_running_loop().time()
        if self._look is None or (self._look.done() and now >= self._until):
            self._look = asyncio.create_task(self._looked())
        # Who leaves does not end it for the others.
        return dict(await asyncio.shield(self._look))

    async def _looked(self) -> dict[str, str]:
        kept_s = KEPT_AMISS_S
        try:
            found = await self._health.ready()
            if set(found.values()) == {OK}:
                kept_s = KEPT_S
        finally:
            self._until = asyncio.get_running_loop().time() + kept_s
        return found


async def signing_workers(store: Database, clock: Clock) -> list[WorkerStatus]:
    """Signing workers that said within 15 s that they are alive."""
    async with store.read() as transaction:
        alive = await WorkerStore(transaction).alive(clock.now() - ALIVE)
    return [status for status in alive if status.slot.startswith("signing/")]


_given_up: Final[set[asyncio.Future[str]]] = set()
"""Looks that nobody waits for any more, until they have ended."""


async def _within(check: Callable[[], Awaitable[str]]) -> str:
    look = asyncio.ensure_future(_looked_at(check))
    try:
        await asyncio.wait({look}, timeout=_TIMEOUT_S)
        return look.result() if look.done() else "TIMEOUT"
    finally:
        if not look.done():
            # Not awaited: a driver takes seconds to let go of a dead connection.
            look.cancel()
            _given_up.add(look)
            look.add_done_callback(_end)


def _end(look: asyncio.Future[str]) -> None:
    _given_up.discard(look)
    if not look.cancelled():
        # What it found is of no interest any more, and neither is its failure.
        look.exception()


async def _looked_at(check: Callable[[], Awaitable[str]]) -> str:
    try:
        return await check()
    except ApplianceError as exc:
        return exc.code.value
    except TimeoutError:
        return "TIMEOUT"
