"""Documents in a folder: durable, whole, and shared with the group alone.

What holds of a bucket as well is shown of both (`document_storage`).
"""

import asyncio
import hashlib
import os
import resource
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.errors import DOCUMENTS_AWAY, ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId
from appliance.domain.ports import BlobMaintenance
from appliance.metrics import metrics
from tests.support.factories.document_storage import DocumentStorage
from tests.support.factories.fakes import FixedDocumentKeys, error_code

ONE = IntegratorId("00000000-0000-4000-8000-000000000001")
TWO = IntegratorId("00000000-0000-4000-8000-000000000002")
PDF = b"%PDF-1.7\n" + bytes(range(256)) * 100
SHA256 = hashlib.sha256(PDF).hexdigest()
LARGE = PDF * 200
"""Of more than one read of a bucket."""
LARGE_SHA256 = hashlib.sha256(LARGE).hexdigest()


@pytest.fixture
def store(document_storage: DocumentStorage) -> BlobMaintenance:
    """An empty store of either kind."""
    return document_storage.store_with(FixedDocumentKeys())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where documents are kept; not there yet."""
    return tmp_path / "deep" / "documents"


@pytest.fixture
def documents(folder: Path) -> LocalBlobStore:
    """An empty store."""
    return LocalBlobStore(folder, FixedDocumentKeys())


def kept(folder: Path) -> list[Path]:
    """Every file of the store."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


@contextmanager
def umask(value: int) -> Iterator[None]:
    """With another umask."""
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


async def refusal(
    documents: BlobMaintenance, integrator: str, sha256: str
) -> ErrorCode | None:
    """How reading a document is refused."""
    return await error_code(documents.get(IntegratorId(integrator), sha256))


async def test_document_reads_back(
    store: BlobMaintenance, document_storage: DocumentStorage
) -> None:
    """By its integrator and SHA-256, in one file and no other."""
    assert await store.put(ONE, PDF) == SHA256

    assert await store.get(ONE, SHA256) == PDF
    assert document_storage.names() == [f"{ONE}/{SHA256[:2]}/{SHA256}.pdf"]


async def test_document_kept_again_is_the_same(
    documents: LocalBlobStore, folder: Path
) -> None:
    """Written once; a second time leaves the file as it is, but for its time."""
    await documents.put(ONE, PDF)
    (file,) = kept(folder)
    os.utime(file, (0, 0))
    before = file.read_bytes(), file.stat().st_ino

    assert await documents.put(ONE, PDF) == SHA256

    assert (file.read_bytes(), file.stat().st_ino) == before
    assert file.stat().st_mtime > 0


async def test_document_kept_by_twenty_at_once(
    store: BlobMaintenance, document_storage: DocumentStorage
) -> None:
    """All of them are told the same; one whole file is there."""
    told = await asyncio.gather(*(store.put(ONE, PDF) for _ in range(20)))

    assert set(told) == {SHA256}
    names = [name for name in document_storage.names() if name.endswith(".pdf")]
    assert len(names) == 1
    assert await store.get(ONE, SHA256) == PDF


async def test_document_of_one_integrator_is_absent_for_another(
    store: BlobMaintenance,
) -> None:
    """The same bytes are not shared between tenants."""
    await store.put(ONE, PDF)

    assert await refusal(store, TWO, SHA256) is ErrorCode.DOCUMENT_DAMAGED


async def test_empty_document_is_kept(store: BlobMaintenance) -> None:
    """No bytes are bytes too."""
    sha256 = await store.put(ONE, b"")

    assert await store.get(ONE, sha256) == b""


@pytest.mark.parametrize("altered", [b"", PDF[:-1], PDF + b"\n", b"x" + PDF[1:]])
async def test_altered_document_is_not_given_out(
    store: BlobMaintenance, document_storage: DocumentStorage, altered: bytes
) -> None:
    """What was cut, grown or changed where it lies is `DOCUMENT_DAMAGED`."""
    await store.put(ONE, PDF)
    (name,) = document_storage.names()
    document_storage.write(name, altered)

    assert await refusal(store, ONE, SHA256) is ErrorCode.DOCUMENT_DAMAGED


async def _read_whole(store: BlobMaintenance, harm: Callable[[], None]) -> None:
    harm()
    await store.get(ONE, LARGE_SHA256)


async def _read_pieces(store: BlobMaintenance, harm: Callable[[], None]) -> None:
    stream = await store.stream(ONE, LARGE_SHA256)
    harm()
    _ = [piece async for piece in stream.pieces]


async def _read_range(store: BlobMaintenance, harm: Callable[[], None]) -> None:
    stream = await store.stream(ONE, LARGE_SHA256)
    assert stream.part is not None
    harm()
    _ = [piece async for piece in stream.part(len(LARGE) - 9, len(LARGE))]


async def _encrypt(store: BlobMaintenance, harm: Callable[[], None]) -> None:
    harm()
    assert not await store.encrypt(ONE, LARGE_SHA256)
    await store.get(ONE, LARGE_SHA256)


@pytest.mark.parametrize("read", [_read_whole, _read_pieces, _read_range, _encrypt])
@pytest.mark.parametrize("is_missing", [True, False])
async def test_damaged_document_is_reported(
    store: BlobMaintenance,
    document_storage: DocumentStorage,
    read: Callable[[BlobMaintenance, Callable[[], None]], Awaitable[None]],
    *,
    is_missing: bool,
) -> None:
    """In the log by its name, and in the figures that health and alerts read.

    However it is read: a reader of ranges meets most damage past the first segment.
    """
    await store.put(ONE, LARGE)
    (name,) = document_storage.names()

    def harm() -> None:
        if is_missing:
            document_storage.remove(name)
        else:
            document_storage.write(name, document_storage.read(name)[:-1])

    metrics.DOCUMENT_DAMAGED.set(0)

    with capture_logs() as said:
        assert await error_code(read(store, harm)) is ErrorCode.DOCUMENT_DAMAGED

    (line,) = [each for each in said if each["event"] == "document.damaged"]
    assert (line["integrator"], line["sha256"]) == (ONE, LARGE_SHA256)
    assert line["kind"] == ("missing" if is_missing else "altered")
    assert metrics.REGISTRY.get_sample_value(
        "rubrica_document_damaged_timestamp_seconds"
    )


