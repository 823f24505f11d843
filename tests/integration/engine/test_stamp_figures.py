"""QR code, logo, reason and place in signed files, and what they leave alone."""

import asyncio
import io
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pikepdf
import pypdfium2
import pytest
import segno
from PIL import Image, ImageChops

from appliance.documents.sandbox_client import SandboxClient
from appliance.domain.appearance.details import LogoPicture, StampDetails
from appliance.domain.appearance.stamp import QUIET_MODULES, StampLayout, lay_out
from appliance.domain.appearance.text import StampSigner, spoken
from appliance.domain.documents.inspected import PageBox
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import Restriction
from tests.support.browsers.qr_codes import scanned
from tests.support.documents.pdf_samples import A4, SIGNED_AT, make_pdf
from tests.support.documents.software_signer import make_signer
from tests.support.documents.validators import pdfsig, pyhanko_verdicts, read_pdf
from tests.support.patience import CALL_S
from tests.support.services.sandbox_server import running_sandbox
from tests.tools.contact_sheet import QR, draw, sample_logo
from worker.pades import SignaturePlan, method_for, prepare
from worker.pades.appearance.fonts import StampFonts
from worker.pades.appearance.form_xobject import draw_on_page
from worker.sandbox.inspection import inspect

WHO = StampSigner("María José Ñandú", "20267565393", "es")
SIGNER = make_signer()
LOGO = sample_logo()
FULL = StampDetails(is_cuil_masked=True, qr=QR.qr, logo=LOGO.logo)
SAID = SignParameters(x=40, y=50, reason="Conformidad", place="Ñorquincó")
SCALE = 4
CODE = "0123456789ABCDEFGHJKMNPQRS"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxClient]:
    """A sandbox for all tests here."""
    with running_sandbox() as server:
        yield server.client


def laid(
    pdf: bytes, params: SignParameters = SAID, details: StampDetails = FULL
) -> StampLayout:
    """The layout, which must be one."""
    layout = lay_out(params, WHO, SIGNED_AT, inspect(pdf, 10), details)
    assert layout is not None
    return layout


def signed(
    pdf: bytes,
    layout: StampLayout,
    fonts: StampFonts,
    picture: LogoPicture | None = LOGO,
) -> bytes:
    """The file as signed with everything."""
    plan = SignaturePlan(
        "Firma", layout, Restriction.NO_VALUE, SIGNED_AT, WHO.name, SIGNER.certificate,
        SIGNER.chain, method_for(SIGNER.certificate), picture=picture,
        spoken=spoken(SAID, WHO, SIGNED_AT, FULL), reason=SAID.reason, place=SAID.place,
    )  # fmt: skip
    return pdf + SIGNER.complete(prepare(pdf, plan, fonts), plan)


def picture(pdf: bytes) -> Image.Image:
    """The first page by PDFium, four pixels a point."""
    document = pypdfium2.PdfDocument(pdf)
    document.init_forms()
    image: Image.Image = document[0].render(scale=SCALE).to_pil()
    return image.convert("RGB")


def test_signature_with_everything_is_valid(fonts: StampFonts) -> None:
    """For pyHanko and for pdfsig; reason and place stand in the signature."""
    original = make_pdf()

    pdf = signed(original, laid(original), fonts)

    (status,) = pyhanko_verdicts(pdf, [SIGNER.root])
    assert status.good
    (seen,) = pdfsig(pdf)
    assert (seen.valid, seen.whole_document) == (True, True)
    (found,) = read_pdf(pdf).embedded_signatures
    assert found.sig_object["/Reason"] == "Conformidad"
    assert found.sig_object["/Location"] == "Ñorquincó"


