"""Bring the database's tables to this version.

One transaction: a migration that is killed half-way leaves what was before.
"""

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from appliance.settings import Settings
from appliance.storage.engines import open_engines
from appliance.storage.table_version import MIGRATIONS
from appliance.storage.tables import metadata

# Any number will do, as long as all versions use the same.
_LOCK = 7_246_001


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


async def migrate(settings: Settings) -> tuple[str | None, str]:
    """Bring the tables to the newest version.

    Returns:
        The version before (None for an empty database) and the one after.
    """
    engines = open_engines(settings)
    try:
        async with engines.writer.begin() as connection:
            if connection.dialect.name == "postgresql":
                # Two hosts that start at once migrate one after the other.
                await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            return await connection.run_sync(_upgrade)
    finally:
        await engines.dispose()


def _upgrade(connection: Connection) -> tuple[str | None, str]:
    before = _current(connection)
    command.upgrade(_config(connection), "head")
    return before, _current(connection) or ""


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def differences(connection: Connection) -> list[object]:
    """How the tables differ from `appliance.storage.tables`; empty if they do not."""
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, metadata))
