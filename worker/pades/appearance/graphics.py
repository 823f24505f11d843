"""What a stamp shows besides words: a QR code and a logo; and in which colours."""

from collections.abc import Iterator
from typing import Final

import segno
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    IndirectObject,
    NumberObject,
    StreamObject,
    pdf_name,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

from appliance.domain.appearance.details import LogoPicture, qr_version
from appliance.domain.appearance.stamp import QUIET_MODULES, QrFigure, StampLayout

# The primaries and the white of sRGB (IEC 61966-2-1), as CalRGB has them.
_WHITE: Final = (0.9505, 1.0, 1.089)
_GAMMA: Final = (2.2, 2.2, 2.2)
_MATRIX: Final = (
    (0.4124, 0.2126, 0.0193),
    (0.3576, 0.7152, 0.1192),
    (0.1805, 0.0722, 0.9505),
)


def default_rgb(writer: IncrementalPdfFileWriter) -> DictionaryObject:
    """The resources that every stamp begins with.

    A file with an output intent (PDF/A, PDF/X) may be made for paper, where RGB of a
    device means nothing and costs the file its conformance: there the stamp's RGB is
    that of sRGB. In other files its colours are as plain as those of the page.

    Source: ISO 32000-2, 8.6.5.6; ISO 19005-2, 6.2.4.3.
    """
    if "/OutputIntents" not in writer.root:
        return DictionaryObject()
    parameters = DictionaryObject(
        {
            pdf_name("/WhitePoint"): _floats(_WHITE),
            pdf_name("/Gamma"): _floats(_GAMMA),
            pdf_name("/Matrix"): _floats(tuple(sum(_MATRIX, ()))),
        }
    )
    space = ArrayObject([pdf_name("/CalRGB"), parameters])
    spaces = DictionaryObject({pdf_name("/DefaultRGB"): space})
    return DictionaryObject({pdf_name("/ColorSpace"): spaces})


def _floats(values: tuple[float, ...]) -> ArrayObject:
    return ArrayObject(FloatObject(value) for value in values)


def write_logo(
    writer: IncrementalPdfFileWriter, picture: LogoPicture
) -> IndirectObject:
    """Add a logo's picture to a file.

    Source: ISO 32000-2, 8.9.5.
    """
    entries = {
        pdf_name("/Type"): pdf_name("/XObject"),
        pdf_name("/Subtype"): pdf_name("/Image"),
        pdf_name("/Width"): NumberObject(picture.logo.width_px),
        pdf_name("/Height"): NumberObject(picture.logo.height_px),
        pdf_name("/ColorSpace"): pdf_name("/DeviceRGB"),
        pdf_name("/BitsPerComponent"): NumberObject(8),
        pdf_name("/Filter"): pdf_name("/FlateDecode"),
    }
    return writer.add_object(StreamObject(entries, encoded_data=picture.deflated))


def logo_content(layout: StampLayout) -> list[str]:
    """The operators that paint the logo; none without one."""
    logo = layout.logo
    if logo is None:
        return []
    bottom = layout.height - logo.y - logo.height
    return [
        f"q {logo.width:.3f} 0 0 {logo.height:.3f} {logo.x:.3f} {bottom:.3f} cm",
        "/Logo Do Q",
    ]


def qr_content(layout: StampLayout) -> list[str]:
    """The operators that paint the QR code, black on white; none without one.

    All its modules are one path: as paths of their own they would show seams.
    """
    qr = layout.qr
    if qr is None:
        return []
    rows = _rows(qr)
    module = qr.side / (len(rows) + 2 * QUIET_MODULES)
    top = layout.height - qr.y
    out = [f"q 1 g {qr.x:.3f} {top - qr.side:.3f} {qr.side:.3f} {qr.side:.3f} re f 0 g"]
    for at, row in enumerate(rows, QUIET_MODULES):
        y = top - (at + 1) * module
        out += [
            f"{qr.x + (start + QUIET_MODULES) * module:.3f} {y:.3f} "
            f"{length * module:.3f} {module:.3f} re"
            for start, length in _runs(row)
        ]
    return [*out, "f Q"]


def _rows(qr: QrFigure) -> list[bytes]:
    """The code's modules, row by row, 1 for dark."""
    made = segno.make_qr(
        qr.content,
        error="m",
        version=qr_version(qr.content),
        mode="byte",
        boost_error=False,
    )
    return [bytes(row) for row in made.matrix]


def _runs(row: bytes) -> Iterator[tuple[int, int]]:
    """Start and length of each run of dark modules."""
    start = None
    for at, dark in enumerate([*row, 0]):
        if dark and start is None:
            start = at
        elif not dark and start is not None:
            yield start, at - start
            start = None