def test_field_says_aloud_what_the_stamp_shows(fonts: StampFonts) -> None:
    """The address in the QR code too."""
    original = make_pdf()

    (found,) = read_pdf(signed(original, laid(original), fonts)).embedded_signatures

    assert found.sig_field["/TU"] == (
        "Firmado por María José Ñandú, CUIL ••-•••••539-•, Motivo: Conformidad, "
        f"Lugar: Ñorquincó, 20/11/2026 14:03 (UTC-3), {QR.qr}"
    )


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("preview", [False, True])
def test_qr_code_is_drawn_module_by_module(
    rotate: int, fonts: StampFonts, *, preview: bool
) -> None:
    """Each module has its colour, upright at any rotation, with white around it."""
    original = make_pdf([PageBox(10, 20, 510, 520, rotate)])
    layout = laid(original)
    assert layout.qr is not None
    assert QR.qr is not None

    make = draw_on_page if preview else signed
    image = picture(make(original, layout, fonts, LOGO))

    made = segno.make_qr(QR.qr, error="m", mode="byte", boost_error=False)
    module = layout.qr.side / (len(made.matrix) + 2 * QUIET_MODULES)
    left, top = layout.x + layout.qr.x, layout.y + layout.qr.y

    def dark(column: float, row: float) -> bool:
        x, y = left + (column + 0.5) * module, top + (row + 0.5) * module
        red, green, blue = image.getpixel((int(x * SCALE), int(y * SCALE)))  # type: ignore[misc]  # an RGB pixel
        return red + green + blue < 3 * 128

    for row, modules in enumerate(made.matrix):
        seen = [
            dark(column + QUIET_MODULES, row + QUIET_MODULES)
            for column in range(len(modules))
        ]
        assert seen == [bool(module) for module in modules]
    around = range(len(made.matrix) + 2 * QUIET_MODULES)
    assert not any(dark(at, 0) or dark(0, at) for at in around)


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize(
    "base", ["https://firma.example", "https://firma-digital.municipio.gob.ar/rubrica"]
)
def test_code_is_read_off_the_page(base: str, rotate: int, fonts: StampFonts) -> None:
    """By a decoder, from a drawing of 100 dots an inch, beside text of 8 pt."""
    original = make_pdf([PageBox(0, 0, 595, 842, rotate)])
    address = f"{base}/verificar/{CODE}"
    params = SignParameters(x=41, y=53, font_size=8)
    layout = laid(original, params, StampDetails(qr=address))

    assert scanned(signed(original, layout, fonts, picture=None)) == address


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_nothing_changes_outside_the_stamp(
    rotate: int, fonts: StampFonts, tmp_path: Path
) -> None:
    """Pixel by pixel, by PDFium and by Poppler, under a CropBox."""
    page = PageBox(50, 60, 550, 560, rotate)
    original = make_pdf([page], media=(0, 0, 600, 600))
    layout = laid(original)

    pdf = signed(original, layout, fonts)

    for drawn in (picture, lambda file: poppler(file, tmp_path)):
        box = ImageChops.difference(drawn(original), drawn(pdf)).getbbox()
        assert box is not None
        left, top, right, bottom = (side / SCALE for side in box)
        assert layout.x - 0.5 <= left
        assert layout.y - 0.5 <= top
        assert right <= layout.x + layout.width + 0.5
        assert bottom <= layout.y + layout.height + 0.5


def poppler(pdf: bytes, folder: Path) -> Image.Image:
    """The first page by Poppler."""
    (folder / "page.pdf").write_bytes(pdf)
    subprocess.run(
        ["pdftoppm", "-cropbox", "-r", str(72 * SCALE), "-singlefile", "-png",
         folder / "page.pdf", folder / "page"],
        check=True, timeout=CALL_S,
    )  # fmt: skip
    return Image.open(folder / "page.png").convert("RGB")


def test_logo_is_seen_in_its_colours(fonts: StampFonts) -> None:
    """Its left half is blue, its transparent ground white."""
    original = make_pdf()
    layout = laid(original)
    assert layout.logo is not None

    image = picture(signed(original, layout, fonts))

    box = layout.logo
    left, top = layout.x + box.x, layout.y + box.y
    at = ((left + 0.12 * box.width) * SCALE, (top + 0.5 * box.height) * SCALE)
    assert image.getpixel((int(at[0]), int(at[1]))) == pytest.approx(
        (11, 92, 173), abs=3
    )
    corner = ((left + 0.01 * box.width) * SCALE, (top + 0.03 * box.height) * SCALE)
    assert image.getpixel((int(corner[0]), int(corner[1]))) == (255, 255, 255)


def test_another_logo_than_the_layout_names_is_not_drawn(fonts: StampFonts) -> None:
    """Nor none at all: what was consented to is drawn, or nothing is signed."""
    original = make_pdf()

    with pytest.raises(ApplianceError):
        signed(original, laid(original), fonts, picture=None)


def test_colours_of_a_file_with_an_output_intent_are_srgb(fonts: StampFonts) -> None:
    """RGB of no device in PDF/A; other files stay as plain as they are."""
    with pikepdf.open(io.BytesIO(make_pdf())) as opened:
        intent = pikepdf.Dictionary(
            Type=pikepdf.Name.OutputIntent, S=pikepdf.Name.GTS_PDFA1,
            OutputConditionIdentifier="FOGRA39",
        )  # fmt: skip
        opened.Root.OutputIntents = pikepdf.Array([intent])
        out = io.BytesIO()
        opened.save(out)
    params = SignParameters(x=40, y=50, font_color="RED")

    for original, has_space in ((out.getvalue(), True), (make_pdf(), False)):
        pdf = signed(original, laid(original, params), fonts)
        with pikepdf.open(io.BytesIO(pdf)) as opened:
            form = opened.pages[0].Annots[0].AP.N
            assert ("/ColorSpace" in form.Resources) == has_space
            if has_space:
                assert "/DefaultRGB" in form.Resources.ColorSpace
        assert any(red > 250 and green < 60 for red, green, _ in colors(draw(pdf)))


