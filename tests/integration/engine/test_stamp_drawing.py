"""The stamp read back from the PDF: each field of the command, and its place."""

import io
import re
import subprocess
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pikepdf
import pypdfium2 as pdfium
import pytest
from PIL import Image, ImageChops

from appliance.domain.appearance.font_metrics import FONTS
from appliance.domain.appearance.stamp import (
    NAMED_COLORS,
    StampLayout,
    parse_color,
    place,
    stamp_lines,
)
from appliance.domain.documents.inspected import PageBox
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import FontName, FontStyle, Restriction
from tests.support.documents.pdf_samples import A4, SIGNED_AT, make_pdf
from tests.support.documents.software_signer import make_signer
from tests.support.patience import CALL_S
from worker.pades import SignaturePlan, method_for, prepare
from worker.pades.appearance.fonts import StampFonts
from worker.pades.appearance.form_xobject import draw_on_page

NAME = "María José Ñandú"
LINES = stamp_lines(NAME, "20267565393", SIGNED_AT, "es")
SIGNER = make_signer()
DPI = 144


def placed(params: SignParameters, *pages: PageBox) -> StampLayout:
    """The layout, which must be one."""
    layout = place(params, LINES, pages or (A4,))
    assert layout is not None
    return layout


def signed(original: bytes, layout: StampLayout, fonts: StampFonts) -> bytes:
    """The file as signed with a stamp; its value does not matter here."""
    plan = SignaturePlan(
        "Firma", layout, Restriction.NO_VALUE, SIGNED_AT, NAME, SIGNER.certificate,
        SIGNER.chain, method_for(SIGNER.certificate),
    )  # fmt: skip
    return original + SIGNER.complete(prepare(original, plan, fonts), plan)


def operators(pdf: bytes, page: int = 1) -> dict[str, list[list[object]]]:
    """The operands of each operator in the last annotation's appearance."""
    found: dict[str, list[list[object]]] = {}
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        form = opened.pages[page - 1].Annots[-1].AP.N
        for instruction in pikepdf.parse_content_stream(form):
            operands: list[object] = list(instruction.operands)
            found.setdefault(str(instruction.operator), []).append(operands)
    return found


def render(pdf: bytes, folder: Path) -> Image.Image:
    """The first page as a reader sees it."""
    path = folder / "page.pdf"
    path.write_bytes(pdf)
    subprocess.run(
        ["pdftoppm", "-cropbox", "-r", str(DPI), "-singlefile", "-png", path,
         folder / "page"],
        check=True, timeout=CALL_S,
    )  # fmt: skip
    return Image.open(folder / "page.png").convert("RGB")


def words(pdf: bytes, folder: Path) -> list[tuple[str, float, float]]:
    """Each word of the first page with its left and top, as seen."""
    path = folder / "page.pdf"
    path.write_bytes(pdf)
    done = subprocess.run(
        ["pdftotext", "-bbox", "-cropbox", path, "-"],
        check=True, capture_output=True, text=True, timeout=CALL_S,
    )  # fmt: skip
    rows = re.findall(r'xMin="([\d.-]+)" yMin="([\d.-]+)".*?>(.*?)<', done.stdout)
    return [(word, float(left), float(top)) for left, top, word in rows]


@pytest.mark.parametrize("name", FontName)
@pytest.mark.parametrize("style", FontStyle)
def test_font_is_embedded_by_name_and_style(
    name: FontName, style: FontStyle, fonts: StampFonts, tmp_path: Path
) -> None:
    """The right Liberation font, embedded, as a subset, with Unicode."""
    layout = placed(SignParameters(font_name=name, font_style=style))
    path = tmp_path / "signed.pdf"
    path.write_bytes(signed(make_pdf(), layout, fonts))

    table = subprocess.run(
        ["pdffonts", path], check=True, capture_output=True, text=True, timeout=CALL_S
    ).stdout

    (row,) = [line for line in table.splitlines() if "Liberation" in line]
    font, *_, encoding, embedded, subset, unicode, _, _ = row.split()
    assert font == "RUBRIC+" + FONTS[name, style].file.removesuffix(".ttf")
    assert (encoding, embedded, subset, unicode) == ("Identity-H", "yes", "yes", "yes")


