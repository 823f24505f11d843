"""Batches on their way from the call to their requests, on both databases."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import delete, func, select, update

from appliance.database.tables import (
    audit_event,
    batch_document,
    batch_preparation,
    document,
    idempotency,
    integrator,
    integrator_event,
    person,
    request_batch,
    signature_request,
    test_signer,
)
from appliance.documents.passing_document_store import PassingDocumentStore
from appliance.domain.documents.inspected import FoundText, Inspection, TextSearch
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, RequestBatchId
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.ports import DocumentBytes
from appliance.domain.requests.backend_batch import BatchDetails
from appliance.domain.requests.preset import Anchor, WishedPreset
from appliance.domain.requests.process import NamedBy, ProcessNote
from appliance.domain.requests.uploads import UploadOrder
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import (
    BatchState,
    EventKind,
    PersonState,
    RequestState,
    VouchedBy,
)
from appliance.integration.batches.creation import MadeBatch
from appliance.integration.batches.preparation import KEPT, BatchPreparation, Turn
from appliance.integration.requests.order import (
    BatchDocument,
    BatchOrder,
    NamedSigner,
    ProcessOrder,
)
from appliance.people.person_store import PersonStore
from appliance.record.backlog_store import BacklogStore
from appliance.requests.batch_queue import ATTEMPTS
from tests.support.factories.fake_sandbox import (
    BAD_PDF,
    CERTIFIED,
    DAMAGED_PDF,
    FakeInspector,
)
from tests.support.installation.api import ApiServices
from tests.support.installation.batches import preparation_of, prepare_batches
from tests.support.installation.installation import Installation

pytestmark = pytest.mark.storage
CUIL: Final = "20267565393"
GROUPS: Final = 40
"""Documents of three groups."""
SCOPES: Final = (ApiKeyScope.REQUESTS_WRITE,)


@dataclass
class Sandbox(FakeInspector):
    """A sandbox that counts documents, and may be away."""

    seen: int = 0
    searches: int = 0
    away: ErrorCode | None = None

    async def inspect(self, pdf: DocumentBytes) -> Inspection:
        """One more document."""
        if self.away is not None:
            raise ApplianceError(self.away)
        self.seen += 1
        return await super().inspect(pdf)

    async def inspect_all(
        self, pdfs: Sequence[DocumentBytes]
    ) -> list[Inspection | None]:
        """One more job."""
        if self.away is not None:
            raise ApplianceError(self.away)
        return await super().inspect_all(pdfs)

    async def find_text(
        self, pdf: DocumentBytes, text: str, occurrence: int, page: int | None = None
    ) -> TextSearch:
        """One more search."""
        del pdf, text, occurrence, page
        self.searches += 1
        return TextSearch(FoundText(1, (100.0, 400.0, 200.0, 412.0)), whole=True)


@dataclass
class Desk:
    """An integrator's backend, its signer, and who prepares its batches."""

    services: ApiServices
    asking: IntegratorCaller
    person: PersonId
    sandbox: Sandbox

    def order(self, pdfs: Sequence[bytes | str], **changes: Any) -> BatchOrder:
        """An order of documents that come with it, or were uploaded."""
        note = ProcessNote(self.asking.key)
        documents = tuple(
            BatchDocument(f"{n}.pdf", each, replace(note, reference=f"r{n}"))
            for n, each in enumerate(pdfs)
        )
        signer = NamedSigner(NamedBy.CUIL, CUIL)
        return replace(BatchOrder(signer, documents, note), **changes)

    async def ask(
        self, order: BatchOrder, asking: IntegratorCaller | None = None
    ) -> MadeBatch:
        """Ask for a batch."""
        create = self.services.backend_batch_orders.create
        return await create(asking or self.asking, order)

    async def asked(self, order: BatchOrder) -> RequestBatchId:
        """A batch that was asked for."""
        return (await self.ask(order)).batch

    async def details(self, batch: RequestBatchId) -> BatchDetails:
        """A batch and its state."""
        return await self.services.backend_batches.get(self.asking.integrator.id, batch)

    async def state(self, batch: RequestBatchId) -> BatchState:
        """Its state."""
        return (await self.details(batch)).batch.state

    async def refusal(self, batch: RequestBatchId) -> tuple[ErrorCode, object]:
        """Code and field of the only fault of a refused batch, once it is prepared."""
        await prepare_batches(self.services)
        found = (await self.details(batch)).batch
        assert found.state is BatchState.REFUSED
        (fault,) = found.faults
        assert await self.count(signature_request) == 0
        return fault.code, fault.extras["field"]

    async def cancel(self, batch: RequestBatchId) -> BatchDetails:
        """Take a batch back."""
        batches = self.services.backend_batches
        return await batches.cancel(self.asking, batch, "Era otra")

    async def upload(self, pdf: bytes) -> str:
        """A document that was uploaded."""
        order = UploadOrder(
            self.asking.integrator.id, self.asking.key, self.asking.actor, "a.pdf"
        )
        return (await self.services.uploads.take(order, pdf)).upload.id

    async def count(self, table: Any) -> int:
        """Number of rows of a table."""
        async with self.services.store.read() as transaction:
            query = select(func.count()).select_from(table)
            return await transaction.connection.scalar(query) or 0

    async def set(self, table: Any, **values: Any) -> None:
        """Change all rows of a table."""
        async with self.services.store.write() as transaction:
            await transaction.connection.execute(update(table).values(**values))

    async def events(self) -> list[EventKind]:
        """Audit events of batches, in order."""
        rows = await self.services.record.audit()
        return [
            row.event.event
            for row in rows
            if row.event.event.value.startswith("batch.")
        ]

    async def told(self, kind: EventKind) -> dict[str, Any]:
        """Detail of the only event of a kind, as webhooks have it."""
        async with self.services.store.read() as transaction:
            query = select(integrator_event.c.detail).where(
                integrator_event.c.event == kind.value
            )
            found = (await transaction.connection.execute(query)).scalar_one()
        told: dict[str, Any] = found
        return told

    async def waiting_bytes(self) -> int:
        """Bytes of files that count until it is known what they are for."""
        async with self.services.store.read() as transaction:
            return await PassingDocumentStore(transaction).passing_bytes(
                self.asking.integrator.id
            )

    async def sweep(self) -> int:
        """Remove files that nothing needs; how many."""
        return await self.services.intake.passing.sweep()

    def files(self) -> int:
        """Number of documents that are kept."""
        return len(list(self.services.settings.documents_dir.rglob("*.pdf")))

    async def integrator(self, code: str) -> IntegratorCaller:
        """The backend of another integrator."""
        await self.services.integrators.create("operator", code, code)
        key = await self.services.integrators.create_key(
            "operator", code, "k", scopes=SCOPES
        )
        row = await self.services.api_keys.demand(key.secret, SCOPES[0], "192.0.2.1")
        return IntegratorCaller(row.integrator, row.key.id)


