"""What a session of the frame may do, on both databases.

Source: decisions "Iframe", "a known person", "dni, cuil", "attempts".
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.domain.command import SignParameters
from appliance.domain.errors import (
    ApplianceError,
    DocumentRefusedError,
    ErrorCode,
)
from appliance.domain.frame import FrameState, PlaceChoice
from appliance.domain.presets import Corner
from appliance.domain.vocab import EventKind, PersonState, RequestState
from tests.parts.frame_desk import (
    ADDRESS,
    CERTIFIED,
    FULL,
    FakeInspector,
    FrameDesk,
    open_frame_desk,
)

PDF, OTHER = b"%PDF one", b"%PDF another"
TOP_LEFT = PlaceChoice(Corner.TOP_LEFT, 1)


@pytest.fixture(params=["sqlite", "postgresql"])
async def desk(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[FrameDesk]:
    """The frame's services on a fresh database."""
    url = "sqlite"
    if request.param == "postgresql":
        url = request.getfixturevalue("migrated_url")
    async with open_frame_desk(tmp_path, url) as made:
        yield made


async def refused(work: object, code: ErrorCode) -> ApplianceError:
    """Demand a refusal by its code."""
    with pytest.raises(ApplianceError) as caught:
        await work  # type: ignore[misc]  # an awaitable
    assert caught.value.code is code
    return caught.value


async def test_request_is_made_with_the_right_code(desk: FrameDesk) -> None:
    """Before it there is none; after it there is one, of the session's origin."""
    someone = await desk.add_person()
    opened = await desk.open()
    taken = await desk.framing.take_document(opened.view.session, "a.pdf", PDF)
    assert taken.session.request is None
    assert await desk.framing.identify(taken.session, desk.claim(someone), ADDRESS)
    matched = await desk.again(taken.session)
    view = await desk.framing.prove(matched, desk.code(someone), ADDRESS)

    assert view.state is FrameState.AUTHORISED
    assert view.session.request is not None
    async with desk.desk.store.read() as records:
        request = await records.requests.get(view.session.request)
    assert request is not None
    assert request.origin == "sesion"
    assert request.expires == view.session.until


async def test_signer_is_told_of_only_once_proven(desk: FrameDesk) -> None:
    """A match alone reveals neither name nor number."""
    someone = await desk.add_person()
    opened = await desk.open()
    await desk.framing.identify(opened.view.session, desk.claim(someone), ADDRESS)
    matched = await desk.signing.view(opened.view.session)
    assert matched.signer is None

    session = await desk.proven(someone)
    view = await desk.signing.view(session)
    assert view.signer is not None
    assert view.signer.cuil == someone.cuil


@pytest.mark.parametrize("case", ["unknown", "address", "disabled"])
async def test_who_does_not_fit_is_told_the_same(desk: FrameDesk, case: str) -> None:
    """IDENTITY_MISMATCH whatever the reason."""
    state = PersonState.DISABLED if case == "disabled" else PersonState.ACTIVE
    someone = await desk.add_person(state=state)
    changes = {
        "unknown": {"cuil": "20055361682"},
        "address": {"email": "otra@demo.example"},
        "disabled": {},
    }[case]
    opened = await desk.open()
    claim = desk.claim(someone, **changes)

    error = await refused(
        desk.framing.identify(opened.view.session, claim, ADDRESS),
        ErrorCode.IDENTITY_MISMATCH,
    )
    assert error.extras == {}


async def test_invited_person_has_to_enrol_first(desk: FrameDesk) -> None:
    """Somebody without secrets is not asked for a code."""
    someone = await desk.add_person(state=PersonState.INVITED)
    opened = await desk.open()

    await refused(
        desk.framing.identify(opened.view.session, desk.claim(someone), ADDRESS),
        ErrorCode.SIGNER_PENDING_APPROVAL,
    )


async def test_dni_of_two_people_asks_for_the_cuil(desk: FrameDesk) -> None:
    """One number, two CUILs: nobody is guessed."""
    someone = await desk.add_person("20267565393")
    await desk.add_person("27267565398")
    opened = await desk.open()
    claim = desk.claim(someone, cuil=None, dni="26756539")

    assert not await desk.framing.identify(opened.view.session, claim, ADDRESS)