@pytest.mark.parametrize(("size", "zoom"), [(4, 100), (12, 100), (72, 50), (9, 250)])
def test_font_size_is_size_by_zoom(size: int, zoom: int, fonts: StampFonts) -> None:
    """The size as drawn."""
    page = PageBox(0, 0, 3000, 3000, 0)
    params = SignParameters(font_size=size, zoom_percent=zoom, x=0, y=0)

    pdf = signed(make_pdf([page]), placed(params, page), fonts)

    assert operators(pdf)["Tf"][0][1] == Decimal(size * zoom) / 100


@pytest.mark.parametrize("color", [*NAMED_COLORS, "#0A64FF"])
def test_color_is_that_of_the_text(color: str, fonts: StampFonts) -> None:
    """Each name, and a number."""
    layout = placed(SignParameters(font_color=color))

    found = operators(signed(make_pdf(), layout, fonts))["rg"][0]

    assert [float(str(part)) for part in found] == pytest.approx(
        parse_color(color), abs=0.001
    )


def test_stamp_is_on_the_asked_page_alone(fonts: StampFonts) -> None:
    """Page 2 of 3 has the widget, and the others have nothing."""
    pages = [A4, PageBox(0, 0, 400, 400, 90), A4]
    layout = placed(SignParameters(page=2, x=5, y=6), *pages)

    pdf = signed(make_pdf(pages), layout, fonts)

    with pikepdf.open(io.BytesIO(pdf)) as opened:
        assert [len(p.get("/Annots", [])) for p in opened.pages] == [0, 1, 0]
        rect = [float(side) for side in opened.pages[1].Annots[0].Rect]
        assert rect == pytest.approx(layout.rect, abs=0.01)


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("zoom", [60, 100, 150])
@pytest.mark.parametrize("preview", [False, True])
def test_stamp_is_seen_where_it_was_asked(
    rotate: int, zoom: int, fonts: StampFonts, tmp_path: Path, *, preview: bool
) -> None:
    """Rendered pixels of the border, signed and in the preview, under a CropBox."""
    page = PageBox(50, 60, 450, 400, rotate)
    params = SignParameters(x=31, y=47, zoom_percent=zoom, font_color="RED")
    layout = placed(params, page)
    original = make_pdf([page], media=(0, 0, 500, 500), edit=(b"Tj", b""))

    make = draw_on_page if preview else signed
    image = render(make(original, layout, fonts), tmp_path)

    white = Image.new("RGB", image.size, "white")
    box = ImageChops.difference(image, white).getbbox()
    assert box is not None
    seen = [side * 72 / DPI for side in box]
    far = (31 + layout.width, 47 + layout.height)
    assert seen == pytest.approx([31, 47, *far], abs=1.0)


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_text_reads_upright_at_any_rotation(
    rotate: int, fonts: StampFonts, tmp_path: Path
) -> None:
    """The lines stand under one another, left aligned, from the padding on."""
    page = PageBox(0, 0, 450, 400, rotate)
    layout = placed(SignParameters(x=31, y=47), page)
    original = make_pdf([page], edit=(b"Tj", b""))

    found = words(signed(original, layout, fonts), tmp_path)

    starts = {line.split()[0]: None for line in LINES}
    at = {word: (left, top) for word, left, top in found if word in starts}
    lefts = [at[word][0] for word in starts]
    tops = [at[word][1] for word in starts]
    assert lefts == pytest.approx([31 + 6] * 4, abs=0.2)
    gaps = [after - before for before, after in pairwise(tops)]
    assert gaps == pytest.approx([14.4] * 3, abs=0.1)
    assert tops[0] == pytest.approx(47 + 6 + 0.6, abs=1.0)


