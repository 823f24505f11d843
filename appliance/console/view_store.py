"""What the console reads, in SQL that both databases take."""

from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    exists,
    func,
    not_,
    or_,
    select,
)

from appliance.console.list_store import ConsoleListStore
from appliance.database.tables import (
    api_key,
    blocked_origin,
    credential,
    embed_session,
    enrolment,
    help_request,
    integrator,
    integrator_domain,
    person,
    signature_request,
    signing_process,
    signing_secret,
)
from appliance.database.word_search import contains, folded, holds_words
from appliance.domain.console.lists import (
    BlockedRow,
    HomeNumbers,
    IntegratorFilter,
    IntegratorNumbers,
    PeopleQuery,
    PersonPlace,
    PersonRow,
    StoredPerson,
)
from appliance.domain.ids import IntegratorId, PersonId
from appliance.domain.integrators.integrators import IntegratorView, SessionState
from appliance.domain.pki.trust_store import SOON_DAYS
from appliance.domain.vocab import (
    CredentialState,
    PersonState,
    RequestState,
    VouchedBy,
)
from appliance.integrators.integrator_store import integrator_view, integrator_views

_SOON: Final = timedelta(days=SOON_DAYS)
_IS_REPLACED: Final = exists().where(
    signing_process.c.replaces == signature_request.c.process
)
"""True of a request that was asked for again: it waits for nobody."""


class ConsoleViewStore(ConsoleListStore):
    """Reads for administrators."""

    async def numbers(self, at: datetime) -> HomeNumbers:
        """What waits for somebody."""
        request, who = signature_request.c.state, person.c.state
        return HomeNumbers(
            # Each by itself: of the states that are not told there are most.
            pending=await self._count(request == RequestState.PENDING.value),
            in_progress=await self._count(request == RequestState.IN_PROGRESS.value),
            failed=await self._count(
                request == RequestState.FAILED.value, ~_IS_REPLACED
            ),
            invited=await self._count(who == PersonState.INVITED.value),
            locked=await self._count(signing_secret.c.locked_at.is_not(None)),
            blocked=await self._count(blocked_origin.c.count > 0),
            flagged=await self._count(_usable(at), api_key.c.flagged.is_not(None)),
            ending=await self._count(
                credential.c.state == CredentialState.ACTIVE.value,
                credential.c.not_after <= at + _SOON,
            ),
            help=await self._people_asking(),
        )

    async def _people_asking(self) -> int:
        """People with a request for help that is open; some have two."""
        query = select(func.count(help_request.c.person.distinct())).where(
            help_request.c.ended.is_(None)
        )
        return int((await self._connection.execute(query)).scalar_one())

    async def _counts(self, column: ColumnElement[Any]) -> dict[str, int]:
        rows = await self._connection.execute(
            select(column, func.count()).group_by(column)
        )
        return {row[0]: row[1] for row in rows}

    async def _count(self, *conditions: ColumnElement[bool]) -> int:
        query = select(func.count()).where(*conditions)
        return int((await self._connection.execute(query)).scalar_one())

    async def blocked(self, limit: int) -> list[BlockedRow]:
        """Origins that tried and are not listed, last seen first."""
        rows = await self._connection.execute(
            select(blocked_origin, integrator.c.code.label("code"))
            .join(integrator, integrator.c.id == blocked_origin.c.integrator)
            .order_by(blocked_origin.c.last.desc(), blocked_origin.c.origin)
            .limit(limit)
        )
        return [
            BlockedRow(
                IntegratorId(row.integrator),
                row.code,
                row.origin,
                row.last,
                # `Row.count` is a method of tuples.
                row._mapping["count"],  # noqa: SLF001 (SQLAlchemy's public name)
            )
            for row in rows
        ]

    async def integrator_numbers(
        self, at: datetime
    ) -> dict[IntegratorId, IntegratorNumbers]:
        """How each integrator stands."""
        keys = {
            row.integrator: row
            for row in await self._connection.execute(
                select(
                    api_key.c.integrator,
                    func.count().filter(_usable(at)).label("usable"),
                    func.count()
                    .filter(_usable(at), api_key.c.flagged.is_not(None))
                    .label("flagged"),
                    func.max(api_key.c.last_used, type_=api_key.c.last_used.type).label(
                        "last_used"
                    ),
                ).group_by(api_key.c.integrator)
            )
        }
        domains = await self._counts(integrator_domain.c.integrator)
        blocked = await self._counts(blocked_origin.c.integrator)
        return {
            IntegratorId(ident): IntegratorNumbers(
                keys=keys[ident].usable if ident in keys else 0,
                flagged=keys[ident].flagged if ident in keys else 0,
                domains=domains.get(ident, 0),
                blocked=blocked.get(ident, 0),
                last_used=keys[ident].last_used if ident in keys else None,
            )
            for ident in {*keys, *domains, *blocked}
        }

    async def integrators(
        self, wanted: IntegratorFilter, at: datetime, limit: int, after: str
    ) -> list[IntegratorView]:
        """Integrators by code, after a code."""
        query = integrator_views().where(integrator.c.code > after)
        if wanted.text:
            names = folded(integrator.c.name), integrator.c.code
            query = query.where(holds_words(wanted.text, *names))
        if wanted.blocked:
            tried = select(blocked_origin.c.integrator)
            query = query.where(integrator.c.id.in_(tried))
        if wanted.flagged:
            keys = select(api_key.c.integrator).where(
                _usable(at), api_key.c.flagged.is_not(None)
            )
            query = query.where(integrator.c.id.in_(keys))
        rows = await self._connection.execute(query.limit(limit))
        return [integrator_view(row) for row in rows]

    async def key_sessions(self, key_id: str, at: datetime) -> int:
        """Unfinished sessions that an API key opened."""
        return await self._count(
            embed_session.c.api_key == key_id,
            embed_session.c.state == SessionState.OPEN.value,
            embed_session.c.until > at,
        )

    async def people(
        self,
        query: PeopleQuery,
        limit: int,
        after: PersonPlace | None,
        floor: PersonPlace | None = None,
    ) -> list[PersonRow]:
        """Persons, newest first, after a place and down to another."""
        wanted = _filtered(query, after)
        found = []
        if query.name:
            name = folded(person.c.name)
            found.append(holds_words(query.name, name, cuil=person.c.cuil))
        if query.cuil:
            found.append(contains(person.c.cuil, query.cuil))
        if found:
            wanted = wanted.where(or_(*found))
        if floor is not None:
            wanted = wanted.where(not_(_before(floor)), person.c.created >= floor[0])
        rows = await self._connection.execute(wanted.limit(limit))
        return list({row.id: _person(row) for row in rows}.values())

    async def people_floor(
        self, query: PeopleQuery, after: PersonPlace | None, count: int
    ) -> PersonPlace | None:
        """Where so many persons end, whatever their names; None for fewer."""
        place = (
            _filtered(query, after)
            .with_only_columns(person.c.created, person.c.id)
            .offset(count - 1)
            .limit(1)
        )
        row = (await self._connection.execute(place)).one_or_none()
        return None if row is None else (row.created, PersonId(row.id))

    async def person(self, person_id: PersonId, at: datetime) -> StoredPerson | None:
        """A person and what is kept beside them."""
        one = _people().where(person.c.id == person_id)
        ends_last = one.order_by(credential.c.not_after.desc()).limit(1)
        row = (await self._connection.execute(ends_last)).one_or_none()
        if row is None:
            return None
        link = await self._connection.execute(
            select(func.max(enrolment.c.until, type_=enrolment.c.until.type)).where(
                enrolment.c.person == person_id,
                enrolment.c.used.is_(None),
                enrolment.c.until > at,
            )
        )
        return StoredPerson(
            row=_person(row),
            email_sealed=row.email_sealed,
            counted=row.counted or 0,
            invited_until=link.scalar_one_or_none(),
        )


