"""The `rubrica` command line.

    rubrica --settings var/settings.toml check-config

Each package brings its own sub-commands by the entry point group
`rubrica.commands`, so that nothing here imports upward.
"""

import argparse
import os
import sys
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Final, cast

from appliance.cli.as_role import role_of
from appliance.cli.command_parser import EX_USAGE, CommandParser
from appliance.domain.errors import SENTENCES, ApplianceError, ErrorCode
from appliance.domain.vocab import Environment
from appliance.runtime.loading import loading
from appliance.settings import CommandError, SettingsError, load_settings
from appliance.settings.loading import PACKAGED

SETTINGS_VARIABLE: Final = "RUBRICA_SETTINGS"
_PLACES: Final = (Path("var/settings.toml"), PACKAGED)
EX_CONFIG: Final = 78
"""Exit status of an unusable settings file. Source: sysexits(3)."""
EX_TEMPFAIL: Final = 75
"""Exit status of what passes by itself: the database is away. Source: sysexits(3)."""
_PASSING: Final = {ErrorCode.STORE_UNAVAILABLE, ErrorCode.SANDBOX_UNAVAILABLE}
"""Errors that pass by themselves, and say nothing of what was asked for."""
_ROLES: Final = frozenset({"sandbox", "serve", "up", "worker"})
"""Commands that run roles."""
_EX_PIPE: Final = 128 + 13
"""As a shell tells of a process that SIGPIPE ended."""


def command_parser() -> argparse.ArgumentParser:
    """What reads a command line: of the core, and of every package's commands."""
    parser = CommandParser(
        prog="rubrica",
        description="Sign PDF documents remotely with keys that an HSM protects.",
        # Whose work a command is, is told before it is parsed: by whole words.
        allow_abbrev=False,
    )
    parser.add_argument(
        "--settings",
        type=Path,
        default=_settings_path(),
        help=f"settings file (default: ${SETTINGS_VARIABLE}, or "
        "/etc/rubrica/settings.toml; a trial's var/settings.toml here comes before "
        "that, but for root where the package is installed)",
    )
    parser.add_argument(
        "--version", action="version", version=f"rubrica {version('rubrica')}"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for point in sorted(entry_points(group="rubrica.commands")):
        point.load()(commands)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the process's exit status."""
    with loading():
        parser = command_parser()
    args = parser.parse_args(arguments)
    _close_to_others()
    try:
        _refuse_root(args.settings, sys.argv[1:] if arguments is None else arguments)
        status: int = args.run(args)
        # What is left in the buffer may be what cannot be written.
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read it, as `head` does, has read enough.
        _close_output()
        return _EX_PIPE
    except EOFError:
        _refuse("the input ended before it was all answered")
        return 1
    except (ApplianceError, SettingsError, SystemExit) as exc:
        return _refused(exc, args.command)
    except KeyboardInterrupt:
        return 130
    return status


def _refused(exc: BaseException, command: str) -> int:
    """Say why a command did not do what it was asked for; its exit status.

    Raises:
        SystemExit: an end without words.
    """
    match exc:
        case CommandError():
            _refuse(f"{exc}\nrubrica {command} --help tells more")
            return EX_USAGE
        case SettingsError():
            _refuse(f"{exc}{_hint(exc, command)}")
            return EX_CONFIG
        case ApplianceError():
            _refuse(_told(exc))
            return EX_TEMPFAIL if exc.code in _PASSING else 1
        case SystemExit(code=str() as words):
            _refuse(f"{words}{_hint(exc, command)}")
            return 1
    raise exc


def _refuse(text: str) -> None:
    """Say what went wrong, after all that was said before it, in a pipe as well."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _close_output()
    sys.stderr.write(f"{text}\n")


def _hint(exc: BaseException, command: str) -> str:
    """What to do about a file that this user may not read or write; mostly empty."""
    link: BaseException | None = exc
    while link is not None and not isinstance(link, PermissionError):
        link = link.__cause__
    # A role's unit gives it what it may read: no shell stands before it.
    if link is None or os.geteuid() == 0 or command in _ROLES:
        return ""
    return "\n  use sudo, or be the user that may"


def _refuse_root(settings_file: Path, arguments: list[str]) -> None:
    """Have nothing be made by root that a role of an installation could not read.

    Raises:
        SettingsError: root runs what is a role's work, in PROD.
    """
    role = role_of(arguments)
    if os.geteuid() != 0 or role is None or not settings_file.exists():
        return
    if load_settings(settings_file).environment is Environment.PROD:
        msg = (
            f"PROD: this is the work of the user rubrica-{role}, and what root makes "
            "it cannot read; run rubrica-as-role, or be that user"
        )
        raise SettingsError(msg)


def _told(exc: ApplianceError) -> str:
    """An error for a terminal: what may be written, and why it is so."""
    told = str(exc)
    if value := exc.params.get("value"):
        # Of what exists already: which field, and what was given for it.
        told = f"{told.removesuffix('.')} {value}."
    allowed = exc.extras.get("allowed")
    if allowed and exc.sentence == SENTENCES[exc.code]:
        told += f" Allowed: {', '.join(map(str, cast('list[str]', allowed)))}."
    reason = str(getattr(exc, "reason", ""))
    # The sandbox tells what a parser stumbled over by the name of its exception.
    is_name = reason.isidentifier() and reason.endswith(("Error", "Exception"))
    return f"{told} ({reason})" if reason and not is_name else told


def _close_output() -> None:
    """Let nothing be written any more, so that the interpreter's end is silent."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _settings_path() -> Path:
    named = os.environ.get(SETTINGS_VARIABLE)
    if named:
        return Path(named)
    return next((path for path in _PLACES if _is_there(path)), _PLACES[-1])


def _is_there(path: Path) -> bool:
    """Say no where this user may not look: a role stands in the folder of root."""
    try:
        return path.exists()
    except PermissionError:
        return False


def _close_to_others() -> None:
    """Have every file that is made be its owner's alone.

    A umask that shuts others out already was chosen, as by the systemd units,
    whose roles share files by their group; it stays.
    """
    chosen = os.umask(0o077)
    if chosen & 0o007 == 0o007:  # noqa: PLR2004 (all that others may be given)
        os.umask(chosen)
