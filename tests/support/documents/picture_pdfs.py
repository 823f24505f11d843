"""A PDF each of whose pages is one black picture, compressed in another way."""

import io
import zlib
from collections.abc import Callable
from typing import Final

from pikepdf import Dictionary, Name, Pdf, Stream
from PIL import Image

SIDE: Final = 8
"""Pixels of most of the pictures; all of them are black."""
BEYOND: Final = 9_000
"""Side of the picture that pdf.js does not draw, for it has too many pixels."""


def _grey(side: int = SIDE) -> Image.Image:
    return Image.new("L", (side, side), 0)


def _saved(kind: str) -> bytes:
    out = io.BytesIO()
    _grey().save(out, kind)
    return out.getvalue()


def _mmr() -> bytes:
    """Black rows by ITU-T T.6: one horizontal, and each other as the one above it."""
    first = "001" + "00110101" + "000101"  # 0 white, 8 black
    bits = first + "11" * (SIDE - 1) + "000000000001" * 2
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))


def _jbig2() -> bytes:
    """A page and a generic region as a PDF embeds them (ITU-T T.88, 7.4.6, 7.4.8)."""

    def segment(number: int, kind: int, content: bytes) -> bytes:
        head = number.to_bytes(4, "big") + bytes([kind, 0, 1])
        return head + len(content).to_bytes(4, "big") + content

    side = SIDE.to_bytes(4, "big")
    page = side + side + bytes(8) + bytes([0]) + bytes(2)
    region = side + side + bytes(8) + bytes([0]) + bytes([1]) + _mmr()
    return segment(0, 48, page) + segment(1, 38, region)


PICTURES: Final[dict[str, Callable[[Pdf], Stream]]] = {
    "JPXDecode": lambda pdf: _picture(pdf, _saved("JPEG2000"), SIDE, "JPXDecode"),
    "DCTDecode": lambda pdf: _picture(pdf, _saved("JPEG"), SIDE, "DCTDecode"),
    "JBIG2Decode": lambda pdf: _picture(pdf, _jbig2(), SIDE, "JBIG2Decode", bits=1),
    "CCITTFaxDecode": lambda pdf: _picture(
        pdf,
        _mmr(),
        SIDE,
        "CCITTFaxDecode",
        bits=1,
        DecodeParms=Dictionary(K=-1, Columns=SIDE, Rows=SIDE),
    ),
    "too many pixels": lambda pdf: _picture(
        pdf, zlib.compress(bytes(BEYOND * BEYOND // 8)), BEYOND, "FlateDecode", bits=1
    ),
    "broken": lambda pdf: _picture(pdf, _jbig2()[:20], SIDE, "JBIG2Decode", bits=1),
}
"""How each page's picture is made, by its filter, or by what is wrong with it."""


def _picture(
    pdf: Pdf, content: bytes, side: int, kind: str, bits: int = 8, **entries: object
) -> Stream:
    made = Stream(pdf, b"")
    made.write(content, filter=Name(f"/{kind}"))
    made.Type, made.Subtype = Name.XObject, Name.Image
    made.Width, made.Height, made.BitsPerComponent = side, side, bits
    made.ColorSpace = Name.DeviceGray
    for name, value in entries.items():
        made[f"/{name}"] = value
    return made


def black_pictures() -> bytes:
    """One page for each of `PICTURES`, in their order, black from edge to edge."""
    pdf = Pdf.new()
    for make in PICTURES.values():
        page = pdf.add_blank_page(page_size=(300, 300))
        page.Contents = Stream(pdf, b"q 300 0 0 300 0 0 cm /I Do Q")
        page.Resources = Dictionary(XObject=Dictionary(I=make(pdf)))
    out = io.BytesIO()
    pdf.save(out)
    return out.getvalue()
