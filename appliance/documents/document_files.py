"""The file of one document: what it is bound to, what is in it, how old it is.

What comes out is hashed on the way, and its last piece held back until the hash
is right.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from appliance.documents.disk_errors import named_faults
from appliance.documents.encrypted_files import (
    DamagedError,
    ReadableFile,
    SealedReader,
    is_sealed,
)
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId

SHA256: Final = re.compile(r"[0-9a-f]{64}")
"""What a file is named by."""
_ID: Final = re.compile(r"[0-9a-f-]{36}")
_NAME: Final = re.compile(
    rf"(?P<integrator>{_ID.pattern})/[0-9a-f]{{2}}/(?P<sha256>{SHA256.pattern})\.pdf"
)
_PIECE_BYTES: Final = 1_048_576


def name_of(integrator: IntegratorId, sha256: str) -> str:
    """Where a document lies, below the folder or in the bucket of all documents.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`: no document is named so.
    """
    if not _ID.fullmatch(integrator) or not SHA256.fullmatch(sha256):
        raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)
    return f"{integrator}/{sha256[:2]}/{sha256}.pdf"


def named_document(name: str) -> tuple[IntegratorId, str] | None:
    """Whose document lies at a place, and its SHA-256; None: it is none's place."""
    found = _NAME.fullmatch(name)
    return found and (IntegratorId(found["integrator"]), found["sha256"])


def associated(integrator: IntegratorId, sha256: str) -> bytes:
    """What a file is bound to: whose it is, and what is in it."""
    return f"rubrica/document/1|{integrator}|{sha256}".encode()


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
