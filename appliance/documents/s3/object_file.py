"""An object of a bucket, read as a file: some pieces of 1 MiB at a time."""

from typing import Final

from appliance.documents.document_files import DamagedError
from appliance.documents.s3.bucket import Bucket, ChangedError, Stored

_WINDOW_BYTES: Final = 4_194_304
"""Fetched by one request; a small document takes one."""
_APART_BYTES: Final = 1_048_576
"""Fetched by one request elsewhere than where the one before ended: a segment."""


class BucketFile:
    """A file that is fetched as it is read; all of it of one version.

    Args:
        bucket: where it is.
        name: of the object.

    Raises:
        FileNotFoundError: there is none.
        DocumentsAwayError: the store does not answer, or refuses.
    """

    def __init__(self, bucket: Bucket, name: str) -> None:
        self._bucket = bucket
        self._name = name
        self._version: str | None = None
        self._at = 0
        self._start = 0
        self._window = memoryview(b"")
        self.size_bytes = self._fetch(0).size_bytes

    def seek(self, offset: int, /) -> int:
        """Go to a place, counted from the start."""
        self._at = offset
        return offset

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes; fewer only at the end.

        Args:
            size: how many; -1: all that are left.

        Raises:
            DamagedError: another object has taken its place.
            DocumentsAwayError: the store does not answer, or refuses.
        """
        end = self.size_bytes if size < 0 else min(self._at + size, self.size_bytes)
        parts = []
        while self._at < end:
            if not self._start <= self._at < self._start + len(self._window):
                self._fetch(self._at)
            begin = self._at - self._start
            part = bytes(self._window[begin : begin + end - self._at])
            parts.append(part)
            self._at += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _fetch(self, start: int) -> Stored:
        """Have a window begin at a place.

        Raises:
            FileNotFoundError: there is no object.
            DamagedError: it is another one, or shorter than it said.
        """
        follows = start in {0, self._start + len(self._window)}
        self._window = memoryview(b"")  # one at a time
        most = _WINDOW_BYTES if follows else _APART_BYTES
        try:
            found = self._bucket.read(self._name, start, most, self._version)
        except ChangedError as exc:
            raise DamagedError from exc
        if found is None:
            raise FileNotFoundError(self._name)
        stored, self._window = found
        self._start, self._version = start, stored.version
        if not self._window and start < stored.size_bytes:
            raise DamagedError
        return stored
