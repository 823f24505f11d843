"""Room on the documents' disk, kept for what was signed already.

Before a key is used the reserve must stand; when the disk is full after that, it is
let go of, and the signed document takes its place. No key is used again until the
disk has room for another reserve. What comes in leaves the room that signing needs.

Source: reliability F19.
"""

import contextlib
import errno
import os
import secrets
from pathlib import Path
from typing import Final

from appliance.documents.document_files import named_faults
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.system.durable_files import NEW, held, make_folder

_NAME: Final = ".reserve"
_FILE_MODE: Final = 0o660
_MARGIN_BYTES: Final = 2_097_152
"""What a file takes beside its bytes: tags, folders, the file system's own."""


class Reserve:
    """A file that takes up room and nothing else.

    Args:
        folder: of the documents.
        size_bytes: how much; 0 for none at all.
        intake_room_bytes: free room that what comes in leaves; 0: it may take all.
    """

    def __init__(self, folder: Path, size_bytes: int, intake_room_bytes: int) -> None:
        self._folder = folder
        self._path = folder / _NAME
        self._size = size_bytes
        self._intake_room = intake_room_bytes

    def make_room(self, size_bytes: int) -> None:
        """Make sure that it stands, with room beside it for what is yet to be signed.

        Args:
            size_bytes: of the document.

        Raises:
            ApplianceError: `STORAGE_FULL`, `STORE_UNAVAILABLE`.
        """
        with named_faults():
            if not self._stands():
                make_folder(self._folder)
                if self._size:
                    # Two that make one at once would need room for both.
                    with held(self._folder, alone=True):
                        if not self._stands():
                            self._make()
            disk = os.statvfs(self._folder)
        if disk.f_bavail * disk.f_frsize < size_bytes + _MARGIN_BYTES:
            raise ApplianceError(ErrorCode.STORAGE_FULL)

    def demand_intake_room(self, size_bytes: int) -> None:
        """Refuse what would take the room that signing needs.

        Args:
            size_bytes: of what comes in.

        Raises:
            OSError: ENOSPC.
        """
        disk = os.statvfs(self._folder)
        left = disk.f_bavail * disk.f_frsize - size_bytes - _MARGIN_BYTES
        if self._intake_room and left < self._intake_room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def release(self) -> None:
        """Give its room to somebody who needs it now."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    def _make(self) -> None:
        temporary = self._path.with_name(f"{NEW}{secrets.token_hex(8)}")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
        try:
            os.posix_fallocate(handle, 0, self._size)
            temporary.replace(self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        finally:
            os.close(handle)

    def _stands(self) -> bool:
        try:
            return self._path.stat().st_size >= self._size
        except FileNotFoundError:
            return False
