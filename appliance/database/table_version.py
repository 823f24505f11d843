"""Of which version the tables are, and whether this code may use them.

While an installation is upgraded, roles of the version before run on tables of the
next one: the database says beside its version which is the oldest that code must know.

Told without Alembic: every process asks this as it starts, and most of them migrate
nothing; what brings the tables to a version, `appliance.database.migrate`, is
dear to load.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.database.tables import table_compatibility

MIGRATIONS: Final = Path(__file__).parent / "migrations"
"""Alembic's folder of them."""
_TABLE: Final = "alembic_version"
"""Where Alembic writes down how far it got."""
_VERSION: Final = text("SELECT version_num FROM alembic_version")


class Standing(StrEnum):
    """What tables are to this code, as `/readyz` tells it."""

    CURRENT = "ok"
    NEWER = "newer"
    """Of a version that this code does not know, and it may use them all the same."""
    OLDER = "NOT_MIGRATED"
    """None at all, or still to be brought to this version."""
    TOO_NEW = "TABLES_TOO_NEW"
    """Of a version that this code does not know, and it may not use them."""


@dataclass(frozen=True, slots=True)
class TableVersion:
    """What the database says of its tables."""

    version: str | None
    """None where there are none."""
    oldest_reader: str | None
    """The oldest version that code must know; None where nothing is said."""

    @property
    def standing(self) -> Standing:
        """What this code may do with them."""
        if self.version == newest():
            return Standing.CURRENT
        if self.version is None or self.version in known():
            return Standing.OLDER
        oldest = _number(self.oldest_reader)
        if _number(self.version) is None or oldest is None or oldest > int(newest()):
            return Standing.TOO_NEW
        return Standing.NEWER

    @property
    def is_usable(self) -> bool:
        """Whether this code may read and write them."""
        return self.standing in {Standing.CURRENT, Standing.NEWER}

    @property
    def refusal(self) -> str:
        """What is told where they are too new."""
        return self._refusal("this one", newest())

    def refusal_of(self, knows: str) -> str:
        """What is told where they are too new for a Rúbrica; else nothing.

        Args:
            knows: the newest version of tables that it knows, in digits.
        """
        version, oldest = _number(self.version), _number(self.oldest_reader)
        if self.version is None or (version is not None and version <= int(knows)):
            return ""  # it migrates them, or they are its own
        if version is not None and oldest is not None and oldest <= int(knows):
            return ""
        return self._refusal("that one", knows)

    def _refusal(self, who: str, knows: str) -> str:
        needed = self.oldest_reader or self.version
        return (
            f"database: its tables are of version {self.version}, for a Rúbrica that "
            f"knows {needed} at the least, and {who} knows {knows}: install the "
            "Rúbrica that made them, or a newer one"
        )


def _number(version: str | None) -> int | None:
    """A version as a number; None where it is none of ours."""
    is_ours = version is not None and version.isascii() and version.isdecimal()
    return int(version) if version is not None and is_ours else None


@cache
def newest() -> str:
    """The version that this code needs.

    Migrations are numbered without a gap; a file's name begins with its number.
    """
    return max(known(), key=int)


@cache
def known() -> frozenset[str]:
    """Every version that tables can be brought up from."""
    files = (MIGRATIONS / "versions").glob("[0-9]*_*.py")
    return frozenset(file.name.partition("_")[0] for file in files)


async def table_version(connection: AsyncConnection) -> TableVersion:
    """What the database says of its tables; nothing is changed."""
    return await connection.run_sync(read_table_version)


def read_table_version(connection: Connection) -> TableVersion:
    """The same, over a connection that does not await."""
    tables = inspect(connection)
    version: str | None = None
    oldest: str | None = None
    if tables.has_table(_TABLE):
        version = connection.scalar(_VERSION)
    if tables.has_table(table_compatibility.name):
        oldest = connection.scalar(select(table_compatibility.c.oldest_reader))
    return TableVersion(version, oldest)
