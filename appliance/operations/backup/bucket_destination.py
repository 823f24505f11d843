"""Backups in a bucket: they are there whole, under names that nobody else took.

Beside each lies its SHA-256 (`….tar.age.sha256`, as sha256sum writes it). That is put
first, once all parts are there, and only where there is none: so that of two backups of
one name one gives up, by a store as well that knows no condition for what comes in
parts. The object appears last, at once and in full.

Source: docs/backup.md "Into a bucket".
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Final
from xml.etree import ElementTree as ET

from appliance.cli.terminal import say
from appliance.documents.s3.abandoned_uploads import UnfinishedUploads
from appliance.documents.s3.multipart_upload import PartedUpload, TakenError, patiently
from appliance.documents.s3.signed_requests import (
    Answer,
    BucketRequests,
    RefusedError,
    parsed,
)
from appliance.operations.backup.archive import Writer, sending
from appliance.operations.backup.buckets import BackupBucket, refuse_shared
from appliance.operations.backup.config import BackupConfig
from appliance.operations.backup.destinations import (
    Destination,
    FolderDestination,
    Found,
    refuse_small,
)
from appliance.operations.backup.names import SUM_SUFFIX, BackupName
from appliance.operations.backup.work_folder import DEAD
from appliance.settings import Settings, SettingsError

_BEGINS: Final = "rubrica-"
_DEAD_UPLOAD: Final = timedelta(days=7)
"""After which an upload is a killed backup's: how long one takes, its link decides."""
_PAGE: Final = 1000
"""Names that one request of a list gives, at most. Source: S3, ListObjectsV2."""
_PIECE: Final = 8_388_608
_SUM_BYTES: Final = 1024
_GONE: Final = 404
_CHANGED: Final = 412
_CONDITION: Final = {"if-none-match": "*"}
_SHA256: Final = re.compile(rb"[0-9a-f]{64}(?!\w)")
"""As sha256sum begins its line."""


