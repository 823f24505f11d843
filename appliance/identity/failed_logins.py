"""Accounts with too many wrong tries: seen by officers, and lifted by them.

A stranger with many addresses can keep an account at its ceiling, so that its owner
is let in from known addresses alone. Who answers for the account can forget the
tries, and say from where its owner comes.

Source: decisions "attempts"; `appliance.admission.login_throttle`.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from appliance.admission.known_addresses import remember_address
from appliance.admission.login_attempt_store import LoginAttemptStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import PersonId
from appliance.domain.people.identity import Person, typed_cuil
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.vocab import EventKind
from appliance.identity import console_login_attempts
from appliance.identity.login import account_indexes, email_indexes
from appliance.people.console_user_store import ConsoleUserStore
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction

_SHOWN: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class AttackedAccount:
    """An account at which a ceiling was reached in the last day."""

    last: datetime
    person: Person | None = None
    user: str | None = None
    """Name of the administrator, where it is no person."""


class FailedTries:
    """The use cases around them.

    Args:
        store: tries, people, administrators.
        lookup: indexes of accounts and addresses.
        sealer: opens e-mail addresses (`person`, its id, `email_sealed`).
        clock: the time.
    """

    def __init__(
        self, store: Database, lookup: LookupIndex, sealer: Sealer, clock: Clock
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._sealer = sealer
        self._clock = clock

    async def find(self, text: str) -> Person:
        """A person by CUIL or e-mail address.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            try:
                found = await PersonStore(transaction).by_cuil(typed_cuil(text))
            except FieldInvalidError:
                indexes = email_indexes(self._lookup, text)
                found = await PersonStore(transaction).by_email_index(indexes)
        if found is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        return found

    async def forget_person(
        self, actor: str, person: PersonId, address: str | None = None
    ) -> int:
        """Forget the wrong tries on a person's account; how many there were.

        Args:
            actor: for the audit.
            person: whose.
            address: from which the person is let in from now on.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`.
        """
        async with self._store.write() as transaction:
            found = await PersonStore(transaction).get(person)
            contact = await PersonStore(transaction).contact(person)
            if found is None or contact is None:
                raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
            email = self._sealer.open(
                contact.email_sealed, table="person", row=person, column="email_sealed"
            ).decode()
            indexes = account_indexes(self._lookup, found.cuil, email)
            tries = await LoginAttemptStore(transaction).forget(indexes, person)
            await self._let_in(transaction, person, address)
            transaction.audit.add(
                AuditEvent(
                    EventKind.PERSON_TRIES_FORGOTTEN,
                    actor,
                    detail={"person": person, **_told(tries, address)},
                )
            )
        return tries

    async def forget_user(
        self, actor: str, name: str, address: str | None = None
    ) -> int:
        """Forget the wrong tries on an administrator's account; how many there were.

        Args:
            actor: for the audit.
            name: of the administrator.
            address: from which they are let in from now on.

        Raises:
            ApplianceError: `CONSOLE_USER_NOT_FOUND`.
        """
        indexes = console_login_attempts.account_indexes(self._lookup, name)
        async with self._store.write() as transaction:
            secret = await ConsoleUserStore(transaction).by_name(name)
            if secret is None:
                raise ApplianceError(ErrorCode.CONSOLE_USER_NOT_FOUND)
            tries = await LoginAttemptStore(transaction).forget(indexes)
            await self._let_in(transaction, indexes[0], address)
            transaction.audit.add(
                AuditEvent(
                    EventKind.CONSOLE_USER_TRIES_FORGOTTEN,
                    actor,
                    detail={"user": secret.user.id, **_told(tries, address)},
                )
            )
        return tries

    async def attacked(self, most: int = 50) -> list[AttackedAccount]:
        """Accounts of somebody whose ceiling was reached in the last day.

        Args:
            most: how many are told, the latest first.
        """
        since = self._clock.now() - _SHOWN
        async with self._store.read() as transaction:
            names = {
                index: user.name
                for user in await ConsoleUserStore(transaction).users()
                for index in console_login_attempts.account_indexes(
                    self._lookup, user.name
                )
            }
            found: dict[str, AttackedAccount] = {}
            for one in await LoginAttemptStore(transaction).ceilings(
                since, list(names), most
            ):
                if one.person is not None:
                    person = await PersonStore(transaction).get(one.person)
                    found[one.person] = AttackedAccount(one.last, person=person)
                elif (name := names.get(one.account_index or "")) is not None:
                    # Under the lookup key of before, there may be another row.
                    found.setdefault(name, AttackedAccount(one.last, user=name))
        return list(found.values())

    async def attacked_person(self, person: PersonId) -> datetime | None:
        """When a person's ceiling was last reached; None for not in the last day."""
        since = self._clock.now() - _SHOWN
        async with self._store.read() as transaction:
            return await LoginAttemptStore(transaction).last_ceiling(since, (), person)

    async def attacked_user(self, name: str) -> datetime | None:
        """When an administrator's was; None for not in the last day."""
        accounts = console_login_attempts.account_indexes(self._lookup, name)
        since = self._clock.now() - _SHOWN
        async with self._store.read() as transaction:
            return await LoginAttemptStore(transaction).last_ceiling(since, accounts)

    async def _let_in(
        self, transaction: Transaction, subject: str, address: str | None
    ) -> None:
        if address is not None:
            await remember_address(
                transaction, self._lookup, subject, address, self._clock.now()
            )


def _told(tries: int, address: str | None) -> dict[str, object]:
    """What the audit keeps of it: no address stands there."""
    return {"tries": tries, **({} if address is None else {"knownAddress": True})}
