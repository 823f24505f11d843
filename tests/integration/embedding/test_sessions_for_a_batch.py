"""Sessions that a backend opened for a batch, on both databases."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from appliance.database.tables import audit_event
from appliance.domain.embedding import EmbedSessionState
from appliance.domain.errors import ErrorCode
from appliance.domain.ids import RequestBatchId, RequestId, new_id
from appliance.domain.integrators.integrators import (
    EmbedSession,
    IntegratorCaller,
    SessionFault,
)
from appliance.domain.requests.intake import NewRequest
from appliance.domain.vocab import EventKind, RequestState
from appliance.integrators.session_store import SessionStore
from appliance.requests.request_store import RequestStore
from tests.integration.integrators.acme import sweeping
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


async def asked(
    frame_services: FrameServices, someone: Someone, count: int = 3
) -> tuple[RequestBatchId, list[RequestId]]:
    """A batch of the integrator for somebody, and its requests."""
    opened = await frame_services.open()
    taken = await frame_services.framing.take_document(
        opened.view.session, "a.pdf", PDF
    )
    document = taken.session.document
    assert document is not None
    batch = RequestBatchId(new_id())
    async with frame_services.services.store.write() as transaction:
        made = [
            await RequestStore(transaction).add(
                NewRequest(
                    person=someone.id,
                    integrator=taken.session.integrator.id,
                    document=document.id,
                    name=f"{number}.pdf",
                    origin="integrador",
                    created=frame_services.services.clock.now(),
                    expires=None,
                    batch=batch,
                )
            )
            for number in range(count)
        ]
    return batch, made


async def token_for(
    frame_services: FrameServices, wanted: RequestId | RequestBatchId | None
) -> str:
    """A token that the backend got for a batch, a request, or for any."""
    services = frame_services.services
    integrator = await services.integrators.get(CODE)
    (key, *_) = await services.integrators.keys(CODE)
    asking = IntegratorCaller(integrator, key.id)
    return (await services.sessions.open_for(asking, wanted)).token


async def proven(
    frame_services: FrameServices, someone: Someone, batch: RequestBatchId
) -> EmbedSession:
    """A session for a batch whose signer has given a right code."""
    token = await token_for(frame_services, batch)
    return await frame_services.proven(someone, None, token=token)


async def read(
    frame_services: FrameServices, session: EmbedSession, *requests: RequestId
) -> EmbedSession:
    """Open documents of the batch, and go on from each."""
    for request in requests:
        view = await frame_services.batches.open(session, request)
        session = view.session
        assert view.document is not None
        await frame_services.framing.saw(session, view.document.sha256)
    return session


async def events(frame_services: FrameServices, kind: EventKind) -> int:
    """How often something stands in the audit."""
    async with frame_services.services.store.read() as transaction:
        found = await transaction.connection.execute(
            select(audit_event.c.n).where(audit_event.c.event == kind.value)
        )
        return len(found.all())


async def test_each_document_is_read_before_any_is_signed(
    frame_services: FrameServices, someone: Someone
) -> None:
    """What was read is kept for a later session; each reading is in the audit."""
    batch, requests = await asked(frame_services, someone)
    session = await proven(frame_services, someone, batch)
    view = await frame_services.signing.view(session)
    assert view.state is EmbedSessionState.AUTHORISED
    assert view.document is None
    assert view.batch is not None
    assert (view.batch.total, view.batch.seen, view.batch.unread) == (3, 0, 3)

    await read(frame_services, session, *requests[:2])

    await refused(
        frame_services.batches.sign(session, "a password"), ErrorCode.DOCUMENT_CHANGED
    )
    later = await proven(frame_services, someone, batch)
    listed = await frame_services.batches.documents(later, RequestId(0))
    assert [each.is_seen for each in listed.documents] == [True, True, False]
    assert [(each.name, each.pages) for each in listed.documents] == [
        ("0.pdf", 3),
        ("1.pdf", 3),
        ("2.pdf", 3),
    ]
    assert await events(frame_services, EventKind.REQUEST_VIEWED) == 2
    rest = await frame_services.batches.documents(later, requests[1])
    assert [each.request for each in rest.documents] == requests[2:]


async def test_list_tells_of_the_signatures_that_there_are(
    frame_services: FrameServices, someone: Someone
) -> None:
    """Each by its document's own name, and of the others nothing."""
    batch, requests = await asked(frame_services, someone)
    session = await proven(frame_services, someone, batch)
    await frame_services.move(requests[1], RequestState.SIGNED)

    listed = await frame_services.batches.documents(session, RequestId(0))

    assert len(listed.documents) == 3
    assert {request: told.file_name for request, told in listed.signed.items()} == {
        requests[1]: "1-firmado.pdf"
    }


