"""The keys that integrators' documents are encrypted with, in SQL."""

from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.core.database.tables import document_key
from appliance.core.database.upsert import insert_into
from appliance.domain.ids import IntegratorId


class SqlDocumentKeys:
    """One row an integrator that has documents, over one connection."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def get(self, integrator: IntegratorId) -> bytes | None:
        """An integrator's key, sealed."""
        result = await self._connection.execute(
            select(document_key.c.key_sealed).where(
                document_key.c.integrator == integrator
            )
        )
        return result.scalar_one_or_none()

    async def add(
        self, integrator: IntegratorId, sealed: bytes, created: datetime
    ) -> bool:
        """Record a key; False when there is one, which stays."""
        result = await self._connection.execute(
            insert_into(self._connection, document_key)
            .values(integrator=integrator, key_sealed=sealed, created=created)
            .on_conflict_do_nothing()
        )
        return result.rowcount == 1

    async def remove(self, integrator: IntegratorId) -> bool:
        """Forget a key; whether there was one."""
        result = await self._connection.execute(
            delete(document_key).where(document_key.c.integrator == integrator)
        )
        return result.rowcount == 1
