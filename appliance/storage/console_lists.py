"""Lists of the console, with filters and cursors, in SQL that both databases take."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.domain.audit import AuditRow
from appliance.domain.console import (
    AuditFilter,
    AuditPlace,
    Names,
    RequestFilter,
    RequestRow,
    WriterRow,
)
from appliance.domain.ids import PersonId, RequestId
from appliance.domain.vocab import RequestState
from appliance.storage.audit import audit_row
from appliance.storage.tables import (
    audit_event,
    audit_writer,
    console_user,
    integrator,
    person,
    signature_request,
)

_ACCENTS: Final = (
    ("á", "a"), ("é", "e"), ("í", "i"), ("ó", "o"), ("ú", "u"), ("ü", "u"), ("ñ", "n"),
)  # fmt: skip
_ESCAPE: Final = "\\"


class SqlConsoleLists:
    """Lists of requests and of the audit."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def requests(
        self, wanted: RequestFilter, limit: int, after: RequestId | None
    ) -> list[RequestRow]:
        """Requests, newest first, after a number."""
        request = signature_request.c
        query = (
            select(
                signature_request,
                person.c.name.label("person_name"),
                integrator.c.code.label("integrator_code"),
                integrator.c.name.label("integrator_name"),
            )
            .join(person, person.c.id == request.person)
            .join(integrator, integrator.c.id == request.integrator)
            .where(*_request_conditions(wanted))
            .order_by(request.id.desc())
            .limit(limit)
        )
        if after is not None:
            query = query.where(request.id < after)
        return [_request(row) for row in await self._connection.execute(query)]

    async def audit(
        self, wanted: AuditFilter, limit: int, after: AuditPlace | None
    ) -> list[AuditRow]:
        """Audit rows, newest first, after a place."""
        event = audit_event.c
        query = (
            select(audit_event)
            .where(*_audit_conditions(wanted))
            .order_by(event.at.desc(), event.writer.desc(), event.n.desc())
            .limit(limit)
        )
        if after is not None:
            query = query.where(
                or_(
                    event.at < after.at,
                    and_(event.at == after.at, event.writer < after.writer),
                    and_(
                        event.at == after.at,
                        event.writer == after.writer,
                        event.n < after.n,
                    ),
                )
            )
        return [audit_row(row) for row in await self._connection.execute(query)]

    async def names(
        self,
        people: Collection[str],
        administrators: Collection[str],
        integrators: Collection[str],
    ) -> Names:
        """Words for ids."""
        return Names(
            people=await self._words(person.c.id, person.c.name, people),
            administrators=await self._words(
                console_user.c.id, console_user.c.name, administrators
            ),
            integrators=await self._words(
                integrator.c.id, integrator.c.code, integrators
            ),
        )

    async def _words(
        self, ident: ColumnElement[str], word: ColumnElement[str], ids: Collection[str]
    ) -> dict[str, str]:
        wanted = sorted(filter(None, ids))
        if not wanted:
            return {}
        rows = await self._connection.execute(
            select(ident, word).where(ident.in_(wanted))
        )
        return {row[0]: row[1] for row in rows}

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

    async def writer_rows(self, writer: str, above: int, limit: int) -> list[AuditRow]:
        """A writer's rows by number, those above a number."""
        rows = await self._connection.execute(
            select(audit_event)
            .where(audit_event.c.writer == writer, audit_event.c.n > above)
            .order_by(audit_event.c.n)
            .limit(limit)
        )
        return [audit_row(row) for row in rows]


def _request_conditions(wanted: RequestFilter) -> list[ColumnElement[bool]]:
    request = signature_request.c
    conditions = []
    if wanted.text:
        named = contains(folded(request.name), fold(wanted.text))
        text = wanted.text
        # Longer numbers than any that was given would not fit the column.
        numbered = text.isascii() and text.isdigit() and len(text) < 16  # noqa: PLR2004
        conditions.append(or_(named, request.id == int(text)) if numbered else named)
    if wanted.state is not None:
        conditions.append(request.state == wanted.state.value)
    if wanted.integrator:
        conditions.append(integrator.c.code == wanted.integrator)
    if wanted.person is not None:
        conditions.append(request.person == wanted.person)
    if wanted.since is not None:
        conditions.append(request.created >= wanted.since)
    if wanted.before is not None:
        conditions.append(request.created < wanted.before)
    return conditions


def _audit_conditions(wanted: AuditFilter) -> list[ColumnElement[bool]]:
    event = audit_event.c
    conditions = []
    if wanted.event is not None:
        conditions.append(event.event == wanted.event.value)
    if wanted.actor:
        conditions.append(event.actor == wanted.actor)
    if wanted.request is not None:
        conditions.append(event.request == wanted.request)
    if wanted.integrator:
        conditions.append(
            event.integrator.in_(
                select(integrator.c.id).where(integrator.c.code == wanted.integrator)
            )
        )
    if wanted.writer:
        conditions.append(event.writer == wanted.writer)
    if wanted.since is not None:
        conditions.append(event.at >= wanted.since)
    if wanted.before is not None:
        conditions.append(event.at < wanted.before)
    return conditions


def contains(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    """Whether a column has a text in it, whatever characters that is made of."""
    for special in (_ESCAPE, "%", "_"):
        text = text.replace(special, _ESCAPE + special)
    return column.like(f"%{text}%", escape=_ESCAPE)


def folded(column: ColumnElement[str]) -> ColumnElement[str]:
    """A column as people search it: SQLite lowers ASCII alone, and has no more."""
    made: ColumnElement[str] = column
    for accented, bare in _ACCENTS:
        made = func.replace(made, accented, bare)
        made = func.replace(made, accented.upper(), bare)
    return func.lower(made)


def fold(text: str) -> str:
    """What is searched for, as `folded` has it."""
    for accented, bare in _ACCENTS:
        text = text.replace(accented, bare).replace(accented.upper(), bare)
    return "".join(char.lower() if char.isascii() else char for char in text)


def _request(row: Row[Any]) -> RequestRow:
    return RequestRow(
        id=RequestId(row.id),
        document_name=row.name,
        state=RequestState(row.state),
        reason=row.reason,
        origin=row.origin,
        person=PersonId(row.person),
        person_name=row.person_name,
        integrator_code=row.integrator_code,
        integrator_name=row.integrator_name,
        created=row.created,
        expires=row.expires,
    )