async def test_nobody_else_sees_it(
    frame_services: FrameServices, someone: Someone
) -> None:
    """Neither another person, nor a session for another batch, nor before the code."""
    other = await frame_services.add_person("20055361682")
    batch, requests = await asked(frame_services, someone)
    own, _ = await asked(frame_services, other)
    opened = await frame_services.open(await token_for(frame_services, batch))
    session = opened.view.session

    await refused(
        frame_services.framing.identify(session, frame_services.claim(other), ADDRESS),
        ErrorCode.IDENTITY_MISMATCH,
    )
    assert opened.view.batch is None
    await refused(
        frame_services.batches.documents(session, RequestId(0)),
        ErrorCode.SESSION_IN_USE,
    )
    theirs = await proven(frame_services, other, own)
    for work in (
        frame_services.batches.open(theirs, requests[0]),
        frame_services.batches.completed(theirs, requests[0]),
    ):
        await refused(work, ErrorCode.SOLICITUD_NOT_FOUND)
    anything = await frame_services.proven(other, None, content="another one")
    await refused(
        frame_services.batches.documents(anything, RequestId(0)),
        ErrorCode.SESSION_IN_USE,
    )


async def test_no_document_comes_with_it(
    frame_services: FrameServices, someone: Someone
) -> None:
    """Neither the host's nor the signer's; and none is signed by itself."""
    batch, requests = await asked(frame_services, someone)
    session = await proven(frame_services, someone, batch)

    await refused(
        frame_services.framing.take_document(session, "b.pdf", PDF),
        ErrorCode.SESSION_IN_USE,
    )
    session = await read(frame_services, session, requests[0])
    await refused(frame_services.batches.finish(session), ErrorCode.SESSION_IN_USE)


async def test_renewal_goes_on_with_the_same_batch(
    frame_services: FrameServices, someone: Someone
) -> None:
    """By a token for it or for any; one for another batch is refused."""
    other, _ = await asked(frame_services, someone)
    batch, _ = await asked(frame_services, someone)
    opened = await frame_services.open(await token_for(frame_services, batch))
    bearer = opened.bearer

    await refused(
        frame_services.framing.renew(bearer, await token_for(frame_services, other)),
        ErrorCode.SESSION_IN_USE,
    )
    for token in (
        await token_for(frame_services, batch),
        await frame_services.token(),
    ):
        renewed = await frame_services.framing.renew(bearer, token)
        bearer = renewed.bearer
        assert (await frame_services.again(renewed.view.session)).batch == batch


async def test_renewal_tells_its_end_no_second_time(
    frame_services: FrameServices, someone: Someone
) -> None:
    """The page is told the same."""
    batch, requests = await asked(frame_services, someone, 1)
    opened = await frame_services.open(await token_for(frame_services, batch))
    session = await frame_services.prove(someone, opened.view.session)
    await frame_services.move(requests[0], RequestState.SIGNED)
    told = (await frame_services.signing.view(session)).session.completed

    renewed = await frame_services.framing.renew(
        opened.bearer, await token_for(frame_services, batch)
    )
    again = await frame_services.signing.view(renewed.view.session)

    assert again.state is EmbedSessionState.SIGNED
    assert told is not None
    assert again.session.completed == told
    assert await events(frame_services, EventKind.SESSION_COMPLETED) == 1


