"""The console's users and their sessions, and enrolment links, in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, and_, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from appliance.database.tables import console_session, console_user, enrolment
from appliance.domain.console.lists import (
    ConsoleSecret,
    ConsoleSessionRow,
    EnrolmentRow,
)
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.integrators.integrators import ConsoleUser, ConsoleUserView
from appliance.record.unit_of_work import Store


class ConsoleUserStore(Store):
    """Users of the console and their sessions."""

    async def add_user(self, new: ConsoleSecret) -> None:
        """Record a user.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for a name in use.
        """
        try:
            await self._connection.execute(
                insert(console_user).values(
                    id=new.user.id,
                    name=new.user.name,
                    phc=new.phc,
                    totp_sealed=new.totp_sealed,
                    last_step=0,
                    created=new.user.created,
                )
            )
        except IntegrityError as exc:
            raise ApplianceError(
                ErrorCode.ALREADY_EXISTS,
                params={"field": "name", "value": new.user.name},
            ) from exc

    async def users(self) -> list[ConsoleUser]:
        """Every user, by name."""
        rows = await self._connection.execute(
            select(console_user).order_by(console_user.c.name)
        )
        return [_user(row) for row in rows]

    async def by_name(self, name: str) -> ConsoleSecret | None:
        """A user by name."""
        row = (
            await self._connection.execute(
                select(console_user).where(console_user.c.name == name)
            )
        ).one_or_none()
        if row is None:
            return None
        return ConsoleSecret(_user(row), row.phc, row.totp_sealed, row.last_step)

    async def by_id(self, user: str) -> ConsoleSecret | None:
        """A user by id."""
        row = (
            await self._connection.execute(
                select(console_user).where(console_user.c.id == user)
            )
        ).one_or_none()
        if row is None:
            return None
        return ConsoleSecret(_user(row), row.phc, row.totp_sealed, row.last_step)

    async def views(self, at: datetime) -> list[ConsoleUserView]:
        """Every user, by name, with the sessions open at a time."""
        of_theirs = and_(
            console_session.c.user == console_user.c.id, console_session.c.until > at
        )
        sessions = (
            select(func.count()).select_from(console_session).where(of_theirs)
        ).scalar_subquery()
        rows = await self._connection.execute(
            select(console_user, sessions.label("sessions")).order_by(
                console_user.c.name
            )
        )
        return [
            ConsoleUserView(_user(row), row.last_login, row.sessions) for row in rows
        ]

    async def enabled(self) -> list[str]:
        """Ids of users who can sign in; none is shut out until the commit."""
        # Rows are locked in one order, or two who shut out each other would
        # each see the other let in.
        rows = await self._connection.execute(
            select(console_user.c.id)
            .where(console_user.c.disabled.is_(None))
            .order_by(console_user.c.id)
            .with_for_update(key_share=True)
        )
        return [row.id for row in rows]

    async def set_disabled(self, user: str, at: datetime | None) -> None:
        """Shut a user out from then on, or let them in again."""
        await self._change(user, disabled=at)

    async def set_password(self, user: str, phc: str) -> None:
        """Set a password in the place of the one before."""
        await self._change(user, phc=phc)

    async def set_totp(self, user: str, sealed: bytes, step: int) -> None:
        """Set a TOTP seed in the place of the one before."""
        await self._change(user, totp_sealed=sealed, last_step=step)

    async def note_login(self, user: str, at: datetime) -> None:
        """Record when a user last signed in."""
        await self._change(user, last_login=at)

    async def _change(self, user: str, **values: object) -> None:
        await self._connection.execute(
            update(console_user).where(console_user.c.id == user).values(**values)
        )

    async def advance_step(self, secret: ConsoleSecret, step: int) -> bool:
        """Mark a TOTP step as used; False if it or a later one was before."""
        user = console_user.c
        result = await self._connection.execute(
            update(console_user)
            .where(
                user.id == secret.user.id,
                user.last_step < step,
                # What was right when it was read may have been changed since.
                user.disabled.is_(None),
                user.phc == secret.phc,
                user.totp_sealed == secret.totp_sealed,
            )
            .values(last_step=step)
        )
        return result.rowcount == 1

    async def open_session(
        self, token_index: str, user: str, at: datetime, until: datetime
    ) -> None:
        """Record a session by the HMAC of its token."""
        await self._connection.execute(
            insert(console_session).values(
                token_index=token_index, user=user, created=at, until=until, proven=at
            )
        )

    async def session(self, indexes: Sequence[str]) -> ConsoleSessionRow | None:
        """A session by the HMAC of its token, over or not."""
        row = (
            await self._connection.execute(
                select(
                    console_user,
                    console_session.c.created.label("opened"),
                    console_session.c.until,
                    console_session.c.proven,
                )
                .join(console_session, console_session.c.user == console_user.c.id)
                .where(console_session.c.token_index.in_(indexes))
            )
        ).one_or_none()
        if row is None:
            return None
        return ConsoleSessionRow(_user(row), row.opened, row.until, row.proven)

    async def prolong_session(
        self, indexes: Sequence[str], at: datetime, until: datetime
    ) -> None:
        """Let a session that is open at a time go on until another."""
        await self._connection.execute(
            update(console_session)
            # One that was ended since it was read stays ended.
            .where(
                console_session.c.token_index.in_(indexes), console_session.c.until > at
            )
            .values(until=until)
        )

    async def note_proof(self, indexes: Sequence[str], at: datetime) -> None:
        """Record when a code was last given in a session."""
        await self._connection.execute(
            update(console_session)
            .where(console_session.c.token_index.in_(indexes))
            .values(proven=at)
        )

    async def close_session(self, indexes: Sequence[str]) -> bool:
        """End a session; False if it was gone."""
        result = await self._connection.execute(
            delete(console_session).where(console_session.c.token_index.in_(indexes))
        )
        return result.rowcount == 1

    async def close_sessions(
        self, user: str, at: datetime, keep: Sequence[str] = ()
    ) -> int:
        """End a user's open sessions but one; how many there were.

        Their rows stay until they are swept: by them the console knows whose form
        comes too late.
        """
        result = await self._connection.execute(
            update(console_session)
            .where(
                console_session.c.user == user,
                console_session.c.token_index.not_in(keep),
                console_session.c.until > at,
            )
            .values(until=at)
        )
        return result.rowcount

    async def sweep(self, before: datetime) -> int:
        """Forget sessions that were over by then; how many there were."""
        result = await self._connection.execute(
            delete(console_session).where(console_session.c.until < before)
        )
        return result.rowcount


class EnrolmentStore(Store):
    """Enrolment links."""

    async def add(self, code_index: str, new: EnrolmentRow, at: datetime) -> None:
        """Record a link by the HMAC of its code; earlier ones of the person end."""
        await self.end_of_person(new.person, at)
        await self._connection.execute(
            insert(enrolment).values(
                id=new.id,
                code_index=code_index,
                person=new.person,
                totp_sealed=new.totp_sealed,
                created=at,
                until=new.until,
            )
        )

    async def by_code(self, indexes: Sequence[str]) -> EnrolmentRow | None:
        """A link by the HMAC of its code, over or not."""
        row = (
            await self._connection.execute(
                select(enrolment).where(enrolment.c.code_index.in_(indexes))
            )
        ).one_or_none()
        if row is None:
            return None
        return EnrolmentRow(
            row.id, PersonId(row.person), row.totp_sealed, row.until, row.used
        )

    async def open_until(self, person: PersonId, at: datetime) -> datetime | None:
        """Until when a person has a link that is good; None: they have none."""
        found = await self._connection.execute(
            select(func.max(enrolment.c.until, type_=enrolment.c.until.type)).where(
                enrolment.c.person == person,
                enrolment.c.used.is_(None),
                enrolment.c.until > at,
            )
        )
        until: datetime | None = found.scalar_one()
        return until

    async def end_of_person(self, person: PersonId, at: datetime) -> int:
        """End the unused links of a person; how many."""
        result = await self._connection.execute(
            update(enrolment)
            .where(
                enrolment.c.person == person,
                enrolment.c.used.is_(None),
                enrolment.c.until > at,
            )
            .values(until=at)
        )
        return result.rowcount

    async def use(self, link: str, at: datetime) -> bool:
        """Use a link up; False if it is over or was used."""
        result = await self._connection.execute(
            update(enrolment)
            .where(
                enrolment.c.id == link,
                enrolment.c.used.is_(None),
                enrolment.c.until > at,
            )
            .values(used=at)
        )
        return result.rowcount == 1


def _user(row: Row[Any]) -> ConsoleUser:
    return ConsoleUser(row.id, row.name, row.created, row.disabled)