async def test_dni_with_another_address_tells_nothing(desk: FrameDesk) -> None:
    """It asks for the CUIL, as for a number that nobody has."""
    someone = await desk.add_person()
    opened = await desk.open()
    known = desk.claim(someone, cuil=None, dni="26756539", email="x@demo.example")
    unknown = desk.claim(someone, cuil=None, dni="11222333")

    assert not await desk.framing.identify(opened.view.session, known, ADDRESS)
    assert not await desk.framing.identify(opened.view.session, unknown, ADDRESS)


async def test_code_works_once(desk: FrameDesk) -> None:
    """The same code in another session is not right."""
    someone = await desk.add_person()
    sessions = []
    for _ in range(2):
        opened = await desk.open()
        await desk.framing.identify(opened.view.session, desk.claim(someone), ADDRESS)
        sessions.append(await desk.again(opened.view.session))
    code = desk.code(someone)
    await desk.framing.prove(sessions[0], code, ADDRESS)

    await refused(desk.framing.prove(sessions[1], code, ADDRESS), ErrorCode.OTP_INVALID)
    assert len(await desk.desk.audited(EventKind.SESSION_OTP_WRONG)) == 1


async def test_wrong_codes_delay_here_and_nowhere_else(desk: FrameDesk) -> None:
    """Another address signs on, and nothing is ever locked."""
    someone = await desk.add_person()
    opened = await desk.open()
    await desk.framing.identify(opened.view.session, desk.claim(someone), ADDRESS)
    session = await desk.again(opened.view.session)
    for _ in range(5):
        await refused(
            desk.framing.prove(session, "000000", ADDRESS), ErrorCode.OTP_INVALID
        )
    error = await refused(
        desk.framing.prove(session, desk.code(someone), ADDRESS),
        ErrorCode.RATE_LIMITED,
    )
    assert error.extras["retryAfter"]

    view = await desk.framing.prove(session, desk.code(someone), "192.0.2.99")
    assert view.session.otp_at is not None


async def test_init_with_new_content_forgets_the_matched_person(
    desk: FrameDesk,
) -> None:
    """Until the signer is proven a later init replaces an earlier one."""
    someone = await desk.add_person()
    token = await desk.token()
    opened = await desk.open(token)
    await desk.framing.identify(opened.view.session, desk.claim(someone), ADDRESS)
    again = await desk.open(token, content="other")

    assert again.view.session.person is None


async def test_init_after_the_code_is_refused_unless_the_same(
    desk: FrameDesk,
) -> None:
    """A reload goes on; other content is SESSION_IN_USE."""
    someone = await desk.add_person()
    token = await desk.token()
    await desk.proven(someone, token=token)

    await refused(desk.open(token, content="other"), ErrorCode.SESSION_IN_USE)
    again = await desk.open(token)
    assert again.view.state is FrameState.AUTHORISED


async def test_token_of_another_integrator_opens_no_page_of_ours(
    desk: FrameDesk,
) -> None:
    """A token is good in its own integrator's frames alone."""
    ours = await desk.desk.sessions.page(await desk.token(), None)
    stolen = await desk.token("otro")

    error = await refused(
        desk.open(stolen, page=ours.session_public_id), ErrorCode.INIT_INVALID
    )
    assert error.extras == {"field": "sessionToken"}


async def test_document_is_fixed_by_the_request(desk: FrameDesk) -> None:
    """Once there is a request, another document is SESSION_IN_USE."""
    someone = await desk.add_person()
    session = await desk.proven(someone)

    await refused(
        desk.framing.take_document(session, "b.pdf", OTHER), ErrorCode.SESSION_IN_USE
    )


async def test_document_after_the_code_makes_the_request(desk: FrameDesk) -> None:
    """A signer may be proven first and choose a document then."""
    someone = await desk.add_person()
    session = await desk.proven(someone, None)
    assert session.request is None

    view = await desk.framing.take_document(session, "a.pdf", PDF)
    assert view.state is FrameState.AUTHORISED


