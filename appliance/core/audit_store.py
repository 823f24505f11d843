"""The audit's rows: queued in a transaction, written as its last statement.

What an integrator may know of them is written with them, for it never reads the audit.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Row, bindparam, insert, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.core.database.tables import (
    audit_event,
    audit_writer,
    integrator_event,
    signature_request,
)
from appliance.domain.audit import AuditEvent, AuditRow, chain
from appliance.domain.clock import Clock
from appliance.domain.requests.history import told_of
from appliance.domain.vocab import EventKind

# Made once: each transaction that writes executes them.
_ADD: Final = insert(audit_event)
# Whose a request is, its own row says; of what is about none, the audit does.
_TELL: Final = insert(integrator_event).from_select(
    ["integrator", "request", "event", "at", "detail", "pending"],
    select(
        signature_request.c.integrator,
        signature_request.c.id,
        bindparam("told_event", type_=integrator_event.c.event.type),
        bindparam("told_at", type_=integrator_event.c.at.type),
        bindparam("told_detail", type_=integrator_event.c.detail.type),
        true(),
    ).where(signature_request.c.id == bindparam("told_request")),
)
_TELL_OTHERS: Final = insert(integrator_event).values(
    integrator=bindparam("told_integrator"),
    event=bindparam("told_event"),
    at=bindparam("told_at"),
    detail=bindparam("told_detail"),
    pending=true(),
)
_NEWEST: Final = (
    select(audit_writer.c.n, audit_writer.c.hash)
    .where(audit_writer.c.id == bindparam("writer"))
    .with_for_update()
)
_MOVE_ON: Final = (
    update(audit_writer)
    .where(audit_writer.c.id == bindparam("writer"))
    .values(n=bindparam("newest_n"), hash=bindparam("newest_hash"))
)


@dataclass(slots=True)
class SqlAudit:
    """The audit within one transaction of one writer."""

    connection: AsyncConnection
    writer: str
    clock: Clock
    queued: list[AuditEvent] = field(default_factory=list)
    """What is written as the last statement of the transaction."""

    def add(self, event: AuditEvent) -> None:
        """Have an event written as the last statement of this transaction."""
        self.queued.append(event)

    async def flush(self) -> None:
        """Number, chain and write what was queued, one event at least."""
        at = self.clock.now()
        told = [
            {
                **(
                    {"told_integrator": event.integrator}
                    if event.request is None
                    else {"told_request": event.request}
                ),
                "told_event": event.event.value,
                "told_at": at,
                "told_detail": detail,
            }
            for event in self.queued
            if (detail := told_of(event)) is not None
        ]
        of_requests = [each for each in told if "told_request" in each]
        others = [each for each in told if "told_request" not in each]
        if of_requests:
            await self.connection.execute(_TELL, of_requests)
        if others:
            await self.connection.execute(_TELL_OTHERS, others)
        # Number and hash of the writer's newest row, held until the commit.
        rows = await self.connection.execute(_NEWEST, {"writer": self.writer})
        newest = rows.one()
        n, prev = newest.n, newest.hash
        values: list[dict[str, object]] = []
        for event in self.queued:
            row = chain(self.writer, n + 1, prev, at, event)
            n, prev = row.n, row.hash
            values.append(
                {
                    "writer": row.writer,
                    "n": row.n,
                    "prev": row.prev,
                    "hash": row.hash,
                    "at": row.at,
                    "event": event.event.value,
                    "actor": event.actor,
                    "integrator": event.integrator,
                    "request": event.request,
                    "activation": event.activation,
                    "attempt": event.attempt,
                    "detail": event.detail,
                }
            )
        await self.connection.execute(_ADD, values)
        await self.connection.execute(
            _MOVE_ON, {"writer": self.writer, "newest_n": n, "newest_hash": prev}
        )
        self.queued.clear()

    async def of_request(self, request: int) -> list[AuditRow]:
        """All rows that name a request, oldest first."""
        rows = await self.connection.execute(
            select(audit_event)
            .where(audit_event.c.request == request)
            .order_by(audit_event.c.at, audit_event.c.writer, audit_event.c.n)
        )
        return [audit_row(row) for row in rows]

    async def of_writer(self, writer: str) -> list[AuditRow]:
        """All rows of one process start, by number."""
        rows = await self.connection.execute(
            select(audit_event)
            .where(audit_event.c.writer == writer)
            .order_by(audit_event.c.n)
        )
        return [audit_row(row) for row in rows]

    async def writers(self) -> list[str]:
        """Ids of all process starts that wrote something, oldest first."""
        rows = await self.connection.execute(
            select(audit_writer.c.id)
            .where(audit_writer.c.n > 0)
            .order_by(audit_writer.c.started)
        )
        return list(rows.scalars())


def audit_row(row: Row[Any]) -> AuditRow:
    """A row of the table as the domain has it."""
    event = AuditEvent(
        EventKind(row.event),
        row.actor,
        integrator=row.integrator,
        request=row.request,
        activation=row.activation,
        attempt=row.attempt,
        detail=row.detail,
    )
    return AuditRow(row.writer, row.n, row.prev, row.hash, row.at, event)
