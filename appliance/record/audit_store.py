"""The audit's rows: queued in a transaction, written as its last statement.

What an integrator may know of them is written with them, for it never reads the audit,
and so is what somebody is told by mail that happened to them.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Insert, Row, bindparam, insert, or_, select, true, union, update
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.database.tables import (
    audit_event,
    audit_writer,
    integrator_event,
    person_vouch,
    security_notice,
    signature_request,
)
from appliance.domain.audit.record import GENESIS, AuditEvent, AuditRow, chain
from appliance.domain.clock import Clock
from appliance.domain.ids import new_id
from appliance.domain.mail.mails import NOTICES, MailState, noticed_person
from appliance.domain.requests.history import told_of
from appliance.domain.vocab import EventKind, RequestState

# Made once: each transaction that writes executes them.
_ADD: Final = insert(audit_event)
_TOLD: Final = (
    bindparam("told_event", type_=integrator_event.c.event.type),
    bindparam("told_at", type_=integrator_event.c.at.type),
    bindparam("told_detail", type_=integrator_event.c.detail.type),
    true(),
)
_TOLD_COLUMNS: Final = ("event", "at", "detail", "pending")
# Whose a request is, its own row says; of what is about none, the audit does.
_TELL: Final = insert(integrator_event).from_select(
    ["integrator", "request", *_TOLD_COLUMNS],
    select(signature_request.c.integrator, signature_request.c.id, *_TOLD).where(
        signature_request.c.id == bindparam("told_whose")
    ),
)
# Inline: not every role may read the number that it would give back.
_TELL_INTEGRATOR: Final = (
    insert(integrator_event)
    .values(
        integrator=bindparam("told_whose"),
        event=bindparam("told_event"),
        at=bindparam("told_at"),
        detail=bindparam("told_detail"),
        pending=true(),
    )
    .inline()
)
# Of a person, whoever asks them to sign, and whoever answered for them.
_ACQUAINTED: Final = union(
    select(signature_request.c.integrator).where(
        signature_request.c.person == bindparam("told_whose"),
        # No IN: a transaction that tells of several people executes it for each.
        or_(
            signature_request.c.state == RequestState.PENDING.value,
            signature_request.c.state == RequestState.WAITING.value,
        ),
    ),
    select(person_vouch.c.integrator).where(
        person_vouch.c.person == bindparam("told_whose")
    ),
).subquery()
_TELL_OF_PERSON: Final = insert(integrator_event).from_select(
    ["integrator", *_TOLD_COLUMNS], select(_ACQUAINTED.c.integrator, *_TOLD)
)
_NOTIFY: Final = insert(security_notice)
_NEWEST: Final = (
    select(audit_writer.c.n, audit_writer.c.hash)
    .where(audit_writer.c.id == bindparam("writer"))
    .with_for_update()
)
_MOVE_ON: Final = (
    update(audit_writer)
    .where(
        audit_writer.c.id == bindparam("writer"),
        audit_writer.c.hash == bindparam("believed_hash"),
    )
    .values(n=bindparam("newest_n"), hash=bindparam("newest_hash"))
)


@dataclass(slots=True)
class AuditHead:
    """A writer's newest row, as far as its process knows: a rollback makes it wrong."""

    n: int = 0
    hash: str = GENESIS


@dataclass(slots=True)
class SqlAudit:
    """The audit within one transaction of one writer."""

    connection: AsyncConnection
    writer: str
    clock: Clock
    head: AuditHead
    """Of the writer, for all its transactions."""
    queued: list[AuditEvent] = field(default_factory=list)
    """What is written as the last statement of the transaction."""

    def add(self, event: AuditEvent) -> None:
        """Have an event written as the last statement of this transaction."""
        self.queued.append(event)

    async def flush(self) -> None:
        """Number, chain and write what was queued, one event at least."""
        at = self.clock.now()
        told: dict[Insert, list[dict[str, object]]] = {}
        for event in self.queued:
            if (detail := told_of(event)) is not None:
                telling: Insert = _TELL_INTEGRATOR
                whose: object = event.integrator
                if event.request is not None:
                    telling, whose = _TELL, event.request
                elif whose is None:
                    telling, whose = _TELL_OF_PERSON, event.detail["person"]
                given: dict[str, object] = {
                    "told_whose": whose,
                    "told_event": event.event.value,
                    "told_at": at,
                    "told_detail": detail,
                }
                told.setdefault(telling, []).append(given)
        for statement, rows_told in told.items():
            await self.connection.execute(statement, rows_told)
        for event in self.queued:
            if event.event in NOTICES:
                await self._notify(event, at)
        while True:
            believed = self.head.hash
            values = self._chained(at)
            moving = {
                "writer": self.writer,
                "believed_hash": believed,
                "newest_n": self.head.n,
                "newest_hash": self.head.hash,
            }
            # The writer's row is held from here until the commit.
            moved = await self.connection.execute(_MOVE_ON, moving)
            if moved.rowcount == 1:
                break
            rows = await self.connection.execute(_NEWEST, {"writer": self.writer})
            self.head.n, self.head.hash = rows.one()
        await self.connection.execute(_ADD, values)
        self.queued.clear()

    def _chained(self, at: datetime) -> list[dict[str, object]]:
        """What was queued as rows, of which the last is the head from now on."""
        values: list[dict[str, object]] = []
        for event in self.queued:
            row = chain(self.writer, self.head.n + 1, self.head.hash, at, event)
            self.head.n, self.head.hash = row.n, row.hash
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
        return values

    async def _notify(self, event: AuditEvent, at: datetime) -> None:
        """Have somebody told by mail what happened to them."""
        person = noticed_person(event)
        if person is None:
            return
        notice: dict[str, object] = {
            "id": new_id(),
            "person": person,
            "kind": NOTICES[event.event].value,
            "state": MailState.PENDING.value,
            "answer": "",
            "tries": 0,
            "due": at,
            "created": at,
            "fence": 0,
        }
        await self.connection.execute(_NOTIFY, notice)

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
