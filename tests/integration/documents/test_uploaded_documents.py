"""What backends upload: kept for its time, named, counted; on both databases."""

import asyncio
import hashlib
import os
from collections.abc import Awaitable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from appliance.database.tables import uploaded_document
from appliance.documents.garbage_collection import GarbageCollection
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.documents.passing_documents import PassingDocuments
from appliance.documents.uploaded_document_store import UploadedDocumentStore
from appliance.domain.documents.inspected import FindingKind, Inspection
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ids import IntegratorId, RequestId, new_id
from appliance.domain.integrators.integrators import KeyView
from appliance.domain.people.identity import Integrator
from appliance.domain.ports import DocumentBytes
from appliance.domain.requests.intake import NewRequest
from appliance.domain.requests.request import RequestView
from appliance.domain.requests.uploads import UploadOrder
from appliance.domain.vocab import EventKind
from appliance.integrators.integrator_store import IntegratorStore
from appliance.people.person_store import PersonStore
from appliance.requests.intake import Intake
from appliance.requests.request_store import RequestStore
from appliance.requests.uploads import Uploaded, UploadedDocuments
from appliance.settings import DocumentSettings
from tests.support.factories.fake_sandbox import DAMAGED_PDF, FakeInspector
from tests.support.factories.fakes import FixedDocumentKeys
from tests.support.installation.record import CoreFixture

DAY = 86_400
KIB = 1_024
KEY = "abcdefghijkl"
OTHER = IntegratorId("0197d3c0-0000-7000-8000-000000000001")


class CountingInspector(FakeInspector):
    """Counts what it looks at."""

    seen = 0

    async def inspect(self, pdf: DocumentBytes) -> Inspection:
        """Once more."""
        self.seen += 1
        return await super().inspect(pdf)


class AwayInspector(FakeInspector):
    """A sandbox that is away."""

    async def inspect(self, pdf: DocumentBytes) -> Inspection:
        """It is away."""
        del pdf
        raise ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)


class Uploads:
    """The use case over a record, and what tests ask of it."""

    def __init__(self, core: CoreFixture, mine: IntegratorId) -> None:
        self.core, self.mine = core, mine
        self.files = LocalBlobStore(core.settings.documents_dir, FixedDocumentKeys())
        self.service = self.with_(DocumentSettings())

    def with_(
        self, settings: DocumentSettings, inspector: FakeInspector | None = None
    ) -> UploadedDocuments:
        """The service by other settings, or with another sandbox."""
        core = self.core
        sandbox = inspector or FakeInspector(pages=2)
        intake = Intake(core.store, self.files, sandbox, core.clock, settings)
        return UploadedDocuments(core.store, self.files, intake, core.clock, settings)

    def order(self, **changes: Any) -> UploadOrder:
        """What a backend asks for."""
        usual = UploadOrder(self.mine, KEY, f"integrator:{self.mine}", "año.pdf")
        return replace(usual, **changes)

    async def take(self, pdf: bytes, **changes: Any) -> Uploaded:
        """Have a document be uploaded."""
        return await self.service.take(self.order(**changes), pdf)

    async def sweep(self) -> int:
        """Do the chore; the files are as old as the record's time says."""
        at = self.core.now.timestamp() - 2 * DAY
        for path in self.core.settings.documents_dir.rglob("*.pdf"):
            os.utime(path, (at, at))
        settings = DocumentSettings(unused_days=1)
        return await GarbageCollection(
            self.core.store, self.files, self.core.clock, settings
        ).run()

    def kept(self) -> set[str]:
        """SHA-256 of every file that is there."""
        folder = self.core.settings.documents_dir
        return {path.stem for path in folder.rglob("*.pdf")}

    async def ids(self, integrator: IntegratorId | None = None) -> list[str]:
        """Ids of what can be named, newest first."""
        page = await self.service.page(integrator or self.mine, None, 100)
        return [each.id for each in page]

    async def request_of(self, documento_id: str) -> None:
        """Make a request of an uploaded document, in one transaction."""
        signer = await self.core.add_signer()
        async with self.core.store.write() as transaction:
            held = await self.service.hold(transaction, self.mine, [documento_id])
            found = held[documento_id]
            await RequestStore(transaction).add(
                NewRequest(
                    signer.person,
                    self.mine,
                    found.document.id,
                    found.name,
                    "api",
                    self.core.now,
                    None,
                    original_sha256=found.document.original_sha256,
                )
            )

    async def views(self) -> list[RequestView]:
        """All requests, by number."""
        async with self.core.store.read() as transaction:
            return await RequestStore(transaction).unfinished(RequestId(0), 100)

    async def events(self, kind: EventKind) -> list[dict[str, object]]:
        """Details of that kind of audit rows."""
        return [
            row.event.detail
            for row in await self.core.audit()
            if row.event.event is kind
        ]


