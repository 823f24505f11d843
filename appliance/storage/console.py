"""The console's users and their sessions, and enrolment links, in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.integration import ConsoleUser
from appliance.domain.records.console import (
    ConsoleSecret,
    ConsoleSessionRow,
    EnrolmentRow,
)
from appliance.storage.tables import console_session, console_user, enrolment


class SqlConsole:
    """Users of the console and their sessions."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

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
                ErrorCode.ALREADY_EXISTS, params={"field": "name"}
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
        return ConsoleSecret(_user(row), row.phc, row.totp_sealed)

    async def advance_step(self, user: str, step: int) -> bool:
        """Mark a TOTP step as used; False if it or a later one was before."""
        result = await self._connection.execute(
            update(console_user)
            .where(console_user.c.id == user, console_user.c.last_step < step)
            .values(last_step=step)
        )
        return result.rowcount == 1

    async def open_session(
        self, token_index: str, user: str, at: datetime, until: datetime
    ) -> None:
        """Record a session by the HMAC of its token."""
        await self._connection.execute(
            insert(console_session).values(
                token_index=token_index, user=user, created=at, until=until
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
                )
                .join(console_session, console_session.c.user == console_user.c.id)
                .where(console_session.c.token_index.in_(indexes))
            )
        ).one_or_none()
        if row is None:
            return None
        return ConsoleSessionRow(_user(row), row.opened, row.until)

    async def prolong_session(self, indexes: Sequence[str], until: datetime) -> None:
        """Let a session that is being used go on until then."""
        await self._connection.execute(
            update(console_session)
            .where(console_session.c.token_index.in_(indexes))
            .values(until=until)
        )

    async def close_session(self, indexes: Sequence[str]) -> bool:
        """End a session; False if it was gone."""
        result = await self._connection.execute(
            delete(console_session).where(console_session.c.token_index.in_(indexes))
        )
        return result.rowcount == 1

    async def sweep(self, before: datetime) -> int:
        """Forget sessions that were over by then; how many there were."""
        result = await self._connection.execute(
            delete(console_session).where(console_session.c.until < before)
        )
        return result.rowcount


class SqlEnrolments:
    """Enrolment links."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, code_index: str, new: EnrolmentRow, at: datetime) -> None:
        """Record a link by the HMAC of its code; earlier ones of the person end."""
        await self._connection.execute(
            update(enrolment)
            .where(
                enrolment.c.person == new.person,
                enrolment.c.used.is_(None),
                enrolment.c.until > at,
            )
            .values(until=at)
        )
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
    return ConsoleUser(row.id, row.name, row.created)
