"""`rubrica doctor`: what is amiss with an installation, and what to do about it.

Each part is looked at as the role that needs it, by that role's user; nothing is
changed. With `--deep` the HSM's keys are tried, the audit is read, and in PREPROD a
document is signed. With `--compose` it is an installation of containers that is looked
at, from within one of them (`appliance.operations.doctor.container_checks`).
"""

import argparse
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from appliance.cli.installation.stopped_trial import STOPPED, is_stopped_trial
from appliance.cli.terminal import log_to_stderr, say
from appliance.domain.errors import ErrorCode
from appliance.domain.vocab import Environment
from appliance.operations import installation_checks, system
from appliance.operations.doctor.health_checks import HEALTH, look_at_health
from appliance.operations.doctor.host_checks import look_at_hosts
from appliance.operations.doctor.pin_checks import look_at_pins
from appliance.operations.installation_checks import Finding
from appliance.operations.reachability import (
    database_remedy,
    look_at_redis,
    look_for_database,
)
from appliance.operations.systemd_units import left_out
from appliance.operations.upgrade.command import is_closed
from appliance.settings import Settings, SettingsError, load_settings

_PARTS: Final = (
    *(
        "units",
        "containers",
        "folders",
        "PINs",
        "settings",
        "database",
        "Redis",
        "documents",
        "service",
        "workers",
        "health",
        "anchors",
        "hosts",
    ),
    *("disk", "clock", "backups", "HSM", "audit", "sample"),
)

