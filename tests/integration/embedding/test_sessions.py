"""Sessions of the frame on both databases: opened, matched, completed, expired."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from appliance.core.database import tables
from appliance.domain.errors import ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.integrators.integrators import EmbedSession, FlagReason, PageKind
from appliance.domain.vocab import Environment, EventKind
from appliance.embedding.session import Sessions
from tests.support.factories.integrator_services import Desk
from tests.support.factories.integrators import (
    OPERATOR,
    new_document,
    new_key,
    new_person,
    new_request,
    new_session,
    open_acme,
    refused,
    signed_session,
    sweeping,
)

ORIGIN = "https://app.example"


@pytest.fixture
async def desk(tmp_path: Path, each_url: str) -> AsyncIterator[Desk]:
    """Services on a fresh database, with the integrator `acme`."""
    async with open_acme(tmp_path, each_url) as made:
        yield made


# -- sessions --------------------------------------------------------------------


async def test_session_opens_by_code_or_id_of_its_own_integrator(desk: Desk) -> None:
    """A key opens sessions of its integrator, however that is named."""
    other = await desk.integrators.create(OPERATOR, "other", "Other")
    acme = await desk.integrators.get("acme")
    key = await new_key(desk)

    for named in ("acme", acme.id):
        await desk.sessions.open(named, key)

    for named in ("other", other.id, "", "ACME"):
        opening = desk.sessions.open(named, key)
        assert await refused(opening) is ErrorCode.API_KEY_INVALID


async def test_token_is_random_and_kept_as_a_hash(desk: Desk) -> None:
    """256 bits that stand nowhere in the record."""
    key = await new_key(desk)
    tokens = [(await desk.sessions.open("acme", key)).token for _ in range(3)]

    assert len({*tokens}) == 3
    assert all(len(token) == 43 for token in tokens)
    async with desk.store._engines.reader.connect() as connection:
        rows = (await connection.execute(tables.embed_session.select())).all()
    assert not any(token in repr(rows) for token in tokens)


async def test_session_lives_1800_seconds_sharp(desk: Desk) -> None:
    """At 1,799 s the bearer works, at 1,800 it does not."""
    opened = await desk.sessions.open("acme", await new_key(desk))
    assert opened.valid_until == desk.clock.now() + timedelta(seconds=1800)
    desk.clock.forward(1799)

    bearer = (await desk.sessions.exchange(opened.token)).bearer
    await desk.sessions.by_bearer(bearer)
    page = await desk.sessions.page(opened.token, None)
    assert page.kind is PageKind.LIVE

    desk.clock.forward(1)
    for work in (
        desk.sessions.exchange(opened.token),
        desk.sessions.by_bearer(bearer),
    ):
        assert await refused(work) is ErrorCode.SESSION_TOKEN_EXPIRED
    page = await desk.sessions.page(opened.token, None)
    assert page.kind is PageKind.EXPIRED


async def test_page_tells_the_integrators_origins(desk: Desk) -> None:
    """By token and by public id alike; an expired one is still known a day."""
    await desk.integrators.add_domain(OPERATOR, "acme", ORIGIN)
    opened = await desk.sessions.open("acme", await new_key(desk))

    page = await desk.sessions.page(opened.token, None)

    assert page.kind is PageKind.LIVE
    assert page.origins == (ORIGIN,)
    assert page.integrator_name == "ACME S.A."
    assert page.environment is Environment.PREPROD
    assert page.event_prefix == "svc"
    assert await desk.sessions.page(None, page.session_public_id) == page
    desk.clock.forward(1800 + 86_400)
    await sweeping(desk).forget()
    late = await desk.sessions.page(opened.token, None)
    assert late == replace(page, kind=PageKind.EXPIRED)
    desk.clock.forward(1)
    await sweeping(desk).forget()
    gone = await desk.sessions.page(opened.token, None)
    assert gone.kind is PageKind.UNKNOWN


@pytest.mark.parametrize("token", [None, "", "x", "x" * 43, "á" * 43, "x" * 10_000])
async def test_unknown_token_is_an_unknown_page(desk: Desk, token: str | None) -> None:
    """Whatever is no token of ours tells nothing."""
    page = await desk.sessions.page(token, token)

    assert page.kind is PageKind.UNKNOWN
    assert page.origins == ()
    assert page.integrator_code == ""
    if token is not None:
        exchanging = desk.sessions.exchange(token)
        assert await refused(exchanging) is ErrorCode.SESSION_TOKEN_INVALID


async def test_later_exchange_supersedes_the_earlier_bearer(desk: Desk) -> None:
    """A reloaded page takes the session over; the old page is told so."""
    opened = await desk.sessions.open("acme", await new_key(desk))
    first = await desk.sessions.exchange(opened.token)

    second = await desk.sessions.exchange(opened.token)

    old = desk.sessions.by_bearer(first.bearer)
    assert await refused(old) is ErrorCode.SESSION_SUPERSEDED
    assert (await desk.sessions.by_bearer(second.bearer)).id == first.session.id
    forged = desk.sessions.by_bearer(f"{'0' * 24}.{'x' * 43}")
    assert await refused(forged) is ErrorCode.SESSION_TOKEN_INVALID
    assert first.bearer not in repr(first)


async def test_token_and_key_of_the_other_environment_are_invalid(
    desk: Desk,
) -> None:
    """PREPROD's keys and tokens open nothing in PROD, on a copied record too."""
    key = await new_key(desk)
    opened = await desk.sessions.open("acme", key)
    prod = desk.settings.model_copy(
        update={"environment": Environment.PROD, "trial": False}
    )
    there = Sessions(desk.store, desk.lookup, desk.clock, prod)

    assert await refused(there.open("acme", key)) is ErrorCode.API_KEY_ENVIRONMENT
    exchanging = there.exchange(opened.token)
    assert await refused(exchanging) is ErrorCode.SESSION_TOKEN_INVALID
    page = await there.page(opened.token, None)
    assert (page.kind, page.environment) == (PageKind.UNKNOWN, Environment.PROD)


