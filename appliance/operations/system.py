"""What setup does on the machine: commands as their users, files that are missing."""

import os
import pwd
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from appliance.cli.terminal import say
from appliance.settings import SettingsError
from appliance.settings.loading import PACKAGED

SETTINGS: Final = PACKAGED
"""Where the units read them."""
UNITS: Final = Path("/etc/systemd/system")
"""Where drop-ins of this machine are."""
DOCS: Final = Path(sys.prefix).parent / "docs"
"""The documentation of what is installed."""
COMPOSE: Final = Path(sys.prefix).parent / "packaging" / "compose"
"""compose.yaml, and what the database's image is built from: in the image alone."""


def run(
    *command: str,
    given: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a program of the machine; what it wrote.

    Args:
        command: program and arguments.
        given: on its input.
        environment: all of it; by default this process's.

    Raises:
        SettingsError: it failed; with what it said.
    """
    done = subprocess.run(  # noqa: S603 (our own words, no shell)
        command,
        capture_output=True,
        text=True,
        input=given,
        check=False,
        cwd="/",
        env=environment,
    )
    if done.returncode != 0:
        told = (done.stderr or done.stdout).strip()
        msg = f"{' '.join(command)}: failed ({done.returncode})\n{told}"
        raise SettingsError(msg)
    return done.stdout


def rubrica(*arguments: str) -> str:
    """Run a command of ours as the user whose work it is; what it wrote.

    Args:
        arguments: after `rubrica`.

    Raises:
        SettingsError: it failed; with what it said.
    """
    return run(*rubrica_command(*arguments))


def rubrica_command(*arguments: str, settings_file: Path = SETTINGS) -> list[str]:
    """The command line of `rubrica`.

    Args:
        arguments: after the settings.
        settings_file: absolute.
    """
    program = Path(sys.executable).with_name("rubrica-as-role")
    return [str(program), "--settings", str(settings_file), *arguments]


def psql(folder: str, port: int) -> list[str]:
    """The command line of psql as PostgreSQL's superuser.

    Args:
        folder: of its Unix socket.
        port: that is in the socket's name.
    """
    as_postgres = ["runuser", "-u", "postgres", "--"]
    return [*as_postgres, "psql", "-X", "-h", folder, "-p", str(port), "-U", "postgres"]


def write_if_missing(path: Path, text: str, *, mode: int, owner: str | int) -> None:
    """Write a file whole, unless it is there, and tell which.

    Args:
        path: of the file; its folder exists.
        text: of it.
        mode: its bits.
        owner: a user, whose group it gets too; a number is both's.

    Raises:
        SettingsError: its folder is not there.
    """
    if path.exists():
        say(f"kept  {path}")
    else:
        _write(path, text, mode, owner)
        say(f"made  {path}")


def write_as_it_is_now(path: Path, text: str, *, mode: int, owner: str | int) -> None:
    """Write a file that is this version's and nobody else's, and tell what was done.

    Args:
        path: of the file; its folder exists.
        text: of it.
        mode: its bits.
        owner: as of `write_if_missing`.

    Raises:
        SettingsError: its folder is not there.
    """
    is_new = not path.exists()
    if not is_new and path.read_text("utf-8") == text:
        say(f"kept  {path}")
        return
    _write(path, text, mode, owner)
    say(f"{'made ' if is_new else 'renewed'} {path}")


def _write(path: Path, text: str, mode: int, owner: str | int) -> None:
    if not path.parent.is_dir():
        msg = f"{path.parent}: is not there; make it, or correct the settings"
        raise SettingsError(msg)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    user, group = owner, owner
    if isinstance(owner, str):
        found = pwd.getpwnam(owner)
        user, group = found.pw_uid, found.pw_gid
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            # By the descriptor: whose folder it is may put another file under the name.
            os.fchown(file.fileno(), int(user), int(group))
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).rename(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def new_secret() -> str:
    """32 random bytes in hex, as the files of `[secrets]` hold them."""
    return secrets.token_hex(32) + "\n"