@pytest.fixture
async def uploads(core: CoreFixture) -> Uploads:
    """Of two integrators, with a key of the first one's."""
    mine = await core.integrator()
    key = KeyView(KEY, "prueba", "x", core.now, *(None,) * 5)
    async with core.store.write() as transaction:
        await PersonStore(transaction).add_integrator(Integrator(OTHER, "beta", "B"))
        await IntegratorStore(transaction).add_key(mine, key, "i" * 64)
    return Uploads(core, mine)


def pdf(name: str, size: int = 100) -> bytes:
    """A document of that size."""
    return f"%PDF {name}".encode().ljust(size, b".")


async def refused(call: Awaitable[object], code: ErrorCode) -> None:
    """It must be refused so."""
    with pytest.raises(ApplianceError) as caught:
        await call
    assert caught.value.code is code


async def test_what_came_is_there_for_its_integrator_alone(uploads: Uploads) -> None:
    """By its id, with its bytes; to another it is as absent as one that never was."""
    taken = (await uploads.take(pdf("1"))).upload
    found, stream = await uploads.service.content(uploads.mine, taken.id)

    assert found == taken
    assert b"".join([piece async for piece in stream.pieces]) == pdf("1")
    assert (taken.name, taken.document.sha256) == (
        "año.pdf",
        hashlib.sha256(pdf("1")).hexdigest(),
    )
    assert taken.until - taken.created == timedelta(days=30)
    for whose, wanted in (
        (OTHER, taken.id),
        (uploads.mine, new_id()),
        (uploads.mine, "\0"),
        (uploads.mine, taken.id.upper()),
    ):
        await refused(uploads.service.get(whose, wanted), ErrorCode.DOCUMENT_NOT_FOUND)
        await refused(
            uploads.service.remove(whose, "integrator:x", wanted),
            ErrorCode.DOCUMENT_NOT_FOUND,
        )
    assert await uploads.ids() == [taken.id]
    assert await uploads.ids(OTHER) == []


async def test_pages_go_on_where_the_last_one_ended(uploads: Uploads) -> None:
    """Newest first, also of the same moment."""
    taken = []
    for number in range(5):
        taken.append((await uploads.take(pdf(str(number)))).upload.id)
        uploads.core.clock.forward(number % 2)

    seen, before = [], None
    while page := await uploads.service.page(uploads.mine, before, 2):
        seen += [each.id for each in page]
        before = page[-1].created, page[-1].id

    assert seen == taken[::-1]


async def test_time_ends_it_and_the_document_goes(uploads: Uploads) -> None:
    """Not an instant before; then row, document and file go, and it is told."""
    taken = (await uploads.take(pdf("1"))).upload
    uploads.core.clock.forward(30 * DAY - 1)
    assert await uploads.sweep() == 0
    assert await uploads.ids() == [taken.id]
    assert uploads.kept() == {taken.document.sha256}

    uploads.core.clock.forward(1)

    await refused(
        uploads.service.get(uploads.mine, taken.id), ErrorCode.DOCUMENT_NOT_FOUND
    )
    assert await uploads.ids() == []
    assert await uploads.sweep() == 1
    assert uploads.kept() == set()
    facts = {"upload": taken.id, "documentSha256": taken.document.sha256}
    assert await uploads.events(EventKind.DOCUMENT_UPLOAD_REMOVED) == [facts]


async def test_many_hosts_remove_it_once(uploads: Uploads) -> None:
    """And tell of it once."""
    for number in range(6):
        await uploads.take(pdf(str(number)))
    uploads.core.clock.forward(31 * DAY)

    await asyncio.gather(*(uploads.sweep() for _ in range(3)))

    told = await uploads.events(EventKind.DOCUMENT_UPLOAD_REMOVED)
    assert len(told) == len({str(each["upload"]) for each in told}) == 6
    assert uploads.kept() == set()


