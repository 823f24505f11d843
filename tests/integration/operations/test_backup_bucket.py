"""Backups in a bucket: there whole or not at all, and nobody else's are touched.

Source: docs/backup.md "Into a bucket".
"""

import hashlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from appliance.documents.s3 import multipart_upload
from appliance.operations.backup import bucket_destination, destinations, making
from appliance.operations.backup.archive import Writer, reading
from appliance.operations.backup.bucket_destination import BucketDestination
from appliance.operations.backup.buckets import bucket_of
from appliance.operations.backup.fetching import fetched
from appliance.operations.backup.names import RECORD, SECRETS, BackupName
from appliance.settings import SettingsError
from tests.integration.documents.test_bucket_uploads import begin_upload, uploads_of
from tests.support.factories.document_storage import BucketStorage
from tests.support.faults.fault_injection import until
from tests.support.faults.small_disk import small_disk
from tests.support.patience import CALL_S
from tests.support.services.s3 import SECRET_KEY, S3Server
from tests.support.services.server_certificates import make_authority
from tests.support.services.tcp_links import Link

pytestmark = pytest.mark.full

NOW: Final = datetime(2026, 11, 24, 8, 32, 6, tzinfo=UTC)
OURS: Final = "0123456789ab"
NAME: Final = BackupName(RECORD, OURS, NOW)
PART: Final = 5_242_880
CONTENT: Final = os.urandom(3 * PART)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three and a bit of them make a backup of these tests."""
    monkeypatch.setattr(multipart_upload, "PART_BYTES", PART)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """An identity of age's."""
    path = tmp_path / "key"
    subprocess.run(["age-keygen", "-o", str(path)], check=True, capture_output=True)
    return path


@pytest.fixture
def recipients(key: Path) -> list[str]:
    """Who may read."""
    done = subprocess.run(
        ["age-keygen", "-y", str(key)], check=True, capture_output=True, text=True
    )
    return [f"--recipient={done.stdout.strip()}"]


class Bucket:
    """An empty bucket, as backups see it and as the test does."""

    def __init__(self, server: S3Server, port: int | None = None) -> None:
        self.server = server
        self.name = server.new_bucket()
        self.seen = BucketStorage(server.settings(f"{self.name}/a"))
        self.url = f"s3://{self.name}/a"
        self.table = table_of(server, port)
        self.place = opened_by(self.url, self.table)

    def uploads(self) -> list[str]:
        """What was begun and is no object yet."""
        return uploads_of(self.server, self.name)

    def lie_there(self, *files: str) -> None:
        """Put something there by each of these names."""
        for file in files:
            self.seen.write(file, b"x")


def table_of(server: S3Server, port: int | None = None, **more: Any) -> dict[str, Any]:
    """`[bucket]` for a server, as TOML gives it."""
    tables = server.tables("any", port)
    del tables["url"]
    # A link that falls silent is known by the time-out.
    limit_s = 20 if port is None else 2
    return {**tables, "request_timeout_s": limit_s, "retry_s": 0, **more}


def opened_by(url: str, table: dict[str, Any]) -> BucketDestination:
    """A bucket as backups see it."""
    return BucketDestination(bucket_of(url, table, "bucket"))


@pytest.fixture
def bucket(s3_server: S3Server) -> Bucket:
    """One without a link before it."""
    return Bucket(s3_server)


def put(
    place: destinations.Destination, recipients: list[str], now: datetime = NOW
) -> None:
    """Write a backup."""
    write(place, recipients, lambda _: None, now)


def write(
    place: destinations.Destination,
    recipients: list[str],
    then: Callable[[Writer], object],
    now: datetime = NOW,
) -> None:
    """Write one, and do something before its end."""
    with place.writing(NAME, recipients, now) as archive:
        archive.add_bytes("content", CONTENT)
        then(archive)


def test_backup_comes_back_as_it_went(
    bucket: Bucket, recipients: list[str], key: Path
) -> None:
    """In parts, with its hash beside it; the copy is gone after its block."""
    put(bucket.place, recipients)

    assert bucket.seen.names() == [NAME.file, f"{NAME.file}.sha256"]
    assert bucket.uploads() == []
    sha256 = hashlib.sha256(bucket.seen.read(NAME.file)).hexdigest()
    line = bucket.seen.read(f"{NAME.file}.sha256").decode()
    assert line == f"{sha256}  {NAME.file}\n"
    with fetched(f"{bucket.url}/{NAME.file}", bucket.table, "bucket") as path:
        found = {name: content.read() for name, _, content in reading(path, key)}
    assert found == {"content": CONTENT}
    assert not path.exists()
    assert [each.file for each in bucket.place.files()] == bucket.seen.names()


