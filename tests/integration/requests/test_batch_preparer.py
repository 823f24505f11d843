"""The worker that prepares batches, woken as Redis wakes it.

What it does to a batch is `test_batch_preparation.py`'s; here are its turns.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from appliance.domain.documents.inspected import Inspection
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestBatchId
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.ports import DocumentBytes
from appliance.domain.requests.process import NamedBy, ProcessNote
from appliance.domain.vocab import BatchState
from appliance.integration.batches.preparation import BatchPreparation, Turn
from appliance.integration.requests.order import BatchDocument, BatchOrder, NamedSigner
from appliance.requests.batch_queue import BatchClaim
from tests.support.factories.fake_sandbox import FakeInspector
from tests.support.installation.api import ApiServices
from tests.support.installation.batches import SLOT
from tests.support.installation.installation import Installation
from worker.batch_preparer import BatchPreparer, batch_preparation

CUIL = "20267565393"
SCOPE = ApiKeyScope.REQUESTS_WRITE


@dataclass
class Sandbox(FakeInspector):
    """A sandbox that holds jobs up until it is let go, and may be away once."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    fails: int = 0

    async def inspect_all(
        self, pdfs: Sequence[DocumentBytes]
    ) -> list[Inspection | None]:
        """One more job."""
        self.begun.set()
        await self.gate.wait()
        if self.fails:
            self.fails -= 1
            raise ApplianceError(ErrorCode.OVERLOADED)
        return await super().inspect_all(pdfs)


@dataclass
class Turns:
    """Turns of a worker, seen from beside it."""

    preparation: BatchPreparation
    turned: asyncio.Event
    """Set after each turn."""
    put_off_once: asyncio.Event
    """Set once a batch was put off."""

    def __getattr__(self, name: str) -> Any:
        """All else is as it is."""
        return getattr(self.preparation, name)

    async def take_turn(self, claim: BatchClaim, most_s: float) -> Turn:
        """One more turn."""
        try:
            return await self.preparation.take_turn(claim, most_s)
        finally:
            self.turned.set()

    async def put_off(self, claim: BatchClaim) -> None:
        """The batch rests."""
        await self.preparation.put_off(claim)
        self.put_off_once.set()


@dataclass
class Scene:
    """An integrator's backend, and a worker."""

    services: ApiServices
    asking: IntegratorCaller
    sandbox: Sandbox
    rung: asyncio.Queue[str | None] = field(default_factory=asyncio.Queue)
    turned: asyncio.Event = field(default_factory=asyncio.Event)
    put_off_once: asyncio.Event = field(default_factory=asyncio.Event)

    async def _messages(self) -> AsyncIterator[str | None]:
        while True:
            yield await self.rung.get()

    @asynccontextmanager
    async def worker(self, turn_s: float = 0.0) -> AsyncIterator[None]:
        """A worker that runs, and is told to stop at the end."""
        core = self.services.core
        channel = replace(core.work_channel, listen=self._messages)
        stop = asyncio.Event()
        seen = Turns(batch_preparation(core, SLOT), self.turned, self.put_off_once)
        preparer = BatchPreparer(cast("BatchPreparation", seen), channel, turn_s)
        running = asyncio.create_task(preparer.run(stop))
        try:
            yield
        finally:
            self.sandbox.gate.set()
            stop.set()
            await running

    async def asked(self, count: int, word: str = "a") -> RequestBatchId:
        """A batch of small documents."""
        note = ProcessNote(self.asking.key)
        pdfs = [b"%%PDF %s %d" % (word.encode(), n) for n in range(count)]
        documents = tuple(BatchDocument(None, pdf, note) for pdf in pdfs)
        order = BatchOrder(NamedSigner(NamedBy.CUIL, CUIL), documents, note)
        made = await self.services.backend_batch_orders.create(self.asking, order)
        self.rung.put_nowait(None)
        return made.batch

    async def state(self, batch: RequestBatchId) -> BatchState:
        """State of a batch."""
        whose = self.asking.integrator.id
        return (await self.services.backend_batches.get(whose, batch)).batch.state

    async def until_ready(self, batch: RequestBatchId) -> None:
        """Wait for its requests."""
        while await self.state(batch) is not BatchState.READY:
            await self.turned.wait()
            self.turned.clear()


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """On SQLite."""
    sandbox = Sandbox(pages=1)
    async with Installation(tmp_path).api(sandbox) as made:
        await made.add_person()
        await made.integrators.create("operator", "acme", "ACME S.A.")
        key = await made.integrators.create_key(
            "operator", "acme", "k", scopes=(SCOPE,)
        )
        row = await made.api_keys.demand(key.secret, SCOPE, "192.0.2.1")
        yield Scene(made, IntegratorCaller(row.integrator, row.key.id), sandbox)


async def test_batch_is_prepared_in_turns(scene: Scene) -> None:
    """One after the other, to the end of each."""
    scene.sandbox.gate.set()
    async with scene.worker():
        batches = [await scene.asked(50, word) for word in ("a", "b", "c")]
        for batch in batches:
            await scene.until_ready(batch)


async def test_worker_that_stops_finishes_its_turn(scene: Scene) -> None:
    """And lets go of the batch, for the next one to go on at once."""
    async with scene.worker():
        batch = await scene.asked(50)
        await scene.sandbox.begun.wait()
    whose = scene.asking.integrator.id
    details = await scene.services.backend_batches.get(whose, batch)
    assert (details.batch.state, details.examined) == (BatchState.PREPARING, 32)
    async with scene.worker():
        await scene.until_ready(batch)


async def test_batch_that_is_put_off_comes_again(scene: Scene) -> None:
    """Once it has rested; nothing is refused."""
    scene.sandbox.fails = 1
    async with scene.worker():
        batch = await scene.asked(3)
        scene.sandbox.gate.set()
        await scene.put_off_once.wait()
        assert await scene.state(batch) is BatchState.PREPARING
        scene.services.clock.forward(6)
        scene.rung.put_nowait(None)
        await scene.until_ready(batch)


async def test_batch_that_is_taken_back_ends_its_turn(scene: Scene) -> None:
    """The worker's group in progress counts no more, and it goes on with others."""
    async with scene.worker():
        batch = await scene.asked(3)
        await scene.sandbox.begun.wait()
        await scene.services.backend_batches.cancel(scene.asking, batch, "")
        scene.sandbox.gate.set()
        await scene.until_ready(await scene.asked(3, "b"))
        assert await scene.state(batch) is BatchState.CANCELLED