async def test_deleted_it_goes_unless_something_needs_it(uploads: Uploads) -> None:
    """Another upload of the same bytes, or a request, keeps the document."""
    first = (await uploads.take(pdf("1"))).upload
    second = (await uploads.take(pdf("1"), name="otro.pdf")).upload
    third = (await uploads.take(pdf("3"))).upload
    await uploads.request_of(third.id)
    assert first.document.id == second.document.id
    for each in (first, third):
        await uploads.service.remove(uploads.mine, "integrator:x", each.id)
    uploads.core.clock.forward(2 * DAY)

    assert await uploads.sweep() == 0
    assert uploads.kept() == {first.document.sha256, third.document.sha256}

    await uploads.service.remove(uploads.mine, "integrator:x", second.id)
    assert uploads.kept() == {third.document.sha256}
    assert await uploads.sweep() == 0
    assert len(await uploads.events(EventKind.DOCUMENT_UPLOAD_REMOVED)) == 3


async def test_use_prolongs_nothing(uploads: Uploads) -> None:
    """Who makes something of it holds it; to have found it once holds nothing."""
    taken = (await uploads.take(pdf("1"))).upload
    uploads.core.clock.forward(29 * DAY)
    async with uploads.core.store.write() as transaction:
        found = await uploads.service.hold(transaction, uploads.mine, [taken.id])
        others = await uploads.service.hold(transaction, OTHER, [taken.id, "x"])

    assert found == {taken.id: taken}
    assert others == {}
    assert await uploads.service.get(uploads.mine, taken.id) == taken
    await uploads.service.remove(uploads.mine, "integrator:x", taken.id)
    assert uploads.kept() == set()


async def test_damaged_file_is_kept_as_its_copy(uploads: Uploads) -> None:
    """Both files stay, and both go; the same damaged file is the same upload."""
    taken = await uploads.take(DAMAGED_PDF, idempotency_key="k")
    again = await uploads.take(DAMAGED_PDF, idempotency_key="k")

    repair = taken.upload.document.repair
    assert repair is not None
    assert repair.original_sha256 == hashlib.sha256(DAMAGED_PDF).hexdigest()
    assert (again.upload, again.is_repeated) == (taken.upload, True)
    assert uploads.kept() == {taken.upload.document.sha256, repair.original_sha256}
    uploads.core.clock.forward(31 * DAY)
    await uploads.sweep()
    assert uploads.kept() == set()


async def test_copy_is_no_answer_to_whoever_wants_none(uploads: Uploads) -> None:
    """By the key of an order that let a copy be made, or of an earlier version."""
    taken = (await uploads.take(DAMAGED_PDF, idempotency_key="k")).upload
    assert taken.document.repair is not None

    for _ in range(2):
        await refused(
            uploads.take(DAMAGED_PDF, idempotency_key="k", repairs=False),
            ErrorCode.IDEMKEY_CONFLICT,
        )
        again = await uploads.take(DAMAGED_PDF, idempotency_key="k")
        assert again.is_repeated
        async with uploads.core.store.write() as transaction:
            unsaid = update(uploaded_document).values(repairs=None)
            await transaction.connection.execute(unsaid)


async def test_copy_that_comes_as_it_is(uploads: Uploads) -> None:
    """It is no copy there, and the earlier upload is one all the same."""
    first = (await uploads.take(DAMAGED_PDF)).upload
    repair = first.document.repair
    assert repair is not None
    copy = await uploads.files.get(uploads.mine, first.document.sha256)

    own = await uploads.take(copy, idempotency_key="k", repairs=False)
    again = await uploads.take(copy, idempotency_key="k", repairs=False)

    assert own.upload.document.id == first.document.id
    assert own.upload.document.repair is None
    assert FindingKind.REPAIRED not in own.upload.document.inspection.findings
    assert await uploads.service.get(uploads.mine, own.upload.id) == own.upload
    assert (again.upload, again.is_repeated) == (own.upload, True)
    assert await uploads.service.get(uploads.mine, first.id) == first
    assert FindingKind.REPAIRED in first.document.inspection.findings

    await uploads.request_of(own.upload.id)
    await uploads.service.remove(uploads.mine, "integrator:x", first.id)
    assert uploads.kept() == {first.document.sha256}
    (view,) = await uploads.views()
    assert (view.repair, FindingKind.REPAIRED in view.inspection.findings) == (
        None,
        False,
    )


