"""The `webhooks` section: every message that an integrator's endpoint may get.

Bodies are made of what `TOLD` lets integrators know, with the members of `MessageData`.

Source: OpenAPI 3.1, "webhooks"; Standard Webhooks 1.0.0; docs/webhooks.md.
"""

from collections.abc import Mapping
from typing import Any, Final

from appliance.api.openapi.meanings import meaning_of
from appliance.api.openapi.schemas import Schema, Schemas
from appliance.api.wire.backend_answers import Message
from appliance.domain.requests.history import TOLD
from appliance.domain.requests.told_names import told_names
from appliance.domain.vocab import WebhookEvent
from appliance.web import i18n
from appliance.web.responses import JSON
from appliance.webhooks.bodies import KINDS

SUMMARIES: Final[Mapping[WebhookEvent, str]] = {
    WebhookEvent.REQUEST_CREATED: "A signature was asked for, once for each signer",
    WebhookEvent.REQUEST_TURN: "It is a signer's turn: those before have signed",
    WebhookEvent.REQUEST_VIEWED: "The signer was shown the document",
    WebhookEvent.REQUEST_CHANGED: "The integrator changed a request",
    WebhookEvent.REQUEST_REMINDED: "The signer was reminded",
    WebhookEvent.REQUEST_SIGNED: "One signer signed",
    WebhookEvent.REQUEST_REJECTED: "A signer rejected the document",
    WebhookEvent.REQUEST_CANCELLED: "A request was cancelled",
    WebhookEvent.REQUEST_EXPIRED: "A request expired",
    WebhookEvent.REQUEST_FAILED: "A document cannot be signed",
    WebhookEvent.REQUEST_RETURNED: "A signature failed, and can be made again",
    WebhookEvent.REQUEST_COMPLETED: "All signers have signed",
    WebhookEvent.BATCH_READY: "A batch is prepared and can be signed",
    WebhookEvent.BATCH_REFUSED: "A batch was refused for a fault of its documents",
    WebhookEvent.BATCH_ENDED: "Nothing of a batch is left to be signed",
    WebhookEvent.LEVEL_RAISED: "A signed document has a version of a higher level",
    WebhookEvent.SESSION_OPENED: "A session of the iframe began",
    WebhookEvent.SESSION_COMPLETED: "A session of the iframe ended with a signature",
    WebhookEvent.SESSION_EXPIRED: "A session of the iframe expired",
    WebhookEvent.ORIGIN_BLOCKED: "A page that is not registered tried the iframe",
    WebhookEvent.KEY_FLAGGED: "An API key was exposed and must be replaced",
    WebhookEvent.KEY_EXPIRING: "An API key expires soon",
    WebhookEvent.SIGNER_READY: "A person has enrolled and can sign",
    WebhookEvent.CERTIFICATE_EXPIRING: "A signer's certificate expires soon",
    WebhookEvent.WEBHOOK_TEST: "The test that was asked for",
    WebhookEvent.WEBHOOK_DISABLED: "Another webhook of the integrator was turned off",
}
"""Msgids."""
RECEIVED: Final = "Received; any 2xx says the same"
NO_MORE: Final = "The webhook is turned off: its receiver wants no more messages"
_OF_REQUEST: Final = ("procesoId", "solicitudId", "referencia")
_SESSIONS: Final = frozenset(
    {
        WebhookEvent.SESSION_OPENED,
        WebhookEvent.SESSION_COMPLETED,
        WebhookEvent.SESSION_EXPIRED,
    }
)
_BATCHES: Final = frozenset(
    {WebhookEvent.BATCH_READY, WebhookEvent.BATCH_REFUSED, WebhookEvent.BATCH_ENDED}
)
_OPTIONAL: Final = frozenset({"sha256Original", "anterior", "loteId"})
"""Members that only some messages of a type have."""
_KIND_OF: Final = {event: kind for kind, event in KINDS.items()}
_HEADERS: Final[Mapping[str, Schema]] = {
    "webhook-id": {"type": "string"},
    "webhook-timestamp": {"type": "string", "pattern": "^[0-9]+$"},
    "webhook-signature": {"type": "string", "pattern": "^v1,\\S+( v1,\\S+)*$"},
}


def webhooks(schemas: Schemas, lang: str) -> dict[str, Any]:
    """Path Item Objects of all messages, by their `type`.

    Args:
        schemas: of the document; the bodies are added to it.
        lang: of summaries, `es` or `en`.
    """
    schemas.of(Message)
    return {
        event.value: {"post": _operation(event, schemas, lang)}
        for event in WebhookEvent
    }


def _operation(event: WebhookEvent, schemas: Schemas, lang: str) -> dict[str, Any]:
    subject = "".join(word.capitalize() for word in event.name.split("_"))
    name = f"{subject}Message"
    schemas.made[name] = _body(event, schemas, lang)
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {
        "operationId": f"on{subject}",
        "summary": i18n.translate(lang, SUMMARIES[event]),
        "tags": ["events"],
        "security": [],
        "parameters": [
            {"name": header, "in": "header", "required": True, "schema": {**kind}}
            for header, kind in _HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {JSON: {"schema": schema}}},
        "responses": {
            "204": {"description": i18n.translate(lang, RECEIVED)},
            "410": {"description": i18n.translate(lang, NO_MORE)},
        },
    }


def _body(event: WebhookEvent, schemas: Schemas, lang: str) -> Schema:
    """The schema of a message."""
    known = schemas.made["MessageData"]["properties"]
    always, maybe = _members(event)
    number = known["solicitudId"]["anyOf"][0]
    members = {
        name: number if name == "solicitudId" else known[name]
        for name in (*always, *maybe)
    }
    data = {
        "type": "object",
        "properties": {
            name: {**schema, "description": said}
            if (said := meaning_of(name, "MessageData", lang)) is not None
            else schema
            for name, schema in members.items()
        },
        "required": [*always],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "type": {"type": "string", "const": event.value},
            "timestamp": schemas.made["Message"]["properties"]["timestamp"],
            "data": data,
        },
        "required": ["type", "timestamp", "data"],
        "additionalProperties": False,
    }


def _members(event: WebhookEvent) -> tuple[list[str], list[str]]:
    """Members of `data`: those that are always there, and those that may be."""
    if event is WebhookEvent.WEBHOOK_TEST:
        return ["webhookId"], []
    told = told_names(TOLD[_KIND_OF[event]])
    if event in _SESSIONS:
        return ["sesionId"], [*_OF_REQUEST, "loteId"]
    if event in _BATCHES:
        return told, []
    maybe = [name for name in told if name in _OPTIONAL]
    if event is WebhookEvent.REQUEST_CANCELLED:
        maybe.append("motivo")
    of_request = event.value.startswith(("solicitud.", "documento."))
    always = [name for name in told if name not in maybe]
    return [*(_OF_REQUEST if of_request else ()), *always], maybe
