"""What proves people at sign-in, and the keys that sign tokens, in SQL."""

from datetime import datetime

from sqlalchemy import insert, select, update

from appliance.database.advisory_lock import advisory_lock
from appliance.database.tables import jwt_key, login_secret
from appliance.domain.ids import PersonId
from appliance.domain.people.login import JwtKeyRow, LoginSecret
from appliance.record.unit_of_work import Store

_KEYS_LOCK = 0x52_4B_45_59
"""Advisory lock of whoever makes a token key."""


class LoginSecretStore(Store):
    """What proves people at sign-in."""

    async def secret(self, person: PersonId) -> LoginSecret | None:
        """What proves a person."""
        row = (
            await self._connection.execute(
                select(login_secret).where(login_secret.c.person == person)
            )
        ).one_or_none()
        if row is None:
            return None
        return LoginSecret(row.phc, row.totp_sealed, row.last_step)

    async def advance_step(self, person: PersonId, step: int) -> bool:
        """Mark a TOTP step as used; False if it or a later one was before."""
        result = await self._connection.execute(
            update(login_secret)
            .where(login_secret.c.person == person, login_secret.c.last_step < step)
            .values(last_step=step)
        )
        return result.rowcount == 1


class JwtKeyStore(Store):
    """Keys that sign tokens."""

    async def add(self, key: JwtKeyRow) -> None:
        """Record a key pair."""
        await self._connection.execute(
            insert(jwt_key).values(
                kid=key.kid,
                private_sealed=key.private_sealed,
                public=key.public,
                valid_from=key.valid_from,
                valid_until=key.valid_until,
            )
        )

    async def valid(self, at: datetime) -> list[JwtKeyRow]:
        """Keys whose tokens are accepted at a time or will be, oldest first."""
        rows = await self._connection.execute(
            select(jwt_key)
            .where(jwt_key.c.valid_until > at)
            .order_by(jwt_key.c.valid_from, jwt_key.c.kid)
        )
        return [
            JwtKeyRow(r.kid, r.private_sealed, r.public, r.valid_from, r.valid_until)
            for r in rows
        ]

    async def lock(self) -> None:
        """Keep other processes from adding a key until this transaction ends."""
        await advisory_lock(self._connection, _KEYS_LOCK)
