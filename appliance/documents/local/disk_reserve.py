"""Room kept on the documents' disk for what was signed already.

Before a key is used the reserve must stand; when the disk is full after that, it is
let go of, and the signed document takes its place. No key is used again until the
disk has room for another reserve.

Source: reliability F19.
"""

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

from appliance.core.durable_files import NEW, held_alone

_NAME: Final = ".reserve"
_FILE_MODE: Final = 0o660


class Reserve:
    """A file that takes up room and nothing else.

    Args:
        folder: of the documents.
        size_bytes: how much; 0 for none at all.
    """

    def __init__(self, folder: Path, size_bytes: int) -> None:
        self._path = folder / _NAME
        self._size = size_bytes

    def keep(self) -> None:
        """Make sure that it stands, in its whole size.

        Raises:
            OSError: there is no room for it.
        """
        if self._size == 0 or self._stands():
            return
        # Two that make one at once would need room for both.
        with held_alone(self._path.parent):
            if not self._stands():
                self._make()

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
