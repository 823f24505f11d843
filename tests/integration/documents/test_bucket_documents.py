"""Documents in a bucket: what S3 has no lock for, and what a link does that is cut.

What is the same as in a folder is shown of both, in `test_local_documents` and
`test_sealed_documents`.

Source: docs/storage.md "In an S3-compatible store".
"""

import asyncio
import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from appliance.documents.document_files import name_of
from appliance.documents.local.folder_mark import mark_place
from appliance.documents.s3 import blob_store
from appliance.documents.s3.blob_store import AGAIN, LEAVING, S3BlobStore
from appliance.documents.s3.bucket import Bucket
from appliance.documents.s3.bucket_mark import BucketMark, MarkedBucket
from appliance.domain.errors import ApplianceError, DocumentsAwayError, ErrorCode
from appliance.domain.ids import IntegratorId
from appliance.settings import DocumentSettings
from tests.support.factories.document_storage import BucketStorage, DocumentStorage
from tests.support.factories.fakes import FixedDocumentKeys, error_code
from tests.support.installation.record import CoreFixture
from tests.support.processes.scratch import free_port
from tests.support.services.s3 import SECRET_KEY, S3Server
from tests.support.services.server_certificates import make_authority
from tests.support.services.tcp_links import DeafLink, Link

pytestmark = pytest.mark.full

ONE = IntegratorId("00000000-0000-4000-8000-000000000001")
PDF = b"%PDF-1.7\n" + bytes(range(256)) * 100
SHA256 = hashlib.sha256(PDF).hexdigest()
NAME = name_of(ONE, SHA256)
LARGE = os.urandom(12 * 1_048_576)
"""Sent in parts."""
DAY = timedelta(days=1)
_TICK = timedelta(milliseconds=20)
"""More than a tick of any kernel (at most 10 ms)."""
_MAKE = """
import sys
from appliance.settings import DocumentSettings, SettingsError
from appliance.documents.s3.bucket import Bucket
try:
    Bucket(DocumentSettings.model_validate_json(sys.argv[1]))
except SettingsError as exc:
    print(exc)
"""


def now() -> datetime:
    """The store's time, which no test moves."""
    return datetime.now(UTC)


@pytest.fixture
def bucket_storage(s3_server: S3Server) -> BucketStorage:
    """An empty bucket."""
    return BucketStorage(s3_server.settings(s3_server.new_bucket()))


@pytest.fixture
def documents(bucket_storage: BucketStorage) -> S3BlobStore:
    """A store over it."""
    return S3BlobStore(bucket_storage.bucket, FixedDocumentKeys())


async def until_later_than(moment: datetime) -> None:
    """Return once that is past, for the dates of files too.

    A kernel dates them by its coarse clock, which is up to one tick behind.
    """
    left = moment + _TICK - now()
    await asyncio.sleep(max(left.total_seconds(), 0))


def beside(suffix: str) -> str:
    """An object beside the document's."""
    return NAME.removesuffix(".pdf") + suffix


async def found_older(documents: S3BlobStore, before: datetime) -> list[str]:
    """What was put in last before then."""
    return [name async for _, names in documents.older(before) for name in names]


async def test_document_put_in_again_counts_as_new(
    documents: S3BlobStore, bucket_storage: BucketStorage
) -> None:
    """Its object stays as it is, under whoever reads it; its age is the second one's.

    S3 tells times in whole seconds.
    """
    await documents.put(ONE, PDF)
    first = bucket_storage.read(NAME)
    written = bucket_storage.written(NAME)
    assert written is not None
    await until_later_than(written + timedelta(seconds=2))
    between = now().replace(microsecond=0)

    assert await found_older(documents, between) == [SHA256]
    await documents.put(ONE, PDF)

    assert bucket_storage.read(NAME) == first
    assert await found_older(documents, between) == []
    assert not await documents.remove(ONE, SHA256, between)
    assert await found_older(documents, now() + DAY) == [SHA256]
    assert await documents.remove(ONE, SHA256, now() + DAY)
    assert bucket_storage.names() == []


async def test_document_that_comes_in_meanwhile_is_there(
    document_storage: DocumentStorage,
) -> None:
    """Put while it is being removed, many times: after `put` the document stands."""
    documents = document_storage.store_with(FixedDocumentKeys())
    await documents.put(ONE, PDF)

    for _ in range(15):
        # Whatever was put in before this moment is old, and what comes later is not.
        before = now().replace(microsecond=0) + timedelta(seconds=1)
        await until_later_than(before)
        await asyncio.gather(
            documents.put(ONE, PDF),
            documents.remove(ONE, SHA256, before),
            documents.remove(ONE, SHA256, before),
        )
        assert await documents.get(ONE, SHA256) == PDF

    left = [name for name in document_storage.names() if name.endswith(LEAVING)]
    assert left == []


