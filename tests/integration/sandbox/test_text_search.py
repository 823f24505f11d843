"""A text of a document, found where it is seen; and documents made to break that.

Source: docs/stamp.md, "Below a text of the document".
"""

import asyncio
import html
import io
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageOps

from appliance.documents.examination import Examination
from appliance.domain.appearance.geometry import Box, as_seen, size_as_seen
from appliance.domain.documents.inspected import PageBox, TextSearch
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.settings import DocumentSettings
from tests.support.documents import hostile_pdfs, pdfs
from tests.support.documents.pdf_samples import make_pdf
from tests.support.patience import CALL_S
from tests.support.services.sandbox_server import ROOT, SandboxServer, running_sandbox
from worker.sandbox.text_search import CHARACTERS_MOST, PAGES_MOST

CORPUS = ROOT.parent / "shared" / "corpus"
WORD = re.compile(
    r'<word xMin="(.+?)" yMin="(.+?)" xMax="(.+?)" yMax="(.+?)">(.*?)</word>'
)
TO_UNICODE = b"""<</Length %d>>stream
/CIDInit /ProcSet findresource begin 12 dict begin begincmap
1 begincodespacerange <00> <ff> endcodespacerange
%d beginbfchar %s endbfchar endcmap end end
endstream"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox for all tests here, which has to survive them."""
    with running_sandbox() as server:
        yield server
        assert server.process.poll() is None


async def find(
    sandbox: SandboxServer, pdf: bytes, text: str, nth: int = 1, page: int | None = None
) -> tuple[int, list[float]] | None:
    """Page and corners of a text in user space, to a tenth of a point."""
    found = (await sandbox.client.find_text(pdf, text, nth, page)).found
    return (
        None if found is None else (found.page, [round(edge, 1) for edge in found.rect])
    )


def page_of(content: bytes, **more: bytes) -> bytes:
    """A page of 200 by 200 points, `F1` of which is Helvetica."""
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding%s>>"
    font %= more.pop("font", b"")
    return hostile_pdfs.plain(
        page=b"/Contents 5 0 R/Resources<</Font<</F1 6 0 R>>>>",
        o5=b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        o6=font,
        **more,
    )


# -- where it is ---------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1.0, 2.0])
@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
async def test_text_is_found_where_it_is_seen(
    sandbox: SandboxServer, rotate: int, unit: float
) -> None:
    """On a page that is cropped, turned and of another unit: where its ink is.

    Source: ISO 32000-2, 7.7.3.3 (Rotate, UserUnit) and 14.11.2 (CropBox).
    """
    box = PageBox(50, 70, 450, 370, rotate, unit)
    pdf = make_pdf([PageBox(0, 0, 600, 800, 0), box], media=(0, 0, 600, 800))

    found = (await sandbox.client.find_text(pdf, "Page 2", 1)).found

    assert found is not None
    assert found.page == 2
    assert (await sandbox.client.inspect(pdf)).pages[1] == box
    png = await sandbox.client.render(pdf, 2, None, 72)
    drawn = Image.open(io.BytesIO(png)).convert("L")
    ink = ImageOps.invert(drawn).getbbox()
    assert ink is not None
    scale = size_as_seen(box)[0] / drawn.width
    seen = as_seen(box, found.rect)
    assert seen == pytest.approx([edge * scale for edge in ink], abs=2 * scale)


def poppler_words(path: Path) -> Iterator[tuple[int, str, Box]]:
    """Words of a file with their boxes as seen, by another reader's account."""
    told = subprocess.run(
        ["pdftotext", "-bbox", "-cropbox", path, "-"],
        capture_output=True,
        check=True,
        timeout=CALL_S,
    ).stdout
    pages = told.decode("utf-8", "replace").split("<page ")[1:]
    for number, page in enumerate(pages, 1):
        for *edges, text in WORD.findall(page):
            x0, y0, x1, y1 = map(float, edges)
            yield number, html.unescape(text), (x0, y0, x1, y1)


