"""Audit events of batches, which webhooks tell of."""

from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.requests.backend_batch import RequestBatch
from appliance.domain.vocab import EventKind

SYSTEM: Final = "system"
"""Actor of what a worker does by itself."""


def batch_event(
    kind: EventKind, actor: str, batch: RequestBatch, **detail: object
) -> AuditEvent:
    """An event of a batch.

    Args:
        kind: what happened.
        actor: who did it.
        batch: to which.
        detail: members beside those that every such event has.
    """
    reference = batch.note.reference
    return AuditEvent(
        kind,
        actor,
        integrator=batch.integrator,
        detail={
            "batch": batch.id,
            "reference": reference,
            "total": batch.total,
            **detail,
        },
    )
