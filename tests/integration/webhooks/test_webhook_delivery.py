"""Webhooks from what happened to the receiver, over a real record and real HTTP."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, event, update
from standardwebhooks import Webhook

from admin_ui import webhook_words
from appliance.api.wire import webhooks as wire
from appliance.database.tables import integrator, webhook_message
from appliance.domain.ids import RequestId
from appliance.domain.integrators.webhook_log import DeliveryFilter
from appliance.domain.integrators.webhooks import new_secret
from appliance.domain.vocab import EventKind
from appliance.webhooks.delivery import Outcome
from appliance.webhooks.delivery_log import DeliveryLog
from appliance.webhooks.endpoints import endpoint_of
from tests.integration.webhooks.webhooks import Webhooks
from tests.support.webhooks.receiver import WebhookReceiver, receiving
from worker.leased_worker import FencedOffError

pytestmark = pytest.mark.storage
DAY_S = 86_400


async def _request(webhooks: Webhooks) -> RequestId:
    signer = await webhooks.core.add_signer(credential=False)
    return await webhooks.core.add_request(signer.person)


async def test_what_happens_is_told(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """Signed, thin, once; nothing is pending after."""
    secret = new_secret()
    endpoint = await webhooks.endpoint(receiver.url, secret=secret)
    request = await _request(webhooks)
    # The library looks at the machine's own clock.
    webhooks.core.clock.at = datetime.now(UTC).replace(microsecond=0)

    await webhooks.happen(
        EventKind.REQUEST_SIGNED, request, sha256="ab" * 32, level="B-B", secret="x"
    )
    assert await webhooks.hand_on() == 1
    assert await webhooks.deliver() == 1

    (got,) = receiver.got
    told = Webhook(secret).verify(got.body, got.headers)
    assert told["type"] == "solicitud.firmada"
    assert told["data"]["solicitudId"] == request
    assert set(told["data"]) == {
        "procesoId", "solicitudId", "referencia", "sha256", "nivel",
    }  # fmt: skip
    assert got.headers["content-type"] == "application/json"
    assert got.headers["user-agent"] == "rubrica"
    (message,) = await webhooks.messages()
    assert (message.id, message.state, message.tries) == (got.id, "delivered", 1)
    assert message.body.encode() == got.body
    (attempt,) = await webhooks.attempts()
    assert (attempt.status, attempt.failure) == (204, None)
    assert await webhooks.pending_events() == 0
    assert (await webhooks.hand_on(), await webhooks.deliver()) == (0, 0)
    assert (await webhooks.endpoint_row(endpoint)).failing_since is None


async def test_each_endpoint_gets_what_it_wants(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """Of its own integrator, of those types; disabled and removed ones get nothing."""
    now = webhooks.core.now
    all_of_it = await webhooks.endpoint(receiver.url)
    some = await webhooks.endpoint(receiver.url, ["solicitud.vista"])
    await webhooks.endpoint(receiver.url, disabled=now)
    await webhooks.endpoint(receiver.url, removed=now)
    await webhooks.endpoint(receiver.url, ["algo.de_otra_version"])
    other = await webhooks.core.add_integrator("otro")
    await webhooks.endpoint(receiver.url, whose=other)
    request = await _request(webhooks)

    await webhooks.happen(EventKind.REQUEST_VIEWED, request)
    await webhooks.happen(EventKind.REQUEST_REJECTED, request)
    await webhooks.happen(EventKind.DOMAIN_ADDED)
    await webhooks.hand_on()

    made = [(each.endpoint, each.kind) for each in await webhooks.messages()]
    assert sorted(made) == sorted(
        [
            (all_of_it, "solicitud.vista"),
            (all_of_it, "solicitud.rechazada"),
            (some, "solicitud.vista"),
        ]
    )


async def test_two_secrets_sign_while_one_takes_over(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """Until the time that was said, and not after."""
    now = datetime.now(UTC).replace(microsecond=0)
    webhooks.core.clock.at = now
    old, new = new_secret(), new_secret()
    await webhooks.endpoint(
        receiver.url, secret=new, former=old, former_until=now + timedelta(seconds=30)
    )
    for _ in range(2):
        await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="url")
        await webhooks.hand_on()
        await webhooks.deliver()
        webhooks.core.clock.forward(31)

    first, second = (got.headers["webhook-signature"].split() for got in receiver.got)
    assert (len(first), len(second)) == (2, 1)
    got = receiver.got[0]
    for secret in (old, new):
        assert Webhook(secret).verify(got.body, got.headers)["type"] == "clave.marcada"


async def test_receiver_that_is_down_for_a_day_gets_all_in_order(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """Each at least once, those of one request as they happened, the others too."""
    endpoint = await webhooks.endpoint(receiver.url)
    one, other = await _request(webhooks), await _request(webhooks)
    receiver.status = 503
    story = (
        EventKind.REQUEST_CREATED,
        EventKind.REQUEST_VIEWED,
        EventKind.REQUEST_CHANGED,
        EventKind.REQUEST_SIGNED,
    )
    for kind in story:
        for request in (one, other):
            await webhooks.happen(kind, request)
        await webhooks.hand_on()
        await webhooks.deliver()
    began = webhooks.core.now
    while webhooks.core.now - began < timedelta(days=1):
        webhooks.core.clock.forward(1800)
        await webhooks.deliver()
    assert {got.told["type"] for got in receiver.got} == {"solicitud.creada"}
    assert {got.id for got in receiver.got} == {
        each.id for each in await webhooks.messages() if each.tries
    }

    receiver.status, receiver.got = 200, []
    for _ in range(60):
        webhooks.core.clock.forward(3600)
        await webhooks.deliver()

    told = [(got.told["data"]["solicitudId"], got.told["type"]) for got in receiver.got]
    names = [
        f"solicitud.{each}" for each in ("creada", "vista", "modificada", "firmada")
    ]
    assert [kind for about, kind in told if about == one] == names
    assert [kind for about, kind in told if about == other] == names
    assert {each.state for each in await webhooks.messages()} == {"delivered"}
    assert (await webhooks.endpoint_row(endpoint)).failing_since is None


async def test_message_is_given_up_after_its_tries(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """Each try has a fresh timestamp and the same id; then the next one goes."""
    await webhooks.endpoint(receiver.url)
    request = await _request(webhooks)
    receiver.status = 500
    receiver.text = "no\n\x00" + "x" * 5000
    await webhooks.happen(EventKind.REQUEST_VIEWED, request)
    await webhooks.happen(EventKind.REQUEST_REJECTED, request)
    await webhooks.hand_on()

    while (await webhooks.messages())[0].state == "pending":
        await webhooks.deliver()
        webhooks.core.clock.forward(7200)

    first, second = await webhooks.messages()
    assert (first.state, first.tries) == ("given_up", 10)
    assert second.state == "pending"
    of_first = [got for got in receiver.got if got.id == first.id]
    assert len({got.headers["webhook-timestamp"] for got in of_first}) == 10
    attempts = [each for each in await webhooks.attempts() if each.message == first.id]
    assert {(each.status, each.failure) for each in attempts} == {(500, "status")}
    assert {each.answer for each in attempts} == {"no  " + "x" * 996}


@pytest.mark.parametrize(
    ("status", "failure"), [(301, "redirect"), (308, "redirect"), (404, "status")]
)
async def test_answers_that_are_no_delivery(
    webhooks: Webhooks, receiver: WebhookReceiver, status: int, failure: str
) -> None:
    """Nobody goes where a redirect leads."""
    await webhooks.endpoint(receiver.url)
    receiver.status = status
    async with receiving() as elsewhere:
        receiver.headers = {"Location": elsewhere.url}
        await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="url")
        await webhooks.hand_on()
        assert await webhooks.deliver() == 1
        assert elsewhere.got == []
    (attempt,) = await webhooks.attempts()
    assert (attempt.status, attempt.failure) == (status, failure)


async def test_receiver_that_asks_for_time_gets_it(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """`Retry-After` is honoured."""
    await webhooks.endpoint(receiver.url)
    receiver.status, receiver.headers = 429, {"Retry-After": "3600"}
    await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="url")
    await webhooks.hand_on()
    await webhooks.deliver()

    webhooks.core.clock.forward(3599)
    assert await webhooks.deliver() == 0
    webhooks.core.clock.forward(1)
    assert await webhooks.deliver() == 1


async def test_endpoint_that_is_gone_gets_nothing_more(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """410 disables at once; the integrator's other endpoints are told."""
    async with receiving() as backend:
        other = await webhooks.endpoint(backend.url)
        gone = await webhooks.endpoint(receiver.url)
        receiver.status = 410
        request = await _request(webhooks)
        await webhooks.happen(EventKind.REQUEST_VIEWED, request)
        await webhooks.happen(EventKind.REQUEST_REJECTED, request)
        await webhooks.hand_on()
        await webhooks.deliver()
        await webhooks.hand_on()
        await webhooks.deliver()
        assert await webhooks.delivery().withdraw() == 2

        (told,) = [
            got.told for got in backend.got if got.told["type"].startswith("webhook")
        ]
    assert told["type"] == "webhook.deshabilitado"
    assert told["data"]["webhookId"] == gone
    assert told["data"]["motivo"] == "respuesta_410"
    assert told["data"]["desde"].endswith("Z")
    row = await webhooks.endpoint_row(gone)
    assert (row.disabled, row.disabled_reason) == (webhooks.core.now, "gone")
    states = [(each.endpoint, each.state) for each in await webhooks.messages()]
    assert [state for endpoint, state in states if endpoint == gone] == [
        "withdrawn"
    ] * 2
    assert {state for endpoint, state in states if endpoint == other} == {"delivered"}
    assert "webhook.disabled" in await webhooks.core.audited()


