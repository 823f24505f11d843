"""Stores that answer oddly, or mean harm: a sentence each, in time, with no harm done.

Source: docs/backup.md "Into a bucket".
"""

import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest

from appliance.operations.backup.bucket_destination import BucketDestination
from appliance.operations.backup.buckets import bucket_of
from appliance.operations.backup.names import RECORD, BackupName
from appliance.settings import SettingsError
from tests.support.services.http_service import HttpService

pytestmark = pytest.mark.full

NOW: Final = datetime(2026, 11, 24, 8, 32, 6, tzinfo=UTC)
NAME: Final = BackupName(RECORD, "0123456789ab", NOW)
CONTENT: Final = b"what lies there"
LONG: Final = (
    b"<Error><Code>%b</Code><StringToSign>" + b"x" * 3000 + b"</StringToSign></Error>"
)
"""As AWS words it where a signature is wrong: longer than what was asked for."""
Reply = tuple[int, bytes]


class OddStore(HttpService):
    """A store that answers as a test says.

    Args:
        reply: to method, name in the bucket, and query; 404 where that is None.
    """

    def __init__(self, reply: Callable[[str, str, set[str]], Reply | None]) -> None:
        super().__init__()
        self._reply = reply
        self.asked: list[str] = []

    def serve(self, http: BaseHTTPRequestHandler) -> None:
        """Answer one call."""
        parts = urlsplit(http.path)
        query = set(parse_qs(parts.query, keep_blank_values=True))
        self.asked.append(f"{http.command} {parts.path}")
        name = parts.path.removeprefix("/docs").lstrip("/")
        status, body = self._reply(http.command, name, query) or (404, b"")
        http.rfile.read(int(http.headers.get("Content-Length", 0)))
        http.send_response(status)
        http.send_header("Content-Length", str(len(body)))
        http.end_headers()
        if http.command != "HEAD":
            http.wfile.write(body)


def place_at(store: OddStore, folder: Path, retry_s: float = 60) -> BucketDestination:
    """Its bucket, as backups see it."""
    for name in ("id", "secret"):
        (folder / name).write_text("AKIA\n")
    table = {
        "endpoint": store.origin,
        "access_key_file": str(folder / "id"),
        "secret_key_file": str(folder / "secret"),
        "retry_s": retry_s,
    }
    return BucketDestination(bucket_of("s3://docs", table, "bucket"))


@pytest.mark.parametrize(
    "answer",
    [
        b'<?xml version="1.0" encoding="nobodys"?><a/>',
        b'<?xml version="1.0" encoding="shift_jis"?><a/>',
        b"<html>",
        b"",
        b"<a><Contents><Key>rubrica-</Key></Contents></a>",
    ],
)
def test_list_that_is_none_is_told(tmp_path: Path, answer: bytes) -> None:
    """Whatever a parser makes of it."""
    with OddStore(lambda *_: (200, answer)) as store:
        place = place_at(store, tmp_path, retry_s=0)
        with pytest.raises(SettingsError, match=r"^s3://docs: "):
            place.files()


UPLOAD: Final = (
    f"<Upload><Key>{NAME.file}</Key><UploadId>x</UploadId>"
    "<Initiated>{}</Initiated></Upload>"
)
WORD: Final = "nobody knows uploads"


@pytest.mark.parametrize(
    ("uploads", "told"),
    [
        (UPLOAD.format("2026-11-24T08:00:00"), WORD),
        (UPLOAD.format("yesterday"), "is no list"),
        ("<IsTruncated>true</IsTruncated>", "again and again"),
        (
            "<IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker>",
            "again and again",
        ),
    ],
)
def test_list_of_uploads_is_looked_at(tmp_path: Path, uploads: str, told: str) -> None:
    """A time without its zone; no time; a list without an end."""

    def reply(method: str, _: str, query: set[str]) -> Reply | None:
        if method == "GET" and "uploads" in query:
            return 200, f"<a>{uploads}</a>".encode()
        if method == "GET":
            return 200, b"<a/>"
        return (403, WORD.encode()) if method == "POST" else None

    with OddStore(reply) as store:
        place = place_at(store, tmp_path, retry_s=0)
        with (
            pytest.raises(SettingsError) as refused,
            place.writing(NAME, ["--recipient=none"], NOW),
        ):
            pytest.fail("nothing takes it")

    assert (told if told != WORD else "403") in str(refused.value)
    assert len(store.asked) < 10


def test_refusal_is_understood_however_long(tmp_path: Path) -> None:
    """At once: no hash beside a backup; a key that may not look."""
    refusal = (404, LONG % b"NoSuchKey")

    def reply(_: str, name: str, __: set[str]) -> Reply | None:
        if name == NAME.file:
            return 200, CONTENT
        return refusal

    with OddStore(reply) as store:
        place = place_at(store, tmp_path)
        place.fetch(NAME.file, tmp_path / "copy")
        refusal = (403, LONG % b"SignatureDoesNotMatch")
        began = time.monotonic()
        with pytest.raises(SettingsError, match=r"403 \(SignatureDoesNotMatch\)"):
            place.fetch(NAME.file, tmp_path / "other")

    assert (tmp_path / "copy").read_bytes() == CONTENT
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    "beside", [b"\x1b[2J" * 16, b"", b"0" * 70, hashlib.sha256(CONTENT).digest()]
)
def test_hash_that_is_none_is_none(tmp_path: Path, beside: bytes) -> None:
    """The backup is not believed, and nothing of it reaches the terminal."""

    def reply(_: str, name: str, __: set[str]) -> Reply:
        return (200, CONTENT) if name == NAME.file else (200, beside)

    with OddStore(reply) as store:
        place = place_at(store, tmp_path)
        with pytest.raises(SettingsError, match="beside it says none"):
            place.fetch(NAME.file, tmp_path / "copy")


def test_backup_that_is_gone_already_is_removed(tmp_path: Path) -> None:
    """By another run, or by a request whose answer was lost."""
    with OddStore(lambda *_: None) as store:
        place_at(store, tmp_path).remove(NAME.file)
    assert len(store.asked) == 2
