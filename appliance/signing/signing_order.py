"""Whose turn it is in a process of several signers.

The requests of a `SigningProcess` are signed one after the other, each on what the
one before made: published, inspected again and stored as a document of its own.
The inspection comes before the transaction that publishes, which then gives the
turn on as well. Where the sandbox could not be asked, or would not take the file,
the publication stands by itself, and `SigningOrder.give_on` does it later.

Several may have the same turn: any of them signs, none while another of them is being
signed, and the others go on with what that one made. The next turn comes once all have.

What ends without a signature ends those that wait for it, and the others of its turn:
`vencida` after `vencida`, else `cancelada`.

Source: design §2 "SigningProcess"; decisions "several signers", "estados".
"""

from typing import Final

import structlog

from appliance.documents.document_store import DocumentStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.documents.inspected import Inspection
from appliance.domain.errors import ApplianceError, DocumentRefusedError
from appliance.domain.ids import DocumentId, RequestId, new_id
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.process import in_signing_order
from appliance.domain.requests.request import (
    UNFINISHED,
    RequestView,
    SignedDocumentView,
)
from appliance.domain.vocab import EventKind, RequestState
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.inspection import Inspections
from appliance.requests.request_store import RequestStore
from appliance.requests.turn_store import TurnStore

_log = structlog.get_logger(__name__)
_BATCH: Final = 20
PROCESS_ENDED: Final = "PROCESS_ENDED"
"""Reason of a request that ended because one before it did."""
_STARTABLE: Final = frozenset({RequestState.WAITING, RequestState.PENDING})
_KINDS: Final = {
    RequestState.CANCELLED: EventKind.REQUEST_CANCELLED,
    RequestState.EXPIRED: EventKind.REQUEST_EXPIRED,
}


async def hand_over(
    transaction: Transaction,
    signed: SignedDocumentView,
    inspection: Inspection,
    clock: Clock,
    actor: str,
) -> int:
    """Give what one made to who signs next: the others of its turn, or the next turn.

    Args:
        transaction: of the transaction that publishes it, which holds the turn; or of
            a later one.
        signed: the newest version of the predecessor's signed document.
        inspection: of those bytes.
        clock: the time.
        actor: for the audit.

    Returns:
        To how many.
    """
    before = await RequestStore(transaction).get(signed.request)
    if before is None:
        return 0
    rest = await TurnStore(transaction).lock_rest(before)
    beside = [view for view in rest if view.turn_number == before.turn_number]
    # Whoever signs a copy next is told so, too.
    new = StoredDocument(
        DocumentId(new_id()),
        signed.integrator,
        signed.sha256,
        inspection,
        before.repair,
    )
    unsigned = [view for view in beside if view.state is not RequestState.SIGNED]
    if unsigned:
        # Each signature makes it longer: nobody goes back to an earlier one.
        moved = [
            view.id
            for view in unsigned
            if view.state is RequestState.PENDING
            and view.inspection.size_bytes < inspection.size_bytes
        ]
        if moved:
            document = await DocumentStore(transaction).add(new, clock.now())
            await TurnStore(transaction).move_on(moved, document.id)
        return len(moved)
    later = [view for view in rest if view.turn_number > before.turn_number]
    turn = min((view.turn_number for view in later), default=0)
    following = [
        view.id
        for view in later
        if view.turn_number == turn and view.state is RequestState.WAITING
    ]
    if following:
        document = await DocumentStore(transaction).add(new, clock.now())
        await TurnStore(transaction).take(following, document.id)
    for number in following:
        transaction.audit.add(_turn(number, signed, inspection, actor))
    return len(following)


def _turn(
    number: RequestId, signed: SignedDocumentView, inspection: Inspection, actor: str
) -> AuditEvent:
    """That it is somebody's turn, on what was signed before."""
    return AuditEvent(
        EventKind.REQUEST_TURN,
        actor,
        integrator=signed.integrator,
        request=number,
        detail={
            "predecessor": signed.request,
            "documentSha256": signed.sha256,
            "signatures": inspection.signatures,
            "findings": [kind.value for kind in inspection.findings],
        },
    )


