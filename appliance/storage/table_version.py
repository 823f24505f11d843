"""Of which version the tables are, told without Alembic.

Every process asks this as it starts, and most of them migrate nothing: what brings
the tables to a version, `appliance.storage.migrate`, is dear to load.
"""

from functools import cache
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection

MIGRATIONS: Final = Path(__file__).parent / "migrations"
"""Alembic's folder of them."""
_TABLE: Final = "alembic_version"
"""Where Alembic writes down how far it got."""
_VERSION: Final = text("SELECT version_num FROM alembic_version")


@cache
def newest() -> str:
    """The version that this code needs.

    Migrations are numbered without a gap; a file's name begins with its number.
    """
    files = (MIGRATIONS / "versions").glob("[0-9]*_*.py")
    return max(file.name.partition("_")[0] for file in files)


async def is_current(connection: AsyncConnection) -> bool:
    """Whether the tables are of the version that this code needs."""
    return await connection.run_sync(_version) == newest()


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_TABLE):
        return None
    version: str | None = connection.scalar(_VERSION)
    return version