class BucketDestination:
    """A bucket; see `Destination`.

    Args:
        bucket: and how it is reached.

    Raises:
        SettingsError: a file of its key cannot be used.
    """

    def __init__(self, bucket: BackupBucket) -> None:
        self._bucket = bucket
        limit = bucket.settings.request_timeout_s
        self._requests = BucketRequests(bucket.settings, limit)
        self._uploads = UnfinishedUploads(bucket.settings, limit)

    @property
    def told(self) -> str:
        """See `Destination`."""
        return self._bucket.url

    def check(self) -> None:
        """See `Destination`."""
        with self._named():
            self._page({"max-keys": "1"})

    @contextmanager
    def writing(
        self, name: BackupName, recipients: list[str], now: datetime
    ) -> Iterator[Writer]:
        """See `Destination`.

        Raises:
            SettingsError: what stands in the way.
            TakenError: never; it is told as the other.
        """
        upload = PartedUpload(self._requests, name.file, self._bucket.retry_s)
        with self._named():
            if any(self._look(each) for each in (name.file, name.file + SUM_SUFFIX)):
                raise TakenError
            self._clear(name, now)
            upload.begin()
        claimed = False

        def take(stream: IO[bytes]) -> None:
            with self._named():
                upload.take(stream)

        try:
            with sending(take, recipients) as archive:
                yield archive
            with self._named():
                self._claim(name.file, upload.sha256)
                claimed = True
                upload.complete()
        except BaseException:
            upload.stop()
            self._take_back(upload, name.file, claimed=claimed)
            raise
        say(f"{self.told}/{name.file}: SHA-256 {upload.sha256}")

    def files(self) -> list[Found]:
        """See `Destination`.

        Raises:
            SettingsError: it cannot be looked at.
            OSError: never; it is told as the other.
        """
        found: list[Found] = []
        query: dict[str, str] = {}
        with self._named():
            while True:
                page = self._page(query)
                found += [self._found(each) for each in page.findall("{*}Contents")]
                token = page.findtext("{*}NextContinuationToken") or ""
                if not token:
                    return found
                if token == query.get("continuation-token"):
                    msg = "gives one page of its list again and again"
                    raise OSError(msg)
                query = {"continuation-token": token}

    def remove(self, file: str) -> None:
        """See `Destination`."""
        with self._named():
            # Its hash last: one that is left over is removed later. Another run, or
            # one whose answer was lost, may have removed them already.
            for each in (file, file + SUM_SUFFIX):
                self._ask_if_there("DELETE", each)

    def fetch(self, file: str, into: Path) -> None:
        """Copy a backup to a file, and compare its hash with the one beside it.

        Args:
            file: its name in the bucket.
            into: a new file.

        Raises:
            SettingsError: it is not there, was replaced meanwhile, or has another hash;
                the store is away or refuses; there is no room.
        """
        with self._named():
            found = self._look(file)
            wanted = self._sum_of(file)
        if found is None:
            msg = f"{self.told}/{file}: is not there"
            raise SettingsError(msg)
        with self._named():
            size = int(found.headers.get("content-length", "none"))
        refuse_small(into.parent, size)
        digest = hashlib.sha256()
        try:
            with into.open("xb") as copy:
                for piece in self._pieces(file, size, found.headers.get("etag")):
                    copy.write(piece)
                    digest.update(piece)
        except OSError as exc:
            msg = f"{into.parent}: {exc.strerror or exc}"
            raise SettingsError(msg) from exc
        if wanted is None:
            say(
                f"{self.told}/{file}{SUM_SUFFIX}: is not there: age alone tells of harm"
            )
        elif wanted != digest.hexdigest():
            msg = (
                f"{self.told}/{file}: is cut off or damaged: its SHA-256 is "
                f"{digest.hexdigest()}, and the one beside it says {wanted or 'none'}"
            )
            raise SettingsError(msg)
        say(f"{self.told}/{file}: {size} bytes, SHA-256 {digest.hexdigest()}")

    def _pieces(self, file: str, size: int, version: str | None) -> Iterator[bytes]:
        """An object's bytes, all of one version.

        Raises:
            SettingsError: it is another one by now; the store is away or refuses.
            OSError: never; it is told as the other.
        """
        for start in range(0, size, _PIECE):
            wanted = min(_PIECE, size - start)
            more = {"range": f"bytes={start}-{start + wanted - 1}"}
            if version is not None:
                more["if-match"] = version
            with self._named():
                piece = self._ask("GET", file, more=more, most_bytes=wanted).content
                if len(piece) != wanted:
                    msg = f"{file}: gave {len(piece)} bytes where {wanted} were asked"
                    raise OSError(msg)
            yield piece

    def _claim(self, file: str, sha256: str) -> None:
        """Put the hash, where there is none.

        Raises:
            TakenError: there is one.
            RefusedError: the store refuses.
            OSError: it does not answer.
        """
        line = f"{sha256}  {file}\n".encode()
        try:
            self._ask("PUT", file + SUM_SUFFIX, line, _CONDITION)
        except RefusedError as exc:
            if exc.status != _CHANGED:
                raise
            # An answer that was lost: it may be the one that was sent before.
            if self._sum_of(file) != sha256:
                raise TakenError from exc

    def _sum_of(self, file: str) -> str | None:
        """The hash beside an object; None where nothing is, empty where it says none.

        Raises:
            OSError: the store does not answer, or refuses.
        """
        found = self._ask_if_there("GET", file + SUM_SUFFIX)
        if found is None:
            return None
        told = _SHA256.match(found.content)
        return told[0].decode() if told else ""

    def _take_back(self, upload: PartedUpload, file: str, *, claimed: bool) -> None:
        """Have nothing be left of what failed, as far as the store answers."""
        try:
            upload.abort()
            if claimed and self._look(file) is None:
                self._ask("DELETE", file + SUM_SUFFIX)
        except OSError as exc:
            say(
                f"{self.told}: what was sent is no backup, and is removed later ({exc})"
            )

    def _clear(self, name: BackupName, now: datetime) -> None:
        """Remove what this installation's killed backups left: parts, and hashes.

        A key that may not do it makes backups all the same.

        Raises:
            OSError: the store does not answer.
        """

        def is_ours(key: str) -> bool:
            other = BackupName.of(key.removeprefix(self._requests.prefix))
            return other is not None and (other.kind, other.installation) == (
                name.kind,
                name.installation,
            )

        try:
            if name.installation is not None:
                patiently(
                    lambda: self._uploads.abandon(now - _DEAD_UPLOAD, is_ours),
                    self._bucket.retry_s,
                )
                self._remove_lone_sums(is_ours, now)
        except RefusedError as exc:
            say(f"{self.told}: what killed backups left is not looked for ({exc})")

    def _remove_lone_sums(self, is_ours: Callable[[str], bool], now: datetime) -> None:
        found = {each.file: each for each in self.files()}
        for file, each in found.items():
            of = file.removesuffix(SUM_SUFFIX)
            lone = of != file and of not in found and is_ours(of)
            if lone and each.written < now - DEAD:
                self._ask("DELETE", file)

    def _look(self, file: str) -> Answer | None:
        """What a store says of an object; None where there is none.

        Raises:
            OSError: it does not answer, or refuses.
        """
        return self._ask_if_there("HEAD", file)

    def _ask_if_there(self, method: str, file: str) -> Answer | None:
        """Send a request of an object; None where there is none.

        Raises:
            RefusedError: the store refuses.
            OSError: it does not answer.
        """
        try:
            return self._ask(method, file)
        except RefusedError as exc:
            if exc.status == _GONE:
                return None
            raise

    def _page(self, more: dict[str, str]) -> ET.Element:
        """Some of the objects whose names begin as a backup's does.

        Raises:
            OSError: the store does not answer, or refuses.
        """
        query = {
            "list-type": "2",
            "prefix": self._requests.key(_BEGINS),
            "delimiter": "/",
            "max-keys": str(_PAGE),
            **more,
        }
        answer = patiently(
            lambda: self._requests.ask("GET", "", query), self._bucket.retry_s
        )
        return parsed(answer.content)

    def _found(self, each: ET.Element) -> Found:
        """One of a list.

        Raises:
            ValueError: it is none.
        """
        written = datetime.fromisoformat(each.findtext("{*}LastModified") or "")
        return Found(
            (each.findtext("{*}Key") or "").removeprefix(self._requests.prefix),
            int(each.findtext("{*}Size") or ""),
            written if written.tzinfo else written.replace(tzinfo=UTC),
        )

    def _ask(
        self,
        method: str,
        file: str,
        body: bytes = b"",
        more: dict[str, str] | None = None,
        most_bytes: int = _SUM_BYTES,
    ) -> Answer:
        key = self._requests.key(file)
        return patiently(
            lambda: self._requests.ask(method, key, {}, body, more, most_bytes),
            self._bucket.retry_s,
        )

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Tell of what a store says in a sentence.

        Raises:
            SettingsError: in the place of `OSError` and `TakenError`.
        """
        try:
            yield
        except TakenError as exc:
            msg = f"{self.told}: one of this second is there already: run it again"
            raise SettingsError(msg) from exc
        except RefusedError as exc:
            told = "another one took its place" if exc.status == _CHANGED else str(exc)
            msg = f"{self.told}: {told}"
            raise SettingsError(msg) from exc
        except OSError as exc:
            msg = f"{self.told}: does not answer: {str(exc) or type(exc).__name__}"
            raise SettingsError(msg) from exc
        except ValueError as exc:
            msg = f"{self.told}: answers as no store does ({exc})"
            raise SettingsError(msg) from exc


def places_of(
    settings: Settings, config: BackupConfig
) -> tuple[Destination, Destination | None]:
    """Where the record's backups go, and the secrets'.

    Args:
        settings: of the installation.
        config: that says so.

    Raises:
        SettingsError: it does not; or a place cannot be used, or is for another
            purpose as well.
    """
    refuse_shared(settings, *config.buckets())
    place, secrets_place = opened(config)
    if place is None:
        msg = "backup: where to? Give --to, or --config"
        raise SettingsError(msg)
    return place, secrets_place


def opened(config: BackupConfig) -> tuple[Destination | None, Destination | None]:
    """The same, of any installation.

    Args:
        config: that says so; None where it does not.

    Raises:
        SettingsError: a place cannot be used.
    """
    found: list[Destination | None] = []
    for where, bucket in zip(
        (config.to, config.secrets_to), config.buckets(), strict=True
    ):
        if bucket is not None:
            found.append(BucketDestination(bucket))
        else:
            found.append(FolderDestination(where) if isinstance(where, Path) else None)
    return found[0], found[1]
