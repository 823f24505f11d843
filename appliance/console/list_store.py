"""Lists of the console, with filters and cursors, in SQL that both databases take."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Row,
    ScalarSelect,
    Select,
    Text,
    and_,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from appliance.database.tables import (
    audit_event,
    certificate,
    console_user,
    credential,
    integrator,
    person,
    signature_request,
    signing_process,
)
from appliance.database.word_search import folded, holds_words
from appliance.domain.audit.record import AuditRow
from appliance.domain.console.lists import (
    AuditFilter,
    AuditPlace,
    Named,
    Names,
    RequestFilter,
    RequestRow,
    Search,
    read_search,
)
from appliance.domain.ids import (
    MAX_REQUEST_ID,
    PersonId,
    RequestBatchId,
    RequestId,
)
from appliance.domain.vocab import RequestState
from appliance.record.audit_store import audit_row
from appliance.record.unit_of_work import Store
from appliance.requests.request_store import numbered_about

_HOLDERS: Final = 20
"""People of one serial number: different CAs may give the same."""
_PERSON: Final = '"person":"'
"""Where the detail of an audit row, in canonical JSON, says whom it is about."""
_ID_CHARS: Final = 36


class ConsoleListStore(Store):
    """Lists of requests and of the audit."""

    async def requests(
        self,
        wanted: RequestFilter,
        limit: int,
        after: RequestId | None,
        floor: RequestId | None = None,
    ) -> list[RequestRow]:
        """Requests, newest first, after a number and down to another."""
        request = signature_request.c
        place = [] if after is None else [request.id < after]
        if floor is not None:
            place.append(request.id >= floor)
        text = _request_text(wanted)
        if wanted.batch is not None:
            own = _of_batch(wanted, after, None if text else limit)
            query = _requests(RequestFilter()).where(request.id.in_(own), *text)
        elif text:
            query = _requests(wanted).where(*text, *place)
        else:
            # Names of those on the page alone, however many people there are.
            shown = _newest(wanted).where(*place).limit(limit)
            query = _requests(wanted).where(request.id.in_(shown))
        query = query.order_by(_newest_first(wanted)).limit(limit)
        return [_request(row) for row in await self._connection.execute(query)]

    async def requests_floor(
        self, wanted: RequestFilter, after: RequestId | None, count: int
    ) -> RequestId | None:
        """Where so many requests end, whatever their names; None for fewer."""
        query = _newest(wanted).offset(count - 1).limit(1)
        if after is not None:
            query = query.where(signature_request.c.id < after)
        found = (await self._connection.execute(query)).scalar_one_or_none()
        return None if found is None else RequestId(found)

    async def numbered(
        self, wanted: RequestFilter, number: RequestId
    ) -> RequestRow | None:
        """The request of that number, where the other filters let it through."""
        query = _requests(wanted).where(signature_request.c.id == number)
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else _request(row)

    async def referenced(self, wanted: RequestFilter, limit: int) -> list[RequestRow]:
        """Requests that their integrator calls by that text, the newest first."""
        called = select(signing_process.c.id).where(
            signing_process.c.reference == wanted.text.strip()
        )
        request = signature_request.c
        query = _requests(wanted).where(request.process.in_(called))
        query = query.order_by(request.id.desc()).limit(limit)
        return [_request(row) for row in await self._connection.execute(query)]

    async def of_batch(
        self, wanted: RequestFilter, batch: RequestBatchId, limit: int
    ) -> list[RequestRow]:
        """Requests that were asked for with others, the newest first."""
        within = replace(wanted, text="", batch=batch)
        return await self.requests(within, limit, None)

    async def holders(self, search: Search) -> tuple[PersonId, ...]:
        """Whose CUIL that is, or the serial number of a certificate."""
        found = []
        if search.cuil:
            found.append(select(person.c.id).where(person.c.cuil == search.cuil))
        if search.serial:
            found.append(
                select(credential.c.person)
                .join(certificate, certificate.c.credential == credential.c.id)
                .where(certificate.c.serial == search.serial)
            )
            # Of what outside CAs issued no serial stands beside the certificate.
            found.append(
                select(credential.c.person).where(
                    _has_bytes(self._connection, credential.c.certificate, search)
                )
            )
        for query in found:
            rows = (await self._connection.execute(query.limit(_HOLDERS))).scalars()
            if people := tuple(PersonId(row) for row in rows):
                return people
        return ()

    async def whose(self, search: Search) -> ColumnElement[bool]:
        """Build the condition that a text names a person, for a list that joins them.

        Args:
            search: a CUIL or serial number of somebody; else part of name and CUIL.
        """
        people = await self.holders(search) if search.is_key else ()
        if people:
            return person.c.id.in_(people)
        return holds_words(search.text, folded(person.c.name), cuil=person.c.cuil)

    async def named(self, search: Search, limit: int) -> Named:
        """People and administrators that a text names, at most so many of each."""
        whose = select(person.c.id).where(await self.whose(search)).limit(limit)
        people = (await self._connection.execute(whose)).scalars().all()
        query = (
            select(console_user.c.id)
            .where(holds_words(search.text, console_user.c.name))
            .limit(limit)
        )
        administrators = (await self._connection.execute(query)).scalars().all()
        return Named(
            tuple(PersonId(one) for one in people),
            tuple(administrators),
            search.number,
        )

    async def audit(
        self,
        wanted: AuditFilter,
        limit: int,
        after: AuditPlace | None,
        named: Named | None = None,
        floor: AuditPlace | None = None,
    ) -> list[AuditRow]:
        """Audit rows, newest first, after a place and down to another."""
        query = _audit(wanted, after).limit(limit)
        if named is not None:
            whose = await self.whose(read_search(wanted.text))
            query = query.where(_about(self._connection, named, whose))
        if floor is not None:
            query = query.where(not_(_before(wanted, floor)))
            if not wanted.writer:
                query = query.where(audit_event.c.at >= floor.at)
        return [audit_row(row) for row in await self._connection.execute(query)]

    async def audit_floor(
        self, wanted: AuditFilter, after: AuditPlace | None, count: int
    ) -> AuditPlace | None:
        """Where so many rows end, whoever they are about; None for fewer."""
        event = audit_event.c
        query = (
            _audit(wanted, after)
            .with_only_columns(event.at, event.writer, event.n)
            .offset(count - 1)
            .limit(1)
        )
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else AuditPlace(row.at, row.writer, row.n)

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


def _requests(wanted: RequestFilter) -> Select[Any]:
    """Requests that the filters let through, whatever the text."""
    request = signature_request.c
    return (
        select(
            signature_request,
            person.c.name.label("person_name"),
            integrator.c.code.label("integrator_code"),
            integrator.c.name.label("integrator_name"),
        )
        .join(person, person.c.id == request.person)
        .join(integrator, integrator.c.id == request.integrator)
        .where(*_request_conditions(wanted))
    )


def _newest(wanted: RequestFilter) -> Select[Any]:
    """Their numbers, the newest first."""
    request = signature_request.c
    return (
        select(request.id)
        .where(*_request_conditions(wanted))
        .order_by(request.id.desc())
    )


def _of_batch(
    wanted: RequestFilter, after: RequestId | None, limit: int | None
) -> Select[Any]:
    """Numbers of what was asked for together: at most a thousand, all of them read."""
    request = signature_request
    # An offset keeps the planner from looking for them in what other filters let in.
    own = select(request).where(request.c.batch == wanted.batch).offset(0).subquery()
    query = select(own.c.id).where(*_request_conditions(wanted, own.c))
    if after is not None:
        query = query.where(own.c.id < after)
    return query.order_by(own.c.id.desc()).limit(limit)


def _newest_first(wanted: RequestFilter) -> ColumnElement[Any]:
    """The order of a list; of a batch one that no index has, for it to be sorted."""
    number = signature_request.c.id
    return number.desc() if wanted.batch is None else -number


def _request_text(wanted: RequestFilter) -> list[ColumnElement[bool]]:
    """Requests in which the text is found, the one of that number aside."""
    if not wanted.text or wanted.among is not None:
        return []
    search = read_search(wanted.text)
    request = signature_request.c
    names = folded(request.name), folded(person.c.name)
    conditions = [holds_words(wanted.text, *names, cuil=person.c.cuil)]
    if search.number is not None:
        conditions.append(request.id != search.number)
    if wanted.apart:
        is_apart = request.batch.in_(wanted.apart)
        conditions.append(or_(request.batch.is_(None), not_(is_apart)))
    return conditions


def _has_bytes(
    connection: AsyncConnection, column: ColumnElement[bytes], search: Search
) -> ColumnElement[bool]:
    """Whether a certificate, in DER, has that serial number."""
    number = int(search.serial, 16)
    # X.690, 8.3: INTEGER, its length, and a zero octet before a set first bit.
    content = number.to_bytes(number.bit_length() // 8 + 1, "big")
    der = literal(b"\x02" + bytes([len(content)]) + content)
    if connection.dialect.name == "postgresql":
        return func.position(der.op("IN")(column)) > 0
    return func.instr(column, der) > 0


def _audit(wanted: AuditFilter, after: AuditPlace | None) -> Select[Any]:
    """Audit rows that the filters let through, newest first, after a place."""
    event = audit_event.c
    query = select(audit_event).where(*_audit_conditions(wanted))
    if wanted.writer:
        # As its chain goes, which is how its rows lie.
        query = query.order_by(event.n.desc())
    else:
        query = query.order_by(event.at.desc(), event.writer.desc(), event.n.desc())
    if after is None:
        return query
    if not wanted.writer:
        # What an index can begin at, as it cannot at alternatives.
        query = query.where(event.at <= after.at)
    return query.where(_before(wanted, after))


def _before(wanted: AuditFilter, place: AuditPlace) -> ColumnElement[bool]:
    """Rows that are older than a place; of one instant, by writer and number."""
    event = audit_event.c
    if wanted.writer:
        return event.n < place.n
    return or_(
        event.at < place.at,
        and_(event.at == place.at, event.writer < place.writer),
        and_(event.at == place.at, event.writer == place.writer, event.n < place.n),
    )


def _about(
    connection: AsyncConnection, named: Named, whose: ColumnElement[bool]
) -> ColumnElement[bool]:
    """Rows by somebody, about them, or about a request.

    Args:
        connection: whose dialect it is to be in.
        named: the first of those whom the text names.
        whose: condition on everybody whom it names.
    """
    event = audit_event.c
    actors = [f"console:{one}" for one in named.administrators]
    found: list[ColumnElement[bool]] = [event.actor.in_(actors)]
    # Ids stand in quotes wherever a detail has them.
    detail = type_coerce(event.detail, Text)
    found += [
        detail.contains(f'"{one}"') for one in (*named.people, *named.administrators)
    ]
    if named.people:
        # However many they are, they are looked up once for all rows.
        actor = literal("person:") + person.c.id
        found.append(event.actor.in_(select(actor).where(whose)))
        find = func.strpos if connection.dialect.name == "postgresql" else func.instr
        person_id = func.substr(
            detail, find(detail, _PERSON) + len(_PERSON), _ID_CHARS, type_=Text()
        )
        found.append(person_id.in_(select(person.c.id).where(whose)))
        theirs = select(signature_request.c.id).join(
            person, person.c.id == signature_request.c.person
        )
        found.append(event.request.in_(theirs.where(whose)))
    if named.number is not None:
        found.append(event.request == named.number)
    return or_(*found)


def _request_conditions(
    wanted: RequestFilter,
    request: ReadOnlyColumnCollection[str, Any] = signature_request.c,
) -> list[ColumnElement[bool]]:
    number = signature_request.c.id
    conditions: list[ColumnElement[bool]] = []
    if wanted.among is not None:
        conditions.append(request.person.in_(wanted.among))
    if wanted.state is not None:
        conditions.append(request.state == wanted.state.value)
    if wanted.integrator:
        conditions.append(request.integrator == _of_code(wanted.integrator))
    if wanted.person is not None:
        conditions.append(request.person == wanted.person)
    if wanted.batch is not None:
        conditions.append(request.batch == wanted.batch)
    if wanted.unreplaced:
        is_replaced = exists().where(signing_process.c.replaces == request.process)
        conditions.append(~is_replaced)
    if wanted.since is not None:
        conditions.append(request.created >= wanted.since)
        first = numbered_about(wanted.since, func.min(number), 0)
        conditions.append(request.id >= first)
    if wanted.before is not None:
        conditions.append(request.created < wanted.before)
        last = numbered_about(wanted.before, func.max(number), MAX_REQUEST_ID)
        conditions.append(request.id <= last)
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
        conditions.append(event.integrator == _of_code(wanted.integrator))
    if wanted.writer:
        conditions.append(event.writer == wanted.writer)
    if wanted.since is not None:
        conditions.append(event.at >= wanted.since)
    if wanted.before is not None:
        conditions.append(event.at < wanted.before)
    return conditions


def _of_code(code: str) -> ScalarSelect[Any]:
    """The id of an integrator, read first: rows of one id lie in order in an index."""
    # Named by itself: in a query that joins integrators it is no part of the join.
    named = integrator.alias("named")
    return select(named.c.id).where(named.c.code == code).scalar_subquery()


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
