"""Idempotency keys in SQL: what each was first used for."""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.storage.inserting import insert_into
from appliance.storage.tables import idempotency


async def remembered(connection: AsyncConnection, scope: str, key: str) -> str | None:
    """The fingerprint that an idempotency key was first used with."""
    result = await connection.execute(
        select(idempotency.c.fingerprint).where(
            idempotency.c.scope == scope, idempotency.c.key == key
        )
    )
    return result.scalar_one_or_none()


async def remember(
    connection: AsyncConnection, scope: str, key: str, fingerprint: str, at: datetime
) -> None:
    """Bind an idempotency key to a fingerprint.

    Raises:
        ApplianceError: `IDEMKEY_CONFLICT` when it is bound to another.
    """
    await connection.execute(
        insert_into(connection, idempotency)
        .values(scope=scope, key=key, fingerprint=fingerprint, created=at)
        .on_conflict_do_nothing()
    )
    if await remembered(connection, scope, key) != fingerprint:
        raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)
