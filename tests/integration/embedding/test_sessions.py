"""Sessions of the frame on both databases: opened, matched, completed, expired."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from appliance.database import tables
from appliance.domain.errors import ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.integrators.integrators import EmbedSession, FlagReason, PageKind
from appliance.domain.vocab import Environment, EventKind
from appliance.embedding.session import Sessions
from tests.integration.integrators.acme import (
    OPERATOR,
    new_document,
    new_key,
    new_person,
    new_request,
    new_session,
    open_acme,
    refused,
    set_otp,
    signed_session,
    sweeping,
)
from tests.support.installation.services import Services

ORIGIN = "https://app.example"


@pytest.fixture
async def integrator_services(tmp_path: Path, each_url: str) -> AsyncIterator[Services]:
    """Services on a fresh database, with the integrator `acme`."""
    async with open_acme(tmp_path, each_url) as made:
        yield made


# -- sessions --------------------------------------------------------------------


async def test_session_opens_by_code_or_id_of_its_own_integrator(
    integrator_services: Services,
) -> None:
    """A key opens sessions of its integrator, however that is named."""
    other = await integrator_services.integrators.create(OPERATOR, "other", "Other")
    acme = await integrator_services.integrators.get("acme")
    key = await new_key(integrator_services)

    for named in ("acme", acme.id):
        await integrator_services.sessions.open(named, key)

    for named in ("other", other.id, "", "ACME"):
        opening = integrator_services.sessions.open(named, key)
        assert await refused(opening) is ErrorCode.API_KEY_INVALID


async def test_token_is_random_and_kept_as_a_hash(
    integrator_services: Services,
) -> None:
    """256 bits that stand nowhere in the record."""
    key = await new_key(integrator_services)
    tokens = [
        (await integrator_services.sessions.open("acme", key)).token for _ in range(3)
    ]

    assert len({*tokens}) == 3
    assert all(len(token) == 43 for token in tokens)
    async with integrator_services.store._engines.reader.connect() as connection:
        rows = (await connection.execute(tables.embed_session.select())).all()
    assert not any(token in repr(rows) for token in tokens)


async def test_session_lives_1800_seconds_sharp(
    integrator_services: Services,
) -> None:
    """At 1,799 s the bearer works, at 1,800 it does not."""
    opened = await integrator_services.sessions.open(
        "acme", await new_key(integrator_services)
    )
    assert opened.valid_until == integrator_services.clock.now() + timedelta(
        seconds=1800
    )
    integrator_services.clock.forward(1799)

    bearer = (await integrator_services.sessions.exchange(opened.token)).bearer
    await integrator_services.sessions.by_bearer(bearer)
    page = await integrator_services.sessions.page(opened.token, None)
    assert page.kind is PageKind.LIVE

    integrator_services.clock.forward(1)
    for work in (
        integrator_services.sessions.exchange(opened.token),
        integrator_services.sessions.by_bearer(bearer),
    ):
        assert await refused(work) is ErrorCode.SESSION_TOKEN_EXPIRED
    page = await integrator_services.sessions.page(opened.token, None)
    assert page.kind is PageKind.EXPIRED


async def test_page_tells_the_integrators_origins(
    integrator_services: Services,
) -> None:
    """By token and by public id alike; an expired one is still known a day."""
    await integrator_services.integrators.add_domain(OPERATOR, "acme", ORIGIN)
    opened = await integrator_services.sessions.open(
        "acme", await new_key(integrator_services)
    )

    page = await integrator_services.sessions.page(opened.token, None)

    assert page.kind is PageKind.LIVE
    assert page.origins == (ORIGIN,)
    assert page.integrator_name == "ACME S.A."
    assert page.environment is Environment.PREPROD
    assert page.event_prefix == "svc"
    assert await integrator_services.sessions.page(None, page.session_public_id) == page
    integrator_services.clock.forward(1800 + 86_400)
    await sweeping(integrator_services).forget()
    late = await integrator_services.sessions.page(opened.token, None)
    assert late == replace(page, kind=PageKind.EXPIRED)
    integrator_services.clock.forward(1)
    await sweeping(integrator_services).forget()
    gone = await integrator_services.sessions.page(opened.token, None)
    assert gone.kind is PageKind.UNKNOWN


@pytest.mark.parametrize("token", [None, "", "x", "x" * 43, "á" * 43, "x" * 10_000])
async def test_unknown_token_is_an_unknown_page(
    integrator_services: Services, token: str | None
) -> None:
    """Whatever is no token of ours tells nothing."""
    page = await integrator_services.sessions.page(token, token)

    assert page.kind is PageKind.UNKNOWN
    assert page.origins == ()
    assert page.integrator_code == ""
    if token is not None:
        exchanging = integrator_services.sessions.exchange(token)
        assert await refused(exchanging) is ErrorCode.SESSION_TOKEN_INVALID


async def test_later_exchange_supersedes_the_earlier_bearer(
    integrator_services: Services,
) -> None:
    """A reloaded page takes the session over; the old page is told so."""
    opened = await integrator_services.sessions.open(
        "acme", await new_key(integrator_services)
    )
    first = await integrator_services.sessions.exchange(opened.token)

    second = await integrator_services.sessions.exchange(opened.token)

    old = integrator_services.sessions.by_bearer(first.bearer)
    assert await refused(old) is ErrorCode.SESSION_SUPERSEDED
    assert (
        await integrator_services.sessions.by_bearer(second.bearer)
    ).id == first.session.id
    forged = integrator_services.sessions.by_bearer(f"{'0' * 24}.{'x' * 43}")
    assert await refused(forged) is ErrorCode.SESSION_TOKEN_INVALID
    assert first.bearer not in repr(first)


async def test_token_and_key_of_the_other_environment_are_invalid(
    integrator_services: Services,
) -> None:
    """PREPROD's keys and tokens open nothing in PROD, on a copied record too."""
    key = await new_key(integrator_services)
    opened = await integrator_services.sessions.open("acme", key)
    prod = integrator_services.settings.model_copy(
        update={"environment": Environment.PROD, "trial": False}
    )
    there = Sessions(
        integrator_services.store,
        integrator_services.lookup,
        integrator_services.clock,
        prod,
    )

    assert await refused(there.open("acme", key)) is ErrorCode.API_KEY_ENVIRONMENT
    exchanging = there.exchange(opened.token)
    assert await refused(exchanging) is ErrorCode.SESSION_TOKEN_INVALID
    page = await there.page(opened.token, None)
    assert (page.kind, page.environment) == (PageKind.UNKNOWN, Environment.PROD)


