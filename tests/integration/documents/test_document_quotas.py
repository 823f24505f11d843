"""How much sessions of the frame may bring, and when it goes, on both databases."""

import os
from pathlib import Path

import pytest

from appliance.documents.document_store import DocumentStore
from appliance.documents.garbage_collection import GarbageCollection
from appliance.domain.documents import Damage, Inspection, Repair
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.ids import DocumentId, new_id
from appliance.domain.integrators.integrators import EmbedSession
from appliance.domain.requests.new_request import StoredDocument
from appliance.integrators.session_document_store import SessionDocumentStore
from tests.support.faces.frame_services import FrameDesk, open_frame_desk, refused
from tests.support.factories.core import A4

KIB = 1_024
_AGE_S = 600
LIMITS = {"limit_bytes": 10 * KIB, "session_bytes": 25 * KIB}


def pdf(name: str, kib: int = 10) -> bytes:
    """A document of that size."""
    return f"%PDF {name}".encode().ljust(kib * KIB, b".")


async def bring(desk: FrameDesk, session: EmbedSession, content: bytes) -> None:
    """Have a session bring a document."""
    await desk.framing.take_document(session, "a.pdf", content)


def files(folder: Path) -> int:
    """How many documents are kept."""
    return len(list((folder / "documents").rglob("*.pdf")))


async def swept(desk: FrameDesk, folder: Path) -> int:
    """Do the chore; how many files it removed.

    The files are as old as the desk's clock says: they were written by another one.
    """
    written = desk.desk.clock.now().timestamp() - _AGE_S
    for path in (folder / "documents").rglob("*.pdf"):
        os.utime(path, (written, written))
    settings = desk.desk.settings.documents
    return await GarbageCollection(
        desk.desk.store, desk.documents, desk.desk.clock, settings
    ).after_sessions()


async def test_a_session_brings_so_many_bytes_at_a_time(
    tmp_path: Path, each_url: str
) -> None:
    """Counted before they are looked at; what is refused is not counted."""
    async with open_frame_desk(tmp_path, each_url, documents=LIMITS) as desk:
        session = (await desk.open()).view.session
        for _ in range(3):
            with pytest.raises(DocumentRefusedError):
                await bring(desk, session, b"no PDF".ljust(10 * KIB))
        await bring(desk, session, pdf("1"))
        await bring(desk, session, pdf("2"))
        await bring(desk, session, pdf("2"))

        await refused(bring(desk, session, pdf("3")), ErrorCode.SESSION_DOCUMENTS)

        assert files(tmp_path) == 2
        another = (await desk.open()).view.session
        await bring(desk, another, pdf("3"))


async def test_an_integrators_sessions_share_a_quota(
    tmp_path: Path, each_url: str
) -> None:
    """Beyond it: 507 for this integrator, and nothing for the others."""
    limits = {**LIMITS, "integrator_bytes": 45 * KIB}
    async with open_frame_desk(tmp_path, each_url, documents=limits) as desk:
        sessions = [(await desk.open()).view.session for _ in range(5)]
        for number, session in enumerate(sessions[:4]):
            await bring(desk, session, pdf(str(number)))

        await refused(bring(desk, sessions[4], pdf("4")), ErrorCode.DOCUMENT_QUOTA)

        token = await desk.token("beta")
        other = (await desk.open(token)).view.session
        await bring(desk, other, pdf("4"))


async def test_what_was_replaced_goes_soon(tmp_path: Path, each_url: str) -> None:
    """And counts no more; the document of an open session stays."""
    async with open_frame_desk(tmp_path, each_url, documents=LIMITS) as desk:
        session = (await desk.open()).view.session
        await bring(desk, session, pdf("1"))
        await bring(desk, session, pdf("2"))
        assert await swept(desk, tmp_path) == 0

        desk.desk.clock.forward(600)

        assert await swept(desk, tmp_path) == 1
        assert files(tmp_path) == 1
        await bring(desk, session, pdf("3"))
        name, stream = await desk.framing.document(await desk.again(session))
        assert b"".join([piece async for piece in stream.pieces]) == pdf("3")
        assert name == "a.pdf"


async def test_what_was_not_signed_goes_after_the_sessions_end(
    tmp_path: Path, each_url: str
) -> None:
    """An hour later, for until then the session may be renewed."""
    limits = {**LIMITS, "integrator_bytes": 25 * KIB}
    async with open_frame_desk(tmp_path, each_url, documents=limits) as desk:
        for number in range(2):
            await bring(desk, (await desk.open()).view.session, pdf(str(number)))
        desk.desk.clock.forward(1_800)
        assert await swept(desk, tmp_path) == 0

        desk.desk.clock.forward(3_601)

        assert await swept(desk, tmp_path) == 2
        assert files(tmp_path) == 0
        await bring(desk, (await desk.open()).view.session, pdf("9"))


async def test_what_somebody_is_asked_to_sign_stays(
    tmp_path: Path, each_url: str
) -> None:
    """It leaves the quota, and is no business of the session's end."""
    async with open_frame_desk(tmp_path, each_url, documents=LIMITS) as desk:
        someone = await desk.add_person()
        session = await desk.proven(someone, pdf("1"))
        assert session.request is not None
        desk.desk.clock.forward(7_200)

        assert await swept(desk, tmp_path) == 0

        assert files(tmp_path) == 1
        async with desk.desk.store.read() as transaction:
            whole = await SessionDocumentStore(transaction).integrator_bytes(
                session.integrator.id
            )
            document = await DocumentStore(transaction).get(
                DocumentId(str(session.document))
            )
        assert whole == 0
        assert document is not None


async def test_the_same_file_of_two_sessions_stays_for_the_second(
    tmp_path: Path, each_url: str
) -> None:
    """Of an integrator there is one file, whoever brought it."""
    async with open_frame_desk(tmp_path, each_url, documents=LIMITS) as desk:
        await bring(desk, (await desk.open()).view.session, pdf("1"))
        desk.desk.clock.forward(5_000)
        second = (await desk.open()).view.session
        await bring(desk, second, pdf("1"))
        desk.desk.clock.forward(1_000)

        assert await swept(desk, tmp_path) == 0

        assert files(tmp_path) == 1
        view = (await desk.again(second)).document
        assert view is not None


async def test_a_repaired_copy_counts_beside_its_original(
    tmp_path: Path, each_url: str
) -> None:
    """Both are kept, and both go."""
    async with open_frame_desk(tmp_path, each_url, documents=LIMITS) as desk:
        session = (await desk.open()).view.session
        await bring(desk, session, pdf("1"))
        inspection = Inspection(7 * KIB, (A4,), (), 0, None)
        copy = StoredDocument(
            DocumentId(new_id()),
            session.integrator.id,
            "cc" * 32,
            inspection,
            Repair("dd" * 32, (Damage.CROSS_REFERENCES,)),
        )

        await desk.framing._quotas.count_copy(session, copy)

        async with desk.desk.store.read() as transaction:
            counted = await SessionDocumentStore(transaction).session_bytes(session.id)
        assert counted == 17 * KIB
