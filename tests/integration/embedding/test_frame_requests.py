"""What a session of the frame may do with documents and requests, on both databases.

Source: decisions "Iframe".
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.documents.document_store import DocumentStore
from appliance.domain.appearance.presets import Corner
from appliance.domain.documents.inspected import FindingKind
from appliance.domain.embedding import EmbedSessionState, PlaceChoice, SignOrder
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ids import PersonId, RequestId
from appliance.domain.requests.intake import NewRequest
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import EventKind, RequestState
from appliance.integrators.session_store import SessionStore
from appliance.requests.request_store import RequestStore
from appliance.web import problems
from tests.support.factories.fake_sandbox import (
    CERTIFIED,
    DAMAGED_PDF,
    FULL,
    FakeInspector,
)
from tests.support.installation.frame import ADDRESS, FrameServices, refused
from tests.support.installation.installation import Installation

PDF, OTHER = b"%PDF one", b"%PDF another"
TOP_LEFT = PlaceChoice(Corner.TOP_LEFT, 1)


@pytest.fixture
async def frame_services(tmp_path: Path, each_url: str) -> AsyncIterator[FrameServices]:
    """The frame's services on a fresh database."""
    async with Installation(tmp_path, each_url).frame_services() as made:
        yield made


async def end_pending(
    frame_services: FrameServices, request: RequestId | None, then: RequestState
) -> None:
    """Have a request that nobody has begun to sign end."""
    if then is RequestState.FAILED:
        return await frame_services.move(request, then, "SIGNING_FAILED")
    assert request is not None
    async with frame_services.services.store.write() as transaction:
        assert await RequestStore(transaction).move(request, RequestState.PENDING, then)
    return None


async def pending(frame_services: FrameServices, person: PersonId) -> RequestId:
    """A request of the integrator that waits in the person's list."""
    opened = await frame_services.open()
    taken = await frame_services.framing.take_document(
        opened.view.session, "a.pdf", PDF
    )
    document = taken.session.document
    assert document is not None
    async with frame_services.services.store.write() as transaction:
        return await RequestStore(transaction).add(
            NewRequest(
                person=person,
                integrator=taken.session.integrator.id,
                document=document.id,
                name="a.pdf",
                origin="api",
                created=frame_services.services.clock.now(),
                expires=None,
            )
        )


async def test_document_is_fixed_by_the_request(frame_services: FrameServices) -> None:
    """Once there is a request, another document is SESSION_IN_USE."""
    someone = await frame_services.add_person()
    session = await frame_services.proven(someone)

    await refused(
        frame_services.framing.take_document(session, "b.pdf", OTHER),
        ErrorCode.SESSION_IN_USE,
    )


async def test_document_after_the_code_makes_the_request(
    frame_services: FrameServices,
) -> None:
    """A signer may be proven first and choose a document then."""
    someone = await frame_services.add_person()
    session = await frame_services.proven(someone, None)
    assert session.request is None

    view = await frame_services.framing.take_document(session, "a.pdf", PDF)
    assert view.state is EmbedSessionState.AUTHORISED


async def test_one_key_is_one_request(frame_services: FrameServices) -> None:
    """Two sessions with one key, at once, get the same request."""
    someone = await frame_services.add_person()
    first = await frame_services.proven(someone, None, idem_key="k")
    second = await frame_services.proven(someone, None, idem_key="k")
    views = await asyncio.gather(
        frame_services.framing.take_document(first, "a.pdf", PDF),
        frame_services.framing.take_document(second, "a.pdf", PDF),
    )

    assert views[0].session.request == views[1].session.request
    assert len(await frame_services.services.audited(EventKind.REQUEST_CREATED)) == 1


async def test_key_with_another_document_conflicts(
    frame_services: FrameServices,
) -> None:
    """Told when the document comes, before anybody is asked for a code."""
    someone = await frame_services.add_person()
    await frame_services.proven(someone, PDF, idem_key="k")
    opened = await frame_services.open(idem_key="k")

    await refused(
        frame_services.framing.take_document(opened.view.session, "b.pdf", OTHER),
        ErrorCode.IDEMKEY_CONFLICT,
    )


