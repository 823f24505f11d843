"""Inserts that say what happens when the row is there already.

A look before an insert is a race between two transactions; both databases have
the clause that is none, under the same words.
"""

from typing import TypeAlias

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

Insert: TypeAlias = postgresql.Insert | sqlite.Insert


def insert_into(connection: AsyncConnection, table: Table) -> Insert:
    """An insert of the connection's dialect, with `on_conflict_do_…`."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)
