"""Whose folder of documents it is: marked once, where there can be no doubt.

Source: docs/storage.md "The folder's mark".
"""

import asyncio
import shutil
from pathlib import Path

import pytest

from appliance.domain.errors import DocumentsAwayError
from appliance.domain.ids import IntegratorId
from appliance.settings import SettingsError
from appliance.storage.document_mark import FILE, DocumentMark, mark_folder
from appliance.storage.documents import LocalDocuments
from tests.core_parts import CoreParts
from tests.fakes import FixedDocumentKeys

ONE = IntegratorId("00000000-0000-4000-8000-000000000001")


@pytest.fixture
def folder(core: CoreParts) -> Path:
    """The folder of the installation's documents."""
    return core.settings.documents_dir


async def with_document(core: CoreParts, folder: Path) -> Path:
    """A document that the record names, and its file."""
    await core.add_request((await core.add_signer()).person)
    async with core.store.read() as records:
        ((integrator, sha256),) = await records.installation.newest_documents(9)
    path = folder / integrator / sha256[:2] / f"{sha256}.pdf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"%PDF")
    return path


async def test_empty_folder_of_an_empty_record_is_marked_once(
    core: CoreParts, folder: Path
) -> None:
    """The same mark stays; whoever is second changes nothing."""
    assert await mark_folder(core.store, folder)
    mark = (folder / FILE).read_bytes()

    assert not await mark_folder(core.store, folder)

    assert (folder / FILE).read_bytes() == mark
    await DocumentMark(core.store, folder).check()


async def test_two_hosts_that_mark_at_once_have_one_mark(
    core: CoreParts, folder: Path
) -> None:
    """Whoever comes second takes the first one's."""
    stores = [core.store, *(core.other_store() for _ in range(3))]
    await asyncio.gather(*(mark_folder(store, folder) for store in stores))

    await DocumentMark(core.store, folder).check()


async def test_folder_with_a_document_of_the_record_is_marked(
    core: CoreParts, folder: Path
) -> None:
    """As of a release before the mark; and again, where the mark alone was lost."""
    await with_document(core, folder)

    assert await mark_folder(core.store, folder)

    mark = (folder / FILE).read_bytes()
    (folder / FILE).unlink()
    assert await mark_folder(core.store, folder)
    assert (folder / FILE).read_bytes() == mark


async def test_mark_of_a_lost_record_is_taken_over(
    core: CoreParts, folder: Path
) -> None:
    """The record is of a backup from before it was marked; its documents are there."""
    await with_document(core, folder)
    (folder / FILE).write_text("of before\n")

    assert await mark_folder(core.store, folder)

    assert (folder / FILE).read_text() == "of before\n"
    await DocumentMark(core.store, folder).check()


@pytest.mark.parametrize("case", ["not mounted", "of another", "strange documents"])
async def test_folder_that_may_be_anothers_is_not_marked(
    core: CoreParts, folder: Path, case: str
) -> None:
    """It is refused, and stays as it is."""
    if case == "strange documents":
        (folder / ONE / "aa").mkdir(parents=True)
        (folder / ONE / "aa" / f"{'a' * 64}.pdf").write_bytes(b"%PDF")
    else:
        path = await with_document(core, folder)
        await mark_folder(core.store, folder)
        if case == "of another":
            (folder / FILE).write_text("another's\n")
        else:
            shutil.rmtree(folder)
            folder.mkdir()
        assert path.exists() == (case == "of another")
    before = sorted(folder.rglob("*"))

    with pytest.raises(SettingsError, match=str(folder)):
        await mark_folder(core.store, folder)

    assert sorted(folder.rglob("*")) == before


async def test_documents_are_neither_read_nor_written_elsewhere(
    core: CoreParts, folder: Path
) -> None:
    """In a folder that has another mark, or none; and again in the right one."""
    mark = DocumentMark(core.store, folder)
    await mark_folder(core.store, folder)
    documents = LocalDocuments(folder, FixedDocumentKeys(), mark=mark)
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


async def test_mark_that_is_set_later_is_asked_for(
    core: CoreParts, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role that came before the first mark learns of it."""
    monkeypatch.setattr("appliance.storage.document_mark._ASK_AGAIN_S", 0.0)
    mark = DocumentMark(core.store, folder)
    await mark.check()
    await mark_folder(core.store, folder)
    (folder / FILE).unlink()

    with pytest.raises(DocumentsAwayError):
        await mark.check()


async def test_folder_that_cannot_be_marked_is_told(
    core: CoreParts, tmp_path: Path
) -> None:
    """In a sentence with its path, and the record says nothing of a mark."""
    folder = tmp_path / "file" / "documents"
    folder.parent.write_bytes(b"")

    with pytest.raises(SettingsError, match=str(folder.parent)):
        await mark_folder(core.store, folder)

    async with core.store.read() as records:
        assert await records.installation.documents_mark() is None
