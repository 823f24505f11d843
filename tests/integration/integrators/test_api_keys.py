"""API keys, on both databases: made, rotated and revoked."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from appliance.core.database import tables
from appliance.domain.errors import ErrorCode, FieldInvalidError
from appliance.domain.vocab import EventKind, RequestState
from appliance.requests.request_store import RequestStore
from tests.support.factories.integrator_services import Desk
from tests.support.factories.integrators import (
    OPERATOR,
    new_key,
    new_person,
    new_request,
    open_acme,
    refused,
    signed_session,
    sweeping,
)


@pytest.fixture
async def desk(tmp_path: Path, each_url: str) -> AsyncIterator[Desk]:
    """Services on a fresh database, with the integrator `acme`."""
    async with open_acme(tmp_path, each_url) as made:
        yield made


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
    async with desk.store.read() as transaction:
        views = [await RequestStore(transaction).get(request) for request in requests]
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
