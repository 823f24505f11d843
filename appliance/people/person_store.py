"""Persons, integrators and signing secrets in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from appliance.database.tables import integrator, login_secret, person, signing_secret
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, PersonId
from appliance.domain.people.identity import (
    ChosenSecrets,
    Contact,
    Integrator,
    InvitedPerson,
    NewPerson,
    Person,
    SigningSecret,
    cuils_of,
)
from appliance.domain.vocab import PersonState, VouchedBy
from appliance.record.unit_of_work import Store

# Made once: each call that signs executes them.
_BY_ID: Final = select(person).where(person.c.id == bindparam("of"))
_SECRET: Final = select(signing_secret).where(
    signing_secret.c.person == bindparam("of")
)
_SECRET_LOCKED: Final = _SECRET.with_for_update()
_TEST: Final = VouchedBy.TEST.value


class PersonStore(Store):
    """Persons, integrators and signing secrets."""

    async def add(self, new: NewPerson) -> None:
        """Record a person with their secrets.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for a CUIL or e-mail in use.
        """
        await self._add_person(
            InvitedPerson(new.person, new.email_sealed, new.email_index, new.vouched_by)
        )
        await self._add_secrets(
            new.person.id, ChosenSecrets(new.login_phc, new.totp_sealed, 0, new.signing)
        )

    async def invite(self, new: InvitedPerson) -> None:
        """Record a person without secrets.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for a CUIL or e-mail in use.
        """
        await self._add_person(new)

    async def contact(self, person_id: PersonId) -> Contact | None:
        """How a person is reached."""
        row = (
            await self._connection.execute(
                select(person.c.email_sealed, person.c.vouched_by).where(
                    person.c.id == person_id
                )
            )
        ).one_or_none()
        if row is None:
            return None
        return Contact(row.email_sealed, VouchedBy(row.vouched_by))

    async def enrol(self, person_id: PersonId, chosen: ChosenSecrets) -> bool:
        """Give an invited person their secrets; False if they have some."""
        moved = await self._connection.execute(
            update(person)
            .where(
                person.c.id == person_id, person.c.state == PersonState.INVITED.value
            )
            .values(state=PersonState.ACTIVE.value)
        )
        if moved.rowcount != 1:
            return False
        await self._add_secrets(person_id, chosen)
        return True

    async def move(
        self, person_id: PersonId, now: PersonState, then: PersonState
    ) -> bool:
        """Change a person's state; False if they were not in state `now`."""
        result = await self._connection.execute(
            update(person)
            .where(person.c.id == person_id, person.c.state == now.value)
            .values(state=then.value)
        )
        return result.rowcount == 1

    async def _add_person(self, new: InvitedPerson) -> None:
        """Record a person.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for a CUIL or e-mail in use.
        """
        who = new.person
        try:
            await self._connection.execute(
                insert(person).values(
                    id=who.id,
                    cuil=who.cuil,
                    name=who.name,
                    email_sealed=new.email_sealed,
                    email_index=new.email_index,
                    locale=who.locale,
                    state=who.state.value,
                    vouched_by=new.vouched_by.value,
                    created=self._clock.now(),
                )
            )
        except IntegrityError as exc:
            raise ApplianceError(
                ErrorCode.ALREADY_EXISTS, params={"field": "cuil / email"}
            ) from exc

    async def _add_secrets(self, person_id: PersonId, chosen: ChosenSecrets) -> None:
        await self._connection.execute(
            insert(login_secret).values(
                person=person_id,
                phc=chosen.login_phc,
                totp_sealed=chosen.totp_sealed,
                last_step=chosen.last_step,
            )
        )
        secret = chosen.signing
        await self._connection.execute(
            insert(signing_secret).values(
                person=person_id,
                salt=secret.salt,
                argon2=secret.argon2,
                pepper_version=secret.pepper_version,
                verifier_sha256=secret.verifier_sha256,
                counted=secret.counted,
                locked_at=secret.locked_at,
            )
        )

    async def forget_secrets(self, person_id: PersonId) -> None:
        """Delete what proves a person, who is to choose anew."""
        for table in (login_secret, signing_secret):
            await self._connection.execute(
                delete(table).where(table.c.person == person_id)
            )

    async def set_totp(self, person_id: PersonId, sealed: bytes) -> bool:
        """Set a TOTP seed in the place of the one before; False if there was none."""
        result = await self._connection.execute(
            update(login_secret)
            .where(login_secret.c.person == person_id)
            .values(totp_sealed=sealed, last_step=0)
        )
        return result.rowcount == 1

    async def get(self, person_id: PersonId) -> Person | None:
        """A person by id."""
        rows = await self._connection.execute(_BY_ID, {"of": person_id})
        return next(map(_person_of, rows), None)

    async def hold(self, person_id: PersonId) -> None:
        """Keep others from changing a person until this transaction ends.

        Whoever changes a person and rows of theirs locks the person first, then the
        signing secret, then the rest.
        """
        # Rows that refer to the person can be added: whoever adds one may have locked
        # other rows before.
        await self._connection.execute(
            select(person.c.id)
            .where(person.c.id == person_id)
            .with_for_update(key_share=True)
        )

    async def by_cuil(self, cuil: str) -> Person | None:
        """A person by the eleven digits."""
        return await self._one(person.c.cuil == cuil)

    async def by_dni(self, dni: str) -> list[Person]:
        """People whose CUIL has these eight digits: two of them at most."""
        # Each by the index of CUILs: of their middle there is none.
        return await self._those(person.c.cuil.in_(cuils_of(dni)), 2)

    async def by_email_index(self, indexes: Sequence[str]) -> Person | None:
        """A person by the HMAC of their e-mail address."""
        return await self._one(person.c.email_index.in_(indexes))

    async def sign_out(self, person_id: PersonId, at: datetime) -> None:
        """Say that what a person has proven until now counts no more."""
        await self._connection.execute(
            update(person).where(person.c.id == person_id).values(signed_out=at)
        )

    async def _one(self, condition: Any) -> Person | None:
        return next(iter(await self._those(condition, 1)), None)

    async def _those(self, condition: Any, limit: int) -> list[Person]:
        rows = await self._connection.execute(
            select(person).where(condition).order_by(person.c.id).limit(limit)
        )
        return [_person_of(row) for row in rows]

    async def add_integrator(self, new: Integrator) -> None:
        """Record an integrator.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for a code in use.
        """
        try:
            await self._connection.execute(
                insert(integrator).values(
                    id=new.id, code=new.code, name=new.name, created=self._clock.now()
                )
            )
        except IntegrityError as exc:
            raise ApplianceError(
                ErrorCode.ALREADY_EXISTS, params={"field": "code"}
            ) from exc

    async def integrator(self, code: str) -> Integrator | None:
        """An integrator by code."""
        row = (
            await self._connection.execute(
                select(integrator).where(integrator.c.code == code)
            )
        ).one_or_none()
        if row is None:
            return None
        return Integrator(IntegratorId(row.id), row.code, row.name)

    async def signing_secret(
        self, person_id: PersonId, *, lock: bool = False
    ) -> SigningSecret | None:
        """A person's signing secret; `lock` keeps others from changing it."""
        query = _SECRET_LOCKED if lock else _SECRET
        rows = await self._connection.execute(query, {"of": person_id})
        row = rows.one_or_none()
        if row is None:
            return None
        return SigningSecret(
            row.salt,
            row.argon2,
            row.pepper_version,
            row.verifier_sha256,
            row.counted,
            row.locked_at,
            row.cleared,
        )

    async def set_counted(
        self, person_id: PersonId, counted: int, locked_at: Any
    ) -> None:
        """Set the count of wrong passwords and the lock."""
        await self._connection.execute(
            update(signing_secret)
            .where(signing_secret.c.person == person_id)
            .values(counted=counted, locked_at=locked_at)
        )

    async def clear_counted(self, person_id: PersonId, proof: str) -> None:
        """Set the count of wrong passwords to nothing, and lift the lock.

        Args:
            person_id: whose.
            proof: as `CountClearings.prove` makes it: without one, fronts that saw
                the wrong passwords go on counting.
        """
        await self._connection.execute(
            update(signing_secret)
            .where(signing_secret.c.person == person_id)
            .values(counted=0, locked_at=None, cleared=proof)
        )

    async def replace_signing_secret(
        self, person_id: PersonId, secret: SigningSecret
    ) -> None:
        """Keep another signing password; the count and the lock stay."""
        await self._connection.execute(
            update(signing_secret)
            .where(signing_secret.c.person == person_id)
            .values(
                salt=secret.salt,
                argon2=secret.argon2,
                pepper_version=secret.pepper_version,
                verifier_sha256=secret.verifier_sha256,
            )
        )


def _person_of(row: Row[Any]) -> Person:
    """Read a row of the table."""
    return Person(
        PersonId(row.id),
        row.cuil,
        row.name,
        PersonState(row.state),
        row.locale,
        row.signed_out,
        row.vouched_by == _TEST,
    )
