"""Draw a sheet of signed pages, for people to look at.

`python -m tests.tools.contact_sheet SHEET.png` signs each sample as the worker does and
draws its page with PDFium; with `--compare` it also draws each with Poppler and tells
how much the two differ.
"""

import argparse
import io
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pypdfium2
from PIL import Image, ImageChops, ImageDraw, ImageFont

from appliance.documents.sandbox_client import _logo_picture
from appliance.domain.appearance.details import (
    PLAIN,
    SAMPLE_CODE,
    Logo,
    LogoPicture,
    StampDetails,
)
from appliance.domain.appearance.stamp import NAMED_COLORS, lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.documents.inspected import PageBox
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import FontName, FontStyle, Restriction
from appliance.settings import Settings
from tests.support.documents.pdf_samples import A4, SIGNED_AT, make_pdf
from tests.support.documents.software_signer import make_signer
from tests.support.patience import CALL_S
from worker.pades import SignaturePlan, method_for, prepare
from worker.pades.appearance.fonts import StampFonts, load_fonts
from worker.sandbox.inspection import inspect
from worker.sandbox.logo_pixels import logo_rows

SIGNER: Final = make_signer()
WHO: Final = StampSigner("María José Ñandú Güiráldez", "20267565393", "es")
QR: Final = StampDetails(qr=f"https://firma.example/verificar/{SAMPLE_CODE}")
LEGAL: Final = PageBox(0, 0, 612, 1008, 0)
SMALL: Final = PageBox(0, 0, 300, 150, 0)
COLUMNS: Final = 6
TILE: Final = 600
LABEL: Final = 34


@dataclass(frozen=True, slots=True)
class Sample:
    """One page and what it is signed with."""

    label: str
    params: SignParameters = field(default_factory=SignParameters)
    page: PageBox = A4
    media: tuple[float, float, float, float] | None = None
    details: StampDetails = PLAIN
    times: int = 1
    """How many people sign it, one after the other."""
    who: StampSigner = WHO


def samples(logo: Logo) -> Iterator[Sample]:
    """What the sheet shows.

    Args:
        logo: that some stamps show.
    """
    full = StampDetails(is_cuil_masked=True, qr=QR.qr, logo=logo)
    said = SignParameters(
        reason="Lectura y conformidad con el contrato de locación y sus anexos",
        place="San Miguel de Tucumán",
    )
    for rotate in (0, 90, 180, 270):
        page = PageBox(0, 0, 595, 842, rotate)
        yield Sample(f"A4 turned {rotate}", page=page, details=full)
        cropped = PageBox(100, 150, 500, 450, rotate)
        media = (0.0, 0.0, 612.0, 792.0)
        params = SignParameters(x=20, y=30)
        yield Sample(f"CropBox, at 20,30, {rotate}", params, cropped, media)
    yield Sample("Legal, reason, place", said, LEGAL, details=full)
    yield Sample("UserUnit 2", SignParameters(), PageBox(0, 0, 300, 420, 0, 2.0))
    yield Sample("twelve signers", page=A4, times=12)
    yield Sample("five with everything", said, times=5, details=full)
    yield Sample("small 120 x 60", page=PageBox(0, 0, 120, 60, 0), details=full)
    yield Sample("tiny 40 x 30", page=PageBox(0, 0, 40, 30, 90))
    yield Sample("narrow 60 x 800", page=PageBox(0, 0, 60, 800, 0), details=full)
    yield Sample("zoom 50", SignParameters(zoom_percent=50), SMALL, details=full)
    yield Sample("zoom 150", SignParameters(zoom_percent=150), details=full)
    yield Sample("long name", who=StampSigner("Nombre " * 20, "20267565393", "es"))
    yield Sample("QR alone", page=SMALL, details=QR)
    yield Sample("logo alone", page=SMALL, details=StampDetails(logo=logo))
    for font in FontName:
        for style in FontStyle:
            params = SignParameters(font_name=font, font_style=style)
            yield Sample(f"{font} {style}", params, SMALL)
    for color in (*NAMED_COLORS, "#0A64FF"):
        yield Sample(color, SignParameters(font_color=color), SMALL)


