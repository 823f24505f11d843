"""`rubrica check-config`: all that is wrong with the settings, and their files.

rubrica check-config
rubrica check-config --role api

What is certain from the file alone refuses it for every role; here the files
that it names are looked at besides, each as the role reads it that needs it.
"""

import argparse
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from appliance.cli.terminal import say
from appliance.database.password_files import read_password
from appliance.secrets.credential_files import given_file
from appliance.secrets.key_files import read_key_ring
from appliance.settings import Fault, Settings, SettingsError, load_settings
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
_FRONTS: Final = frozenset({"api", "embed", "admin"})
_SERVING: Final = _FRONTS | {"signing", "chores"}
_STORING: Final = _SERVING | {"migrate"}
_BACK: Final = (
    "bring it back from a backup; a first one is made by `rubrica setup`, a trial's by "
    "`rubrica init FOLDER`"
)
_WRITE: Final = "write it, or correct the path"


@dataclass(frozen=True, slots=True)
class _Named:
    """A file that the settings name."""

    key: str
    path: Path | None
    roles: frozenset[str]
    """Who reads it."""
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
    for file in _named(settings):
        if file.path is None or (role is not None and role not in file.roles):
            continue
        try:
            file.read(file.path)
        except PermissionError as exc:
            yield file.key, _unreadable(file.path, exc)
        except OSError as exc:
            text = f"{file.path}: cannot be read ({exc.strerror}); {file.remedy}"
            yield file.key, text
        except SettingsError as exc:
            yield file.key, f"{exc}"


def _unreadable(path: Path, exc: OSError) -> str:
    return (
        f"{path}: cannot be read ({exc.strerror}); run this as the role's own user "
        "with --role, or mend its owner and mode"
    )


def _named(settings: Settings) -> Iterator[_Named]:
    secrets = settings.secrets
    passwords = frozenset({"api", "embed"})
    keys: tuple[tuple[str, Path, frozenset[str]], ...] = (
        ("secrets.pepper_file", secrets.pepper_file, passwords),
        ("secrets.data_key_file", secrets.data_key_file, _FRONTS | {"chores"}),
        ("secrets.document_key_file", settings.document_key_file, _SERVING),
        ("secrets.lookup_key_file", secrets.lookup_key_file, _FRONTS),
    )
    for key, path, roles in keys:
        yield _Named(key, path, roles, _read_key, _BACK)
    database, redis = settings.database, settings.redis
    yield _Named(
        "database.password_file",
        database.password_file,
        _STORING,
        _read_password,
        _WRITE,
    )
    yield _Named(
        "redis.password_file", redis.password_file, _SERVING, _read_password, _WRITE
    )
    yield _Named(
        "database.root_certificate_file",
        database.root_certificate_file,
        _STORING,
        read_authorities,
        _WRITE,
    )
    yield _Named(
        "redis.root_certificate_file",
        redis.root_certificate_file,
        _SERVING,
        read_authorities,
        _WRITE,
    )
    documents = settings.documents
    for key in ("access_key_file", "secret_key_file"):
        yield _Named(
            f"documents.{key}",
            getattr(documents, key),
            _STORING,
            _read_password,
            _WRITE,
        )
    yield _Named(
        "documents.root_certificate_file",
        documents.root_certificate_file,
        _STORING,
        read_authorities,
        _WRITE,
    )
    yield _Named(
        "fonts_dir",
        settings.fonts_dir,
        frozenset({"signing"}),
        lambda path: next(path.iterdir(), None),
        "install Debian's fonts-liberation2, or correct the path",
    )
    chores = frozenset({"chores"})
    mail = settings.mail
    yield _Named(
        "mail.password_file", mail.password_file, chores, _read_password, _WRITE
    )
    yield _Named(
        "mail.root_certificate_file",
        mail.root_certificate_file,
        chores,
        read_authorities,
        _WRITE,
    )
    for number, outside in enumerate(settings.timestamps.outside):
        for key in (
            "password_file",
            "header_file",
            "certificate_file",
            "key_file",
            "ca_file",
        ):
            name = f"timestamps.outside.{number}.{key}"
            yield _Named(name, getattr(outside, key), chores, _read_some, _WRITE)


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
