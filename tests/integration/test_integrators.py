"""Integrators, API keys, domains and sessions on both databases."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from appliance.domain.document import Inspection
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import DocumentId, PersonId, RequestId, new_id
from appliance.domain.integration import EmbedSession, FlagReason, PageKind
from appliance.domain.records.requests import NewRequest, StoredDocument
from appliance.domain.vocab import (
    Environment,
    EventKind,
    RequestState,
    VouchedBy,
)
from appliance.services.sessions import Sessions
from appliance.services.sweeping import Sweeping
from appliance.storage import tables
from appliance.storage.engines import open_engines
from appliance.storage.migrate import differences, migrate
from appliance.storage.store import SqlStore
from tests.fakes import MovingClock
from tests.parts.stores import Desk, desk_settings, open_desk

OPERATOR = "operator"
ORIGIN = "https://app.example"


@pytest.fixture(params=["sqlite", "postgresql"])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    """Services on a fresh database, with the integrator `acme`."""
    url = "sqlite"
    if request.param == "postgresql":
        url = request.getfixturevalue("migrated_url")
    async with open_desk(tmp_path, url) as made:
        await made.integrators.create(OPERATOR, "acme", "ACME S.A.")
        yield made


async def new_key(desk: Desk, code: str = "acme") -> str:
    """A fresh API key."""
    return (await desk.integrators.create_key(OPERATOR, code, "backend")).secret


async def new_session(desk: Desk) -> EmbedSession:
    """A session whose token is exchanged."""
    opened = await desk.sessions.open("acme", await new_key(desk))
    return (await desk.sessions.exchange(opened.token)).session


async def new_person(desk: Desk, cuil: str = "20055361682") -> PersonId:
    """Somebody invited."""
    made = await desk.invitations.invite(
        OPERATOR, cuil, "Ana Núñez", f"{cuil}@demo.example", VouchedBy.DEMO
    )
    return made.person


async def new_document(desk: Desk, session: EmbedSession) -> DocumentId:
    """A document of the session's integrator."""
    stored = StoredDocument(
        DocumentId(new_id()),
        session.integrator.id,
        "ab" * 32,
        Inspection(10, (), (), 0, None),
    )
    async with desk.store.write() as records:
        return (await records.documents.add(stored, desk.clock.now())).id


async def new_request(
    desk: Desk, session: EmbedSession, person: PersonId, origin: str = "sesion"
) -> RequestId:
    """A request of the session's integrator."""
    new = NewRequest(
        person=person,
        integrator=session.integrator.id,
        document=await new_document(desk, session),
        name="contrato.pdf",
        origin=origin,
        created=desk.clock.now(),
        expires=session.until,
    )
    async with desk.store.write() as records:
        return await records.requests.add(new)


async def refused(work: object) -> ErrorCode:
    """The code that an awaitable ends with."""
    with pytest.raises(ApplianceError) as caught:
        await work  # type: ignore[misc]  # an awaitable
    return caught.value.code


# -- tables ---------------------------------------------------------------------


async def test_migrations_make_the_tables_and_keep_rows(desk: Desk) -> None:
    """Migrations end in exactly the tables of the code, on both databases."""
    engines = open_engines(desk.settings)
    async with engines.reader.connect() as connection:
        assert await connection.run_sync(differences) == []
    await engines.dispose()


async def test_rows_of_the_first_version_get_the_defaults(tmp_path: Path) -> None:
    """An integrator recorded before this version is delivered as decided."""
    settings = desk_settings(tmp_path)
    await migrate(settings)
    engines = open_engines(settings)
    async with engines.writer.begin() as connection:
        await connection.execute(
            text(
                "INSERT INTO integrator (id, code, name, created)"
                " VALUES ('i', 'old', 'Old', '2026-01-01 00:00:00.000000')"
            )
        )
    await engines.dispose()

    store = SqlStore(open_engines(settings), MovingClock(), "test")
    async with store.read() as records:
        old = await records.integrators.get("old")
    await store.close()

    assert old is not None
    assert (old.delivery_limit_bytes, old.may_vouch) == (8_000_000, False)


