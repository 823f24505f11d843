"""What a call keeps goes with it: refused, broken off or killed; on both databases."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import pytest
from sqlalchemy import func, select

from appliance.database.tables import document, passing_document
from appliance.documents.document_store import DocumentStore
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.documents.passing_document_store import PassingDocumentStore
from appliance.documents.passing_documents import PassingDocuments
from appliance.domain.documents.inspected import Inspection
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import DocumentId, IntegratorId, PersonId, new_id
from appliance.domain.requests.intake import NewRequest, StoredDocument
from appliance.requests.request_store import RequestStore
from tests.support.factories.fakes import FixedDocumentKeys
from tests.support.installation.record import A4, CoreFixture

pytestmark = pytest.mark.storage
ONE, TWO = b"%PDF one", b"%PDF two"
HOUR: Final = 3_600


class Disk(LocalBlobStore):
    """A folder in which something may happen before a file is removed."""

    before_removal: Callable[[], Awaitable[None]] | None = None

    async def remove_unneeded(
        self,
        integrator: IntegratorId,
        sha256: str,
        is_needed: Callable[[], Awaitable[bool]],
    ) -> bool:
        """The same, with that before it."""
        if self.before_removal is not None:
            await self.before_removal()
        return await super().remove_unneeded(integrator, sha256, is_needed)


class Shelf:
    """The store of documents beside a record."""

    def __init__(self, core: CoreFixture, mine: IntegratorId, signer: PersonId) -> None:
        self.core, self.mine, self.signer = core, mine, signer
        self.disk = Disk(core.settings.documents_dir, FixedDocumentKeys())
        self.passing = PassingDocuments(core.store, self.disk, core.clock)

    def files(self) -> set[str]:
        """SHA-256 of every file."""
        return {path.stem for path in self.core.settings.documents_dir.rglob("*.pdf")}

    async def rows(self) -> int:
        """How many files are on their way."""
        async with self.core.store.read() as transaction:
            query = select(func.count()).select_from(passing_document)
            return await transaction.connection.scalar(query) or 0

    async def waiting(self) -> int:
        """How many bytes count."""
        async with self.core.store.read() as transaction:
            return await PassingDocumentStore(transaction).passing_bytes(self.mine)

    async def refused(self, *pdfs: bytes) -> None:
        """A call that keeps documents, and is refused."""
        with pytest.raises(ApplianceError):
            async with self.passing.keeping(self.mine, pdfs):
                raise ApplianceError(ErrorCode.REFERENCE_IN_USE)

    async def recorded(self, pdf: bytes) -> None:
        """A call that keeps one, and records it."""
        inspection = Inspection(len(pdf), (A4,), (), 0, None)
        new = StoredDocument(DocumentId(new_id()), self.mine, name(pdf), inspection)
        async with (
            self.passing.keeping(self.mine, [pdf]) as kept,
            self.core.store.write() as transaction,
        ):
            await kept.recorded(transaction)
            made = await DocumentStore(transaction).add(new, self.core.now)
            await RequestStore(transaction).add(
                NewRequest(
                    self.signer,
                    self.mine,
                    made.id,
                    "a.pdf",
                    "api",
                    self.core.now,
                    None,
                )
            )


def name(pdf: bytes) -> str:
    """What its file is named by."""
    return hashlib.sha256(pdf).hexdigest()


@pytest.fixture
async def shelf(core: CoreFixture) -> Shelf:
    """Of one integrator."""
    signer = await core.add_signer()
    return Shelf(core, await core.integrator(), signer.person)


async def test_nothing_is_left_of_a_call_that_is_refused(shelf: Shelf) -> None:
    """However often it is made: neither file nor row."""
    for number in range(20):
        await shelf.refused(ONE, b"%%PDF %d" % number)

    assert shelf.files() == set()
    assert (await shelf.rows(), await shelf.waiting()) == (0, 0)


async def test_call_that_is_cancelled_leaves_nothing(shelf: Shelf) -> None:
    """While it is still being put in: it is removed once it is there."""
    begun, goes_on = asyncio.Event(), asyncio.Event()
    put_all = shelf.disk.put_all

    async def slow(*arguments: object) -> None:
        begun.set()
        await goes_on.wait()
        await put_all(*arguments)  # type: ignore[arg-type]

    shelf.disk.put_all = slow  # type: ignore[method-assign, assignment]
    call = asyncio.create_task(shelf.recorded(ONE))
    await begun.wait()
    call.cancel()
    await asyncio.sleep(0)
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert shelf.files() == set()
    assert await shelf.rows() == 0


async def test_what_somebody_else_has_stays(shelf: Shelf) -> None:
    """The same file, recorded before, or kept by a call that goes on."""
    await shelf.recorded(ONE)
    async with shelf.passing.keeping(shelf.mine, [TWO]):
        await shelf.refused(ONE, TWO)

        assert shelf.files() == {name(ONE), name(TWO)}
    assert shelf.files() == {name(ONE)}
    assert await shelf.rows() == 0


async def test_of_many_calls_with_one_file_those_that_record_it_have_it(
    shelf: Shelf,
) -> None:
    """Refused and recorded at once, in whatever order: the row is never without it."""
    for _ in range(8):
        pdfs = [b"%%PDF %s" % new_id().encode() for _ in range(2)]
        await asyncio.gather(
            *(shelf.refused(*pdfs) for _ in range(3)),
            shelf.recorded(pdfs[0]),
            shelf.refused(*pdfs[::-1]),
        )
        async with shelf.core.store.read() as transaction:
            rows = await transaction.connection.execute(select(document.c.sha256))
            named = set(rows.scalars())

        assert named <= shelf.files()
        assert name(pdfs[1]) not in shelf.files()
        assert await shelf.rows() == 0


async def test_who_brings_it_while_it_is_removed_has_it(shelf: Shelf) -> None:
    """Between the end of the one call and the removal of its file."""
    keeping = shelf.passing.keeping(shelf.mine, [ONE])

    async def bring() -> None:
        shelf.disk.before_removal = None
        await keeping.__aenter__()

    shelf.disk.before_removal = bring
    await shelf.refused(ONE)

    assert shelf.files() == {name(ONE)}
    await keeping.__aexit__(None, None, None)
    assert shelf.files() == set()


async def test_killed_call_counts_until_it_is_swept(shelf: Shelf) -> None:
    """Its files go an hour later; it can record nothing then, should it still live."""
    keeping = shelf.passing.keeping(shelf.mine, [ONE, TWO, ONE])
    kept = await keeping.__aenter__()
    assert await shelf.waiting() == len(ONE) + len(TWO)
    assert await shelf.passing.sweep() == 0
    assert shelf.files() == {name(ONE), name(TWO)}

    shelf.core.clock.forward(HOUR + 1)

    assert await shelf.passing.sweep() == 2
    assert shelf.files() == set()
    assert (await shelf.rows(), await shelf.waiting()) == (0, 0)
    with pytest.raises(ApplianceError, match="UNAVAILABLE: The store of documents"):
        async with shelf.core.store.write() as transaction:
            await kept.recorded(transaction)


async def test_call_that_was_taken_for_dead_leaves_nothing(shelf: Shelf) -> None:
    """Though its rows were gone before its file came: chores' clock was ahead."""
    put_all = shelf.disk.put_all

    async def late(*arguments: object) -> None:
        shelf.core.clock.forward(HOUR + 1)
        assert await shelf.passing.sweep() == 0
        await put_all(*arguments)  # type: ignore[arg-type]

    shelf.disk.put_all = late  # type: ignore[method-assign, assignment]
    with pytest.raises(ApplianceError) as refusal:
        await shelf.recorded(ONE)

    assert refusal.value.code is ErrorCode.STORE_UNAVAILABLE
    assert shelf.files() == set()
    assert await shelf.rows() == 0


async def test_what_cannot_be_removed_counts_and_is_tried_again(shelf: Shelf) -> None:
    """Where the store of documents is away at the end of the call."""

    async def away() -> None:
        raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)

    shelf.disk.before_removal = away
    await shelf.refused(ONE)
    assert await shelf.waiting() == len(ONE)
    shelf.disk.before_removal = None
    assert await shelf.passing.sweep() == 0

    shelf.core.clock.forward(timedelta(minutes=2).total_seconds())

    assert await shelf.passing.sweep() == 1
    assert (shelf.files(), await shelf.waiting()) == (set(), 0)
