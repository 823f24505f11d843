"""Whose folder or bucket of documents it is: marked once, where there is no doubt.

Source: docs/storage.md "The folder's mark", "In an S3-compatible store".
"""

import asyncio
import shutil
import threading
from pathlib import Path

import pytest

from appliance.documents.document_files import name_of
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.documents.local.folder_mark import (
    FILE,
    DocumentMark,
    mark_folder,
    mark_place,
)
from appliance.documents.s3 import bucket_mark
from appliance.documents.s3.bucket import Bucket
from appliance.domain.errors import DocumentsAwayError
from appliance.domain.ids import IntegratorId
from appliance.record.installation_store import InstallationStore
from appliance.settings import SettingsError
from tests.support.factories.document_storage import BucketStorage, DocumentStorage
from tests.support.factories.fakes import FixedDocumentKeys
from tests.support.installation.record import CoreFixture
from tests.support.services.s3 import S3Server

ONE = IntegratorId("00000000-0000-4000-8000-000000000001")


@pytest.fixture
def folder(core: CoreFixture) -> Path:
    """The folder of the installation's documents."""
    return core.settings.documents_dir


async def with_document(core: CoreFixture, place: DocumentStorage) -> str:
    """A document that the record names, and the name of its file."""
    await core.add_request((await core.add_signer()).person)
    async with core.store.read() as transaction:
        ((integrator, sha256),) = await InstallationStore(transaction).newest_documents(
            9
        )
    name = name_of(integrator, sha256)
    place.write(name, b"%PDF")
    return name


async def check(core: CoreFixture, place: DocumentStorage) -> None:
    """Have a store look at the mark for the first time."""
    await place.store_with(FixedDocumentKeys(), core.store).check()


async def test_empty_place_of_an_empty_record_is_marked_once(
    core: CoreFixture, document_storage: DocumentStorage
) -> None:
    """The same mark stays; whoever is second changes nothing."""
    assert await mark_place(core.store, document_storage.to_mark)
    mark = document_storage.read(FILE)

    assert not await mark_place(core.store, document_storage.to_mark)

    assert document_storage.read(FILE) == mark
    await check(core, document_storage)


async def test_two_hosts_that_mark_at_once_have_one_mark(
    core: CoreFixture, document_storage: DocumentStorage
) -> None:
    """Whoever comes second takes the first one's."""
    stores = [core.store, *(core.other_store() for _ in range(3))]
    await asyncio.gather(
        *(mark_place(store, document_storage.to_mark) for store in stores)
    )

    await check(core, document_storage)


async def test_place_with_a_document_of_the_record_is_marked(
    core: CoreFixture, document_storage: DocumentStorage
) -> None:
    """As of a release before the mark; and again, where the mark alone was lost."""
    await with_document(core, document_storage)

    assert await mark_place(core.store, document_storage.to_mark)

    mark = document_storage.read(FILE)
    document_storage.remove(FILE)
    assert await mark_place(core.store, document_storage.to_mark)
    assert document_storage.read(FILE) == mark


async def test_mark_of_a_lost_record_is_taken_over(
    core: CoreFixture, document_storage: DocumentStorage
) -> None:
    """The record is of a backup from before it was marked; its documents are there."""
    await with_document(core, document_storage)
    document_storage.write(FILE, b"of before\n")

    assert await mark_place(core.store, document_storage.to_mark)

    assert document_storage.read(FILE) == b"of before\n"
    await check(core, document_storage)


async def test_empty_record_takes_over_no_mark(
    core: CoreFixture, document_storage: DocumentStorage
) -> None:
    """Of an installation that may have no document yet; nor does a role of it write."""
    document_storage.write(FILE, b"another's\n")

    for _ in range(2):
        with pytest.raises(SettingsError, match="another installation's"):
            await mark_place(core.store, document_storage.to_mark)

    assert document_storage.read(FILE) == b"another's\n"
    with pytest.raises(DocumentsAwayError):
        await check(core, document_storage)
    # It is nobody's any more; what the other one left is no document of this record.
    left = name_of(IntegratorId("00000000-0000-4000-8000-000000000001"), "ab" * 32)
    document_storage.write(left, b"x")
    document_storage.remove(FILE)
    with pytest.raises(SettingsError, match="holds documents, and the record has none"):
        await mark_place(core.store, document_storage.to_mark)
    document_storage.remove(left)
    assert await mark_place(core.store, document_storage.to_mark)
    await check(core, document_storage)


