"""PDFs in a local folder, by integrator and SHA-256.

Written to a temporary name, fsynced, renamed, and the folder fsynced, so that a
row that names a document is never ahead of its bytes. (obstore's local store
never fsyncs.)
"""

import asyncio
import contextlib
import hashlib
import os
import re
import secrets
from pathlib import Path

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId

_HEX = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[0-9a-f-]{36}")
_FOLDER_MODE = 0o770
_FILE_MODE = 0o660


class LocalDocuments:
    """A `DocumentStore` in one folder.

    Args:
        folder: made when it is not there. What is made is open to owner and
            group as far as the umask lets it be (roles may run as users of
            their own that share a group), and to nobody else.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, integrator: IntegratorId, content: bytes) -> str:
        """Keep the bytes durably before returning.

        Returns:
            Their SHA-256 in hex.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        return await asyncio.to_thread(self._put, integrator, content)

    async def get(self, integrator: IntegratorId, sha256: str) -> bytes:
        """Read them back, hashed again on the way.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, also when missing or altered.
        """
        return await asyncio.to_thread(self._get, integrator, sha256)

    def _path(self, integrator: IntegratorId, sha256: str) -> Path:
        if not _ID.fullmatch(integrator) or not _HEX.fullmatch(sha256):
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)
        return self._folder / integrator / sha256[:2] / f"{sha256}.pdf"

    def _put(self, integrator: IntegratorId, content: bytes) -> str:
        sha256 = hashlib.sha256(content).hexdigest()
        path = self._path(integrator, sha256)
        try:
            if _holds(path, content):
                # Another writer may be between its rename and its fsync.
                _sync_folder(path.parent)
            else:
                _make_folder(path.parent)
                _write_durably(path, content)
        except OSError as exc:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc
        return sha256

    def _get(self, integrator: IntegratorId, sha256: str) -> bytes:
        try:
            content = self._path(integrator, sha256).read_bytes()
        except OSError as exc:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)
        return content


def _holds(path: Path, content: bytes) -> bool:
    """Whether a file is there with these very bytes, not altered since."""
    try:
        return path.read_bytes() == content
    except FileNotFoundError:
        return False


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, each entry durable."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        with contextlib.suppress(FileExistsError):
            new.mkdir(mode=_FOLDER_MODE)
        _sync_folder(new.parent)


def _write_durably(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".new-{secrets.token_hex(8)}")
    # By os.open and not tempfile, so that the umask decides on the group's bits.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
