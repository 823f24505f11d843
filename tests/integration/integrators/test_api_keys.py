"""API keys, on both databases: made, rotated and revoked."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from appliance.database import tables
from appliance.domain.errors import ErrorCode, FieldInvalidError
from appliance.domain.vocab import EventKind, RequestState
from appliance.requests.request_store import RequestStore
from tests.integration.integrators.acme import (
    OPERATOR,
    new_key,
    new_person,
    new_request,
    open_acme,
    refused,
    set_otp,
    signed_session,
    sweeping,
)
from tests.support.installation.services import Services


@pytest.fixture
async def integrator_services(tmp_path: Path, each_url: str) -> AsyncIterator[Services]:
    """Services on a fresh database, with the integrator `acme`."""
    async with open_acme(tmp_path, each_url) as made:
        yield made


async def test_key_is_shown_once_and_kept_as_a_hash(
    integrator_services: Services,
) -> None:
    """The key stands nowhere in the record, only its hint."""
    made = await integrator_services.integrators.create_key(OPERATOR, "acme", "backend")

    (listed,) = await integrator_services.integrators.keys("acme")
    assert listed == made.key
    async with integrator_services.store._engines.reader.connect() as connection:
        rows = (await connection.execute(tables.api_key.select())).all()
    assert made.secret not in repr(rows)
    events = await integrator_services.audited(EventKind.API_KEY_CREATED)
    assert made.secret not in repr(events)
    assert made.secret not in repr(made)


async def test_several_keys_work_side_by_side(
    integrator_services: Services,
) -> None:
    """An integrator has as many keys as it needs."""
    first, second = (
        await new_key(integrator_services),
        await new_key(integrator_services),
    )

    await integrator_services.sessions.open("acme", first)
    await integrator_services.sessions.open("acme", second)

    used = [key.last_used for key in await integrator_services.integrators.keys("acme")]
    assert used == [integrator_services.clock.now()] * 2


async def test_expired_key_is_refused_at_its_time(
    integrator_services: Services,
) -> None:
    """A key works until the moment it expires."""
    expires = integrator_services.clock.now() + timedelta(hours=1)
    made = await integrator_services.integrators.create_key(
        OPERATOR, "acme", "x", expires
    )

    integrator_services.clock.forward(3599)
    await integrator_services.sessions.open("acme", made.secret)
    integrator_services.clock.forward(1)

    opening = integrator_services.sessions.open("acme", made.secret)
    assert await refused(opening) is ErrorCode.API_KEY_INVALID


async def test_key_that_would_be_expired_is_not_made(
    integrator_services: Services,
) -> None:
    """An expiry in the past is refused."""
    with pytest.raises(FieldInvalidError):
        await integrator_services.integrators.create_key(
            OPERATOR, "acme", "x", integrator_services.clock.now()
        )


async def test_rotated_key_works_until_the_overlap_ends(
    integrator_services: Services,
) -> None:
    """Old and new key work side by side, then the new one alone."""
    old = await integrator_services.integrators.create_key(OPERATOR, "acme", "backend")
    before = await integrator_services.sessions.open("acme", old.secret)

    new = await integrator_services.integrators.rotate_key(OPERATOR, old.key.id, 600)

    integrator_services.clock.forward(599)
    await integrator_services.sessions.open("acme", old.secret)
    integrator_services.clock.forward(1)
    opening = integrator_services.sessions.open("acme", old.secret)
    assert await refused(opening) is ErrorCode.API_KEY_INVALID
    await integrator_services.sessions.open("acme", new.secret)
    # A session of the old key goes on.
    await integrator_services.sessions.exchange(before.token)
    (event,) = await integrator_services.audited(EventKind.API_KEY_ROTATED)
    assert event.detail["successor"] == new.key.id
    assert event.detail["before"] != event.detail["after"]


async def test_successor_of_an_expiring_key_lives_as_long(
    integrator_services: Services,
) -> None:
    """Rotation keeps label and length of life."""
    expires = integrator_services.clock.now() + timedelta(days=30)
    old = await integrator_services.integrators.create_key(
        OPERATOR, "acme", "backend", expires
    )
    integrator_services.clock.forward(86_400)

    new = await integrator_services.integrators.rotate_key(OPERATOR, old.key.id, 0)

    assert new.key.label == "backend"
    assert new.key.expires == integrator_services.clock.now() + timedelta(days=30)


async def test_key_that_is_over_is_not_rotated(
    integrator_services: Services,
) -> None:
    """Neither a revoked key nor one that is unknown has a successor."""
    made = await integrator_services.integrators.create_key(OPERATOR, "acme", "x")
    await integrator_services.integrators.revoke_key(OPERATOR, made.key.id)

    for key_id in (made.key.id, "nothing"):
        rotating = integrator_services.integrators.rotate_key(OPERATOR, key_id, 0)
        assert await refused(rotating) is ErrorCode.API_KEY_NOT_FOUND


async def test_revoking_ends_unfinished_sessions_and_their_requests(
    integrator_services: Services,
) -> None:
    """What a revoked key opened is over at once; a picked request is not."""
    made = await integrator_services.integrators.create_key(OPERATOR, "acme", "x")
    person = await new_person(integrator_services)
    bearers, requests = [], []
    for origin in ("sesion", "operador"):
        opened = await integrator_services.sessions.open("acme", made.secret)
        bearer = await integrator_services.sessions.exchange(opened.token)
        session = await integrator_services.progress.set_person(bearer.session, person)
        session = await set_otp(integrator_services, session, person)
        request = await new_request(integrator_services, session, person, origin)
        await integrator_services.progress.set_request(session, request)
        bearers.append(bearer.bearer)
        requests.append(request)

    assert await integrator_services.integrators.revoke_key(OPERATOR, made.key.id) == 2

    for bearer_text in bearers:
        looking = integrator_services.sessions.by_bearer(bearer_text)
        assert await refused(looking) is ErrorCode.SESSION_TOKEN_EXPIRED
    opening = integrator_services.sessions.open("acme", made.secret)
    assert await refused(opening) is ErrorCode.API_KEY_INVALID
    integrator_services.clock.forward(1)
    await sweeping(integrator_services).expire_requests()
    async with integrator_services.store.read() as transaction:
        views = [await RequestStore(transaction).get(request) for request in requests]
    states = [view.state for view in views if view is not None]
    assert states == [RequestState.EXPIRED, RequestState.PENDING]
    assert len(await integrator_services.audited(EventKind.SESSION_ENDED)) == 2


async def test_revoking_leaves_what_is_completed(
    integrator_services: Services,
) -> None:
    """A session that has signed can still tell so."""
    made = await integrator_services.integrators.create_key(OPERATOR, "acme", "x")
    opened = await integrator_services.sessions.open("acme", made.secret)
    bearer = await integrator_services.sessions.exchange(opened.token)
    session = await signed_session(integrator_services, bearer.session)

    assert await integrator_services.integrators.revoke_key(OPERATOR, made.key.id) == 0

    again = await integrator_services.sessions.by_bearer(bearer.bearer)
    assert again.completed == session.completed
