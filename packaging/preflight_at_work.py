# ruff: noqa: INP001 (it stands alone: packaging/build-deb puts it into the preinst)
"""Look, before an upgrade is unpacked, what HSM and database lack.

The Python of the version that is installed runs it, as root, out of the package's
preinst, on a host whose roles are at work: each look is that version's own, made by the
user of the role whose work it is. Not where an earlier version is gone back to: the
settings are that one's by then, and the installed version may not read them any more.

So what is imported here is the installed version's, which may have it in another module
than this one: each release that an upgrade may begin at is one that is tried.

Source: deb-preinst(5); docs/hsm.md; docs/database.md, "Who may use which tables".
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from appliance.settings import Settings

try:
    _as_role = import_module("appliance.cli.as_role")
except ModuleNotFoundError:  # as 0.1.0 has it
    _as_role = import_module("appliance.commands.as_role")

_SETTINGS: Final = Path("/etc/rubrica/settings.toml")
_AS_ROLE: Final = Path(sys.prefix) / "bin" / "rubrica-as-role"
_ASK_DATABASE: Final = ("migrate", "api", "embed", "admin", "chores", "signing")
"""Roles with a user of the database, the one that may most first."""
_WORKERS: Final = ("rubrica-signing@1.service", "rubrica-signing@2.service")
"""Those that rubrica.target starts."""
_PATIENCE_S: Final = 180
"""The longest that HSM or database may keep an upgrade waiting."""
_EX_USAGE: Final = 2
"""Of a command that the installed version does not know."""

_TABLES: Final = """
import asyncio, sys
from pathlib import Path
from appliance.settings import load_settings
try:
    from appliance.database.engines import open_engines
    from appliance.database.table_version import table_version
except ModuleNotFoundError:  # as 0.1.0 has them
    from appliance.storage.engines import open_engines
    from appliance.storage.table_version import table_version

async def main():
    engines = open_engines(load_settings(Path(sys.argv[1])))
    try:
        async with engines.reader.connect() as connection:
            print((await table_version(connection)).version)
    finally:
        await engines.dispose()

try:
    asyncio.run(main())
except Exception as exc:
    sys.exit(" ".join(str(exc).split()) or type(exc).__name__)