async def test_key_from_a_browser_or_an_address_is_flagged(desk: Desk) -> None:
    """The key is marked each time, the audit told when it is news."""
    key = await new_key(desk)
    for _ in range(2):
        opening = desk.sessions.open("acme", key, from_browser=True)
        assert await refused(opening) is ErrorCode.API_KEY_IN_BROWSER
    await desk.sessions.flag_in_url(["acme", key])

    (view,) = await desk.integrators.keys("acme")
    assert view.flag_reason is FlagReason.URL
    assert view.flagged == desk.clock.now()
    events = await desk.audited(EventKind.API_KEY_FLAGGED)
    assert [event.detail["reason"] for event in events] == ["browser", "url"]
    nobody = desk.sessions.open("acme", "rbk_test_x", from_browser=True)
    assert await refused(nobody) is ErrorCode.API_KEY_IN_BROWSER


# -- how a session goes on ---------------------------------------------------------


async def test_same_init_changes_nothing_and_new_content_replaces(
    desk: Desk,
) -> None:
    """Hosts repeat init; the last one before the code holds."""
    session = await new_session(desk)
    person = await new_person(desk)
    first = await desk.progress.init(session, "n1", "k1", "1" * 64)
    known = await desk.progress.set_person(session, person)

    assert await desk.progress.init(session, "n1", "k1", "1" * 64) == known
    second = await desk.progress.init(session, "n2", None, "2" * 64)

    assert (first.nonce, first.idem_key) == ("n1", "k1")
    assert (second.nonce, second.idem_key, second.person) == ("n2", None, None)
    assert len(await desk.audited(EventKind.SESSION_INIT)) == 2