@pytest.mark.parametrize("font", FontName)
@pytest.mark.parametrize("style", FontStyle)
def test_text_stays_within_the_padding(
    font: FontName, style: FontStyle, fonts: StampFonts, tmp_path: Path
) -> None:
    """The domain's widths are those that a reader draws, accents included."""
    layout = placed(SignParameters(x=20, y=20, font_name=font, font_style=style))
    path = tmp_path / "page.pdf"
    path.write_bytes(signed(make_pdf(edit=(b"Tj", b"")), layout, fonts))

    done = subprocess.run(
        ["pdftotext", "-bbox", path, "-"],
        check=True, capture_output=True, text=True, timeout=CALL_S,
    )  # fmt: skip

    rights = [float(x) for x in re.findall(r'xMax="([\d.]+)"', done.stdout)]
    assert max(rights) == pytest.approx(20 + layout.width - 6, abs=0.2)


def test_text_can_be_copied_with_its_accents(fonts: StampFonts, tmp_path: Path) -> None:
    """All characters of the metrics come back as they were."""
    lines = stamp_lines("Ñandú “Ÿŷ” \u2013 ĞŐŻ € ß ø…", "20267565393", SIGNED_AT, "es")
    layout = place(SignParameters(), lines, [A4])
    assert layout is not None
    path = tmp_path / "page.pdf"
    path.write_bytes(signed(make_pdf(edit=(b"Tj", b"")), layout, fonts))

    done = subprocess.run(
        ["pdftotext", path, "-"],
        check=True,
        capture_output=True,
        text=True,
        timeout=CALL_S,
    )

    assert done.stdout.strip().splitlines() == list(lines)


def test_stamp_without_text_has_no_font(fonts: StampFonts) -> None:
    """On a tiny page there is the box alone."""
    page = PageBox(0, 0, 20, 20, 0)

    pdf = signed(make_pdf([page]), placed(SignParameters(), page), fonts)

    assert "Tj" not in operators(pdf)
    assert b"FontFile2" not in pdf


def test_preview_shows_what_the_signature_will(
    fonts: StampFonts, tmp_path: Path
) -> None:
    """Pixel for pixel the same page."""
    layout = placed(SignParameters(x=100, y=100, font_color="BLUE"))
    original = make_pdf()

    preview = render(draw_on_page(original, layout, fonts), tmp_path)
    real = render(signed(original, layout, fonts), tmp_path)

    assert ImageChops.difference(preview, real).getbbox() is None


def test_preview_is_drawn_by_pdfium_too(fonts: StampFonts) -> None:
    """The sandbox renders with PDFium: the stamp is there, and only there."""
    layout = placed(SignParameters(x=100, y=50, font_color="RED"))
    original = make_pdf(edit=(b"Tj", b""))

    page = pdfium.PdfDocument(draw_on_page(original, layout, fonts))[0]
    image = page.render(scale=2).to_pil().convert("RGB")

    white = Image.new("RGB", image.size, "white")
    box = ImageChops.difference(image, white).getbbox()
    assert box is not None
    far = (100 + layout.width, 50 + layout.height)
    assert [side / 2 for side in box] == pytest.approx([100, 50, *far], abs=1.0)


def test_preview_keeps_the_annotations_of_the_page(fonts: StampFonts) -> None:
    """The stamp is hung after them."""
    layout = placed(SignParameters())
    once = draw_on_page(make_pdf(), layout, fonts)

    twice = draw_on_page(once, layout, fonts)

    assert twice.startswith(once)
    with pikepdf.open(io.BytesIO(twice)) as opened:
        assert len(opened.pages[0].Annots) == 2


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"junk", ErrorCode.PDF_MALFORMED), (make_pdf([]), ErrorCode.PDF_NO_PAGES)],
)
def test_preview_is_refused_by_name_when_broken(
    content: bytes, code: ErrorCode, fonts: StampFonts
) -> None:
    """As signing would refuse it."""
    with pytest.raises(DocumentRefusedError) as caught:
        draw_on_page(content, placed(SignParameters()), fonts)

    assert caught.value.code is code