async def test_one_key_is_one_request(desk: FrameDesk) -> None:
    """Two sessions with one key, at once, get the same request."""
    someone = await desk.add_person()
    first = await desk.proven(someone, None, idem_key="k")
    second = await desk.proven(someone, None, idem_key="k")
    views = await asyncio.gather(
        desk.framing.take_document(first, "a.pdf", PDF),
        desk.framing.take_document(second, "a.pdf", PDF),
    )

    assert views[0].session.request == views[1].session.request
    assert len(await desk.desk.audited(EventKind.REQUEST_CREATED)) == 1


async def test_key_with_another_document_conflicts(desk: FrameDesk) -> None:
    """Told when the document comes, before anybody is asked for a code."""
    someone = await desk.add_person()
    await desk.proven(someone, PDF, idem_key="k")
    opened = await desk.open(idem_key="k")

    await refused(
        desk.framing.take_document(opened.view.session, "b.pdf", OTHER),
        ErrorCode.IDEMKEY_CONFLICT,
    )


async def test_key_with_another_signer_conflicts(desk: FrameDesk) -> None:
    """What one person began under a key is not another one's."""
    someone = await desk.add_person()
    other = await desk.add_person("20055361682")
    await desk.proven(someone, PDF, idem_key="k")

    await refused(desk.proven(other, PDF, idem_key="k"), ErrorCode.IDEMKEY_CONFLICT)


async def test_key_of_another_integrator_is_another_key(desk: FrameDesk) -> None:
    """Keys belong to their integrator."""
    someone = await desk.add_person()
    await desk.proven(someone, PDF, idem_key="k")
    session = await desk.proven(
        someone, OTHER, idem_key="k", token=await desk.token("otro")
    )

    assert session.request is not None


async def test_key_of_an_ended_request_makes_a_new_one(desk: FrameDesk) -> None:
    """An expired attempt is no signature: the key may be used again for it."""
    someone = await desk.add_person()
    first = await desk.proven(someone, PDF, idem_key="k")
    assert first.request is not None
    async with desk.desk.store.write() as records:
        await records.requests.move(
            first.request, RequestState.PENDING, RequestState.EXPIRED
        )
    second = await desk.proven(someone, PDF, idem_key="k")

    assert second.request not in {None, first.request}


async def test_event_is_one_for_all_sessions_of_a_request(desk: FrameDesk) -> None:
    """Two sessions ask at once what became of their signature: one event."""
    someone = await desk.add_person()
    first = await desk.proven(someone, PDF, idem_key="k")
    second = await desk.proven(someone, PDF, idem_key="k")
    await desk.move(first.request, RequestState.SIGNED)
    views = await asyncio.gather(
        desk.signing.view(first), desk.signing.view(second), desk.signing.view(first)
    )

    completed = [view.completed for view in views]
    assert completed[0] is not None
    assert completed[0] == completed[1] == completed[2]
    assert completed[0]["idemKey"] == "k"
    assert completed[0]["delivery"] == {"mode": "binary"}


async def test_delivery_follows_the_integrators_limit(desk: FrameDesk) -> None:
    """Over it the document is told by address; the address is fresh each time."""
    await desk.desk.integrators.change("operator", "acme", delivery_limit_bytes=4999)
    someone = await desk.add_person()
    session = await desk.proven(someone)
    await desk.move(session.request, RequestState.SIGNED)
    one = await desk.signing.completed(session)
    two = await desk.signing.completed(session)

    assert one["eventId"] == two["eventId"]
    assert one["delivery"] != two["delivery"]
    delivery = one["delivery"]
    assert isinstance(delivery, dict)
    assert delivery["mode"] == "url"
    assert delivery["url"].startswith("https://firma.example/solicitudes/")


