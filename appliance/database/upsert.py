"""Inserts that say what happens when the row is there already.

A look before an insert is a race between two transactions; both databases have
the clause that is none, under the same words.
"""

from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import Table
from sqlalchemy.ext.asyncio import AsyncConnection

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

Insert: TypeAlias = "postgresql.Insert | sqlite.Insert"


def insert_into(connection: AsyncConnection, table: Table) -> Insert:
    """An insert of the connection's dialect, with `on_conflict_do_…`."""
    # The connection has loaded its own; the other one is two megabytes.
    dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
    insert: Insert = dialect.insert(table)
    return insert
