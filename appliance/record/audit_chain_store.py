"""The audit's chains, one of each process start, in SQL."""

from datetime import datetime

from sqlalchemy import and_, or_, select

from appliance.database.tables import audit_event, audit_writer
from appliance.domain.audit.record import AuditRow
from appliance.domain.console.lists import WriterRow
from appliance.record.audit_store import audit_row
from appliance.record.unit_of_work import Store


class AuditChainStore(Store):
    """Who wrote to the audit, and what."""

    async def writer(self, writer: str) -> WriterRow | None:
        """A process start that wrote to the audit."""
        row = (
            await self._connection.execute(
                select(audit_writer).where(audit_writer.c.id == writer)
            )
        ).one_or_none()
        if row is None:
            return None
        return WriterRow(row.id, row.role, row.started, row.n, row.hash)

    async def writers(
        self, after: tuple[datetime, str] | None, limit: int
    ) -> list[WriterRow]:
        """Process starts that wrote to the audit, newest first."""
        at = audit_writer.c
        wanted = select(audit_writer).order_by(at.started.desc(), at.id.desc())
        if after is not None:
            started, ident = after
            wanted = wanted.where(
                at.started <= started,
                or_(at.started < started, and_(at.started == started, at.id < ident)),
            )
        rows = await self._connection.execute(wanted.limit(limit))
        return [WriterRow(r.id, r.role, r.started, r.n, r.hash) for r in rows]

    async def has_rows_beyond(self, writer: str) -> bool:
        """Whether a writer has rows after the last that it knows of."""
        # One statement: a row that is being written comes with its number.
        found = await self._connection.execute(
            select(audit_event.c.n)
            .join(audit_writer, audit_writer.c.id == audit_event.c.writer)
            .where(audit_writer.c.id == writer, audit_event.c.n > audit_writer.c.n)
            .limit(1)
        )
        return found.first() is not None

    async def writer_rows(self, writer: str, above: int, limit: int) -> list[AuditRow]:
        """A writer's rows by number, those above a number."""
        rows = await self._connection.execute(
            select(audit_event)
            .where(audit_event.c.writer == writer, audit_event.c.n > above)
            .order_by(audit_event.c.n)
            .limit(limit)
        )
        return [audit_row(row) for row in rows]
