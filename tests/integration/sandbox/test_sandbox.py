"""The sandbox's facts about honest documents, over its real socket."""

import asyncio
import io
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from asn1crypto import x509
from PIL import Image, ImageChops
from pyhanko.pdf_utils.generic import TextStringObject
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign.fields import MDPPerm
from pyhanko.sign.validation import DocumentSecurityStore

from appliance.documents.examination import Examination
from appliance.documents.sandbox_client import SandboxClient
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.documents.inspected import FindingKind, Inspection, PageBox
from appliance.domain.documents.verification import Answer
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.vocab import FontName, FontStyle
from appliance.settings import DocumentSettings
from tests.support.documents import hostile_pdfs, pdfs
from tests.support.documents.software_signer import signed, software_signer
from tests.support.services.sandbox_server import ROOT, SandboxServer, running_sandbox

CORPUS = ROOT.parent / "shared" / "corpus"

LAYOUT = StampLayout(
    page=1,
    lines=("Ada Prueba", "CUIL 20-26756539-3"),
    font_name=FontName.SERIF,
    font_style=FontStyle.BOLD,
    font_size_pt=12,
    color=(1, 0, 0),
    text_x=6,
    text_y=6,
    x=40,
    y=40,
    width=200,
    height=50,
    rect=(40, 752, 240, 802),
    rotate=0,
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox for all tests here."""
    with running_sandbox() as server:
        yield server


@pytest.mark.full
async def test_every_corpus_file_is_inspected_or_refused_by_name(
    sandbox: SandboxServer,
) -> None:
    """At least 74 of the 78 are taken in, some repaired; no refusal is our making."""
    if not CORPUS.is_dir():
        pytest.skip("the corpus does not stand beside this checkout")
    examination = Examination(sandbox.client, DocumentSettings())
    outcomes: Counter[str] = Counter()
    reasons: set[str] = set()
    for path in sorted(CORPUS.glob("*.pdf")):
        try:
            await examination.examine(path.read_bytes())
        except DocumentRefusedError as refusal:
            outcomes[refusal.code.value] += 1
            reasons.add(refusal.reason)
        else:
            outcomes["taken in"] += 1

    assert outcomes["taken in"] >= 74, outcomes
    assert outcomes["PDF_PASSWORD_NEEDED"] == 3, outcomes
    assert sum(outcomes.values()) == 78, outcomes
    # What a job says that was refused a system call.
    assert not reasons & {"PermissionError", "ModuleNotFoundError", "ImportError"}


@pytest.mark.full
async def test_every_corpus_file_that_is_taken_in_can_be_drawn(
    sandbox: SandboxServer,
) -> None:
    """The first page of each comes out as a picture."""
    if not CORPUS.is_dir():
        pytest.skip("the corpus does not stand beside this checkout")
    examination = Examination(sandbox.client, DocumentSettings())
    drawn = 0
    for path in sorted(CORPUS.glob("*.pdf")):
        try:
            content = bytes((await examination.examine(path.read_bytes())).pdf)
        except DocumentRefusedError:
            continue
        Image.open(io.BytesIO(await sandbox.client.render(content, 1, None, 48))).load()
        drawn += 1

    assert drawn >= 74


async def test_plain_document_has_nothing_to_tell(sandbox: SandboxServer) -> None:
    """A harmless page is described by its box alone."""
    content = pdfs.one_page()

    assert await sandbox.client.inspect(content) == Inspection(
        size_bytes=len(content),
        pages=(PageBox(0, 0, 595, 842, 0),),
        findings=(),
        signatures=0,
        docmdp=None,
        last_number=5,
    )


@pytest.mark.parametrize(
    ("content", "box"),
    [
        (pdfs.rotated(90), PageBox(0, 0, 595, 842, 90)),
        (pdfs.rotated(-90), PageBox(0, 0, 595, 842, 270)),
        (pdfs.rotated(450), PageBox(0, 0, 595, 842, 90)),
        (pdfs.inherited_box(), PageBox(0, 0, 595, 842, 90)),
        (pdfs.cropped((100, 200, 300, 400)), PageBox(100, 200, 300, 400, 0)),
        (pdfs.cropped((300, 400, 100, 200)), PageBox(100, 200, 300, 400, 0)),
        (pdfs.cropped((-50, -50, 300, 9000)), PageBox(0, 0, 300, 842, 0)),
        (hostile_pdfs.boxed(b""), PageBox(0, 0, 612, 792, 0)),
        (hostile_pdfs.boxed(b"/MediaBox[-5.5 -5 10 10]"), PageBox(-5.5, -5, 10, 10, 0)),
    ],
)
async def test_page_box_is_what_a_reader_shows(
    sandbox: SandboxServer, content: bytes, box: PageBox
) -> None:
    """Crop, rotation, inheritance and the fall-backs of broken boxes."""
    inspection = await sandbox.client.inspect(content)

    assert inspection.pages == (box,)


@pytest.mark.parametrize("revision", [3, 4, 6])
async def test_encrypted_document_opens_with_the_empty_password(
    sandbox: SandboxServer, revision: int
) -> None:
    """RC4, AES-128 and AES-256 are read, drawn, and told of."""
    content = pdfs.encrypted(revision=revision)  # type: ignore[arg-type]  # one of 3

    inspection = await sandbox.client.inspect(content)

    assert FindingKind.ENCRYPTED_EMPTY_PASSWORD in inspection.findings
    assert await sandbox.client.render(content, 1, None, 48)


async def test_signatures_and_certification_are_counted(
    sandbox: SandboxServer,
) -> None:
    """Two signatures, the first of which certifies."""
    content = signed(pdfs.one_page(), certify=MDPPerm.FILL_FORMS)
    content = signed(content, field="Firma2")

    inspection = await sandbox.client.inspect(content)

    assert (inspection.signatures, inspection.docmdp) == (2, 2)


async def test_document_certified_against_changes_is_described(
    sandbox: SandboxServer,
) -> None:
    """P = 1 is a fact here; what follows from it is the caller's."""
    content = signed(pdfs.one_page(), certify=MDPPerm.NO_CHANGES)

    inspection = await sandbox.client.inspect(content)

    assert (inspection.signatures, inspection.docmdp) == (1, 1)


async def test_page_is_drawn_as_seen(sandbox: SandboxServer) -> None:
    """Size by resolution and rotation, and text is there."""
    content = pdfs.rotated(90)

    image = Image.open(io.BytesIO(await sandbox.client.render(content, 1, None, 72)))

    assert image.size == (842, 595)
    assert image.convert("L").getextrema() != (255, 255)


async def test_huge_page_is_drawn_smaller(sandbox: SandboxServer) -> None:
    """No side passes 4,000 pixels, whatever is asked."""
    content = pdfs.sized(14_400, 7_200)

    image = Image.open(io.BytesIO(await sandbox.client.render(content, 1, None, 300)))

    assert image.size == (4_000, 2_000)


async def test_stamp_is_drawn_where_it_was_laid(sandbox: SandboxServer) -> None:
    """The picture changes inside the stamp's box and nowhere else."""
    content = pdfs.one_page("")

    bare = await sandbox.client.render(content, 1, None, 72)
    stamped = await sandbox.client.render(content, 1, LAYOUT, 72)

    box = _changed(bare, stamped)
    assert 39 <= box[0] <= 60
    assert 39 <= box[1] <= 60
    assert box[2] <= 241
    assert box[3] <= 91


async def test_page_past_the_end_is_refused(sandbox: SandboxServer) -> None:
    """The refusal says how many there are."""
    with pytest.raises(DocumentRefusedError) as caught:
        await sandbox.client.render(pdfs.pages(3), 4, None, 72)

    assert caught.value.code is ErrorCode.PAGE_OUT_OF_RANGE
    assert caught.value.params == {"page": 4, "pages": 3}


async def test_good_signature_is_valid(sandbox: SandboxServer) -> None:
    """A signature under a trusted root passes in every respect."""
    report = await sandbox.client.verify(
        signed(pdfs.one_page()), [software_signer().root]
    )

    (signature,) = report.signatures
    assert report.valid
    assert (signature.signer, signature.reason) == ("Ada Prueba", "")
    assert signature.field == "Firma1"
    assert signature.signed_at is not None


async def test_signature_of_a_stranger_is_not_trusted(sandbox: SandboxServer) -> None:
    """Without its root it is intact, and whose it is could not be checked."""
    report = await sandbox.client.verify(signed(pdfs.one_page()), [])

    (signature,) = report.signatures
    assert signature.integrity.answer is Answer.YES
    assert signature.trust.answer is Answer.UNCHECKED
    assert report.verdict is Answer.UNCHECKED
    assert signature.reason.endswith("an authority that is not trusted here")


async def test_first_of_two_signatures_stays_valid(sandbox: SandboxServer) -> None:
    """A further signature takes nothing from an earlier one."""
    content = signed(signed(pdfs.one_page()), field="Firma2")

    report = await sandbox.client.verify(content, [software_signer().root])

    assert [each.valid for each in report.signatures] == [True, True]
    assert report.valid


async def test_validation_data_after_a_signature_is_allowed(
    sandbox: SandboxServer,
) -> None:
    """A DSS in a revision of its own leaves the signature valid."""
    root = software_signer().root
    out = io.BytesIO(signed(pdfs.one_page()))
    certificate = x509.Certificate.load(root)
    DocumentSecurityStore.add_dss(out, sig_contents=None, certs=[certificate])

    report = await sandbox.client.verify(out.getvalue(), [root])

    assert (report.ending.answer, report.valid) == (Answer.YES, True)


async def test_form_filled_after_a_signature_is_told(sandbox: SandboxServer) -> None:
    """A permitted change leaves the signature valid, and is shown with both values."""
    content = signed(pdfs.text_field())
    writer = IncrementalPdfFileWriter(io.BytesIO(content))
    field = writer.root["/AcroForm"]["/Fields"].raw_get(0)
    field.get_object()["/V"] = TextStringObject("other")
    writer.mark_update(field.reference)
    out = io.BytesIO()
    writer.write(out)

    report = await sandbox.client.verify(out.getvalue(), [software_signer().root])

    (signature,) = report.signatures
    assert signature.valid
    (filled,) = signature.filled
    assert filled.after == "other"


async def test_changed_bytes_are_told(sandbox: SandboxServer) -> None:
    """One letter of the page differs."""
    content = signed(pdfs.one_page())
    changed = content.replace(b"/Helvetica", b"/Helvetika", 1)
    assert changed != content

    report = await sandbox.client.verify(changed, [software_signer().root])

    (signature,) = report.signatures
    assert signature.integrity.answer is Answer.NO
    assert signature.reason == "the signed bytes were changed"


@pytest.mark.parametrize(
    "tail", [b"\n" * 1_001, b"\n% more\n", b"7 0 obj\n<<>>\nendobj\n"]
)
async def test_bytes_after_the_last_revision_are_told(
    sandbox: SandboxServer, tail: bytes
) -> None:
    """Whatever is appended without a revision makes the document invalid."""
    content = signed(pdfs.one_page())

    report = await sandbox.client.verify(content + tail, [software_signer().root])

    assert report.ending.answer is Answer.NO
    assert not report.valid


async def test_second_end_after_junk_is_told(sandbox: SandboxServer) -> None:
    """Junk is not excused by an end marker that points to the same place."""
    content = signed(pdfs.one_page())
    end = content[content.rindex(b"startxref") :]

    report = await sandbox.client.verify(
        content + b"9 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n" + end,
        [software_signer().root],
    )

    assert not report.valid


@pytest.mark.parametrize(
    "forge",
    [
        hostile_pdfs.null_byte_range,
        hostile_pdfs.negative_byte_range,
        hostile_pdfs.no_contents,
    ],
)
async def test_forged_signature_is_invalid_with_a_reason(
    sandbox: SandboxServer, forge: hostile_pdfs.Forgery
) -> None:
    """A signature that cannot be read is listed, and is not valid."""
    content = forge(signed(pdfs.one_page()))

    report = await sandbox.client.verify(content, [software_signer().root])

    (signature,) = report.signatures
    assert not signature.valid
    assert signature.reason


async def test_unsigned_document_is_not_valid(sandbox: SandboxServer) -> None:
    """There is nothing to be valid."""
    report = await sandbox.client.verify(pdfs.one_page(), [])

    assert (report.signatures, report.valid) == ((), False)
    assert report.ending.answer is Answer.YES


async def test_many_jobs_at_once_are_all_answered(sandbox: SandboxServer) -> None:
    """Twenty callers share four places."""
    content = pdfs.pages(3)

    answers = await asyncio.gather(
        *(sandbox.client.inspect(content) for _ in range(20))
    )

    assert [len(answer.pages) for answer in answers] == [3] * 20


async def test_ping_is_answered(sandbox: SandboxServer) -> None:
    """Ping goes the whole way, through a job."""
    await sandbox.client.ping()

    assert sandbox.process.poll() is None


async def test_nobody_at_the_socket_is_unavailable(tmp_path: Path) -> None:
    """A sandbox that is not there is one error, whatever the cause."""
    client = SandboxClient(tmp_path / "none.sock", timeout_s=5)

    with pytest.raises(ApplianceError) as caught:
        await client.ping()

    assert caught.value.code is ErrorCode.SANDBOX_UNAVAILABLE


async def test_jobs_that_wait_hold_up_nothing_else(tmp_path: Path) -> None:
    """More than asyncio has threads, before a sandbox that takes none of them."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(64)
        client = SandboxClient(tmp_path / "s", timeout_s=60)
        waiting = [asyncio.create_task(client.ping()) for _ in range(40)]
        await asyncio.sleep(0)  # now each has asked for its thread
        read = await asyncio.to_thread(tmp_path.is_dir)
        waited = not any(task.done() for task in waiting)

    ended = await asyncio.gather(*waiting, return_exceptions=True)

    assert (read, waited) == (True, True)
    assert {getattr(each, "code", None) for each in ended} == {
        ErrorCode.SANDBOX_UNAVAILABLE
    }


def _changed(first: bytes, second: bytes) -> tuple[int, int, int, int]:
    """The box in which two pictures differ."""
    images = [
        Image.open(io.BytesIO(content)).convert("RGB") for content in (first, second)
    ]
    box = ImageChops.difference(*images).getbbox()
    assert box is not None
    return box