@pytest.mark.parametrize("begun", [True, False])
async def test_key_that_is_revoked_keeps_no_page_from_what_was_signed(
    frame_services: FrameServices, someone: Someone, begun: bool
) -> None:
    """Whichever document was read last, or none; where nothing was begun it ends."""
    services = frame_services.services
    batch, requests = await asked(frame_services, someone, 2)
    opened = await frame_services.open(await token_for(frame_services, batch))
    session = await frame_services.prove(someone, opened.view.session)
    if begun:
        await frame_services.move(requests[0], RequestState.SIGNED)
    async with services.store.write() as transaction:
        await SessionStore(transaction).end_of_integrator(
            session.integrator.id, services.clock.now()
        )

    found = services.sessions.by_bearer(opened.bearer, late=True)

    if begun:
        assert (await found).id == session.id
    else:
        await refused(found, ErrorCode.SESSION_TOKEN_EXPIRED)


async def test_end_is_told_once_for_all_and_once_for_each(
    frame_services: FrameServices, someone: Someone
) -> None:
    """One was withdrawn and one failed; whoever asks again is told the same."""
    batch, requests = await asked(frame_services, someone)
    session = await proven(frame_services, someone, batch)
    session = await read(frame_services, session, *requests)
    async with frame_services.services.store.write() as transaction:
        await RequestStore(transaction).move(
            requests[0], RequestState.PENDING, RequestState.CANCELLED
        )
    await frame_services.move(requests[1], RequestState.IN_PROGRESS)
    assert (
        await frame_services.signing.view(session)
    ).state is EmbedSessionState.SIGNING
    async with frame_services.services.store.write() as transaction:
        await RequestStore(transaction).move(
            requests[1],
            RequestState.IN_PROGRESS,
            RequestState.FAILED,
            "SIGNING_FAILED",
        )
    await frame_services.move(requests[2], RequestState.SIGNED)

    view = await frame_services.signing.view(session)
    await frame_services.signing.view(session)

    assert view.state is EmbedSessionState.SIGNED
    assert view.batch is not None
    assert (view.batch.total, view.batch.signed, view.batch.pending) == (3, 1, 0)
    assert await events(frame_services, EventKind.SESSION_COMPLETED) == 1
    told = await frame_services.batches.completed(session, requests[2])
    later = await proven(frame_services, someone, batch)
    again = await frame_services.batches.completed(later, requests[2])
    assert told["signedDocId"] == str(requests[2])
    assert told["eventId"] == again["eventId"]
    alone = await frame_services.proven(
        someone, None, token=await token_for(frame_services, requests[2])
    )
    once_more = await frame_services.signing.completed(alone)
    assert once_more["eventId"] == told["eventId"]
    await refused(
        frame_services.batches.completed(session, requests[1]),
        ErrorCode.NOT_SIGNED_YET,
    )


async def test_signer_may_leave_it_at_what_is_signed(
    frame_services: FrameServices, someone: Someone
) -> None:
    """What was given back goes on waiting, and the session is done."""
    batch, requests = await asked(frame_services, someone, 2)
    session = await proven(frame_services, someone, batch)
    session = await read(frame_services, session, *requests)
    await frame_services.move(requests[0], RequestState.SIGNED)
    assert (
        await frame_services.signing.view(session)
    ).state is EmbedSessionState.AUTHORISED

    view = await frame_services.batches.finish(session)

    assert view.state is EmbedSessionState.SIGNED
    assert view.batch is not None
    assert (view.batch.signed, view.batch.pending) == (1, 1)
    assert await events(frame_services, EventKind.SESSION_COMPLETED) == 1


async def test_one_is_rejected_and_the_others_wait(
    frame_services: FrameServices, someone: Someone
) -> None:
    """Once all are, the session is rejected."""
    batch, requests = await asked(frame_services, someone, 2)
    session = await proven(frame_services, someone, batch)
    session = await read(frame_services, session, requests[0])

    view = await frame_services.batches.reject(session, "No es mío")

    assert view.state is EmbedSessionState.AUTHORISED
    await refused(
        frame_services.batches.open(session, requests[0]),
        ErrorCode.SOLICITUD_NOT_FOUND,
    )
    session = await read(frame_services, session, requests[1])
    view = await frame_services.batches.reject(session, "")
    assert view.state is EmbedSessionState.REJECTED