async def test_key_from_a_browser_or_an_address_is_flagged(
    integrator_services: Services,
) -> None:
    """The key is marked each time, the audit told when it is news."""
    key = await new_key(integrator_services)
    for _ in range(2):
        opening = integrator_services.sessions.open("acme", key, from_browser=True)
        assert await refused(opening) is ErrorCode.API_KEY_IN_BROWSER
    await integrator_services.api_keys.flag_in_url(["acme", key])

    (view,) = await integrator_services.integrators.keys("acme")
    assert view.flag_reason is FlagReason.URL
    assert view.flagged == integrator_services.clock.now()
    events = await integrator_services.audited(EventKind.API_KEY_FLAGGED)
    assert [event.detail["reason"] for event in events] == ["browser", "url"]
    nobody = integrator_services.sessions.open("acme", "rbk_test_x", from_browser=True)
    assert await refused(nobody) is ErrorCode.API_KEY_IN_BROWSER


# -- how a session goes on ---------------------------------------------------------


async def test_same_init_changes_nothing_and_new_content_replaces(
    integrator_services: Services,
) -> None:
    """Hosts repeat init; the last one before the code holds."""
    session = await new_session(integrator_services)
    person = await new_person(integrator_services)
    first = await integrator_services.progress.init(session, "n1", "k1", "1" * 64)
    known = await integrator_services.progress.set_person(session, person)

    assert (
        await integrator_services.progress.init(session, "n1", "k1", "1" * 64) == known
    )
    second = await integrator_services.progress.init(session, "n2", None, "2" * 64)

    assert (first.nonce, first.idem_key) == ("n1", "k1")
    assert (second.nonce, second.idem_key, second.person) == ("n2", None, None)
    assert len(await integrator_services.audited(EventKind.SESSION_INIT)) == 2