async def test_who_removes_looks_once_more(
    documents: S3BlobStore, bucket_storage: BucketStorage
) -> None:
    """Put in again after the first look, before the mark that keeps others out."""

    class Interrupted(Bucket):
        """Somebody else is quick."""

        def create(self, name: str, content: bytes) -> bool:
            if name.endswith(LEAVING):
                key = hashlib.sha256(ONE.encode()).digest()
                documents._put(ONE, [memoryview(PDF)], key)
            return super().create(name, content)

    await documents.put(ONE, PDF)
    written = bucket_storage.written(NAME)
    assert written is not None
    await until_later_than(written + timedelta(seconds=2))
    remover = S3BlobStore(Interrupted(bucket_storage.settings), FixedDocumentKeys())
    between = now().replace(microsecond=0)

    assert not await remover.remove(ONE, SHA256, between)
    assert bucket_storage.written(beside(LEAVING)) is None
    assert await documents.get(ONE, SHA256) == PDF


async def test_put_waits_for_who_removes(
    documents: S3BlobStore, bucket_storage: BucketStorage
) -> None:
    """Stopped between its last look and the removal: it is put in anew after that."""
    await documents.put(ONE, PDF)
    bucket_storage.write(beside(LEAVING), b"leaving")

    putting = asyncio.create_task(documents.put(ONE, PDF))
    deadline = time.monotonic() + 60
    while bucket_storage.written(beside(AGAIN)) is None:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    bucket_storage.remove(NAME)
    assert not putting.done()
    bucket_storage.remove(beside(LEAVING))
    await putting

    assert await documents.get(ONE, SHA256) == PDF


async def test_what_nobody_needs_is_removed_however_new(
    document_storage: DocumentStorage,
) -> None:
    """In a folder and in a bucket; what came while it was asked for is there."""
    documents = document_storage.store_with(FixedDocumentKeys())
    await documents.put_all(ONE, [PDF, b"%PDF other"])
    putting: list[asyncio.Task[str]] = []

    async def is_needed() -> bool:
        return True

    async def is_none() -> bool:
        # Whose row came a moment too late for us: they wait, and put it in anew.
        putting.append(asyncio.create_task(documents.put(ONE, PDF)))
        await asyncio.sleep(0)
        return False

    assert not await documents.remove_unneeded(ONE, SHA256, is_needed)
    assert await documents.remove_unneeded(ONE, SHA256, is_none)
    await putting[0]

    assert await documents.get(ONE, SHA256) == PDF
    assert not await documents.remove_unneeded(ONE, "0" * 64, is_none)
    await asyncio.gather(*putting)


async def test_only_one_removes_from_a_bucket(
    documents: S3BlobStore, bucket_storage: BucketStorage
) -> None:
    """The other one is told, and tries again."""
    await documents.put(ONE, PDF)
    bucket_storage.write(beside(LEAVING), b"leaving")

    async def is_needed() -> bool:
        return False

    with pytest.raises(ApplianceError) as caught:
        await documents.remove_unneeded(ONE, SHA256, is_needed)
    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    bucket_storage.remove(beside(LEAVING))
    assert await documents.remove_unneeded(ONE, SHA256, is_needed)