async def test_bytes_stay_those_that_the_event_tells_of(desk: FrameDesk) -> None:
    """A timestamp that comes later makes another version, with another hash."""
    session = await desk.proven(await desk.add_person())
    assert session.request is not None
    integrator = session.integrator.id
    sha256 = await desk.documents.put(integrator, PDF)
    await desk.move(session.request, RequestState.SIGNED, sha256=sha256)
    await desk.signing.completed(session)
    async with desk.desk.store.write() as records:
        first = await records.documents.signed(session.request)
        assert first is not None
        later = await desk.documents.put(integrator, PDF, b"later")
        raised = replace(first, sha256=later, version=2)
        await records.documents.sealed(session.request, raised, desk.desk.clock.now())

    told = await desk.signing.completed(session)
    view, pdf = await desk.signing.signed(await desk.again(session))

    delivery = told["delivery"]
    assert isinstance(delivery, dict)
    assert delivery["url"].endswith(f"&sha256={sha256}")
    assert view.sha256 == sha256
    assert b"".join([piece async for piece in pdf.pieces]) == PDF


async def test_failed_request_is_told_with_its_reason(desk: FrameDesk) -> None:
    """The state is failed, and why."""
    someone = await desk.add_person()
    session = await desk.proven(someone)
    await desk.move(session.request, RequestState.FAILED, "SIGNING_FAILED")
    view = await desk.signing.view(session)

    assert view.state is FrameState.FAILED
    assert view.reason is ErrorCode.SIGNING_FAILED


async def test_renewal_carries_everything_over(desk: FrameDesk) -> None:
    """Document, signer, request and key go on under the new token."""
    someone = await desk.add_person()
    token = await desk.token()
    opened = await desk.open(token, idem_key="k")
    view = await desk.framing.take_document(opened.view.session, "a.pdf", PDF)
    await desk.framing.identify(view.session, desk.claim(someone), ADDRESS)
    session = await desk.again(view.session)
    await desk.framing.prove(session, desk.code(someone), ADDRESS)
    desk.desk.clock.forward(1801)
    renewed = await desk.framing.renew(opened.bearer, await desk.token())

    assert renewed.view.state is FrameState.AUTHORISED
    assert renewed.view.session.idem_key == "k"
    assert renewed.view.seconds_left == 1800
    async with desk.desk.store.read() as records:
        assert renewed.view.session.request is not None
        request = await records.requests.get(renewed.view.session.request)
    assert request is not None
    assert request.expires == renewed.view.session.until
    await refused(
        desk.desk.sessions.by_bearer(opened.bearer), ErrorCode.SESSION_TOKEN_EXPIRED
    )


@pytest.mark.parametrize("case", ["used", "foreign", "unknown"])
async def test_renewal_needs_a_fresh_token_of_the_integrator(
    desk: FrameDesk, case: str
) -> None:
    """A used, a foreign and an unknown token renew nothing."""
    opened = await desk.open()
    token, code = "x" * 43, ErrorCode.SESSION_TOKEN_INVALID
    if case == "used":
        token, code = await desk.token(), ErrorCode.SESSION_IN_USE
        await desk.open(token)
    if case == "foreign":
        token, code = await desk.token("otro"), ErrorCode.INIT_INVALID

    await refused(desk.framing.renew(opened.bearer, token), code)


async def test_only_pending_requests_of_the_integrator_are_offered(
    desk: FrameDesk,
) -> None:
    """And only to a proven signer; those of sessions are nobody's to pick."""
    someone = await desk.add_person()
    await desk.proven(someone)
    opened = await desk.open()
    await refused(
        desk.framing.waiting(opened.view.session), ErrorCode.IDENTITY_MISMATCH
    )
    session = await desk.proven(someone, None)

    assert await desk.framing.waiting(session) == []


async def test_request_of_somebody_else_cannot_be_chosen(desk: FrameDesk) -> None:
    """A number that was not offered is not found."""
    someone, other = await desk.add_person(), await desk.add_person("20055361682")
    theirs = await desk.proven(other)
    session = await desk.proven(someone, None)
    assert theirs.request is not None

    await refused(
        desk.framing.choose(session, theirs.request), ErrorCode.SOLICITUD_NOT_FOUND
    )


async def test_place_is_asked_for_by_a_proven_signer(desk: FrameDesk) -> None:
    """Before there is a request there is no place to be shown."""
    opened = await desk.open()
    taken = await desk.framing.take_document(opened.view.session, "a.pdf", PDF)

    await refused(
        desk.signing.placement(taken.session, TOP_LEFT),
        ErrorCode.SESSION_IN_USE,
    )