@pytest.fixture
async def desk(tmp_path: Path, each_url: str) -> AsyncIterator[Desk]:
    """On each database."""
    sandbox = Sandbox(pages=1)
    async with Installation(tmp_path, each_url).api(sandbox) as made:
        signer, _ = await made.add_person()
        empty = Desk(made, None, signer, sandbox)  # type: ignore[arg-type]
        yield replace(empty, asking=await empty.integrator("acme"))


def many(count: int = GROUPS, word: str = "a") -> list[bytes]:
    """Small documents, no two alike."""
    return [b"%%PDF %s %d" % (word.encode(), n) for n in range(count)]


async def one_turn(preparation: BatchPreparation) -> Turn:
    """Give the batch that waits longest the shortest turn: a group in each lane."""
    claim = await preparation.claim_next()
    assert claim is not None
    outcome = await preparation.take_turn(claim, 0.0)
    if outcome is Turn.UNFINISHED:
        await preparation.let_go(claim)
    return outcome


async def test_call_is_answered_before_any_document_is_examined(desk: Desk) -> None:
    """Its files are there, whoever prepares it is woken, and it has no requests yet."""
    batch = await desk.asked(desk.order(many(), idempotency_key="k"))

    details = await desk.details(batch)
    assert details.batch.state is BatchState.PREPARING
    assert (details.total, details.examined, details.states) == (GROUPS, 0, {})
    assert (details.signer.person, details.signer.cuil) == (desk.person, CUIL)
    assert (desk.sandbox.seen, desk.files()) == (0, GROUPS)
    assert desk.services.core.work_notifier.notified == [batch]  # type: ignore[attr-defined]
    assert await desk.services.backend_batches.members(batch) == []
    again = await desk.ask(desk.order(many(), idempotency_key="k"))
    assert (again.batch, again.is_repeated) == (batch, True)

    await prepare_batches(desk.services)

    details = await desk.details(batch)
    assert details.batch.state is BatchState.READY
    assert (details.examined, details.states) == (
        GROUPS,
        {RequestState.PENDING: GROUPS},
    )
    members = await desk.services.backend_batches.members(batch)
    assert [each.reference for each in members] == [f"r{n}" for n in range(GROUPS)]
    assert [each.name for each in members] == [f"{n}.pdf" for n in range(GROUPS)]
    again = await desk.ask(desk.order(many(), idempotency_key="k"))
    assert (again.batch, again.is_repeated) == (batch, True)
    assert await desk.events() == [EventKind.BATCH_RECEIVED, EventKind.BATCH_READY]
    told = await desk.told(EventKind.BATCH_READY)
    assert (told["batch"], told["total"]) == (batch, GROUPS)
    for table in (batch_preparation, batch_document):
        assert await desk.count(table) == 0
    assert await desk.waiting_bytes() == 0