async def test_copy_and_its_bytes_are_two_documents(
    frame_services: FrameServices,
) -> None:
    """Each request says what its session brought; a key stands for one of them."""
    someone = await frame_services.add_person()
    made = (await FakeInspector(1).repair(DAMAGED_PDF)).pdf
    opened = await frame_services.open(idem_key="k")
    brought = await frame_services.framing.take_document(
        opened.view.session, "a.pdf", DAMAGED_PDF
    )
    own = await frame_services.proven(someone, made)
    unproven = (await frame_services.open()).view.session
    plain = await frame_services.framing.take_document(unproven, "a.pdf", made)
    of_copy = await frame_services.prove(someone, brought.session)
    again = await frame_services.proven(someone, DAMAGED_PDF, idem_key="k")
    await refused(
        frame_services.proven(someone, made, idem_key="k"), ErrorCode.IDEMKEY_CONFLICT
    )

    assert of_copy.request == again.request != own.request
    for view, is_copy in ((brought, True), (plain, False)):
        assert view.document is not None
        found = view.document.inspection.findings
        assert (FindingKind.REPAIRED in found) is is_copy
    async with frame_services.services.store.read() as transaction:
        requests = [each.request for each in (of_copy, own) if each.request]
        views = await RequestStore(transaction).named(requests)
    for session, is_copy in ((of_copy, True), (own, False)):
        assert session.request is not None
        request = views[session.request]
        assert (request.repair is not None) is is_copy
        assert (FindingKind.REPAIRED in request.inspection.findings) is is_copy


async def test_key_with_another_signer_conflicts(frame_services: FrameServices) -> None:
    """What one person began under a key is not another one's."""
    someone = await frame_services.add_person()
    other = await frame_services.add_person("20055361682")
    await frame_services.proven(someone, PDF, idem_key="k")

    await refused(
        frame_services.proven(other, PDF, idem_key="k"), ErrorCode.IDEMKEY_CONFLICT
    )


async def test_key_of_another_integrator_is_another_key(
    frame_services: FrameServices,
) -> None:
    """Keys belong to their integrator."""
    someone = await frame_services.add_person()
    await frame_services.proven(someone, PDF, idem_key="k")
    session = await frame_services.proven(
        someone, OTHER, idem_key="k", token=await frame_services.token("otro")
    )

    assert session.request is not None


@pytest.mark.parametrize("end", [RequestState.EXPIRED, RequestState.FAILED])
async def test_key_of_a_request_that_came_to_nothing_makes_a_new_one(
    frame_services: FrameServices, end: RequestState
) -> None:
    """Nobody decided about it: the key may be used again for its document."""
    someone = await frame_services.add_person()
    first = await frame_services.proven(someone, PDF, idem_key="k")
    await end_pending(frame_services, first.request, end)
    second = await frame_services.proven(someone, PDF, idem_key="k")

    assert second.request not in {None, first.request}
    assert (
        await frame_services.signing.view(second)
    ).state is EmbedSessionState.AUTHORISED


@pytest.mark.parametrize("brings", [PDF, None], ids=["document", "no-document"])
@pytest.mark.parametrize(
    ("end", "state"),
    [
        (RequestState.REJECTED, EmbedSessionState.REJECTED),
        (RequestState.CANCELLED, EmbedSessionState.CANCELLED),
    ],
)
async def test_key_of_a_decided_request_shows_what_was_decided(
    frame_services: FrameServices,
    end: RequestState,
    state: EmbedSessionState,
    brings: bytes | None,
) -> None:
    """Refused is for good, also for a session that comes a week later."""
    someone = await frame_services.add_person()
    first = await frame_services.proven(someone, PDF, idem_key="k")
    if end is RequestState.REJECTED:
        await frame_services.signing.reject(first, "No")
    else:
        await end_pending(frame_services, first.request, end)
    frame_services.services.clock.forward(7 * 24 * 3600)
    async with frame_services.services.store.write() as transaction:
        await SessionStore(transaction).sweep(frame_services.services.clock.now())
    again = await frame_services.proven(someone, brings, idem_key="k")

    assert again.request == first.request
    view = await frame_services.signing.view(again)
    assert (view.state, view.withdrawn) == (state, end is RequestState.CANCELLED)
    order = SignOrder(TOP_LEFT, "", "a password that is right")
    await refused(frame_services.signing.sign(again, order), ErrorCode.SESSION_IN_USE)
    assert len(await frame_services.services.audited(EventKind.REQUEST_CREATED)) == 1


