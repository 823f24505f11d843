"""Sessions that a backend opened for one request, on both databases."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.domain.embedding import EmbedSessionState
from appliance.domain.errors import ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.requests.intake import NewRequest
from appliance.requests.request_store import RequestStore
from tests.support.installation.frame import (
    ADDRESS,
    CODE,
    FrameServices,
    Someone,
    refused,
)
from tests.support.installation.installation import Installation

PDF = b"%PDF one"


@pytest.fixture
async def frame_services(tmp_path: Path, each_url: str) -> AsyncIterator[FrameServices]:
    """The frame's services on a fresh database."""
    async with Installation(tmp_path, each_url).frame_services() as made:
        yield made


@pytest.fixture
async def someone(frame_services: FrameServices) -> Someone:
    """Somebody who signs."""
    return await frame_services.add_person()


async def asked(frame_services: FrameServices, someone: Someone) -> RequestId:
    """A request of the integrator for somebody."""
    opened = await frame_services.open()
    taken = await frame_services.framing.take_document(
        opened.view.session, "a.pdf", PDF
    )
    document = taken.session.document
    assert document is not None
    async with frame_services.services.store.write() as transaction:
        return await RequestStore(transaction).add(
            NewRequest(
                person=someone.id,
                integrator=taken.session.integrator.id,
                document=document.id,
                name="a.pdf",
                origin="integrador",
                created=frame_services.services.clock.now(),
                expires=None,
            )
        )


async def token_for(frame_services: FrameServices, wanted: RequestId | None) -> str:
    """A token that the backend got for a request, or for any."""
    services = frame_services.services
    integrator = await services.integrators.get(CODE)
    (key, *_) = await services.integrators.keys(CODE)
    asking = IntegratorCaller(integrator, key.id)
    return (await services.sessions.open_for(asking, wanted)).token


async def test_request_shows_once_the_signer_is_proven(
    frame_services: FrameServices, someone: Someone
) -> None:
    """It is the only one listed, and no other is taken in its place."""
    other = await asked(frame_services, someone)
    wanted = await asked(frame_services, someone)
    token = await token_for(frame_services, wanted)

    session = await frame_services.proven(someone, None, token=token)

    now = await frame_services.again(session)
    assert (now.request, now.wanted) == (wanted, wanted)
    (listed,) = await frame_services.framing.waiting(now)
    assert listed.id == wanted
    await refused(
        frame_services.framing.choose(now, other), ErrorCode.SOLICITUD_NOT_FOUND
    )
    await refused(
        frame_services.framing.take_document(now, "b.pdf", PDF),
        ErrorCode.SESSION_IN_USE,
    )


async def test_somebody_else_does_not_match(
    frame_services: FrameServices, someone: Someone
) -> None:
    """As if they were not there: they are told the same."""
    other = await frame_services.add_person("20055361682")
    wanted = await asked(frame_services, someone)
    opened = await frame_services.open(await token_for(frame_services, wanted))

    await refused(
        frame_services.framing.identify(
            opened.view.session, frame_services.claim(other), ADDRESS
        ),
        ErrorCode.IDENTITY_MISMATCH,
    )


async def test_no_document_comes_before_the_signer(
    frame_services: FrameServices, someone: Someone
) -> None:
    """Neither the host's nor the signer's."""
    wanted = await asked(frame_services, someone)
    opened = await frame_services.open(await token_for(frame_services, wanted))

    await refused(
        frame_services.framing.take_document(opened.view.session, "b.pdf", PDF),
        ErrorCode.SESSION_IN_USE,
    )


async def test_renewal_goes_on_with_the_same_request(
    frame_services: FrameServices, someone: Someone
) -> None:
    """By a token for it or for any; one for another request is refused."""
    other = await asked(frame_services, someone)
    wanted = await asked(frame_services, someone)
    opened = await frame_services.open(await token_for(frame_services, wanted))
    bearer = opened.bearer

    await refused(
        frame_services.framing.renew(bearer, await token_for(frame_services, other)),
        ErrorCode.SESSION_IN_USE,
    )
    for token in (
        await token_for(frame_services, wanted),
        await frame_services.token(),
    ):
        renewed = await frame_services.framing.renew(bearer, token)
        bearer = renewed.bearer
        now = await frame_services.again(renewed.view.session)
        assert now.wanted == wanted
    assert renewed.view.state is EmbedSessionState.OPEN
