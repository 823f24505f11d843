"""Whose turn it is in a process of several signers.

The requests of a `SigningProcess` are signed one after the other, each on what the
one before made: published, inspected again and stored as a document of its own.
The inspection comes before the transaction that publishes, which then gives the
turn on as well. Where the sandbox could not be asked, or would not take the file,
the publication stands by itself, and `SigningOrder.give_on` does it later.

What ends without a signature ends those that wait for it: `vencida` after
`vencida`, else `cancelada`.

Source: design §2 "SigningProcess"; decisions "several signers", "estados".
"""

from typing import Final

import structlog

from appliance.core.unit_of_work import Database, Transaction
from appliance.documents.document_store import DocumentStore
from appliance.domain.audit import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.documents import Inspection
from appliance.domain.errors import ApplianceError, DocumentRefusedError
from appliance.domain.ids import DocumentId, RequestId, new_id
from appliance.domain.requests.new_request import StoredDocument
from appliance.domain.requests.request import RequestView, SignedDocumentView
from appliance.domain.vocab import EventKind, RequestState
from appliance.requests.inspection import Inspections
from appliance.requests.request_store import RequestStore

_log = structlog.get_logger(__name__)
_BATCH: Final = 20
PROCESS_ENDED: Final = "PROCESS_ENDED"
"""Reason of a request that ended because one before it did."""
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
) -> RequestId | None:
    """Give the turn to who signs next, on what the one before made.

    Args:
        transaction: of the transaction that publishes it, or of a later one.
        signed: the newest version of the predecessor's signed document.
        inspection: of those bytes.
        clock: the time.
        actor: for the audit.

    Returns:
        Whose turn it is, or None when nobody waits any more.
    """
    before = await RequestStore(transaction).get(signed.request)
    if before is None:
        return None
    following = await RequestStore(transaction).lock_later(before.process, before.seq)
    if not following or following[0].state is not RequestState.WAITING:
        return None
    new = StoredDocument(
        DocumentId(new_id()), signed.integrator, signed.sha256, inspection
    )
    document = await DocumentStore(transaction).add(new, clock.now())
    number = following[0].id
    await RequestStore(transaction).take_turn(number, document.id)
    transaction.audit.add(
        AuditEvent(
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
    )
    return number


async def end_rest(
    transaction: Transaction,
    ended: RequestId,
    then: RequestState,
    actor: str,
    reason: str = PROCESS_ENDED,
) -> int:
    """End those that wait for one that will not be signed; how many.

    Args:
        transaction: of the transaction that ends it.
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
    for view in await RequestStore(transaction).lock_later(before.process, before.seq):
        if view.state is not RequestState.WAITING:
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
            stalled = await RequestStore(transaction).stalled(self._looked_at, _BATCH)
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
            given = await hand_over(
                transaction, signed, inspection, self._clock, "system"
            )
        return int(given is not None)


async def _before(transaction: Transaction, number: RequestId) -> RequestView | None:
    """The request whose end one waits for."""
    view = await RequestStore(transaction).get(number)
    if view is None:
        return None
    for other in await RequestStore(transaction).of_process(view.process):
        if other.seq == view.seq - 1:
            return other
    return None
