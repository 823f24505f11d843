"""Documents that come with a batch: examined once, and gone where it is refused."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from appliance.domain.documents.inspected import Inspection
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.ports import DocumentBytes
from appliance.domain.requests.backend_batch import RequestBatch
from appliance.domain.requests.process import NamedBy, ProcessNote
from appliance.domain.vocab import BatchState
from appliance.integration.batches.preparation import BatchPreparation
from appliance.integration.requests.order import BatchDocument, BatchOrder, NamedSigner
from tests.support.factories.fake_sandbox import BAD_PDF, FakeInspector
from tests.support.installation.api import ApiServices
from tests.support.installation.batches import preparation_of, prepare_batches
from tests.support.installation.installation import Installation

CUIL = "20267565393"
MANY = 100


@dataclass
class Watched(FakeInspector):
    """A sandbox that counts documents and jobs."""

    seen: int = 0
    jobs: int = 0
    most: int = 0
    now: int = 0
    takes_s: float = 0
    second: asyncio.Event | None = None
    """What the first job waits for: that another one has begun beside it."""

    async def inspect(self, pdf: DocumentBytes) -> Inspection:
        """One more document."""
        self.seen += 1
        return await super().inspect(pdf)

    async def inspect_all(
        self, pdfs: Sequence[DocumentBytes]
    ) -> list[Inspection | None]:
        """One more job."""
        self.jobs += 1
        self.now += 1
        self.most = max(self.most, self.now)
        if self.second is not None:
            if self.jobs > 1:
                self.second.set()
            await asyncio.wait_for(self.second.wait(), 30)
        await asyncio.sleep(self.takes_s)
        self.now -= 1
        return await super().inspect_all(pdfs)


@dataclass
class Desk:
    """An integrator's backend."""

    services: ApiServices
    asking: IntegratorCaller
    sandbox: Watched
    preparation: BatchPreparation

    def order(self, pdfs: Sequence[bytes], **note: object) -> BatchOrder:
        """An order of documents that come with it."""
        said = replace(ProcessNote(self.asking.key), **note)  # type: ignore[arg-type]
        documents = tuple(
            BatchDocument(None, pdf, ProcessNote(self.asking.key), part=f"d{n}")
            for n, pdf in enumerate(pdfs)
        )
        return BatchOrder(NamedSigner(NamedBy.CUIL, CUIL), documents, said)

    async def make(self, order: BatchOrder) -> RequestBatch:
        """Ask for it, and have it prepared to its end."""
        create = self.services.backend_batch_orders.create
        made = await create(self.asking, order)
        await prepare_batches(self.services, self.preparation)
        whose = self.asking.integrator.id
        return (await self.services.backend_batches.get(whose, made.batch)).batch

    def files(self) -> int:
        """How many documents are kept."""
        return len(list(self.services.settings.documents_dir.rglob("*.pdf")))


@pytest.fixture
async def desk(tmp_path: Path, each_url: str) -> AsyncIterator[Desk]:
    """On each database."""
    sandbox = Watched(pages=1)
    async with Installation(tmp_path, each_url).api(sandbox) as made:
        await made.add_person()
        integrators = made.integrators
        await integrators.create("operator", "acme", "ACME S.A.")
        scope = ApiKeyScope.REQUESTS_WRITE
        key = await integrators.create_key("operator", "acme", "k", scopes=(scope,))
        row = await made.api_keys.demand(key.secret, scope, "192.0.2.1")
        asking = IntegratorCaller(row.integrator, row.key.id)
        yield Desk(made, asking, sandbox, preparation_of(made))


def many(word: str = "a") -> list[bytes]:
    """Small documents, no two alike."""
    return [b"%%PDF %s %d" % (word.encode(), n) for n in range(MANY)]


@pytest.mark.storage
async def test_refused_batches_leave_nothing(desk: Desk) -> None:
    """Whatever they are refused for: a document, or a reference at the very end."""
    used = desk.order([b"%PDF first"], reference="r", is_unique=True)
    await desk.make(used)
    assert desk.files() == 1
    checks = desk.services.backend_batch_orders._checks

    async def late(*_: object) -> list[ApplianceError]:
        """Another call takes the reference once this one was looked at."""
        return []

    for number in range(2):
        refused = await desk.make(desk.order([*many(f"b{number}"), BAD_PDF]))
        assert refused.state is BatchState.REFUSED
        checks.references_in_use = late  # type: ignore[method-assign, assignment]
        again = desk.order(many(f"c{number}"), reference="r", is_unique=True)
        with pytest.raises(ApplianceError) as caught:
            await desk.make(again)
        assert caught.value.code is ErrorCode.REFERENCE_IN_USE
        del checks.references_in_use
    await desk.services.intake.passing.sweep()

    assert desk.files() == 1


async def test_documents_are_examined_together_and_once(desk: Desk) -> None:
    """Two jobs at a time; what is asked for again is not examined again."""
    desk.sandbox.second = asyncio.Event()
    await desk.make(desk.order([*many(), BAD_PDF]))
    assert (desk.sandbox.jobs, desk.sandbox.most) == (7, 2)
    seen = desk.sandbox.seen

    await desk.make(desk.order(many()))
    await desk.make(desk.order([*many(), many()[3]]))

    assert desk.sandbox.seen == seen
    await desk.services.intake.passing.sweep()
    assert desk.files() == MANY


async def test_first_faults_are_told_in_order(desk: Desk) -> None:
    """Fifty of them, however many are found at once."""
    pdfs = [b"bad %d" % n if n % 2 else pdf for n, pdf in enumerate(many() * 2)]

    refused = await desk.make(desk.order(pdfs))

    assert refused.state is BatchState.REFUSED
    fields = [fault.extras["field"] for fault in refused.faults]
    assert fields == [f"documentos[{n}].archivo" for n in range(1, 100, 2)]
    await desk.services.intake.passing.sweep()
    assert desk.files() == 0
