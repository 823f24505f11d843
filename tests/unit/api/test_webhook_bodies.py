"""The `webhooks` section: each message of the appliance, and no other."""

import json
from datetime import UTC, datetime
from typing import Final

import jsonschema_rs
import pytest

from appliance.api.openapi.document import openapi_document
from appliance.api.openapi.webhooks import NO_MORE, RECEIVED, SUMMARIES
from appliance.domain.ids import IntegratorId, ProcessId, RequestId, new_id
from appliance.domain.integrators.events import TellableEvent
from appliance.domain.requests.history import TOLD
from appliance.domain.vocab import EventKind, WebhookEvent
from appliance.web import i18n
from appliance.webhooks.bodies import KINDS, ProcessName, body, event_body
from tests.support.webhooks.documented_messages import check

DOCUMENT: Final = openapi_document("en", web_url="https://firma.example")
_AT: Final = datetime(2026, 11, 27, 12, tzinfo=UTC)
_SAMPLES: Final[dict[str, object]] = {
    "documentSha256": "0" * 64,
    "sha256": "1" * 64,
    "originalSha256": "2" * 64,
    "predecessor": 4710,
    "reason": "HSM_UNAVAILABLE",
    "level": "B-LT",
    "version": 2,
    "fields": ["reference", "expires"],
    "batch": new_id(),
    "reference": None,
    "total": 3,
    "states": {"firmada": 2, "vencida": 1},
    "faults": 1,
    "code": "PDF_MALFORMED",
    "session": "ab12",
    "origin": "https://otra.example",
    "key": "k1",
    "endpoint": new_id(),
    "since": "2026-11-26T12:00:00+00:00",
    "person": new_id(),
    "days": 7,
    "notAfter": "2026-12-04T12:00:00+00:00",
}
_NOT_ALWAYS: Final = {"predecessor", "originalSha256"}
"""Members that events of the audit have only in some cases."""


def message(kind: EventKind, *without: str) -> str:
    """A message as the appliance makes it."""
    detail = {name: _SAMPLES[name] for name in TOLD[kind] if name not in without}
    of_request = kind.value.startswith(("request.", "document."))
    request = RequestId(4711) if of_request else None
    process = ProcessName(ProcessId(new_id()), None) if of_request else None
    integrator = IntegratorId(new_id())
    event = TellableEvent(1, integrator, request, kind, _AT, detail)
    return event_body(event, process)


def test_every_type_has_its_webhook() -> None:
    """By the word in `type`, with headers that a receiver verifies it by."""
    assert DOCUMENT["webhooks"].keys() == {event.value for event in WebhookEvent}
    for item in DOCUMENT["webhooks"].values():
        names = [each["name"] for each in item["post"]["parameters"]]
        assert names == ["webhook-id", "webhook-timestamp", "webhook-signature"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_message_is_as_its_webhook_says(kind: EventKind) -> None:
    """With all that it may tell, and without what only some of them tell."""
    check(json.loads(message(kind)))
    check(json.loads(message(kind, *_NOT_ALWAYS)))


def test_test_is_as_its_webhook_says() -> None:
    """It is of no event of the audit."""
    told = body(WebhookEvent.WEBHOOK_TEST, _AT, {"webhookId": new_id()})

    check(json.loads(told))


def test_message_of_another_type_is_refused() -> None:
    """Each type has a schema of its own."""
    told = json.loads(message(EventKind.REQUEST_SIGNED))

    with pytest.raises(jsonschema_rs.ValidationError):
        check({**told, "type": WebhookEvent.KEY_FLAGGED.value})


@pytest.mark.parametrize("said", [*SUMMARIES.values(), RECEIVED, NO_MORE])
def test_words_have_their_spanish(said: str) -> None:
    """The document is in the reader's language."""
    assert i18n.translate("es", said) != said
