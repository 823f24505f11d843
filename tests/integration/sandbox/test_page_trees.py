"""Page trees and resources that programs read differently: written anew, or refused.

Source: docs/documents.md "One reading"; ISO 32000-2, 7.7.3 and 7.8.3.
"""

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Final

import pypdfium2
import pytest

from appliance.domain.documents.inspected import Damage
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from tests.support.documents.hostile_pdfs import build
from tests.support.documents.outside_content_pdfs import compressed, stream
from tests.support.documents.software_signer import signed
from tests.support.patience import CALL_S
from worker.pades.appearance.fonts import load_fonts
from worker.sandbox.inspection import inspect
from worker.sandbox.page_looks import are_drawn_alike
from worker.sandbox.repair import repair
from worker.sandbox.verify.verify import weigh

PAGES: Final = 20
FONT: Final = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
FONTS: Final = b"/Resources<</Font<</F 5 0 R>>>>"
BOX: Final = b"/MediaBox[0 0 300 300]"
CATALOG: Final = b"<</Type/Catalog/Pages 2 0 R>>"
USES: Final = b"/Parent 2 0 R/Contents 4 0 R"
FORMS: Final = b"/Resources<</XObject<</X %d 0 R>>>>"


def shows(word: bytes) -> bytes:
    """A stream of content that shows a word."""
    return stream(b"", b"BT /F 24 Tf 20 200 Td (%s) Tj ET" % word)


def form(word: bytes) -> bytes:
    """A form that shows a word."""
    text = b"BT /F 24 Tf 20 200 Td (%s) Tj ET" % word
    return stream(b"/Type/XObject/Subtype/Form/BBox[0 0 300 300]" + FONTS, text)


def document(root: bytes, page: bytes, content: bytes = b"", **more: bytes) -> bytes:
    """A document of a root, 2, and a page, 3; forms 6 and 7 show CIEN and MIL."""
    objects = {
        1: CATALOG,
        2: b"<<%s>>" % root,
        3: b"<<%s>>" % page,
        4: content or stream(b"", b"/X Do"),
        5: FONT,
        6: form(b"CIEN"),
        7: form(b"MIL"),
    }
    objects |= {int(name[1:]): body for name, body in more.items()}
    return build(objects)


ROOT: Final = b"/Type/Pages/Kids[3 0 R]/Count 1" + BOX
ABOVE: Final = ROOT + FORMS % 6
PAGE: Final = b"/Type/Page" + USES
FULL: Final = b"/Type/Page/Parent 2 0 R" + BOX + FONTS


def contents(entry: bytes, **more: bytes) -> bytes:
    """A page with this `/Contents`; 4 shows CIEN."""
    page = b"/Type/Page/Parent 2 0 R" + BOX + FONTS + b"/Contents " + entry
    return document(ROOT, page, shows(b"CIEN"), **more)


def paged(entries: bytes, **more: bytes) -> bytes:
    """A page with these entries, which shows CIEN."""
    page = b"/Type/Page/Parent 2 0 R/Contents 4 0 R" + FONTS + entries
    return document(b"/Type/Pages/Kids[3 0 R]/Count 1", page, shows(b"CIEN"), **more)


