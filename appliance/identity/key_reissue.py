"""A forgotten password: the key is revoked, and its owner enrols anew.

Nobody can open a key without its owner's signing password, so a new one means a
new key. Who starts it sees no secret: the person chooses all of them again,
behind a link.

Source: design §4 "Password"; decisions "a known person".
"""

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.integrators.integrators import Invitation
from appliance.domain.vocab import (
    EventKind,
    PersonState,
    RevocationReason,
)
from appliance.identity.end_access import end_access
from appliance.identity.invitations import Invitations
from appliance.people.person_store import PersonStore
from appliance.pki.revocation import Revocations
from appliance.record.unit_of_work import Database


class Reissue:
    """The use case of a registration officer.

    Args:
        store: the record.
        invitations: makes links.
        revocations: revokes.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        invitations: Invitations,
        revocations: Revocations,
        clock: Clock,
    ) -> None:
        self._store = store
        self._invitations = invitations
        self._revocations = revocations
        self._clock = clock

    async def reissue(
        self, actor: str, person: PersonId, witness: str | None = None
    ) -> Invitation:
        """Revoke what a person has, forget their secrets, and make them a link.

        Args:
            actor: the officer, who answers for the identity once more.
            person: active.
            witness: the second officer, where two are needed.

        Returns:
            The link, shown once.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`; `PERSON_STATE` for one who is not
                active.
        """
        async with self._store.write() as transaction:
            found = await PersonStore(transaction).get(person)
            contact = await PersonStore(transaction).contact(person)
            if found is None or contact is None:
                raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
            if not await PersonStore(transaction).move(
                person, PersonState.ACTIVE, PersonState.INVITED
            ):
                raise ApplianceError(
                    ErrorCode.PERSON_STATE, params={"state": found.state.value}
                )
            # Before the keys, as whoever signs or changes the password locks them.
            await PersonStore(transaction).signing_secret(person, lock=True)
            revoked = await self._revocations.submit_all(
                transaction, person, RevocationReason.SUPERSEDED, actor
            )
            await PersonStore(transaction).forget_secrets(person)
            ended = await end_access(transaction, person, self._clock.now())
            transaction.audit.add(
                AuditEvent(
                    EventKind.PERSON_REISSUED,
                    actor,
                    detail={
                        "person": person,
                        "witness": witness,
                        "before": {
                            "state": PersonState.ACTIVE.value,
                            "credentials": revoked,
                        },
                        "after": {
                            "state": PersonState.INVITED.value,
                            "credentials": [],
                        },
                        **ended,
                    },
                )
            )
            return await self._invitations.link(
                transaction, actor, person, contact.vouched_by
            )
