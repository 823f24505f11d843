"""Security notices in SQL: what people are told of their own keys and secrets.

Their table is apart from other mails, so that a role which may withdraw a mail, as an
invitation, cannot withdraw a notice (`appliance.database.rights`). Rows are
written with the audit's (`SqlAudit`); the version before wrote them as mails.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Row,
    and_,
    delete,
    func,
    select,
    update,
)

from appliance.database.tables import security_notice
from appliance.domain.ids import PersonId
from appliance.domain.mail.mails import MailClaim, MailKind, MailState, MailView
from appliance.people.signer_for_tests_store import is_made_up
from appliance.record.leased_queue import LeasedQueue

_PENDING: Final = MailState.PENDING.value
_N: Final = security_notice.c
_TO_MADE_UP: Final = is_made_up(_N.person)


class NoticeStore(LeasedQueue):
    """Security notices."""

    table, tries = security_notice, security_notice.c.tries

    @classmethod
    def open(cls) -> ColumnElement[bool]:
        """Those that are still to be sent."""
        return _N.state == _PENDING

    async def withdraw_due(self, at: datetime) -> int:
        """Withdraw what is due, where mail is off; returns the count."""
        result = await self._connection.execute(
            update(security_notice)
            .where(self.open(), _N.due <= at)
            .values(state=MailState.WITHDRAWN.value, ended=at)
        )
        return result.rowcount

    async def catch_due(self, at: datetime) -> int:
        """Keep what is due and addressed to a test signer; returns the count."""
        result = await self._connection.execute(
            update(security_notice)
            .where(self.open(), _N.due <= at, _TO_MADE_UP)
            .values(state=MailState.CAUGHT.value, ended=at)
        )
        return result.rowcount

    async def forget(self, before: datetime) -> int:
        """Delete notices that ended before a time; returns the count."""
        result = await self._connection.execute(
            delete(security_notice).where(_N.ended < before)
        )
        return result.rowcount

    async def caught(
        self, person: PersonId, at: datetime, limit: int
    ) -> list[MailClaim]:
        """Notices to a test signer, newest first, as if they were claimed.

        Args:
            person: the test signer.
            at: the time; what is due later is left out.
            limit: the most notices to return.
        """
        is_there = _N.state.in_([MailState.CAUGHT.value, _PENDING])
        rows = await self._connection.execute(
            select(security_notice)
            .where(_N.person == person, _N.due <= at, is_there)
            .order_by(_N.due.desc(), _N.id.desc())
            .limit(limit)
        )
        return [_claim(row) for row in rows]

    async def of_person(self, person: PersonId, limit: int) -> list[MailView]:
        """The newest notices to a person, oldest first."""
        rows = await self._connection.execute(
            select(security_notice)
            .where(_N.person == person)
            .order_by(_N.created.desc(), _N.id)
            .limit(limit)
        )
        return [_view(row) for row in reversed(rows.all())]

    async def sent_since(self, since: datetime, at: datetime) -> int | None:
        """Count the notices sent since a time; None where none waits now."""
        waiting = await self._connection.execute(
            select(_N.id).where(_claimable(at)).limit(1)
        )
        if waiting.first() is None:
            return None
        sent = await self._connection.scalar(
            select(func.count()).where(
                _N.ended > since, _N.state == MailState.SENT.value
            )
        )
        return sent or 0

    async def claim_next(
        self, owner: str, at: datetime, lease: timedelta
    ) -> MailClaim | None:
        """Claim the notice that is due first."""
        claiming = self.claiming(_claimable(at), _N.due)
        row = await self._claim(claiming, owner, at + lease)
        return None if row is None else _claim(row)

    async def end(
        self, claim: MailClaim, state: MailState, answer: str, at: datetime
    ) -> bool:
        """End a claim for good; False when another one came since."""
        values = {
            "state": state.value,
            "answer": answer,
            "ended": at,
            "lease_until": None,
            "tries": claim.tries + 1,
        }
        return await self._fenced(claim, values)

    async def put_off(self, claim: MailClaim, due: datetime, answer: str) -> bool:
        """End a claim whose notice is to be tried again; False as `end`."""
        values = {
            "due": due,
            "answer": answer,
            "lease_until": None,
            "tries": claim.tries + 1,
        }
        return await self._fenced(claim, values)

    async def standing(self, at: datetime) -> tuple[int, datetime | None]:
        """Count of the notices that are due, and the time of the oldest."""
        oldest = func.min(_N.created, type_=_N.created.type)
        found = await self._connection.execute(
            select(func.count(), oldest).where(self.open(), _N.due <= at)
        )
        count, first = found.one()
        return count, first

    async def ended(self) -> Mapping[MailState, int]:
        """Count of the notices that ended, by state, as far as they are kept."""
        found = await self._connection.execute(
            select(_N.state, func.count())
            .where(_N.ended.is_not(None))
            .group_by(_N.state)
        )
        return {MailState(state): count for state, count in found}


def _claimable(at: datetime) -> ColumnElement[bool]:
    """Notices to be sent now; a kind of a later version waits for that version."""
    return and_(
        _N.state == _PENDING,
        _N.kind.in_([each.value for each in MailKind]),
        _N.due <= at,
        NoticeStore.unheld(at),
        ~_TO_MADE_UP,
    )


def _claim(row: Row[Any]) -> MailClaim:
    return MailClaim(
        id=row.id,
        fence=row.fence,
        person=PersonId(row.person),
        integrator=None,
        request=None,
        kind=MailKind(row.kind),
        detail={},
        link_sealed=None,
        tries=row.tries,
        created=row.created,
        is_notice=True,
        due=row.due,
    )


def _view(row: Row[Any]) -> MailView:
    return MailView(
        id=row.id,
        person=PersonId(row.person),
        request=None,
        kind=MailKind(row.kind),
        state=MailState(row.state),
        tries=row.tries,
        answer=row.answer,
        created=row.created,
        due=row.due,
        ended=row.ended,
    )
