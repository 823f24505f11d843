"""Batches of an integrator's backend: made whole or not at all, on both databases."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, func, insert, select

from appliance.database.tables import (
    audit_event,
    request_batch,
    signature_request,
    uploaded_document,
)
from appliance.documents.document_store import DocumentStore
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import (
    DocumentId,
    IntegratorId,
    PersonId,
    RequestBatchId,
    new_id,
)
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.preset import WishedPreset
from appliance.domain.requests.process import NamedBy, ProcessFilter, ProcessNote
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import BatchState, RequestState
from appliance.integration.requests.order import BatchDocument, BatchOrder, NamedSigner
from tests.support.factories.fakes import request_view
from tests.support.installation.api import ApiServices
from tests.support.installation.batches import prepare_batches
from tests.support.installation.installation import Installation

pytestmark = pytest.mark.storage
MANY = 1_000
CUIL = "20267565393"


@dataclass
class Desk:
    """An integrator's backend, and somebody to sign."""

    services: ApiServices
    asking: IntegratorCaller
    person: PersonId

    async def uploads(self, count: int) -> list[str]:
        """Documents that were uploaded; their ids, in order."""
        now = self.services.clock.now()
        whose = self.asking.integrator.id
        inspection = request_view(1, self.person).inspection
        new = [
            StoredDocument(DocumentId(new_id()), whose, f"{n:064x}", inspection)
            for n in range(count)
        ]
        async with self.services.store.write() as transaction:
            kept = await DocumentStore(transaction).add_all(new, now)
            rows = [
                {
                    "id": new_id(),
                    "integrator": whose,
                    "document": each.id,
                    "name": f"{n}.pdf",
                    "size_bytes": each.inspection.size_bytes,
                    "api_key": self.asking.key,
                    "created": now,
                    "until": now.replace(year=2040),
                }
                for n, each in enumerate(kept)
            ]
            await transaction.connection.execute(insert(uploaded_document), rows)
        return [str(row["id"]) for row in rows]

    def order(self, uploads: Sequence[str], **changes: Any) -> BatchOrder:
        """An order of those, each with its place as its reference."""
        note = ProcessNote(self.asking.key, "lote-1", message="Firmá")
        documents = tuple(
            BatchDocument(None, each, replace(note, reference=f"r{n}"))
            for n, each in enumerate(uploads)
        )
        signer = NamedSigner(NamedBy.CUIL, CUIL)
        return replace(BatchOrder(signer, documents, note), **changes)

    async def made(self, order: BatchOrder) -> RequestBatchId:
        """Make what is asked for, to its requests."""
        made = await self.services.backend_batch_orders.create(self.asking, order)
        await prepare_batches(self.services)
        return made.batch

    async def refused(self, order: BatchOrder) -> ApplianceError:
        """Why nothing is made of an order; and nothing is."""
        before = await self.counted()
        with pytest.raises(ApplianceError) as refusal:
            await self.services.backend_batch_orders.create(self.asking, order)
        assert await self.counted() == before
        return refusal.value

    async def refused_later(self, order: BatchOrder) -> ApplianceError:
        """Why a batch comes to nothing; no request of it is made."""
        _, before, _ = await self.counted()
        batch = await self.made(order)
        _, after, _ = await self.counted()
        assert after == before
        whose = self.asking.integrator.id
        found = (await self.services.backend_batches.get(whose, batch)).batch
        assert found.state is BatchState.REFUSED
        return found.faults[0]

    async def counted(self) -> tuple[int, int, int]:
        """How many batches, requests and rows of the audit there are."""
        tables = (request_batch, signature_request, audit_event)
        async with self.services.store.read() as transaction:
            found = [
                await transaction.connection.scalar(
                    select(func.count()).select_from(table)
                )
                for table in tables
            ]
        batches, requests, rows = found
        return batches or 0, requests or 0, rows or 0


