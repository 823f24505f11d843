"""What becomes of a document that a worker has in hand: published, or given up.

Within the caller's transaction, and fenced: False, and the caller changes nothing
more, when another worker has claimed since.

Source: design §3; decisions "estados".
"""

from collections.abc import Sequence
from datetime import datetime

from appliance.domain.clock import Clock
from appliance.domain.documents import Inspection
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.records import Records
from appliance.domain.records.activations import Claim, Item
from appliance.domain.requests.levels import Upkeep
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.vocab import EventKind, RequestState
from appliance.signing.audit_events import item_event, key_interrupted
from appliance.signing.signing_order import end_rest, hand_over


async def publish(
    records: Records,
    claim: Claim,
    item: Item,
    document: SignedDocumentView,
    inspection: Inspection | None,
    upkeep: Upkeep | None,
    *,
    clock: Clock,
    actor: str,
) -> bool:
    """Publish a signed document, and give the turn to who signs next.

    Args:
        records: of the caller's transaction.
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
    if not await records.activations.item_done(claim, item.seq):
        return False
    moved = await records.requests.move(
        item.request,
        RequestState.IN_PROGRESS,
        RequestState.SIGNED,
        level=document.level,
    )
    if not moved:
        return await _settled_before(records, claim, item, now)
    await records.documents.sealed(item.request, document, now)
    if upkeep is not None:
        await records.upkeep.add(item.request, document.integrator, upkeep, now)
    await records.activations.settle(claim, now)
    records.audit.add(
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
        await hand_over(records, document, inspection, clock, actor)
    return True


async def _settled_before(
    records: Records, claim: Claim, item: Item, now: datetime
) -> bool:
    """End an item whose request was signed by the time that it came to it.

    Its document was found after a restore (`documents recover`), and stays.

    Raises:
        ApplianceError: `INTERNAL`: it was not.
    """
    view = await records.requests.get(item.request)
    if view is None or view.state is not RequestState.SIGNED:
        raise ApplianceError(ErrorCode.INTERNAL)
    await records.activations.settle(claim, now)
    return True


async def give_up(
    records: Records,
    claim: Claim,
    items: Sequence[Item],
    then: RequestState,
    code: ErrorCode,
    layer: str,
    *,
    clock: Clock,
    actor: str,
) -> bool:
    """End items without a signature, and the activation with its last one.

    Args:
        records: of the caller's transaction.
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
        if not await records.activations.item_failed(claim, item.seq, code.value):
            return False
        for intent in await records.activations.interrupt_item(claim, item.seq, now):
            records.audit.add(key_interrupted(actor, claim.items, intent))
        moved = await records.requests.move(
            item.request, RequestState.IN_PROGRESS, then, code.value
        )
        if not moved:
            # Its document was found after a restore.
            continue
        records.audit.add(item_event(kind, actor, claim, item, {**why}))
        if then is RequestState.FAILED:
            await end_rest(records, item.request, then, actor)
    await records.activations.settle(claim, now, code.value)
    return True
