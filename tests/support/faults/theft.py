"""What a thief of the database, both PINs and Redis has, and may do with it.

    loot = steal(appliance)
    with altered(appliance, update(...)):
        ...

A copy of the database with its journal, a dump of Redis, the PINs (the HSM may be
opened with them). Not stolen: passwords, the pepper, what lies on tmpfs.
"""

import base64
import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from redis import Redis
from sqlalchemy import Executable, Row, Table, select

from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.settings import Settings
from tests.support.appliance.appliance import Appliance
from tests.support.processes.event_loops import run_apart


@dataclass(frozen=True, slots=True)
class Loot:
    """What was stolen."""

    rows: dict[str, list[Row[Any]]]
    """Every row of every table, by the table's name."""
    content: bytes
    """The files of the database, its journal among them, and of Redis."""

    def of(self, table: Table) -> list[Row[Any]]:
        """All rows of a table."""
        return self.rows[table.name]

    def values(self) -> set[bytes]:
        """Every stored value that could be, or hold, a secret of 16 bytes or more."""
        found: set[bytes] = set()
        for rows in self.rows.values():
            for row in rows:
                for value in row:
                    found |= _readings(value)
        return found


def _readings(value: object) -> set[bytes]:
    """A value as bytes, in each way that one could mean it."""
    if isinstance(value, dict):
        return {one for part in value.values() for one in _readings(part)}
    if isinstance(value, list | tuple):
        return {one for part in value for one in _readings(part)}
    raw = value if isinstance(value, bytes) else str(value).encode()
    found = {raw}
    with contextlib.suppress(ValueError):
        found.add(bytes.fromhex(raw.decode("ascii", "replace")))
    with contextlib.suppress(ValueError):
        found.add(base64.urlsafe_b64decode(raw + b"=" * (-len(raw) % 4)))
    return {one for one in found if len(one) >= 16}


def steal(appliance: Appliance, folder: Path) -> Loot:
    """Copy what there is to copy, while the appliance goes on.

    Args:
        appliance: whose.
        folder: where the copy of an SQLite file goes.
    """
    settings = appliance.settings
    files = sorted(appliance.folder.glob("rubrica.db*"))
    for path in files:
        shutil.copy(path, folder)
    # Before anybody opens the copy: who does may empty and remove its journal.
    content = [path.read_bytes() for path in sorted(folder.glob("rubrica.db*"))]
    assert not files or (folder / "rubrica.db-wal").stat().st_size
    # An SQLite copy is read as the thief would read it, journal and all.
    where = settings.model_copy(update={"data_dir": folder}) if files else settings
    rows = run_apart(read_tables(where))
    with contextlib.closing(
        Redis(unix_socket_path=str(settings.redis_socket))
    ) as redis:
        redis.save()
    content += [path.read_bytes() for path in _files(appliance.folder / "redis")]
    return Loot(rows, b"".join(content))


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


async def read_tables(settings: Settings) -> dict[str, list[Row[Any]]]:
    """Every row of every table, by the table's name."""
    engines = open_engines(settings)
    try:
        async with engines.reader.connect() as connection:
            return {
                table.name: list(await connection.execute(select(table)))
                for table in tables.metadata.sorted_tables
            }
    finally:
        await engines.dispose()


def write(appliance: Appliance, *statements: Executable) -> None:
    """Change the database behind the appliance's back, in one transaction."""

    async def run() -> None:
        engines = open_engines(appliance.settings)
        try:
            async with engines.writer.begin() as connection:
                for statement in statements:
                    await connection.execute(statement)
        finally:
            await engines.dispose()

    run_apart(run())


def read_rows(appliance: Appliance, table: Table) -> list[Row[Any]]:
    """All rows of one table of the living database."""
    return run_apart(read_tables(appliance.settings))[table.name]


def traces(secrets: set[str], content: bytes) -> list[str]:
    """Which secrets stand in some bytes, plain, in hex or in Base64."""
    return [secret for secret in sorted(secrets) if _stands(secret.encode(), content)]


def _stands(secret: bytes, content: bytes) -> bool:
    """Whether a secret of any alignment stands in some bytes."""
    forms = {secret, secret.hex().encode(), secret.hex().upper().encode()}
    for lead in range(3):
        # Base64 of it inside something longer: without what neighbours change.
        encoded = base64.b64encode(b"\0" * lead + secret)
        first, last = (0, 2, 3)[lead], len(encoded) - (4 if encoded[-1:] == b"=" else 0)
        forms |= {encoded[first:last], encoded[first:last].translate(_URL)}
    return any(form in content for form in forms)


_URL: Final = bytes.maketrans(b"+/", b"-_")
