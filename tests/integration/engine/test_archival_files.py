"""PDF/A files that programs read differently: they are PDF/A once they are taken in.

Source: docs/documents.md "The repair"; docs/stamp.md "PDF/A and PDF/UA".
"""

import asyncio
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pikepdf
import pytest

from appliance.documents.examination import Examination, Examined
from appliance.domain.appearance.stamp import place, stamp_lines
from appliance.domain.documents.inspected import Damage
from appliance.domain.signing_command import SignParameters
from appliance.settings import DocumentSettings
from tests.support.documents.archival_doubts import DOUBTS
from tests.support.documents.archival_pdfs import PARTS, SHAPES, archival
from tests.support.documents.archival_rules import broken_rules, identity, kept_parts
from tests.support.documents.ghostscript import CAN_CONVERT, converted
from tests.support.documents.page_images import digest, pictures
from tests.support.documents.pdf_samples import SIGNED_AT, make_plan, sign
from tests.support.documents.preflight import CAN_PREFLIGHT, preflight_faults
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.documents.validators import assert_valid
from tests.support.services.sandbox_server import running_sandbox
from tests.tools import faulty
from worker.pades.appearance.fonts import StampFonts
from worker.sandbox.metadata_repair import archival_part

CORPUS = sorted((Path(__file__).parents[3].parent / "shared" / "corpus").glob("*.pdf"))
SHIFT = 5
"""So many places further each part has its doubts: none meets one shape twice."""
CASES = [
    (part, shape, list(DOUBTS)[(at + SHIFT * row) % len(DOUBTS)])
    for row, part in enumerate(PARTS)
    for at, shape in enumerate(SHAPES)
]
ALWAYS = 19
"""Each so manieth is tried by every run: one of each part, and of PDF/A-1 also the one
whose page is in an object stream."""
TOLD = {Damage.FORM_FIELDS, Damage.METADATA, Damage.USAGE_RIGHTS}
"""Damage that none of these files has."""

Intake = Callable[[bytes], Examined]
Signing = Callable[[Examined], bytes]


@pytest.fixture(scope="module")
def intake() -> Iterator[Intake]:
    """What becomes of a file that comes in."""
    with running_sandbox() as server:
        examination = Examination(server.client, DocumentSettings())
        yield lambda pdf: asyncio.run(examination.examine(pdf))


@pytest.fixture
def signing(signer: SoftwareSigner, fonts: StampFonts) -> Signing:
    """What is taken in, signed with a stamp that places itself."""
    lines = stamp_lines("María José Ñandú", "20267565393", SIGNED_AT, "es")

    def signed(taken: Examined) -> bytes:
        layout = place(SignParameters(), lines, taken.inspection.pages)
        return sign(bytes(taken.pdf), signer, make_plan(signer, layout), fonts)

    return signed


@pytest.mark.parametrize(
    ("part", "shape", "doubt"),
    [
        pytest.param(
            *case,
            id="-".join(case),
            marks=() if at % ALWAYS == 0 else pytest.mark.full,
        )
        for at, case in enumerate(CASES)
    ],
)
def test_copy_conforms_as_the_file_did(
    part: str,
    shape: str,
    doubt: str,
    intake: Intake,
    signing: Signing,
    signer: SoftwareSigner,
) -> None:
    """And has its metadata, fonts, files and look; with a stamp it conforms still."""
    sound = archival(part, shape)
    assert broken_rules(sound) == []

    taken = intake(DOUBTS[doubt](sound))

    assert taken.repair is not None
    assert Damage.AMBIGUOUS in taken.repair.damage
    assert not TOLD.intersection(taken.repair.damage)
    copy = bytes(taken.pdf)
    assert broken_rules(copy) == []
    assert kept_parts(copy) == kept_parts(sound)
    assert looks(copy) == looks(sound)
    signed = signing(taken)
    assert broken_rules(signed) == []
    assert_valid(signed, signer.root)


def looks(pdf: bytes) -> list[str]:
    """Every page's picture, in short."""
    return [digest(picture) for picture in pictures(pdf)]


@pytest.mark.long
@pytest.mark.skipif(not CAN_PREFLIGHT, reason="PDFBox Preflight is not installed")
def test_preflight_finds_no_fault_in_pdf_a_1b(
    intake: Intake, signing: Signing, tmp_path: Path
) -> None:
    """Neither in the files as they are made, nor in the copies, nor with a stamp."""
    files: dict[str, bytes] = {}
    for part, shape, doubt in CASES:
        if part == "1b":
            sound = archival(part, shape)
            taken = intake(DOUBTS[doubt](sound))
            files |= {
                f"{shape}, made.pdf": sound,
                f"{shape}, {doubt}.pdf": bytes(taken.pdf),
                f"{shape}, {doubt}, signed.pdf": signing(taken),
            }

    found = preflight_faults(files, tmp_path)

    assert len(found) == 3 * len(SHAPES)
    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.long