# -- integrators ------------------------------------------------------------------


async def test_integrator_is_listed_and_changed_with_before_and_after(
    desk: Desk,
) -> None:
    """A change says in the audit what was and what is."""
    changed = await desk.integrators.change(
        OPERATOR, "acme", may_vouch=True, delivery_limit_bytes=1000
    )

    assert await desk.integrators.list() == [changed]
    (event,) = await desk.audited(EventKind.INTEGRATOR_CHANGED)
    assert event.integrator == changed.id
    assert event.detail["before"] == {
        "name": "ACME S.A.",
        "deliveryLimitBytes": 8_000_000,
        "mayVouch": False,
    }
    assert event.detail["after"] == {
        "name": "ACME S.A.",
        "deliveryLimitBytes": 1000,
        "mayVouch": True,
    }


async def test_integrator_code_is_unique_and_checked(desk: Desk) -> None:
    """A code is taken once, and only of the decided form."""
    create = desk.integrators.create
    assert await refused(create(OPERATOR, "acme", "x")) is ErrorCode.ALREADY_EXISTS
    for code in ("", "Acme", "a b", "-a", "a" * 41):
        assert await refused(create(OPERATOR, code, "x")) is ErrorCode.FIELD_INVALID
    assert await refused(create(OPERATOR, "b", "\n")) is ErrorCode.FIELD_INVALID


async def test_unknown_integrator_is_named_so(desk: Desk) -> None:
    """Every use case says that there is no such integrator."""
    integrators = desk.integrators
    for work in (
        integrators.get("nobody"),
        integrators.keys("nobody"),
        integrators.domains("nobody"),
        integrators.blocked_origins("nobody"),
        integrators.create_key(OPERATOR, "nobody", "x"),
        integrators.add_domain(OPERATOR, "nobody", ORIGIN),
    ):
        assert await refused(work) is ErrorCode.INTEGRATOR_NOT_FOUND


# -- keys -----------------------------------------------------------------------


async def test_key_is_shown_once_and_kept_as_a_hash(desk: Desk) -> None:
    """The key stands nowhere in the record, only its hint."""
    made = await desk.integrators.create_key(OPERATOR, "acme", "backend")

    (listed,) = await desk.integrators.keys("acme")
    assert listed == made.key
    async with desk.store._engines.reader.connect() as connection:
        rows = (await connection.execute(tables.api_key.select())).all()
    assert made.secret not in repr(rows)
    events = await desk.audited(EventKind.API_KEY_CREATED)
    assert made.secret not in repr(events)
    assert made.secret not in repr(made)


async def test_several_keys_work_side_by_side(desk: Desk) -> None:
    """An integrator has as many keys as it needs."""
    first, second = await new_key(desk), await new_key(desk)

    await desk.sessions.open("acme", first)
    await desk.sessions.open("acme", second)

    used = [key.last_used for key in await desk.integrators.keys("acme")]
    assert used == [desk.clock.now()] * 2


async def test_expired_key_is_refused_at_its_time(desk: Desk) -> None:
    """A key works until the moment it expires."""
    expires = desk.clock.now() + timedelta(hours=1)
    made = await desk.integrators.create_key(OPERATOR, "acme", "x", expires)

    desk.clock.forward(3599)
    await desk.sessions.open("acme", made.secret)
    desk.clock.forward(1)

    opening = desk.sessions.open("acme", made.secret)
    assert await refused(opening) is ErrorCode.API_KEY_INVALID


async def test_key_that_would_be_expired_is_not_made(desk: Desk) -> None:
    """An expiry in the past is refused."""
    with pytest.raises(FieldInvalidError):
        await desk.integrators.create_key(OPERATOR, "acme", "x", desk.clock.now())