_ROLES: Final = {
    "database": ("migrate",),
    "documents": ("migrate",),
    "service": ("api",),
    "workers": ("migrate",),
    "health": ("migrate",),
    "anchors": ("signing",),
    "hosts": ("api",),
    "PINs": ("signing",),
    "audit": ("migrate",),
    "sample": ("migrate", "api"),
}
"""Who has to be of this host, that a part can be looked at."""
_OF_THE_RECORD: Final = frozenset(
    {
        "database",
        "documents",
        "service",
        "workers",
        "health",
        "anchors",
        "hosts",
        "backups",
        "audit",
        "sample",
    }
)
"""What nothing is told of while the database is away, but that it is: once."""
_HSM_S: Final = 300
"""Longest time for trying the keys of an HSM, in seconds."""


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `doctor`.

    Args:
        commands: of the `rubrica` parser.
    """
    doctor = commands.add_parser(
        "doctor",
        help="tell what is amiss with this installation, and what to do",
        epilog="It looks at a machine on which Rúbrica is installed; of a trial, "
        "`check-config` and `ready` tell. Exit status: 0, all is well; 1, something "
        "is not; 2, the command is wrong; 78, the settings cannot be used or are a "
        "trial's, or it is not root that asks.",
    )
    doctor.add_argument(
        "--deep",
        action="store_true",
        help="try the HSM's keys, read the audit, sign a sample in PREPROD",
    )
    doctor.add_argument(
        "--only", action="append", choices=_PARTS, help="one part; once more for others"
    )
    doctor.add_argument(
        "--compose",
        type=Path,
        metavar="FOLDER",
        help="look at an installation of containers, whose compose.yaml is in FOLDER",
    )
    doctor.set_defaults(run=_doctor)


def _doctor(args: argparse.Namespace) -> int:
    log_to_stderr()
    deep = args.deep or bool(args.only)
    if args.compose:
        from appliance.operations.doctor import container_checks  # noqa: PLC0415 (heavy)

        if not system.COMPOSE.is_dir():
            msg = "doctor: --compose is for the image; docs/installing.md, Containers"
            raise SettingsError(msg)
        settings = load_settings(system.SETTINGS)
        _remind(settings)
        parts = container_checks.parts(args.compose, settings, deep=deep)
        return _tell(parts, args.only, ())
    file = args.settings.absolute()
    # Before who asks: a trial is not root's.
    settings = load_settings(file)
    if settings.trial:
        msg = (
            f"{file}: is a trial's, and doctor looks at the users and units of an "
            "installed machine; of a trial, `rubrica check-config` and `rubrica "
            "ready` tell what is amiss"
        )
        if is_stopped_trial(settings):
            msg += f"; now {STOPPED}"
        raise SettingsError(msg)
    if os.geteuid() != 0:
        msg = "doctor: looks at what every role sees: run it as root"
        raise SettingsError(msg)
    if file != system.SETTINGS:
        say(f"note   units read {system.SETTINGS}; here it is {file}")
    others = left_out()
    if others:
        say(f"none   {', '.join(others)}: masked, not of this host")
    _remind(settings)
    parts = _parts(settings, file, deep=deep)
    return _tell(parts, args.only, others, lambda: list(look_for_database(settings)))


def _remind(settings: Settings) -> None:
    """Say that an upgrade is not closed, where it is not."""
    if not is_closed(settings):
        say(
            "note   what the release before needed still counts on this machine: "
            "`rubrica upgrade` tells what is left to do, `rubrica upgrade --close` "
            "ends it"
        )


def _tell(
    parts: Mapping[str, Callable[[], Iterator[Finding]]],
    only: Collection[str] | None,
    others: Collection[str],
    away: Callable[[], Sequence[Finding]] = tuple,
) -> int:
    """Look at each part and say what was found; the exit status.

    Args:
        parts: by name.
        only: names of those that are looked at; None: all.
        others: roles that are not of this host.
        away: tells that the database does not answer; it is asked once.
    """
    well = True
    record: Sequence[Finding] | None = None
    for part, look in parts.items():
        if only and part not in only:
            continue
        if not set(_ROLES.get(part, ())).isdisjoint(others):
            say(f"none   {part}: not of this host")
            continue
        if part in _OF_THE_RECORD:
            if record:
                say(f"none   {part}: not looked at while the database does not answer")
                continue
            record = away() if record is None else record
        found = record if part in _OF_THE_RECORD and record else _look(look)
        well = well and all(each.mark != "AMISS" for each in found)
        if not found:
            say(f"ok     {part}")
        for each in found:
            say(f"{each.mark:5}  {part}: {each.what}")
            for line in each.remedy.splitlines():
                say(f"         -> {line}")
    return 0 if well else 1


def _look(look: Callable[[], Iterator[Finding]]) -> Sequence[Finding]:
    try:
        return list(look())
    except Exception as exc:  # noqa: BLE001 (one part hides no other)
        return [Finding(f"could not be looked at: {exc!r}")]


def _parts(
    settings: Settings, file: Path, *, deep: bool
) -> dict[str, Callable[[], Iterator[Finding]]]:
    """What is looked at, in order; `file` has the settings."""
    parts: dict[str, Callable[[], Iterator[Finding]]] = {
        "units": lambda: installation_checks.look_at_units(settings),
        "folders": installation_checks.look_at_folders,
        "PINs": lambda: look_at_pins(settings),
        "settings": lambda: installation_checks.look_at_settings(file),
        "database": lambda: _look_at_database(settings, file),
        "Redis": lambda: look_at_redis(settings),
        "documents": lambda: _look_by(file, "documents", "check"),
        "service": lambda: installation_checks.look_at_service(settings),
        "workers": lambda: _look_at_workers(settings),
        "health": lambda: look_at_health(
            system.rubrica_command(*HEALTH, settings_file=file)
        ),
        "anchors": lambda: _look_by(file, "hsm", "anchors", "--check"),
        "hosts": lambda: look_at_hosts(
            system.rubrica_command("upgrade", "--hosts", settings_file=file)
        ),
        "disk": lambda: installation_checks.look_at_disk(settings),
        "clock": installation_checks.look_at_clock,
        "backups": lambda: _look_at_backups(settings),
        "HSM": lambda: _look_at_hsm(file, deep=deep),
    }
    if deep:
        parts["audit"] = lambda: _look_by(file, "audit", "verify", limit_s=None)
        if settings.environment is Environment.PREPROD:
            parts["sample"] = lambda: _look_by(file, "sample", limit_s=None)
    return parts


def _look_at_backups(settings: Settings) -> Iterator[Finding]:
    from appliance.operations.backup.look import (  # noqa: PLC0415 (heavy)
        look_at_backups,
    )

    yield from look_at_backups(settings)


def _look_at_database(settings: Settings, file: Path) -> Iterator[Finding]:
    for each in _look_by(file, "database", "check"):
        is_away = ErrorCode.STORE_UNAVAILABLE.value in each.what
        yield Finding(each.what, database_remedy(settings)) if is_away else each


def _look_at_workers(settings: Settings) -> Iterator[Finding]:
    from appliance.operations.doctor.worker_checks import look_at_workers  # noqa: PLC0415 (heavy)

    yield from look_at_workers(settings)


def _look_at_hsm(file: Path, *, deep: bool) -> Iterator[Finding]:
    kind = system.rubrica_command("hsm", "kind", settings_file=file)
    signs_here = "signing" not in left_out()
    yield from installation_checks.look_at_hsm_kind(kind, signs_here=signs_here)
    if deep and signs_here:
        yield from _look_by(file, "hsm", "check", "--quick", limit_s=_HSM_S)


def _look_by(
    file: Path, *arguments: str, limit_s: float | None = installation_checks.LOOK_S
) -> Iterator[Finding]:
    """What a command of ours finds amiss, by the settings of a file."""
    command = system.rubrica_command(*arguments, settings_file=file)
    lines = installation_checks.faults_of(command, limit_s)
    if lines:
        yield Finding(lines[-1], "rubrica " + " ".join(arguments))
