"""What backups are called: kind, installation, time.

    name = BackupName(RECORD, "0f3a5b7c9d1e", now).file
    BackupName.of(name)

A place may hold the backups of several installations: each removes its own alone.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

RECORD: Final = "record"
SECRETS: Final = "secrets"
SUFFIX: Final = ".tar.age"
SUM_SUFFIX: Final = ".sha256"
"""Of what says which hash a backup in a bucket has, after the backup's name."""
_PREFIX: Final = {RECORD: "rubrica-", SECRETS: "rubrica-secrets-"}
_TIME: Final = "%Y%m%dT%H%M%SZ"
_ID_CHARS: Final = 12
_FILE: Final = re.compile(
    r"rubrica-(?P<secrets>secrets-)?((?P<id>[0-9a-f]{12})-)?"
    r"(?P<time>[0-9]{8}T[0-9]{6}Z)\.tar\.age"
)


@dataclass(frozen=True, slots=True)
class BackupName:
    """The name of a backup."""

    kind: str
    """`RECORD` or `SECRETS`."""
    installation: str | None
    """See `installation_id`."""
    made: datetime
    """When it was begun, to the second."""

    @property
    def file(self) -> str:
        """As a file, or an object, is called."""
        whose = f"{self.installation}-" if self.installation else ""
        return f"{_PREFIX[self.kind]}{whose}{stamp(self.made)}{SUFFIX}"

    @classmethod
    def of(cls, file: str) -> Self | None:
        """What a name says; None: it is no backup's."""
        found = _FILE.fullmatch(file)
        if found is None:
            return None
        try:
            made = datetime.strptime(found["time"], _TIME).replace(tzinfo=UTC)
        except ValueError:
            return None
        return cls(SECRETS if found["secrets"] else RECORD, found["id"], made)


def stamp(at: datetime) -> str:
    """A time as it stands in a name."""
    return at.strftime(_TIME)


def installation_id(mark: str | None) -> str | None:
    """What tells an installation's backups from another's: 12 digits, hexadecimal.

    Args:
        mark: that its record has, and its place of documents bears; it comes back with
            the record. None: it was given none yet.
    """
    if mark is None:
        return None
    return hashlib.sha256(f"rubrica/backup/{mark}".encode()).hexdigest()[:_ID_CHARS]


def to_forget(files: list[str], newest: BackupName, keep: int) -> list[str]:
    """Names of those that go, newest first.

    Args:
        files: whatever lies in the place.
        newest: stays, whatever the clock was when others were made; what is of another
            kind or installation stays as well, and all where it has no installation.
        keep: how many stay, 1 or more.
    """
    if newest.installation is None:
        return []
    ours = [
        name
        for file in files
        if (name := BackupName.of(file)) is not None
        and (name.kind, name.installation) == (newest.kind, newest.installation)
        and file != newest.file
    ]
    ours.sort(key=lambda name: name.made, reverse=True)
    return [name.file for name in ours[keep - 1 :]]
