"""Integrators' webhooks, on both databases: made, changed, removed."""

from datetime import timedelta

import pytest

from appliance.database import tables
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import new_id
from appliance.domain.vocab import MessageState, WebhookDisabled, WebhookEvent
from appliance.settings import WebhookSettings
from appliance.webhooks.endpoint_address import AddressRules, check_address
from appliance.webhooks.endpoints import ENDPOINTS_AT_MOST, OVERLAP, EndpointChange
from tests.integration.webhooks.administration import (
    OPERATOR,
    URL,
    WebhookAdministration,
)
from tests.support.installation.record import CoreFixture


@pytest.fixture
def admin(core: CoreFixture) -> WebhookAdministration:
    """The use cases on each database."""
    return WebhookAdministration.of(core)


async def test_secret_is_shown_once_and_kept_sealed(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """It stands nowhere in the record as it is, and opens in its own place."""
    whose = await core.integrator()
    made = await admin.endpoints.create(
        OPERATOR, whose, URL, "", [WebhookEvent.REQUEST_SIGNED]
    )

    assert await admin.endpoints.list(whose) == [made.endpoint]
    assert (made.endpoint.label, made.endpoint.is_on) == ("app.example", True)
    assert await admin.secrets(made.endpoint.id) == (made.secret, None)
    async with core.store.read() as transaction:
        query = tables.webhook_endpoint.select()
        rows = (await transaction.connection.execute(query)).all()
    bare = made.secret.removeprefix("whsec_")
    assert bare not in repr(rows)
    assert bare not in repr(await core.audit())
    assert bare not in repr(made)
    assert "webhook.created" in await core.audited()


@pytest.mark.parametrize(
    "url",
    [
        "http://app.example/rubrica",
        "ftp://app.example/",
        "https://",
        "https:///rubrica",
        "https://ana:clave@app.example/",
        "https://app.example@otro.example/",
        "https://app.example/#parte",
        "https://app.example:0/",
        "https://app.example:99999/",
        "https://app.example/con espacio",
        "https://ñandú_.example/",
        "https://app\uff0eexample/",
        "https://app.example/\n",
        "https://app.example/" + "a" * 2048,
        "app.example",
        "",
    ],
)
async def test_address_that_no_webhook_has(sqlite_core: CoreFixture, url: str) -> None:
    """Of another scheme, with a user's name, a fragment, or none at all."""
    admin = WebhookAdministration.of(sqlite_core)
    whose = await sqlite_core.integrator()

    with pytest.raises(FieldInvalidError) as caught:
        await admin.made(whose, url)

    assert caught.value.field == "url"
    assert await admin.endpoints.list(whose) == []


async def test_http_where_the_settings_allow_it(sqlite_core: CoreFixture) -> None:
    """For development, and for networks that are one's own."""
    admin = WebhookAdministration.of(sqlite_core, ("http", "https"), ["127.0.0.0/8"])

    made = await admin.made(await sqlite_core.integrator(), "http://127.0.0.1:3000/x")

    assert made.endpoint.url == "http://127.0.0.1:3000/x"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "10.1.2.3", "192.168.0.7", "169.254.169.254", "100.64.0.1",
        "0.1.2.3", "127.1", "2130706433", "0177.0.0.1", "0x7f.1", "127.0.0.1.",
        "[::1]", "[fe80::1]", "[fd00::1]", "[::ffff:10.0.0.1]", "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]", "localhost", "LOCALHOST", "app.localhost", "localhost.",
    ],
)  # fmt: skip
async def test_private_address_is_refused_as_it_is_given(
    sqlite_core: CoreFixture, host: str
) -> None:
    """In whatever form, at making and at a change; a name is looked at when called."""
    admin = WebhookAdministration.of(sqlite_core)
    whose = await sqlite_core.integrator()
    url = f"https://{host}:8443/rubrica"

    with pytest.raises(FieldInvalidError) as caught:
        await admin.made(whose, url)
    assert caught.value.field == "url"
    assert "private" in str(caught.value.extras["allowed"])
    made = (await admin.made(whose, "https://interno.example/")).endpoint.id
    with pytest.raises(FieldInvalidError):
        await admin.endpoints.change(OPERATOR, whose, made, EndpointChange(url=url))
    for public in ("https://1.1.1.1/", "https://[2606:4700:4700::1111]/"):
        await admin.endpoints.change(OPERATOR, whose, made, EndpointChange(url=public))


def test_private_addresses_that_the_settings_allow() -> None:
    """Their own networks; with a proxy all, for it says where it goes."""
    own = AddressRules(
        ("https",), WebhookSettings(allowed_networks=("10.1.0.0/16",)).networks
    )
    proxied = AddressRules(
        ("https",), WebhookSettings(proxy="http://proxy:3128").networks
    )

    assert check_address("https://10.1.2.3/", own) == "https://10.1.2.3/"
    with pytest.raises(FieldInvalidError):
        check_address("https://10.2.2.3/", own)
    assert check_address("https://localhost/", proxied) == "https://localhost/"