@pytest.fixture
async def desk(tmp_path: Path, each_url: str) -> AsyncIterator[Desk]:
    """On each database."""
    async with Installation(tmp_path, database={"url": each_url}).api() as made:
        person, _ = await made.add_person()
        integrators = made.integrators
        await integrators.create("operator", "acme", "ACME S.A.")
        scope = ApiKeyScope.REQUESTS_WRITE
        key = await integrators.create_key("operator", "acme", "k", scopes=(scope,))
        row = await made.api_keys.demand(key.secret, scope, "192.0.2.1")
        yield Desk(made, IntegratorCaller(row.integrator, row.key.id), person)


async def test_a_thousand_are_made_by_few_statements(desk: Desk) -> None:
    """In the order given, each with a row of the audit; repeated, nothing is new."""
    order = desk.order(await desk.uploads(MANY), idempotency_key="k")
    seen: list[str] = []
    engine = desk.services.store._engines.writer.sync_engine

    def note(_connection: object, _cursor: object, sql: str, *_rest: object) -> None:
        seen.append(sql)

    event.listen(engine, "before_cursor_execute", note)
    batch = await desk.made(order)
    event.remove(engine, "before_cursor_execute", note)
    counted = await desk.counted()
    again = await desk.services.backend_batch_orders.create(desk.asking, order)

    # SQLite takes so many values at once, and a request has twenty.
    assert len(seen) < 50
    assert (again.batch, again.is_repeated) == (batch, True)
    assert await desk.counted() == counted
    members = await desk.services.backend_batches.members(batch)
    assert [each.reference for each in members] == [f"r{n}" for n in range(MANY)]
    assert [each.name for each in members] == [f"{n}.pdf" for n in range(MANY)]
    assert [each.sha256 for each in members] == [f"{n:064x}" for n in range(MANY)]
    numbers = [each.request for each in members]
    assert numbers == sorted(numbers)
    details = await desk.services.backend_batches.get(desk.asking.integrator.id, batch)
    assert details.states == {RequestState.PENDING: MANY}
    assert (details.signer.person, details.signer.cuil) == (desk.person, CUIL)
    process = await desk.services.backend_requests.get(
        desk.asking.integrator.id, members[17].process
    )
    assert process.process.note.message == "Firmá"
    assert process.process.requests[0].batch == batch
    (created,) = await desk.services.backend_requests.history(
        desk.asking.integrator.id, members[17].process
    )
    assert created.detail == {"documentSha256": f"{17:064x}", "batch": batch}


async def test_equal_calls_at_once_make_one(desk: Desk) -> None:
    """Under one key: the others get what the first made; another order is refused."""
    order = desk.order(await desk.uploads(3), idempotency_key="k")
    create = desk.services.backend_batch_orders.create

    made = await asyncio.gather(*(create(desk.asking, order) for _ in range(5)))

    assert len({each.batch for each in made}) == 1
    assert [each.is_repeated for each in made].count(False) == 1
    other = replace(order, documents=order.documents[::-1])
    assert (await desk.refused(other)).code is ErrorCode.IDEMKEY_CONFLICT


async def test_batches_of_the_same_documents_at_once(desk: Desk) -> None:
    """In opposite orders: neither waits for the other for ever."""
    uploads = await desk.uploads(40)

    made = await asyncio.gather(
        *(desk.made(desk.order(uploads[:: 1 if n % 2 else -1])) for n in range(6))
    )

    assert len(set(made)) == 6


