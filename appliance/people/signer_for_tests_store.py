"""People that integrators' backends made up to try things, in SQL."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    exists,
    func,
    insert,
    select,
    tuple_,
    update,
)

from appliance.database.tables import person, test_signer
from appliance.domain.ids import IntegratorId, PersonId
from appliance.domain.people.identity import Person
from appliance.domain.vocab import PersonState, VouchedBy
from appliance.record.unit_of_work import Store, Transaction

_C: Final = test_signer.c
_ANY: Final[Select[Any]] = select(
    person.c.id,
    person.c.cuil,
    person.c.name,
    person.c.state,
    person.c.locale,
    person.c.signed_out,
    person.c.email_sealed,
    _C.password_sealed,
    _C.sign_password_sealed,
    _C.created,
).join(test_signer, _C.person == person.c.id)
_THERE: Final[Select[Any]] = _ANY.where(_C.removed.is_(None))


def is_made_up(who: ColumnElement[Any]) -> ColumnElement[bool]:
    """The condition that a column names a test signer.

    By who vouched for the person, which is written once, with them. A row of
    `test_signer` can be added later, of somebody real.

    Args:
        who: names a person.
    """
    return exists().where(
        person.c.id == who, person.c.vouched_by == VouchedBy.TEST.value
    )


@dataclass(frozen=True, slots=True)
class SignerForTests:
    """Somebody made up, and their secrets, sealed with the data key."""

    person: Person
    email_sealed: bytes = field(repr=False)
    password_sealed: bytes = field(repr=False)
    sign_password_sealed: bytes = field(repr=False)
    created: datetime


class SignerForTestsStore(Store):
    """People whom one integrator made up, and alone sees."""

    async def add(
        self,
        who: PersonId,
        whose: IntegratorId,
        password_sealed: bytes,
        sign_password_sealed: bytes,
    ) -> None:
        """Say whose a person is that was recorded just now, with their secrets."""
        await self._connection.execute(
            insert(test_signer).values(
                person=who,
                integrator=whose,
                password_sealed=password_sealed,
                sign_password_sealed=sign_password_sealed,
                created=self._clock.now(),
            )
        )

    async def count(self, whose: IntegratorId) -> int:
        """How many an integrator has."""
        query = select(func.count()).where(_C.integrator == whose, _C.removed.is_(None))
        return int((await self._connection.execute(query)).scalar_one())

    async def get(self, whose: IntegratorId, cuil: str) -> SignerForTests | None:
        """One of an integrator's."""
        query = _THERE.where(_C.integrator == whose, person.c.cuil == cuil)
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else _signer_of(row)

    async def page(
        self, whose: IntegratorId, before: tuple[datetime, str] | None, limit: int
    ) -> Sequence[SignerForTests]:
        """Those of an integrator, newest first.

        Args:
            whose: the integrator.
            before: time and id of the one that the page begins after; None: the first.
            limit: how many.
        """
        query = _THERE.where(_C.integrator == whose)
        if before is not None:
            query = query.where(tuple_(_C.created, _C.person) < before)
        query = query.order_by(_C.created.desc(), _C.person.desc()).limit(limit)
        return [_signer_of(row) for row in await self._connection.execute(query)]

    async def is_of(self, who: PersonId, whose: IntegratorId) -> bool:
        """Whether somebody is an integrator's, and was not removed."""
        # By name: not every role may see the columns that `*` stands for.
        found = select(_C.person).where(
            _C.person == who, _C.integrator == whose, _C.removed.is_(None)
        )
        return (await self._connection.execute(found)).first() is not None

    async def remove(self, who: PersonId, at: datetime) -> None:
        """Have somebody be seen no more."""
        await self._connection.execute(
            update(test_signer).where(_C.person == who).values(removed=at)
        )

    async def removed(
        self, who: PersonId, whose: IntegratorId
    ) -> SignerForTests | None:
        """Return one whom an integrator made up and removed; None for any other."""
        query = _ANY.where(
            _C.person == who, _C.integrator == whose, _C.removed.is_not(None)
        )
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else _signer_of(row)

    async def restore(self, who: PersonId) -> bool:
        """Have somebody who was removed be seen again; False if they are seen."""
        done = await self._connection.execute(
            update(test_signer)
            .where(_C.person == who, _C.removed.is_not(None))
            .values(removed=None)
        )
        return done.rowcount == 1

    async def active(self) -> list[PersonId]:
        """All, of whichever integrator, who could sign in."""
        rows = await self._connection.execute(
            select(_C.person)
            .join(person, _C.person == person.c.id)
            .where(
                person.c.state == PersonState.ACTIVE.value,
                person.c.vouched_by == VouchedBy.TEST.value,
            )
        )
        return [PersonId(row.person) for row in rows]


async def seen_by(
    transaction: Transaction, found: Person | None, whose: IntegratorId
) -> Person | None:
    """A person as an integrator sees them: of somebody else's made up ones, nobody.

    Args:
        transaction: the caller's.
        found: as the record has them.
        whose: the integrator that names them.
    """
    if found is None or not found.is_test:
        return found
    store = SignerForTestsStore(transaction)
    return found if await store.is_of(found.id, whose) else None


def _signer_of(row: Row[Any]) -> SignerForTests:
    return SignerForTests(
        Person(
            PersonId(row.id),
            row.cuil,
            row.name,
            PersonState(row.state),
            row.locale,
            row.signed_out,
            is_test=True,
        ),
        row.email_sealed,
        row.password_sealed,
        row.sign_password_sealed,
        row.created,
    )
