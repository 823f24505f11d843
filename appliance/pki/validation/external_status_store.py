"""What outside CAs said of certificates, in SQL."""

import hashlib
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, select

from appliance.database.tables import outside_status
from appliance.database.upsert import insert_into
from appliance.domain.pki.certificates import KeptStatus, StatusKind
from appliance.record.unit_of_work import Store


def status_subject(certificate: bytes) -> str:
    """Name of a certificate on the record of what outside CAs said.

    Args:
        certificate: DER.
    """
    return hashlib.sha256(certificate).hexdigest()


class ExternalStatusStore(Store):
    """One row a kind and subject, the newest."""

    async def get(self, kind: StatusKind, subject: str) -> KeptStatus | None:
        """What is kept."""
        table = outside_status
        query = select(table).where(
            table.c.kind == kind.value, table.c.subject == subject
        )
        row = (await self._connection.execute(query)).one_or_none()
        if row is None:
            return None
        return _kept(row)

    async def revoked(self, limit: int) -> list[KeptStatus]:
        """Certificates that were found revoked, the newest first."""
        table = outside_status
        rows = await self._connection.execute(
            select(table)
            .where(table.c.kind == StatusKind.REVOKED.value)
            .order_by(table.c.this_update.desc(), table.c.subject)
            .limit(limit)
        )
        return [_kept(row) for row in rows]

    async def put(self, new: KeptStatus) -> None:
        """Keep it, unless what is kept is younger."""
        table = outside_status
        told = {
            "der": new.der,
            "this_update": new.this_update,
            "next_update": new.next_update,
            "revoked_at": new.revoked_at,
            "reason": new.reason,
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


def _kept(row: Row[Any]) -> KeptStatus:
    return KeptStatus(
        StatusKind(row.kind),
        row.subject,
        row.der,
        row.this_update,
        row.next_update,
        row.revoked_at,
        row.reason,
    )
