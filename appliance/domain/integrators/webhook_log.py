"""What was sent to a webhook, as its integrator looks at it."""

from dataclasses import dataclass, field
from datetime import datetime

from appliance.domain.ids import ProcessId
from appliance.domain.integrators.webhooks import WebhookAttempt, WebhookMessage
from appliance.domain.vocab import MessageState, WebhookEvent


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Which messages of an endpoint are wanted; None: whichever."""

    state: MessageState | None = None
    kind: WebhookEvent | None = None
    process: ProcessId | None = None
    since: datetime | None = None
    """Made then or later."""
    until: datetime | None = None
    """Made before then."""
    before: tuple[datetime, str] | None = None
    """Those that follow this one in a list, newest first: its time and id."""
    limit: int = 50


@dataclass(frozen=True, slots=True)
class LoggedMessage:
    """A message, and what came of it."""

    message: WebhookMessage = field(repr=False)
    process: ProcessId | None
    """What it tells of."""
    attempts: tuple[WebhookAttempt, ...]
    """Oldest first; in a list the last one alone."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a call had sent again."""

    count: int
    following: datetime | None
    """When the first one was made that was too many; None: that was all."""
