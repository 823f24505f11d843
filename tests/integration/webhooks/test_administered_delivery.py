"""What is administered and what is delivered, together, on both databases."""

from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from appliance.domain.integrators.webhook_log import DeliveryFilter
from appliance.domain.vocab import EventKind, MessageState, WebhookDisabled
from appliance.webhooks.endpoints import OVERLAP, EndpointChange
from tests.integration.webhooks.administration import OPERATOR, WebhookAdministration
from tests.integration.webhooks.webhooks import Webhooks
from tests.support.webhooks.receiver import Received, WebhookReceiver

GIVEN_UP = DeliveryFilter(state=MessageState.GIVEN_UP)


@pytest.fixture
def admin(webhooks: Webhooks) -> WebhookAdministration:
    """The use cases over the record that is delivered from, at the present time."""
    # The library looks at the machine's own clock.
    webhooks.core.clock.at = datetime.now(UTC).replace(microsecond=0)
    # Its receiver listens on this machine.
    own = ("127.0.0.0/8",)
    return WebhookAdministration.of(webhooks.core, webhooks.schemes, own)


def reads(secret: str, got: Received) -> bool:
    """Whether a receiver with a secret takes a message."""
    try:
        Webhook(secret).verify(got.body, got.headers)
    except WebhookVerificationError:
        return False
    return True


async def test_test_event_arrives_and_its_log_says_so(
    webhooks: Webhooks, admin: WebhookAdministration, receiver: WebhookReceiver
) -> None:
    """By the secret that was shown."""
    whose = await webhooks.core.integrator()
    made = await admin.made(whose, receiver.url)
    sent = await admin.endpoints.test(OPERATOR, whose, made.endpoint.id)

    assert await webhooks.deliver() == 1

    (got,) = receiver.got
    assert (got.id, reads(made.secret, got)) == (sent.id, True)
    assert got.told["type"] == "webhook.prueba"
    assert got.told["data"] == {"webhookId": made.endpoint.id}
    logged = await admin.log.get(whose, made.endpoint.id, sent.id)
    assert logged.message.state is MessageState.DELIVERED
    assert [each.status for each in logged.attempts] == [204]


async def test_both_secrets_sign_for_a_day_and_then_one(
    webhooks: Webhooks, admin: WebhookAdministration, receiver: WebhookReceiver
) -> None:
    """A receiver changes over within that time; one that leaked is over at once."""
    whose = await webhooks.core.integrator()
    first = await admin.made(whose, receiver.url)
    endpoint = first.endpoint.id
    second = await admin.endpoints.rotate(OPERATOR, whose, endpoint)

    async def takes() -> list[bool]:
        await admin.endpoints.test(OPERATOR, whose, endpoint)
        await webhooks.deliver()
        return [reads(secret, receiver.got[-1]) for secret in secrets]

    secrets = [first.secret, second.secret]
    assert await takes() == [True, True]
    # As if it had been made so long ago.
    await webhooks.change(endpoint, former_until=webhooks.core.now)
    assert await takes() == [False, True]
    await webhooks.change(endpoint, former_until=webhooks.core.now + OVERLAP)
    third = await admin.endpoints.rotate(OPERATOR, whose, endpoint, at_once=True)
    secrets.append(third.secret)
    assert await takes() == [False, False, True]


async def test_what_was_given_up_is_sent_again_under_its_id(
    webhooks: Webhooks, admin: WebhookAdministration, receiver: WebhookReceiver
) -> None:
    """With all its tries, and the same bytes."""
    whose = await webhooks.core.integrator()
    made = await admin.made(whose, receiver.url)
    receiver.status = 500
    webhooks.options["disable_days"] = 90
    await webhooks.happen(EventKind.SESSION_OPENED, session="s")
    await webhooks.hand_on()
    while not await admin.log.matching(whose, made.endpoint.id, GIVEN_UP):
        assert await webhooks.deliver() == 1
        webhooks.core.clock.forward(100_000)
    lost = receiver.got[-1]
    receiver.status = 204

    await admin.log.replay_all(OPERATOR, whose, made.endpoint.id, GIVEN_UP)
    assert await webhooks.deliver() == 1

    assert (receiver.got[-1].id, receiver.got[-1].body) == (lost.id, lost.body)
    logged = await admin.log.get(whose, made.endpoint.id, lost.id)
    assert (logged.message.state, logged.message.tries) == (MessageState.DELIVERED, 1)
    assert [each.status for each in logged.attempts][-2:] == [500, 204]


async def test_one_that_wanted_no_more_is_turned_on_again(
    webhooks: Webhooks, admin: WebhookAdministration, receiver: WebhookReceiver
) -> None:
    """Its page says why it was off; what was withdrawn is sent when asked for."""
    whose = await webhooks.core.integrator()
    made = await admin.made(whose, receiver.url)
    endpoint = made.endpoint.id
    receiver.status = 410
    await admin.endpoints.test(OPERATOR, whose, endpoint)
    await webhooks.deliver()
    off = await admin.endpoints.get(whose, endpoint)
    receiver.status = 204

    await admin.endpoints.change(OPERATOR, whose, endpoint, EndpointChange(is_on=True))
    await admin.endpoints.test(OPERATOR, whose, endpoint)
    await webhooks.deliver()

    assert off.disabled_reason == WebhookDisabled.GONE
    assert await admin.endpoints.get(whose, endpoint) == made.endpoint
    newest = (await admin.log.matching(whose, endpoint, DeliveryFilter()))[0]
    assert newest.message.state is MessageState.DELIVERED


async def test_removed_one_is_told_nothing(
    webhooks: Webhooks, admin: WebhookAdministration, receiver: WebhookReceiver
) -> None:
    """Neither what waited nor what happens later."""
    whose = await webhooks.core.integrator()
    made = await admin.made(whose, receiver.url)
    await admin.endpoints.test(OPERATOR, whose, made.endpoint.id)

    await admin.endpoints.remove(OPERATOR, whose, made.endpoint.id)
    await webhooks.happen(EventKind.SESSION_OPENED, session="s")
    await webhooks.hand_on()

    assert await webhooks.deliver() == 0
    assert receiver.got == []
