"""One upload in parts, which is an object only once it is said to be whole.

    upload = PartedUpload(requests, "backup.tar.age", retry_s=120)
    upload.begin()
    upload.take(stream)     # in any thread; until the stream's end
    upload.complete()       # unless there is such an object
    upload.abort()          # instead: nothing is left

Parts are held one at a time. What a link or a store fails at is tried again, as long
as it is said to be.

Source: Amazon S3 API Reference, "CreateMultipartUpload", "UploadPart",
"CompleteMultipartUpload", "AbortMultipartUpload"; Amazon S3 User Guide, "Multipart
upload limits", "Conditional writes".
"""

import contextlib
import hashlib
import secrets
import ssl
import threading
import time
from collections.abc import Callable
from typing import IO, Final, TypeVar
from xml.etree import ElementTree as ET

from appliance.documents.s3.signed_requests import (
    Answer,
    BucketRequests,
    RefusedError,
    parsed,
)

PART_BYTES: Final = 33_554_432
"""Of the first parts; all of them but the last have 5 MiB at least."""
_GROWS_EACH: Final = 1000
"""Parts after which they are as much larger as the first ones are."""
_MOST_PARTS: Final = 10_000
_TOKEN: Final = "x-amz-meta-rubrica-upload"  # noqa: S105 (a header's name)
_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 15.0
_JOINED_S: Final = 900.0
"""How long a store may take to make an object of its parts, in seconds."""
_CONDITION: Final = {"if-none-match": "*"}
_THERE: Final = frozenset({409, 412})
"""Of a condition that does not hold; 409 where another writer is at it."""
_GONE: Final = 404
_FOUND = TypeVar("_FOUND")


class StoppedError(Exception):
    """Somebody told it to stop."""


class TakenError(Exception):
    """An object of that name is there already."""