async def test_place_is_marked_by_who_was_killed_in_the_midst_of_it(
    core: CoreFixture, document_storage: DocumentStorage
) -> None:
    """The record had the mark already, and the place not yet."""

    class Killed(Exception):  # noqa: N818 (what happens)
        pass

    def end(mark: str) -> None:
        raise Killed(mark)

    to_mark = document_storage.to_mark
    to_mark.write = end  # type: ignore[method-assign]  # so that it ends there
    with pytest.raises(Killed) as begun:
        await mark_place(core.store, to_mark)
    assert document_storage.names() == []

    assert await mark_place(core.store, document_storage.to_mark)

    assert document_storage.read(FILE).decode().strip() == str(begun.value)


async def test_of_two_installations_that_mark_a_bucket_at_once_one_has_it(
    core: CoreFixture, s3_server: S3Server
) -> None:
    """The other one is told, and the first one's mark stays."""
    place = BucketStorage(s3_server.settings(s3_server.new_bucket()))
    to_mark = place.to_mark
    look = to_mark.is_ours

    def marked_meanwhile(names: list[str]) -> bool:
        is_ours = look(names)
        place.write(FILE, b"another's\n")
        return is_ours

    to_mark.is_ours = marked_meanwhile  # type: ignore[method-assign]  # another's turn
    with pytest.raises(SettingsError, match="by another installation"):
        await mark_place(core.store, to_mark)

    assert place.read(FILE) == b"another's\n"
    with pytest.raises(DocumentsAwayError):
        await check(core, place)


@pytest.mark.parametrize("case", ["not mounted", "of another", "strange documents"])
async def test_place_that_may_be_anothers_is_not_marked(
    core: CoreFixture, document_storage: DocumentStorage, case: str
) -> None:
    """It is refused, and stays as it is."""
    if case == "strange documents":
        document_storage.write(name_of(ONE, "a" * 64), b"%PDF")
    else:
        await with_document(core, document_storage)
        await mark_place(core.store, document_storage.to_mark)
        if case == "of another":
            document_storage.write(FILE, b"another's\n")
        else:
            for name in document_storage.names():
                document_storage.remove(name)
    before = document_storage.names()

    with pytest.raises(SettingsError, match=document_storage.to_mark.name):
        await mark_place(core.store, document_storage.to_mark)

    assert document_storage.names() == before