def colors(image: Image.Image) -> list[tuple[int, ...]]:
    """Every colour of a picture."""
    counted = image.getcolors(1 << 24) or []
    return [color for _, color in counted if isinstance(color, tuple)]


def test_glyphs_of_the_font_are_all_named(fonts: StampFonts) -> None:
    """As PDF/A-1 wants it of a subset: a bit for each glyph of the program."""
    original = make_pdf()

    with pikepdf.open(io.BytesIO(signed(original, laid(original), fonts))) as opened:
        font = opened.pages[0].Annots[0].AP.N.Resources.Font.F1.DescendantFonts[0]
        bits = font.FontDescriptor.CIDSet.read_bytes()
        shown = max(
            int(font.W[at]) for at in range(0, len(font.W), 2)
        )  # fmt: skip

    assert 8 * len(bits) > shown
    assert set(bits[:-1]) == {0xFF}


# -- logos, drawn anew in the sandbox ----------------------------------------------


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
async def test_logo_is_drawn_anew_within_its_limits(
    kind: str, sandbox: SandboxClient
) -> None:
    """Smaller, upright, of pixels alone."""
    file = io.BytesIO()
    Image.new("RGB", (1200, 300), (200, 30, 30)).save(file, kind)

    made = await sandbox.picture(file.getvalue() + b"what follows the end")

    assert (made.logo.width_px, made.logo.height_px) == (400, 100)
    assert b"what follows" not in made.deflated


def harmful() -> Iterator[tuple[str, bytes]]:
    """Pictures that are none, or too large."""
    file = io.BytesIO()
    Image.new("1", (5000, 10)).save(file, "PNG")
    yield "wide", file.getvalue()
    gif = io.BytesIO()
    Image.new("RGB", (10, 10)).save(gif, "GIF")
    yield "gif", gif.getvalue()
    good = io.BytesIO()
    Image.new("RGB", (50, 50)).save(good, "PNG")
    yield "cut", good.getvalue()[:60]
    yield "text", b"<svg onload='x'/>"
    yield "empty", b""
    yield "large", bytes(1_000_001)


@pytest.mark.parametrize(
    "content",
    [content for _, content in harmful()],
    ids=[name for name, _ in harmful()],
)
async def test_unusable_picture_is_refused_by_name(
    content: bytes, sandbox: SandboxClient
) -> None:
    """Whatever is wrong with it."""
    with pytest.raises(ApplianceError) as caught:
        await sandbox.picture(content)

    assert caught.value.code is ErrorCode.PICTURE_UNUSABLE


async def test_preview_shows_the_logo(sandbox: SandboxClient) -> None:
    """The same pixels as a picture drawn here."""
    original = make_pdf()
    layout = await asyncio.to_thread(laid, original)

    png = await sandbox.render(original, 1, layout, 96, LOGO)

    image = Image.open(io.BytesIO(png)).convert("RGB")
    assert layout.logo is not None
    x = (layout.x + layout.logo.x + 0.12 * layout.logo.width) * 96 / 72
    y = (layout.y + layout.logo.y + 0.5 * layout.logo.height) * 96 / 72
    assert image.getpixel((int(x), int(y))) == pytest.approx((11, 92, 173), abs=3)


async def test_marks_and_units_of_a_document_are_described(
    sandbox: SandboxClient, fonts: StampFonts
) -> None:
    """The second signer's stamp goes beside the first one's."""
    original = make_pdf([PageBox(0, 0, 300, 420, 90, 2.0), A4])
    # Elsewhere, for it has a loop of its own.
    first = await asyncio.to_thread(laid, original, SignParameters(), StampDetails())

    described = await sandbox.inspect(signed(original, first, fonts))

    assert [page.user_unit for page in described.pages] == [2.0, 1.0]
    (mark,) = described.marks
    assert mark.page == 1
    assert mark.rect == pytest.approx(first.rect, abs=0.01)
    second = lay_out(SignParameters(), WHO, SIGNED_AT, described)
    assert second is not None
    assert second.x == pytest.approx(first.x + first.width + 6, abs=0.1)