def test_name_is_taken_once(bucket: Bucket, recipients: list[str]) -> None:
    """By what is there, or by who came first meanwhile; that stays as it is."""
    bucket.lie_there(NAME.file)
    with pytest.raises(SettingsError, match="is there already"):
        put(bucket.place, recipients)
    bucket.seen.remove(NAME.file)

    first = b""

    def be_late(_: Writer) -> None:
        nonlocal first
        # Of a time at which no upload of this server is old; see below.
        put(bucket.place, recipients, datetime(2010, 11, 11, tzinfo=UTC))
        first = bucket.seen.read(NAME.file)

    with pytest.raises(SettingsError, match="is there already"):
        write(bucket.place, recipients, be_late)

    assert bucket.seen.read(NAME.file) == first
    assert len(bucket.seen.names()) == 2
    assert bucket.uploads() == []


def test_object_that_came_without_a_hash_stays(
    bucket: Bucket, recipients: list[str]
) -> None:
    """Put there by another program in the midst of it; our hash does not stay."""
    with pytest.raises(SettingsError, match="is there already"):
        write(bucket.place, recipients, lambda _: bucket.lie_there(NAME.file))

    assert bucket.seen.read(NAME.file) == b"x"


class GivenError(Exception):
    """What ends a backup in its midst."""


def test_backup_that_fails_leaves_nothing(
    bucket: Bucket, recipients: list[str]
) -> None:
    """By its own fault, and by age's, which says why."""

    def fail(_: Writer) -> None:
        raise GivenError

    with pytest.raises(GivenError):
        write(bucket.place, recipients, fail)
    with pytest.raises(SettingsError, match="nonsense"):
        put(bucket.place, ["--recipient=age1nonsense"])

    assert bucket.seen.names() == []
    assert bucket.uploads() == []


def test_link_that_is_cut_in_the_midst(
    s3_server: S3Server, recipients: list[str]
) -> None:
    """For good: a sentence, and nothing that passes for a backup."""
    with Link(s3_server.port) as link:
        bucket = Bucket(s3_server, link.port)

        def lose(archive: Writer) -> None:
            until(lambda: bucket.uploads() == [f"a/{NAME.file}"])
            with link.cut():
                for each in range(10):
                    archive.add_bytes(f"more{each}", CONTENT)

        with pytest.raises(SettingsError, match="does not answer"):
            write(bucket.place, recipients, lose)
    assert bucket.seen.names() == []


def test_link_that_comes_back_costs_nothing(
    s3_server: S3Server, recipients: list[str], key: Path
) -> None:
    """Within the time that it is tried again for."""
    with Link(s3_server.port) as link:
        bucket = Bucket(s3_server, link.port)
        table = {**bucket.table, "retry_s": 60}
        place = opened_by(bucket.url, table)
        with place.writing(NAME, recipients, NOW) as archive:
            with link.cut():
                archive.add_bytes("content", CONTENT[:1000])
            for each in range(3):
                archive.add_bytes(f"more{each}", CONTENT)
        with fetched(f"{bucket.url}/{NAME.file}", table, "bucket") as path:
            found = {name: content.read() for name, _, content in reading(path, key)}

    assert len(found) == 4
    assert found["more2"] == CONTENT


class LossyLink(Link):
    """A link on which one answer is lost: to the first request that has a word in it.

    Args:
        target: the port behind it.
        word: of the request.
    """

    def __init__(self, target: int, word: bytes) -> None:
        super().__init__(target)
        self._word = word
        self._awaits = False
        self.lost = 0

    def passed(self, piece: bytes) -> bytes:
        """End the connection in the place of that answer."""
        if self._awaits and piece.startswith(b"HTTP/1."):
            self._awaits = False
            self.lost += 1
            msg = "lost"
            raise OSError(msg)
        self._awaits = self._awaits or (self.lost == 0 and self._word in piece)
        return piece


@pytest.mark.parametrize(
    "word", [b"<CompleteMultipartUpload", b"if-none-match", b"&uploads= "]
)
def test_answer_that_is_lost_is_no_other_backup(
    s3_server: S3Server, recipients: list[str], word: bytes
) -> None:
    """The store did what it was asked; asked again, it says that it is there."""
    with LossyLink(s3_server.port, word) as link:
        bucket = Bucket(s3_server, link.port)
        table = {**bucket.table, "retry_s": 60}
        put(opened_by(bucket.url, table), recipients)

    assert link.lost == 1
    assert bucket.seen.names() == [NAME.file, f"{NAME.file}.sha256"]
    assert bucket.uploads() == []