async def test_progress_is_written_group_by_group(desk: Desk) -> None:
    """A turn settles a group in each lane; what is settled is not examined again."""
    batch = await desk.asked(desk.order(many()))
    seen = []
    while await one_turn(preparation_of(desk.services)) is Turn.UNFINISHED:
        seen.append((await desk.details(batch)).examined)

    assert seen == [32]
    assert await desk.state(batch) is BatchState.READY
    assert desk.sandbox.seen == GROUPS


async def test_place_is_looked_for_once_for_each_wish(desk: Desk) -> None:
    """For the same file, however many documents and turns want it."""
    upload = await desk.upload(many(1)[0])
    order = desk.order([upload] * GROUPS)
    one, two = (
        WishedPreset(GivenParameters.of(), anchor=Anchor(text))
        for text in ("Firma", "Aclaración")
    )
    documents = [
        replace(each, wished=one if n % 2 else two)
        for n, each in enumerate(order.documents)
    ]
    batch = await desk.asked(replace(order, documents=tuple(documents)))
    while await one_turn(preparation_of(desk.services)) is Turn.UNFINISHED:
        pass
    assert await desk.state(batch) is BatchState.READY
    assert desk.sandbox.searches == 2


async def test_worker_that_dies_loses_nothing(desk: Desk) -> None:
    """The next start of its slot goes on at once; the dead one's writes are refused."""
    batch = await desk.asked(desk.order(many()))
    dead = preparation_of(desk.services)
    claim = await dead.claim_next()
    assert claim is not None
    assert await dead.take_turn(claim, 0.0) is Turn.UNFINISHED
    living = preparation_of(desk.services)
    assert await living.claim_next() is None

    await living.release_own()
    again = await living.claim_next()

    assert again is not None
    assert await dead.take_turn(claim, 600.0) is Turn.LOST
    assert not await dead.renew(claim)
    assert await living.take_turn(again, 600.0) is Turn.ENDED
    assert await desk.state(batch) is BatchState.READY
    assert await desk.count(signature_request) == GROUPS


async def test_lease_that_ends_is_taken_over(desk: Desk) -> None:
    """A host is gone; a lease that is renewed stays."""
    await desk.asked(desk.order(many()))
    worker = preparation_of(desk.services)
    claim = await worker.claim_next()
    assert claim is not None
    desk.services.clock.forward(50)
    assert await worker.renew(claim)
    desk.services.clock.forward(50)
    assert await worker.claim_next() is None
    desk.services.clock.forward(11)
    assert await worker.claim_next() is not None


@pytest.mark.parametrize(
    "code",
    [ErrorCode.SANDBOX_UNAVAILABLE, ErrorCode.OVERLOADED, ErrorCode.STORE_UNAVAILABLE],
)
async def test_what_is_away_refuses_nothing(desk: Desk, code: ErrorCode) -> None:
    """The batch waits, and goes on at what was not settled; however often it fails."""
    batch = await desk.asked(desk.order(many()))
    worker = preparation_of(desk.services)
    assert await one_turn(worker) is Turn.UNFINISHED
    desk.sandbox.away = code
    for _ in range(2 * ATTEMPTS):
        claim = await worker.claim_next()
        assert claim is not None
        with pytest.raises(ApplianceError) as caught:
            await worker.take_turn(claim, 600.0)
        assert caught.value.code is code
        await worker.put_off(claim)
        assert await worker.claim_next() is None
        desk.services.clock.forward(5)
    assert (await desk.details(batch)).examined == 32

    desk.sandbox.away = None
    await prepare_batches(desk.services)

    assert await desk.state(batch) is BatchState.READY
    assert desk.sandbox.seen == GROUPS


