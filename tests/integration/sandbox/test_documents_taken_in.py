"""Every kind of PDF that comes in is signed, or has its one clear answer.

Source: decisions "PDFs"; docs/documents.md.
"""

import asyncio
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import pikepdf
import pytest
from pyhanko.sign.fields import MDPPerm

from appliance.documents.document_store import DocumentStore
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.documents.inspected import Damage, FindingKind
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.vocab import EventKind
from appliance.people.person_store import PersonStore
from appliance.requests.intake import Intake, IntakeOrder, stored_as
from appliance.settings import DocumentSettings
from appliance.web.problems import ANSWERS
from tests.support.documents import hostile_pdfs, pdfs, shadow_pdfs
from tests.support.documents.altered_pdfs import update
from tests.support.documents.hidden_content_pdfs import UNREADABLE
from tests.support.documents.page_images import digest, pictures
from tests.support.documents.pdf_samples import make_plan, sign
from tests.support.documents.software_signer import SoftwareSigner, signed
from tests.support.documents.validators import assert_valid
from tests.support.factories.fakes import FixedDocumentKeys
from tests.support.installation.record import CoreFixture
from tests.support.services.sandbox_server import SandboxServer, running_sandbox
from tests.tools.damage import DAMAGED, ENCRYPTED, damaged_and_encrypted
from worker.pades.appearance.fonts import StampFonts

pytestmark = pytest.mark.full

REFUSED = {
    "empty": (b"", ErrorCode.DOCUMENT_EMPTY, 422),
    "html": (pdfs.NOT_PDF["html"], ErrorCode.PDF_MALFORMED, 422),
    "zip": (pdfs.NOT_PDF["zip"], ErrorCode.PDF_MALFORMED, 422),
    "garbage": (bytes(range(256)) * 40, ErrorCode.PDF_MALFORMED, 422),
    "cut off": (pdfs.truncated(), ErrorCode.PDF_MALFORMED, 422),
    "signed, then damaged": (
        signed(pdfs.one_page()) + b"x\n",
        ErrorCode.PDF_AMBIGUOUS,
        422,
    ),
    "page tree loop": (pdfs.page_tree_loop(), ErrorCode.PDF_MALFORMED, 422),
    "nested arrays": (hostile_pdfs.nested_arrays(), ErrorCode.PDF_MALFORMED, 422),
    "catalog of itself": (
        hostile_pdfs.catalog_of_itself(),
        ErrorCode.PDF_MALFORMED,
        422,
    ),
    "5,000 fields deep": (hostile_pdfs.deep_fields(), ErrorCode.PDF_MALFORMED, 422),
    "damaged and signed": (
        signed(pdfs.one_page()) + bytes(2_000),
        ErrorCode.PDF_MALFORMED,
        422,
    ),
    "bomb of a table": (
        hostile_pdfs.xref_stream_bomb(),
        ErrorCode.PDF_TOO_COMPLEX,
        422,
    ),
    "bomb of a page": (hostile_pdfs.content_bomb(), ErrorCode.PDF_TOO_COMPLEX, 422),
    "2,000,000 kids": (
        hostile_pdfs.kids(b"3 0 R " * 2_000_000, 2_000_000),
        ErrorCode.PDF_TOO_COMPLEX,
        422,
    ),
    "5,001 pages": (hostile_pdfs.many_pages(5_001), ErrorCode.PDF_TOO_COMPLEX, 422),
    "no pages": (pdfs.no_pages(), ErrorCode.PDF_NO_PAGES, 422),
    "password": (pdfs.encrypted("secret"), ErrorCode.PDF_PASSWORD_NEEDED, 422),
    "password, revision 5": (
        pdfs.encrypted("secret", revision=5),
        ErrorCode.PDF_PASSWORD_NEEDED,
        422,
    ),
    "revision 5": (pdfs.encrypted(revision=5), ErrorCode.PDF_ENCRYPTED, 422),
    "password, and a wrong table": (
        pdfs.encrypted_with_wrong_table("secret"),
        ErrorCode.PDF_PASSWORD_NEEDED,
        422,
    ),
    "own MAC": (hostile_pdfs.encrypted_with_mac(), ErrorCode.PDF_ENCRYPTED, 422),
    "unknown encryption": (
        hostile_pdfs.unknown_encryption(),
        ErrorCode.PDF_ENCRYPTED,
        422,
    ),
    "dynamic XFA": (pdfs.xfa(dynamic=True), ErrorCode.PDF_XFA, 422),
    "certified, P = 1": (
        signed(pdfs.one_page(), certify=MDPPerm.NO_CHANGES),
        ErrorCode.PDF_LOCKED,
        409,
    ),
    "too large": (bytes(20_000_001), ErrorCode.DOCUMENT_TOO_LARGE, 413),
}
"""What is not signed: the answer's code and status."""

