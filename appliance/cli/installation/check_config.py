"""`rubrica check-config`: all that is wrong with the settings, and their files.

rubrica check-config
rubrica check-config --role api

What is certain from the file alone refuses it for every role; here the files
that it names are looked at besides, each as the role reads it that needs it.
"""

import argparse
import importlib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, NamedTuple

from appliance.cli.terminal import say
from appliance.database.password_files import read_password
from appliance.secrets.credential_files import given_file
from appliance.secrets.key_files import read_key_ring
from appliance.settings import Fault, Settings, SettingsError, load_settings
from appliance.settings.named_files import Content, named_files
from appliance.system.tls import read_authorities

ROLES: Final = (
    "api",
    "embed",
    "admin",
    "metrics",
    "signing",
    "chores",
    "sandbox",
    "migrate",
)
_BACK: Final = (
    "bring it back from a backup; a first one is made by `rubrica setup`, a trial's by "
    "`rubrica init FOLDER`"
)
_WRITE: Final = "write it, or correct the path"


class _Look(NamedTuple):
    """How a file is looked at."""

    read: Callable[[Path], object]
    """Raises SettingsError, whose text begins with the path, or OSError."""
    remedy: str


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `check-config`.

    Args:
        commands: of the `rubrica` parser.
    """
    check = commands.add_parser(
        "check-config",
        help="check the settings file, and the files that it names",
        epilog="Exit status: 0, all is good; 78, each fault has a line of its own.",
    )
    check.add_argument(
        "--role", choices=ROLES, help="look only at what that role reads"
    )
    check.set_defaults(run=_check)


def _check(args: argparse.Namespace) -> int:
    settings = load_settings(args.settings)
    faults = dict.fromkeys(
        (*_files(settings, args.role), *_others(settings, args.role))
    )
    if faults:
        raise SettingsError(
            "\n".join(f"{args.settings}: {key}: {text}" for key, text in faults)
        )
    role = f", {args.role}" if args.role else ""
    say(f"{args.settings}: good ({settings.environment.value}{role})")
    return 0


def _others(settings: Settings, role: str | None) -> Iterator[Fault]:
    """Faults that other packages find: a `check_settings` beside their `register`."""
    for point in sorted(entry_points(group="rubrica.commands")):
        look = getattr(importlib.import_module(point.module), "check_settings", None)
        if look is not None:
            yield from look(settings, role)


def _files(settings: Settings, role: str | None) -> Iterator[Fault]:
    """Files that are not there, cannot be read, or hold something else."""
    for file in named_files(settings):
        if role is not None and role not in file.roles:
            continue
        look = _LOOKS[file.content]
        try:
            look.read(file.path)
        except PermissionError as exc:
            yield file.key, _unreadable(file.path, exc)
        except OSError as exc:
            text = f"{file.path}: cannot be read ({exc.strerror}); {look.remedy}"
            yield file.key, text
        except SettingsError as exc:
            yield file.key, f"{exc}"


def _unreadable(path: Path, exc: OSError) -> str:
    return (
        f"{path}: cannot be read ({exc.strerror}); run this as the role's own user "
        "with --role, or mend its owner and mode"
    )


def _read_key(path: Path) -> None:
    given_file(path).read_bytes()  # its own words for a file that is not there
    read_key_ring(path)


def _read_some(path: Path) -> bytes:
    """Read a file that must not be empty.

    Raises:
        SettingsError: it is.
    """
    if not (data := path.read_bytes().strip()):
        msg = f"{path}: is empty; write it"
        raise SettingsError(msg)
    return data


def _read_password(path: Path) -> None:
    given_file(path).read_bytes()
    read_password(path)


_LOOKS: Final[Mapping[Content, _Look]] = {
    Content.KEY: _Look(_read_key, _BACK),
    Content.PASSWORD: _Look(_read_password, _WRITE),
    Content.CERTIFICATES: _Look(read_authorities, _WRITE),
    Content.TEXT: _Look(_read_some, _WRITE),
    Content.FONTS: _Look(
        lambda path: next(path.iterdir(), None),
        "install Debian's fonts-liberation2, or correct the path",
    ),
}