def _usable(at: datetime) -> ColumnElement[bool]:
    """Keys that open sessions at a time (`KeyView.usable`)."""
    return and_(
        api_key.c.revoked.is_(None),
        or_(api_key.c.expires.is_(None), api_key.c.expires > at),
        or_(api_key.c.ends.is_(None), api_key.c.ends > at),
    )


def _filtered(query: PeopleQuery, after: PersonPlace | None) -> Select[Any]:
    """Persons that the filters let through, whatever the text, newest first."""
    wanted = _people().order_by(person.c.created.desc(), person.c.id.desc())
    if query.among is not None:
        wanted = wanted.where(person.c.id.in_(query.among))
    if query.email_indexes:
        wanted = wanted.where(person.c.email_index.in_(query.email_indexes))
    if query.state is not None:
        wanted = wanted.where(person.c.state == query.state.value)
    if query.locked:
        wanted = wanted.where(signing_secret.c.locked_at.is_not(None))
    if query.asks_help:
        asking = select(help_request.c.person).where(help_request.c.ended.is_(None))
        wanted = wanted.where(person.c.id.in_(asking))
    if after is None:
        return wanted
    # The first is what an index can begin at.
    return wanted.where(person.c.created <= after[0], _before(after))


def _before(place: PersonPlace) -> ColumnElement[bool]:
    """Persons recorded before a place; at one instant, by id."""
    at, ident = place
    return or_(person.c.created < at, and_(person.c.created == at, person.c.id < ident))


def _people() -> Select[Any]:
    """People with the end of their key in use; a row for each key of who has several.

    A person has one. Whoever writes to the record may give somebody two.
    """
    return (
        select(
            person,
            signing_secret.c.counted,
            signing_secret.c.locked_at,
            credential.c.not_after,
        )
        .outerjoin(signing_secret, signing_secret.c.person == person.c.id)
        .outerjoin(
            credential,
            and_(
                credential.c.person == person.c.id,
                credential.c.state == CredentialState.ACTIVE.value,
            ),
        )
    )


def _person(row: Row[Any]) -> PersonRow:
    return PersonRow(
        id=PersonId(row.id),
        cuil=row.cuil,
        name=row.name,
        state=PersonState(row.state),
        vouched_by=VouchedBy(row.vouched_by),
        locked_at=row.locked_at,
        not_after=row.not_after,
        created=row.created,
    )
