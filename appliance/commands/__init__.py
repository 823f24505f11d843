"""The `rubrica` command line.

    rubrica --settings var/settings.toml check-config

Each package brings its own sub-commands by the entry point group
`rubrica.commands`, so that nothing here imports upward.
"""

import argparse
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from appliance.domain.errors import ApplianceError
from appliance.settings import SettingsError

SETTINGS_VARIABLE: Final = "RUBRICA_SETTINGS"
_PLACES: Final = (Path("var/settings.toml"), Path("/etc/rubrica/settings.toml"))
EX_CONFIG: Final = 78
"""Exit status of an unusable settings file. Source: sysexits(3)."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the process's exit status."""
    parser = argparse.ArgumentParser(
        prog="rubrica",
        description="Sign PDF documents remotely with keys that an HSM protects.",
    )
    parser.add_argument(
        "--settings",
        type=Path,
        default=_settings_path(),
        help=f"settings file (default: ${SETTINGS_VARIABLE}, var/settings.toml "
        "here, or /etc/rubrica/settings.toml)",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for point in sorted(entry_points(group="rubrica.commands")):
        point.load()(commands)
    args = parser.parse_args(arguments)
    _close_to_others()
    try:
        status: int = args.run(args)
    except SettingsError as exc:
        sys.stderr.write(f"{exc}\n")
        return EX_CONFIG
    except ApplianceError as exc:
        reason = getattr(exc, "reason", "")
        sys.stderr.write(f"{exc}{f' ({reason})' if reason else ''}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def _settings_path() -> Path:
    named = os.environ.get(SETTINGS_VARIABLE)
    if named:
        return Path(named)
    return next((path for path in _PLACES if path.exists()), _PLACES[-1])


def _close_to_others() -> None:
    """Have every file that is made be its owner's alone.

    A umask that shuts others out already was chosen, as by the systemd units,
    whose roles share files by their group; it stays.
    """
    chosen = os.umask(0o077)
    if chosen & 0o007 == 0o007:  # noqa: PLR2004 (all that others may be given)
        os.umask(chosen)
