"""The file of one document: its name, its format, and what it is bound to.

An encrypted file is written and read in pieces: none is ever whole in memory for it.

    magic (8) | header (40) | segment | segment | …

What follows the magic is a stream of Tink's AES256_GCM_HKDF_1MB: the header is its
own length (1 byte, 40), a salt (32) and the first 7 bytes of every nonce; the key of
the file is HKDF-SHA256 of the integrator's key, with the salt, and the associated
data as info. A segment is AES-256-GCM under the nonce `prefix | number (4 bytes,
big-endian) | 1 for the last, else 0`, tag included 1 MiB long but for the last; the
header counts to the first. So a file that is cut, grown, put together anew, or that
lies in another's place does not open. What comes out is hashed on the way, and its
last piece held back until the hash is right.

Source: Tink, "AES-GCM-HKDF Streaming AEAD"; Hoang, Reyhanitabar, Rogaway, Vizár,
"Online Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance" (STREAM).
"""

import errno
import hashlib
import io
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from appliance.domain.errors import (
    DOCUMENTS_AWAY,
    ApplianceError,
    DocumentAlteredError,
    DocumentMissingError,
    ErrorCode,
)
from appliance.domain.ids import IntegratorId
from appliance.domain.ports import DocumentMemory
from appliance.metrics import metrics

SHA256: Final = re.compile(r"[0-9a-f]{64}")
"""What a file is named by."""
_ID: Final = re.compile(r"[0-9a-f-]{36}")
_NAME: Final = re.compile(
    rf"(?P<integrator>{_ID.pattern})/[0-9a-f]{{2}}/(?P<sha256>{SHA256.pattern})\.pdf"
)

MAGIC: Final = b"\x89RBKDOC1"
"""No PDF that was ever taken in begins so."""
_SALT_BYTES: Final = 32
_PREFIX_BYTES: Final = 7
_HEADER_BYTES: Final = 1 + _SALT_BYTES + _PREFIX_BYTES
_TAG_BYTES: Final = 16
_SEGMENT_BYTES: Final = 1_048_576
_FIRST_BYTES: Final = _SEGMENT_BYTES - _HEADER_BYTES
_SEGMENTS_AT_MOST: Final = 2**32
_log = structlog.get_logger(__name__)
_PIECE_BYTES: Final = 1_048_576
"""Of a file of before encryption, read at a time."""
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class ReadableFile(Protocol):
    """A file on disk, or what is read like one."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes; fewer only at the end."""
        ...

    def seek(self, offset: int, /) -> int:
        """Go to a place, counted from the start."""
        ...


class MemoryPart:
    """Some of a document's bytes that are not in the heap, to be cut as a view is.

    Args:
        memory: that holds them.
        start: of the first one.
        end: after the last one.
    """

    def __init__(self, memory: DocumentMemory, start: int, end: int) -> None:
        self._memory = memory
        self._start = start
        self._end = end

    def __len__(self) -> int:
        """How many there are."""
        return self._end - self._start

    def __getitem__(self, cut: slice) -> "MemoryPart":
        """Some of them; the slice has no step."""
        start, end, _ = cut.indices(len(self))
        return MemoryPart(self._memory, self._start + start, self._start + end)

    def read(self) -> bytes:
        """All of them."""
        return self._memory.read(self._start, len(self))


Part: TypeAlias = memoryview | MemoryPart
"""Bytes of a document that is to be kept: single bytes, or not in the heap at all."""


class DamagedError(Exception):
    """A file that is not what was written, or not under this key."""


@contextmanager
def named_faults() -> Iterator[None]:
    """Name what the disk and the files say.

    Raises:
        DocumentMissingError: there is no such file.
        DocumentAlteredError: it is not what it is named by, or of another key.
        ApplianceError: `STORAGE_FULL`, `STORE_UNAVAILABLE`.
    """
    try:
        yield
    except FileNotFoundError as exc:
        raise DocumentMissingError from exc
    except OSError as exc:
        if exc.errno in _FULL:
            raise ApplianceError(ErrorCode.STORAGE_FULL) from exc
        raise ApplianceError(
            ErrorCode.STORE_UNAVAILABLE, sentence=DOCUMENTS_AWAY
        ) from exc
    except DamagedError as exc:
        raise DocumentAlteredError from exc


