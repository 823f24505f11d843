"""What nobody needs leaves the store of documents, and nothing else ever does."""

import asyncio
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from appliance.database import tables
from appliance.documents.document_keys import IntegratorDocumentKeys
from appliance.documents.document_store import (
    NAMING,
    REFERRING,
    DocumentKeyStore,
    DocumentStore,
)
from appliance.documents.garbage_collection import GarbageCollection
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.documents.inspected import Damage, Inspection, Repair, as_it_came
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import DocumentId, new_id
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.vocab import EventKind
from appliance.secrets.sealed_box import SecretBox
from appliance.settings import DocumentSettings
from tests.support.factories.fakes import FixedDocumentKeys
from tests.support.installation.record import A4, CoreFixture, signed_view

WEEK = 7 * 86_400


def store_of(core: CoreFixture) -> LocalBlobStore:
    """The store of documents beside a record."""
    return LocalBlobStore(core.settings.documents_dir, FixedDocumentKeys())


def sweeping(core: CoreFixture) -> GarbageCollection:
    """The chore, as it is begun anew."""
    return GarbageCollection(core.store, store_of(core), core.clock, DocumentSettings())


def age(core: CoreFixture, seconds: float) -> None:
    """Have every file been written that long before the record's time."""
    at = core.now.timestamp() - seconds
    for path in core.settings.documents_dir.rglob("*"):
        if path.is_file():
            os.utime(path, (at, at))


async def add_row(core: CoreFixture, sha256: str) -> None:
    """Record a document that nothing refers to."""
    inspection = Inspection(1, (A4,), (), 0, None)
    integrator = await core.integrator()
    new = StoredDocument(DocumentId(new_id()), integrator, sha256, inspection)
    async with core.store.write() as transaction:
        await DocumentStore(transaction).add(new, core.now)


def files(core: CoreFixture) -> set[str]:
    """SHA-256 of every document that is there."""
    return {path.stem for path in core.settings.documents_dir.rglob("*.pdf")}


def test_every_table_that_names_documents_is_asked() -> None:
    """What refers to a document's row, or names a file, keeps both."""
    assert {column.table.name for column in REFERRING} >= {
        "signature_request",
        "embed_session",
    }
    assert {table.name for table in NAMING} >= {"document", "signed_document"}
    hashing = {table for table in tables.metadata.sorted_tables if "sha256" in table.c}
    # A root's fingerprint names no document, a logo's bytes stand in its row, and what
    # a signer fetched is the document of its request.
    others = {tables.trust_anchor, tables.logo, tables.shown_document}
    assert hashing - others == set(NAMING)


async def test_unused_is_removed_and_used_is_kept(core: CoreFixture) -> None:
    """After a week: a file without a row, a row without a use; nothing younger."""
    documents, integrator = store_of(core), await core.integrator()
    signer = await core.add_signer()
    used = await documents.put(integrator, b"used")
    signed = await documents.put(integrator, b"signed")
    rowless = await documents.put(integrator, b"without a row")
    request = await core.add_request(signer.person, sha256=used)
    view = await core.view(request)
    async with core.store.write() as transaction:
        made = signed_view(view)
        await DocumentStore(transaction).sealed(
            request, replace(made, sha256=signed), core.now
        )
    unused = await documents.put(integrator, b"unused")
    await add_row(core, unused)
    age(core, 0)

    core.clock.forward(WEEK - 1)
    early = await sweeping(core).run()
    core.clock.forward(2)
    late = await sweeping(core).run()

    assert (early, late) == (0, 2)
    assert files(core) == {used, signed}
    assert rowless not in files(core)
    assert (await core.audited()).count(EventKind.DOCUMENT_REMOVED.value) == 2


async def test_damaged_original_stays_as_long_as_its_copy(core: CoreFixture) -> None:
    """No row is the original's own; it goes a week after the copy is forgotten."""
    documents, integrator = store_of(core), await core.integrator()
    original = await documents.put(integrator, b"damaged")
    copy = await documents.put(integrator, b"repaired")
    repair = Repair(original, (Damage.SYNTAX,))
    new = StoredDocument(
        DocumentId(new_id()),
        integrator,
        copy,
        as_it_came(Inspection(1, (A4,), (), 0, None), repair),
        repair,
    )
    async with core.store.write() as transaction:
        kept = await DocumentStore(transaction).add(new, core.now)
    age(core, WEEK + 1)

    early = await sweeping(core).run()
    async with core.store.read() as transaction:
        found = await DocumentStore(transaction).repaired(integrator, original)
    core.clock.forward(WEEK + 1)
    age(core, WEEK + 1)
    late = await sweeping(core).run()

    assert (early, late) == (0, 2)
    assert found == kept
    async with core.store.read() as transaction:
        assert await DocumentStore(transaction).repaired(integrator, original) is None


