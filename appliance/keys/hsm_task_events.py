"""What the audit says of HSM tasks: that one was asked for, and what a claim did."""

from appliance.domain.audit.record import AuditEvent
from appliance.domain.ids import TaskId
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import EventKind, TaskKind


def task_created(
    task: TaskId, kind: TaskKind, actor: str, detail: dict[str, object]
) -> AuditEvent:
    """What the audit says of a task that somebody asked for."""
    return AuditEvent(
        EventKind.TASK_CREATED,
        actor,
        detail={"task": task, "kind": kind.value, **detail},
    )


def task_event(
    event: EventKind, actor: str, claim: TaskClaim, detail: dict[str, object]
) -> AuditEvent:
    """What the audit says of a step of a task that a worker has claimed."""
    return AuditEvent(
        event, actor, attempt=claim.fence, detail={"task": claim.id, **detail}
    )