@contextmanager
def reading(integrator: IntegratorId, sha256: str) -> Iterator[None]:
    """Name what the disk says of one document, and report a damaged one.

    Args:
        integrator: whose.
        sha256: what it is named by.

    Raises:
        DocumentMissingError: as `named_faults`.
        DocumentAlteredError: as there.
        ApplianceError: as there.
    """
    try:
        with named_faults():
            yield
    except (DocumentMissingError, DocumentAlteredError) as exc:
        metrics.DOCUMENT_DAMAGED.set_to_current_time()
        kind = "missing" if isinstance(exc, DocumentMissingError) else "altered"
        _log.warning(
            "document.damaged", integrator=integrator, sha256=sha256, kind=kind
        )
        raise


def name_of(integrator: IntegratorId, sha256: str) -> str:
    """Where a document lies, below the folder or in the bucket of all documents.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`: no document is named so.
    """
    if not _ID.fullmatch(integrator) or not SHA256.fullmatch(sha256):
        raise ApplianceError(ErrorCode.STORE_UNAVAILABLE, sentence=DOCUMENTS_AWAY)
    return f"{integrator}/{sha256[:2]}/{sha256}.pdf"


def named_document(name: str) -> tuple[IntegratorId, str] | None:
    """Whose document lies at a place, and its SHA-256; None: it is none's place."""
    found = _NAME.fullmatch(name)
    return found and (IntegratorId(found["integrator"]), found["sha256"])


def associated(integrator: IntegratorId, sha256: str) -> bytes:
    """What a file is bound to: whose it is, and what is in it."""
    return f"rubrica/document/1|{integrator}|{sha256}".encode()


def read_document(
    path: Path, integrator: IntegratorId, sha256: str, key: bytes | None
) -> bytes:
    """The document in a file on disk, hashed again on the way.

    Args:
        path: of the file.
        integrator: whose.
        sha256: what it is named by.
        key: the integrator's; None where there is none.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`; `DOCUMENT_DAMAGED`: missing or altered.
    """
    # A BytesIO grows in place and gives its buffer away uncopied.
    content = io.BytesIO()
    with reading(integrator, sha256), path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        reader = contents(file, size_bytes, integrator, sha256, key)
        for piece in hashed(reader, sha256):
            content.write(piece)
    return content.getvalue()


def contents(
    file: ReadableFile,
    size_bytes: int,
    integrator: IntegratorId,
    sha256: str,
    key: bytes | None,
) -> Iterable[bytes]:
    """What is in a file, in pieces; one of before encryption is as it is.

    Args:
        file: at its start.
        size_bytes: of the file.
        integrator: whose.
        sha256: what it is named by.
        key: the integrator's; None where there is none.

    Raises:
        DamagedError: it is encrypted, and not as it must be, or there is no key.
    """
    if not is_sealed(file):
        return iter(lambda: file.read(_PIECE_BYTES), b"")
    if key is None:
        raise DamagedError
    return SealedReader(file, size_bytes, key, associated(integrator, sha256))


def sealed_part(content: Iterable[bytes], start: int, end: int) -> Iterator[bytes]:
    """Some of what is in a file that was encrypted; see `SealedReader.part`.

    Raises:
        DamagedError: it is not encrypted: no part of it can be checked.
    """
    if not isinstance(content, SealedReader):
        raise DamagedError
    return content.part(start, end)


