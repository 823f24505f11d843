"""What becomes of a document that a worker has in hand: published, or given up.

Within the caller's transaction, and fenced: False, and the caller changes nothing
more, when another worker has claimed since.

Source: design §3; decisions "estados".
"""

from collections.abc import Sequence
from datetime import datetime

from appliance.core.unit_of_work import Transaction
from appliance.documents.document_store import DocumentRowStore
from appliance.domain.activation import ActivationDocument
from appliance.domain.clock import Clock
from appliance.domain.documents import Inspection
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.records.activations import Claim
from appliance.domain.requests.levels import Upkeep
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.vocab import EventKind, RequestState
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.audit_events import item_event, key_interrupted
from appliance.signing.level_maintenance_store import LevelMaintenanceStore
from appliance.signing.request_store import RequestStore
from appliance.signing.signing_order import end_rest, hand_over


async def publish(
    transaction: Transaction,
    claim: Claim,
    item: ActivationDocument,
    document: SignedDocumentView,
    inspection: Inspection | None,
    upkeep: Upkeep | None,
    *,
    clock: Clock,
    actor: str,
) -> bool:
    """Publish a signed document, and give the turn to who signs next.

    Args:
        transaction: the caller's.
        claim: of the worker.
        item: of it.
        document: what is published.
        inspection: of it; without one nobody gets the turn yet.
        upkeep: what the document will need by itself.
        clock: the time.
        actor: for the audit.

    Raises:
        ApplianceError: `INTERNAL`: the request is not `en_proceso`.
    """
    now = clock.now()
    if not await ActivationStore(transaction).item_done(claim, item.seq):
        return False
    moved = await RequestStore(transaction).move(
        item.request,
        RequestState.IN_PROGRESS,
        RequestState.SIGNED,
        level=document.level,
    )
    if not moved:
        return await _settled_before(transaction, claim, item, now)
    await DocumentRowStore(transaction).sealed(item.request, document, now)
    if upkeep is not None:
        await LevelMaintenanceStore(transaction).add(
            item.request, document.integrator, upkeep, now
        )
    await ActivationStore(transaction).settle(claim, now)
    transaction.audit.add(
        item_event(
            EventKind.REQUEST_SIGNED,
            actor,
            claim,
            item,
            {"sha256": document.sha256, "level": document.level},
            document.integrator,
        )
    )
    if inspection is not None:
        await hand_over(transaction, document, inspection, clock, actor)
    return True


async def _settled_before(
    transaction: Transaction, claim: Claim, item: ActivationDocument, now: datetime
) -> bool:
    """End an item whose request was signed by the time that it came to it.

    Its document was found after a restore (`documents recover`), and stays.

    Raises:
        ApplianceError: `INTERNAL`: it was not.
    """
    view = await RequestStore(transaction).get(item.request)
    if view is None or view.state is not RequestState.SIGNED:
        raise ApplianceError(ErrorCode.INTERNAL)
    await ActivationStore(transaction).settle(claim, now)
    return True


async def give_up(
    transaction: Transaction,
    claim: Claim,
    items: Sequence[ActivationDocument],
    then: RequestState,
    code: ErrorCode,
    layer: str,
    *,
    clock: Clock,
    actor: str,
) -> bool:
    """End items without a signature, and the activation with its last one.

    Args:
        transaction: the caller's.
        claim: of the worker.
        items: of it.
        then: `pendiente`, its signer may try again; or `fallida`, for good.
        code: why.
        layer: which lock held, of `ACTIVATION_INVALID`.
        clock: the time.
        actor: for the audit.
    """
    kind = (
        EventKind.REQUEST_RETURNED
        if then is RequestState.PENDING
        else EventKind.REQUEST_FAILED
    )
    why = {"reason": code.value, **({"layer": layer} if layer else {})}
    now = clock.now()
    # Requests are locked in one order everywhere.
    for item in sorted(items, key=lambda item: item.request):
        if not await ActivationStore(transaction).item_failed(
            claim, item.seq, code.value
        ):
            return False
        for intent in await ActivationStore(transaction).interrupt_item(
            claim, item.seq, now
        ):
            transaction.audit.add(key_interrupted(actor, claim.documents, intent))
        moved = await RequestStore(transaction).move(
            item.request, RequestState.IN_PROGRESS, then, code.value
        )
        if not moved:
            # Its document was found after a restore.
            continue
        transaction.audit.add(item_event(kind, actor, claim, item, {**why}))
        if then is RequestState.FAILED:
            await end_rest(transaction, item.request, then, actor)
    await ActivationStore(transaction).settle(claim, now, code.value)
    return True
