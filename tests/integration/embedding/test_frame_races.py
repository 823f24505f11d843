"""Steps of one session at the same moment, and steps that are refused.

Nothing that is refused costs the session its bearer, and whatever comes first, no
step is lost: each looks at the session as it stands, not as it was admitted.

Source: decisions "repeated init", "request of a frame".
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.domain.embedding import EmbedSessionState
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.vocab import EventKind
from tests.support.factories.fake_sandbox import FakeInspector
from tests.support.installation.frame import ADDRESS, FrameServices, refused
from tests.support.installation.installation import Installation

PDF, OTHER = b"%PDF one", b"%PDF another"


@pytest.fixture
async def frame_services(tmp_path: Path, each_url: str) -> AsyncIterator[FrameServices]:
    """The frame's services on a fresh database."""
    async with Installation(tmp_path, each_url).frame_services() as made:
        yield made


async def test_refused_init_leaves_the_bearer_as_it_is(
    frame_services: FrameServices,
) -> None:
    """A host that makes a new idemKey for each rendering ends nobody's session."""
    someone = await frame_services.add_person()
    token = await frame_services.token()
    opened = await frame_services.open(token, idem_key="one")
    taken = await frame_services.framing.take_document(
        opened.view.session, "a.pdf", PDF
    )
    await frame_services.framing.identify(
        taken.session, frame_services.claim(someone), ADDRESS
    )
    matched = await frame_services.again(taken.session)
    await frame_services.framing.prove(matched, frame_services.code(someone), ADDRESS)

    await refused(frame_services.open(token, idem_key="two"), ErrorCode.SESSION_IN_USE)

    session = await frame_services.services.sessions.by_bearer(opened.bearer)
    assert session.idem_key == "one"
    assert len(await frame_services.services.audited(EventKind.SESSION_EXCHANGED)) == 1


@pytest.mark.parametrize("case", ["used", "foreign"])
async def test_refused_renewal_leaves_both_bearers_as_they_are(
    frame_services: FrameServices, case: str
) -> None:
    """Neither the session so far nor the one of the token loses its page."""
    opened = await frame_services.open()
    if case == "used":
        token, code = await frame_services.token(), ErrorCode.SESSION_IN_USE
        other = (await frame_services.open(token)).bearer
    else:
        token, code = await frame_services.token("otro"), ErrorCode.INIT_INVALID
        other = (await frame_services.open(token)).bearer

    await refused(frame_services.framing.renew(opened.bearer, token), code)

    for bearer in (opened.bearer, other):
        await frame_services.services.sessions.by_bearer(bearer)


async def test_renewal_that_is_repeated_gives_the_same_session(
    frame_services: FrameServices,
) -> None:
    """Whose answer was lost asks again with the same bearer and token."""
    opened = await frame_services.open(idem_key="k")
    token = await frame_services.token()
    first = await frame_services.framing.renew(opened.bearer, token)

    again = await frame_services.framing.renew(opened.bearer, token)

    assert again.view.session.id == first.view.session.id
    assert (
        await frame_services.services.sessions.by_bearer(again.bearer)
    ).idem_key == "k"
    assert len(await frame_services.services.audited(EventKind.SESSION_RENEWED)) == 1
    third = frame_services.framing.renew(opened.bearer, await frame_services.token())
    await refused(third, ErrorCode.SESSION_IN_USE)


async def test_two_renewals_at_once_carry_over_to_one(
    frame_services: FrameServices,
) -> None:
    """Of two new tokens one takes over; the other is as fresh as before."""
    opened = await frame_services.open()
    tokens = [await frame_services.token(), await frame_services.token()]

    done = await asyncio.gather(
        *(frame_services.framing.renew(opened.bearer, token) for token in tokens),
        return_exceptions=True,
    )

    lost = [one for one in done if isinstance(one, ApplianceError)]
    assert [one.code for one in lost] == [ErrorCode.SESSION_IN_USE]
    assert len(await frame_services.services.audited(EventKind.SESSION_RENEWED)) == 1


