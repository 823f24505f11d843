"""What the audit says of signing: one event for each document, whatever happens."""

from collections.abc import Sequence
from typing import Final

from appliance.domain.activation import ActivationDocument
from appliance.domain.audit import AuditEvent
from appliance.domain.records.activations import Claim, IntentRow
from appliance.domain.vocab import EventKind, ItemState

_LEFT: Final = frozenset({ItemState.WAITING, ItemState.KEYED})
"""What is still to be done of an activation."""


def item_event(
    kind: EventKind,
    actor: str,
    claim: Claim,
    item: ActivationDocument,
    detail: dict[str, object],
    integrator: str | None = None,
) -> AuditEvent:
    """What the audit says of one document of a claim."""
    return AuditEvent(
        kind,
        actor,
        integrator=integrator,
        request=item.request,
        activation=claim.id,
        attempt=claim.fence,
        detail={"item": item.seq, **detail},
    )


def claimed_events(actor: str, claim: Claim) -> list[AuditEvent]:
    """What the audit says of a claim: one event for each document that is left."""
    state: dict[str, object] = {
        "state": claim.state.value,
        "items": len(claim.documents),
    }
    return [
        item_event(EventKind.ACTIVATION_CLAIMED, actor, claim, item, state)
        for item in claim.documents
        if item.state in _LEFT
    ]


def key_interrupted(
    actor: str, items: Sequence[ActivationDocument], intent: IntentRow
) -> AuditEvent:
    """What the audit says of an intended use of a key that was closed open-ended."""
    return AuditEvent(
        EventKind.KEY_INTERRUPTED,
        actor,
        request=items[intent.item].request,
        activation=intent.activation,
        attempt=intent.attempt,
        detail={"item": intent.item, "digest": intent.digest},
    )