async def test_original_stays_with_the_request_of_its_copy(uploads: Uploads) -> None:
    """Whatever becomes of others that came as the same bytes."""
    first = (await uploads.take(DAMAGED_PDF)).upload
    copy = await uploads.files.get(uploads.mine, first.document.sha256)
    own = (await uploads.take(copy)).upload
    await uploads.request_of(first.id)
    before = await uploads.views()

    for each in (first, own):
        await uploads.service.remove(uploads.mine, "integrator:x", each.id)
    await uploads.take(copy, repairs=False)
    uploads.core.clock.forward(2 * DAY)
    await uploads.sweep()

    assert first.document.repair is not None
    original = first.document.repair.original_sha256
    assert uploads.kept() == {first.document.sha256, original}
    assert await uploads.views() == before
    assert before[0].repair == first.document.repair


async def test_key_stands_for_one_upload(uploads: Uploads) -> None:
    """The same again gives the same; something else is a conflict; gone is gone."""
    taken = await uploads.take(pdf("1"), idempotency_key="k")
    again = await uploads.take(pdf("1"), idempotency_key="k")

    assert (taken.is_repeated, again.is_repeated) == (False, True)
    assert again.upload == taken.upload
    others: list[tuple[bytes, dict[str, Any]]] = [
        (pdf("2"), {}),
        (pdf("1"), {"name": "otro.pdf"}),
        (pdf("1"), {"repairs": False}),
    ]
    for content, changes in others:
        await refused(
            uploads.take(content, idempotency_key="k", **changes),
            ErrorCode.IDEMKEY_CONFLICT,
        )
    assert (await uploads.take(pdf("1"), idempotency_key="K")).upload != taken.upload
    await uploads.service.remove(uploads.mine, "integrator:x", taken.upload.id)
    await refused(
        uploads.take(pdf("1"), idempotency_key="k"), ErrorCode.DOCUMENT_NOT_FOUND
    )
    assert len(await uploads.events(EventKind.DOCUMENT_UPLOADED)) == 2


async def test_key_used_at_once_makes_one(uploads: Uploads) -> None:
    """All are told of the same one; one of them made it."""
    taken = await asyncio.gather(
        *(uploads.take(pdf("1"), idempotency_key="k") for _ in range(10))
    )

    assert len({each.upload.id for each in taken}) == 1
    assert [each.is_repeated for each in taken].count(False) == 1
    assert await uploads.ids() == [taken[0].upload.id]
    assert len(await uploads.events(EventKind.DOCUMENT_UPLOADED)) == 1


async def test_backend_uploads_so_many_bytes_and_no_more(uploads: Uploads) -> None:
    """What nobody is asked to sign counts, each document once; what is refused not."""
    limits = DocumentSettings(limit_bytes=10 * KIB, integrator_bytes=25 * KIB)
    uploads.service = uploads.with_(limits)
    for _ in range(3):
        with pytest.raises(DocumentRefusedError):
            await uploads.take(b"no PDF".ljust(10 * KIB))
    taken = [(await uploads.take(pdf(n, 10 * KIB))).upload for n in "12"]
    await uploads.take(pdf("2", 10 * KIB))

    await refused(uploads.take(pdf("3", 10 * KIB)), ErrorCode.DOCUMENT_QUOTA)
    assert uploads.kept() == {each.document.sha256 for each in taken}
    await uploads.take(pdf("3", 10 * KIB), integrator=OTHER)

    await uploads.request_of(taken[0].id)
    await uploads.take(pdf("3", 10 * KIB))
    await refused(uploads.take(pdf("4", 10 * KIB)), ErrorCode.DOCUMENT_QUOTA)
    await uploads.service.remove(uploads.mine, "integrator:x", taken[1].id)
    await refused(uploads.take(pdf("4", 10 * KIB)), ErrorCode.DOCUMENT_QUOTA)


async def test_damaged_file_counts_beside_its_copy(uploads: Uploads) -> None:
    """Once, however often it comes; not where it comes again."""
    taken = [await uploads.take(DAMAGED_PDF) for _ in range(2)]
    size = taken[0].upload.document.inspection.size_bytes
    sha256 = hashlib.sha256(DAMAGED_PDF).hexdigest()

    async with uploads.core.store.read() as transaction:
        found = UploadedDocumentStore(transaction)
        assert await found.waiting_bytes(uploads.mine, "") == size + len(DAMAGED_PDF)
        assert await found.waiting_bytes(uploads.mine, sha256) == 0
        assert await found.waiting_bytes(OTHER, "") == 0


