"""Files by which an operator says what a machine believes: read when they change.

    pins = PinnedFile(path)
    if (version := pins.version()) != read_at: ...

A file that is there and cannot be relied on is not taken for a missing one, which may
mean something else: a link that leads nowhere, or a file that others may write.

Source: stat(2), symlink(7).
"""

import errno
import os
from pathlib import Path
from typing import Final

import structlog

_log = structlog.get_logger(__name__)
_WRITTEN_BY_OTHERS: Final = 0o022
"""Mode bits by which the group, or everybody, may write."""

Version = tuple[int, int, int, int]


class PinnedFile:
    """A file of pins.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._told: int | None = None
        """Error that was logged last, so that it is logged once."""

    def version(self) -> Version:
        """Return another value once the file is another.

        Raises:
            FileNotFoundError: there is none.
            OSError: there is one, and it is not to be relied on.
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            if not os.path.lexists(self.path):
                self._told = None
                raise
            raise self.refused(errno.ENOLINK) from None
        except OSError as exc:
            self.refused(exc.errno or errno.EIO)
            raise
        if found.st_mode & _WRITTEN_BY_OTHERS:
            raise self.refused(errno.EPERM)
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size

    def refused(self, number: int) -> OSError:
        """Log, once, that the file is not relied on; return the error.

        Args:
            number: of `errno`.
        """
        reason = "others may write it" if number == errno.EPERM else os.strerror(number)
        if self._told != number:
            _log.error("pins.not_relied_on", path=str(self.path), reason=reason)
            self._told = number
        return OSError(number, reason, str(self.path))
