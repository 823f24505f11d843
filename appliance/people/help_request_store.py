"""Requests for help, in SQL: of each person one with a proof and one without.

Each has its own row, its own link and its own count a day. So whoever asks without a
proof neither changes what was asked with one, nor uses up how often that may be done.

Every change is one conditional statement, so that of several calls at once one counts.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Row, Select, case, or_, select, update

from appliance.database.tables import help_request, integrator, person
from appliance.database.upsert import insert_into
from appliance.domain.ids import IntegratorId, PersonId
from appliance.domain.people.help_requests import HelpRequest
from appliance.domain.vocab import HelpOutcome, HelpTopic
from appliance.record.unit_of_work import Store

_C: Final = help_request.c
_OPEN: Final = _C.ended.is_(None)


class HelpRequestStore(Store):
    """Requests for help."""

    async def open(
        self,
        who: PersonId,
        row_id: str,
        topic: HelpTopic,
        integrator_id: IntegratorId | None,
        *,
        proven: bool,
        code_index: str,
        at: datetime,
        most: int,
        within: timedelta,
    ) -> bool:
        """Open a person's request, or replace the open one if its topic is another.

        A replaced request is a new one: an officer who closes what a page showed does
        not close it, and the link of the earlier mail does not withdraw it.

        Args:
            who: the person.
            row_id: a new id.
            topic: what it is about.
            integrator_id: in whose frame it is asked; None: on the public page.
            proven: a right code came before.
            code_index: HMAC of the code that withdraws it.
            at: the time.
            most: how often it may be opened within a time.
            within: that time.

        Returns:
            False if this topic is open already, or they asked too often.
        """
        values = {
            "id": row_id,
            "topic": topic.value,
            "integrator": integrator_id,
            "code_index": code_index,
            "asked": at,
            "ended": None,
            "outcome": None,
        }
        first = (
            insert_into(self._connection, help_request)
            .values(person=who, proven=proven, counted=1, since=at, **values)
            .on_conflict_do_nothing(index_elements=[_C.person, _C.proven])
        )
        if (await self._connection.execute(first)).rowcount == 1:
            return True
        is_new_time = _C.since <= at - within
        again = (
            update(help_request)
            .where(
                _C.person == who,
                _C.proven == proven,
                or_(_C.ended.is_not(None), _C.topic != topic.value),
                or_(is_new_time, _C.counted < most),
            )
            .values(
                counted=case((is_new_time, 1), else_=_C.counted + 1),
                since=case((is_new_time, at), else_=_C.since),
                **values,
            )
        )
        return (await self._connection.execute(again)).rowcount == 1

    async def is_open(self, who: PersonId, topic: HelpTopic, *, proven: bool) -> bool:
        """Return whether a person's request of a topic is open.

        Args:
            who: the person.
            topic: what it is about.
            proven: only one that was asked after a right code; else either.
        """
        query = select(_C.person).where(
            _C.person == who, _C.topic == topic.value, _OPEN
        )
        # What was said with a proof needs no saying without one.
        if proven:
            query = query.where(_C.proven)
        return (await self._connection.scalars(query)).first() is not None

    async def by_code(self, indexes: Sequence[str]) -> bool:
        """Return whether a code withdraws a request that is open."""
        found = await self._connection.scalar(
            select(_C.person).where(_C.code_index.in_(indexes), _OPEN)
        )
        return found is not None

    async def withdraw(self, indexes: Sequence[str], at: datetime) -> PersonId | None:
        """Withdraw the open request of a code; its person, or None without one."""
        result = await self._connection.execute(
            update(help_request)
            .where(_C.code_index.in_(indexes), _OPEN)
            .values(ended=at, outcome=HelpOutcome.WITHDRAWN.value)
            .returning(_C.person)
        )
        row = result.one_or_none()
        return None if row is None else PersonId(row.person)

    async def close(self, who: PersonId, row_id: str, at: datetime) -> bool:
        """Close an open request; False if it is over, or another one is open."""
        result = await self._connection.execute(
            update(help_request)
            .where(_C.person == who, _C.id == row_id, _OPEN)
            .values(ended=at, outcome=HelpOutcome.CLOSED.value)
        )
        return result.rowcount == 1

    async def of_person(self, who: PersonId) -> list[HelpRequest]:
        """Open requests of a person, the one with a proof first."""
        rows = await self._connection.execute(
            _seen().where(_C.person == who).order_by(_C.proven.desc())
        )
        return [_request(row) for row in rows]

    async def newest(self, limit: int) -> list[HelpRequest]:
        """Open requests, newest first."""
        rows = await self._connection.execute(
            _seen().order_by(_C.asked.desc(), _C.person, _C.proven.desc()).limit(limit)
        )
        return [_request(row) for row in rows]


def _seen() -> Select[Any]:
    """Open requests with the names that an officer reads."""
    return (
        select(
            _C.id,
            _C.person,
            _C.topic,
            _C.integrator,
            _C.proven,
            _C.asked,
            person.c.name,
            integrator.c.name.label("integrator_name"),
        )
        .join(person, person.c.id == _C.person)
        .outerjoin(integrator, integrator.c.id == _C.integrator)
        .where(_OPEN)
    )


def _request(row: Row[Any]) -> HelpRequest:
    return HelpRequest(
        id=row.id,
        person=PersonId(row.person),
        name=row.name,
        topic=HelpTopic(row.topic),
        integrator=row.integrator and IntegratorId(row.integrator),
        integrator_name=row.integrator_name,
        proven=row.proven,
        asked=row.asked,
    )
