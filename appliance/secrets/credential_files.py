"""Files with a secret, and the copies of them that systemd hands to a service.

`LoadCredential=pepper:/etc/rubrica/secrets/pepper` in a unit gives its process a copy
that nobody else can read, of a file that the process itself cannot.

Source: systemd.exec(5), "Credentials".
"""

import os
import stat
from pathlib import Path
from typing import Final

_FOLDER: Final = "CREDENTIALS_DIRECTORY"


def credentials() -> Path | None:
    """The folder of this service's credentials; None where it has none."""
    folder = os.environ.get(_FOLDER)
    return Path(folder) if folder else None


def given_file(path: Path) -> Path:
    """Where a secret is to be read: from the credential of its file's name, if any.

    Args:
        path: the file that the settings name.
    """
    folder = credentials()
    if folder is None:
        return path
    copy = folder / path.name
    return copy if copy.exists() else path


def bits_too_open(path: Path) -> int:
    """Mode bits that a file with a secret must not have.

    systemd hands a credential over by an ACL, whose mask shows as the group's
    read bit; the folder itself is closed to all others.
    """
    folder = credentials()
    if folder is not None and path.resolve().is_relative_to(folder.resolve()):
        return stat.S_IRWXO
    return stat.S_IRWXG | stat.S_IRWXO