async def test_files_that_cannot_be_read_refuse_nothing(desk: Desk) -> None:
    """The store of documents is away, and comes back."""
    batch = await desk.asked(desk.order(many(2)))
    folder = desk.services.settings.documents_dir
    aside = folder.with_name("aside")
    folder.rename(aside)
    worker = preparation_of(desk.services)
    claim = await worker.claim_next()
    assert claim is not None
    with pytest.raises(ApplianceError, match="DOCUMENT_DAMAGED"):
        await worker.take_turn(claim, 600.0)
    await worker.put_off(claim)
    aside.rename(folder)
    desk.services.clock.forward(5)

    await prepare_batches(desk.services)

    assert await desk.state(batch) is BatchState.READY


async def test_batch_that_kills_workers_rests_for_an_hour(desk: Desk) -> None:
    """Once it was claimed so often without progress; it is never given up."""
    batch = await desk.asked(desk.order(many()))
    worker = preparation_of(desk.services)
    for _ in range(ATTEMPTS):
        assert await worker.claim_next() is not None
        desk.services.clock.forward(61)
    assert await worker.claim_next() is None

    desk.services.clock.forward(3_600)
    await prepare_batches(desk.services)

    assert await desk.state(batch) is BatchState.READY


async def test_progress_ends_a_quarantine(desk: Desk) -> None:
    """Claims are counted again from none once a group is settled."""
    await desk.asked(desk.order(many()))
    worker = preparation_of(desk.services)
    for _ in range(ATTEMPTS - 1):
        assert await worker.claim_next() is not None
        desk.services.clock.forward(61)
    assert await one_turn(worker) is Turn.UNFINISHED
    for _ in range(ATTEMPTS - 1):
        assert await worker.claim_next() is not None
        desk.services.clock.forward(61)
    assert await worker.claim_next() is not None


async def test_a_large_batch_lets_others_have_their_turn(desk: Desk) -> None:
    """After each of its turns: another integrator's, and a small one of its own."""
    large = await desk.asked(desk.order(many(200)))
    other = await desk.integrator("otra")
    desk.services.clock.forward(1)
    small = (await desk.ask(desk.order(many(2, "b")), other)).batch
    desk.services.clock.forward(1)
    own = await desk.asked(desk.order(many(2, "c")))
    worker, turns = preparation_of(desk.services), []
    while (claim := await worker.claim_next()) is not None:
        turns.append(claim.id)
        desk.services.clock.forward(1)
        if await worker.take_turn(claim, 0.0) is Turn.UNFINISHED:
            await worker.let_go(claim)

    assert turns[:3] == [large, small, own]
    assert set(turns[3:]) == {large}


async def test_one_integrator_has_one_batch_in_progress(desk: Desk) -> None:
    """In a worker; others' are claimed beside it."""
    await desk.asked(desk.order(many(2)))
    await desk.asked(desk.order(many(2, "b")))
    other = await desk.integrator("otra")
    others = (await desk.ask(desk.order(many(2, "c")), other)).batch
    worker = preparation_of(desk.services)
    first = await worker.claim_next()
    assert first is not None

    second = await worker.claim_next([first.integrator])

    assert second is not None
    assert second.id == others
    assert await worker.claim_next([first.integrator, second.integrator]) is None