def hashed(pieces: Iterable[bytes], sha256: str) -> Iterator[bytes]:
    """The pieces; the last one only when all of them have that hash.

    Raises:
        DamagedError: they have another.
    """
    digest = hashlib.sha256()
    before: bytes | None = None
    for piece in pieces:
        if before is not None:
            yield before
        digest.update(piece)
        before = piece
    if digest.hexdigest() != sha256:
        raise DamagedError
    if before is not None:
        yield before


def opens(
    file: ReadableFile,
    size_bytes: int,
    integrator: IntegratorId,
    sha256: str,
    key: bytes,
) -> bool:
    """Whether a file is encrypted and opens to what it is named by.

    Args:
        file: at its start.
        size_bytes: of the file.
        integrator: whose.
        sha256: what it is named by.
        key: the integrator's.
    """
    if not is_sealed(file):
        return False
    try:
        for _ in hashed(contents(file, size_bytes, integrator, sha256, key), sha256):
            pass
    except DamagedError:
        return False
    return True


def older(folder: Path, before: datetime) -> list[str]:
    """SHA-256 of the documents in a folder that were put in last before then.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`.
    """
    with named_faults():
        return sorted(
            path.stem
            for path in folder.glob("*.pdf")
            if SHA256.fullmatch(path.stem) and is_older(path, before)
        )


def is_older(path: Path, before: datetime) -> bool:
    """Whether a file is there and was written or put in again last before then."""
    try:
        return path.stat().st_mtime < before.timestamp()
    except FileNotFoundError:
        return False


def is_sealed(file: ReadableFile) -> bool:
    """Whether a file is of this format; leaves it at its start.

    Args:
        file: at its start.
    """
    begins = file.read(len(MAGIC))
    file.seek(0)
    return begins == MAGIC


class NewDocument:
    """A document that is to be kept.

    Args:
        integrator: whose.
        parts: its bytes, one after the other, or the memory that has all of them.
        key: of the integrator.
    """

    def __init__(
        self,
        integrator: IntegratorId,
        parts: Sequence[bytes | memoryview | DocumentMemory],
        key: bytes,
    ) -> None:
        self.integrator = integrator
        self.key = key
        self._parts: list[Part] = []
        digest, known = hashlib.sha256(), ""
        for part in parts:
            if isinstance(part, bytes | memoryview):
                view = memoryview(part).cast("B")
                digest.update(view)
                self._parts.append(view)
            else:
                self._parts.append(MemoryPart(part, 0, part.size_bytes))
                known = part.sha256
        if known and len(parts) > 1:
            msg = "a document in memory of its own is all of it"
            raise ValueError(msg)
        self.sha256 = known or digest.hexdigest()
        """In hex."""
        self.size_bytes = sum(map(len, self._parts))

    def sealed(self) -> Iterator[bytes]:
        """The encrypted file, in pieces of up to 1 MiB; another one at each call."""
        salt = secrets.token_bytes(_SALT_BYTES)
        prefix = secrets.token_bytes(_PREFIX_BYTES)
        aead = _aead(self.key, salt, associated(self.integrator, self.sha256))
        yield MAGIC + bytes([_HEADER_BYTES]) + salt + prefix
        left, pieces = self.size_bytes, _Pieces(self._parts)
        number, room = 0, _FIRST_BYTES - _TAG_BYTES
        while True:
            size = min(left, room)
            left -= size
            nonce = _nonce(prefix, number, last=left == 0)
            yield aead.encrypt(nonce, pieces.take(size), None)
            if left == 0:
                return
            number, room = number + 1, _SEGMENT_BYTES - _TAG_BYTES


