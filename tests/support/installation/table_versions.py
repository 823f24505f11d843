"""Tables of an earlier version, for tests of upgrades."""

from alembic import command
from sqlalchemy import Connection

from appliance.database import migrate


def migrate_to(connection: Connection, version: str, way: str) -> None:
    """Bring the tables to a version, up or down."""
    getattr(command, way)(migrate._config(connection), version)