@pytest.mark.parametrize("first", ["code", "document"])
async def test_code_and_upload_at_once_make_the_request(
    frame_services: FrameServices, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """Both were admitted before either was done; whichever ends first."""
    someone = await frame_services.add_person()
    opened = await frame_services.open()
    await frame_services.framing.identify(
        opened.view.session, frame_services.claim(someone), ADDRESS
    )
    session = await frame_services.again(opened.view.session)
    reached, go_on = asyncio.Event(), asyncio.Event()
    inspect = FakeInspector.inspect

    async def held(self: FakeInspector, pdf: bytes) -> Any:
        reached.set()
        await go_on.wait()
        return await inspect(self, pdf)

    monkeypatch.setattr(FakeInspector, "inspect", held)
    upload = asyncio.create_task(
        frame_services.framing.take_document(session, "a.pdf", PDF)
    )
    await reached.wait()
    if first == "document":
        go_on.set()
        await upload
    proven = await frame_services.framing.prove(
        session, frame_services.code(someone), ADDRESS
    )
    go_on.set()
    await upload

    view = await frame_services.signing.view(proven.session)
    assert view.state is EmbedSessionState.AUTHORISED
    assert view.session.request is not None
    assert len(await frame_services.services.audited(EventKind.REQUEST_CREATED)) == 1


async def test_many_steps_at_once_make_one_request(
    frame_services: FrameServices,
) -> None:
    """Uploads and the code together, again and again: there is always a request."""
    someone = await frame_services.add_person()
    for round_ in range(6):
        opened = await frame_services.open()
        await frame_services.framing.identify(
            opened.view.session, frame_services.claim(someone), ADDRESS
        )
        session = await frame_services.again(opened.view.session)
        frame_services.services.clock.forward(30)

        proven, *taken = await asyncio.gather(
            frame_services.framing.prove(
                session, frame_services.code(someone), ADDRESS
            ),
            frame_services.framing.take_document(session, "a.pdf", PDF),
            frame_services.framing.take_document(session, "b.pdf", OTHER),
            return_exceptions=True,
        )

        # A document may come too late, once there is a request; the code never does.
        if isinstance(proven, BaseException):
            raise proven
        late = [one for one in taken if isinstance(one, BaseException)]
        codes = [getattr(one, "code", one) for one in late]
        assert set(codes) <= {ErrorCode.SESSION_IN_USE}
        view = await frame_services.signing.view(session)
        assert view.state is EmbedSessionState.AUTHORISED, round_
    created = await frame_services.services.audited(EventKind.REQUEST_CREATED)
    assert len(created) == round_ + 1


async def test_same_code_twice_at_once_proves_once(
    frame_services: FrameServices,
) -> None:
    """Who is proven by the first of two calls is not refused by the second."""
    someone = await frame_services.add_person()
    opened = await frame_services.open()
    taken = await frame_services.framing.take_document(
        opened.view.session, "a.pdf", PDF
    )
    await frame_services.framing.identify(
        taken.session, frame_services.claim(someone), ADDRESS
    )
    session = await frame_services.again(taken.session)
    code = frame_services.code(someone)

    views = await asyncio.gather(
        *(frame_services.framing.prove(session, code, ADDRESS) for _ in range(2))
    )

    assert {view.state for view in views} == {EmbedSessionState.AUTHORISED}
    assert len({view.session.request for view in views}) == 1


async def test_init_and_renewal_at_once_leave_one_session(
    frame_services: FrameServices,
) -> None:
    """A token that is taken up by init cannot be renewed to, and the reverse."""
    opened = await frame_services.open()
    token = await frame_services.token()

    init, renewal = await asyncio.gather(
        frame_services.open(token, content="new"),
        frame_services.framing.renew(opened.bearer, token),
        return_exceptions=True,
    )

    if isinstance(renewal, ApplianceError):
        assert renewal.code is ErrorCode.SESSION_IN_USE
        assert not isinstance(init, BaseException)
        await frame_services.services.sessions.by_bearer(init.bearer)
        await frame_services.services.sessions.by_bearer(opened.bearer)
    else:
        assert not isinstance(renewal, BaseException)
        assert (
            len(await frame_services.services.audited(EventKind.SESSION_RENEWED)) == 1
        )


async def test_document_is_that_of_the_request_that_was_chosen_meanwhile(
    frame_services: FrameServices,
) -> None:
    """A page that was admitted before the request was made reads what it signs."""
    someone = await frame_services.add_person()
    before = (await frame_services.open()).view.session
    taken = await frame_services.framing.take_document(before, "a.pdf", PDF)
    await frame_services.framing.identify(
        taken.session, frame_services.claim(someone), ADDRESS
    )
    matched = await frame_services.again(taken.session)
    await frame_services.framing.prove(matched, frame_services.code(someone), ADDRESS)

    shown, _ = await frame_services.framing.document(before)

    assert shown.name == "a.pdf"
    # Reading is no proof of having been shown it: the page says so when it was.
    assert await frame_services.services.audited(EventKind.REQUEST_VIEWED) == []