@pytest.mark.skipif(
    not (CAN_CONVERT and CORPUS),
    reason="Ghostscript is not installed, or no corpus stands beside the project",
)
@pytest.mark.parametrize("part", PARTS)
def test_pdf_a_of_ghostscript_stays_so(
    part: str, intake: Intake, tmp_path: Path
) -> None:
    """Twenty real documents of each part, each made ambiguous in another way."""
    copies: dict[str, bytes] = {}
    doubts = iter(DOUBTS.values())
    for path in CORPUS:
        sound = converted(path, part, tmp_path)
        if sound is None or faults(part, {"sound.pdf": sound}, tmp_path):
            continue
        doubt = next(doubts, None)
        if doubt is None:
            break

        taken = intake(doubt(sound))

        assert taken.repair is not None, path.name
        copies[path.name] = bytes(taken.pdf)
        assert kept_parts(copies[path.name]) == kept_parts(sound), path.name
        assert looks(copies[path.name]) == looks(sound), path.name
    assert len(copies) == len(DOUBTS)
    assert faults(part, copies, tmp_path) == {}


def faults(part: str, files: dict[str, bytes], folder: Path) -> dict[str, list[str]]:
    """What is wrong with PDF/A files, by structure and for PDFBox where it can."""
    found = {name: broken_rules(pdf) for name, pdf in files.items()}
    if part == "1b" and CAN_PREFLIGHT and not any(found.values()):
        found = preflight_faults(files, folder)
    return {name: each for name, each in found.items() if each}


@pytest.mark.parametrize(
    ("said", "part"),
    [
        (b"><pdfaid:part>1</pdfaid:part>", "1"),
        (b"><pdfaid:part>\n 3 </pdfaid:part>", "3"),
        (b" pdfaid:part='2' pdfaid:conformance='B'>", "2"),
        (b"><pdfaid:part/>", None),
        (b"><pdfaid:conformance>B</pdfaid:conformance>", None),
        (b"><!-- <pdfaid:part>1</pdfaid:part> -->", None),
        (b">", None),
    ],
)
def test_part_is_read_as_xmp_says_it(said: bytes, part: str | None) -> None:
    """As an element or an attribute; nothing else says it."""
    packet = (
        b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><r:RDF xmlns:r='
        b'"http://www.w3.org/1999/02/22-rdf-syntax-ns#"><r:Description r:about="" '
        b'xmlns:pdfaid="http://www.aiim.org/pdfa/ns/id/"'
        + said
        + b"</r:Description></r:RDF></x:xmpmeta>"
    )

    with pikepdf.open(io.BytesIO(faulty.with_metadata(packet))) as opened:
        assert archival_part(opened) == part


def test_rules_are_broken_by_what_breaks_them() -> None:
    """What calls all of these sound would find nothing in a copy either."""
    field = archival("1b", "text field")
    compressed = changed(field, object_streams=True)
    spoilt = {
        "header": field.replace(b"%PDF-1.4\n%\xe2", b"%PDF-1.4\n% "),
        "end of file": field + b"\n\n",
        "length or end of a stream": field.replace(b"\nendstream", b" endstream"),
        "cross-reference stream": compressed,
        "no file identifier": field.replace(b"/ID[", b"/Id["),
        "information in the trailer": archival("4", "link").replace(
            b"/Root", b"/Info 2 0 R/Root"
        ),
        "packet of the metadata": field.replace(b"<?xpacket begin", b"<?xpocket begin"),
        "no output intent": field.replace(b"/GTS_PDFA1", b"/GTS_PDFX1"),
        "font that is not embedded": field.replace(b"/FontFile2", b"/FontFile9"),
        "flags of an annotation": field.replace(b"/F 4", b"/F 6"),
        "annotation without appearance": field.replace(b"/AP", b"/Ap"),
        "attachment without relationship": archival("3b", "attachment").replace(
            b"/AFRelationship", b"/AFRelationshop"
        ),
        "action": archival("2b", "link").replace(b"/URI(", b"/JS ("),
        "transparency": archival("2b", "transparency").replace(
            b"<pdfaid:part>2", b"<pdfaid:part>1"
        ),
        "form": field.replace(b"/DA(/F 9 Tf 0 g)/DR", b"/XFA(/F 9 Tf 0g)/DR"),
    }

    for rule, pdf in spoilt.items():
        assert rule in broken_rules(pdf), rule
    assert identity(archival("4", "attachment")) == {
        "part": "4",
        "rev": "2020",
        "conformance": "F",
    }


def changed(pdf: bytes, *, object_streams: bool) -> bytes:
    """A file as qpdf writes it."""
    out = io.BytesIO()
    mode = pikepdf.ObjectStreamMode
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        opened.save(
            out, object_stream_mode=mode.generate if object_streams else mode.disable
        )
    return out.getvalue()
