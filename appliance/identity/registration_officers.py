"""What a registration officer does to people: lift a lock, disable, enable.

Each says who did it and what stood before and after. A lock is lifted only
after the officer's own code (decisions "attempts"), which is the console's
business to ask for; here it stands in the audit that one was given.
"""

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.vocab import EventKind, PersonState
from appliance.identity.end_access import end_access
from appliance.keys.count_clearings import CountClearings
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction


class RegistrationOfficers:
    """The use cases of registration officers around people.

    Args:
        store: the record.
        clock: the time.
        clearings: proves to fronts that it was an officer who lifted a lock.
    """

    def __init__(
        self, store: Database, clock: Clock, clearings: CountClearings
    ) -> None:
        self._store = store
        self._clock = clock
        self._clearings = clearings

    async def unlock(self, actor: str, person: PersonId) -> None:
        """Lift the lock of a person's signing password; the count begins anew.

        Args:
            actor: the officer, whose code was checked just before.
            person: whose.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`; `NOT_LOCKED`.

        Source: decisions "attempts".
        """
        async with self._store.write() as transaction:
            secret = await PersonStore(transaction).signing_secret(person, lock=True)
            if secret is None:
                raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
            if secret.locked_at is None:
                raise ApplianceError(ErrorCode.NOT_LOCKED)
            now = self._clock.now()
            proof = self._clearings.prove(person, secret.salt, now)
            await PersonStore(transaction).clear_counted(person, proof)
            transaction.audit.add(
                AuditEvent(
                    EventKind.PERSON_UNLOCKED,
                    actor,
                    detail={
                        "person": person,
                        "factors": ["otp"],
                        "before": {"counted": secret.counted, "locked": True},
                        "after": {"counted": 0, "locked": False},
                    },
                )
            )

    async def disable(self, actor: str, person: PersonId) -> None:
        """Let a person neither sign in nor sign until enabled again.

        What they have open ends now: sessions of frames, access tokens, links.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`; `PERSON_STATE` for one who is
                not active.
        """
        await self._move(actor, person, PersonState.ACTIVE, PersonState.DISABLED)

    async def enable(self, actor: str, person: PersonId) -> None:
        """Undo `disable`.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`; `PERSON_STATE` for one who is
                not disabled.
        """
        await self._move(actor, person, PersonState.DISABLED, PersonState.ACTIVE)

    async def _move(
        self, actor: str, person: PersonId, now: PersonState, then: PersonState
    ) -> None:
        async with self._store.write() as transaction:
            if not await PersonStore(transaction).move(person, now, then):
                raise await _why_not(transaction, person)
            ended: dict[str, object] = {}
            if then is PersonState.DISABLED:
                ended = await end_access(transaction, person, self._clock.now())
            kind = (
                EventKind.PERSON_DISABLED
                if then is PersonState.DISABLED
                else EventKind.PERSON_ENABLED
            )
            transaction.audit.add(
                AuditEvent(
                    kind,
                    actor,
                    detail={
                        "person": person,
                        "before": {"state": now.value},
                        "after": {"state": then.value},
                        **ended,
                    },
                )
            )


async def _why_not(transaction: Transaction, person: PersonId) -> ApplianceError:
    found = await PersonStore(transaction).get(person)
    if found is None:
        return ApplianceError(ErrorCode.PERSON_NOT_FOUND)
    return ApplianceError(ErrorCode.PERSON_STATE, params={"state": found.state.value})
