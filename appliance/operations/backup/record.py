"""The database in a backup: a dump that is consistent, and one that is brought back.

SQLite: `VACUUM INTO`, which reads in one transaction. PostgreSQL: its own pg_dump and
pg_restore, as the user who owns the tables, and told by the environment, not by
arguments that every process of the machine can read.
"""

import os
import pwd
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from appliance.database.engines import database_url
from appliance.database.rights import OWNER
from appliance.domain.vocab import EventKind
from appliance.operations.libpq import libpq_variables
from appliance.record.installation_store import BACKUP, DOCUMENTS, GENERATION, RESTORED
from appliance.settings import Settings, SettingsError

_LOCKED_S: Final = 30.0
"""How long SQLite's file is waited for, in seconds."""
_LOOK_AGAIN_S: Final = 0.5
_NAMED: Final = (
    "SELECT integrator, sha256 FROM document"
    " UNION SELECT integrator, sha256 FROM signed_document"
)
_SIGNED: Final = "SELECT integrator, sha256 FROM signed_document"
_DESTROYED: Final = (
    "SELECT DISTINCT integrator FROM audit_event"  # noqa: S608 (it is ours)
    f" WHERE event = '{EventKind.DOCUMENT_KEY_DESTROYED.value}'"
)
_RESTORING: Final = "rubrica_restoring"
"""A table that stands while a dump is brought back, until the record says so."""
_TABLES: Final = (
    "SELECT tablename FROM pg_tables"
    " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
)

_MARK: Final = f"SELECT value FROM installation WHERE name = '{DOCUMENTS}'"  # noqa: S608 (it is ours)
_LAST: Final = f"SELECT value FROM installation WHERE name = '{BACKUP}'"  # noqa: S608 (it is ours)
_WORKERS: Final = "SELECT slot, at, hsm, reason FROM worker_status ORDER BY slot"
_RESTORED: Final = (
    f"INSERT INTO installation (name, value) VALUES ('{GENERATION}', '{RESTORED}') "  # noqa: S608 (both are ours)
    f"ON CONFLICT (name) DO UPDATE SET value = '{RESTORED}'"
)
"""Workers of a record that was brought back use no key before `hsm take-over`."""
_MADE: Final = (
    "INSERT INTO installation (name, value) VALUES ('{name}', '{at}') "
    "ON CONFLICT (name) DO UPDATE SET value = '{at}'"
)
_BESIDE: Final = ("", "-wal", "-shm", "-journal")
"""Names of what SQLite has beside its file, after its name."""
_SAYS_SO: Final = 2
"""Version of the tables from which on they can say it."""
_MAKE_IT: Final = (
    "database: has to be there, empty, with its users: rubrica database roles | "
    "runuser -l postgres -c 'psql --set ON_ERROR_STOP=1'; then run this again"
)


def dump(settings: Settings, into: Path) -> None:
    """Write all of the database as it is at one moment.

    Args:
        settings: of the installation.
        into: a new file, in a folder that nobody else may read.

    Raises:
        SettingsError: the database is away, or there is no pg_dump; with its words.
    """
    if settings.database.url == "sqlite":
        with _read_only(settings) as connection:
            connection.execute("VACUUM INTO ?", (str(into),))
        return
    with into.open("wb") as file:
        _run_postgres(settings, ["pg_dump", "--format=custom"], stdout=file.fileno())


def await_answer(settings: Settings, wait_s: float) -> None:
    """Wait for PostgreSQL while it does not let us in; who asks next is told why.

    Args:
        settings: of the installation.
        wait_s: seconds, at most.
    """
    if settings.database.url == "sqlite":
        return
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        try:
            _ask(settings, "SELECT 1")
        except SettingsError:
            time.sleep(_LOOK_AGAIN_S)
        else:
            return


def refuse_full(settings: Settings) -> None:
    """Refuse to bring a dump back over a database that holds something.

    Raises:
        SettingsError: it does, or it is away.
    """
    if settings.database.url == "sqlite":
        path = _sqlite_file(settings)
        # Beside another's log SQLite would write that one's pages into ours.
        for there in (path.with_name(path.name + each) for each in _BESIDE):
            if there.exists():
                msg = f"{there}: is there already: move it away"
                raise SettingsError(msg)
        return
    try:
        tables = _ask(settings, _TABLES)
    except SettingsError as exc:
        msg = f"{exc}\n{_MAKE_IT}"
        raise SettingsError(msg) from exc
    if tables and [_RESTORING] not in tables:
        msg = "database: has tables already: give an empty one"
        raise SettingsError(msg)


def bring_back(settings: Settings, dumped: Path, tables: int) -> None:
    """Make an empty database what it was, all of it or nothing.

    Args:
        settings: of the installation.
        dumped: what `dump` wrote.
        tables: their version.

    Raises:
        SettingsError: it could not be; with its words.
    """
    if settings.database.url == "sqlite":
        try:
            with closing(sqlite3.connect(dumped)) as connection, connection:
                if tables >= _SAYS_SO:
                    connection.execute(_RESTORED)
        except sqlite3.Error as exc:
            msg = f"database: what the backup has is none ({exc})"
            raise SettingsError(msg) from exc
        # Over the same file system: a rename puts it there whole.
        dumped.rename(_sqlite_file(settings))
        return
    begin = f"CREATE TABLE IF NOT EXISTS {_RESTORING} ()"
    _run_postgres(settings, ["psql", "-Xq", "--command", begin])
    # Killed after it, a run finds the tables, and only has the record say so.
    if _ask(settings, _TABLES) == [[_RESTORING]]:
        command = ["pg_restore", "--no-owner", "--no-privileges", "--exit-on-error"]
        command += ["--single-transaction", "--dbname", ""]
        with dumped.open("rb") as file:
            _run_postgres(settings, command, stdin=file.fileno())
    end = [_RESTORED] if tables >= _SAYS_SO else []
    options = [f"--command={each}" for each in (*end, f"DROP TABLE {_RESTORING}")]
    command = ["psql", "-Xq", "--set=ON_ERROR_STOP=1", "--single-transaction"]
    _run_postgres(settings, [*command, *options])