async def test_rejected_key_is_nobody_elses(frame_services: FrameServices) -> None:
    """What one person refused is not asked of another under the same key."""
    someone = await frame_services.add_person()
    other = await frame_services.add_person("20055361682")
    await frame_services.signing.reject(
        await frame_services.proven(someone, PDF, idem_key="k"), ""
    )

    for brings in (PDF, None):
        work = frame_services.proven(other, brings, idem_key="k")
        await refused(work, ErrorCode.IDEMKEY_CONFLICT)


async def test_rejected_key_picks_nothing_else_from_the_list(
    frame_services: FrameServices,
) -> None:
    """Of two tabs with one key, what one refused the other does not put right."""
    someone = await frame_services.add_person()
    listed = [await pending(frame_services, someone.id) for _ in range(2)]
    one = await frame_services.proven(someone, None, idem_key="k")
    two = await frame_services.proven(someone, None, idem_key="k")
    chosen = await frame_services.framing.choose(one, listed[0])
    await frame_services.signing.reject(chosen.session, "")

    view = await frame_services.framing.choose(two, listed[1])
    assert (view.session.request, view.state) == (listed[0], EmbedSessionState.REJECTED)


async def test_rejection_and_code_at_once_sign_nothing(
    frame_services: FrameServices,
) -> None:
    """Whichever is first: both sessions show that the signer refused."""
    someone = await frame_services.add_person()
    one = await frame_services.proven(someone, PDF, idem_key="k")
    two = await frame_services.proven(someone, None, idem_key="k")
    await asyncio.gather(
        frame_services.signing.reject(one, ""),
        frame_services.framing.take_document(two, "a.pdf", PDF),
    )

    states = {
        (await frame_services.signing.view(session)).state for session in (one, two)
    }
    assert states == {EmbedSessionState.REJECTED}


async def test_event_is_one_for_all_sessions_of_a_request(
    frame_services: FrameServices,
) -> None:
    """Two sessions ask at once what became of their signature: one event."""
    someone = await frame_services.add_person()
    first = await frame_services.proven(someone, PDF, idem_key="k")
    second = await frame_services.proven(someone, PDF, idem_key="k")
    await frame_services.move(first.request, RequestState.SIGNED)
    views = await asyncio.gather(
        frame_services.signing.view(first),
        frame_services.signing.view(second),
        frame_services.signing.view(first),
    )

    completed = [view.completed for view in views]
    assert completed[0] is not None
    assert completed[0] == completed[1] == completed[2]
    assert completed[0]["idemKey"] == "k"
    assert completed[0]["delivery"] == {"mode": "binary"}


async def test_delivery_follows_the_integrators_limit(
    frame_services: FrameServices,
) -> None:
    """Over it the document is told by address; the address is fresh each time."""
    await frame_services.services.integrators.change(
        "operator", "acme", delivery_limit_bytes=4999
    )
    someone = await frame_services.add_person()
    session = await frame_services.proven(someone)
    await frame_services.move(session.request, RequestState.SIGNED)
    one = await frame_services.signing.completed(session)
    two = await frame_services.signing.completed(session)

    assert one["eventId"] == two["eventId"]
    assert one["delivery"] != two["delivery"]
    delivery = one["delivery"]
    assert isinstance(delivery, dict)
    assert delivery["mode"] == "url"
    assert delivery["url"].startswith("https://firma.example/solicitudes/")