@pytest.mark.full
async def test_words_of_real_documents_are_found_where_poppler_has_them(
    sandbox: SandboxServer,
) -> None:
    """The first long word that a page has once, of every file with such a word."""
    if not CORPUS.is_dir():
        pytest.skip("the corpus does not stand beside this checkout")
    examination = Examination(sandbox.client, DocumentSettings())
    near: dict[str, bool] = {}
    for path in sorted(CORPUS.glob("*.pdf")):
        try:
            examined = await examination.examine(path.read_bytes())
            words = list(poppler_words(path))
        except (DocumentRefusedError, subprocess.CalledProcessError):
            continue
        whole = " ".join(text for _, text, _ in words)
        for page, text, box in words:
            once = len(text) > 4 and text.isascii() and whole.count(text) == 1
            if not once:
                continue
            search = await sandbox.client.find_text(bytes(examined.pdf), text, 1, page)
            if search.found is not None:
                seen = as_seen(examined.inspection.pages[page - 1], search.found.rect)
                # Poppler's boxes are of the font's height, ours of what is drawn.
                height = box[3] - box[1]
                near[path.name] = (
                    abs(seen[0] - box[0]) < 3
                    and box[1] - height < seen[3] < box[3] + height
                )
            break

    assert len(near) >= 15, near
    assert sum(near.values()) >= 0.9 * len(near), near


# -- what is the same text -----------------------------------------------------------


async def test_runs_of_white_space_are_one_space(sandbox: SandboxServer) -> None:
    """In the document, at the end of its lines, and in what is looked for."""
    lines = b"BT /F1 10 Tf 12 TL 20 100 Td (Firma   del) Tj T* (empleador) Tj ET"
    pdf = page_of(lines)

    found = await find(sandbox, pdf, "Firma del empleador")
    assert found is not None
    # Around both lines: its lower edge is that of the second one.
    assert found[1][1] < 90
    assert found[1][3] > 105
    assert await find(sandbox, pdf, " Firma\t del\u00a0 empleador ") == found


async def test_case_counts_and_composition_does_not(sandbox: SandboxServer) -> None:
    """Texts are compared in NFC, whatever either was written in."""
    entries = b" ".join(
        b"<%02x> <%s>" % (code, units)
        for code, units in [(0x41, b"006E"), (0x42, b"0303"), (0x43, b"00F1")]
    )
    table = TO_UNICODE % (200 + len(entries), 3, entries)
    pdf = page_of(
        b"BT /F1 20 Tf 20 100 Td (AB) Tj 80 0 Td (C) Tj ET",
        font=b"/ToUnicode 7 0 R",
        o7=table,
    )

    both = [
        await find(sandbox, pdf, text, nth)
        for text in ("ñ", "n\u0303")
        for nth in (1, 2)
    ]
    assert both[:2] == both[2:]
    assert None not in both
    assert both[0] != both[1]
    assert await find(sandbox, pdf, "Ñ") is None


async def test_occurrences_are_counted_in_the_order_of_the_pages(
    sandbox: SandboxServer,
) -> None:
    """On one page alone where that is named."""
    pdf = pdfs.pages(3)

    places = [await find(sandbox, pdf, "Page", nth) for nth in (1, 2, 3, 4)]
    assert [place and place[0] for place in places] == [1, 2, 3, None]
    on_second = [await find(sandbox, pdf, "Page", nth, page=2) for nth in (1, 2)]
    assert [place and place[0] for place in on_second] == [2, None]
    assert await find(sandbox, pdf, "Page 3", page=2) is None


# -- bounds --------------------------------------------------------------------------


