"""The keys that integrators' documents are encrypted with, in SQL."""

from datetime import datetime
from typing import Final

from sqlalchemy import delete, select

from appliance.core.database.tables import document_key
from appliance.core.database.upsert import insert_into
from appliance.core.unit_of_work import Store
from appliance.domain.ids import IntegratorId

KEY_TABLE: Final = "document_key"
KEY_COLUMN: Final = "key_sealed"
"""Where a key stands, and what it is sealed for."""


class DocumentKeyStore(Store):
    """One row an integrator that has documents, over one connection."""

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