async def test_dead_remover_keeps_nobody(
    documents: S3BlobStore,
    bucket_storage: BucketStorage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a while its mark counts no more; the next sweep but one removes."""
    await documents.put(ONE, PDF)
    bucket_storage.write(beside(LEAVING), b"leaving")
    assert not await documents.remove(ONE, SHA256, now() + DAY)
    assert bucket_storage.written(beside(LEAVING)) is not None
    monkeypatch.setattr(blob_store, "_DEAD", -DAY)

    await documents.put(ONE, PDF)
    assert not await documents.remove(ONE, SHA256, now() + DAY)
    assert await documents.remove(ONE, SHA256, now() + DAY)

    assert bucket_storage.names() == []


async def test_two_prefixes_of_a_bucket_are_two_places(s3_server: S3Server) -> None:
    """Each object stands below its own, and neither sees the other's."""
    bucket = s3_server.new_bucket()
    one, two = (
        BucketStorage(s3_server.settings(f"{bucket}/{prefix}"))
        for prefix in ("a", "ab")
    )
    await one.store_with(FixedDocumentKeys()).put(ONE, PDF)

    assert two.names() == []
    assert BucketStorage(s3_server.settings(bucket)).names() == [f"a/{NAME}"]
    assert await error_code(two.store_with(FixedDocumentKeys()).get(ONE, SHA256))


async def test_two_who_remove_exclude_each_other(
    documents: S3BlobStore, bucket_storage: BucketStorage
) -> None:
    """Of any number at once, one does it."""
    await documents.put(ONE, PDF)

    removed = await asyncio.gather(
        *(documents.remove(ONE, SHA256, now() + DAY) for _ in range(8))
    )

    assert removed.count(True) == 1
    assert bucket_storage.names() == []


async def test_large_document_is_never_held_whole_again(
    documents: S3BlobStore,
) -> None:
    """Sent in parts of 5 MiB, two at a time; given in pieces of 1 MiB."""
    process = psutil.Process()
    parts = [os.urandom(1_048_576) * 16 for _ in range(4)]
    await documents.put(ONE, PDF)  # threads and connections are there
    before = process.memory_info().rss
    peak = 0
    ended = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.005):
            peak = max(peak, process.memory_info().rss)

    with ThreadPoolExecutor(1) as watcher:
        watching = watcher.submit(watch)
        sha256 = await documents.put(ONE, *parts)
        stream = await documents.stream(ONE, sha256)
        digest = hashlib.sha256()
        async for piece in stream.pieces:
            assert len(piece) <= 1_048_576
            digest.update(piece)
        ended.set()
        watching.result()

    assert digest.hexdigest() == sha256
    assert stream.size_bytes == 4 * 16 * 1_048_576
    # Of 64 MiB.
    assert peak - before < 40 * 1_048_576


async def test_document_in_parts_is_written_once(
    documents: S3BlobStore, bucket_storage: BucketStorage
) -> None:
    """A second time it stays as it is; by several at once it is whole."""
    await asyncio.gather(*(documents.put(ONE, LARGE) for _ in range(3)))
    sha256 = hashlib.sha256(LARGE).hexdigest()
    first = bucket_storage.read(name_of(ONE, sha256))

    await documents.put(ONE, LARGE)

    assert bucket_storage.read(name_of(ONE, sha256)) == first
    assert await documents.get(ONE, sha256) == LARGE


async def test_object_that_changes_under_a_reader_ends_it(
    documents: S3BlobStore, bucket_storage: BucketStorage
) -> None:
    """What was given is right, and nothing of the other version is mixed in."""
    sha256 = await documents.put(ONE, LARGE)
    stream = await documents.stream(ONE, sha256)
    given = await anext(stream.pieces)
    other = S3BlobStore(bucket_storage.bucket, FixedDocumentKeys())
    bucket_storage.remove(name_of(ONE, sha256))
    await other.put(ONE, LARGE)

    refused = False
    try:
        async for piece in stream.pieces:
            given += piece
    except ApplianceError as exc:
        refused = exc.code is ErrorCode.DOCUMENT_DAMAGED

    assert refused
    assert LARGE.startswith(given)
    assert await documents.get(ONE, sha256) == LARGE


async def test_silent_link_is_tried_by_a_few(
    core: CoreFixture, s3_server: S3Server
) -> None:
    """Each sits its time-out out; the others are refused at once; then all is well."""
    bucket = s3_server.new_bucket()
    with Link(s3_server.port) as link:
        settings = s3_server.settings(bucket, link.port)
        settings = settings.model_copy(update={"request_timeout_s": 1.0})
        await mark_place(core.store, MarkedBucket(Bucket(settings)))
        mark = BucketMark(core.store, settings)
        documents = S3BlobStore(Bucket(settings), FixedDocumentKeys(), mark)
        await documents.put(ONE, PDF)

        with link.cut():
            before = link.accepted
            codes = await asyncio.gather(
                *(error_code(documents.get(ONE, SHA256)) for _ in range(40)),
                *(error_code(documents.put(ONE, b"%%PDF %d" % n)) for n in range(40)),
            )
            first = link.accepted - before
            with pytest.raises(DocumentsAwayError):
                await documents.check()
            before = link.accepted
            assert set(codes) == {ErrorCode.STORE_UNAVAILABLE}
            assert await error_code(documents.get(ONE, SHA256)) is not None
            later = link.accepted - before
        async with asyncio.timeout(60):
            while await error_code(documents.get(ONE, SHA256)):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert await documents.get(ONE, SHA256) == PDF
    # 80 calls, eight at a time.
    assert first <= 24
    assert later <= 1