TOLD = {
    "sound": (pdfs.one_page(), set()),
    "no MediaBox": (hostile_pdfs.boxed(b""), set()),
    "count that lies, signed": (
        signed(pdfs.lying_count()),
        {FindingKind.COUNT_LIES},
    ),
    "hybrid": (hostile_pdfs.hybrid(), {FindingKind.HYBRID_XREF}),
    "script": (pdfs.javascript(), {FindingKind.JAVASCRIPT}),
    "launch": (pdfs.launch(), {FindingKind.LAUNCH_ACTION}),
    "other file": (
        hostile_pdfs.plain(b"/OpenAction<</S/GoToR/F(other.pdf)>>"),
        {FindingKind.EXTERNAL_LINK_ACTION},
    ),
    "files inside": (pdfs.embedded_file(), {FindingKind.EMBEDDED_FILES}),
    "static XFA": (pdfs.xfa(dynamic=False), {FindingKind.XFA_STATIC}),
    "film": (
        hostile_pdfs.annotated(b"/Subtype/RichMedia/Rect[0 0 9 9]", drawn=True),
        {FindingKind.RICH_MEDIA},
    ),
    "layer that is off": (
        shadow_pdfs.layered(b"/OFF[5 0 R]"),
        {FindingKind.LAYERS, FindingKind.HIDDEN_LAYERS},
    ),
    "white note over text": (
        shadow_pdfs.lettered(
            page=b"/Annots[6 0 R]",
            o6=shadow_pdfs.cover(b"/Subtype/Stamp"),
            o7=shadow_pdfs.WHITE,
        ),
        {FindingKind.COVERED_TEXT},
    ),
    "text beside the page": (
        shadow_pdfs.lettered(page=b"/CropBox[0 0 200 100]"),
        {FindingKind.OFF_PAGE_TEXT},
    ),
    "content replaced": (
        update(
            hostile_pdfs.plain(),
            {4: hostile_pdfs.CONTENT.replace(b"100 100", b" 99  99")},
        ),
        {FindingKind.REPLACED_CONTENT},
    ),
    "second document inside": (
        shadow_pdfs.second_document(),
        {FindingKind.UNSHOWN_PAGES},
    ),
    "certified, P = 2": (signed(pdfs.one_page(), certify=MDPPerm.FILL_FORMS), set()),
    "certified, P = 3": (signed(pdfs.one_page(), certify=MDPPerm.ANNOTATE), set()),
    **{
        name: (make(), {FindingKind.ENCRYPTED_EMPTY_PASSWORD})
        for name, make in ENCRYPTED.items()
        if name != "aes-256-restricted"
    },
    "aes-256-restricted": (
        ENCRYPTED["aes-256-restricted"](),
        {FindingKind.ENCRYPTED_EMPTY_PASSWORD, FindingKind.SIGNING_RESTRICTED},
    ),
}
"""What is signed as it is: what the signer is told."""

SHADOWS = (
    "layer that is off",
    "white note over text",
    "text beside the page",
    "content replaced",
    "second document inside",
)

REPAIRED = {
    "unreadable page": UNREADABLE["page without an end"],
    "unreadable revision": UNREADABLE["former content that is not where it was"],
    **{name: make() for name, make in DAMAGED.items()},
    "count that lies": pdfs.lying_count(),
    "header late": bytes(600) + hostile_pdfs.plain(),
    "2,000,000,000 objects": hostile_pdfs.edited_xref(rb"^0 \d+", b"0 2000000000"),
    "previous table at 0": hostile_pdfs.edited_xref(rb"/Root 1 0 R", rb"\g<0>/Prev 0"),
    "loop of tables": hostile_pdfs.loop_of_previous(),
    "number with an exponent": hostile_pdfs.boxed(b"/MediaBox[0 0 1e3 9]"),
    "page twice": hostile_pdfs.kids(b"3 0 R 3 0 R", 2),
    "page without a number": hostile_pdfs.kids(b"<</Type/Page>>", 1),
    "encrypted": damaged_and_encrypted(),
    "encrypted, with a wrong table": pdfs.encrypted_with_wrong_table(),
    "encrypted objects": pdfs.encrypted_objects(),
    "field loop": hostile_pdfs.plain(
        b"/AcroForm<</Fields[5 0 R]>>", o5=b"<</T(a)/Kids[5 0 R]>>"
    ),
}
"""What is repaired first."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox for all tests here, which has to survive them."""
    with running_sandbox() as server:
        yield server
        assert server.process.poll() is None


