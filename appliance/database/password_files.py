"""Files that hold the password of a server, and nothing else."""

from pathlib import Path

from appliance.database.rights import OWNER
from appliance.secrets.credential_files import given_file
from appliance.settings import SettingsError


def read_password(path: Path) -> str:
    """Read the password in a file.

    Args:
        path: of the file, in whose place a credential of its name is read; white
            space around the password does not count.

    Raises:
        SettingsError: not readable, empty, or more than one line of UTF-8.
    """
    path = given_file(path)
    try:
        lines = path.read_text(encoding="utf-8").strip().splitlines()
    except OSError as exc:
        msg = f"{path}: cannot be read ({exc.strerror})"
        raise SettingsError(msg) from exc
    except UnicodeDecodeError:
        # The cause would show what the file holds.
        lines = []
    if len(lines) != 1:
        msg = f"{path}: must hold the password alone, on one line of UTF-8"
        raise SettingsError(msg)
    return lines[0]


def password_file_of(owners: Path, user: str) -> Path:
    """Where a user of the database has its password.

    Args:
        owners: that of the tables' owner, which the settings name; systemd hands each
            role its own by this one's name.
        user: of the database.
    """
    role = user.removeprefix("rubrica-")
    return owners if user == OWNER else owners.with_name(f"{owners.name}-{role}")