async def test_bytes_stay_those_that_the_event_tells_of(
    frame_services: FrameServices,
) -> None:
    """A timestamp that comes later makes another version, with another hash."""
    session = await frame_services.proven(await frame_services.add_person())
    assert session.request is not None
    integrator = session.integrator.id
    sha256 = await frame_services.documents.put(integrator, PDF)
    await frame_services.move(session.request, RequestState.SIGNED, sha256=sha256)
    await frame_services.signing.completed(session)
    async with frame_services.services.store.write() as transaction:
        first = await DocumentStore(transaction).signed(session.request)
        assert first is not None
        later = await frame_services.documents.put(integrator, PDF, b"later")
        raised = replace(first, sha256=later, version=2)
        await DocumentStore(transaction).sealed(
            session.request, raised, frame_services.services.clock.now()
        )

    told = await frame_services.signing.completed(session)
    view, pdf = await frame_services.signing.signed(await frame_services.again(session))

    delivery = told["delivery"]
    assert isinstance(delivery, dict)
    assert delivery["url"].endswith(f"&sha256={sha256}")
    assert view.sha256 == sha256
    assert b"".join([piece async for piece in pdf.pieces]) == PDF


async def test_failed_request_is_told_with_its_reason(
    frame_services: FrameServices,
) -> None:
    """The state is failed, and why."""
    someone = await frame_services.add_person()
    session = await frame_services.proven(someone)
    await frame_services.move(session.request, RequestState.FAILED, "SIGNING_FAILED")
    view = await frame_services.signing.view(session)

    assert view.state is EmbedSessionState.FAILED
    assert view.reason is not None
    assert view.reason.code is ErrorCode.SIGNING_FAILED


@pytest.mark.parametrize("reason", ["TSA_UNAVAILABLE", "PROCESS_ENDED"])
async def test_request_that_failed_for_good_asks_for_no_repetition(
    frame_services: FrameServices, reason: str
) -> None:
    """Whatever its code would say of a single call; the page that reads it is told."""
    someone = await frame_services.add_person()
    session = await frame_services.proven(someone)
    shown = await frame_services.signing.view(session)
    assert shown.document is not None
    await frame_services.move(session.request, RequestState.FAILED, reason)

    view = await frame_services.signing.view(session)
    with pytest.raises(ApplianceError) as read:
        await frame_services.framing.saw(session, shown.document.sha256)

    for error in (view.reason, read.value):
        assert error is not None
        assert problems.category(error) is problems.Category.TERMINAL


async def test_only_pending_requests_of_the_integrator_are_offered(
    frame_services: FrameServices,
) -> None:
    """And only to a proven signer; those of sessions are nobody's to pick."""
    someone = await frame_services.add_person()
    await frame_services.proven(someone)
    opened = await frame_services.open()
    await refused(
        frame_services.framing.waiting(opened.view.session), ErrorCode.IDENTITY_MISMATCH
    )
    session = await frame_services.proven(someone, None)

    assert await frame_services.framing.waiting(session) == []


async def test_request_of_somebody_else_cannot_be_chosen(
    frame_services: FrameServices,
) -> None:
    """A number that was not offered is not found."""
    someone, other = (
        await frame_services.add_person(),
        await frame_services.add_person("20055361682"),
    )
    theirs = await frame_services.proven(other)
    session = await frame_services.proven(someone, None)
    assert theirs.request is not None

    await refused(
        frame_services.framing.choose(session, theirs.request),
        ErrorCode.SOLICITUD_NOT_FOUND,
    )


async def test_place_is_asked_for_by_a_proven_signer(
    frame_services: FrameServices,
) -> None:
    """Before there is a request there is no place to be shown."""
    opened = await frame_services.open()
    taken = await frame_services.framing.take_document(
        opened.view.session, "a.pdf", PDF
    )

    await refused(
        frame_services.signing.placement(taken.session, TOP_LEFT),
        ErrorCode.SESSION_IN_USE,
    )


@pytest.mark.parametrize(
    ("pdf", "page", "field"), [(CERTIFIED, 2, "Firma"), (FULL, None, None)]
)
async def test_certified_document_is_signed_as_it_permits(
    frame_services: FrameServices, pdf: bytes, page: int | None, field: str | None
) -> None:
    """In its own field, whatever corner was chosen; else without a mark.

    Source: docs/signing.md "What a document allows".
    """
    session = await frame_services.proven(await frame_services.add_person(), pdf)

    placed = await frame_services.signing.placement(session, TOP_LEFT)

    assert placed.params.field == field
    assert (placed.layout.page if placed.layout else None) == page