async def test_refused_batch_came_to_nothing(desk: Desk) -> None:
    """Files and documents go; its key and its references are free again."""
    note = ProcessNote(desk.asking.key, "lote", is_unique=True)
    own = replace(note, reference="doc", is_unique=True)
    order = desk.order([*many(3), BAD_PDF], note=note, idempotency_key="k")
    first = replace(order.documents[0], note=own)
    order = replace(order, documents=(first, *order.documents[1:]))
    batch = await desk.asked(order)

    assert await desk.refusal(batch) == (
        ErrorCode.PDF_MALFORMED,
        "documentos[3].contenido",
    )
    assert await desk.events() == [EventKind.BATCH_RECEIVED, EventKind.BATCH_REFUSED]
    told = await desk.told(EventKind.BATCH_REFUSED)
    assert told == {
        "batch": batch,
        "reference": "lote",
        "total": 4,
        "faults": 1,
        "code": "PDF_MALFORMED",
    }
    assert await desk.sweep() == 4
    assert (desk.files(), await desk.count(document)) == (0, 0)
    assert await desk.waiting_bytes() == 0
    details = await desk.details(batch)
    assert (details.total, details.examined, details.states) == (4, 4, {})
    with pytest.raises(ApplianceError, match="STATE"):
        await desk.cancel(batch)
    again = await desk.ask(order)
    assert not again.is_repeated
    assert again.batch != batch
    mended = replace(order, documents=order.documents[:3], idempotency_key="k2")
    with pytest.raises(ApplianceError, match="REFERENCE_IN_USE"):
        await desk.ask(mended)


async def test_key_that_stands_for_another_order_stays(desk: Desk) -> None:
    """It was forgotten while the batch was prepared, and used again."""
    first = await desk.asked(desk.order(many(1), idempotency_key="k"))
    async with desk.services.store.write() as transaction:
        await transaction.connection.execute(delete(idempotency))
    other = desk.order(many(1, "b"), idempotency_key="k")
    second = await desk.asked(other)

    await desk.cancel(first)

    again = await desk.ask(other)
    assert (again.batch, again.is_repeated) == (second, True)


async def test_batch_is_taken_back_before_it_is_ready(desk: Desk) -> None:
    """Whoever prepares it finds it gone; nothing of it stays but what it was."""
    note = ProcessNote(desk.asking.key, "lote", is_unique=True)
    order = desk.order(many(), note=note, idempotency_key="k")
    batch = await desk.asked(order)
    worker = preparation_of(desk.services)
    claim = await worker.claim_next()
    assert claim is not None
    assert await worker.take_turn(claim, 0.0) is Turn.UNFINISHED

    ended = await desk.cancel(batch)

    assert (ended.batch.state, ended.batch.reason) == (
        BatchState.CANCELLED,
        "Era otra",
    )
    assert await worker.take_turn(claim, 600.0) is Turn.LOST
    assert await worker.claim_next() is None
    assert await desk.count(signature_request) == 0
    assert await desk.sweep() == GROUPS
    assert (desk.files(), await desk.count(document)) == (0, 0)
    assert await desk.events() == [EventKind.BATCH_RECEIVED, EventKind.BATCH_CANCELLED]
    with pytest.raises(ApplianceError, match="STATE"):
        await desk.cancel(batch)
    again = await desk.ask(order)
    assert not again.is_repeated
    await prepare_batches(desk.services)
    assert await desk.state(again.batch) is BatchState.READY


async def test_end_and_cancel_at_once_leave_one_outcome(desk: Desk) -> None:
    """Either nobody was asked, or all that was asked is taken back."""
    for number in range(6):
        made = await desk.count(signature_request)
        batch = await desk.asked(desk.order(many(3, f"w{number}")))
        worker = preparation_of(desk.services)
        claim = await worker.claim_next()
        assert claim is not None

        outcome, ended = await asyncio.gather(
            worker.take_turn(claim, 600.0), desk.cancel(batch)
        )

        more = await desk.count(signature_request) - made
        if ended.batch.state is BatchState.CANCELLED:
            assert (outcome, more) == (Turn.LOST, 0)
        else:
            assert (outcome, more) == (Turn.ENDED, 3)
            assert ended.states == {RequestState.CANCELLED: 3}
        assert await worker.claim_next() is None


async def test_batch_that_is_not_ready_opens_no_session(desk: Desk) -> None:
    """Its state is told; so it is to a command that would sign it."""
    batch = await desk.asked(desk.order(many(1)))
    whose = desk.asking.integrator.id
    with pytest.raises(ApplianceError) as caught:
        await desk.services.backend_batches.to_sign(whose, batch)
    assert caught.value.code is ErrorCode.STATE
    assert caught.value.params == {"estado": "en_preparacion"}
    await prepare_batches(desk.services)
    assert await desk.services.backend_batches.to_sign(whose, batch) == batch


