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
from tests.support.faces.frame_services import (
    ADDRESS,
    FakeInspector,
    FrameDesk,
    open_frame_desk,
    refused,
)

PDF, OTHER = b"%PDF one", b"%PDF another"


@pytest.fixture
async def desk(tmp_path: Path, each_url: str) -> AsyncIterator[FrameDesk]:
    """The frame's services on a fresh database."""
    async with open_frame_desk(tmp_path, each_url) as made:
        yield made


async def test_refused_init_leaves_the_bearer_as_it_is(desk: FrameDesk) -> None:
    """A host that makes a new idemKey for each rendering ends nobody's session."""
    someone = await desk.add_person()
    token = await desk.token()
    opened = await desk.open(token, idem_key="one")
    taken = await desk.framing.take_document(opened.view.session, "a.pdf", PDF)
    await desk.framing.identify(taken.session, desk.claim(someone), ADDRESS)
    matched = await desk.again(taken.session)
    await desk.framing.prove(matched, desk.code(someone), ADDRESS)

    await refused(desk.open(token, idem_key="two"), ErrorCode.SESSION_IN_USE)

    session = await desk.desk.sessions.by_bearer(opened.bearer)
    assert session.idem_key == "one"
    assert len(await desk.desk.audited(EventKind.SESSION_EXCHANGED)) == 1


@pytest.mark.parametrize("case", ["used", "foreign"])
async def test_refused_renewal_leaves_both_bearers_as_they_are(
    desk: FrameDesk, case: str
) -> None:
    """Neither the session so far nor the one of the token loses its page."""
    opened = await desk.open()
    if case == "used":
        token, code = await desk.token(), ErrorCode.SESSION_IN_USE
        other = (await desk.open(token)).bearer
    else:
        token, code = await desk.token("otro"), ErrorCode.INIT_INVALID
        other = (await desk.open(token)).bearer

    await refused(desk.framing.renew(opened.bearer, token), code)

    for bearer in (opened.bearer, other):
        await desk.desk.sessions.by_bearer(bearer)


async def test_renewal_that_is_repeated_gives_the_same_session(
    desk: FrameDesk,
) -> None:
    """Whose answer was lost asks again with the same bearer and token."""
    opened = await desk.open(idem_key="k")
    token = await desk.token()
    first = await desk.framing.renew(opened.bearer, token)

    again = await desk.framing.renew(opened.bearer, token)

    assert again.view.session.id == first.view.session.id
    assert (await desk.desk.sessions.by_bearer(again.bearer)).idem_key == "k"
    assert len(await desk.desk.audited(EventKind.SESSION_RENEWED)) == 1
    third = desk.framing.renew(opened.bearer, await desk.token())
    await refused(third, ErrorCode.SESSION_IN_USE)


async def test_two_renewals_at_once_carry_over_to_one(desk: FrameDesk) -> None:
    """Of two new tokens one takes over; the other is as fresh as before."""
    opened = await desk.open()
    tokens = [await desk.token(), await desk.token()]

    done = await asyncio.gather(
        *(desk.framing.renew(opened.bearer, token) for token in tokens),
        return_exceptions=True,
    )

    lost = [one for one in done if isinstance(one, ApplianceError)]
    assert [one.code for one in lost] == [ErrorCode.SESSION_IN_USE]
    assert len(await desk.desk.audited(EventKind.SESSION_RENEWED)) == 1


