"""Where backups go to, and lie: a folder, or a bucket of an S3-compatible store.

place = destination(config, RECORD)
with place.writing(name, recipients, now) as archive:
    …
place.files()
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from appliance.operations.backup.archive import Writer, writing
from appliance.operations.backup.names import BackupName
from appliance.operations.backup.work_folder import remove_dead
from appliance.settings import SettingsError
from appliance.system.durable_files import NEW


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in a place."""

    file: str
    """Its name in it."""
    size: int
    """In bytes."""
    written: datetime


class Destination(Protocol):
    """A place of backups of one kind."""

    @property
    def told(self) -> str:
        """As people are told of it: a folder's name, a bucket's URL."""

    def check(self) -> None:
        """Look whether it is there.

        Raises:
            SettingsError: it is not, or may not be looked at.
        """

    def writing(
        self, name: BackupName, recipients: list[str], now: datetime
    ) -> AbstractContextManager[Writer]:
        """Write a backup that is there whole after the block, or not at all.

        What killed ones left a day ago goes before it.

        Args:
            name: that none has yet.
            recipients: options of age(1).
            now: the time.

        Raises:
            SettingsError: what stands in the way.
            OSError: the same.
        """

    def files(self) -> list[Found]:
        """All that lies in it, backups and other things.

        Raises:
            SettingsError: it cannot be looked at.
            OSError: the same.
        """

    def remove(self, file: str) -> None:
        """Remove a backup; one that is gone already is removed.

        Raises:
            SettingsError: it cannot be removed.
            OSError: the same.
        """


class FolderDestination:
    """A folder.

    Args:
        folder: of this machine.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def told(self) -> str:
        """See `Destination`."""
        return str(self.folder)

    def check(self) -> None:
        """See `Destination`.

        Raises:
            SettingsError: it is not there.
        """
        if not self.folder.is_dir():
            msg = f"{self.folder}: is no folder"
            raise SettingsError(msg)

    @contextmanager
    def writing(
        self, name: BackupName, recipients: list[str], now: datetime
    ) -> Iterator[Writer]:
        """See `Destination`.

        Raises:
            SettingsError: what stands in the way.
            OSError: the same.
        """
        path = self.folder / name.file
        if path.exists():
            msg = f"{path}: is there already: run it again"
            raise SettingsError(msg)
        remove_dead(self.folder, f"{NEW}{'[0-9a-f]' * 16}", now)
        with writing(path, recipients) as archive:
            yield archive

    def files(self) -> list[Found]:
        """See `Destination`."""
        found = []
        for path in self.folder.iterdir():
            try:
                seen = path.lstat()
            except FileNotFoundError:
                continue  # somebody else removed it
            written = datetime.fromtimestamp(seen.st_mtime, UTC)
            found.append(Found(path.name, seen.st_size, written))
        return found

    def remove(self, file: str) -> None:
        """See `Destination`."""
        # Another run may have removed it already.
        (self.folder / file).unlink(missing_ok=True)


def refuse_small(folder: Path, size: int) -> None:
    """Refuse a disk without room.

    Args:
        folder: on it.
        size: in bytes.

    Raises:
        SettingsError: it has less than so many bytes.
    """
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    if free < size:
        msg = (
            f"{folder}: has {free >> 20} MiB of room, and the backup needs "
            f"{size >> 20}: make room, or fetch it yourself and give the file"
        )
        raise SettingsError(msg)