async def test_nothing_is_left_of_what_was_refused(uploads: Uploads) -> None:
    """No row and no file: of a bad one, a bad name, or where the sandbox is away."""
    away = uploads.with_(DocumentSettings(), AwayInspector(pages=1))
    await refused(
        away.take(uploads.order(idempotency_key="k"), pdf("1")),
        ErrorCode.SANDBOX_UNAVAILABLE,
    )
    await refused(uploads.take(pdf("1"), name="../a.pdf"), ErrorCode.FILENAME)
    await refused(uploads.take(b""), ErrorCode.DOCUMENT_EMPTY)

    assert uploads.kept() == set()
    assert await uploads.ids() == []
    assert await uploads.events(EventKind.DOCUMENT_UPLOADED) == []
    # The key stands for nothing yet.
    taken = await uploads.take(pdf("2"), idempotency_key="k")
    assert not taken.is_repeated


async def test_refused_uploads_fill_no_disk(uploads: Uploads) -> None:
    """Whose key stands for another file by then: nothing of them is left."""
    await uploads.take(pdf("1"), idempotency_key="k")
    earlier = uploads.service._earlier

    async def late(*_: object) -> None:
        """The other call is not seen before the document is kept."""

    uploads.service._earlier = late  # type: ignore[method-assign, assignment]
    for number in range(10):
        await refused(
            uploads.take(pdf(f"x{number}"), idempotency_key="k"),
            ErrorCode.IDEMKEY_CONFLICT,
        )
    uploads.service._earlier = earlier  # type: ignore[method-assign]

    assert len(uploads.kept()) == 1


async def test_deleted_upload_makes_room_at_once(uploads: Uploads) -> None:
    """Of a damaged one both files are gone; what a session has still counts."""
    limits = DocumentSettings(limit_bytes=10 * KIB, integrator_bytes=25 * KIB)
    uploads.service = uploads.with_(limits)
    for number in range(6):
        taken = (await uploads.take(pdf(str(number), 10 * KIB))).upload
        damaged = (await uploads.take(DAMAGED_PDF)).upload
        assert len(uploads.kept()) == 3
        for each in (taken, damaged):
            await uploads.service.remove(uploads.mine, "integrator:x", each.id)
        assert uploads.kept() == set()
    assert len(await uploads.events(EventKind.DOCUMENT_REMOVED)) == 18


async def test_deleted_upload_that_stays_counts(uploads: Uploads) -> None:
    """Where its file cannot be removed: until it is."""
    limits = DocumentSettings(limit_bytes=10 * KIB, integrator_bytes=25 * KIB)
    uploads.service = uploads.with_(limits)

    async def away(*_: object) -> bool:
        raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)

    removing = uploads.files.remove_unneeded
    uploads.files.remove_unneeded = away  # type: ignore[method-assign, assignment]
    for number in "12":
        taken = (await uploads.take(pdf(number, 10 * KIB))).upload
        await uploads.service.remove(uploads.mine, "integrator:x", taken.id)
        assert await uploads.ids() == []

    await refused(uploads.take(pdf("3", 10 * KIB)), ErrorCode.DOCUMENT_QUOTA)
    uploads.files.remove_unneeded = removing  # type: ignore[method-assign]
    uploads.core.clock.forward(61)
    passing = PassingDocuments(uploads.core.store, uploads.files, uploads.core.clock)
    assert await passing.sweep() == 2
    await uploads.take(pdf("3", 10 * KIB))


async def test_known_document_is_examined_once(uploads: Uploads) -> None:
    """By the record, and in memory where nothing was recorded; of one's own alone."""
    sandbox = CountingInspector(pages=2)
    service = uploads.with_(DocumentSettings(), sandbox)
    first = await service.take(uploads.order(), pdf("1"))
    again = await service.take(uploads.order(name="b.pdf"), pdf("1"))
    assert sandbox.seen == 1
    assert again.upload.document == first.upload.document
    for each in (first, again):
        await service.remove(uploads.mine, "integrator:x", each.upload.id)
    await service.take(uploads.order(), pdf("1"))
    assert sandbox.seen == 1
    other = uploads.with_(DocumentSettings(), sandbox)
    await other.take(uploads.order(name="c.pdf"), pdf("1"))
    assert sandbox.seen == 1
    await service.take(uploads.order(integrator=OTHER), pdf("1"))
    assert sandbox.seen == 2
