"""Activations, their documents and intents in SQL.

An intent is opened before the key is used, and ends in exactly one of `completada`
and `interrumpida`.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Row,
    and_,
    bindparam,
    case,
    delete,
    insert,
    literal,
    or_,
    select,
    update,
)

from appliance.database.tables import (
    activation,
    activation_item,
    activation_seal,
    intent,
    signature_request,
)
from appliance.database.types import Instant
from appliance.domain.appearance.details import PLAIN
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import ActivationId, CredentialId, PersonId, RequestId, new_id
from appliance.domain.signing.activation import (
    Activation,
    ActivationDocument,
    Claim,
    CodedItem,
    IntentRow,
    Overdue,
    Seal,
    SignatureValue,
)
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import (
    ActivationState,
    IntentState,
    ItemState,
    RequestState,
)
from appliance.keys.sealed_key_store import seals_of
from appliance.record.leased_queue import Leased, LeasedQueue
from appliance.signing.activations.activation_queue import (
    TRIES,
    documents_of,
    is_in,
)

_A = ActivationState
_SIGNATURES: Final = (
    select(
        activation_item.c.request,
        activation_item.c.code,
        activation_item.c.params,
        activation.c.person,
        intent.c.at,
    )
    .join(activation, activation.c.id == activation_item.c.activation)
    .join(
        intent,
        and_(
            intent.c.activation == activation_item.c.activation,
            intent.c.item == activation_item.c.seq,
            intent.c.state == IntentState.COMPLETED.value,
        ),
    )
    .where(activation_item.c.state == ItemState.DONE.value)
)
"""Published signatures: whose, of what, when their key was used."""
_KEYED: Final = (
    update(activation_item)
    .where(
        activation_item.c.activation == bindparam("of"),
        activation_item.c.seq == bindparam("at"),
    )
    .values(
        {
            name: bindparam(name)
            for name in (
                "state",
                "increment",
                "contents_at",
                "contents_length",
                "signed_attributes",
                "signature",
            )
        }
    )
)
"""Stores a signature, under the lock of its activation's fenced row."""
_STATES: Final = (
    select(activation_item.c.state)
    .where(activation_item.c.activation == bindparam("of"))
    .distinct()
)