def test_bucket_that_is_not_there_is_told(s3_server: S3Server) -> None:
    """Before anything is made; so is a store that is away."""
    for url, port, word in (
        ("s3://no-such-bucket", None, "NoSuchBucket"),
        ("s3://docs", 1, "does not answer"),
    ):
        place = opened_by(url, table_of(s3_server, port))
        with pytest.raises(SettingsError, match=f"{url}: .*{word}"):
            place.check()


def test_bucket_that_goes_away_in_the_midst(
    bucket: Bucket, recipients: list[str]
) -> None:
    """Removed by somebody: a sentence with S3's word."""

    def remove(_: Writer) -> None:
        address = f"http://127.0.0.1:{bucket.server.port}/{bucket.name}"
        assert httpx.delete(address, timeout=CALL_S).status_code == 204

    with pytest.raises(SettingsError, match="NoSuch"):
        write(bucket.place, recipients, remove)


@contextmanager
def asking_for_keys(server: S3Server) -> Iterator[None]:
    """Have the server look at signatures, meanwhile."""
    address = f"http://127.0.0.1:{server.port}/moto-api/reset-auth"
    httpx.post(address, content=b"0", timeout=CALL_S).raise_for_status()
    try:
        yield
    finally:
        httpx.post(address, content=b"Infinity", timeout=CALL_S).raise_for_status()


def test_wrong_key_is_told(tmp_path: Path) -> None:
    """With S3's word, and without the key."""
    with S3Server.running(tmp_path) as server:
        bucket = Bucket(server)
        with asking_for_keys(server), pytest.raises(SettingsError) as refused:
            bucket.place.check()

    assert "403" in str(refused.value)
    assert "InvalidAccessKeyId" in str(refused.value)
    assert SECRET_KEY not in str(refused.value)


def damaged(bucket_storage: BucketStorage, how: str) -> None:
    """Have a backup be another than it was."""
    content = bucket_storage.read(NAME.file)
    bucket_storage.write(
        NAME.file,
        {
            "cut": content[:-1000],
            "changed": content[:PART] + b"x" + content[PART + 1 :],
            "empty": b"",
        }[how],
    )


@pytest.mark.parametrize("how", ["cut", "changed", "empty"])
def test_damaged_backup_is_not_given(
    bucket: Bucket, recipients: list[str], how: str
) -> None:
    """By its hash, before anything is made of it; nothing of the copy is left."""
    put(bucket.place, recipients)
    damaged(bucket.seen, how)

    with (
        pytest.raises(SettingsError, match="cut off or damaged"),
        fetched(f"{bucket.url}/{NAME.file}", bucket.table, "bucket"),
    ):
        raise GivenError
    assert not list(Path("/var/tmp").glob(f"rubrica-fetch-*/{NAME.file}"))  # noqa: S108 (where it works)