def table_version(settings: Settings) -> str:
    """Of which version the tables are.

    Raises:
        SettingsError: the database is away, or has no tables.
    """
    ((version,),) = _ask(settings, "SELECT version_num FROM alembic_version")
    return version


def documents_mark(settings: Settings, tables: int) -> str | None:
    """What marks the folder of the record's documents; None where nothing does.

    Args:
        settings: of the installation.
        tables: their version.

    Raises:
        SettingsError: the database is away.
    """
    found = _ask(settings, _MARK) if tables >= _SAYS_SO else []
    return found[0][0] if found else None


def last_backup(settings: Settings, tables: int) -> datetime | None:
    """When the last backup was begun; None: none ever was, or nothing says so.

    Args:
        settings: of the installation.
        tables: their version.

    Raises:
        SettingsError: the database is away.
    """
    found = _ask(settings, _LAST) if tables >= _SAYS_SO else []
    return datetime.fromisoformat(found[0][0]) if found else None


def workers(settings: Settings) -> list[tuple[str, datetime, str, str]]:
    """Slot of each process, its last sign of life, how its HSM is, and why.

    Args:
        settings: of the installation.

    Raises:
        SettingsError: the database is away.
    """
    found = _ask(settings, _WORKERS)
    return [(slot, _instant(at), hsm, "|".join(why)) for slot, at, hsm, *why in found]


def named_documents(settings: Settings) -> set[tuple[str, str]]:
    """Integrator and SHA-256 of every document that the database names.

    Raises:
        SettingsError: the database is away.
    """
    return {(integrator, sha256) for integrator, sha256 in _ask(settings, _NAMED)}


def note_backup(settings: Settings, at: datetime, tables: int) -> None:
    """Have the database say when the last backup was made.

    Args:
        settings: of the installation.
        at: when it was begun.
        tables: their version; the first one has no room for it.

    Raises:
        SettingsError: it cannot be written to.
    """
    if tables < _SAYS_SO:
        return
    told = _MADE.format(name=BACKUP, at=at.isoformat())
    if settings.database.url != "sqlite":
        _run_postgres(settings, ["psql", "-XqAt", "--command", told])
        return
    source = _sqlite_file(settings)
    try:
        with (
            closing(sqlite3.connect(source, timeout=_LOCKED_S)) as connection,
            connection,
        ):
            connection.execute(told)
    except sqlite3.Error as exc:
        msg = f"{source}: cannot be written to ({exc})"
        raise SettingsError(msg) from exc


def signed_documents(settings: Settings) -> set[tuple[str, str]]:
    """Integrator and SHA-256 of every signed document that the database names.

    Raises:
        SettingsError: the database is away.
    """
    return {(integrator, sha256) for integrator, sha256 in _ask(settings, _SIGNED)}


def shredded_integrators(settings: Settings) -> set[str]:
    """Integrators whose documents somebody made unreadable, for good.

    Raises:
        SettingsError: the database is away.
    """
    return {integrator for (integrator,) in _ask(settings, _DESTROYED)}


def _instant(text: str) -> datetime:
    """A time of the record; SQLite's are UTC, and have no zone."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _ask(settings: Settings, query: str) -> list[list[str]]:
    """What a query finds: rows of texts without a `|` in them.

    Raises:
        SettingsError: it cannot be asked; with the database's words.
    """
    if settings.database.url == "sqlite":
        with _read_only(settings) as connection:
            return [[str(each) for each in row] for row in connection.execute(query)]
    told = _run_postgres(settings, ["psql", "-XqAt", "--command", query])
    return [line.split("|") for line in told.decode().splitlines()]


@contextmanager
def _read_only(settings: Settings) -> Iterator[sqlite3.Connection]:
    """SQLite's file, to be read.

    Raises:
        SettingsError: it is not there, or cannot be read.
    """
    source = _sqlite_file(settings)
    try:
        with closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as opened:
            yield opened
    except sqlite3.Error as exc:
        msg = f"{source}: cannot be read ({exc})"
        raise SettingsError(msg) from exc


def _sqlite_file(settings: Settings) -> Path:
    return Path(str(database_url(settings).database))


def _run_postgres(
    settings: Settings,
    command: list[str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
) -> bytes:
    """Run one of PostgreSQL's programs on the database; what it wrote.

    Raises:
        SettingsError: it is not installed, or it failed; with its words.
    """
    variables = libpq_variables(settings)
    if os.geteuid() == 0 and "PGUSER" not in variables and _is_user(OWNER):
        command = ["runuser", "-u", OWNER, "--", *command]
        variables["PGUSER"] = OWNER
    if command[-1] == "":
        command = [*command[:-1], variables["PGDATABASE"]]
    try:
        done = subprocess.run(  # noqa: S603 (no shell)
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env={**os.environ, **variables},
            cwd="/",
            check=False,
        )
    except FileNotFoundError as exc:
        msg = f"{command[0]}: is not installed; `apt-get install postgresql-client`"
        raise SettingsError(msg) from exc
    if done.returncode != 0:
        told = done.stderr.decode(errors="replace").strip()
        raise SettingsError(told or f"{command[0]}: failed ({done.returncode})")
    return done.stdout or b""


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
