"""What belongs to the installation as a whole; one row each."""

from sqlalchemy import Column, String, Table, Text

from appliance.database.tables.base import metadata

installation = Table(
    "installation",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("value", Text, nullable=False),
)
