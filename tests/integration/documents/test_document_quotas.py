"""How much sessions of the frame may bring, and when it goes, on both databases."""

import asyncio
from pathlib import Path

import pytest

from appliance.documents.document_store import DocumentStore
from appliance.documents.garbage_collection import GarbageCollection
from appliance.domain.documents.inspected import Damage, Inspection, Repair
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.ids import DocumentId, new_id
from appliance.domain.integrators.integrators import EmbedSession
from appliance.domain.requests.intake import StoredDocument
from appliance.integrators.session_document_store import SessionDocumentStore
from tests.support.installation.frame import FrameServices, refused
from tests.support.installation.installation import Installation
from tests.support.installation.record import A4

KIB = 1_024
LIMITS = {"limit_bytes": 10 * KIB, "session_bytes": 25 * KIB}


def pdf(name: str, kib: int = 10) -> bytes:
    """A document of that size."""
    return f"%PDF {name}".encode().ljust(kib * KIB, b".")


async def bring(
    frame_services: FrameServices, session: EmbedSession, content: bytes
) -> None:
    """Have a session bring a document."""
    await frame_services.framing.take_document(session, "a.pdf", content)


def files(folder: Path) -> int:
    """How many documents are kept."""
    return len(list((folder / "documents").rglob("*.pdf")))


async def swept(frame_services: FrameServices) -> int:
    """Do the chore; how many files it removed."""
    settings = frame_services.services.settings.documents
    return await GarbageCollection(
        frame_services.services.store,
        frame_services.documents,
        frame_services.services.clock,
        settings,
    ).after_sessions()


async def test_a_session_brings_so_many_bytes_at_a_time(
    tmp_path: Path, each_url: str
) -> None:
    """Counted before they are looked at; what is refused is not counted."""
    async with Installation(
        tmp_path, each_url, documents=LIMITS
    ).frame_services() as services:
        session = (await services.open()).view.session
        for _ in range(3):
            with pytest.raises(DocumentRefusedError):
                await bring(services, session, b"no PDF".ljust(10 * KIB))
        await bring(services, session, pdf("1"))
        await bring(services, session, pdf("2"))
        await bring(services, session, pdf("2"))

        await refused(bring(services, session, pdf("3")), ErrorCode.SESSION_DOCUMENTS)

        assert files(tmp_path) == 2
        another = (await services.open()).view.session
        await bring(services, another, pdf("3"))


async def test_an_integrators_sessions_share_a_quota(
    tmp_path: Path, each_url: str
) -> None:
    """Beyond it: 507 for this integrator, and nothing for the others."""
    limits = {**LIMITS, "integrator_bytes": 45 * KIB}
    async with Installation(
        tmp_path, each_url, documents=limits
    ).frame_services() as services:
        sessions = [(await services.open()).view.session for _ in range(5)]
        for number, session in enumerate(sessions[:4]):
            await bring(services, session, pdf(str(number)))

        await refused(bring(services, sessions[4], pdf("4")), ErrorCode.DOCUMENT_QUOTA)

        token = await services.token("beta")
        other = (await services.open(token)).view.session
        await bring(services, other, pdf("4"))


async def test_what_was_replaced_goes_soon(tmp_path: Path, each_url: str) -> None:
    """And counts no more; the document of an open session stays."""
    async with Installation(
        tmp_path, each_url, documents=LIMITS
    ).frame_services() as services:
        session = (await services.open()).view.session
        await bring(services, session, pdf("1"))
        await bring(services, session, pdf("2"))
        assert await swept(services) == 0

        services.services.clock.forward(600)

        assert await swept(services) == 1
        assert files(tmp_path) == 1
        await bring(services, session, pdf("3"))
        shown, stream = await services.framing.document(await services.again(session))
        assert b"".join([piece async for piece in stream.pieces]) == pdf("3")
        assert shown.name == "a.pdf"


async def test_what_was_not_signed_goes_after_the_sessions_end(
    tmp_path: Path, each_url: str
) -> None:
    """An hour later, for until then the session may be renewed."""
    limits = {**LIMITS, "integrator_bytes": 25 * KIB}
    async with Installation(
        tmp_path, each_url, documents=limits
    ).frame_services() as services:
        for number in range(2):
            await bring(
                services, (await services.open()).view.session, pdf(str(number))
            )
        services.services.clock.forward(1_800)
        assert await swept(services) == 0

        services.services.clock.forward(3_601)

        assert await swept(services) == 2
        assert files(tmp_path) == 0
        await bring(services, (await services.open()).view.session, pdf("9"))