async def test_signer_chooses_a_field_or_no_mark(frame_services: FrameServices) -> None:
    """Both go into the command; a field that there is not is refused before."""
    session = await frame_services.proven(await frame_services.add_person(), CERTIFIED)
    placed = await frame_services.signing.placement(
        session, replace(TOP_LEFT, field="Firma")
    )
    unseen = await frame_services.signing.placement(
        session, PlaceChoice(Corner.NONE, 1)
    )

    assert placed.params == SignParameters(field="Firma")
    assert placed.png is not None
    assert (unseen.params.field, unseen.params.visible) == (None, False)
    await refused(
        frame_services.signing.placement(session, replace(TOP_LEFT, field="Otro")),
        ErrorCode.SIGNATURE_FIELD_NOT_FOUND,
    )


async def test_place_is_told_while_nothing_can_be_drawn(
    frame_services: FrameServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the sandbox the mark has its box and its words, and no picture."""

    async def away(*_: object) -> bytes:
        raise ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)

    session = await frame_services.proven(await frame_services.add_person())
    monkeypatch.setattr(FakeInspector, "render", away)
    placed = await frame_services.signing.placement(session, TOP_LEFT)

    assert placed.png is None
    assert placed.layout is not None
    assert placed.layout.lines[1] == "Ana Pérez"


async def test_session_that_is_being_signed_cannot_be_cancelled(
    frame_services: FrameServices,
) -> None:
    """What was submitted goes on."""
    someone = await frame_services.add_person()
    session = await frame_services.proven(someone)
    await frame_services.move(session.request, RequestState.IN_PROGRESS)

    await refused(
        frame_services.signing.cancel(session, by_signer=False), ErrorCode.STATE
    )
    assert (await frame_services.again(session)).state.value == "open"


async def test_session_that_signed_cannot_be_cancelled(
    frame_services: FrameServices,
) -> None:
    """Its host is still to be told of the signature."""
    someone = await frame_services.add_person()
    session = await frame_services.proven(someone)
    await frame_services.move(session.request, RequestState.SIGNED)

    await refused(
        frame_services.signing.cancel(session, by_signer=False),
        ErrorCode.SESSION_IN_USE,
    )
    assert (await frame_services.again(session)).state.value == "open"


async def test_session_that_was_left_is_said_to_be_over(
    frame_services: FrameServices,
) -> None:
    """Neither its documents nor its codes are too many: it is over."""
    someone = await frame_services.add_person()
    opened = await frame_services.open()
    session = opened.view.session
    await frame_services.framing.identify(
        session, frame_services.claim(someone), ADDRESS
    )
    session = await frame_services.again(session)
    await frame_services.signing.cancel(session, by_signer=True)

    for work in (
        frame_services.framing.take_document(session, "a.pdf", PDF),
        frame_services.framing.prove(session, frame_services.code(someone), ADDRESS),
    ):
        await refused(work, ErrorCode.SESSION_IN_USE)


async def test_session_brings_so_many_documents_and_no_more(
    tmp_path: Path,
) -> None:
    """Counted before they are looked at; a refused one counts too."""
    async with Installation(
        tmp_path, documents={"per_session": 3}
    ).frame_services() as services:
        session = (await services.open()).view.session
        await services.framing.take_document(session, "a.pdf", PDF)
        with pytest.raises(DocumentRefusedError):
            await services.framing.take_document(session, "a.pdf", b"no PDF")
        await services.framing.take_document(session, "b.pdf", OTHER)

        with pytest.raises(ApplianceError) as caught:
            await services.framing.take_document(session, "c.pdf", PDF)

        assert caught.value.code is ErrorCode.SESSION_DOCUMENTS
        another = (await services.open()).view.session
        view = await services.framing.take_document(another, "a.pdf", PDF)
        assert view.document is not None