async def test_original_goes_that_nothing_came_as(core: CoreFixture) -> None:
    """Its copy stays for a request that it came to as it is, or of another original."""
    documents, integrator = store_of(core), await core.integrator()
    signer = await core.add_signer()
    copy = await documents.put(integrator, b"copy")
    originals = [
        await documents.put(integrator, content) for content in (b"one", b"two")
    ]
    repairs = [Repair(each, (Damage.SYNTAX,)) for each in originals]
    made = [
        await core.add_request(signer.person, sha256=copy, repair=repair)
        for repair in (repairs[0], None, repairs[1])
    ]
    views = [await core.view(each) for each in made]
    assert [view.repair for view in views] == [repairs[0], None, repairs[1]]
    async with core.store.write() as transaction:
        gone = tables.signature_request.c.id == made[0]
        await transaction.connection.execute(
            tables.signature_request.delete().where(gone)
        )
    age(core, 0)
    core.clock.forward(WEEK + 1)

    assert await sweeping(core).run() == 1

    assert files(core) == {copy, originals[1]}
    assert [await core.view(each) for each in made[1:]] == views[1:]


async def test_what_comes_in_again_counts_as_new(core: CoreFixture) -> None:
    """Row and file say when it came last."""
    documents, integrator = store_of(core), await core.integrator()
    sha256 = await documents.put(integrator, b"again")
    await add_row(core, sha256)
    core.clock.forward(WEEK + 1)
    age(core, WEEK + 1)
    await add_row(core, sha256)

    assert await sweeping(core).run() == 0
    assert files(core) == {sha256}


async def test_document_that_comes_in_meanwhile_is_there(
    sqlite_core: CoreFixture,
) -> None:
    """Put while it is being removed, many times: after `put` the file stands."""
    documents, integrator = store_of(sqlite_core), await sqlite_core.integrator()
    long_ago = sqlite_core.now + timedelta(days=36_500)
    sha256 = await documents.put(integrator, b"both")
    soon = sqlite_core.now

    for _ in range(30):
        os.utime(next(sqlite_core.settings.documents_dir.rglob("*.pdf")), (0, 0))
        await asyncio.gather(
            documents.put(integrator, b"both"),
            documents.remove(integrator, sha256, soon),
        )
        assert await documents.get(integrator, sha256) == b"both"
    assert await documents.remove(integrator, sha256, long_ago)


async def test_leftovers_of_killed_writers_go_after_a_day(core: CoreFixture) -> None:
    """Not those of a writer that is at work, and not the reserve."""
    documents, integrator = store_of(core), await core.integrator()
    await documents.put(integrator, b"x")
    await core.add_request((await core.add_signer()).person)
    (shelf,) = core.settings.documents_dir.glob("*/??")
    left = shelf / ".new-0011223344556677"
    left.write_bytes(b"half")
    reserve = core.settings.documents_dir / ".reserve"
    reserve.write_bytes(b"")
    age(core, 0)

    core.clock.forward(86_399)
    await sweeping(core).run()
    there = left.exists()
    core.clock.forward(2)
    await sweeping(core).run()

    assert there
    assert not left.exists()
    assert reserve.exists()
    assert len(files(core)) == 1


async def test_key_is_made_once_and_shredded_for_good(core: CoreFixture) -> None:
    """Twenty at once get one key; when it is removed no process opens anything."""
    integrator = await core.integrator()
    sealer = SecretBox(KeyRing.of(b"d" * 32))
    keys = IntegratorDocumentKeys(core.store, sealer, core.clock)
    other = IntegratorDocumentKeys(core.other_store(), sealer, core.clock)
    documents = LocalBlobStore(core.settings.documents_dir, other)

    made = await asyncio.gather(*(keys.make(integrator) for _ in range(20)))
    sha256 = await documents.put(integrator, b"secret")
    shredded = await keys.shred(integrator)

    assert len(set(made)) == 1
    assert shredded
    assert not await keys.shred(integrator)
    with pytest.raises(ApplianceError) as caught:
        await documents.get(integrator, sha256)
    assert caught.value.code is ErrorCode.DOCUMENT_DAMAGED
    assert await documents.put(integrator, b"secret") == sha256
    assert await documents.get(integrator, sha256) == b"secret"
    audited = await core.audited()
    assert audited.count(EventKind.DOCUMENT_KEY_CREATED.value) == 2
    assert audited.count(EventKind.DOCUMENT_KEY_DESTROYED.value) == 1


async def test_role_without_the_document_key_opens_nothing(
    sqlite_core: CoreFixture, tmp_path: Path
) -> None:
    """It is told so, and makes no key."""
    keys = IntegratorDocumentKeys(sqlite_core.store, None, sqlite_core.clock)
    documents = LocalBlobStore(tmp_path / "d", keys)

    with pytest.raises(ApplianceError) as caught:
        await documents.put(await sqlite_core.integrator(), b"x")

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    async with sqlite_core.store.read() as transaction:
        found = await DocumentKeyStore(transaction).get(await sqlite_core.integrator())
    assert found is None