@pytest.mark.parametrize(
    ("pdf", "page", "field"), [(CERTIFIED, 2, "Firma"), (FULL, None, None)]
)
async def test_certified_document_is_signed_as_it_permits(
    desk: FrameDesk, pdf: bytes, page: int | None, field: str | None
) -> None:
    """In its own field, whatever corner was chosen; else without a mark.

    Source: docs/signing.md "What a document allows".
    """
    session = await desk.proven(await desk.add_person(), pdf)

    placed = await desk.signing.placement(session, TOP_LEFT)

    assert placed.params.field == field
    assert (placed.layout.page if placed.layout else None) == page


async def test_signer_chooses_a_field_or_no_mark(desk: FrameDesk) -> None:
    """Both go into the command; a field that there is not is refused before."""
    session = await desk.proven(await desk.add_person(), CERTIFIED)
    placed = await desk.signing.placement(session, replace(TOP_LEFT, field="Firma"))
    unseen = await desk.signing.placement(session, PlaceChoice(Corner.NONE, 1))

    assert placed.params == SignParameters(field="Firma")
    assert placed.png is not None
    assert (unseen.params.field, unseen.params.visible) == (None, False)
    await refused(
        desk.signing.placement(session, replace(TOP_LEFT, field="Otro")),
        ErrorCode.SIGNATURE_FIELD_NOT_FOUND,
    )


async def test_place_is_told_while_nothing_can_be_drawn(
    desk: FrameDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the sandbox the mark has its box and its words, and no picture."""

    async def away(*_: object) -> bytes:
        raise ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)

    session = await desk.proven(await desk.add_person())
    monkeypatch.setattr(FakeInspector, "render", away)
    placed = await desk.signing.placement(session, TOP_LEFT)

    assert placed.png is None
    assert placed.layout is not None
    assert placed.layout.lines[1] == "Ana Pérez"


async def test_cancelled_session_is_over(desk: FrameDesk) -> None:
    """Its request is rejected, and nothing can be done with it any more."""
    someone = await desk.add_person()
    session = await desk.proven(someone)
    await desk.signing.cancel(session, by_signer=True)
    view = await desk.signing.view(session)

    assert view.state is FrameState.CANCELLED
    await refused(
        desk.signing.cancel(session, by_signer=True), ErrorCode.SESSION_IN_USE
    )


async def test_session_that_is_being_signed_cannot_be_cancelled(
    desk: FrameDesk,
) -> None:
    """What was submitted goes on."""
    someone = await desk.add_person()
    session = await desk.proven(someone)
    await desk.move(session.request, RequestState.IN_PROGRESS)

    await refused(desk.signing.cancel(session, by_signer=False), ErrorCode.STATE)
    assert (await desk.again(session)).state.value == "open"


async def test_api_key_in_a_page_is_recorded_without_its_value(
    desk: FrameDesk,
) -> None:
    """The audit says whose page; an unknown page says nothing."""
    opened = await desk.open()
    await desk.framing.warn_legacy(opened.view.session.public_id)
    await desk.framing.warn_legacy("0" * 24)

    (event,) = await desk.desk.audited(EventKind.LEGACY_CREDENTIALS)
    assert event.detail == {"session": opened.view.session.public_id}


async def test_session_brings_so_many_documents_and_no_more(
    tmp_path: Path,
) -> None:
    """Counted before they are looked at; a refused one counts too."""
    async with open_frame_desk(tmp_path, documents={"per_session": 3}) as desk:
        session = (await desk.open()).view.session
        await desk.framing.take_document(session, "a.pdf", PDF)
        with pytest.raises(DocumentRefusedError):
            await desk.framing.take_document(session, "a.pdf", b"no PDF")
        await desk.framing.take_document(session, "b.pdf", OTHER)

        with pytest.raises(ApplianceError) as caught:
            await desk.framing.take_document(session, "c.pdf", PDF)

        assert caught.value.code is ErrorCode.SESSION_DOCUMENTS
        another = (await desk.open()).view.session
        view = await desk.framing.take_document(another, "a.pdf", PDF)
        assert view.document is not None