async def test_altered_document_is_whole_again_when_kept_again(
    store: BlobMaintenance, document_storage: DocumentStorage
) -> None:
    """Keeping the right bytes heals the file."""
    await store.put(ONE, PDF)
    (name,) = document_storage.names()
    document_storage.write(name, b"spoiled")

    await store.put(ONE, PDF)

    assert await store.get(ONE, SHA256) == PDF
    assert document_storage.names() == [name]


@pytest.mark.parametrize(
    ("integrator", "sha256"),
    [
        ("../../../../../../../../../etc/passwd", SHA256),
        (ONE, "../" * 21 + "x"),
        (ONE, SHA256.upper()),
        (ONE, SHA256[:-1]),
        (ONE, SHA256 + "\n"),
        (ONE + "\n", SHA256),
        (ONE, ""),
        ("", SHA256),
        (ONE + "/", SHA256),
        ("." * 36, SHA256),
        (ONE, "\0" * 64),
    ],
)
async def test_path_tricks_are_refused(
    store: BlobMaintenance, integrator: str, sha256: str
) -> None:
    """Nothing but an id and 64 hex digits makes a path."""
    await store.put(ONE, PDF)

    assert await refusal(store, integrator, sha256) is ErrorCode.STORE_UNAVAILABLE


async def test_failed_write_leaves_nothing(
    documents: LocalBlobStore, folder: Path
) -> None:
    """A disk that takes no more: refused by name, no half file, no rest."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(ApplianceError) as caught:
            await documents.put(ONE, PDF)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert caught.value.code is ErrorCode.STORAGE_FULL
    assert kept(folder) == []
    assert await documents.put(ONE, PDF) == SHA256


async def test_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """A file where the folder should be is no crash."""
    (tmp_path / "file").write_text("x")

    with pytest.raises(ApplianceError) as caught:
        await LocalBlobStore(tmp_path / "file" / "documents", FixedDocumentKeys()).put(
            ONE, PDF
        )

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    assert caught.value.sentence == DOCUMENTS_AWAY


async def test_bytes_and_names_are_synced_in_order(
    documents: LocalBlobStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes before the name, the name before the answer, new folders too."""
    synced: list[tuple[Path, bool]] = []
    fsync = os.fsync

    def watched(handle: int) -> None:
        there = (folder / ONE / SHA256[:2] / f"{SHA256}.pdf").exists()
        synced.append((Path(f"/proc/self/fd/{handle}").readlink(), there))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    await documents.put(ONE, PDF)

    *folders, (temporary, before), (last, after) = synced
    assert [path for path, _ in folders] == [
        folder.parent.parent,
        folder.parent,
        folder,
        folder / ONE,
    ]
    assert (temporary.parent, before) == (folder / ONE / SHA256[:2], False)
    assert temporary.name.startswith(".new-")
    assert (last, after) == (folder / ONE / SHA256[:2], True)


@pytest.mark.parametrize(
    ("mask", "file_mode", "folder_mode"),
    [(0o077, 0o600, 0o700), (0o007, 0o660, 0o770), (0o000, 0o660, 0o770)],
)
async def test_modes_follow_the_umask_and_leave_others_out(
    documents: LocalBlobStore, folder: Path, mask: int, file_mode: int, folder_mode: int
) -> None:
    """A trial (umask 077) stays private; roles of one group (007) share."""
    with umask(mask):
        await documents.put(ONE, PDF)

    (file,) = kept(folder)
    assert stat.S_IMODE(file.stat().st_mode) == file_mode
    assert {stat.S_IMODE(path.stat().st_mode) for path in file.parents[:4]} == {
        folder_mode
    }


async def test_group_is_read_and_kept_each_by_itself(
    store: BlobMaintenance, document_storage: DocumentStorage
) -> None:
    """What is wrong with one is told of that one, in its place."""
    del document_storage
    files = [(ONE, (PDF[:9], PDF[9:])), (ONE, (b"%PDF-1.7 two",)), (ONE, (PDF,))]

    kept_as = await store.put_signed(files)

    assert kept_as[0] == kept_as[2] == SHA256
    wanted = [(ONE, str(kept_as[1])), (ONE, "00" * 32), (ONE, SHA256)]
    found = await store.get_all(wanted)
    assert (found[0], found[2]) == (b"%PDF-1.7 two", PDF)
    assert isinstance(found[1], ApplianceError)
    assert found[1].code is ErrorCode.DOCUMENT_DAMAGED


async def test_key_that_cannot_be_had_is_its_owners_matter(folder: Path) -> None:
    """Of a group over several integrators the others' are read and kept."""
    other = TWO

    class OneLocked(FixedDocumentKeys):
        async def get(self, integrator: IntegratorId) -> bytes | None:
            if integrator == other:
                raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)
            return await super().get(integrator)

    documents = LocalBlobStore(folder, OneLocked())

    kept_as = await documents.put_signed([(other, (PDF,)), (ONE, (PDF,))])
    found = await documents.get_all([(other, SHA256), (ONE, SHA256)])

    assert isinstance(kept_as[0], ApplianceError)
    assert kept_as[1] == SHA256
    assert isinstance(found[0], ApplianceError)
    assert found[1] == PDF
