"""What an integrator may know of what became of a request, event by event.

Each is an event of the audit, which integrators cannot read, without who did it and
without what belongs to the installation alone. Both are written together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.ids import RequestId
from appliance.domain.vocab import EventKind

TOLD: Final[Mapping[EventKind, tuple[str, ...]]] = {
    EventKind.REQUEST_CREATED: (
        "documentSha256",
        "originalSha256",
        "predecessor",
        "batch",
    ),
    EventKind.REQUEST_TURN: ("documentSha256", "predecessor"),
    EventKind.REQUEST_VIEWED: ("documentSha256",),
    EventKind.REQUEST_CHANGED: ("fields",),
    EventKind.REQUEST_REMINDED: (),
    EventKind.REQUEST_REJECTED: (),
    EventKind.REQUEST_CANCELLED: ("predecessor", "reason"),
    EventKind.REQUEST_EXPIRED: ("predecessor",),
    EventKind.REQUEST_RETURNED: ("reason",),
    EventKind.REQUEST_FAILED: ("reason",),
    EventKind.REQUEST_SIGNED: ("sha256", "level"),
    EventKind.REQUEST_COMPLETED: ("sha256", "level"),
    EventKind.BATCH_READY: ("batch", "reference", "total"),
    EventKind.BATCH_REFUSED: ("batch", "reference", "total", "faults", "code"),
    EventKind.BATCH_ENDED: ("batch", "reference", "total", "states"),
    EventKind.DOCUMENT_RAISED: ("version", "sha256", "level"),
    EventKind.SESSION_OPENED: ("session", "batch"),
    EventKind.SESSION_COMPLETED: ("session", "batch"),
    EventKind.SESSION_EXPIRED: ("session", "batch"),
    EventKind.ORIGIN_BLOCKED: ("origin",),
    EventKind.API_KEY_FLAGGED: ("key", "reason"),
    EventKind.API_KEY_EXPIRING: ("key", "days", "notAfter"),
    EventKind.WEBHOOK_DISABLED: ("endpoint", "reason", "since"),
    # Of people: every integrator is told that asks them to sign or vouched for them.
    EventKind.CREDENTIAL_ISSUED: ("person",),
    EventKind.CERTIFICATE_EXPIRING: ("person", "days", "notAfter"),
}
"""Events that are told, and what of their `detail`."""


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """Something that became of a request."""

    request: RequestId
    event: EventKind
    at: datetime
    detail: dict[str, object]
    """Those members of the audit's that `TOLD` names."""


def told_of(event: AuditEvent) -> dict[str, object] | None:
    """What an integrator may know of an event; None where that is nothing.

    Args:
        event: of the audit.
    """
    members, detail = TOLD.get(event.event), event.detail
    if members is None:
        return None
    if event.request is None and event.integrator is None and "person" not in detail:
        return None
    after = detail.get("after")
    if isinstance(after, Mapping):
        detail = detail | dict(after)
    return {name: detail[name] for name in members if name in detail}