class ActivationStore(LeasedQueue):
    """Activations, their documents and intents."""

    table, tries = activation, TRIES

    @classmethod
    def open(cls) -> ColumnElement[bool]:
        """Those that are not over."""
        return or_(is_in(_A.WAITING), is_in(_A.KEYING), is_in(_A.FINISHING))

    async def begin(self, new: Activation, seals: Collection[Seal]) -> int:
        """Record one activation; see `begin_all`."""
        return await self.begin_all([(new, seals)])

    async def begin_all(
        self, made: Collection[tuple[Activation, Collection[Seal]]]
    ) -> int:
        """Record activations, waiting to be claimed, and their unlock keys' seals.

        Their requests move `pendiente` → `en_proceso`; how many were `pendiente`.
        """
        await self._connection.execute(
            insert(activation),
            [
                {
                    "id": new.id,
                    "person": new.person,
                    "credential": new.credential,
                    "state": _A.WAITING.value,
                    "factors": list(new.factors),
                    "created": new.created,
                    "claim_by": new.claim_by,
                    "fence": 0,
                    "progress": 0,
                    "reason": "",
                    "profile": new.profile,
                }
                for new, _ in made
            ],
        )
        documents = [(new.id, each) for new, _ in made for each in new.documents]
        await self._connection.execute(
            insert(activation_item), [_item(*each) for each in documents]
        )
        sealed = [(new.id, seal) for new, seals in made for seal in seals]
        if sealed:
            await self._connection.execute(
                insert(activation_seal),
                [
                    {
                        "activation": owner,
                        "host": seal.host,
                        "epoch": seal.epoch,
                        "sealed": seal.sealed,
                    }
                    for owner, seal in sealed
                ],
            )
        owners = {document.request: owner for owner, document in documents}
        wanted = {document.request: document.params_sha256 for _, document in documents}
        moved = await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id.in_(wanted),
                signature_request.c.state == RequestState.PENDING.value,
            )
            .values(
                state=RequestState.IN_PROGRESS.value,
                reason="",
                params_sha256=case(wanted, value=signature_request.c.id),
                activation=case(owners, value=signature_request.c.id),
            )
        )
        return moved.rowcount

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
        query = _SIGNATURES.where(activation_item.c.code == code)
        row = (await self._connection.execute(query)).first()
        if row is None:
            return None
        field = SignParameters.from_wire(row.params).field
        return CodedItem(RequestId(row.request), PersonId(row.person), row.at, field)

    async def coded(
        self, requests: Collection[RequestId]
    ) -> dict[RequestId, tuple[str | None, datetime]]:
        """Return the verification code, if any, and the time of published signatures.

        Args:
            requests: of which those that are not signed are left out.
        """
        query = _SIGNATURES.where(activation_item.c.request.in_([*requests]))
        rows = await self._connection.execute(query)
        return {RequestId(row.request): (row.code, row.at) for row in rows}

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
        await self._connection.execute(
            delete(activation_seal).where(
                activation_seal.c.activation == claim.id,
                activation_seal.c.host == claim.seal.host,
            )
        )
        return len(await self.seals(claim.id))

    async def renew(self, claim: Leased, until: datetime) -> bool:
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

    async def drop(self, claim: Claim, at: datetime) -> bool:
        """Give the activation back unfinished, to be claimed again."""
        return await self._let_go(claim, {"lease_until": at})

    async def put_off(self, claim: Claim, until: datetime, reason: str) -> bool:
        """Give the activation back, to be claimed again only then, and say why."""
        return await self._let_go(claim, {"lease_until": until, "reason": reason})

    async def wait(
        self, claim: Claim, until: datetime, reason: str, *, is_left: bool = False
    ) -> bool:
        """The same, for what another role is to fetch.

        Args:
            claim: of the caller.
            until: when it may be claimed again.
            reason: told, should its time run out.
            is_left: whether chores of the version before may finish it instead.
        """
        # What that role found already tells more.
        known = case((activation.c.reason == "", reason), else_=activation.c.reason)
        values = {"lease_until": until, "reason": known, "outside": is_left}
        return await self._let_go(claim, values)

    async def interrupt_intents(self, claim: Claim, at: datetime) -> list[IntentRow]:
        """Close the open intents of earlier claims; gives those closed."""
        if claim.fence <= 1:
            return []
        return await self._interrupt(
            (intent.c.activation == claim.id) & (intent.c.attempt < claim.fence), at
        )

    async def interrupt_document(
        self, claim: Claim, seq: int, at: datetime
    ) -> list[IntentRow]:
        """Close the open intents of a document that is given up; gives those closed."""
        return await self._interrupt(
            (intent.c.activation == claim.id)
            & (intent.c.item == seq)
            & (intent.c.attempt <= claim.fence),
            at,
        )

    async def intend(
        self, claim: Claim, digests: Mapping[int, str], at: datetime
    ) -> bool:
        """Record the exact digests about to be signed; False when fenced off."""
        if not await self._fenced(claim, {"fence": claim.fence}):
            return False
        await self._connection.execute(
            insert(intent),
            [
                {
                    "id": new_id(),
                    "activation": claim.id,
                    "item": seq,
                    "attempt": claim.fence,
                    "digest": digest,
                    "state": IntentState.OPEN.value,
                    "at": at,
                }
                for seq, digest in digests.items()
            ],
        )
        return True

    async def record_signatures(
        self, claim: Claim, made: Mapping[int, SignatureValue], at: datetime
    ) -> bool:
        """Store signature values and close their intents; False when fenced off."""
        if not await self._fenced(claim, {"progress": claim.fence}):
            return False
        await self._connection.execute(
            _KEYED,
            [
                {
                    "of": claim.id,
                    "at": seq,
                    "state": ItemState.KEYED.value,
                    "increment": signature.increment,
                    "contents_at": signature.contents_at,
                    "contents_length": signature.contents_length,
                    "signed_attributes": signature.signed_attributes,
                    "signature": signature.value,
                }
                for seq, signature in made.items()
            ],
        )
        await self._connection.execute(
            update(intent)
            .where(
                intent.c.activation == claim.id,
                intent.c.item.in_(made),
                intent.c.attempt == claim.fence,
                intent.c.state == IntentState.OPEN.value,
            )
            .values(state=IntentState.COMPLETED.value, closed=at)
        )
        return True

    async def publish(self, claim: Claim, seqs: Collection[int]) -> bool:
        """Documents are published; False when fenced off.

        What was kept to publish them is of no more use and goes.
        """
        if not await self._fenced(claim, {"progress": claim.fence}):
            return False
        values = {
            "state": ItemState.DONE.value,
            "increment": None,
            "signed_attributes": None,
        }
        await self._change(claim, seqs, values)
        return True

    async def document_failed(self, claim: Claim, seq: int, reason: str) -> bool:
        """A document cannot be signed; False when fenced off."""
        if not await self._fenced(claim, {"progress": claim.fence}):
            return False
        values = {"state": ItemState.FAILED.value, "reason": reason}
        await self._change(claim, [seq], values)
        return True

    async def settle(
        self,
        claim: Claim,
        at: datetime,
        reason: str = "",
        finish: timedelta | None = None,
    ) -> None:
        """Let the activation's state follow from its documents'.

        Args:
            claim: of the caller.
            at: the time.
            reason: of an end without a signature.
            finish: length of the finish phase, which begins now if keys are used for
                all documents; None: its end stays.
        """
        found = await self._connection.execute(_STATES, {"of": claim.id})
        states = {ItemState(word) for word in found.scalars()}
        if ItemState.WAITING in states:
            return
        await self._connection.execute(
            delete(activation_seal).where(activation_seal.c.activation == claim.id)
        )
        if ItemState.KEYED in states:
            until: dict[str, object] = (
                {} if finish is None else {"finish_until": at + finish}
            )
            await self._fenced(claim, {"state": _A.FINISHING.value, **until})
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
        late = or_(
            is_in(ActivationState.WAITING) & (activation.c.claim_by <= at),
            is_in(ActivationState.KEYING) & (activation.c.key_until <= at),
            is_in(ActivationState.KEYING) & self.quarantined(attempts),
            is_in(ActivationState.FINISHING) & (activation.c.finish_until <= at),
        )
        rows = await self._connection.execute(
            select(
                activation.c.id,
                activation.c.state,
                TRIES.label("tries"),
                activation.c.reason,
            )
            .where(self.unheld(at), late)
            .with_for_update(skip_locked=True)
        )
        return [
            Overdue(
                ActivationId(row.id),
                ActivationState(row.state),
                row.tries,
                await documents_of(self._connection, row.id),
                row.reason,
            )
            for row in rows.all()
        ]

    async def end_overdue(
        self,
        activation_id: ActivationId,
        then: ActivationState,
        at: datetime,
        reason: str,
    ) -> list[IntentRow]:
        """End one of `overdue`, erase its seals; gives the intents still open.

        What is not to be finished any more is failed with it.
        """
        over = {ItemState.WAITING.value}
        if then is not ActivationState.FINISHING:
            over.add(ItemState.KEYED.value)
        await self._fence_off(
            activation.c.id == activation_id,
            {"state": then.value, "reason": reason, "lease_until": at},
        )
        await self._connection.execute(
            delete(activation_seal).where(activation_seal.c.activation == activation_id)
        )
        await self._connection.execute(
            update(activation_item)
            .where(
                activation_item.c.activation == activation_id,
                activation_item.c.state.in_(over),
            )
            .values(state=ItemState.FAILED.value, reason=reason)
        )
        return await self._interrupt(intent.c.activation == activation_id, at)

    async def any_open(self, credential: CredentialId) -> bool:
        """True if an activation of that credential is not over.

        One that waits counts: its seal is bound to the credential's certificate.
        """
        query = (
            select(activation.c.id)
            .where(activation.c.credential == credential, self.open())
            .limit(1)
        )
        return (await self._connection.execute(query)).first() is not None

    async def intents(self, activation_id: ActivationId) -> list[IntentRow]:
        """All intents of an activation, oldest first."""
        rows = await self._connection.execute(
            select(intent)
            .where(intent.c.activation == activation_id)
            .order_by(intent.c.at, intent.c.item)
        )
        return [_intent(row) for row in rows]

    async def _interrupt(
        self, which: ColumnElement[bool], at: datetime
    ) -> list[IntentRow]:
        """Close open intents whose outcome nobody will know; gives those closed."""
        rows = await self._connection.execute(
            update(intent)
            .where(which, intent.c.state == IntentState.OPEN.value)
            .values(state=IntentState.INTERRUPTED.value, closed=at)
            .returning(intent)
        )
        return [_intent(row) for row in rows]

    async def _change(
        self, claim: Claim, seqs: Collection[int], values: Mapping[str, object]
    ) -> None:
        """Change documents, under the lock of their activation's fenced row."""
        await self._connection.execute(
            update(activation_item)
            .where(
                activation_item.c.activation == claim.id,
                activation_item.c.seq.in_(seqs),
            )
            .values(**values)
        )

    async def _let_go(self, claim: Claim, values: Mapping[str, object]) -> bool:
        """End a claim in good order: it killed nobody, and counts for nothing."""
        return await self._fenced(claim, {"progress": claim.fence, **values})


def _item(owner: ActivationId, document: ActivationDocument) -> dict[str, object]:
    """A document as it is recorded, waiting."""
    plain = document.details == PLAIN
    return {
        "activation": owner,
        "seq": document.seq,
        "request": document.request,
        "document_sha256": document.document_sha256,
        "params": document.params.to_wire(),
        "params_sha256": document.params_sha256,
        "state": ItemState.WAITING.value,
        "reason": "",
        "stamp": None if plain else document.details.to_json(),
        "code": document.code,
    }


def _intent(row: Row[Any]) -> IntentRow:
    return IntentRow(
        ActivationId(row.activation),
        row.item,
        row.attempt,
        row.digest,
        IntentState(row.state),
    )