async def test_integrator_has_so_many_and_no_more(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """A removed one counts no more; another integrator's never did."""
    whose, other = await core.integrator(), await core.add_integrator("otro")
    made = [await admin.made(whose) for _ in range(ENDPOINTS_AT_MOST)]

    with pytest.raises(ApplianceError) as caught:
        await admin.made(whose)
    assert caught.value.code is ErrorCode.WEBHOOKS_TOO_MANY
    await admin.made(other)
    await admin.endpoints.remove(OPERATOR, whose, made[0].endpoint.id)
    await admin.made(whose)

    assert len(await admin.endpoints.list(whose)) == ENDPOINTS_AT_MOST


async def test_former_secret_signs_for_a_day(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """It moves to its own place, until then."""
    whose = await core.integrator()
    made = await admin.made(whose)
    endpoint = made.endpoint.id

    second = await admin.endpoints.rotate(OPERATOR, whose, endpoint)

    assert await admin.secrets(endpoint) == (second.secret, made.secret)
    assert second.secret != made.secret
    assert second.endpoint.former_until == core.now + OVERLAP
    assert await admin.endpoints.get(whose, endpoint) == second.endpoint
    assert (await core.audited())[-1] == "webhook.rotated"


async def test_leaked_secret_is_over_at_once(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """With it goes the one that signed for its day."""
    whose = await core.integrator()
    endpoint = (await admin.made(whose)).endpoint.id
    await admin.endpoints.rotate(OPERATOR, whose, endpoint)

    last = await admin.endpoints.rotate(OPERATOR, whose, endpoint, at_once=True)

    assert await admin.secrets(endpoint) == (last.secret, None)
    assert last.endpoint.former_until == core.now


async def test_disabled_one_is_told_nothing(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """What is to be sent is withdrawn; what was sent stays as it is."""
    whose = await core.integrator()
    endpoint = (await admin.made(whose)).endpoint.id
    waiting = await admin.sent(endpoint, MessageState.PENDING)
    done = await admin.sent(endpoint)

    off = await admin.endpoints.change(
        OPERATOR, whose, endpoint, EndpointChange(is_on=False)
    )

    assert (off.disabled, off.disabled_reason) == (
        core.now,
        WebhookDisabled.BY_INTEGRATOR,
    )
    assert await admin.endpoints.pending(whose) == {}
    states = [
        (await admin.log.get(whose, endpoint, each.id)).message.state
        for each in (waiting, done)
    ]
    assert states == [MessageState.WITHDRAWN, MessageState.DELIVERED]
    with pytest.raises(ApplianceError) as caught:
        await admin.endpoints.test(OPERATOR, whose, endpoint)
    assert caught.value.code is ErrorCode.WEBHOOK_DISABLED


async def test_enabled_one_begins_anew(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """It failed since never; nothing else of it changes, and once is enough."""
    whose = await core.integrator()
    made = (await admin.made(whose)).endpoint
    async with core.store.write() as transaction:
        await transaction.connection.execute(
            tables.webhook_endpoint.update().values(
                disabled=core.now,
                disabled_reason=WebhookDisabled.FAILING,
                failing_since=core.now - timedelta(days=5),
            )
        )
    on = EndpointChange(is_on=True)

    assert await admin.endpoints.change(OPERATOR, whose, made.id, on) == made
    told = len(await core.audited())
    await admin.endpoints.change(OPERATOR, whose, made.id, on)

    assert await admin.endpoints.get(whose, made.id) == made
    assert len(await core.audited()) == told


async def test_change_leaves_what_is_not_named(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """Each in its turn, and none of a removed one."""
    whose = await core.integrator()
    endpoint = (await admin.made(whose)).endpoint.id
    wanted = (WebhookEvent.REQUEST_SIGNED, WebhookEvent.REQUEST_FAILED)

    await admin.endpoints.change(
        OPERATOR, whose, endpoint, EndpointChange(label="cobros")
    )
    await admin.endpoints.change(
        OPERATOR, whose, endpoint, EndpointChange(events=wanted)
    )
    found = await admin.endpoints.get(whose, endpoint)
    await admin.endpoints.remove(OPERATOR, whose, endpoint)

    assert (found.url, found.label, found.events) == (URL, "cobros", wanted)
    with pytest.raises(ApplianceError) as caught:
        await admin.endpoints.change(
            OPERATOR, whose, endpoint, EndpointChange(label="x")
        )
    assert caught.value.code is ErrorCode.WEBHOOK_NOT_FOUND


async def test_test_event_is_sent_whatever_was_chosen(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """It is pending at once, and tells of nothing that happened."""
    whose = await core.integrator()
    made = await admin.endpoints.create(
        OPERATOR, whose, URL, "", [WebhookEvent.REQUEST_SIGNED]
    )

    sent = await admin.endpoints.test(OPERATOR, whose, made.endpoint.id)

    logged = await admin.log.get(whose, made.endpoint.id, sent.id)
    assert logged.message == sent
    assert (sent.kind, sent.due) == (WebhookEvent.WEBHOOK_TEST, core.now)
    assert sent.state is MessageState.PENDING
    assert await admin.endpoints.pending(whose) == {made.endpoint.id: 1}


async def test_another_integrators_is_absent(
    core: CoreFixture, admin: WebhookAdministration
) -> None:
    """As absent as one that never was, whatever is asked of it."""
    whose, other = await core.integrator(), await core.add_integrator("otro")
    made = (await admin.made(whose)).endpoint
    change = EndpointChange(is_on=False)

    for endpoint in (made.id, new_id()):
        for asked in (
            admin.endpoints.get(other, endpoint),
            admin.endpoints.change(OPERATOR, other, endpoint, change),
            admin.endpoints.rotate(OPERATOR, other, endpoint),
            admin.endpoints.remove(OPERATOR, other, endpoint),
            admin.endpoints.test(OPERATOR, other, endpoint),
        ):
            with pytest.raises(ApplianceError) as caught:
                await asked
            assert caught.value.code is ErrorCode.WEBHOOK_NOT_FOUND

    assert await admin.endpoints.list(other) == []
    assert await admin.endpoints.get(whose, made.id) == made
