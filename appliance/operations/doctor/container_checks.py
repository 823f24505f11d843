"""What is amiss with an installation of containers: `rubrica doctor --compose FOLDER`.

    for part, look in parts(Path("/installation"), settings, deep=False).items():
        for finding in look():
            print(part, finding.what, finding.remedy)

The container `doctor` of compose.yaml runs it, as the user of every role. It has no
network, and so stands though the faces do not: who is alive, the figures tell that each
role hands over. Docker is not asked, and nothing is changed.

Source: docs/installing.md, "What is amiss".
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from appliance.cli.fronts import operators_front
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError
from appliance.domain.vocab import Environment
from appliance.operations import system
from appliance.operations.backup import record
from appliance.operations.compose import DATABASE_USER, USER
from appliance.operations.doctor.health_checks import HEALTH, look_at_health
from appliance.operations.doctor.host_checks import look_at_hosts
from appliance.operations.installation_checks import (
    LOOK_S,
    Finding,
    faults_of,
    look_at_disk,
    look_at_hsm_kind,
)
from appliance.operations.metrics.installation import of_backup
from appliance.operations.metrics.reading import ROLES, read_all
from appliance.operations.setup import servers
from appliance.operations.system import rubrica_command
from appliance.settings import Settings, SettingsError

_WORKERS: Final = frozenset({"1", "2"})
"""Signing workers of compose.yaml; further ones are known by their figures."""
_OWNED: Final[Mapping[str, tuple[int, int]]] = {
    "secrets": (0o700, USER),
    "hsm": (0o700, USER),
    "work": (0o700, USER),
    "redis.conf": (0o400, USER),
    "roles.sql": (0o400, DATABASE_USER),
}
"""Mode and owner of what stands in the folder."""
_OTHERS: Final = 0o077
_RENEWED: Final = ("compose.yaml", "database/Containerfile", "database/start")
"""What each version's setup brings to that version."""
_SETUP: Final = (
    'docker run --rm --user 0 -v "$PWD:/installation" rubrica setup'
    " --compose /installation"
)
_UP: Final = "docker compose up --detach"
_OPERATOR: Final = "docker compose run --rm operator"
_REDONE: Final = f"{_SETUP}\n{_UP} --force-recreate"
_READY: Final[Mapping[str, str]] = {
    "NOT_MIGRATED": "docker compose run --rm migrate",
    "TABLES_TOO_NEW": f"{_OPERATOR} database check tells which Rúbrica may use the "
    "tables",
    "NO_WORKER": f"docker compose logs --tail 20 signing-1\n{_UP}",
    "HSM_UNAVAILABLE": "docker compose run --rm hsm check --quick",
    "HSM_TAKEN_OVER": "the HSM serves another restore of this record; if this is the "
    "one that goes on: docker compose run --rm hsm take-over",
    "STORE_UNAVAILABLE": "docker compose logs --tail 20 database",
    "DOCUMENTS_AWAY": f"{_OPERATOR} documents check",
    "HOST_NOT_ADMITTED": "docker compose run --rm hsm init",
    "SANDBOX_UNAVAILABLE": "docker compose logs --tail 20 sandbox",
    "CLOCK_DRIFT": "mend time synchronisation of the host",
}
"""What to do, by what `/readyz` would tell."""
Look = Callable[[], Iterator[Finding]]


def parts(folder: Path, settings: Settings, *, deep: bool) -> dict[str, Look]:
    """What is looked at, in order.

    Args:
        folder: that compose.yaml stands in, as this container sees it.
        settings: of the installation.
        deep: the audit is read besides.
    """
    found: dict[str, Look] = {
        "containers": lambda: look_at_containers(settings),
        "folders": lambda: look_at_folder(folder),
        "settings": look_at_settings,
        "database": lambda: look_at_database(settings),
        "documents": partial(_look_by, "documents", "check"),
        "service": lambda: look_at_service(settings),
        "hosts": lambda: look_at_hosts(rubrica_command("upgrade", "--hosts")),
        "disk": lambda: look_at_disk(settings),
        "backups": lambda: look_at_backups(settings),
        "health": lambda: look_at_health(rubrica_command(*HEALTH)),
        "HSM": lambda: look_at_hsm_kind(rubrica_command("hsm", "kind")),
    }
    if deep:
        found["audit"] = partial(_look_by, "audit", "verify", limit_s=None)
    return found


