"""Attempts at the signing password in SQL."""

from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, delete, func, insert, select, update

from appliance.database.tables import attempt_slot, credential
from appliance.domain.ids import CredentialId, PersonId, RequestId, new_id
from appliance.domain.people.identity import LockedKey, credential_aad
from appliance.domain.vocab import SlotOutcome
from appliance.keys.credential_store import OVER
from appliance.record.unit_of_work import Store

# Made once: each call that signs executes them.
_RUNNING: Final = (
    select(func.count())
    .select_from(attempt_slot)
    .where(
        attempt_slot.c.person == bindparam("of"),
        attempt_slot.c.outcome == SlotOutcome.RUNNING.value,
        attempt_slot.c.at > bindparam("since"),
    )
)
_TAKE: Final = insert(attempt_slot)
_KEYS: Final = (
    select(
        credential.c.id, credential.c.key_version, credential.c.spki, credential.c.outer
    )
    .where(credential.c.person == bindparam("of"), credential.c.state.not_in(OVER))
    .order_by(credential.c.id)
)
_CLOSE: Final = (
    update(attempt_slot)
    .where(attempt_slot.c.id == bindparam("slot"))
    .values(outcome=bindparam("then"), verifier_sha256=bindparam("typed"))
)


class PasswordAttemptStore(Store):
    """Attempts at the signing password."""

    async def running(self, person: PersonId, since: datetime) -> int:
        """How many checks of a person are running, begun after `since`."""
        given = {"of": person, "since": since}
        return (await self._connection.execute(_RUNNING, given)).scalar_one()

    async def take(
        self, person: PersonId, request: RequestId | None, at: datetime
    ) -> str:
        """Begin a check; gives the slot's id."""
        slot = new_id()
        await self._connection.execute(
            _TAKE,
            {
                "id": slot,
                "person": person,
                "request": request,
                "at": at,
                "outcome": SlotOutcome.RUNNING.value,
            },
        )
        return slot

    async def keys(self, person: PersonId, installation: str) -> tuple[LockedKey, ...]:
        """A person's keys that may sign, now or later.

        Args:
            person: whose.
            installation: the setting of that name.
        """
        rows = await self._connection.execute(_KEYS, {"of": person})
        found = []
        for row in rows:
            name = CredentialId(row.id)
            aad = credential_aad(installation, person, name, row.key_version, row.spki)
            found.append(LockedKey(name, row.outer, aad))
        return tuple(found)

    async def wrong_before(
        self,
        person: PersonId,
        request: RequestId | None,
        mark: str,
        since: datetime,
    ) -> bool:
        """Return whether this same wrong password was counted since then, here."""
        result = await self._connection.execute(
            select(attempt_slot.c.id)
            .where(
                attempt_slot.c.person == person,
                attempt_slot.c.request == request,
                attempt_slot.c.outcome == SlotOutcome.WRONG.value,
                attempt_slot.c.verifier_sha256 == mark,
                attempt_slot.c.at > since,
            )
            .limit(1)
        )
        return result.first() is not None

    async def close(self, slot: str, outcome: SlotOutcome, mark: str | None) -> None:
        """End a check; a mark is kept of wrong passwords alone.

        The column has its name from versions that kept the hash of the verifier there:
        whoever read the table could compare it with another person's.
        """
        given = {"slot": slot, "then": outcome.value, "typed": mark}
        await self._connection.execute(_CLOSE, given)

    async def sweep(self, before: datetime) -> int:
        """Forget slots older than that."""
        result = await self._connection.execute(
            delete(attempt_slot).where(attempt_slot.c.at < before)
        )
        return result.rowcount