def make(sample: Sample, fonts: StampFonts, picture: LogoPicture) -> bytes:
    """Sign a sample as the worker does, as often as it says."""
    pdf = make_pdf([sample.page], media=sample.media)
    for number in range(sample.times):
        inspection = inspect(pdf, 10)
        plan = SignaturePlan(
            field_name=f"Firma-{number}",
            layout=lay_out(
                sample.params, sample.who, SIGNED_AT, inspection, sample.details
            ),
            restriction=Restriction.NO_VALUE,
            signed_at=SIGNED_AT,
            signer_name=sample.who.name,
            certificate=SIGNER.certificate,
            chain=SIGNER.chain,
            method=method_for(SIGNER.certificate),
            picture=picture,
        )
        pdf += SIGNER.complete(prepare(pdf, plan, fonts), plan)
    return pdf


def draw(pdf: bytes) -> Image.Image:
    """The first page by PDFium, as large as a tile."""
    document = pypdfium2.PdfDocument(pdf)
    document.init_forms()  # or the widgets of signatures would be missing
    page = document[0]
    scale = TILE / max(page.get_size())
    image: Image.Image = page.render(scale=scale).to_pil()
    return image.convert("RGB")


def difference(pdf: bytes, image: Image.Image) -> float:
    """How much Poppler draws otherwise, as a share of all that could differ."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "page.pdf")
        path.write_bytes(pdf)
        subprocess.run(
            ["pdftoppm", "-cropbox", "-singlefile", "-png", "-scale-to", str(TILE),
             path, Path(folder, "page")],
            check=True, timeout=CALL_S,
        )  # fmt: skip
        other = Image.open(Path(folder, "page.png")).convert("RGB").resize(image.size)
    levels = ImageChops.difference(image, other).convert("L").histogram()
    return sum(level * count for level, count in enumerate(levels)) / (
        255 * image.width * image.height
    )


def sheet(drawn: Sequence[tuple[str, Image.Image]]) -> Image.Image:
    """The drawings in rows, each under its label."""
    rows = [drawn[at : at + COLUMNS] for at in range(0, len(drawn), COLUMNS)]
    heights = [max(image.height for _, image in row) + LABEL + 10 for row in rows]
    out = Image.new("RGB", (COLUMNS * (TILE + 20), sum(heights)), "#8a8a8a")
    pen = ImageDraw.Draw(out)
    font = ImageFont.load_default(22)
    for at, row in enumerate(rows):
        top = sum(heights[:at])
        for column, (label, image) in enumerate(row):
            left = column * (TILE + 20) + 10
            pen.text((left, top + 4), label, "white", font)
            out.paste(image, (left, top + LABEL))
    return out


def sample_logo() -> LogoPicture:
    """A logo with a transparent ground, as operators have them."""
    image = Image.new("RGBA", (900, 500), (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    pen.ellipse((40, 40, 460, 460), fill=(11, 92, 173, 255))
    pen.polygon([(250, 90), (400, 380), (100, 380)], fill=(255, 255, 255, 255))
    pen.text((500, 160), "ACME", (11, 92, 173, 255), ImageFont.load_default(150))
    file = io.BytesIO()
    image.save(file, "PNG")
    width, height, rows = logo_rows(file.getvalue())
    return _logo_picture({"width": width, "height": height}, rows)


def main() -> int:
    """Draw the sheet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sheet", type=Path)
    parser.add_argument("--compare", action="store_true", help="with Poppler too")
    args = parser.parse_args()
    fonts = load_fonts(Settings.model_fields["fonts_dir"].default)
    picture = sample_logo()
    drawn = []
    for sample in samples(picture.logo):
        pdf = make(sample, fonts, picture)
        image = draw(pdf)
        drawn.append((sample.label, image))
        if args.compare:
            share = difference(pdf, image)
            sys.stdout.write(f"{sample.label}: {100 * share:.2f} %\n")
    sheet(drawn).save(args.sheet, optimize=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