@pytest.mark.parametrize("first", ["code", "document"])
async def test_code_and_upload_at_once_make_the_request(
    desk: FrameDesk, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """Both were admitted before either was done; whichever ends first."""
    someone = await desk.add_person()
    opened = await desk.open()
    await desk.framing.identify(opened.view.session, desk.claim(someone), ADDRESS)
    session = await desk.again(opened.view.session)
    reached, go_on = asyncio.Event(), asyncio.Event()
    inspect = FakeInspector.inspect

    async def held(self: FakeInspector, pdf: bytes) -> Any:
        reached.set()
        await go_on.wait()
        return await inspect(self, pdf)

    monkeypatch.setattr(FakeInspector, "inspect", held)
    upload = asyncio.create_task(desk.framing.take_document(session, "a.pdf", PDF))
    await reached.wait()
    if first == "document":
        go_on.set()
        await upload
    proven = await desk.framing.prove(session, desk.code(someone), ADDRESS)
    go_on.set()
    await upload

    view = await desk.signing.view(proven.session)
    assert view.state is EmbedSessionState.AUTHORISED
    assert view.session.request is not None
    assert len(await desk.desk.audited(EventKind.REQUEST_CREATED)) == 1


async def test_many_steps_at_once_make_one_request(desk: FrameDesk) -> None:
    """Uploads and the code together, again and again: there is always a request."""
    someone = await desk.add_person()
    for round_ in range(6):
        opened = await desk.open()
        await desk.framing.identify(opened.view.session, desk.claim(someone), ADDRESS)
        session = await desk.again(opened.view.session)
        desk.desk.clock.forward(30)

        proven, *taken = await asyncio.gather(
            desk.framing.prove(session, desk.code(someone), ADDRESS),
            desk.framing.take_document(session, "a.pdf", PDF),
            desk.framing.take_document(session, "b.pdf", OTHER),
            return_exceptions=True,
        )

        # A document may come too late, once there is a request; the code never does.
        if isinstance(proven, BaseException):
            raise proven
        late = [one for one in taken if isinstance(one, BaseException)]
        codes = [getattr(one, "code", one) for one in late]
        assert set(codes) <= {ErrorCode.SESSION_IN_USE}
        view = await desk.signing.view(session)
        assert view.state is EmbedSessionState.AUTHORISED, round_
    created = await desk.desk.audited(EventKind.REQUEST_CREATED)
    assert len(created) == round_ + 1


async def test_same_code_twice_at_once_proves_once(desk: FrameDesk) -> None:
    """Who is proven by the first of two calls is not refused by the second."""
    someone = await desk.add_person()
    opened = await desk.open()
    taken = await desk.framing.take_document(opened.view.session, "a.pdf", PDF)
    await desk.framing.identify(taken.session, desk.claim(someone), ADDRESS)
    session = await desk.again(taken.session)
    code = desk.code(someone)

    views = await asyncio.gather(
        *(desk.framing.prove(session, code, ADDRESS) for _ in range(2))
    )

    assert {view.state for view in views} == {EmbedSessionState.AUTHORISED}
    assert len({view.session.request for view in views}) == 1


async def test_init_and_renewal_at_once_leave_one_session(desk: FrameDesk) -> None:
    """A token that is taken up by init cannot be renewed to, and the reverse."""
    opened = await desk.open()
    token = await desk.token()

    init, renewal = await asyncio.gather(
        desk.open(token, content="new"),
        desk.framing.renew(opened.bearer, token),
        return_exceptions=True,
    )

    if isinstance(renewal, ApplianceError):
        assert renewal.code is ErrorCode.SESSION_IN_USE
        assert not isinstance(init, BaseException)
        await desk.desk.sessions.by_bearer(init.bearer)
        await desk.desk.sessions.by_bearer(opened.bearer)
    else:
        assert not isinstance(renewal, BaseException)
        assert len(await desk.desk.audited(EventKind.SESSION_RENEWED)) == 1


async def test_document_is_that_of_the_request_that_was_chosen_meanwhile(
    desk: FrameDesk,
) -> None:
    """A page that was admitted before the request was made reads what it signs."""
    someone = await desk.add_person()
    before = (await desk.open()).view.session
    taken = await desk.framing.take_document(before, "a.pdf", PDF)
    await desk.framing.identify(taken.session, desk.claim(someone), ADDRESS)
    matched = await desk.again(taken.session)
    await desk.framing.prove(matched, desk.code(someone), ADDRESS)

    name, _ = await desk.framing.document(before)

    assert name == "a.pdf"
    # Reading is no proof of having been shown it: the page says so when it was.
    assert await desk.desk.audited(EventKind.REQUEST_VIEWED) == []
