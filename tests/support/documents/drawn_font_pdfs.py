"""PDFs whose fonts lead a code to one glyph, or to another by each way.

Source: ISO 32000-2, 9.6.5.4 and 9.7; OpenType 1.9, "cmap" and "post".
"""

import io
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.ttLib.tables._c_m_a_p import CmapSubtable

from tests.support.documents.drawn_differently_pdfs import drawn
from tests.support.documents.outside_content_pdfs import stream

LIBERATION: Final = Path(
    "/usr/share/fonts/truetype/liberation2/LiberationSans-Regular.ttf"
)
Map = tuple[int, int, Mapping[int, str]]
"""Platform, encoding, and the glyph's name of each code."""
ONE: Final = {0x31: "one", 0x30: "zero"}
NINE: Final = {0x31: "nine", 0x30: "zero"}
NONSYMBOLIC: Final = 32
SYMBOLIC: Final = 4
WIN_ANSI: Final = b"/Encoding/WinAnsiEncoding"


def symbols(codes: Mapping[int, str]) -> dict[int, str]:
    """The same codes where maps of symbols have theirs."""
    return {0xF000 + code: name for code, name in codes.items()}


@cache
def _digits() -> bytes:
    font = TTFont(LIBERATION)
    options = subset.Options()
    options.glyph_names = True
    options.hinting = False
    cut = subset.Subsetter(options)
    cut.populate(text="0123456789")
    cut.subset(font)
    out = io.BytesIO()
    font.save(out)
    return out.getvalue()


def program(maps: Sequence[Map], *, has_names: bool = True) -> bytes:
    """A TrueType font of ten digits with maps of one's choice."""
    font = TTFont(io.BytesIO(_digits()))
    tables = []
    for platform, encoding, codes in maps:
        one = CmapSubtable.newSubtable(12 if encoding == 10 else 4)
        one.platformID, one.platEncID, one.language = platform, encoding, 0
        one.cmap = dict(codes)
        tables.append(one)
    font["cmap"].tables = tables
    if not has_names:
        font["post"].formatType = 3.0
    out = io.BytesIO()
    font.save(out)
    return out.getvalue()


def glyph(name: str) -> int:
    """Number of a digit's glyph."""
    return int(TTFont(io.BytesIO(_digits())).getGlyphID(name))


def simple(
    font: bytes,
    *,
    flags: int = NONSYMBOLIC,
    encoding: bytes = WIN_ANSI,
    text: bytes = b"(100) Tj",
    entries: bytes = b"",
) -> bytes:
    """One page that shows a text in an embedded TrueType font."""
    return drawn(
        b"BT /F 40 Tf 20 200 Td " + text + b" ET",
        o5=b"<</Type/Font/Subtype/TrueType/BaseFont/ABCDEF+Own/FirstChar 48"
        b"/LastChar 49/Widths[556 556]/FontDescriptor 8 0 R" + encoding + entries +
        b">>",
        o8=_descriptor(flags),
        o9=_embedded(font),
    )  # fmt: skip


def composite(
    text: bytes,
    *,
    encoding: bytes = b"/Identity-H",
    glyphs: bytes = b"/CIDToGIDMap/Identity",
    below: bytes = b"10 0 R",
    **more: bytes,
) -> bytes:
    """One page that shows a text in an embedded font of CIDs."""
    return drawn(
        b"BT /F 40 Tf 20 200 Td " + text + b" Tj ET",
        o5=b"<</Type/Font/Subtype/Type0/BaseFont/ABCDEF+Own/Encoding" + encoding
        + b"/DescendantFonts[" + below + b"]>>",
        o8=_descriptor(SYMBOLIC),
        o9=_embedded(program([(3, 1, ONE)])),
        o10=b"<</Type/Font/Subtype/CIDFontType2/BaseFont/ABCDEF+Own/CIDSystemInfo"
        b"<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/DW 556"
        b"/FontDescriptor 8 0 R" + glyphs + b">>",
        **more,
    )  # fmt: skip


def unembedded(entries: bytes) -> bytes:
    """One page that shows a text in a font that each program has of its own."""
    return drawn(
        b"BT /F 40 Tf 20 200 Td (100) Tj ET",
        o5=b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica" + entries + b">>",
    )


def mapped(body: bytes, entries: bytes = b"") -> bytes:
    """A map of one-byte codes to CIDs."""
    return stream(
        b"/Type/CMap/CMapName/Own/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)"
        b"/Supplement 0>>" + entries,
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Own "
        b"def /CMapType 1 def 1 begincodespacerange <00> <ff> endcodespacerange "
        + body + b" endcmap end end",
    )  # fmt: skip


def _descriptor(flags: int) -> bytes:
    return (
        b"<</Type/FontDescriptor/FontName/ABCDEF+Own/Flags %d/FontBBox[0 0 1000 1000]"
        b"/ItalicAngle 0/Ascent 900/Descent 0/CapHeight 700/StemV 80/FontFile2 9 0 R>>"
        % flags
    )


def _embedded(font: bytes) -> bytes:
    return stream(b"/Filter/FlateDecode/Length1 %d" % len(font), zlib.compress(font))
