"""What was sent to webhooks, on both databases: found, and sent again."""

from dataclasses import replace
from datetime import timedelta

import pytest

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import new_id
from appliance.domain.integrators.webhook_log import DeliveryFilter, Replayed
from appliance.domain.vocab import MessageState, WebhookEvent
from appliance.webhooks import delivery_log
from appliance.webhooks.endpoints import EndpointChange
from appliance.webhooks.message_queue import MessageQueue
from tests.integration.webhooks.administration import OPERATOR, WebhookAdministration
from tests.support.installation.record import CoreFixture

GIVEN_UP = DeliveryFilter(state=MessageState.GIVEN_UP)


@pytest.fixture
def admin(core: CoreFixture) -> WebhookAdministration:
    """The use cases on each database."""
    return WebhookAdministration.of(core)


async def test_each_filter_finds_its_own(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """By state, type, process and time; newest first, page by page."""
    whose = await core.integrator()
    endpoint = (await admin.made(whose)).endpoint.id
    (request,) = await core.add_process([(await core.add_signer()).person])
    process = (await core.view(request)).process
    started = core.now
    first = await admin.sent(endpoint, request=request)
    second = await admin.sent(endpoint, MessageState.GIVEN_UP)
    third = await admin.sent(endpoint, kind=WebhookEvent.WEBHOOK_TEST)
    await admin.sent((await admin.made(whose)).endpoint.id)

    async def ids(asked: DeliveryFilter) -> list[str]:
        found = await admin.log.matching(whose, endpoint, asked)
        return [each.message.id for each in found]

    assert await ids(DeliveryFilter()) == [third.id, second.id, first.id]
    assert await ids(GIVEN_UP) == [second.id]
    assert await ids(DeliveryFilter(kind=WebhookEvent.WEBHOOK_TEST)) == [third.id]
    assert await ids(DeliveryFilter(process=process)) == [first.id]
    assert await ids(DeliveryFilter(since=second.created)) == [third.id, second.id]
    assert await ids(DeliveryFilter(since=started, until=second.created)) == [first.id]
    page = DeliveryFilter(limit=2)
    assert await ids(page) == [third.id, second.id]
    after = replace(page, before=(second.created, second.id))
    assert await ids(after) == [first.id]
    (logged,) = await admin.log.matching(whose, endpoint, GIVEN_UP)
    assert [each.status for each in logged.attempts] == [503]


async def test_one_is_sent_again_with_its_own_id(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """Delivered, given up or withdrawn: it has all its tries again, from now."""
    whose = await core.integrator()
    endpoint = (await admin.made(whose)).endpoint.id
    for state in (
        MessageState.DELIVERED,
        MessageState.GIVEN_UP,
        MessageState.WITHDRAWN,
    ):
        message = await admin.sent(endpoint, state)

        again = await admin.log.replay(OPERATOR, whose, endpoint, message.id)

        due = again.message.due
        pending = replace(message, state=MessageState.PENDING, tries=0, due=due)
        assert again.message == pending
        assert due <= core.now
        assert len(again.attempts) == 1
        assert (await core.audited())[-1] == "webhook.replayed"


async def test_one_that_is_put_off_is_tried_now(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """Its tries count on."""
    whose = await core.integrator()
    endpoint = (await admin.made(whose)).endpoint.id
    core.clock.forward(3600)
    message = await admin.sent(endpoint, MessageState.PENDING)
    core.clock.forward(-60)

    again = await admin.log.replay(OPERATOR, whose, endpoint, message.id)

    assert again.message == replace(message, due=core.now)


@pytest.mark.parametrize("state", [MessageState.PENDING, MessageState.GIVEN_UP])
async def test_one_that_is_tried_now_goes_before_the_backlog(
    core: CoreFixture, admin: WebhookAdministration, state: MessageState
) -> None:
    """Of its endpoint; what waits for another one is not overtaken."""
    whose = await core.integrator()
    endpoint = (await admin.made(whose)).endpoint.id
    other = (await admin.made(whose, label="otro")).endpoint.id
    first_of_other = await admin.sent(other, MessageState.PENDING)
    core.clock.forward(60)
    for _ in range(5):
        await admin.sent(endpoint, MessageState.PENDING)
        core.clock.forward(1)
    wanted = await admin.sent(endpoint, state)
    core.clock.forward(60)

    await admin.log.replay(OPERATOR, whose, endpoint, wanted.id)

    async with core.store.write() as transaction:
        queue = MessageQueue(transaction)
        claims = [
            await queue.claim_next("one/1", core.now, timedelta(minutes=1))
            for _ in range(2)
        ]
    assert [claim and claim.id for claim in claims] == [first_of_other.id, wanted.id]


async def test_all_given_up_are_sent_again(
    core: CoreFixture,
    admin: WebhookAdministration,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The oldest first, up to a limit; a second call takes those that are left."""
    monkeypatch.setattr(delivery_log, "REPLAYED_AT_MOST", 2)
    whose = await core.integrator()
    endpoint = (await admin.made(whose)).endpoint.id
    lost = [await admin.sent(endpoint, MessageState.GIVEN_UP) for _ in range(3)]
    await admin.sent(endpoint)

    done = await admin.log.replay_all(OPERATOR, whose, endpoint, GIVEN_UP)
    left = await admin.log.matching(whose, endpoint, GIVEN_UP)
    again = await admin.log.replay_all(OPERATOR, whose, endpoint, GIVEN_UP)
    none = await admin.log.replay_all(OPERATOR, whose, endpoint, GIVEN_UP)

    assert done == Replayed(2, lost[2].created)
    assert [each.message.id for each in left] == [lost[2].id]
    assert (again, none) == (Replayed(1, None), Replayed(0, None))
    assert await admin.endpoints.pending(whose) == {endpoint: 3}


async def test_all_of_a_time_are_sent_again(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """Whatever came of them; those that are pending stay as they are."""
    whose = await core.integrator()
    endpoint = (await admin.made(whose)).endpoint.id
    await admin.sent(endpoint)
    first = await admin.sent(endpoint)
    waiting = await admin.sent(endpoint, MessageState.PENDING)
    last = await admin.sent(endpoint)

    done = await admin.log.replay_all(
        OPERATOR,
        whose,
        endpoint,
        DeliveryFilter(since=first.created, until=last.created),
    )

    assert done == Replayed(1, None)
    kept = await admin.log.get(whose, endpoint, waiting.id)
    assert kept.message == waiting


async def test_nothing_is_sent_again_to_a_disabled_one(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """What was withdrawn is sent once it is on again."""
    whose = await core.integrator()
    endpoint = (await admin.made(whose)).endpoint.id
    message = await admin.sent(endpoint, MessageState.PENDING)
    off, on = EndpointChange(is_on=False), EndpointChange(is_on=True)
    await admin.endpoints.change(OPERATOR, whose, endpoint, off)

    for asked in (
        admin.log.replay(OPERATOR, whose, endpoint, message.id),
        admin.log.replay_all(OPERATOR, whose, endpoint, DeliveryFilter()),
    ):
        with pytest.raises(ApplianceError) as caught:
            await asked
        assert caught.value.code is ErrorCode.WEBHOOK_DISABLED
    await admin.endpoints.change(OPERATOR, whose, endpoint, on)
    again = await admin.log.replay(OPERATOR, whose, endpoint, message.id)

    assert again.message.state is MessageState.PENDING


async def test_anothers_is_absent(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """Of another integrator, and of another endpoint of the same one."""
    whose, other = await core.integrator(), await core.add_integrator("otro")
    endpoint = (await admin.made(whose)).endpoint.id
    beside = (await admin.made(whose)).endpoint.id
    foreign = (await admin.made(other)).endpoint.id
    message = (await admin.sent(endpoint)).id
    cases = [
        (other, endpoint, message, ErrorCode.WEBHOOK_NOT_FOUND),
        (other, foreign, message, ErrorCode.DELIVERY_NOT_FOUND),
        (whose, beside, message, ErrorCode.DELIVERY_NOT_FOUND),
        (whose, endpoint, new_id(), ErrorCode.DELIVERY_NOT_FOUND),
    ]

    for asking, at, wanted, code in cases:
        for asked in (
            admin.log.get(asking, at, wanted),
            admin.log.replay(OPERATOR, asking, at, wanted),
        ):
            with pytest.raises(ApplianceError) as caught:
                await asked
            assert caught.value.code is code
    for asked_list in (
        admin.log.matching(other, endpoint, DeliveryFilter()),
        admin.log.replay_all(OPERATOR, other, endpoint, DeliveryFilter()),
    ):
        with pytest.raises(ApplianceError) as caught:
            await asked_list
        assert caught.value.code is ErrorCode.WEBHOOK_NOT_FOUND