INNER: Final = b"<</Type/Pages/Parent 2 0 R/Kids[3 0 R]/Count 1%s>>"
ODD: Final = {
    "nothing in a page's place": document(
        b"/Type/Pages/Kids[null 3 0 R]/Count 1" + BOX + FORMS % 6, PAGE
    ),
    "object that is not there in a page's place": document(
        b"/Type/Pages/Kids[3 0 R 99 0 R]/Count 1" + BOX + FORMS % 6, PAGE
    ),
    "font in a page's place": document(
        b"/Type/Pages/Kids[3 0 R 5 0 R]/Count 2" + BOX + FORMS % 6, PAGE
    ),
    "parent outside of the tree": document(
        ABOVE,
        b"/Type/Page/Parent 8 0 R/Contents 4 0 R",
        o8=b"<</Type/Pages/Kids[3 0 R]/Count 1%s>>" % (BOX + FORMS % 7),
    ),
    "parent above the lister": document(
        b"/Type/Pages/Kids[8 0 R]/Count 1" + BOX + FORMS % 6,
        PAGE,
        o8=INNER % (FORMS % 7),
    ),
    "no parent": document(
        ABOVE, b"/Type/Page/Contents 4 0 R" + BOX + FONTS, shows(b"CIEN")
    ),
    "root with a parent": document(
        ABOVE + b"/Parent 8 0 R", PAGE, o8=b"<</Type/Pages/Kids[2 0 R]/Count 1>>"
    ),
    "page with empty kids": document(
        b"/Type/Pages/Kids[8 0 R 3 0 R]/Count 1",
        FULL + b"/Contents 4 0 R",
        shows(b"CIEN"),
        o8=b"<<%s/Kids[]/Count 0/Contents 9 0 R>>" % FULL,
        o9=shows(b"MIL"),
    ),
    "page with kids": document(
        b"/Type/Pages/Kids[8 0 R]/Count 1",
        FULL.replace(b"2 0 R", b"8 0 R") + b"/Contents 4 0 R",
        shows(b"CIEN"),
        o8=b"<<%s/Kids[3 0 R]/Count 1/Contents 9 0 R>>" % FULL,
        o9=shows(b"MIL"),
    ),
    "page without a type": document(ABOVE, PAGE.replace(b"/Type/Page", b"")),
    "node without a type": document(ABOVE.replace(b"/Type/Pages", b""), PAGE),
    "notes of a node": document(
        ABOVE + b"/Annots[8 0 R]",
        PAGE,
        o8=b"<</Type/Annot/Subtype/Stamp/Rect[0 0 90 90]/AP<</N 7 0 R>>>>",
    ),
    "content of a node": document(ABOVE + b"/Contents 9 0 R", PAGE, o9=shows(b"MIL")),
    "unit of a node": document(ABOVE + b"/UserUnit 2", PAGE),
    "resources that are an array": document(ABOVE, PAGE + b"/Resources[]"),
    "resources that are null": document(ABOVE, PAGE + b"/Resources null"),
    "resources that are a stream": document(
        ROOT, PAGE + b"/Resources 8 0 R", o8=stream(b"/XObject<</X 6 0 R>>")
    ),
    "forms that are a stream": document(
        ROOT, PAGE + b"/Resources<</XObject 8 0 R>>", o8=stream(b"/X 6 0 R")
    ),
    "fonts that are an array": document(
        ABOVE, PAGE + b"/Resources<</XObject<</X 6 0 R>>/Font[]>>"
    ),
    "resources of a form that are a stream": document(
        ABOVE,
        PAGE,
        o6=stream(
            b"/Subtype/Form/BBox[0 0 300 300]/Resources 8 0 R",
            b"BT /F 24 Tf 20 200 Td (CIEN) Tj ET",
        ),
        o8=stream(b"/Font<</F 5 0 R>>"),
    ),
    "box of three numbers": paged(b"/MediaBox[0 0 300]"),
    "box of five numbers": paged(b"/MediaBox[0 0 100 300 5]"),
    "box that is null": paged(BOX + b"/CropBox null"),
    "box without an area": paged(BOX + b"/CropBox[10 10 10 10]"),
    "box that is partly one": paged(BOX + b"/CropBox[10 10 null 250]"),
    "turn of 45": paged(BOX + b"/Rotate 45"),
    "turn that is a real": paged(BOX + b"/Rotate 90.0"),
    "turn beyond 32 bits": paged(BOX + b"/Rotate 4294967386"),
    "unit of nothing": paged(BOX + b"/UserUnit 0"),
    "content and null": contents(b"[null 4 0 R]"),
    "content and a dictionary": contents(b"[<<>> 4 0 R]"),
    "content and a number": contents(b"[8 0 R 4 0 R]", o8=b"5"),
    "content in an array in an array": contents(b"[[4 0 R] 4 0 R]"),
    "content that is a dictionary": contents(b"8 0 R", o8=b"<<>>"),
}
WITHOUT_COPY: Final = {"box that is partly one", "font in a page's place"}
"""PDFium sees a page of another size than anybody could write, or fewer pages than are
stated."""

PLAIN: Final = {
    "inherited": document(ABOVE, PAGE),
    "nodes in nodes": document(
        b"/Type/Pages/Kids[8 0 R]/Count 1/Rotate 90" + BOX,
        b"/Type/Page/Parent 8 0 R/Contents 4 0 R",
        o8=INNER % (FORMS % 6),
    ),
    "objects for entries": document(
        b"/Type/Pages/Kids 8 0 R/Count 1",
        b"/Type/Page/Parent 2 0 R/Contents 9 0 R/Resources 10 0 R/MediaBox 11 0 R",
        o8=b"[3 0 R]",
        o9=b"[4 0 R]",
        o10=b"<</XObject 12 0 R>>",
        o11=b"[0 0 13 0 R 300]",
        o12=b"<</X 6 0 R>>",
        o13=b"300",
    ),
    "a writer's own entry": document(ABOVE + b"/ITXT(2.1.7)", PAGE),
    "turns": paged(BOX + b"/Rotate 450/UserUnit 1.0"),
    "no content": document(ROOT, b"/Type/Page/Parent 2 0 R"),
    "content twice": contents(b"[4 0 R 4 0 R]"),
    "no content in an array": contents(b"[]"),
}


def refusal(pdf: bytes) -> ErrorCode | None:
    """The code by which a document is not taken as it is."""
    try:
        inspect(pdf, PAGES)
    except DocumentRefusedError as exc:
        return exc.code
    return None