async def test_what_a_session_brought_that_ends_at_once_goes_soon(
    tmp_path: Path, each_url: str
) -> None:
    """It counts until it is gone, minutes later."""
    limits = {**LIMITS, "integrator_bytes": 25 * KIB}
    async with Installation(
        tmp_path, each_url, documents=limits
    ).frame_services() as services:
        for number in range(2):
            session = (await services.open()).view.session
            await bring(services, session, pdf(str(number)))
            again = await services.again(session)
            await services.signing.cancel(again, by_signer=True)
        assert await swept(services) == 0
        another = (await services.open()).view.session
        await refused(bring(services, another, pdf("2")), ErrorCode.DOCUMENT_QUOTA)

        services.services.clock.forward(301)

        assert await swept(services) == 2
        assert files(tmp_path) == 0
        await bring(services, another, pdf("2"))


async def test_what_was_kept_for_a_page_that_hung_up_goes_soon(
    tmp_path: Path, each_url: str
) -> None:
    """Its file comes when nobody waits for it any more; it counts till it is gone."""
    async with Installation(
        tmp_path, each_url, documents=LIMITS
    ).frame_services() as services:
        session = (await services.open()).view.session
        put_all, begun = services.documents.put_all, asyncio.Event()

        async def hang(*_: object) -> None:
            begun.set()
            await asyncio.Event().wait()

        services.documents.put_all = hang  # type: ignore[method-assign, assignment]
        call = asyncio.create_task(bring(services, session, pdf("1")))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        services.documents.put_all = put_all  # type: ignore[method-assign]
        await put_all(session.integrator.id, [pdf("1")])
        async with services.services.store.read() as transaction:
            counted = await SessionDocumentStore(transaction).session_bytes(session.id)
        assert counted == 10 * KIB

        services.services.clock.forward(301)

        assert await swept(services) == 1
        assert files(tmp_path) == 0


async def test_what_somebody_is_asked_to_sign_stays(
    tmp_path: Path, each_url: str
) -> None:
    """It leaves the quota, and is no business of the session's end."""
    async with Installation(
        tmp_path, each_url, documents=LIMITS
    ).frame_services() as services:
        someone = await services.add_person()
        session = await services.proven(someone, pdf("1"))
        assert session.request is not None
        services.services.clock.forward(7_200)

        assert await swept(services) == 0

        assert files(tmp_path) == 1
        async with services.services.store.read() as transaction:
            whole = await SessionDocumentStore(transaction).integrator_bytes(
                session.integrator.id
            )
            assert session.document is not None
            document = await DocumentStore(transaction).get(session.document)
        assert whole == 0
        assert document is not None


async def test_the_same_file_of_two_sessions_stays_for_the_second(
    tmp_path: Path, each_url: str
) -> None:
    """Of an integrator there is one file, whoever brought it."""
    async with Installation(
        tmp_path, each_url, documents=LIMITS
    ).frame_services() as services:
        await bring(services, (await services.open()).view.session, pdf("1"))
        services.services.clock.forward(5_000)
        second = (await services.open()).view.session
        await bring(services, second, pdf("1"))
        services.services.clock.forward(1_000)

        assert await swept(services) == 0

        assert files(tmp_path) == 1
        view = (await services.again(second)).document
        assert view is not None


async def test_a_repaired_copy_counts_beside_its_original(
    tmp_path: Path, each_url: str
) -> None:
    """Both are kept, and both go."""
    async with Installation(
        tmp_path, each_url, documents=LIMITS
    ).frame_services() as services:
        session = (await services.open()).view.session
        await bring(services, session, pdf("1"))
        inspection = Inspection(7 * KIB, (A4,), (), 0, None)
        copy = StoredDocument(
            DocumentId(new_id()),
            session.integrator.id,
            "cc" * 32,
            inspection,
            Repair("dd" * 32, (Damage.CROSS_REFERENCES,)),
        )

        await services.framing._quotas.count_copy(session, copy)

        async with services.services.store.read() as transaction:
            counted = await SessionDocumentStore(transaction).session_bytes(session.id)
        assert counted == 17 * KIB
