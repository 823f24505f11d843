"""The oldest activation format that counts on a machine, pinned there by a file.

An installation that was upgraded has no such file: fronts and workers of the release
before run beside those of this one, and both formats count. A file says when that is
over. Who writes to the database alone brings no earlier format back.
"""

import os
from pathlib import Path

import structlog

from appliance.domain.errors import FilesAwayError
from appliance.domain.signing.activation import ActivationFormat
from appliance.system.pinned_files import PinnedFile, Version

_log = structlog.get_logger(__name__)


class PinnedFormat:
    """The format that a file names, read again whenever the file is another.

    Args:
        path: of the file, whose one line is a number of `ActivationFormat`.
    """

    def __init__(self, path: Path) -> None:
        self._file = PinnedFile(path)
        self._read_at: Version | None = None
        self._oldest = ActivationFormat.FIRST

    @property
    def oldest(self) -> ActivationFormat:
        """The oldest format that counts; the first one where there is no file.

        Raises:
            FilesAwayError: what is there cannot be read or relied
                on, or names no format that this release knows.
        """
        try:
            version = self._file.version()
            if version != self._read_at:
                text = self._file.path.read_text("ascii")
                self._oldest = ActivationFormat(int(text))
                self._read_at = version
        except FileNotFoundError:
            return ActivationFormat.FIRST
        except (OSError, ValueError) as exc:
            # A file that cannot be read is not taken for none, which would let
            # the first format count again.
            _log.error("activation.format_unreadable", path=str(self._file.path))
            raise FilesAwayError from exc
        return self._oldest


def pin_format(path: Path, oldest: ActivationFormat) -> None:
    """Write the file whole or not at all; everybody may read it.

    Args:
        path: of the file.
        oldest: format that counts from now on.

    Raises:
        OSError: it cannot be written.
    """
    new = path.with_name(f".{path.name}.new")
    with new.open("w", encoding="ascii") as file:
        file.write(f"{oldest.value}\n")
        os.fchmod(file.fileno(), 0o644)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
