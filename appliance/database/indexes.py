"""Indexes that a migration left to be made while others write (PostgreSQL).

To make an index in a transaction keeps everybody from writing its table, for as long as
the table is large. `CREATE INDEX CONCURRENTLY` does not, and stands in no transaction:
killed half-way it leaves an index that is none, which is made anew the next time.

Source: PostgreSQL 15, "CREATE INDEX", "Building Indexes Concurrently".
"""

import asyncio
from typing import Final

from sqlalchemy import Connection, Index, text
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.schema import CreateIndex, DropIndex

from appliance.database.tables import metadata

# Not that of the migrations: who waits for it in a transaction would be waited for.
_LOCK: Final = 7_246_002
_LOOK_AGAIN_S: Final = 0.2
_STANDING: Final = text(
    "SELECT c.relname, i.indisvalid FROM pg_index i "
    "JOIN pg_class c ON c.oid = i.indexrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace"
)


def missing_indexes(connection: Connection) -> list[str]:
    """Names of the declared indexes that are not there, or not whole."""
    standing = _standing(connection)
    return [name for name in _declared() if not standing.get(name, False)]


async def build_indexes(connection: AsyncConnection) -> None:
    """Make what is missing, one index after the other; writers go on.

    Args:
        connection: without a transaction, and without a limit for a statement.
    """
    await _take_turn(connection)
    try:
        standing = await connection.run_sync(_standing)
        for name, index in _declared().items():
            if standing.get(name) is False:
                await connection.execute(text(_concurrently(DropIndex(index))))
            if not standing.get(name, False):
                await connection.execute(text(_concurrently(CreateIndex(index))))
    finally:
        await connection.execute(text(f"SELECT pg_advisory_unlock({_LOCK})"))


async def _take_turn(connection: AsyncConnection) -> None:
    """Wait until no other host makes indexes, holding nothing meanwhile."""
    mine = text(f"SELECT pg_try_advisory_lock({_LOCK})")
    # Of another host: no event of this process tells when it is done.
    while not await connection.scalar(mine):  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_AGAIN_S)


def _declared() -> dict[str, Index]:
    """Every index of the tables but those of their keys."""
    return {
        str(index.name): index
        for table in metadata.sorted_tables
        for index in sorted(table.indexes, key=lambda each: str(each.name))
    }


def _standing(connection: Connection) -> dict[str, bool]:
    """Every index of the database, and whether it is whole."""
    rows = connection.execute(_STANDING)
    return {row.relname: row.indisvalid for row in rows}


def _concurrently(made: CreateIndex | DropIndex) -> str:
    return str(made).replace("INDEX", "INDEX CONCURRENTLY", 1)