class PartedUpload:
    """An object to be.

    Args:
        requests: of its bucket.
        name: of it, below the bucket's prefix.
        retry_s: how long what fails is tried again, in seconds.
    """

    def __init__(self, requests: BucketRequests, name: str, retry_s: float) -> None:
        self._requests = requests
        self._key = requests.key(name)
        self._retry_s = retry_s
        self._token = secrets.token_hex(16)
        self._id = ""
        self._parts: list[str] = []
        self._hash = hashlib.sha256()
        self._stopped = threading.Event()
        self.size = 0
        """Bytes that were taken."""

    @property
    def sha256(self) -> str:
        """Of all that was taken, in hexadecimal."""
        return self._hash.hexdigest()

    def begin(self) -> None:
        """Have the store await parts.

        Raises:
            OSError: it does not answer, or refuses.
        """
        more = {_TOKEN: self._token, "content-type": "application/octet-stream"}
        found = self._asked(
            lambda: self._ask("POST", {"uploads": ""}, more=more).content
        )
        self._id = _text(found, "UploadId")

    def take(self, stream: IO[bytes]) -> None:
        """Send what a stream gives, to its end.

        Args:
            stream: read in pieces as large as a part.

        Raises:
            OSError: the store does not answer, or refuses; or there is too much.
            StoppedError: see `stop`.
        """
        while True:
            part = bytearray(PART_BYTES * (1 + len(self._parts) // _GROWS_EACH))
            size = _fill(part, stream)
            if size == 0 and self._parts:
                return
            if len(self._parts) == _MOST_PARTS:
                msg = f"is larger than a store takes: {self.size} bytes and more"
                raise OSError(msg)
            self._send(memoryview(part)[:size])
            if size < len(part):
                return

    def _send(self, part: memoryview) -> None:
        number = str(len(self._parts) + 1)
        query = {"partNumber": number, "uploadId": self._id}
        answer = self._asked(lambda: self._ask("PUT", query, part))
        self._parts.append(answer.headers.get("etag", ""))
        self._hash.update(part)
        self.size += len(part)

    def complete(self) -> None:
        """Have the parts be an object, where there is none; look at it.

        Raises:
            TakenError: there is one.
            RefusedError: the store refuses.
            OSError: it does not answer, or has not what was sent.
            StoppedError: see `stop`.
        """
        body = _listed(self._parts)
        try:
            self._asked(lambda: self._completed(body))
        except RefusedError as exc:
            # An answer may have been lost: it may be ours, and whole.
            if exc.status not in _THERE | {_GONE} or not self._is_ours():
                if exc.status in _THERE:
                    raise TakenError from exc
                raise
        except OSError:
            # Nothing came in time: it may have put them together all the same.
            if not self._is_ours():
                raise
        if not self._is_ours():
            msg = f"{self._key}: is there, and not as it was sent"
            raise OSError(msg)

    def _completed(self, body: bytes) -> None:
        answer = self._requests.ask(
            *("POST", self._key, {"uploadId": self._id}, body, _CONDITION),
            more_s=_JOINED_S,
        )
        # It says that it is well before it knows, and may then say otherwise.
        if b"<Error>" in answer.content or b"<Error " in answer.content:
            msg = f"{self._key}: the store could not put its parts together"
            raise OSError(msg)

    def _is_ours(self) -> bool:
        """Whether the object is what was sent.

        Raises:
            RefusedError: the store refuses.
            OSError: it does not answer.
        """
        try:
            found = self._asked(lambda: self._ask("HEAD", {})).headers
        except RefusedError as exc:
            if exc.status == _GONE:
                return False
            raise
        size = found.get("content-length")
        return found.get(_TOKEN) == self._token and size == str(self.size)

    def abort(self) -> None:
        """Have no part be left, as far as the store can be told.

        Raises:
            OSError: it does not answer, or refuses.
        """
        if not self._id:
            return
        with contextlib.suppress(RefusedError):
            self._ask("DELETE", {"uploadId": self._id})

    def stop(self) -> None:
        """Have the other thread end soon, with `StoppedError`."""
        self._stopped.set()

    def _ask(
        self,
        method: str,
        query: dict[str, str],
        body: bytes | memoryview = b"",
        more: dict[str, str] | None = None,
    ) -> Answer:
        return self._requests.ask(method, self._key, query, body, more)

    def _asked(self, ask: Callable[[], _FOUND]) -> _FOUND:
        return patiently(ask, self._retry_s, self._stopped)


def patiently(
    ask: Callable[[], _FOUND],
    retry_s: float,
    stopped: threading.Event | None = None,
) -> _FOUND:
    """Ask, and once more where that may help.

    Args:
        ask: what is done.
        retry_s: how long, in seconds, from the first time on.
        stopped: ends it.

    Raises:
        OSError: what it failed at last.
        StoppedError: it was told to stop.
    """
    until = time.monotonic() + retry_s
    stopped, pause_s = stopped or threading.Event(), _PAUSE_S
    while not stopped.is_set():
        try:
            return ask()
        except OSError as exc:
            refused = isinstance(exc, RefusedError) and not exc.may_pass
            # Of another store, or of one whose certificate ended.
            refused = refused or isinstance(exc, ssl.SSLCertVerificationError)
            if refused or time.monotonic() + pause_s > until:
                raise
        stopped.wait(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    raise StoppedError


def _fill(part: bytearray, stream: IO[bytes]) -> int:
    """Read until a part is full, or the stream ends; how many bytes it has."""
    size, left = 0, memoryview(part)
    while size < len(part):
        piece = stream.read(min(len(part) - size, 1 << 20))
        if not piece:
            break
        left[size : size + len(piece)] = piece
        size += len(piece)
    return size


def _text(answer: bytes, name: str) -> str:
    """A text of an answer.

    Raises:
        OSError: it has none.
    """
    with contextlib.suppress(OSError):
        if found := parsed(answer).findtext(f"{{*}}{name}"):
            return found
    msg = f"answered without {name}: is it a store that speaks S3?"
    raise OSError(msg)


def _listed(parts: list[str]) -> bytes:
    root = ET.Element(
        "CompleteMultipartUpload", xmlns="http://s3.amazonaws.com/doc/2006-03-01/"
    )
    for number, tag in enumerate(parts, 1):
        part = ET.SubElement(root, "Part")
        ET.SubElement(part, "PartNumber").text = str(number)
        ET.SubElement(part, "ETag").text = tag
    return ET.tostring(root)
