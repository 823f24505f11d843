"""Locks of a number, until the transaction ends."""

from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


async def advisory_lock(connection: AsyncConnection, key: int) -> None:
    """Serialise on PostgreSQL; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        values: dict[str, Any] = {"key": key}
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), values)