def words(pdf: bytes, path: Path) -> tuple[str, str]:
    """What PDFium and Poppler read on the first page."""
    document = pypdfium2.PdfDocument(pdf)
    seen = document[0].get_textpage().get_text_range()
    document.close()
    path.write_bytes(pdf)
    found = subprocess.run(
        ["pdftotext", path, "-"],
        check=True,
        capture_output=True,
        text=True,
        timeout=CALL_S,
    )
    return seen.strip(), found.stdout.strip()


@pytest.mark.parametrize("name", ODD)
def test_odd_tree_is_written_anew(name: str, tmp_path: Path) -> None:
    """The copy is one to PDFium and Poppler, who read one word or another."""
    pdf = ODD[name]

    assert refusal(pdf) is ErrorCode.PDF_AMBIGUOUS
    if name in WITHOUT_COPY:
        with pytest.raises(DocumentRefusedError):
            repair(pdf)
        return
    made = repair(pdf)

    described = inspect(made.pdf, PAGES)
    assert len(described.pages) == 1
    pdfium, poppler = words(made.pdf, tmp_path / "a.pdf")
    assert pdfium == poppler
    assert pdfium in {"CIEN", "MIL", ""}
    assert repair(pdf) == made


@pytest.mark.parametrize("name", PLAIN)
def test_plain_tree_in_object_streams_is_taken_as_it_is(name: str) -> None:
    """Wherever its nodes are kept."""
    assert refusal(compressed(PLAIN[name])) is None


@pytest.mark.parametrize(
    "name", ["parent outside of the tree", "resources that are null"]
)
def test_copy_that_looks_different_says_so(name: str) -> None:
    """PDFium draws what qpdf does not keep: who signs is told."""
    pdf = ODD[name]

    assert are_drawn_alike(pdf, repair(pdf).pdf) is False


SIGNABLE: Final = (
    "parent outside of the tree",
    "page with empty kids",
    "notes of a node",
    "resources that are a stream",
    "resources of a form that are a stream",
    "box without an area",
    "turn of 45",
    "content and null",
)


@pytest.mark.parametrize("name", SIGNABLE)
def test_signed_document_with_an_odd_tree_is_refused(name: str) -> None:
    """It cannot be written anew; that it was signed so is no fault of the signature."""
    pdf = signed(ODD[name])

    assert refusal(pdf) is ErrorCode.PDF_AMBIGUOUS
    with pytest.raises(DocumentRefusedError):
        repair(pdf)
    assert {each.answer.value for each in weigh(pdf).values()} == {"yes"}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_tree_is_taken_as_it_is(name: str) -> None:
    """Inherited, indirect, in nodes within nodes: as honest writers have it."""
    assert refusal(PLAIN[name]) is None


def _tree_of(levels: int) -> bytes:
    """One page below so many inner nodes."""
    empty = {2: b"null", 3: b"null"}
    objects = {1: b"<</Type/Catalog/Pages 5 0 R>>", 4: stream(b"", b""), **empty}
    for level in range(levels):
        above = b"/Parent %d 0 R" % (4 + level) if level else b""
        kids = b"/Kids[%d 0 R]" % (6 + level)
        objects[5 + level] = b"<</Type/Pages/Count 1%s%s>>" % (kids, above)
    page = b"/Type/Page/Parent %d 0 R/Contents 4 0 R" % (4 + levels)
    objects[5 + levels] = b"<<%s%s>>" % (page, BOX)
    return build(dict(sorted(objects.items())))


def test_tree_is_taken_as_deep_as_can_be_proven() -> None:
    """A hundred levels, with stamps; pyHanko's validation ends not far beyond."""
    fonts = load_fonts(Path("/usr/share/fonts/truetype/liberation2"))

    assert len(inspect(_tree_of(100), 1, fonts).pages) == 1
    with pytest.raises(DocumentRefusedError) as refused:
        inspect(_tree_of(101), 1, fonts)
    assert refused.value.code is ErrorCode.PDF_TOO_COMPLEX


@pytest.mark.parametrize("count", [b"/Count 1", b"/Count 2", b"/Count 0", b""])
def test_pages_beyond_a_count_that_is_too_low_are_in_the_copy(count: bytes) -> None:
    """PDFium shows as many as are stated, or all: who signs the copy sees them all."""
    pdf = build(
        {
            1: CATALOG,
            2: b"<</Type/Pages/Kids[3 0 R 4 0 R 5 0 R]%s>>" % count,
            3: b"<</Type/Page/Parent 2 0 R%s>>" % BOX,
            4: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 300]>>",
            5: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 300]>>",
        }
    )
    with closing(pypdfium2.PdfDocument(pdf)) as seen:
        is_hidden = len(seen) < 3

    made = repair(pdf)

    assert is_hidden == (count in {b"/Count 1", b"/Count 2"})
    assert (Damage.PAGES in made.damage) == is_hidden
    assert are_drawn_alike(pdf, made.pdf) is not is_hidden
    assert refusal(made.pdf) is None
    with closing(pypdfium2.PdfDocument(made.pdf)) as copy:
        widths = [copy.get_page_size(at)[0] for at in range(len(copy))]
    assert widths == [300, 200, 100]