async def test_what_is_wrong_with_one_refuses_all(desk: Desk) -> None:
    """By its place; nothing of it is recorded."""
    uploads = await desk.uploads(20)
    first = desk.order(uploads[:1])
    unique = replace(first.documents[0].note, reference="U", is_unique=True)
    taken = replace(first.documents[0], note=unique)
    await desk.made(replace(first, documents=(taken,)))
    beyond = WishedPreset(GivenParameters.of(page=9))

    def with_one(**changes: Any) -> BatchOrder:
        order = desk.order(uploads)
        documents = list(order.documents)
        documents[17] = replace(documents[17], **changes)
        return replace(order, documents=tuple(documents))

    for order, code, field in (
        (with_one(document=new_id()), "DOCUMENT_NOT_FOUND", "documentoId"),
        (with_one(document="x"), "DOCUMENT_NOT_FOUND", "documentoId"),
        (with_one(name="../a.pdf"), "FILENAME", "nombre"),
        (with_one(note=unique), "REFERENCE_IN_USE", "referencia"),
    ):
        refusal = await desk.refused(order)
        assert refusal.code is ErrorCode(code)
        assert refusal.extras["field"] == f"documentos[17].{field}"
    refusal = await desk.refused_later(with_one(wished=beyond))
    assert refusal.code is ErrorCode.PAGE_OUT_OF_RANGE
    assert refusal.extras["field"] == "documentos[17].sello.page"
    twice = with_one(note=replace(unique, reference="V"))
    again = replace(twice.documents[3], note=replace(unique, reference="V"))
    refusal = await desk.refused(
        replace(twice, documents=(*twice.documents[:19], again))
    )
    assert refusal.extras["field"] == "documentos[19].referencia"
    nobody = NamedSigner(NamedBy.EMAIL, "nadie@demo.example")
    refusal = await desk.refused(desk.order(uploads, signer=nobody))
    assert (refusal.code, refusal.extras["field"]) == (
        ErrorCode.PERSON_NOT_FOUND,
        "firmante",
    )


async def test_reference_of_a_batch_is_its_own(desk: Desk) -> None:
    """Where it is to be unique, among batches alone."""
    uploads = await desk.uploads(1)
    note = replace(desk.order(uploads).note, is_unique=True)
    batch = await desk.made(desk.order(uploads, note=note))

    refusal = await desk.refused(desk.order(uploads, note=note))

    assert refusal.code is ErrorCode.REFERENCE_IN_USE
    assert refusal.extras == {"field": "referencia", "loteId": batch}


async def test_what_is_not_signed_is_taken_back(desk: Desk) -> None:
    """At once; what is over stays, and somebody else's batch is as absent as none."""
    batch = await desk.made(desk.order(await desk.uploads(5)))
    whose, batches = desk.asking.integrator.id, desk.services.backend_batches
    members = await batches.members(batch)
    await desk.services.backend_requests.cancel(desk.asking, members[1].process, "a")

    ended = await batches.cancel(desk.asking, batch, "Era otra")

    assert ended.states == {RequestState.CANCELLED: 5}
    reasons = [each.reason for each in await batches.members(batch)]
    assert reasons == ["Era otra", "a", "Era otra", "Era otra", "Era otra"]
    history = await desk.services.backend_requests.history(whose, members[4].process)
    assert [each.event.value for each in history] == [
        "request.created",
        "request.cancelled",
    ]
    with pytest.raises(ApplianceError, match="STATE"):
        await batches.cancel(desk.asking, batch, "")
    stranger = replace(desk.asking.integrator, id=IntegratorId("x"))
    for call in (
        batches.get(stranger.id, batch),
        batches.cancel(IntegratorCaller(stranger, "k"), batch, ""),
    ):
        with pytest.raises(ApplianceError, match="LOTE_NOT_FOUND"):
            await call


async def test_lists_have_pages(desk: Desk) -> None:
    """Of batches the newest first, of one's documents in order."""
    uploads = await desk.uploads(5)
    made: list[RequestBatchId] = []
    for n in range(3):
        desk.services.clock.forward(1)
        note = replace(desk.order(uploads).note, reference=f"l{n}")
        made.append(await desk.made(desk.order(uploads, note=note)))
    whose, batches = desk.asking.integrator.id, desk.services.backend_batches

    page = await batches.page(whose, None, 2)
    last = page[-1].batch
    rest = await batches.page(whose, (last.created, last.id), 2)
    one = await batches.page(whose, None, 9, "l1")
    members = await batches.members(made[0], None, 3)
    others = await batches.members(made[0], members[-1].request, 3)
    listed = await desk.services.backend_requests.matching(
        whose, ProcessFilter(batch=made[1])
    )

    assert [each.batch.id for each in (*page, *rest)] == made[::-1]
    assert [each.batch.id for each in one] == [made[1]]
    names = [each.name for each in (*members, *others)]
    assert names == [f"{n}.pdf" for n in range(5)]
    batches_of = {each.process.requests[0].batch for each in listed}
    assert (len(listed), batches_of) == (5, {made[1]})