class SealedReader:
    """Opens a file that `seal` made.

    Args:
        file: at its start.
        file_bytes: its size.
        key: 32 bytes.
        associated: as it was sealed with.

    Raises:
        DamagedError: no such file has this size or header.
    """

    def __init__(
        self, file: ReadableFile, file_bytes: int, key: bytes, associated: bytes
    ) -> None:
        head = file.read(len(MAGIC) + _HEADER_BYTES)
        header = head[len(MAGIC) :]
        body = file_bytes - len(MAGIC) - _HEADER_BYTES
        beyond = max(body - _FIRST_BYTES, 0)
        self._segments = 1 + -(-beyond // _SEGMENT_BYTES)
        self.size_bytes = body - self._segments * _TAG_BYTES
        """Of what comes out."""
        if (
            not head.startswith(MAGIC)
            or len(header) != _HEADER_BYTES
            or header[0] != _HEADER_BYTES
            or self.size_bytes < 0
            or self._segments > _SEGMENTS_AT_MOST
        ):
            raise DamagedError
        self._file = file
        self._prefix = header[-_PREFIX_BYTES:]
        self._aead = _aead(key, header[1:-_PREFIX_BYTES], associated)

    def __iter__(self) -> Iterator[bytes]:
        """What was sealed, in pieces of up to 1 MiB, each authentic.

        Raises:
            DamagedError: a piece is not what was written, or is not the last one.
        """
        for number in range(self._segments):
            yield self._opened(number)

    def part(self, start: int, end: int) -> Iterator[bytes]:
        """Read some of what was sealed, in pieces of up to 1 MiB, each authentic.

        The last segment is opened first: only it proves that nothing was cut off, so
        that the size is the document's.

        Args:
            start: offset of the first byte.
            end: offset after the last byte; not before `start`, nor past the end.

        Raises:
            DamagedError: a segment is not what was written.
        """
        final = self._segments - 1
        at_end = self._opened(final)
        for number in range(_segment_at(start), final + 1):
            begins = _begin_of(number)
            if begins >= end:
                return
            piece = at_end if number == final else self._opened(number)
            yield piece[max(start - begins, 0) : end - begins]

    def _opened(self, number: int) -> bytes:
        """Open one segment.

        Raises:
            DamagedError: it is not what was written there.
        """
        begins = _begin_of(number) + number * _TAG_BYTES
        self._file.seek(len(MAGIC) + _HEADER_BYTES + begins)
        sealed = self._file.read(_FIRST_BYTES if number == 0 else _SEGMENT_BYTES)
        nonce = _nonce(self._prefix, number, last=number == self._segments - 1)
        try:
            return self._aead.decrypt(nonce, sealed, None)
        except InvalidTag as exc:
            raise DamagedError from exc


def _segment_at(offset: int) -> int:
    """Number of the segment that has a document's byte."""
    beyond = offset - (_FIRST_BYTES - _TAG_BYTES)
    return 0 if beyond < 0 else 1 + beyond // (_SEGMENT_BYTES - _TAG_BYTES)


def _begin_of(number: int) -> int:
    """Offset in the document of a segment's first byte."""
    if number == 0:
        return 0
    return _FIRST_BYTES - _TAG_BYTES + (number - 1) * (_SEGMENT_BYTES - _TAG_BYTES)


class _Pieces:
    """Several views as if they were one."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = [part for part in parts if len(part)]

    def take(self, size: int) -> bytes | memoryview:
        """The next bytes; copied only where two views meet."""
        if self._parts and len(self._parts[0]) >= size:
            first = self._parts[0]
            self._parts[0] = first[size:]
            piece = first[:size]
            return piece if isinstance(piece, memoryview) else piece.read()
        taken = bytearray()
        while len(taken) < size:
            first = self._parts.pop(0)
            wanted = size - len(taken)
            piece = first[:wanted]
            taken += piece if isinstance(piece, memoryview) else piece.read()
            if len(first) > wanted:
                self._parts.insert(0, first[wanted:])
        return bytes(taken)


def _aead(key: bytes, salt: bytes, associated: bytes) -> AESGCM:
    derived = HKDF(hashes.SHA256(), 32, salt, associated).derive(key)
    return AESGCM(derived)


def _nonce(prefix: bytes, number: int, *, last: bool) -> bytes:
    return prefix + number.to_bytes(4, "big") + bytes([last])