async def end_rest(
    transaction: Transaction,
    ended: RequestId,
    then: RequestState,
    actor: str,
    reason: str = PROCESS_ENDED,
) -> int:
    """End those that wait for one that will not be signed, and its turn; how many.

    Who is being signed at this moment goes on.

    Args:
        transaction: of the transaction that ends it, and holds its turn.
        ended: which.
        then: what became of it.
        actor: for the audit.
        reason: why the rest ends.
    """
    before = await RequestStore(transaction).get(ended)
    if before is None or not before.followed:
        return 0
    rest = RequestState.CANCELLED
    if then is RequestState.EXPIRED:
        rest = then
    moved = 0
    for view in await TurnStore(transaction).lock_rest(before):
        if view.state not in _STARTABLE:
            continue
        await RequestStore(transaction).move(view.id, view.state, rest, reason)
        transaction.audit.add(
            AuditEvent(
                _KINDS[rest],
                actor,
                integrator=view.integrator,
                request=view.id,
                detail={"predecessor": ended, "state": then.value, "reason": reason},
            )
        )
        moved += 1
    return moved


class SigningOrder:
    """Gives turns on: what workers ask before they publish, and what heals by itself.

    Args:
        store: the record.
        inspections: the sandbox's; nobody else opens what somebody else signed.
        clock: the time.
    """

    def __init__(self, store: Database, inspections: Inspections, clock: Clock) -> None:
        self._store = store
        self._inspections = inspections
        self._clock = clock
        self._looked_at = RequestId(0)

    async def inspect_for_next(
        self, view: RequestView, *parts: bytes
    ) -> Inspection | None:
        """What the next signer's document will be described as.

        Args:
            view: the request that is about to be published; somebody signs after it.
            parts: its signed document, one after the other.

        Returns:
            None when it could not be told now: publishing goes on, and `give_on`
            comes back to it.
        """
        try:
            return await self._inspections.of(*parts)
        except ApplianceError as exc:
            _log.warning("turn.not_inspected", request=view.id, code=exc.code.value)
            return None

    async def give_on(self) -> int:
        """Give on, or end, turns that were left behind, some at a time; how many.

        Each call goes on after the one before: turns that cannot be given now keep
        nobody from theirs.
        """
        async with self._store.read() as transaction:
            stalled = await TurnStore(transaction).stalled(self._looked_at, _BATCH)
        is_last = len(stalled) < _BATCH
        self._looked_at = RequestId(0) if is_last else stalled[-1]
        given = 0
        for number in stalled:
            try:
                given += await self._give_on(number)
            except ApplianceError as exc:
                _log.warning("turn.not_given", request=number, code=exc.code.value)
        return given

    async def _give_on(self, number: RequestId) -> int:
        async with self._store.read() as transaction:
            before = await _before(transaction, number)
            if before is None:
                return 0
            signed = await DocumentStore(transaction).signed(before.id)
        if signed is None:
            async with self._store.write() as transaction:
                return await end_rest(transaction, before.id, before.state, "system")
        try:
            inspection = await self._inspections.of_stored(
                signed.integrator, signed.sha256
            )
        except DocumentRefusedError as exc:
            _log.warning("turn.refused", request=number, code=exc.code.value)
            async with self._store.write() as transaction:
                return await end_rest(
                    transaction, before.id, before.state, "system", exc.code.value
                )
        async with self._store.write() as transaction:
            newest = await DocumentStore(transaction).signed(before.id)
            if newest is None or newest.sha256 != signed.sha256:
                return 0  # a newer version came meanwhile; the next look takes it
            return await hand_over(
                transaction, signed, inspection, self._clock, "system"
            )


async def _before(transaction: Transaction, number: RequestId) -> RequestView | None:
    """Whose end one waits for: who will never sign, else who signed last before it."""
    view = await RequestStore(transaction).get(number)
    if view is None or view.state not in _STARTABLE:
        return None
    over = [
        other
        for other in await RequestStore(transaction).of_process(view.process)
        if other.turn_number <= view.turn_number and other.state not in UNFINISHED
    ]
    for other in over:
        if other.state is not RequestState.SIGNED:
            return other
    if view.state is RequestState.PENDING and not view.held:
        return None  # given on meanwhile, with another one of its turn
    return in_signing_order(over)[-1] if over else None