"""
"""Print of which version the tables are. Argument: the settings."""


class Lack(NamedTuple):
    """Something that is not there."""

    what: str
    remedy: str


def main(needed: str) -> int:
    """Tell what is lacking; the exit status is 1 where something is.

    Args:
        needed: the version that the new release makes of the tables.
    """
    with readable(_SETTINGS) as settings:
        found = [*_lacks_of_hsm(settings), *_lacks_of_database(settings, needed)]
    for lack in found:
        sys.stderr.write(f"rubrica: lacks {lack.what}\n    -> {lack.remedy}\n")
    return 1 if found else 0


def _lacks_of_hsm(settings: Path) -> Iterator[Lack]:
    """Objects that are missing, or an HSM that is away.

    No key is made, where the installed version knows how; 0.1.0 makes one and destroys
    it. Each look tries the PIN once.
    """
    if _is_left_out("signing"):
        return
    for how in ("--own", "--quick"):
        command = [str(_AS_ROLE), "--settings", str(settings), "hsm", "check", how]
        done = _ran(command)
        if done.returncode != _EX_USAGE:
            break
    if done.returncode != 0:
        yield from lacks_by_report(done.stdout or done.stderr)


def lacks_by_report(told: str) -> Iterator[Lack]:
    """What `rubrica hsm check` finds bad.

    Args:
        told: its table, or what it said in its place.
    """
    lines = [" ".join(line.split()) for line in told.splitlines()]
    bad = [line.removeprefix("BAD ") for line in lines if line.startswith("BAD ")]
    for line in bad or [_last(told)]:
        yield Lack(
            f"the HSM with all that is ours in it: {line}",
            "rubrica hsm check; a key of ours that is not there: rubrica hsm init makes"
            " it or says why not; an HSM that is away: install again once it answers",
        )


def _lacks_of_database(settings: Path, needed: str) -> Iterator[Lack]:
    asking = [role for role in _ASK_DATABASE if not _is_left_out(role)]
    if not asking:
        return
    options = _as_role.unit_options(asking[0], terminal=False)
    program = [sys.executable, "-I", "-c", _TABLES, str(settings)]
    done = _ran(["systemd-run", *options, "--", *program])
    if done.returncode != 0:
        yield Lack(
            f"the database: {_last(done.stderr or done.stdout)}",
            "rubrica database check; install again once it answers",
        )
        return
    yield from lacks_of_tables(
        _last(done.stdout), needed, is_migrated_here=asking[0] == "migrate"
    )


def lacks_of_tables(
    found: str, needed: str, *, is_migrated_here: bool
) -> Iterator[Lack]:
    """Tables that the new version's roles would wait for, and nobody here makes.

    Args:
        found: the version of the tables; `None` where there are none.
        needed: the version that the new release makes of them.
        is_migrated_here: whether this host does.
    """
    if is_migrated_here or (found.isdecimal() and int(found) >= int(needed)):
        return
    yield Lack(
        f"tables of version {needed}: those of the database are of version {found},"
        " and rubrica-migrate is masked here",
        "upgrade the host first whose rubrica-migrate is not masked; "
        'docs/running.md, "Several hosts"',
    )


def _is_left_out(role: str) -> bool:
    """Whether a role is not of this host: its units are masked."""
    if role != "signing":
        return _shown(f"rubrica-{role}.service", "LoadState") == ["masked"]
    workers = {*_WORKERS, *_shown("rubrica-signing@*.service", "Id")}
    return all(_shown(unit, "LoadState") == ["masked"] for unit in workers)


def _shown(unit: str, name: str) -> Sequence[str]:
    """A property of a unit; of a pattern, that of each that is loaded."""
    return _ran(
        ["systemctl", "show", "--value", f"--property={name}", unit]
    ).stdout.split()


def _ran(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(  # noqa: S603 (our own words, no shell)
            command,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        why = f"no answer within {_PATIENCE_S} s"
    except OSError as exc:
        why = f"{command[0]}: {exc.strerror}"
    return subprocess.CompletedProcess(list(command), 1, "", why)


def _last(told: str) -> str:
    lines = [line for line in told.splitlines() if line.strip()]
    return " ".join(lines[-1].split()) if lines else "it did not say why"


@contextmanager
def readable(path: Path) -> Iterator[Path]:
    """The settings as the installed version reads them: it refuses keys of a later one.

    Where there are such keys it is a copy without them, for as long as this takes.

    Args:
        path: of the settings.
    """
    table = tomllib.loads(path.read_text("utf-8"))
    if not take_out_unknown(table):
        yield path
        return
    # In the same folder, which relative paths in it count from.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".before-upgrade-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(f"{_key(k)} = {_toml(v)}\n" for k, v in table.items())
        state = path.stat()
        os.chown(name, state.st_uid, state.st_gid)
        shutil.copymode(path, name)
        yield Path(name)
    finally:
        Path(name).unlink()


def take_out_unknown(table: dict[str, Any]) -> bool:
    """Take keys out of settings that the installed version does not know.

    Args:
        table: the settings; changed in place.

    Returns:
        Whether there was one.
    """
    try:
        Settings.model_validate(table)
    except ValidationError as exc:
        unknown = [e["loc"] for e in exc.errors() if e["type"] == "extra_forbidden"]
    else:
        return False
    for *above, key in unknown:
        found: Any = table
        for each in above:
            found = found[each]
        del found[key]
    return bool(unknown)


def _toml(value: object) -> str:
    """A value in one line of TOML."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(k)} = {_toml(v)}' for k, v in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str | bool):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _key(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
