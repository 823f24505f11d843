"""What outside CAs said of certificates, in SQL."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.domain.records.outside import KeptStatus, StatusKind
from appliance.storage.inserting import insert_into
from appliance.storage.tables import outside_status


class SqlOutsideStatus:
    """One row a kind and subject, the newest."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def get(self, kind: StatusKind, subject: str) -> KeptStatus | None:
        """What is kept."""
        table = outside_status
        query = select(table).where(
            table.c.kind == kind.value, table.c.subject == subject
        )
        row = (await self._connection.execute(query)).one_or_none()
        if row is None:
            return None
        return KeptStatus(kind, subject, row.der, row.this_update, row.next_update)

    async def any_revoked(self, subjects: Sequence[str]) -> bool:
        """Whether one of these certificates was found revoked."""
        table = outside_status
        query = (
            select(table.c.subject)
            .where(
                table.c.kind == StatusKind.REVOKED.value,
                table.c.subject.in_(subjects),
            )
            .limit(1)
        )
        return (await self._connection.execute(query)).first() is not None

    async def put(self, new: KeptStatus) -> None:
        """Keep it, unless what is kept is younger."""
        table = outside_status
        told = {
            "der": new.der,
            "this_update": new.this_update,
            "next_update": new.next_update,
        }
        await self._connection.execute(
            insert_into(self._connection, table)
            .values(kind=new.kind.value, subject=new.subject, **told)
            .on_conflict_do_update(
                index_elements=[table.c.kind, table.c.subject],
                set_=told,
                where=table.c.this_update <= new.this_update,
            )
        )

    async def remove(self, kind: StatusKind, subject: str) -> None:
        """Keep it no longer."""
        table = outside_status
        await self._connection.execute(
            delete(table).where(table.c.kind == kind.value, table.c.subject == subject)
        )

    async def forget(self, before: datetime) -> int:
        """Delete answers and lists whose nextUpdate is before then; how many."""
        table = outside_status
        result = await self._connection.execute(
            delete(table).where(
                table.c.kind != StatusKind.REVOKED.value,
                table.c.next_update < before,
            )
        )
        return result.rowcount