async def test_upload_that_is_deleted_meanwhile_stays(desk: Desk) -> None:
    """Until the batch has no use for it; it cannot be named any more."""
    uploads = [await desk.upload(pdf) for pdf in many(2)]
    beyond = WishedPreset(GivenParameters.of(page=1))
    order = desk.order(uploads)
    first = replace(order.documents[0], wished=beyond)
    order = replace(order, documents=(first, order.documents[1]))
    batch = await desk.asked(order)
    assert (await desk.details(batch)).examined == 1
    whose = desk.asking.integrator.id
    for each in uploads:
        await desk.services.uploads.remove(whose, desk.asking.actor, each)
    assert desk.files() == 2
    with pytest.raises(ApplianceError, match="DOCUMENT_NOT_FOUND"):
        await desk.ask(order)

    await prepare_batches(desk.services)

    assert (await desk.details(batch)).states == {RequestState.PENDING: 2}
    assert desk.files() == 2


async def test_upload_of_a_refused_batch_goes_when_deleted(desk: Desk) -> None:
    """A document that the batch held alone is removed once it came to nothing."""
    upload = await desk.upload(many(1)[0])
    batch = await desk.asked(desk.order([upload, BAD_PDF]))
    whose = desk.asking.integrator.id
    await desk.services.uploads.remove(whose, desk.asking.actor, upload)
    assert desk.files() == 2
    await desk.refusal(batch)
    desk.services.clock.forward(120)
    await desk.sweep()
    assert desk.files() == 0


async def test_time_that_is_over_refuses(desk: Desk) -> None:
    """`vence` is a time to come when its requests are made, or none is made."""
    expires = desk.services.clock.now() + timedelta(minutes=5)
    batch = await desk.asked(desk.order(many(2), expires=expires))
    desk.services.clock.forward(300)
    assert await desk.refusal(batch) == (ErrorCode.FIELD_INVALID, "vence")


async def test_reference_that_is_taken_meanwhile_refuses(desk: Desk) -> None:
    """By a request; another batch that wants it is refused by its call."""
    order = desk.order(many(2))
    own = replace(order.documents[1].note, reference="U", is_unique=True)
    order = replace(
        order, documents=(order.documents[0], replace(order.documents[1], note=own))
    )
    batch = await desk.asked(order)
    with pytest.raises(ApplianceError) as caught:
        await desk.ask(order)
    assert caught.value.extras == {
        "field": "documentos[1].referencia",
        "loteId": batch,
    }
    await desk.services.backend_orders.create(
        desk.asking,
        ProcessOrder(None, b"%PDF z", (NamedSigner(NamedBy.CUIL, CUIL),), own),
    )
    await prepare_batches(desk.services)

    (fault,) = (await desk.details(batch)).batch.faults

    assert (fault.code, fault.extras["field"]) == (
        ErrorCode.REFERENCE_IN_USE,
        "documentos[1].referencia",
    )
    assert fault.extras["procesoId"]
    assert await desk.count(signature_request) == 1


