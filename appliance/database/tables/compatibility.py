"""Which code may use the tables; beside it stands Alembic's own `alembic_version`."""

from sqlalchemy import Column, String, Table

from appliance.database.tables.base import metadata

table_compatibility = Table(
    "table_compatibility",
    metadata,
    # One row: the oldest table version that code must know to use these tables.
    Column("oldest_reader", String(32), primary_key=True),
)