async def test_new_content_after_the_code_is_in_use(desk: Desk) -> None:
    """Once the signer is proven, only the same init is taken."""
    session = await new_session(desk)
    person = await new_person(desk)
    await desk.progress.init(session, "n1", None, "1" * 64)
    await desk.progress.set_person(session, person)
    proven = await desk.progress.set_otp(session, person)

    assert await desk.progress.init(session, "n1", None, "1" * 64) == proven
    for work in (
        desk.progress.init(session, "n2", None, "2" * 64),
        desk.progress.set_person(session, None),
    ):
        assert await refused(work) is ErrorCode.SESSION_IN_USE


async def test_code_of_another_than_the_matched_person_is_refused(
    desk: Desk,
) -> None:
    """A code proves whom the session was matched with, nobody else."""
    session = await new_session(desk)
    matched = await new_person(desk)
    other = await new_person(desk, "20267565393")
    await desk.progress.set_person(session, matched)

    proving = desk.progress.set_otp(session, other)

    assert await refused(proving) is ErrorCode.SESSION_IN_USE


async def test_document_is_replaced_until_there_is_a_request(desk: Desk) -> None:
    """A document may change until it is being signed; one request holds."""
    session = await new_session(desk)
    person = await new_person(desk)
    document = await new_document(desk, session)
    early = desk.progress.set_request(session, await new_request(desk, session, person))
    assert await refused(early) is ErrorCode.SESSION_IN_USE
    loaded = await desk.progress.set_document(session, document, "a.pdf")
    assert (loaded.document, loaded.document_name) == (document, "a.pdf")
    await desk.progress.set_document(session, document, "b.pdf")
    await desk.progress.set_person(session, person)
    await desk.progress.set_otp(session, person)
    request = await new_request(desk, session, person)

    bound = await desk.progress.set_request(session, request)

    assert bound.request == request
    assert await desk.progress.set_request(session, request) == bound
    for work in (
        desk.progress.set_document(session, document, "c.pdf"),
        desk.progress.set_request(session, RequestId(request + 1)),
    ):
        assert await refused(work) is ErrorCode.SESSION_IN_USE


async def test_completion_is_told_the_same_ever_after(desk: Desk) -> None:
    """Of two that tell of one signature, both tell what the first did."""
    session = await signed_session(desk, await new_session(desk))
    desk.clock.forward(3600)

    told = await desk.progress.complete(session, {"eventId": "e2"})

    assert told == {"eventId": "e1", "document": {"size": 1}}
    assert len(await desk.audited(EventKind.SESSION_COMPLETED)) == 1


async def test_completion_without_a_request_is_refused(desk: Desk) -> None:
    """Nothing is told of a signature that cannot be."""
    session = await new_session(desk)

    completing = desk.progress.complete(session, {"eventId": "e1"})

    assert await refused(completing) is ErrorCode.SESSION_IN_USE


async def test_steps_of_an_expired_session_are_refused(desk: Desk) -> None:
    """What comes after the time is told that the session has expired."""
    session = await new_session(desk)
    document = await new_document(desk, session)
    desk.clock.forward(1800)

    for work in (
        desk.progress.init(session, "n", None, "1" * 64),
        desk.progress.set_document(session, document, "a.pdf"),
        desk.progress.set_person(session, None),
    ):
        assert await refused(work) is ErrorCode.SESSION_TOKEN_EXPIRED


async def test_of_many_tabs_one_request_is_bound(desk: Desk) -> None:
    """Tabs that race bind one request between them."""
    session = await new_session(desk)
    person = await new_person(desk)
    await desk.progress.set_person(session, person)
    await desk.progress.set_otp(session, person)
    requests = [await new_request(desk, session, person) for _ in range(4)]

    done = await asyncio.gather(
        *(desk.progress.set_request(session, request) for request in requests),
        return_exceptions=True,
    )

    assert sum(isinstance(one, EmbedSession) for one in done) == 1
