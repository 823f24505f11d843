"""What a webhook's message says: `{"type", "timestamp", "data"}`, thin.

Ids, codes and digests: whoever wants more asks the API. No personal data.

Source: Standard Webhooks 1.0.0, "Payload structure"; docs/integration.md.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from appliance.domain.ids import ProcessId
from appliance.domain.integrators.events import TellableEvent
from appliance.domain.integrators.integrators import FlagReason
from appliance.domain.requests.told_names import EVENT_NAMES, told_members
from appliance.domain.vocab import EventKind, WebhookDisabled, WebhookEvent

KINDS: Final[Mapping[EventKind, WebhookEvent]] = {
    kind: WebhookEvent(
        f"{'documento' if kind is EventKind.DOCUMENT_RAISED else 'solicitud'}.{name}"
    )
    for kind, name in EVENT_NAMES.items()
} | {
    EventKind.REQUEST_COMPLETED: WebhookEvent.REQUEST_COMPLETED,
    EventKind.BATCH_READY: WebhookEvent.BATCH_READY,
    EventKind.BATCH_REFUSED: WebhookEvent.BATCH_REFUSED,
    EventKind.BATCH_ENDED: WebhookEvent.BATCH_ENDED,
    EventKind.SESSION_OPENED: WebhookEvent.SESSION_OPENED,
    EventKind.SESSION_COMPLETED: WebhookEvent.SESSION_COMPLETED,
    EventKind.SESSION_EXPIRED: WebhookEvent.SESSION_EXPIRED,
    EventKind.ORIGIN_BLOCKED: WebhookEvent.ORIGIN_BLOCKED,
    EventKind.API_KEY_EXPIRING: WebhookEvent.KEY_EXPIRING,
    EventKind.API_KEY_FLAGGED: WebhookEvent.KEY_FLAGGED,
    EventKind.CREDENTIAL_ISSUED: WebhookEvent.SIGNER_READY,
    EventKind.CERTIFICATE_EXPIRING: WebhookEvent.CERTIFICATE_EXPIRING,
    EventKind.WEBHOOK_DISABLED: WebhookEvent.WEBHOOK_DISABLED,
}
"""As what each event is told."""
_OF_OUR_WORDS: Final = {EventKind.WEBHOOK_DISABLED, EventKind.API_KEY_FLAGGED}
"""Whose reason is a word of ours; that of a cancelled request is whoever's."""
_REASONS: Final = {
    WebhookDisabled.GONE.value: "respuesta_410",
    WebhookDisabled.FAILING.value: "fallas",
    FlagReason.URL.value: "url",
    FlagReason.BROWSER.value: "navegador",
}


@dataclass(frozen=True, slots=True)
class ProcessName:
    """How an integrator knows the process of a request."""

    id: ProcessId
    reference: str | None


def event_body(event: TellableEvent, process: ProcessName | None) -> str:
    """What is said of an event.

    Args:
        event: of the kinds of `KINDS`.
        process: of its request, if it is about one.
    """
    data: dict[str, object] = {}
    # A batch is not about the document that ended last, after whose event it is sent.
    if process is not None and event.event is not EventKind.BATCH_ENDED:
        data = {
            "procesoId": process.id,
            "solicitudId": event.request,
            "referencia": process.reference,
        }
    data |= told_members(event.detail)
    if event.event in _OF_OUR_WORDS:
        reason = str(data["motivo"])
        data["motivo"] = _REASONS.get(reason, reason)
    return body(KINDS[event.event], event.at, data)


def body(kind: WebhookEvent, at: datetime, data: Mapping[str, object]) -> str:
    """A message's body.

    Args:
        kind: what it tells of.
        at: when that happened, aware.
        data: plain JSON values.
    """
    told = {
        "type": kind.value,
        "timestamp": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "data": data,
    }
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))