async def test_rotated_key_works_until_the_overlap_ends(desk: Desk) -> None:
    """Old and new key work side by side, then the new one alone."""
    old = await desk.integrators.create_key(OPERATOR, "acme", "backend")
    before = await desk.sessions.open("acme", old.secret)

    new = await desk.integrators.rotate_key(OPERATOR, old.key.id, 600)

    desk.clock.forward(599)
    await desk.sessions.open("acme", old.secret)
    desk.clock.forward(1)
    opening = desk.sessions.open("acme", old.secret)
    assert await refused(opening) is ErrorCode.API_KEY_INVALID
    await desk.sessions.open("acme", new.secret)
    # A session of the old key goes on.
    await desk.sessions.exchange(before.token)
    (event,) = await desk.audited(EventKind.API_KEY_ROTATED)
    assert event.detail["successor"] == new.key.id
    assert event.detail["before"] != event.detail["after"]


async def test_successor_of_an_expiring_key_lives_as_long(desk: Desk) -> None:
    """Rotation keeps label and length of life."""
    expires = desk.clock.now() + timedelta(days=30)
    old = await desk.integrators.create_key(OPERATOR, "acme", "backend", expires)
    desk.clock.forward(86_400)

    new = await desk.integrators.rotate_key(OPERATOR, old.key.id, 0)

    assert new.key.label == "backend"
    assert new.key.expires == desk.clock.now() + timedelta(days=30)


async def test_key_that_is_over_is_not_rotated(desk: Desk) -> None:
    """Neither a revoked key nor one that is unknown has a successor."""
    made = await desk.integrators.create_key(OPERATOR, "acme", "x")
    await desk.integrators.revoke_key(OPERATOR, made.key.id)

    for key_id in (made.key.id, "nothing"):
        rotating = desk.integrators.rotate_key(OPERATOR, key_id, 0)
        assert await refused(rotating) is ErrorCode.API_KEY_NOT_FOUND


async def test_revoking_ends_unfinished_sessions_and_their_requests(
    desk: Desk,
) -> None:
    """What a revoked key opened is over at once; a picked request is not."""
    made = await desk.integrators.create_key(OPERATOR, "acme", "x")
    person = await new_person(desk)
    bearers, requests = [], []
    for origin in ("sesion", "operador"):
        opened = await desk.sessions.open("acme", made.secret)
        bearer = await desk.sessions.exchange(opened.token)
        session = await desk.progress.set_person(bearer.session, person)
        session = await desk.progress.set_otp(session, person)
        request = await new_request(desk, session, person, origin)
        await desk.progress.set_request(session, request)
        bearers.append(bearer.bearer)
        requests.append(request)

    assert await desk.integrators.revoke_key(OPERATOR, made.key.id) == 2

    for bearer_text in bearers:
        looking = desk.sessions.by_bearer(bearer_text)
        assert await refused(looking) is ErrorCode.SESSION_TOKEN_EXPIRED
    opening = desk.sessions.open("acme", made.secret)
    assert await refused(opening) is ErrorCode.API_KEY_INVALID
    desk.clock.forward(1)
    await sweeping(desk).expire_requests()
    async with desk.store.read() as records:
        views = [await records.requests.get(request) for request in requests]
    states = [view.state for view in views if view is not None]
    assert states == [RequestState.EXPIRED, RequestState.PENDING]
    assert len(await desk.audited(EventKind.SESSION_ENDED)) == 2


async def test_revoking_leaves_what_is_completed(desk: Desk) -> None:
    """A session that has signed can still tell so."""
    made = await desk.integrators.create_key(OPERATOR, "acme", "x")
    opened = await desk.sessions.open("acme", made.secret)
    bearer = await desk.sessions.exchange(opened.token)
    session = await signed_session(desk, bearer.session)

    assert await desk.integrators.revoke_key(OPERATOR, made.key.id) == 0

    again = await desk.sessions.by_bearer(bearer.bearer)
    assert again.completed == session.completed


# -- domains ---------------------------------------------------------------------


async def test_domain_is_kept_as_browsers_send_it(desk: Desk) -> None:
    """An origin is stored in its one form, once."""
    added = await desk.integrators.add_domain(OPERATOR, "acme", "HTTPS://App.Example/")

    assert await desk.integrators.domains("acme") == [added]
    assert added.origin == ORIGIN
    again = desk.integrators.add_domain(OPERATOR, "acme", ORIGIN)
    assert await refused(again) is ErrorCode.ALREADY_EXISTS
    (event,) = await desk.audited(EventKind.DOMAIN_ADDED)
    assert (event.detail["before"], event.detail["after"]) == ([], [ORIGIN])


