"""Fonts for which programs may choose different glyphs are reported.

Source: docs/documents.md "What each program draws in its own way".
"""

import random  # noqa: TID251 (the same bytes in each run; no secret)
import struct
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from fontTools.ttLib import TTFont

from appliance.domain.documents.inspected import FindingKind
from tests.support.documents.drawn_differently_pdfs import drawn
from tests.support.documents.drawn_font_pdfs import (
    LIBERATION,
    NINE,
    ONE,
    SYMBOLIC,
    WIN_ANSI,
    composite,
    glyph,
    mapped,
    program,
    simple,
    symbols,
    unembedded,
)
from tests.support.documents.outside_content_pdfs import stream
from worker.sandbox.inspect.content_grammar import ContentReading, shown_strings
from worker.sandbox.inspect.truetype_maps import TrueTypeMaps, UnreadableFontError
from worker.sandbox.inspection import inspect

TOLD = FindingKind.DRAWN_DIFFERENTLY
_HUNDRED: Final = "<{one:04X}{zero:04X}{zero:04X}>"


def _hundred() -> bytes:
    return _HUNDRED.format(one=glyph("one"), zero=glyph("zero")).encode()


def _glyph_map(*, is_short: bool) -> bytes:
    count = glyph("one") if is_short else 64
    data = struct.pack(f">{count}H", *range(count))
    return b"<</Length %d>>stream\n%s\nendstream" % (len(data), data)


def _char(code: int, name: str) -> bytes:
    return b"<%02x> %d " % (code, glyph(name))


def _chars(*each: bytes) -> bytes:
    return b"%d begincidchar %s endcidchar " % (len(each), b"".join(each))


def _one_and_zero() -> bytes:
    return _chars(_char(0x30, "zero"), _char(0x31, "one"))


