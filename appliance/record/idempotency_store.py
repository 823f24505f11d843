"""Idempotency keys in SQL: what each was first used for."""

from datetime import datetime

from sqlalchemy import delete, select, tuple_

from appliance.database.tables import idempotency
from appliance.database.upsert import insert_into
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.record.unit_of_work import Store


class IdempotencyStore(Store):
    """One row a scope and key."""

    async def remembered(self, scope: str, key: str) -> str | None:
        """The fingerprint that an idempotency key was first used with."""
        result = await self._connection.execute(
            select(idempotency.c.fingerprint).where(
                idempotency.c.scope == scope, idempotency.c.key == key
            )
        )
        return result.scalar_one_or_none()

    async def remember(
        self, scope: str, key: str, fingerprint: str, at: datetime
    ) -> None:
        """Bind an idempotency key to a fingerprint.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT` when it is bound to another.
        """
        if await self.bind(scope, key, fingerprint, at) != fingerprint:
            raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)

    async def bind(
        self, scope: str, key: str, fingerprint: str, at: datetime
    ) -> str | None:
        """Bind a key, unless it is bound; the fingerprint that it stands for."""
        await self._connection.execute(
            insert_into(self._connection, idempotency)
            .values(scope=scope, key=key, fingerprint=fingerprint, created=at)
            .on_conflict_do_nothing()
        )
        return await self.remembered(scope, key)

    async def rebind(
        self, scope: str, key: str, fingerprint: str, at: datetime
    ) -> None:
        """Have a key stand for something, whatever it stood for, from now on."""
        now = {"fingerprint": fingerprint, "created": at}
        await self._connection.execute(
            insert_into(self._connection, idempotency)
            .values(scope=scope, key=key, **now)
            .on_conflict_do_update(index_elements=["scope", "key"], set_=now)
        )

    async def release(self, key: str, *scopes: str) -> None:
        """Have a key stand for nothing in some scopes: it can be used again."""
        await self._connection.execute(
            delete(idempotency).where(
                idempotency.c.key == key, idempotency.c.scope.in_(scopes)
            )
        )

    async def forget(self, before: datetime, limit: int) -> int:
        """Delete keys that were first used before then, the oldest; how many."""
        named = idempotency.c.scope, idempotency.c.key
        oldest = (
            select(*named)
            .where(idempotency.c.created < before)
            .order_by(idempotency.c.created)
            .limit(limit)
        )
        result = await self._connection.execute(
            delete(idempotency).where(tuple_(*named).in_(oldest))
        )
        return result.rowcount