@pytest.fixture
def documents(tmp_path: Path) -> LocalBlobStore:
    """An empty store of documents."""
    return LocalBlobStore(tmp_path / "documents", FixedDocumentKeys())


@pytest.fixture
def intake(
    sqlite_core: CoreFixture, documents: LocalBlobStore, sandbox: SandboxServer
) -> Intake:
    """Intake with everything real, and a limit of 20 MB."""
    return open_intake(sqlite_core, documents, sandbox)


def open_intake(
    core: CoreFixture,
    documents: LocalBlobStore,
    sandbox: SandboxServer,
    refuse: tuple[FindingKind, ...] = (),
) -> Intake:
    """Intake of an installation that refuses these findings."""
    settings = DocumentSettings(limit_bytes=20_000_000, refuse=refuse)
    return Intake(core.store, documents, sandbox.client, core.clock, settings)


async def keep(intake: Intake, core: CoreFixture, pdf: bytes) -> StoredDocument:
    """Take a document in and record it."""
    integrator = await core.integrator()
    examined = await intake.examined(integrator, pdf)
    await intake.put(integrator, pdf, examined)
    kept = await stored_as(integrator, examined)
    async with core.store.write() as transaction:
        return await DocumentStore(transaction).add(kept, core.now)


@pytest.mark.parametrize("kind", REFUSED)
async def test_document_is_refused_by_its_code(
    intake: Intake, sqlite_core: CoreFixture, kind: str
) -> None:
    """The code, and the status it is answered with."""
    content, code, status = REFUSED[kind]

    with pytest.raises(ApplianceError) as caught:
        await keep(intake, sqlite_core, content)

    assert caught.value.code is code, getattr(caught.value, "reason", "")
    assert ANSWERS[code].status == status


@pytest.mark.parametrize("kind", TOLD)
async def test_document_is_signed_as_it_is(
    intake: Intake,
    sqlite_core: CoreFixture,
    signer: SoftwareSigner,
    fonts: StampFonts,
    kind: str,
) -> None:
    """Taken in byte by byte, told of, and valid once it is signed."""
    content, findings = TOLD[kind]

    kept = await keep(intake, sqlite_core, content)

    assert set(kept.inspection.findings) == findings
    assert kept.repair is None
    assert kept.sha256 == hashlib.sha256(content).hexdigest()
    pdf = sign(content, signer, make_plan(signer), fonts)
    assert pdf.startswith(content)
    await asyncio.to_thread(assert_valid, pdf, signer.root)
    assert looks(pdf) == looks(content)


@pytest.mark.parametrize("kind", REPAIRED)
async def test_damaged_document_is_signed_as_its_repaired_copy(
    intake: Intake,
    documents: LocalBlobStore,
    sqlite_core: CoreFixture,
    signer: SoftwareSigner,
    fonts: StampFonts,
    kind: str,
) -> None:
    """Both are kept and recorded, look alike, and the copy is valid when signed."""
    original = REPAIRED[kind]

    kept = await keep(intake, sqlite_core, original)

    assert FindingKind.REPAIRED in kept.inspection.findings
    assert FindingKind.DAMAGED not in kept.inspection.findings
    assert kept.repair is not None
    assert kept.repair.damage
    assert kept.repair.original_sha256 == hashlib.sha256(original).hexdigest()
    owner = kept.integrator
    assert await documents.get(owner, kept.repair.original_sha256) == original
    copy = await documents.get(owner, kept.sha256)
    async with sqlite_core.store.read() as transaction:
        assert await DocumentStore(transaction).get(kept.came) == kept
    assert looks(copy) == looks(original)
    pdf = sign(copy, signer, make_plan(signer), fonts)
    await asyncio.to_thread(assert_valid, pdf, signer.root)


def looks(pdf: bytes) -> list[str]:
    """Every page's picture, in short."""
    return [digest(picture) for picture in pictures(pdf)]


async def test_sound_file_that_cannot_be_proven_is_not_called_damaged(
    intake: Intake, sqlite_core: CoreFixture
) -> None:
    """What was wrong is that signatures on it would be called invalid."""
    kept = await keep(intake, sqlite_core, pdfs.encrypted_objects())

    assert kept.repair is not None
    assert kept.repair.damage == (Damage.UNVERIFIABLE,)


