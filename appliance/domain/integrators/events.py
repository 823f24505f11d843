"""What happened, as integrators may know of it."""

from dataclasses import dataclass
from datetime import datetime

from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.vocab import EventKind


@dataclass(frozen=True, slots=True)
class TellableEvent:
    """Something that happened, which its integrator may know."""

    id: int
    """Later ones of one request have greater ones."""
    integrator: IntegratorId
    request: RequestId | None
    event: EventKind
    at: datetime
    detail: dict[str, object]