DIFFERENT: Final[Mapping[str, Callable[[], bytes]]] = {
    "maps of Macintosh and Windows": lambda: simple(
        program([(1, 0, NINE), (3, 1, ONE)])
    ),
    "maps of Macintosh and Windows, no encoding": lambda: simple(
        program([(1, 0, NINE), (3, 1, ONE)]), encoding=b""
    ),
    "maps of Macintosh and Windows, symbolic": lambda: simple(
        program([(1, 0, NINE), (3, 1, ONE)]), flags=SYMBOLIC, encoding=b""
    ),
    "map of symbols beside another": lambda: simple(
        program([(3, 0, symbols(NINE)), (3, 1, ONE)]), flags=SYMBOLIC
    ),
    "map of symbols beside one of Macintosh": lambda: simple(
        program([(1, 0, ONE), (3, 0, symbols(NINE))]), flags=SYMBOLIC, encoding=b""
    ),
    "name against the only map": lambda: simple(program([(1, 0, NINE)])),
    "long map against the short one": lambda: simple(
        program([(3, 1, NINE), (3, 10, ONE)])
    ),
    "symbolic, with another encoding": lambda: simple(
        program([(1, 0, NINE), (3, 1, ONE)]),
        flags=SYMBOLIC,
        encoding=b"/Encoding<</Differences[49/one]>>",
    ),
    "glyph by a name that not all read": lambda: simple(
        program([(3, 1, ONE)]), encoding=b"/Encoding<</Differences[49/uni0039]>>"
    ),
    "no map": lambda: simple(program([]), flags=SYMBOLIC, encoding=b""),
    "no font": lambda: simple(b"x" * 100),
    "digit in an escape": lambda: simple(
        program([(1, 0, NINE), (3, 1, ONE)]), text=b"(\\061) Tj"
    ),
    "digit in an array": lambda: simple(
        program([(1, 0, NINE), (3, 1, ONE)]), text=b"[(0) -3 <31>] TJ"
    ),
    "font of the content around": lambda: drawn(
        b"BT /F 24 Tf ET /X Do",
        b"/XObject<</X 6 0 R>>",
        o6=stream(
            b"/Type/XObject/Subtype/Form/BBox[0 0 300 300]/Resources<<>>",
            b"BT 20 100 Td (CIEN) Tj ET",
        ),
    ),
    "glyphs of fewer CIDs": lambda: composite(
        _hundred(), glyphs=b"/CIDToGIDMap 11 0 R", o11=_glyph_map(is_short=True)
    ),
    "glyphs by a name": lambda: composite(_hundred(), glyphs=b"/CIDToGIDMap/Own"),
    "two fonts below": lambda: composite(
        _hundred(), below=b"10 0 R 11 0 R", o11=b"<<>>"
    ),
    "map with another one": lambda: composite(
        b"(100)",
        encoding=b" 11 0 R",
        o11=mapped(_one_and_zero(), b"/UseCMap 12 0 R"),
        o12=mapped(_chars(_char(0x31, "nine"))),
    ),
    "map that uses another one": lambda: composite(
        b"(100)", encoding=b" 11 0 R", o11=mapped(b"/H usecmap " + _one_and_zero())
    ),
    "map with what is not defined": lambda: composite(
        b"(100)",
        encoding=b" 11 0 R",
        o11=mapped(
            _chars(_char(0x30, "zero")) + b"1 beginnotdefrange <31> <31> 9 "
            b"endnotdefrange"
        ),
    ),
    "code twice": lambda: composite(
        b"(100)",
        encoding=b" 11 0 R",
        o11=mapped(_chars(_char(0x31, "one"), _char(0x31, "nine"))),
    ),
    "map of no known name": lambda: composite(_hundred(), encoding=b"/Own-H"),
    "C57": lambda: unembedded(b"/Encoding<</Differences[49/C57]>>"),
    "uni0039": lambda: unembedded(b"/Encoding<</Differences[49/uni0039]>>"),
    "zero.x": lambda: unembedded(b"/Encoding<</Differences[48/zero.x]>>"),
    "width of 17 bits": lambda: unembedded(
        b"/FirstChar 48/LastChar 49/Widths[66092 556]"
    ),
    "first code as a real": lambda: unembedded(
        b"/FirstChar 48.0/LastChar 49/Widths[2000 556]"
    ),
    "encoding of experts": lambda: unembedded(b"/Encoding/MacExpertEncoding"),
}
ALIKE: Final[Mapping[str, Callable[[], bytes]]] = {
    "maps that agree": lambda: simple(program([(1, 0, ONE), (3, 1, ONE)])),
    "map of symbols alone": lambda: simple(
        program([(3, 0, symbols(ONE))]), flags=SYMBOLIC, encoding=b""
    ),
    "map of Macintosh alone, without names": lambda: simple(
        program([(1, 0, NINE)], has_names=False), flags=SYMBOLIC, encoding=b""
    ),
    "encoding with differences": lambda: simple(
        program([(1, 0, {**ONE, 0x32: "two"}), (3, 1, {**ONE, 0x32: "two"})]),
        encoding=b"/Encoding<</BaseEncoding/WinAnsiEncoding/Differences[49/two/one]>>",
        text=b"(0) Tj",
    ),
    "code that disagrees and is not shown": lambda: simple(
        program([(1, 0, NINE), (3, 1, ONE)]), text=b"(000) Tj"
    ),
    "text that is not painted": lambda: simple(
        program([(1, 0, NINE), (3, 1, ONE)]), text=b"3 Tr (100) Tj"
    ),
    "blanks without a glyph": lambda: simple(
        program([(3, 1, ONE)]), text=b"(1 0\\240) Tj"
    ),
    "CIDs": lambda: composite(_hundred()),
    "glyphs of CIDs": lambda: composite(
        _hundred(), glyphs=b"/CIDToGIDMap 11 0 R", o11=_glyph_map(is_short=False)
    ),
    "own map": lambda: composite(
        b"(100)", encoding=b" 11 0 R", o11=mapped(_one_and_zero())
    ),
    "standard font": lambda: unembedded(WIN_ANSI),
    "standard font with differences": lambda: unembedded(
        b"/Encoding<</Differences[49/nine/Aacute]>>"
    ),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_font_of_many_ways_is_told(kind: str) -> None:
    """Maps, names, encodings, CIDs and widths."""
    assert TOLD in inspect(DIFFERENT[kind](), 1).findings


@pytest.mark.parametrize("kind", ALIKE)
def test_font_of_one_way_is_not_told(kind: str) -> None:
    """Each case beside one that is told."""
    assert TOLD not in inspect(ALIKE[kind](), 1).findings


@pytest.mark.parametrize("face", ["Sans-Regular", "Serif-Bold", "Mono-Italic"])
def test_maps_are_those_that_another_reader_finds(face: str) -> None:
    """Codes of two bytes, and names, as fontTools reads them."""
    path = LIBERATION.with_name(f"Liberation{face}.ttf")
    other, maps = TTFont(path), TrueTypeMaps(path.read_bytes())

    for table in other["cmap"].tables:
        kind = (table.platformID, table.platEncID)
        codes = [*range(0x400), *range(0x400, 0x10000, 13), 0xFB01, 0xFFFF]
        named = {code: other.getGlyphID(name) for code, name in table.cmap.items()}
        assert [maps.glyph(kind, code) for code in codes] == [
            named.get(code, 0) for code in codes
        ]
    numbers = other.getReverseGlyphMap()
    for name in ("one", "nine", "Aacute", "fi", "dcroat"):
        assert maps.named(name) == numbers.get(name, 0)


def test_long_map_is_that_which_another_reader_finds() -> None:
    """By groups of codes beyond two bytes."""
    codes = {**ONE, 0x1F600: "seven", 0x1F601: "eight"}
    maps = TrueTypeMaps(program([(3, 10, codes)]))

    for code in (0x2F, *codes, 0x1F5FF, 0x1F602, 0x10FFFF):
        name = codes.get(code)
        assert maps.glyph((3, 10), code) == (glyph(name) if name else 0)


def test_damaged_font_is_unreadable_and_never_fails() -> None:
    """Cut off or with any byte changed, it has glyphs or none."""
    whole, seeded = program([(1, 0, ONE), (3, 1, NINE)]), random.Random(5)  # noqa: S311 (see above)
    for _ in range(2_000):
        damaged = bytearray(whole[: seeded.randrange(len(whole))])
        for _ in range(3):
            if damaged:
                damaged[seeded.randrange(min(len(damaged), 900))] = seeded.randrange(
                    256
                )
        try:
            maps = TrueTypeMaps(bytes(damaged))
            for kind in maps.kinds:
                assert all(maps.glyph(kind, code) >= 0 for code in (0, 0x31, 0xFFFF))
        except UnreadableFontError:
            continue


def test_huge_map_is_not_unfolded() -> None:
    """Thirty bytes that claim each code of Unicode and more are asked, not unfolded."""
    table = struct.pack(">HHHHL", 0, 1, 3, 10, 12) + struct.pack(
        ">HHLLLLLL", 12, 0, 28, 0, 1, 0, 0xFFFFFFFF, 1
    )
    font = struct.pack(">4sHHHH4sLLL", b"\0\1\0\0", 1, 0, 0, 0, b"cmap", 0, 28, 40)

    assert TrueTypeMaps(font + table).glyph((3, 10), 0x10FFFF) == 0x110000


def test_strings_are_those_that_are_written() -> None:
    """With escapes, ends of lines, parentheses, in hexadecimal, and in arrays."""
    content = (
        rb"BT /A 1 Tf (a\)b\101\12(x(y)) \\) Tj [(\r\n) -3 <41 42 0d> %(no)"
        b"\n(\r\nz\\q\\\r\ny)] TJ q /B 2 Tf <00> ' Q 1 2 (w) \" ET"
    )
    reading = ContentReading([content])

    assert reading.is_plain
    assert {
        font: [each for one in written for each in shown_strings(one)]
        for font, written in reading.shown.items()
    } == {
        "/A": [b"a)bA\n(x(y)) \\", b"\r\n", b"AB\r", b"\nzqy", b"w"],
        "/B": [b"\0"],
    }