@contextmanager
def full_store(status: int, code: str) -> Iterator[int]:
    """A store that takes nothing any more, as real ones say it; its port."""

    class Full(BaseHTTPRequestHandler):
        """Answers so to all."""

        def do_PUT(self) -> None:
            """Refuse."""
            self.rfile.read(int(self.headers["Content-Length"]))
            body = f"<Error><Code>{code}</Code><Message>x</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Full) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (507, "InsufficientStorage"),
        (403, "QuotaExceeded"),
        (400, "XMinioAdminBucketQuotaExceeded"),
    ],
)
async def test_full_store_is_told(s3_server: S3Server, status: int, code: str) -> None:
    """As a full disk is; what is signed already is tried again."""
    with full_store(status, code) as port:
        settings = s3_server.settings("bucket-1", port)
        documents = S3BlobStore(Bucket(settings), FixedDocumentKeys())

        assert await error_code(documents.put(ONE, PDF)) is ErrorCode.STORAGE_FULL
        signed = documents.put(ONE, PDF, signed=True)
        assert await error_code(signed) is ErrorCode.STORE_UNAVAILABLE


async def test_bucket_that_is_not_there_is_away(s3_server: S3Server) -> None:
    """Read, written or listed; and nothing that is said shows the key."""
    settings = s3_server.settings("no-such-bucket")
    for number in range(2):
        documents = S3BlobStore(Bucket(settings), FixedDocumentKeys())
        calls = (documents.put(ONE, PDF), found_older(documents, now()))
        with pytest.raises(DocumentsAwayError) as caught:
            await calls[number]
        calls[1 - number].close()
        assert SECRET_KEY not in f"{caught.value!r}{caught.value.__cause__}"
        assert SECRET_KEY not in f"{settings!r}"


async def test_store_that_ignores_conditions_keeps_documents_right(
    s3_server: S3Server,
) -> None:
    """The same document under another salt; and it is known to be such a store."""
    with DeafLink(s3_server.port) as link:
        settings = s3_server.settings(s3_server.new_bucket(), link.port)
        documents = S3BlobStore(Bucket(settings), FixedDocumentKeys())
        await asyncio.gather(*(documents.put(ONE, PDF) for _ in range(5)))

        assert await documents.get(ONE, SHA256) == PDF
        assert "If-None-Match" in Bucket(settings).probe()
    assert settings.url is not None
    direct = BucketStorage(s3_server.settings(settings.url.removeprefix("s3://")))
    assert direct.bucket.probe() == ""
    assert direct.names() == [NAME]


async def test_store_is_checked_by_its_authority(tmp_path: Path) -> None:
    """With TLS: by the file of the settings, and by the host's name."""
    authority = make_authority(tmp_path)
    files = authority.certify(tmp_path, "localhost")
    with S3Server.running(tmp_path, tls=files) as server:
        bucket = server.new_bucket()
        settings = server.settings(bucket)
        right = DocumentSettings.model_validate(
            {
                **settings.model_dump(),
                "endpoint": f"https://localhost:{server.port}",
                "root_certificate_file": authority.certificate,
            }
        )
        other_name = right.model_copy(
            update={"endpoint": f"https://127.0.0.1:{server.port}"}
        )
        unknown = right.model_copy(update={"root_certificate_file": None})

        documents = S3BlobStore(Bucket(right), FixedDocumentKeys())
        assert await documents.put(ONE, PDF) == SHA256
        for wrong in (other_name, unknown):
            refused = S3BlobStore(Bucket(wrong), FixedDocumentKeys())
            with pytest.raises(DocumentsAwayError):
                await refused.get(ONE, SHA256)


def test_machine_without_authorities_is_told(s3_server: S3Server) -> None:
    """No client can be made there: in a sentence, and not as a fault of ours."""
    settings = s3_server.settings("docs")
    none = dict.fromkeys(("SSL_CERT_FILE", "SSL_CERT_DIR"), "/nowhere")
    done = subprocess.run(
        [sys.executable, "-c", _MAKE, settings.model_dump_json()],
        env={**os.environ, **none},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.startswith("documents.endpoint: ")
    assert "ca-certificates" in done.stdout


async def test_bucket_may_stand_in_the_hosts_name(s3_server: S3Server) -> None:
    """`virtual`: `bucket.localhost`, which is this machine as well."""
    bucket = s3_server.new_bucket()
    settings = s3_server.settings(bucket).model_copy(
        update={
            "address_style": "virtual",
            "endpoint": f"http://localhost:{s3_server.port}",
        }
    )
    assert settings.bucket is not None
    with pytest.raises(DocumentsAwayError) as caught:
        Bucket(
            settings.model_copy(update={"endpoint": f"http://localhost:{free_port()}"})
        ).look(NAME)

    assert f"http://{bucket}.localhost" in str(caught.value.__cause__)