async def test_disabled_integrator_leaves_nothing_to_be_sent(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """What waits is withdrawn, and stays so; others' messages are left."""
    whose = await webhooks.core.integrator()
    other = await webhooks.core.add_integrator("otro")
    ours = await webhooks.endpoint(receiver.url)
    await webhooks.endpoint(receiver.url, whose=other)
    for each in (whose, other):
        await webhooks.happen(
            EventKind.API_KEY_FLAGGED, whose=each, key="k", reason="url"
        )
    await webhooks.hand_on()
    assert await webhooks.delivery().withdraw() == 0
    async with webhooks.core.store.write() as transaction:
        await transaction.connection.execute(
            update(integrator)
            .where(integrator.c.id == whose)
            .values(disabled=webhooks.core.now)
        )

    assert await webhooks.delivery().withdraw() == 1

    states = {each.endpoint: each.state for each in await webhooks.messages()}
    assert states.pop(ours) == "withdrawn"
    assert [*states.values()] == ["pending"]


async def test_endpoint_that_fails_for_days_is_disabled(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """After `disable_days`, at a try; one that succeeds in between begins anew."""
    endpoint = await webhooks.endpoint(receiver.url)
    receiver.status = 500
    for day in range(4):
        await webhooks.happen(EventKind.API_KEY_FLAGGED, key=str(day), reason="url")
        await webhooks.hand_on()
        await webhooks.deliver()
        webhooks.core.clock.forward(DAY_S)
    receiver.status = 200
    await webhooks.deliver()
    assert (await webhooks.endpoint_row(endpoint)).failing_since is None

    receiver.status = 500
    for day in range(6):
        row = await webhooks.endpoint_row(endpoint)
        assert row.disabled is None, day
        await webhooks.happen(EventKind.API_KEY_FLAGGED, key=str(day), reason="url")
        await webhooks.hand_on()
        await webhooks.deliver()
        webhooks.core.clock.forward(DAY_S)
    row = await webhooks.endpoint_row(endpoint)
    assert row.disabled_reason == "failing"
    assert await webhooks.deliver() == 0


async def test_one_that_hangs_holds_up_nobody(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """It has its share of the hands, and another endpoint gets all of its messages."""
    webhooks.options = {"concurrency": 16, "endpoint_concurrency": 2, "timeout_s": 60}
    await webhooks.endpoint(receiver.url)
    receiver.hangs = True
    async with receiving() as quick:
        await webhooks.endpoint(quick.url)
        for number in range(30):
            key = str(number)
            await webhooks.happen(EventKind.API_KEY_FLAGGED, key=key, reason="url")
        await webhooks.hand_on()
        stop = asyncio.Event()
        async with webhooks.sender() as sender:
            working = asyncio.create_task(sender.run(stop))
            await quick.wait_for(30)
            assert len(receiver.got) == 2
            receiver.hangs = False
            receiver.release.set()
            await receiver.wait_for(30)
            stop.set()
            await working
    assert {each.state for each in await webhooks.messages()} == {"delivered"}


async def test_integrator_whose_all_hang_holds_up_no_other(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """All of its endpoints together have a quarter of the hands."""
    webhooks.options = {"concurrency": 8, "endpoint_concurrency": 2, "timeout_s": 60}
    for _ in range(10):
        await webhooks.endpoint(receiver.url)
    receiver.hangs = True
    other = await webhooks.core.add_integrator("otro")
    async with receiving() as quick:
        await webhooks.endpoint(quick.url, whose=other)
        await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="url")
        await webhooks.happen(
            EventKind.API_KEY_FLAGGED, whose=other, key="l", reason="url"
        )
        await webhooks.hand_on()
        stop = asyncio.Event()
        async with webhooks.sender() as sender:
            working = asyncio.create_task(sender.run(stop))
            await quick.wait_for(1)
            assert len(receiver.got) <= 2
            receiver.hangs = False
            receiver.release.set()
            await receiver.wait_for(10)
            stop.set()
            await working
    assert {each.state for each in await webhooks.messages()} == {"delivered"}


async def test_secret_that_does_not_open_is_a_failed_try(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """It counts, is put off, and shows at the endpoint; nothing is sent."""
    endpoint = await webhooks.endpoint(receiver.url)
    await webhooks.change(endpoint, secret_sealed=b"of another key")
    await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="url")
    await webhooks.hand_on()

    assert await webhooks.deliver() == 1

    (message,), (attempt,) = await webhooks.messages(), await webhooks.attempts()
    assert (message.state, message.tries) == ("pending", 1)
    assert message.due > webhooks.core.now
    assert (attempt.status, attempt.failure) == (None, "secret")
    assert (await webhooks.endpoint_row(endpoint)).failing_since is not None
    assert receiver.got == []


async def test_try_is_settled_in_the_order_of_who_changes_an_endpoint(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """The endpoint first, its message then: the other way they wait for each other."""
    await webhooks.endpoint(receiver.url)
    await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="url")
    await webhooks.hand_on()
    delivery = webhooks.delivery()
    claim = await delivery.claim_next()
    assert claim is not None
    ran: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        ran.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        assert await delivery.settle(claim, Outcome(webhooks.core.now, timedelta()))
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    told = [each for each in ran if "webhook_" in each]
    assert "FROM webhook_endpoint" in told[0]
    assert told[1].startswith("UPDATE webhook_message")


async def test_words_of_a_later_version_are_left_as_they_are(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """A message is delivered and listed; an endpoint says why it is off."""
    core = webhooks.core
    endpoint, whose = await webhooks.endpoint(receiver.url), await core.integrator()
    await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="url")
    await webhooks.hand_on()
    async with core.store.write() as transaction:
        await transaction.connection.execute(
            update(webhook_message).values(kind="solicitud.otra")
        )
    assert await webhooks.deliver() == 1
    await webhooks.change(endpoint, disabled=core.now, disabled_reason="otra")

    log = DeliveryLog(core.store, core.clock)
    (logged,) = await log.matching(whose, endpoint, DeliveryFilter())
    assert wire.delivery(logged)["tipo"] == "solicitud.otra"
    assert webhook_words.event_word(logged.message.kind) == "solicitud.otra"
    async with core.store.read() as transaction:
        off = await endpoint_of(transaction, whose, endpoint)
    assert wire.endpoint(off)["motivo"] == "otra"


async def test_worker_that_was_overtaken_settles_nothing(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """Its lease ended, another one claimed: the message stands as that one says."""
    await webhooks.endpoint(receiver.url)
    await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="url")
    await webhooks.hand_on()
    slow, quick = webhooks.delivery(), webhooks.delivery("chores/h/2/p")
    first = await slow.claim_next()
    assert first is not None
    assert await quick.claim_next() is None
    webhooks.core.clock.forward(121)
    second = await quick.claim_next()
    assert second is not None
    assert second.fence == first.fence + 1

    assert not await slow.renew(first)
    async with webhooks.sender() as sender:
        with pytest.raises(FencedOffError):
            await sender.send(first)
        assert (await webhooks.messages())[0].state == "pending"
        await sender.send(second)
    assert (await webhooks.messages())[0].state == "delivered"
    assert len(await webhooks.attempts()) == 1


async def test_next_start_of_a_slot_takes_over_at_once(webhooks: Webhooks) -> None:
    """What a dead process had in hand does not wait for its lease."""
    await webhooks.endpoint("https://192.0.2.1/")
    await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="url")
    await webhooks.hand_on()
    assert await webhooks.delivery("chores/h/1/dead").claim_next() is not None
    assert await webhooks.delivery("chores/h/1/next").claim_next() is None

    assert await webhooks.delivery("chores/h/1/next").release_own() == 1
    assert await webhooks.delivery("chores/h/1/next").claim_next() is not None


async def test_what_was_sent_is_forgotten_in_time(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """With its tries, `kept_days` later; what is to be sent stays."""
    endpoint = await webhooks.endpoint(receiver.url)
    await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="url")
    await webhooks.hand_on()
    await webhooks.deliver()
    webhooks.core.clock.forward(DAY_S)
    await webhooks.happen(EventKind.API_KEY_FLAGGED, key="l", reason="url")
    await webhooks.hand_on()
    webhooks.core.clock.forward(29 * DAY_S)
    assert await webhooks.delivery().forget() == 0
    webhooks.core.clock.forward(2 * DAY_S)
    assert await webhooks.delivery().forget() == 1

    (left,) = await webhooks.messages()
    assert (left.endpoint, left.state) == (endpoint, "pending")
    assert await webhooks.attempts() == []
