"""Either place of documents: a folder, or a bucket, and what lies there as it is.

def test_…(document_place: DocumentStorage) -> None:
    sha256 = await document_place.store.put(…)
    document_place.write(name, document_place.read(name)[:-1])
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from appliance.documents.local.blob_store import LocalBlobStore
from appliance.documents.local.folder_mark import (
    DocumentMark,
    MarkedFolder,
    MarkedPlace,
)
from appliance.documents.s3.blob_store import S3BlobStore
from appliance.documents.s3.bucket import Bucket
from appliance.documents.s3.bucket_mark import BucketMark, MarkedBucket
from appliance.domain.ports import BlobMaintenance, DocumentKeys
from appliance.record.unit_of_work import Database
from appliance.settings import DocumentSettings


class DocumentStorage(Protocol):
    """Where documents lie, and a store over it."""

    @property
    def to_mark(self) -> MarkedPlace:
        """As `rubrica migrate` marks it."""
        ...

    def store_with(
        self, keys: DocumentKeys, record: Database | None = None
    ) -> BlobMaintenance:
        """A store by some keys; it looks at the mark where a record is given."""
        ...

    def names(self) -> list[str]:
        """Of all that lies there, in order."""
        ...

    def read(self, name: str) -> bytes:
        """What lies at a place."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Put something there, behind the store's back."""
        ...

    def remove(self, name: str) -> None:
        """Take something away, behind the store's back."""
        ...

    def written(self, name: str) -> datetime | None:
        """When that was put there last; None where there is nothing."""
        ...


@dataclass(frozen=True)
class FolderStorage:
    """A folder."""

    folder: Path

    @property
    def to_mark(self) -> MarkedPlace:
        """As `rubrica migrate` marks it."""
        return MarkedFolder(self.folder)

    def store_with(
        self, keys: DocumentKeys, record: Database | None = None
    ) -> BlobMaintenance:
        """A store by some keys; it looks at the mark where a record is given."""
        mark = None if record is None else DocumentMark(record, self.folder)
        return LocalBlobStore(self.folder, keys, mark=mark)

    def names(self) -> list[str]:
        """Of all that lies there, in order."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return sorted(path.relative_to(self.folder).as_posix() for path in found)

    def read(self, name: str) -> bytes:
        """What lies at a place."""
        return (self.folder / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Put something there, behind the store's back."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def remove(self, name: str) -> None:
        """Take something away, behind the store's back."""
        (self.folder / name).unlink()

    def written(self, name: str) -> datetime | None:
        """When that was put there last; None where there is nothing."""
        path = self.folder / name
        if not path.exists():
            return None
        return datetime.fromtimestamp(path.stat().st_mtime).astimezone()


@dataclass(frozen=True)
class BucketStorage:
    """A bucket."""

    settings: DocumentSettings

    @property
    def bucket(self) -> Bucket:
        """A client of it."""
        return Bucket(self.settings)

    @property
    def to_mark(self) -> MarkedPlace:
        """As `rubrica migrate` marks it."""
        return MarkedBucket(self.bucket)

    def store_with(
        self, keys: DocumentKeys, record: Database | None = None
    ) -> BlobMaintenance:
        """A store by some keys; it looks at the mark where a record is given."""
        mark = None if record is None else BucketMark(record, self.settings)
        return S3BlobStore(self.bucket, keys, mark)

    def names(self) -> list[str]:
        """Of all that lies there, in order."""
        return _names(self.bucket)

    def read(self, name: str) -> bytes:
        """What lies at a place."""
        return _content(self.bucket, name)

    def write(self, name: str, content: bytes) -> None:
        """Put something there, behind the store's back."""
        self.bucket.write(name, content)

    def remove(self, name: str) -> None:
        """Take something away, behind the store's back."""
        self.bucket.delete(name)

    def written(self, name: str) -> datetime | None:
        """When that was put there last; None where there is nothing."""
        stored = self.bucket.look(name)
        return None if stored is None else stored.written

    def copy_to(self, folder: Path) -> None:
        """Have a folder hold what lies there, and nothing else.

        A document that the folder has already is not fetched again.
        """
        # One client for all: each reads the certificates of all the world's CAs.
        copy, bucket = FolderStorage(folder), self.bucket
        names, there = set(_names(bucket)), set(copy.names())
        for name in there - names:
            copy.remove(name)
        for name in names - {each for each in there if each.endswith(".pdf")}:
            copy.write(name, _content(bucket, name))


def _names(bucket: Bucket) -> list[str]:
    return [each.name for page in bucket.pages() for each in page]


def _content(bucket: Bucket, name: str) -> bytes:
    stored = bucket.look(name)
    assert stored is not None
    found = bucket.read(name, 0, max(stored.size_bytes, 1))
    assert found is not None
    return bytes(found[1])


KINDS = ("folder", "bucket")