async def test_new_content_after_the_code_is_in_use(
    integrator_services: Services,
) -> None:
    """Once the signer is proven, only the same init is taken."""
    session = await new_session(integrator_services)
    person = await new_person(integrator_services)
    await integrator_services.progress.init(session, "n1", None, "1" * 64)
    await integrator_services.progress.set_person(session, person)
    proven = await set_otp(integrator_services, session, person)

    assert (
        await integrator_services.progress.init(session, "n1", None, "1" * 64) == proven
    )
    for work in (
        integrator_services.progress.init(session, "n2", None, "2" * 64),
        integrator_services.progress.set_person(session, None),
    ):
        assert await refused(work) is ErrorCode.SESSION_IN_USE


async def test_code_of_another_than_the_matched_person_is_refused(
    integrator_services: Services,
) -> None:
    """A code proves whom the session was matched with, nobody else."""
    session = await new_session(integrator_services)
    matched = await new_person(integrator_services)
    other = await new_person(integrator_services, "20267565393")
    await integrator_services.progress.set_person(session, matched)

    proving = set_otp(integrator_services, session, other)

    assert await refused(proving) is ErrorCode.SESSION_IN_USE


async def test_document_is_replaced_until_there_is_a_request(
    integrator_services: Services,
) -> None:
    """A document may change until it is being signed; one request holds."""
    session = await new_session(integrator_services)
    person = await new_person(integrator_services)
    document = await new_document(integrator_services, session)
    early = integrator_services.progress.set_request(
        session, await new_request(integrator_services, session, person)
    )
    assert await refused(early) is ErrorCode.SESSION_IN_USE
    loaded = await integrator_services.progress.set_document(session, document, "a.pdf")
    assert (loaded.document, loaded.document_name) == (document, "a.pdf")
    await integrator_services.progress.set_document(session, document, "b.pdf")
    await integrator_services.progress.set_person(session, person)
    await set_otp(integrator_services, session, person)
    request = await new_request(integrator_services, session, person)

    bound = await integrator_services.progress.set_request(session, request)

    assert bound.request == request
    assert await integrator_services.progress.set_request(session, request) == bound
    for work in (
        integrator_services.progress.set_document(session, document, "c.pdf"),
        integrator_services.progress.set_request(session, RequestId(request + 1)),
    ):
        assert await refused(work) is ErrorCode.SESSION_IN_USE


async def test_completion_is_told_the_same_ever_after(
    integrator_services: Services,
) -> None:
    """Of two that tell of one signature, both tell what the first did."""
    session = await signed_session(
        integrator_services, await new_session(integrator_services)
    )
    integrator_services.clock.forward(3600)

    told = await integrator_services.progress.complete(session, {"eventId": "e2"})

    assert told == {"eventId": "e1", "document": {"size": 1}}
    assert len(await integrator_services.audited(EventKind.SESSION_COMPLETED)) == 1


async def test_completion_without_a_request_is_refused(
    integrator_services: Services,
) -> None:
    """Nothing is told of a signature that cannot be."""
    session = await new_session(integrator_services)

    completing = integrator_services.progress.complete(session, {"eventId": "e1"})

    assert await refused(completing) is ErrorCode.SESSION_IN_USE


async def test_steps_of_an_expired_session_are_refused(
    integrator_services: Services,
) -> None:
    """What comes after the time is told that the session has expired."""
    session = await new_session(integrator_services)
    document = await new_document(integrator_services, session)
    integrator_services.clock.forward(1800)

    for work in (
        integrator_services.progress.init(session, "n", None, "1" * 64),
        integrator_services.progress.set_document(session, document, "a.pdf"),
        integrator_services.progress.set_person(session, None),
    ):
        assert await refused(work) is ErrorCode.SESSION_TOKEN_EXPIRED


async def test_of_many_tabs_one_request_is_bound(
    integrator_services: Services,
) -> None:
    """Tabs that race bind one request between them."""
    session = await new_session(integrator_services)
    person = await new_person(integrator_services)
    await integrator_services.progress.set_person(session, person)
    await set_otp(integrator_services, session, person)
    requests = [
        await new_request(integrator_services, session, person) for _ in range(4)
    ]

    done = await asyncio.gather(
        *(
            integrator_services.progress.set_request(session, request)
            for request in requests
        ),
        return_exceptions=True,
    )

    assert sum(isinstance(one, EmbedSession) for one in done) == 1
