"""Test mode: what a backend wants to go wrong in a session, on both databases."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.domain.appearance.presets import Corner
from appliance.domain.embedding import EmbedSessionState, PlaceChoice, SignOrder
from appliance.domain.errors import ErrorCode
from appliance.domain.integrators.integrators import IntegratorCaller, SessionFault
from appliance.domain.vocab import Environment, EventKind
from appliance.embedding import signing
from appliance.embedding.session import Sessions
from tests.support.installation.frame import CODE, FrameServices, Someone, refused
from tests.support.installation.installation import Installation

ORDER = SignOrder(PlaceChoice(Corner.TOP_LEFT, 1), "", "a password that is right")


@pytest.fixture
async def frame_services(tmp_path: Path, each_url: str) -> AsyncIterator[FrameServices]:
    """The frame's services on a fresh database."""
    async with Installation(tmp_path, each_url).frame_services() as made:
        yield made


@pytest.fixture
async def someone(frame_services: FrameServices) -> Someone:
    """Somebody who signs."""
    return await frame_services.add_person()


async def asking(frame_services: FrameServices) -> IntegratorCaller:
    """The backend."""
    integrator = await frame_services.services.integrators.get(CODE)
    (key, *_) = await frame_services.services.integrators.keys(CODE)
    return IntegratorCaller(integrator, key.id)


async def token_with(frame_services: FrameServices, fault: SessionFault) -> str:
    """A token of a session in which that goes wrong."""
    sessions = frame_services.services.sessions
    opened = await sessions.open_for(await asking(frame_services), None, fault)
    assert opened.valid_until > frame_services.services.clock.now()
    return opened.token


async def test_token_is_over_when_it_is_first_shown(
    frame_services: FrameServices,
) -> None:
    """Its page knows whose it was; it gets no bearer."""
    token = await token_with(frame_services, SessionFault.EXPIRED)

    page = await frame_services.services.sessions.page(token, None)
    await refused(frame_services.open(token), ErrorCode.SESSION_TOKEN_EXPIRED)

    assert page.kind.value == "expired"


async def test_no_hsm_takes_the_signature(
    frame_services: FrameServices, someone: Someone
) -> None:
    """Whatever the password; the session goes on."""
    token = await token_with(frame_services, SessionFault.BUSY)
    session = await frame_services.proven(someone, token=token)

    for _ in range(2):
        await refused(
            frame_services.signing.sign(session, ORDER), ErrorCode.HSM_UNAVAILABLE
        )

    view = await frame_services.signing.view(session)
    assert view.state is EmbedSessionState.AUTHORISED


async def test_slow_tsa_makes_it_wait(
    frame_services: FrameServices, someone: Someone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is signed as ever: here it is looked at what was seen before."""
    monkeypatch.setattr(signing, "SLOW_S", 0.3)
    token = await token_with(frame_services, SessionFault.SLOW)
    session = await frame_services.proven(someone, token=token)

    begun = time.monotonic()
    await refused(
        frame_services.signing.sign(session, ORDER), ErrorCode.DOCUMENT_CHANGED
    )

    assert time.monotonic() - begun >= 0.3


async def test_signer_rejects_in_place_of_signing(
    frame_services: FrameServices, someone: Someone
) -> None:
    """Session and request are over, and it is not signed any more."""
    token = await token_with(frame_services, SessionFault.REJECTION)
    session = await frame_services.proven(someone, token=token)

    for _ in range(2):
        await refused(
            frame_services.signing.sign(session, ORDER), ErrorCode.SESSION_IN_USE
        )

    view = await frame_services.signing.view(session)
    assert view.state is EmbedSessionState.REJECTED
    async with frame_services.services.store.read() as transaction:
        rows = await transaction.audit.of_request(view.session.request or 0)
        opened = [
            row.event.detail.get("fault")
            for writer in await transaction.audit.writers()
            for row in await transaction.audit.of_writer(writer)
            if row.event.event is EventKind.SESSION_OPENED
        ]
    assert [row.event.event for row in rows][-1] is EventKind.REQUEST_REJECTED
    assert opened == ["rechazo"]


@pytest.mark.parametrize("fault", SessionFault)
async def test_in_prod_there_are_none(
    frame_services: FrameServices, fault: SessionFault
) -> None:
    """As a field that nobody knows."""
    services = frame_services.services
    settings = services.settings.model_copy(update={"environment": Environment.PROD})
    in_prod = Sessions(services.store, services.lookup, services.clock, settings)

    await refused(
        in_prod.open_for(await asking(frame_services), None, fault),
        ErrorCode.FIELD_UNKNOWN,
    )