async def test_two_integrators_may_have_one_origin(desk: Desk) -> None:
    """An origin is no integrator's own; one's being seen is not the other's."""
    await desk.integrators.create(OPERATOR, "other", "Other")
    for code in ("acme", "other"):
        await desk.integrators.add_domain(OPERATOR, code, ORIGIN)

    await desk.sessions.note_seen("acme", ORIGIN)

    (mine,) = await desk.integrators.domains("acme")
    (theirs,) = await desk.integrators.domains("other")
    assert (mine.seen, theirs.seen) == (desk.clock.now(), None)


async def test_domain_is_removed_once(desk: Desk) -> None:
    """What was taken back is gone, and the audit says what is left."""
    added = await desk.integrators.add_domain(OPERATOR, "acme", ORIGIN)
    await desk.integrators.add_domain(OPERATOR, "acme", "https://b.example")

    await desk.integrators.remove_domain(OPERATOR, added.id)

    left = [domain.origin for domain in await desk.integrators.domains("acme")]
    assert left == ["https://b.example"]
    again = desk.integrators.remove_domain(OPERATOR, added.id)
    assert await refused(again) is ErrorCode.NOT_FOUND
    (event,) = await desk.audited(EventKind.DOMAIN_REMOVED)
    assert event.detail["after"] == left


async def test_blocked_origin_is_counted_until_it_is_allowed(desk: Desk) -> None:
    """Tries are counted with the first and the last; allowing ends that."""
    first = desk.clock.now()
    await desk.sessions.note_blocked("acme", "https://App.example")
    desk.clock.forward(60)
    await desk.sessions.note_blocked("acme", ORIGIN)

    (blocked,) = await desk.integrators.blocked_origins("acme")
    assert (blocked.origin, blocked.count) == (ORIGIN, 2)
    assert (blocked.first, blocked.last) == (first, desk.clock.now())
    await desk.integrators.add_domain(OPERATOR, "acme", ORIGIN)
    assert await desk.integrators.blocked_origins("acme") == []
    await desk.sessions.note_blocked("acme", ORIGIN)
    assert await desk.integrators.blocked_origins("acme") == []


async def test_blocked_origins_keep_the_latest_hundred(desk: Desk) -> None:
    """Nobody fills the record with origins, and what is no origin is not kept."""
    for number in range(103):
        desk.clock.forward(1)
        await desk.sessions.note_blocked("acme", f"https://h{number}.example")
    for told in ("null", "", "x" * 300, "https://a.example/path", "https://a b"):
        await desk.sessions.note_blocked("acme", told)
    await desk.sessions.note_blocked("nobody", ORIGIN)

    blocked = await desk.integrators.blocked_origins("acme")
    assert len(blocked) == 100
    assert blocked[0].origin == "https://h102.example"
    assert blocked[-1].origin == "https://h3.example"


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

    assert await refused(there.open("acme", key)) is ErrorCode.API_KEY_INVALID
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


async def signed_session(desk: Desk, session: EmbedSession) -> EmbedSession:
    """A session that told of its signature."""
    person = await new_person(desk)
    await desk.progress.set_person(session, person)
    await desk.progress.set_otp(session, person)
    request = await new_request(desk, session, person)
    bound = await desk.progress.set_request(session, request)
    payload: dict[str, object] = {"eventId": "e1", "document": {"size": 1}}
    assert await desk.progress.complete(bound, payload) == payload
    async with desk.store.read() as records:
        stored = await records.sessions.get(session.id)
    assert stored is not None
    return stored


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


def sweeping(desk: Desk) -> Sweeping:
    """The reconciler; it tells nobody of sessions."""
    return Sweeping(desk.store, None, desk.clock)  # type: ignore[arg-type]  # unused here