@pytest.mark.parametrize("kind", ["header late", "encrypted objects", "page twice"])
async def test_refusal_for_want_of_a_copy_names_the_wish(
    intake: Intake, sqlite_core: CoreFixture, kind: str
) -> None:
    """Whoever says `reparar: false` learns that this is why."""
    integrator = await sqlite_core.integrator()

    with pytest.raises(DocumentRefusedError) as caught:
        await intake.examined(integrator, REPAIRED[kind], repairs=False)

    assert caught.value.extras["field"] == "reparar"


async def test_same_damaged_file_gets_the_same_copy(
    intake: Intake, sqlite_core: CoreFixture
) -> None:
    """One copy of each, also where a repair would differ each time."""
    for content in (REPAIRED["junk-after"], REPAIRED["encrypted"]):
        first = await keep(intake, sqlite_core, content)
        second = await keep(intake, sqlite_core, content)

        assert second == first


async def test_record_names_the_original_and_the_copy_does_not(
    intake: Intake, documents: LocalBlobStore, sqlite_core: CoreFixture
) -> None:
    """Two files that differ in their damage alone have a copy each."""
    copies = []
    for content in (REPAIRED["junk-after"], REPAIRED["startxref-wrong"]):
        kept = await keep(intake, sqlite_core, content)
        copy = await documents.get(kept.integrator, kept.sha256)
        assert kept.repair is not None
        assert kept.repair.original_sha256 == hashlib.sha256(content).hexdigest()
        assert kept.repair.original_sha256.encode() not in copy
        copies.append(kept.id)

    assert len(set(copies)) == 2


async def test_repair_is_told_in_the_audit_and_of_the_request(
    intake: Intake, sqlite_core: CoreFixture
) -> None:
    """Original, copy and damage stand with the request."""
    core, original = sqlite_core, REPAIRED["junk-before"]
    signer = await core.add_signer()
    async with core.store.read() as transaction:
        person = await PersonStore(transaction).get(signer.person)
    assert person is not None
    await core.integrator()
    order = IntakeOrder(
        integrator_code="demo",
        cuil=person.cuil,
        file_name="uno.pdf",
        expires=None,
        origin="operador",
        actor="operator",
    )

    request = await intake.create_request(order, original)

    view = await core.view(request)
    assert view.repair is not None
    assert view.repair.damage == (Damage.SURROUNDINGS,)
    created = [
        row.event
        for row in await core.audit()
        if row.event.event is EventKind.REQUEST_CREATED and row.event.request == request
    ]
    detail = created[0].detail
    assert detail["documentSha256"] == view.sha256
    assert detail["originalSha256"] == hashlib.sha256(original).hexdigest()
    assert detail["damage"] == ["surroundings"]
    assert detail["findings"] == ["repaired"]


@pytest.mark.parametrize(
    ("refuse", "content"),
    [
        (FindingKind.JAVASCRIPT, pdfs.javascript()),
        (FindingKind.LAYERS, hostile_pdfs.plain(b"/OCProperties<</OCGs[]/D<<>>>>")),
        *((min(told), pdf) for pdf, told in (TOLD[kind] for kind in SHADOWS)),
        (FindingKind.REPAIRED, REPAIRED["junk-after"]),
        (FindingKind.HYBRID_XREF, TOLD["hybrid"][0]),
    ],
)
async def test_installation_refuses_what_it_does_not_want(
    sqlite_core: CoreFixture,
    documents: LocalBlobStore,
    sandbox: SandboxServer,
    refuse: FindingKind,
    content: bytes,
) -> None:
    """By a code of its own, naming what it is; other documents come in."""
    strict = open_intake(sqlite_core, documents, sandbox, (refuse,))

    with pytest.raises(DocumentRefusedError) as caught:
        await keep(strict, sqlite_core, content)

    assert caught.value.code is ErrorCode.PDF_NOT_ALLOWED
    assert caught.value.extras == {"avisos": [refuse.value]}
    await keep(strict, sqlite_core, pdfs.launch())


async def test_large_legal_document_is_taken_in(
    intake: Intake, sqlite_core: CoreFixture
) -> None:
    """1,000 pages and 15 MB are no trouble (reliability F34)."""
    with pikepdf.open(io.BytesIO(pdfs.pages(1_000))) as opened:
        noise = hashlib.shake_256(b"noise").digest(15_000_000)
        opened.Root.Noise = opened.make_stream(noise)
        out = io.BytesIO()
        opened.save(out)

    kept = await keep(intake, sqlite_core, out.getvalue())

    assert len(kept.inspection.pages) == 1_000
    assert kept.inspection.findings == ()
