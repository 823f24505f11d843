"""Tries to prove who somebody is, and where they did before, in SQL."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import (
    ColumnElement,
    and_,
    case,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from appliance.database.advisory_lock import advisory_lock
from appliance.database.tables import known_address, login_attempt
from appliance.database.upsert import insert_into
from appliance.domain.ids import PersonId
from appliance.domain.people.login import (
    AttemptKind,
    AttemptOutcome,
    CeilingReached,
    Counted,
    NewAttempt,
    PendingLogin,
    WrongTries,
)
from appliance.domain.text.ip_networks import wider
from appliance.record.unit_of_work import Store

_FORGOTTEN = "forgotten"
"""In place of the account of a try that no more counts for it; no HMAC is that."""


class LoginAttemptStore(Store):
    """Tries at passwords and codes, which rate limits count."""

    async def lock(self, *indexes: str) -> None:
        """Keep others from counting the same tries until this transaction ends."""
        # In one order, so that two callers never wait for each other.
        for key in sorted({_lock_key(index) for index in indexes}):
            await advisory_lock(self._connection, key)

    async def nth_last(
        self, counted: Counted, nth: int, since: datetime, running_since: datetime
    ) -> datetime | None:
        """When the nth last try was that is wrong or still running."""
        column = login_attempt.c
        query = (
            select(column.at)
            .where(
                *_counted(counted),
                column.at > since,
                or_(
                    column.outcome == AttemptOutcome.WRONG.value,
                    and_(
                        column.outcome == AttemptOutcome.RUNNING.value,
                        column.at > running_since,
                    ),
                ),
            )
            .order_by(column.at.desc())
            .offset(nth - 1)
            .limit(1)
        )
        return (await self._connection.execute(query)).scalar_one_or_none()

    async def wrong(
        self, counted: Counted, since: datetime, *, forgiving: bool
    ) -> WrongTries:
        """Wrong tries since then; `forgiving`: since the last completed one."""
        column, where = login_attempt.c, _counted(counted)
        if forgiving:
            done = (
                await self._connection.execute(
                    select(func.max(column.at)).where(
                        *where, column.outcome == AttemptOutcome.DONE.value
                    )
                )
            ).scalar_one()
            since = since if done is None else max(since, done)
        found = (
            await self._connection.execute(
                select(func.count(), func.max(column.at)).where(
                    *where,
                    column.outcome == AttemptOutcome.WRONG.value,
                    column.at > since,
                )
            )
        ).one()
        return WrongTries(found[0], found[1])

    async def remember(self, known_index: str, at: datetime) -> None:
        """Remember where somebody has proven who they are."""
        new = insert_into(self._connection, known_address).values(
            known_index=known_index, at=at
        )
        await self._connection.execute(
            new.on_conflict_do_update(
                index_elements=[known_address.c.known_index], set_={"at": at}
            )
        )

    async def is_known(self, known_indexes: Sequence[str], since: datetime) -> bool:
        """Whether they have since then."""
        found = await self._connection.execute(
            select(literal(1)).where(
                known_address.c.known_index.in_(known_indexes),
                known_address.c.at > since,
            )
        )
        return found.first() is not None

    async def known_since(
        self, since: datetime, until: datetime, most: int
    ) -> Sequence[tuple[str, datetime]]:
        """The latest indexes that were remembered within a time, in its order."""
        column = known_address.c
        latest = (
            select(column.known_index, column.at)
            .where(column.at > since, column.at <= until)
            .order_by(column.at.desc())
            .limit(most)
        )
        rows = (await self._connection.execute(latest)).all()
        return [(row.known_index, row.at) for row in reversed(rows)]

    async def drop(self, attempt: str) -> None:
        """Take a try back that was not looked at."""
        await self._connection.execute(
            delete(login_attempt).where(login_attempt.c.id == attempt)
        )

    async def forget(
        self, account_indexes: Sequence[str], person: PersonId | None = None
    ) -> int:
        """Count the wrong tries on an account no more; how many there were."""
        column = login_attempt.c
        whose: ColumnElement[bool] = column.account_index.in_(account_indexes)
        if person is not None:
            whose = or_(whose, column.person == person)
        await self._connection.execute(
            delete(login_attempt).where(whose, column.kind == AttemptKind.CEILING.value)
        )
        result = await self._connection.execute(
            update(login_attempt)
            .where(whose, column.outcome == AttemptOutcome.WRONG.value)
            .values(account_index=_FORGOTTEN, person=None)
        )
        return int(result.rowcount)

    async def ceilings(
        self, since: datetime, accounts: Sequence[str], most: int
    ) -> list[CeilingReached]:
        """Accounts of somebody whose ceiling was reached since then, latest first."""
        column = login_attempt.c
        last = func.max(column.at, type_=column.at.type).label("last")
        # A person has an account for the CUIL and one for the e-mail address.
        account = case((column.person.is_(None), column.account_index)).label("account")
        rows = await self._connection.execute(
            select(account, column.person, last)
            .where(
                column.kind == AttemptKind.CEILING.value,
                column.at > since,
                or_(column.person.is_not(None), column.account_index.in_(accounts)),
            )
            .group_by("account", column.person)
            .order_by(last.desc())
            .limit(most)
        )
        return [
            CeilingReached(
                row.account,
                PersonId(row.person) if row.person else None,
                row.last,
            )
            for row in rows
        ]

    async def last_ceiling(
        self, since: datetime, accounts: Sequence[str], person: PersonId | None = None
    ) -> datetime | None:
        """When one of these accounts, or of this person's, was last at its ceiling."""
        column = login_attempt.c
        whose: ColumnElement[bool] = column.account_index.in_(accounts)
        if person is not None:
            whose = or_(whose, column.person == person)
        last: datetime | None = await self._connection.scalar(
            select(func.max(column.at, type_=column.at.type)).where(
                whose, column.kind == AttemptKind.CEILING.value, column.at > since
            )
        )
        return last

    async def forget_known(self, before: datetime) -> int:
        """Forget where somebody was last proven before that; how many."""
        result = await self._connection.execute(
            delete(known_address).where(known_address.c.at < before)
        )
        return int(result.rowcount)

    async def begin(self, attempt: NewAttempt) -> None:
        """Record a try, running."""
        net_56, net_48 = wider(attempt.address) or (None, None)
        await self._connection.execute(
            insert(login_attempt).values(
                id=attempt.id,
                at=attempt.at,
                address=attempt.address,
                net_56=net_56,
                net_48=net_48,
                scope=attempt.scope,
                account_index=attempt.account_index,
                kind=attempt.kind.value,
                person=attempt.person,
                outcome=AttemptOutcome.RUNNING.value,
            )
        )

    async def end(self, attempt: str, outcome: AttemptOutcome) -> None:
        """Say how a try ended."""
        await self._connection.execute(
            update(login_attempt)
            .where(login_attempt.c.id == attempt)
            .values(outcome=outcome.value)
        )

    async def await_code(self, attempt: str, token_index: str, until: datetime) -> None:
        """The password was right: its login token waits for a code."""
        await self._connection.execute(
            update(login_attempt)
            .where(login_attempt.c.id == attempt)
            .values(
                outcome=AttemptOutcome.RIGHT.value, token_index=token_index, until=until
            )
        )

    async def pending(
        self, indexes: Sequence[str], at: datetime
    ) -> PendingLogin | None:
        """The right password that a login token stands for, while it lives."""
        row = (
            await self._connection.execute(
                select(login_attempt).where(
                    login_attempt.c.token_index.in_(indexes),
                    login_attempt.c.outcome == AttemptOutcome.RIGHT.value,
                    login_attempt.c.until > at,
                )
            )
        ).one_or_none()
        if row is None:
            return None
        return PendingLogin(row.id, PersonId(row.person))

    async def end_pending(self, person: PersonId) -> None:
        """End the login tokens of a person."""
        await self._connection.execute(
            update(login_attempt)
            .where(
                login_attempt.c.person == person,
                login_attempt.c.outcome == AttemptOutcome.RIGHT.value,
            )
            .values(token_index=None)
        )

    async def consume(self, attempt: str) -> bool:
        """End a login token; False if another call did."""
        result = await self._connection.execute(
            update(login_attempt)
            .where(
                login_attempt.c.id == attempt,
                login_attempt.c.outcome == AttemptOutcome.RIGHT.value,
            )
            .values(outcome=AttemptOutcome.DONE.value, token_index=None)
        )
        return result.rowcount == 1

    async def sweep(self, before: datetime) -> int:
        """Forget attempts older than that; how many there were."""
        column = login_attempt.c
        result = await self._connection.execute(
            delete(login_attempt).where(
                column.at < before, or_(column.until.is_(None), column.until < before)
            )
        )
        return int(result.rowcount)


def _counted(counted: Counted) -> list[ColumnElement[bool]]:
    """The condition for tries that are counted together."""
    column = login_attempt.c
    where = [column.kind == counted.kind.value]
    if counted.network is not None:
        width = counted.network.rpartition("/")[2]
        columns = {"56": column.net_56, "48": column.net_48}
        where.append(columns.get(width, column.address) == counted.network)
    if counted.account_index is not None:
        where.append(column.account_index == counted.account_index)
    if counted.scope is not None:
        where.append(column.scope == counted.scope)
    return where


def _lock_key(index: str) -> int:
    """A lock number (63 bits) of an index, whatever its text."""
    return int.from_bytes(hashlib.sha256(index.encode()).digest()[:8], "big") >> 1