def look_at_containers(settings: Settings) -> Iterator[Finding]:
    """Roles that hand no figures over: their containers do not run, or hang.

    Args:
        settings: of the installation.
    """
    processes = read_all(settings.metrics_dir)
    for role in ROLES:
        known = {each.number: each for each in processes if each.role == role}
        for number in sorted({*known, *(_WORKERS if role == "signing" else {"1"})}):
            name = f"signing-{number}" if role == "signing" else role
            process = known.get(number)
            if process is not None and process.fault:
                yield Finding(f"{name}: its figures cannot be read ({process.fault})")
            elif process is None or not process.is_alive:
                told = f"{name}: hands no figures over: it does not run, or hangs"
                why = f"docker compose logs --tail 20 {name}"
                yield Finding(told, f"docker compose ps {name}; {why}\n{_UP}")


def look_at_folder(folder: Path) -> Iterator[Finding]:
    """Files with another owner or mode, and those of another version.

    Args:
        folder: that compose.yaml stands in.
    """
    for name, (mode, user) in _OWNED.items():
        yield from _look_at_owner(folder, name, f"{mode:04o} {user}:{user}")
    for place in ("secrets", "hsm"):
        try:
            files = sorted((folder / place).iterdir())
        except OSError:
            continue  # told above
        for path in files:
            state = path.lstat()
            if state.st_uid != USER or state.st_mode & _OTHERS:
                yield from _look_at_owner(
                    folder, f"{place}/{path.name}", f"0600 {USER}:{USER}"
                )
    for name in _RENEWED:
        if _bytes_of(folder / name) != _bytes_of(system.COMPOSE / name):
            yield Finding(f"{name} is not this version's", _REDONE)


def _look_at_owner(folder: Path, name: str, wanted: str) -> Iterator[Finding]:
    try:
        state = (folder / name).lstat()
    except OSError as exc:
        yield Finding(f"{name}: {exc.strerror}", _SETUP)
        return
    has = f"{state.st_mode & 0o7777:04o} {state.st_uid}:{state.st_gid}"
    if has != wanted:
        mode, _, owner = wanted.partition(" ")
        remedy = f"chown {owner} {name}; chmod {mode} {name}"
        yield Finding(f"{name} is {has}, and not {wanted}", remedy)


def _bytes_of(path: Path) -> bytes | None:
    """What is in a file; None where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def look_at_settings() -> Iterator[Finding]:
    """Faults of the settings and of the files that they name."""
    for line in faults_of(rubrica_command("check-config")):
        yield Finding(line, "mend it, then docker compose restart")


def look_at_database(settings: Settings) -> Iterator[Finding]:
    """Users who do not get in with their passwords; tables and rights.

    Args:
        settings: of the installation.
    """
    try:
        refused = servers.refused_users(settings)
    except SettingsError as exc:
        why = "docker compose ps database; docker compose logs --tail 20 database"
        yield Finding(str(exc), f"{why}\n{_UP}")
        return
    for line in refused:
        yield Finding(line, f"{_SETUP}\n{_UP} --force-recreate database")
    if not refused:
        for line in faults_of(rubrica_command("database", "check")):
            yield Finding(line, "docker compose run --rm migrate")


def look_at_service(settings: Settings) -> Iterator[Finding]:
    """What `/readyz` would tell, in words.

    Args:
        settings: of the installation.
    """
    try:
        states = asyncio.run(_states(settings))
    except SettingsError as exc:
        yield Finding(str(exc))
        return
    except ApplianceError as exc:
        states = {"service": exc.code.value}
    for name, state in states.items():
        if state != "ok":
            yield Finding(f"{name}: {state}", _READY.get(state, ""))


async def _states(settings: Settings) -> dict[str, str]:
    async with operators_front(settings) as front:
        return await front.health.ready()


def look_at_backups(settings: Settings) -> Iterator[Finding]:
    """Whether one was made of late; one in PREPROD may never have been.

    Args:
        settings: of the installation.
    """
    try:
        made = record.last_backup(settings, int(record.table_version(settings)))
    except SettingsError as exc:
        yield Finding(str(exc))
        return
    trial = settings.environment is not Environment.PROD
    verdict = of_backup(made, SystemClock().now(), trial=trial)
    if verdict is not None and verdict.alert:
        told = f"the last one is of {made:%Y-%m-%d %H:%M} UTC" if made else "none yet"
        how = "docker compose --profile backup run --rm backup"
        yield Finding(told, f'{how} (docs/backup.md, "In containers")')


def _look_by(*command: str, limit_s: float | None = LOOK_S) -> Iterator[Finding]:
    """What a command of ours finds amiss."""
    lines = faults_of(rubrica_command(*command), limit_s)
    if lines:
        yield Finding(lines[-1], f"{_OPERATOR} {' '.join(command)}")