async def test_documents_are_neither_read_nor_written_in_another_bucket(
    core: CoreFixture, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has another mark, or none, once what was seen of it is not believed."""
    monkeypatch.setattr("appliance.documents.s3.bucket_mark.RIGHT_S", 0.0)
    monkeypatch.setattr("appliance.documents.s3.bucket_mark.AWAY_S", 0.0)
    place = BucketStorage(s3_server.settings(s3_server.new_bucket()))
    await mark_place(core.store, place.to_mark)
    documents = place.store_with(FixedDocumentKeys(), core.store)
    sha256 = await documents.put(ONE, b"%PDF one")
    mark, before = place.read(FILE), place.names()

    for content in (None, b"another's\n"):
        place.remove(FILE) if content is None else place.write(FILE, content)
        names = place.names()
        for call in (
            documents.check(),
            documents.put(ONE, b"%PDF two", signed=True),
            documents.get(ONE, sha256),
            documents.stream(ONE, sha256),
            documents.make_room(1),
            documents.remove(ONE, sha256, core.clock.now()),
        ):
            with pytest.raises(DocumentsAwayError):
                await call
        assert place.names() == names
    place.write(FILE, mark)

    assert await documents.get(ONE, sha256) == b"%PDF one"
    assert place.names() == before


async def test_bucket_is_asked_for_its_mark_now_and_then(
    core: CoreFixture, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for any number of documents at a time; anew after a request that failed."""
    place = BucketStorage(s3_server.settings(s3_server.new_bucket()))
    await mark_place(core.store, place.to_mark)
    looks = []
    mark_of = bucket_mark.mark_of

    def counted(bucket: Bucket) -> str | None:
        looks.append(bucket)
        return mark_of(bucket)

    monkeypatch.setattr(bucket_mark, "mark_of", counted)
    documents = place.store_with(FixedDocumentKeys(), core.store)

    await asyncio.gather(*(documents.put(ONE, b"%%PDF %d" % n) for n in range(20)))
    await documents.check()
    assert len(looks) == 1

    with pytest.raises(DocumentsAwayError):
        await documents._run(_refused)  # type: ignore[attr-defined]  # of a bucket
    await documents.check()
    assert len(looks) == 2


def _refused() -> None:
    raise DocumentsAwayError


async def test_documents_are_neither_read_nor_written_elsewhere(
    core: CoreFixture, folder: Path
) -> None:
    """In a folder that has another mark, or none; and again in the right one."""
    mark = DocumentMark(core.store, folder)
    await mark_folder(core.store, folder)
    documents = LocalBlobStore(folder, FixedDocumentKeys(), mark=mark)
    sha256 = await documents.put(ONE, b"%PDF one")
    right = folder.rename(folder.with_name("right"))

    for mark_of_other in (None, "another's\n"):
        folder.mkdir(exist_ok=True)
        if mark_of_other is not None:
            (folder / FILE).write_text(mark_of_other)
        before = sorted(folder.iterdir())
        with pytest.raises(DocumentsAwayError):
            await documents.check()
        with pytest.raises(DocumentsAwayError):
            await documents.put(ONE, b"%PDF two", signed=True)
        with pytest.raises(DocumentsAwayError):
            await documents.get(ONE, sha256)
        with pytest.raises(DocumentsAwayError):
            await documents.stream(ONE, sha256)
        with pytest.raises(DocumentsAwayError):
            await documents.make_room(1)
        with pytest.raises(DocumentsAwayError):
            await documents.remove(ONE, sha256, core.clock.now())
        assert sorted(folder.iterdir()) == before
    shutil.rmtree(folder)
    right.rename(folder)

    assert await documents.get(ONE, sha256) == b"%PDF one"
    (folder / FILE).write_text("another's\n")
    with pytest.raises(DocumentsAwayError):
        await documents.get(ONE, sha256)


async def test_folder_that_hangs_keeps_one_thread(
    core: CoreFixture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Callers that give up, again and again, leave one look behind and not one each."""
    mark = DocumentMark(core.store, folder)
    answer = threading.Event()
    looks: list[str | None] = []

    async def known() -> str:
        return "a"

    def hang(wanted: str | None) -> None:
        looks.append(wanted)
        answer.wait()

    monkeypatch.setattr(mark._wanted, "get", known)
    monkeypatch.setattr(mark, "demand", hang)
    given_up = asyncio.create_task(mark.check())
    # By then it waits for its thread.
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait({given_up})
    others = [asyncio.create_task(mark.check()) for _ in range(3)]
    await asyncio.sleep(0)
    answer.set()
    await asyncio.gather(*others)

    assert looks == ["a"]


async def test_mark_that_is_set_later_is_asked_for(
    core: CoreFixture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role that came before the first mark learns of it."""
    monkeypatch.setattr("appliance.documents.local.folder_mark._ASK_AGAIN_S", 0.0)
    mark = DocumentMark(core.store, folder)
    await mark.check()
    await mark_folder(core.store, folder)
    (folder / FILE).unlink()

    with pytest.raises(DocumentsAwayError):
        await mark.check()


async def test_folder_that_cannot_be_marked_is_told(
    core: CoreFixture, tmp_path: Path
) -> None:
    """In a sentence with its path, and the record says nothing of a mark."""
    folder = tmp_path / "file" / "documents"
    folder.parent.write_bytes(b"")

    with pytest.raises(SettingsError, match=str(folder.parent)):
        await mark_folder(core.store, folder)

    async with core.store.read() as transaction:
        assert await InstallationStore(transaction).documents_mark() is None