async def test_reference_that_is_taken_at_the_last_moment_refuses(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the worker has looked: the record refuses it, and nothing is half made."""
    order = desk.order(many(2))
    own = replace(order.documents[0].note, reference="U", is_unique=True)
    first = replace(order.documents[0], note=own)
    batch = await desk.asked(replace(order, documents=(first, order.documents[1])))
    await desk.services.backend_orders.create(
        desk.asking,
        ProcessOrder(None, b"%PDF z", (NamedSigner(NamedBy.CUIL, CUIL),), own),
    )
    worker = preparation_of(desk.services)
    look, looks = worker._late_faults, 0

    async def late(*given: Any) -> list[ApplianceError]:
        nonlocal looks
        looks += 1
        return [] if looks == 1 else await look(*given)

    monkeypatch.setattr(worker, "_late_faults", late)
    await prepare_batches(desk.services, worker)

    (fault,) = (await desk.details(batch)).batch.faults
    assert (looks, fault.code) == (2, ErrorCode.REFERENCE_IN_USE)
    assert fault.extras["procesoId"]
    assert await desk.count(signature_request) == 1


async def test_files_of_open_batches_count_against_the_quota(
    tmp_path: Path, each_url: str
) -> None:
    """A call that is too much with them is refused; once they are ready, it is not."""
    sandbox = Sandbox(pages=1)
    few = {"limit_bytes": 8192, "integrator_bytes": 8192}
    large = [b"%%PDF %d" % n + b" " * 4000 for n in range(3)]
    async with Installation(tmp_path, each_url, documents=few).api(sandbox) as made:
        signer, _ = await made.add_person()
        empty = Desk(made, None, signer, sandbox)  # type: ignore[arg-type]
        desk = replace(empty, asking=await empty.integrator("acme"))
        first = await desk.asked(desk.order(large))
        with pytest.raises(ApplianceError, match="DOCUMENT_QUOTA"):
            await desk.ask(desk.order(many(1)))
        assert desk.files() == 3
        other = await desk.integrator("otra")
        await desk.ask(desk.order(many(1, "b")), other)
        await prepare_batches(made)
        assert await desk.state(first) is BatchState.READY
        await desk.ask(desk.order(many(1)))


async def test_signer_who_is_removed_meanwhile_refuses(desk: Desk) -> None:
    """A test signer; one who is only disabled is asked, as by any call."""
    there = await desk.asked(desk.order(many(1)))
    async with desk.services.store.write() as transaction:
        await PersonStore(transaction).move(
            desk.person, PersonState.ACTIVE, PersonState.DISABLED
        )
    await prepare_batches(desk.services)
    assert await desk.state(there) is BatchState.READY
    gone = await desk.asked(desk.order(many(1, "b")))
    await desk.set(person, vouched_by=VouchedBy.TEST.value)
    async with desk.services.store.write() as transaction:
        await transaction.connection.execute(
            test_signer.insert().values(
                person=desk.person,
                integrator=desk.asking.integrator.id,
                password_sealed=b"-",
                sign_password_sealed=b"-",
                created=desk.services.clock.now(),
                removed=desk.services.clock.now(),
            )
        )
    await prepare_batches(desk.services)
    (fault,) = (await desk.details(gone)).batch.faults
    assert (fault.code, fault.extras["field"]) == (
        ErrorCode.PERSON_NOT_FOUND,
        "firmante",
    )


async def test_batches_of_a_disabled_integrator_wait(desk: Desk) -> None:
    """Until it may ask for signatures again; a key that is revoked holds up nothing."""
    batch = await desk.asked(desk.order(many(1)))
    await desk.set(integrator, disabled=desk.services.clock.now())
    assert await preparation_of(desk.services).claim_next() is None
    await desk.set(integrator, disabled=None)
    await desk.services.integrators.revoke_key("operator", desk.asking.key)

    await prepare_batches(desk.services)

    assert await desk.state(batch) is BatchState.READY


async def test_files_stay_and_count_as_long_as_a_batch_is_prepared(desk: Desk) -> None:
    """Hours after the call: a call of that age is dead, a batch is not."""
    batch = await desk.asked(desk.order(many()))
    size = sum(len(pdf) for pdf in many())
    assert await one_turn(preparation_of(desk.services)) is Turn.UNFINISHED
    desk.services.clock.forward(10 * 3_600)

    assert await desk.sweep() == 0
    assert (desk.files(), await desk.waiting_bytes()) == (GROUPS, size)
    await prepare_batches(desk.services)

    assert await desk.state(batch) is BatchState.READY
    assert await desk.sweep() == 0
    assert (desk.files(), await desk.waiting_bytes()) == (GROUPS, 0)


async def test_damaged_file_is_kept_with_its_repaired_copy(desk: Desk) -> None:
    """Ready: both stay; refused: both go."""
    batch = await desk.asked(desk.order([DAMAGED_PDF]))
    await prepare_batches(desk.services)
    assert await desk.state(batch) is BatchState.READY
    assert (await desk.sweep(), desk.files()) == (0, 2)
    (member,) = await desk.services.backend_batches.members(batch)
    refused = await desk.asked(desk.order([DAMAGED_PDF + b" ", BAD_PDF]))
    await prepare_batches(desk.services)
    assert await desk.state(refused) is BatchState.REFUSED
    await desk.sweep()
    assert desk.files() == 2
    assert member.name == "0.pdf"


async def test_repaired_copy_of_a_refused_batch_goes(desk: Desk) -> None:
    """With the damaged file that it was made of."""
    await desk.asked(desk.order([DAMAGED_PDF, BAD_PDF]))
    await prepare_batches(desk.services)
    assert await desk.sweep() == 3
    assert (desk.files(), await desk.count(document)) == (0, 0)


async def test_faults_are_of_looks_too(desk: Desk) -> None:
    """A place that is not there, a certified document that admits no other look."""
    away = WishedPreset(GivenParameters.of(page=9))
    order = desk.order([*many(1), CERTIFIED, BAD_PDF])
    documents = [replace(each, wished=away) for each in order.documents]
    batch = await desk.asked(replace(order, documents=tuple(documents)))
    await prepare_batches(desk.services)
    found = (await desk.details(batch)).batch.faults
    assert [each.extras["field"] for each in found] == [
        "documentos[0].sello.page",
        "documentos[1].sello.campo",
        "documentos[2].contenido",
    ]


async def test_faults_are_kept_as_they_were_told(desk: Desk) -> None:
    """With what their sentences need, through the record."""
    away = WishedPreset(GivenParameters.of(page=9))
    order = desk.order(many(1))
    wanted = replace(order.documents[0], wished=away)
    batch = await desk.asked(replace(order, documents=(wanted,)))
    await prepare_batches(desk.services)
    (fault,) = (await desk.details(batch)).batch.faults
    assert fault.params == {"page": 9, "pages": 1}
    assert "9" in fault.told(fault.sentence)


async def test_batches_that_came_to_nothing_are_forgotten(desk: Desk) -> None:
    """After a time, with nothing left of them; others stay."""
    refused = await desk.asked(desk.order([BAD_PDF]))
    ready = await desk.asked(desk.order(many(1)))
    await prepare_batches(desk.services)
    worker = preparation_of(desk.services)
    assert await worker.forget() == 0
    desk.services.clock.forward(KEPT.total_seconds() + 1)
    assert await worker.forget() == 1
    with pytest.raises(ApplianceError, match="LOTE_NOT_FOUND"):
        await desk.details(refused)
    assert await desk.state(ready) is BatchState.READY


async def test_batches_that_wait_for_a_worker_are_counted(desk: Desk) -> None:
    """Since they came or were let go of, unless somebody has them in hand."""

    async def waiting() -> tuple[int, float | None]:
        now = desk.services.clock.now()
        async with desk.services.store.read() as transaction:
            found = await BacklogStore(transaction).batches(now)
        since = None if found.oldest is None else now - found.oldest
        return found.length, None if since is None else since.total_seconds()

    await desk.asked(desk.order(many()))
    desk.services.clock.forward(60)
    await desk.asked(desk.order(many(1, "b")))
    assert await waiting() == (2, 60)
    worker = preparation_of(desk.services)
    claim = await worker.claim_next()
    assert claim is not None
    assert await waiting() == (1, 0)
    assert await worker.take_turn(claim, 0.0) is Turn.UNFINISHED
    await worker.let_go(claim)
    desk.services.clock.forward(7)
    assert await waiting() == (2, 7)
    await desk.set(integrator, disabled=desk.services.clock.now())
    assert await waiting() == (0, None)


async def test_audit_of_a_batch_names_its_integrator(desk: Desk) -> None:
    """Each event, with the batch; of the call, the key that asked."""
    batch = await desk.asked(desk.order(many(1)))
    await prepare_batches(desk.services)
    async with desk.services.store.read() as transaction:
        rows = await transaction.connection.execute(
            select(audit_event).where(audit_event.c.event.startswith("batch."))
        )
        found = [(row.actor, row.integrator, row.detail) for row in rows]
    whose = desk.asking.integrator.id
    assert [(actor, owner) for actor, owner, _ in found] == [
        (desk.asking.actor, whose),
        ("system", whose),
    ]
    assert all(batch in json.dumps(detail) for _, _, detail in found)


async def test_batch_of_a_version_before_is_ready(desk: Desk) -> None:
    """Its row says nothing of a state, and its requests were made with it."""
    batch = await desk.asked(desk.order(many(2)))
    await prepare_batches(desk.services)
    await desk.set(
        request_batch, state=None, person=None, named_by=None, total=None, examined=None
    )
    details = await desk.details(batch)
    assert details.batch.state is BatchState.READY
    assert (details.total, details.examined) == (2, 2)
    assert (details.signer.person, details.signer.cuil) == (desk.person, CUIL)
    whose = desk.asking.integrator.id
    assert await desk.services.backend_batches.to_sign(whose, batch) == batch
    assert (await desk.cancel(batch)).states == {RequestState.CANCELLED: 2}
