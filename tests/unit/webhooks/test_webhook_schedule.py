"""When a message is tried again, and what it is signed with."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from appliance.domain.integrators.webhooks import new_secret, signed_headers
from appliance.domain.vocab import EventKind, WebhookEvent
from appliance.webhooks.bodies import KINDS, body
from appliance.webhooks.schedule import AFTER, TRIES, next_try
from tests.support.factories.fakes import NOON

BODY = body(WebhookEvent.REQUEST_SIGNED, NOON, {"procesoId": "p", "motivo": "Ñandú"})


def test_schedule_is_as_documented() -> None:
    """Ten tries over three days; each rests up to a tenth longer."""
    assert TRIES == 10
    for tries, rest in enumerate(AFTER, start=1):
        again = next_try(tries, NOON)
        assert again is not None
        assert rest <= again - NOON <= rest * 1.1
    assert next_try(TRIES, NOON) is None


@pytest.mark.parametrize(
    ("said", "rest"),
    [
        ("120", timedelta(seconds=120)),
        (" 7200 ", timedelta(hours=2)),
        ("Mon, 25 May 2026 13:00:00 GMT", timedelta(hours=1)),
        ("999999999999999999999", timedelta(days=1)),
        ("Mon, 25 May 2099 13:00:00 GMT", timedelta(days=1)),
    ],
)
def test_receiver_may_ask_for_a_rest(said: str, rest: timedelta) -> None:
    """In seconds or as a date, up to a day."""
    again = next_try(1, NOON, said)

    assert again is not None
    assert again - NOON == rest


@pytest.mark.parametrize(
    "said", ["", "soon", "-5", "1.5", "Mon, 25 May 2020 13:00:00 GMT", "²", "0"]
)
def test_what_is_no_rest_changes_nothing(said: str) -> None:
    """The schedule's own holds."""
    again = next_try(1, NOON, said)

    assert again is not None
    assert timedelta(seconds=5) <= again - NOON < timedelta(seconds=6)


def test_receivers_library_believes_it() -> None:
    """Two secrets sign while one takes over; a third does not pass."""
    first, second = new_secret(), new_secret()
    payload = BODY.encode()
    # The library looks at the machine's own clock.
    headers = dict(signed_headers("m-1", payload, datetime.now(UTC), [first, second]))

    for secret in (first, second):
        assert Webhook(secret).verify(payload, headers) == json.loads(BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(payload, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(first).verify(payload + b" ", headers)


def test_secret_is_as_the_standard_wants_it() -> None:
    """Each another one, of 32 bytes."""
    made = {new_secret() for _ in range(20)}

    assert len(made) == 20
    assert all(each.startswith("whsec_") and len(each) == 50 for each in made)


def test_body_is_thin_json() -> None:
    """Compact, with its letters as they are."""
    assert BODY == (
        '{"type":"solicitud.firmada","timestamp":"2026-05-25T12:00:00Z",'
        '"data":{"procesoId":"p","motivo":"Ñandú"}}'
    )


def test_every_kind_is_told_as_one_type() -> None:
    """No two events are one type."""
    assert len(set(KINDS.values())) == len(KINDS)
    assert KINDS[EventKind.DOCUMENT_RAISED] is WebhookEvent.LEVEL_RAISED