async def test_long_document_is_searched_up_to_a_bound(sandbox: SandboxServer) -> None:
    """What lies beyond it is not said to be absent, and a page of it can be named."""
    pdf = make_pdf([PageBox(0, 0, 200, 200, 0)] * (PAGES_MOST + 2))
    last = f"Page {PAGES_MOST + 1}"
    find_text = sandbox.client.find_text

    assert await find_text(pdf, last, 1) == TextSearch(None, whole=False)
    assert await find_text(pdf, "Absent", 1, 7) == TextSearch(None)
    assert (await find_text(pdf, f"Page {PAGES_MOST}", 1)).found is not None
    named = (await find_text(pdf, last, 1, PAGES_MOST + 1)).found
    assert named is not None
    assert named.page == PAGES_MOST + 1


async def test_page_with_more_characters_than_are_read(sandbox: SandboxServer) -> None:
    """The rest is left aside: quickly, and not said to be absent."""
    line = b"(%s) Tj T* " % (b"x" * 500)
    content = b"BT /F1 1 Tf 1 TL 0 190 Td %s (END) Tj ET" % (
        line * (CHARACTERS_MOST // 500 + 1)
    )

    search = await sandbox.client.find_text(page_of(content), "END", 1)

    assert search == TextSearch(None, whole=False)


async def test_page_that_there_is_not_is_refused(sandbox: SandboxServer) -> None:
    """As elsewhere."""
    with pytest.raises(ApplianceError) as caught:
        await sandbox.client.find_text(pdfs.one_page(), "Convenio", 1, 2)

    assert caught.value.code is ErrorCode.PAGE_OUT_OF_RANGE


# -- hostile documents ---------------------------------------------------------------

HOSTILE = {
    "empty": (b"", ErrorCode.DOCUMENT_EMPTY),
    "html": (pdfs.NOT_PDF["html"], ErrorCode.PDF_MALFORMED),
    "garbage": (bytes(range(256)) * 40, ErrorCode.PDF_MALFORMED),
    "catalog of itself": (hostile_pdfs.catalog_of_itself(), ErrorCode.PDF_MALFORMED),
    "password": (pdfs.encrypted("secret"), ErrorCode.PDF_PASSWORD_NEEDED),
}
FAR = page_of(b"BT /F1 10 Tf 1e30 0 0 1e30 1e30 1e30 Tm (Firma) Tj ET")
NO_EXTENT = page_of(b"BT /F1 0 Tf 20 100 Td (Firma) Tj ET")


@pytest.mark.parametrize("kind", HOSTILE)
async def test_hostile_document_is_refused_by_name(
    sandbox: SandboxServer, kind: str
) -> None:
    """Each has its code, and the next job is served."""
    pdf, code = HOSTILE[kind]

    with pytest.raises(DocumentRefusedError) as caught:
        await sandbox.client.find_text(pdf, "Firma", 1)

    assert caught.value.code is code, caught.value.reason
    await sandbox.client.ping()


@pytest.mark.parametrize("pdf", [FAR, NO_EXTENT], ids=["far away", "no extent"])
async def test_text_that_is_nowhere_is_not_found(
    sandbox: SandboxServer, pdf: bytes
) -> None:
    """It has no place that a stamp could go to."""
    assert await sandbox.client.find_text(pdf, "Firma", 1) == TextSearch(None)


async def test_bombs_and_loops_end_with_an_answer(sandbox: SandboxServer) -> None:
    """With nothing found, or a refusal; whatever a file is made of."""
    contents = [
        hostile_pdfs.content_bomb(),
        hostile_pdfs.content_bomb(times=2),
        hostile_pdfs.xref_stream_bomb(),
        hostile_pdfs.deep_tree(),
        hostile_pdfs.nested_arrays(),
        hostile_pdfs.loop_of_previous(),
        pdfs.page_tree_loop(),
        pdfs.lying_count(),
        pdfs.no_pages(),
    ]
    ends = await asyncio.gather(
        *(sandbox.client.find_text(content, "Firma", 1) for content in contents),
        return_exceptions=True,
    )

    for end in ends:
        found = isinstance(end, TextSearch) and end.found is None
        assert found or isinstance(end, DocumentRefusedError), end
    await sandbox.client.ping()
