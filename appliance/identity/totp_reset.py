"""A person's lost telephone: new codes for sign-in, with key and passwords kept."""

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.people.identity import Person
from appliance.domain.ports import Sealer
from appliance.domain.vocab import EventKind, PersonState
from appliance.identity import totp
from appliance.identity.end_access import end_access
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction


class PersonFactor:
    """The use case of a registration officer.

    Args:
        store: the record.
        sealer: seals TOTP seeds (`login_secret`, person's id, `totp_sealed`), and
            opens e-mail addresses.
        clock: the time.
        installation: its name, as authenticator apps show it.
    """

    def __init__(
        self, store: Database, sealer: Sealer, clock: Clock, installation: str
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock
        self._installation = installation

    async def reset(
        self, actor: str, person: PersonId, witness: str | None = None
    ) -> str:
        """Give a person a new TOTP seed; all that they have open ends.

        Args:
            actor: the officer, whose code was checked just before.
            person: active, and enrolled.
            witness: the second officer, where two are needed.

        Returns:
            The TOTP enrolment, `otpauth://…`, shown once.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`; `PERSON_STATE` for one who is not
                active.

        Source: decisions "a known person".
        """
        seed = totp.new_seed()
        sealed = self._sealer.seal(
            seed.encode(), table="login_secret", row=person, column="totp_sealed"
        )
        async with self._store.write() as transaction:
            await PersonStore(transaction).hold(person)
            found = await PersonStore(transaction).get(person)
            if found is None:
                raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
            name = await self._account(transaction, found)
            is_set = await PersonStore(transaction).set_totp(person, sealed)
            if found.state is not PersonState.ACTIVE or not is_set:
                raise ApplianceError(
                    ErrorCode.PERSON_STATE, params={"state": found.state.value}
                )
            ended = await end_access(transaction, person, self._clock.now())
            transaction.audit.add(
                AuditEvent(
                    EventKind.PERSON_TOTP_SET,
                    actor,
                    detail={
                        "person": person,
                        **ended,
                        **({"witness": witness} if witness else {}),
                    },
                )
            )
        return totp.provisioning_uri(seed, name, self._installation)

    async def _account(self, transaction: Transaction, person: Person) -> str:
        """Return the entry's name in the app: as at enrolment, for the same account."""
        contact = await PersonStore(transaction).contact(person.id)
        if contact is None:
            return person.name
        return self._sealer.open(
            contact.email_sealed, table="person", row=person.id, column="email_sealed"
        ).decode()
