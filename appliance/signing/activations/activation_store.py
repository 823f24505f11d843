"""Activations, items and intents in SQL."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import case, insert, literal, or_, select

from appliance.core.database.tables import (
    activation,
    activation_seal,
    intent,
)
from appliance.core.database.types import Instant
from appliance.core.database.work_queue import fenced_update, release
from appliance.core.unit_of_work import Store
from appliance.domain.activation import Activation, Seal, SignatureValue
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import ActivationId, CredentialId, PersonId, RequestId
from appliance.domain.records.activations import (
    Claim,
    CodedItem,
    IntentRow,
    LeasePolicy,
    Overdue,
)
from appliance.domain.vocab import ActivationState, ItemState
from appliance.keys.sealed_key_store import add_seals, erase_seals, seals_of
from appliance.signing.activations.activation_document_store import (
    add_items,
    code_of_item,
    fail_item,
    item_by_code,
    item_states,
    key_item,
    publish_item,
)
from appliance.signing.activations.activation_queue import claim_next, next_claims
from appliance.signing.activations.activation_row_store import is_in
from appliance.signing.activations.intent_store import (
    complete_intent,
    intents_of,
    interrupt_intents,
    open_intent,
)
from appliance.signing.activations.overdue_activation_store import (
    end_overdue,
    find_overdue,
)

_A = ActivationState


class ActivationStore(Store):
    """Activations, items and intents."""

    async def add(self, new: Activation, seals: Collection[Seal]) -> None:
        """Record an activation, waiting to be claimed, and its unlock key's seals."""
        await self._connection.execute(
            insert(activation).values(
                id=new.id,
                person=new.person,
                credential=new.credential,
                state=_A.WAITING.value,
                factors=list(new.factors),
                created=new.created,
                claim_by=new.claim_by,
                fence=0,
                progress=0,
                reason="",
            )
        )
        await add_items(self._connection, new.id, new.documents)
        await add_seals(self._connection, activation_seal, new.id, seals)

    async def state(self, activation_id: ActivationId) -> tuple[ActivationState, str]:
        """State and reason of an activation.

        Raises:
            ApplianceError: `INTERNAL` if there is none.
        """
        row = (
            await self._connection.execute(
                select(activation.c.state, activation.c.reason).where(
                    activation.c.id == activation_id
                )
            )
        ).one_or_none()
        if row is None:
            raise ApplianceError(ErrorCode.INTERNAL)
        return _A(row.state), row.reason

    async def by_code(self, code: str) -> CodedItem | None:
        """The published signature with a verification code."""
        return await item_by_code(self._connection, code)

    async def coded(self, request: RequestId) -> tuple[str | None, datetime] | None:
        """Verification code of a published signature, if it has one, and its time."""
        return await code_of_item(self._connection, request)

    async def keying(self, person: PersonId) -> bool:
        """Whether an activation of a person is still to use their key."""
        query = (
            select(activation.c.id)
            .where(activation.c.person == person, is_in(_A.WAITING) | is_in(_A.KEYING))
            .limit(1)
        )
        return (await self._connection.execute(query)).first() is not None

    async def seals(self, activation_id: ActivationId) -> list[Seal]:
        """What stands sealed for an activation, by host."""
        return await seals_of(self._connection, activation_seal, activation_id)

    async def unseal(self, claim: Claim) -> int | None:
        """Erase the claim's seal, which cannot be opened; how many others are left."""
        if claim.seal is None or not await self._fenced(claim, {"fence": claim.fence}):
            return None
        await erase_seals(self._connection, activation_seal, claim.id, claim.seal.host)
        return len(await self.seals(claim.id))

    async def next_claims(
        self,
        at: datetime,
        policy: LeasePolicy,
        *,
        single: bool = False,
        without: Collection[PersonId] = (),
    ) -> int | None:
        """How often what `claim_next` would take was claimed without a result."""
        return await next_claims(
            self._connection, at, policy, single=single, without=without
        )

    async def claim_next(
        self,
        owner: str,
        at: datetime,
        policy: LeasePolicy,
        *,
        single: bool = False,
        without: Collection[PersonId] = (),
    ) -> Claim | None:
        """Take an activation that nobody has in hand."""
        return await claim_next(
            self._connection, owner, at, policy, single=single, without=without
        )

    async def renew(self, claim: Claim, until: datetime) -> bool:
        """Prolong the lease, to the end of its phase at the most.

        A worker that hangs renews on; past its phase the reconciler must find
        the activation free. One that has ended stays free, though its worker
        asked in time and waited for the database. False when another claim came
        since.
        """
        wanted = literal(until, Instant())
        within = case(
            (
                or_(is_in(_A.DONE), is_in(_A.EXPIRED), is_in(_A.FAILED)),
                activation.c.lease_until,
            ),
            (
                is_in(_A.KEYING) & (activation.c.key_until < wanted),
                activation.c.key_until,
            ),
            (
                is_in(_A.FINISHING) & (activation.c.finish_until < wanted),
                activation.c.finish_until,
            ),
            else_=wanted,
        )
        return await self._fenced(claim, {"lease_until": within})

    async def release_of(self, owner_prefix: str, at: datetime) -> int:
        """End the leases of a dead process; how many there were."""
        return await release(self._connection, activation, owner_prefix, at)

    async def drop(self, claim: Claim, at: datetime) -> bool:
        """Give the activation back unfinished, to be claimed again."""
        return await self._let_go(claim, {"lease_until": at})

    async def put_off(
        self, claim: Claim, until: datetime, reason: str, *, counted: bool
    ) -> bool:
        """Give the activation back, to be claimed again only then, and say why."""
        values = {"lease_until": until, "reason": reason}
        if counted:
            return await self._fenced(claim, values)
        return await self._let_go(claim, values)

    async def hand_out(self, claim: Claim, at: datetime, reason: str) -> bool:
        """Give it to the role that has a network, and say for what."""
        # What that role found already tells more.
        known = case((activation.c.reason == "", reason), else_=activation.c.reason)
        values = {"lease_until": at, "outside": True, "reason": known}
        return await self._let_go(claim, values)

    async def interrupt_intents(self, claim: Claim, at: datetime) -> list[IntentRow]:
        """Close the open intents of earlier claims; gives those closed."""
        return await interrupt_intents(
            self._connection,
            (intent.c.activation == claim.id) & (intent.c.attempt < claim.fence),
            at,
        )

    async def interrupt_item(
        self, claim: Claim, seq: int, at: datetime
    ) -> list[IntentRow]:
        """Close the open intents of an item that is given up; gives those closed."""
        return await interrupt_intents(
            self._connection,
            (intent.c.activation == claim.id)
            & (intent.c.item == seq)
            & (intent.c.attempt <= claim.fence),
            at,
        )

    async def intend(self, claim: Claim, seq: int, digest: str, at: datetime) -> bool:
        """Record the exact digest about to be signed; False when fenced off."""
        if not await self._fenced(claim, {"fence": claim.fence}):
            return False
        await open_intent(self._connection, claim, seq, digest, at)
        return True

    async def keyed(
        self, claim: Claim, seq: int, made: SignatureValue, at: datetime
    ) -> bool:
        """Store a signature value and close its intent; False when fenced off."""
        if not await key_item(self._connection, claim, seq, made):
            return False
        await complete_intent(self._connection, claim, seq, at)
        return True

    async def item_done(self, claim: Claim, seq: int) -> bool:
        """An item is published; False when fenced off.

        What was kept to publish it is of no more use and goes.
        """
        return await publish_item(self._connection, claim, seq)

    async def item_failed(self, claim: Claim, seq: int, reason: str) -> bool:
        """An item cannot be signed; False when fenced off."""
        return await fail_item(self._connection, claim, seq, reason)

    async def settle(self, claim: Claim, at: datetime, reason: str = "") -> None:
        """Let the activation's state follow from its items'."""
        states = await item_states(self._connection, claim.id)
        if ItemState.WAITING in states:
            return
        await erase_seals(self._connection, activation_seal, claim.id)
        if ItemState.KEYED in states:
            await self._fenced(claim, {"state": _A.FINISHING.value})
            return
        signed = ItemState.DONE in states
        await self._fenced(
            claim,
            {
                "state": (_A.DONE if signed else _A.FAILED).value,
                "reason": reason,
                "lease_until": at,
            },
        )

    async def overdue(self, at: datetime, attempts: int) -> list[Overdue]:
        """Activations that nobody may go on with, and no lease holds; locked."""
        return await find_overdue(self._connection, at, attempts)

    async def end_overdue(
        self,
        activation_id: ActivationId,
        then: ActivationState,
        at: datetime,
        reason: str,
    ) -> list[IntentRow]:
        """End one of `overdue`, erase its seals; gives the intents still open."""
        return await end_overdue(self._connection, activation_id, then, at, reason)

    async def any_in_hand(self, credential: CredentialId) -> bool:
        """Whether a worker has an activation of that credential in hand."""
        query = (
            select(activation.c.id)
            .where(
                activation.c.credential == credential,
                or_(is_in(_A.KEYING), is_in(_A.FINISHING)),
            )
            .limit(1)
        )
        return (await self._connection.execute(query)).first() is not None

    async def intents(self, activation_id: ActivationId) -> list[IntentRow]:
        """All intents of an activation, oldest first."""
        return await intents_of(self._connection, activation_id)

    async def _let_go(self, claim: Claim, values: Mapping[str, object]) -> bool:
        """End a claim in good order: it killed nobody, and counts for nothing."""
        return await self._fenced(claim, {"progress": claim.fence, **values})

    async def _fenced(self, claim: Claim, values: Mapping[str, object]) -> bool:
        return await fenced_update(
            self._connection, activation, claim.id, claim.fence, values
        )
