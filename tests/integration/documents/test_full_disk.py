"""A documents' disk that is full: nothing is lost, nothing is cut, all comes back.

Source: reliability F19, F20.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection

from appliance.documents.download_link_store import DownloadLinkStore
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId
from appliance.people.person_store import PersonStore
from tests.support.factories.fakes import FixedDocumentKeys, error_code
from tests.support.faults.small_disk import fill, small_disk
from tests.support.installation.record import CoreFixture

pytestmark = pytest.mark.full

ONE = IntegratorId("00000000-0000-4000-8000-000000000001")
MIB = 1_048_576
RESERVE = 2 * MIB


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, 8 * MIB) as made:
        if not made:
            pytest.skip("mounting a tmpfs needs root")
        yield folder


@pytest.fixture
def documents(disk: Path) -> LocalBlobStore:
    """An empty store there, with a reserve of 2 MiB."""
    return LocalBlobStore(disk / "documents", FixedDocumentKeys(), RESERVE)


async def code_of(documents: LocalBlobStore, content: bytes) -> ErrorCode | None:
    """How keeping an original is refused."""
    return await error_code(documents.put(ONE, content))


async def room_for(documents: LocalBlobStore, size: int) -> ErrorCode | None:
    """Why a document of that size is not to be signed now."""
    return await error_code(documents.make_room(size))


def leftovers(folder: Path) -> list[Path]:
    """Files that are no documents, and not the reserve."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pdf" and path.name != ".reserve"
    ]


async def test_full_disk_is_told_and_nothing_is_left(
    documents: LocalBlobStore, disk: Path
) -> None:
    """What comes in is refused by name and whole; later the same call succeeds."""
    filler = fill(disk, leave_bytes=MIB)

    refused = await code_of(documents, os.urandom(2 * MIB))
    left = leftovers(disk / "documents")
    filler.unlink()

    assert refused is ErrorCode.STORAGE_FULL
    assert left == []
    assert await code_of(documents, os.urandom(2 * MIB)) is None


async def test_what_comes_in_leaves_room_to_sign(disk: Path) -> None:
    """Any number of uploads end before the room that signing needs; it goes on."""
    documents = LocalBlobStore(
        disk / "documents", FixedDocumentKeys(), RESERVE, intake_room_bytes=3 * MIB
    )
    await documents.make_room(MIB)
    codes = [await code_of(documents, os.urandom(MIB)) for _ in range(12)]

    assert ErrorCode.STORAGE_FULL in codes
    assert codes[0] is None
    for _ in range(2):
        await documents.make_room(MIB)
        await documents.put(ONE, os.urandom(MIB // 2), signed=True)


async def test_nothing_is_signed_without_room(
    documents: LocalBlobStore, disk: Path
) -> None:
    """Neither without the reserve nor without room beside it; it heals by itself."""
    with_room = await room_for(documents, MIB)
    too_large = await room_for(documents, 7 * MIB)
    filler = fill(disk)
    full = await room_for(documents, 1)
    (disk / "documents" / ".reserve").unlink()
    filler.unlink()
    smaller = fill(disk, leave_bytes=MIB)
    without_reserve = await room_for(documents, 1)
    smaller.unlink()

    assert (with_room, too_large) == (None, ErrorCode.STORAGE_FULL)
    assert (full, without_reserve) == (ErrorCode.STORAGE_FULL,) * 2
    assert await room_for(documents, MIB) is None
    assert (disk / "documents" / ".reserve").stat().st_blocks * 512 >= RESERVE


async def test_what_was_signed_finds_the_reserve(
    documents: LocalBlobStore, disk: Path
) -> None:
    """Full between key and file: kept in the reserve's place; then no key is used."""
    content = os.urandom(MIB)
    await documents.make_room(MIB)
    filler = fill(disk)

    sha256 = await documents.put(ONE, content, signed=True)
    refused = await room_for(documents, MIB)
    filler.unlink()

    assert await documents.get(ONE, sha256) == content
    assert refused is ErrorCode.STORAGE_FULL
    assert await room_for(documents, MIB) is None


async def test_signed_document_without_any_room_waits(
    documents: LocalBlobStore, disk: Path
) -> None:
    """Larger than the reserve: a worker tries again, for the record is away to it."""
    content = os.urandom(3 * MIB)
    await documents.make_room(3 * MIB)
    filler = fill(disk)

    with pytest.raises(ApplianceError) as caught:
        await documents.put(ONE, content, signed=True)
    left = leftovers(disk / "documents")
    filler.unlink()

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    assert left == []
    sha256 = await documents.put(ONE, content, signed=True)
    assert await documents.get(ONE, sha256) == content


async def test_full_database_refuses_writes_and_answers_reads(
    sqlite_core: CoreFixture,
) -> None:
    """Whole transactions fail, reading goes on, and it recovers by itself."""
    signer = await sqlite_core.add_signer()
    request = await sqlite_core.add_request(signer.person)
    engine = sqlite_core.store._engines.writer.sync_engine
    limited = True

    def limit(connection: DBAPIConnection, *_rest: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA max_page_count = {1 if limited else 1_000_000}")
        cursor.close()

    event.listen(engine, "checkout", limit)
    refused = None
    try:
        async with sqlite_core.store.write() as transaction:
            for number in range(200):
                await DownloadLinkStore(transaction).add(
                    {f"{number:064}": request}, sqlite_core.now
                )
    except ApplianceError as exc:
        refused = exc.code
    async with sqlite_core.store.read() as transaction:
        person = await PersonStore(transaction).get(signer.person)
    limited = False

    assert refused is ErrorCode.STORE_UNAVAILABLE
    assert person is not None
    assert await sqlite_core.add_signer() is not None