def test_backup_that_is_replaced_while_it_is_read(
    bucket: Bucket,
    recipients: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of a copy is of one version."""
    put(bucket.place, recipients)
    place = bucket.place
    pieces = place._pieces

    def replaced(*arguments: Any) -> Iterator[bytes]:
        given = pieces(*arguments)
        yield next(given)
        damaged(bucket.seen, "changed")
        yield from given

    monkeypatch.setattr(place, "_pieces", replaced)
    with pytest.raises(SettingsError, match="took its place"):
        place.fetch(NAME.file, tmp_path / "copy")


@pytest.mark.parametrize(
    ("is_seen", "word"), [(True, "has 1 MiB of room"), (False, "No space left")]
)
def test_disk_without_room_is_told(
    bucket: Bucket,
    recipients: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_seen: bool,
    word: str,
) -> None:
    """Before a byte is fetched, or where somebody else takes the room meanwhile."""
    put(bucket.place, recipients)
    place, disk = bucket.place, tmp_path / "disk"
    disk.mkdir()
    if not is_seen:
        monkeypatch.setattr(bucket_destination, "refuse_small", lambda *_: None)
    with small_disk(disk, 1_048_576) as mounted:
        if not mounted:
            pytest.skip("this user mounts no disk")
        with pytest.raises(SettingsError, match=word):
            place.fetch(NAME.file, disk / "copy")


def test_what_is_no_backup_of_ours_stays(bucket: Bucket, recipients: list[str]) -> None:
    """Another installation's, the other kind, what has no name, and the newest."""
    other = "ba9876543210"
    days = [NOW - timedelta(days=each) for each in range(1, 4)]
    ours = [BackupName(RECORD, OURS, day).file for day in days]
    theirs = [
        *(BackupName(RECORD, other, day).file for day in days),
        *(BackupName(RECORD, None, day).file for day in days),
        *(BackupName(SECRETS, OURS, day).file for day in days),
        *("rubrica-note.txt", f"deep/{ours[0]}"),
    ]
    sums = [f"{each}.sha256" for each in ours]
    bucket.lie_there(*ours, *theirs, *sums)
    earlier = [each.file for each in bucket.place.files()]
    put(bucket.place, recipients)
    # Another run's, which began before this one had ended: each lets the other's be.
    meanwhile = BackupName(RECORD, OURS, NOW - timedelta(minutes=1)).file
    bucket.lie_there(meanwhile)

    made = making.Made(bucket.place, NAME, 1, 1)
    gone = making.forget_older(made, keep=2, earlier=earlier)

    assert gone == [f"{bucket.url}/{each}" for each in ours[1:]]
    kept = {NAME.file, f"{NAME.file}.sha256", ours[0], sums[0], *theirs}
    assert set(bucket.seen.names()) == kept | {meanwhile}


def test_list_is_whole_beyond_a_page(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what begins as a backup's name does is ours to look at."""
    monkeypatch.setattr(bucket_destination, "_PAGE", 2)
    names = [
        BackupName(RECORD, OURS, NOW + timedelta(seconds=each)).file
        for each in range(5)
    ]
    bucket.lie_there(*names, "another")

    assert [each.file for each in bucket.place.files()] == names


def test_what_killed_backups_left_goes(bucket: Bucket, recipients: list[str]) -> None:
    """Parts of ours, of long ago as this server says of all; another's stay."""
    other = BackupName(RECORD, "ba9876543210", NOW)
    for each in (NAME, other):
        begin_upload(bucket.server, f"{bucket.name}/a/{each.file}")

    put(bucket.place, recipients)

    assert bucket.uploads() == [f"a/{other.file}"]


def test_parts_are_held_one_at_a_time(
    bucket: Bucket, recipients: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large a backup is, what is not sent yet is not made yet."""
    goes_on, sent, made = threading.Event(), [0], [0]
    send = multipart_upload.PartedUpload._send

    def held(upload: multipart_upload.PartedUpload, part: memoryview) -> None:
        assert goes_on.wait(60)
        send(upload, part)
        sent[0] += len(part)

    monkeypatch.setattr(multipart_upload.PartedUpload, "_send", held)

    def write(archive: Writer) -> None:
        for each in range(60):
            archive.add_bytes(f"content{each}", CONTENT[:1_048_576])
            made[0] += 1_048_576

    with bucket.place.writing(NAME, recipients, NOW) as archive:
        writer = threading.Thread(target=write, args=(archive,))
        writer.start()
        until(lambda: made[0] >= PART)
        writer.join(2)
        ahead = made[0] - sent[0]
        goes_on.set()
        writer.join()
    assert ahead < 2 * PART
    assert sent[0] > 60 * 1_048_576


def test_table_is_looked_at() -> None:
    """Each fault in a line, by its key; no secret is shown."""
    wrong = {
        "endpoint": "https://user:word@s3.example",
        "access_key_file": "relative",
        "retry_s": -1,
        "colour": "red",
        "connect_timeout_s": 0,
    }
    with pytest.raises(SettingsError) as refused:
        bucket_of("s3://docs", wrong, "bucket")

    told = str(refused.value)
    for key in (*wrong, "secret_key_file"):
        assert f"bucket.{key}: " in told
    assert "word" not in told
    assert "documents." not in told


def test_certificate_of_the_store_is_checked(
    recipients: list[str], tmp_path: Path
) -> None:
    """By the table's file, and by the host's name; another's is told at once."""
    authority = make_authority(tmp_path)
    files = authority.certify(tmp_path, "localhost")
    with S3Server.running(tmp_path, tls=files) as server:
        url = f"s3://{server.new_bucket()}"
        right = table_of(server) | {
            "endpoint": f"https://localhost:{server.port}",
            "root_certificate_file": str(authority.certificate),
            "retry_s": 600,
        }
        other_name = right | {"endpoint": f"https://127.0.0.1:{server.port}"}
        unknown = {
            key: each for key, each in right.items() if key != "root_certificate_file"
        }

        put(opened_by(url, right), recipients)
        for wrong in (other_name, unknown):
            with pytest.raises(SettingsError, match="CERTIFICATE_VERIFY_FAILED"):
                opened_by(url, wrong).check()
        assert len(opened_by(url, right).files()) == 2