async def test_faults_that_a_session_is_to_try(
    frame_services: FrameServices, someone: Someone
) -> None:
    """A busy HSM changes nothing; a rejection is of all that waits."""
    services = frame_services.services
    (key, *_) = await services.integrators.keys(CODE)
    asking = IntegratorCaller(await services.integrators.get(CODE), key.id)
    for fault, code, state in (
        (SessionFault.BUSY, ErrorCode.HSM_UNAVAILABLE, EmbedSessionState.AUTHORISED),
        (
            SessionFault.REJECTION,
            ErrorCode.SESSION_IN_USE,
            EmbedSessionState.REJECTED,
        ),
    ):
        batch, requests = await asked(frame_services, someone, 2)
        opened = await services.sessions.open_for(asking, batch, fault)
        session = await frame_services.proven(someone, None, token=opened.token)
        session = await read(frame_services, session, *requests)

        await refused(frame_services.batches.sign(session, "a password"), code)

        assert (await frame_services.signing.view(session)).state is state


async def test_leaving_waits_for_what_is_being_signed(
    frame_services: FrameServices, someone: Someone
) -> None:
    """And is an end like any other before."""
    batch, requests = await asked(frame_services, someone, 2)
    session = await proven(frame_services, someone, batch)
    session = await read(frame_services, session, requests[1])
    await frame_services.move(requests[0], RequestState.IN_PROGRESS)
    await refused(
        frame_services.signing.cancel(session, by_signer=True), ErrorCode.STATE
    )
    async with frame_services.services.store.write() as transaction:
        await RequestStore(transaction).move(
            requests[0], RequestState.IN_PROGRESS, RequestState.PENDING
        )

    await frame_services.signing.cancel(session, by_signer=True)

    view = await frame_services.signing.view(session)
    assert view.state is EmbedSessionState.CANCELLED
    await refused(
        frame_services.batches.sign(session, "a password"), ErrorCode.SESSION_IN_USE
    )


async def test_batch_that_is_done_cannot_be_left(
    frame_services: FrameServices, someone: Someone
) -> None:
    """Its host is still to be told of the signatures; whatever was read last."""
    batch, requests = await asked(frame_services, someone, 2)
    session = await proven(frame_services, someone, batch)
    session = await read(frame_services, session, *requests)
    for request in requests:
        await frame_services.move(request, RequestState.SIGNED)

    await refused(
        frame_services.signing.cancel(session, by_signer=False),
        ErrorCode.SESSION_IN_USE,
    )


async def test_time_ends_a_session_whose_page_is_gone(
    frame_services: FrameServices, someone: Someone
) -> None:
    """By what became of its batch, once; not while some of it is being signed."""
    services = frame_services.services
    done, (only,) = await asked(frame_services, someone, 1)
    working, (in_work, _) = await asked(frame_services, someone, 2)
    waiting, _ = await asked(frame_services, someone, 2)
    signed = await proven(frame_services, someone, done)
    for batch in (working, waiting):
        await frame_services.open(await token_for(frame_services, batch))
    await frame_services.move(only, RequestState.SIGNED)
    await frame_services.move(in_work, RequestState.IN_PROGRESS)
    services.clock.forward(timedelta(hours=1).total_seconds())

    await sweeping(services).expire_sessions()
    await sweeping(services).expire_sessions()

    async with services.store.read() as transaction:
        told = (
            await transaction.connection.execute(
                select(audit_event.c.event, audit_event.c.detail).where(
                    audit_event.c.actor == "system"
                )
            )
        ).all()
        session = await SessionStore(transaction).get(signed.id)
    ends = {row.detail["batch"]: row.event for row in told if "batch" in row.detail}
    assert ends == {
        done: EventKind.SESSION_COMPLETED.value,
        waiting: EventKind.SESSION_EXPIRED.value,
    }
    assert len([row for row in told if "batch" in row.detail]) == 2
    assert session is not None
    assert session.completed is not None
    assert (session.completed["total"], session.completed["signed"]) == (1, 1)
