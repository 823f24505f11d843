"""Fonts by which all readers draw the letters that they read; for confined jobs only.

Without an embedded program the readers choose one. They then draw a letter by its name,
and differ about names that no list has (`C57`, `uni0030`), other encodings, and widths
beyond 16 bits.

Source: ISO 32000-2, 9.6 and Annex D.
"""

import zlib
from collections.abc import Iterable, Mapping
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    StreamObject,
)

from worker.sandbox.inspect.latin_glyphs import BASES, NOTHING, names_codes_alike
from worker.sandbox.inspect.pdf_objects import (
    entry,
    name,
    number,
    plain_dictionary,
    raw_items,
    resolve,
)
from worker.sandbox.verify.step_context import raw_entry

_STANDARD: Final = frozenset(
    f"/{each}"
    for family in ("Helvetica", "Courier")
    for each in (family, *(f"{family}-{style}" for style in
                           ("Bold", "Oblique", "BoldOblique")))
) | {"/Times-Roman", "/Times-Bold", "/Times-Italic", "/Times-BoldItalic"}  # fmt: skip
"""Standard fonts of letters. Source: ISO 32000-1, 9.6.2.2."""
_KEYS: Final = {"/Type", "/Subtype", "/BaseFont", "/Name", "/Encoding"}
_CODE_MOST: Final = 255
_WIDTH_MOST: Final = 2_000
_FAMILIES: Final = (
    "Helvetica", "Arial", "Times", "Courier", "Verdana", "Tahoma", "Calibri", "Georgia",
    "Trebuchet", "Liberation", "DejaVu", "Myriad", "Minion", "Segoe", "Lucida",
    "Cambria", "Garamond", "Palatino", "Century", "Bookman",
)  # fmt: skip
_SIGNS: Final = ("Symbol", "Emoji", "MDL2", "Ornament", "Icons")
"""In names of fonts of such families that have no letters."""
_PROGRAMS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "/FontFile": (b"%!", b"\x80\x01"),
    "/FontFile2": (b"\0\1\0\0", b"true", b"ttcf"),
    "/FontFile3": (b"\1\0", b"OTTO", b"\0\1\0\0"),
}
"""First bytes of font programs by their key: Type 1, TrueType, and CFF or OpenType."""
_LONGEST_MARK: Final = 4
_CID_MOST: Final = 65_535


def is_everywhere(font: object) -> bool:
    """Return whether every reader has a font, and draws what it reads.

    Args:
        font: its dictionary.
    """
    return (
        isinstance(font, DictionaryObject)
        and not isinstance(font, StreamObject)
        and font.keys() <= _KEYS
        and name(font, "/Subtype") == "/Type1"
        and name(font, "/BaseFont") in _STANDARD
        and _is_usual_encoding(entry(font, "/Encoding"))
    )


def is_read_alike(font: object) -> bool:
    """Return whether readers draw a signed font's letters alike.

    An embedded program is the document's own. Without one, the font is of a family of
    letters that readers have, or have a likeness of. Either way readers take codes,
    widths and names of glyphs as far as they understand them.

    Args:
        font: its dictionary.
    """
    if isinstance(font, StreamObject):
        return False
    kind = name(font, "/Subtype")
    if kind == "/Type0":
        holder = resolve(next(iter(raw_items(entry(font, "/DescendantFonts"))), None))
        return _has_program(holder) and _has_plain_advances(holder)
    family = (name(font, "/BaseFont") or "/").removeprefix("/").rpartition("+")[2]
    return (
        kind in {"/Type1", "/TrueType"}
        and (_is_of_letters(family) or _has_program(font))
        and _has_usual_parts(font)
    )


def _is_of_letters(family: str) -> bool:
    is_known = family.startswith(_FAMILIES)
    return is_known and not any(each in family for each in _SIGNS)


def draws_all(font: object, codes: Iterable[int]) -> bool:
    """Return whether a simple font's encoding has a glyph for codes, by its own word.

    Readers draw nothing, or the sign that they know, for a code of `.notdef`.

    Args:
        font: its dictionary.
        codes: 0 to 255.
    """
    code, holes = 0, set()
    for each in raw_items(entry(entry(font, "/Encoding"), "/Differences")):
        if isinstance(each, NumberObject):
            code = int(each)
            continue
        if str(each)[1:] == NOTHING:
            holes.add(code)
        code += 1
    return holes.isdisjoint(codes)


def _has_program(font: object) -> bool:
    """Return whether a font has a program that begins as its kind does.

    Some readers take anything else for a program, and others for none.

    Source: ISO 32000-2, table 124.
    """
    descriptor = plain_dictionary(font, "/FontDescriptor")
    programs = {key: entry(descriptor, key) for key in _PROGRAMS}
    held = [(key, each) for key, each in programs.items() if each is not None]
    if len(held) != 1:
        return False
    key, program = held[0]
    return isinstance(program, StreamObject) and _beginning(program).startswith(
        _PROGRAMS[key]
    )


def _beginning(program: StreamObject) -> bytes:
    """Return the first bytes of a stream; none where a filter is not Flate."""
    filters = entry(program, "/Filter")
    if isinstance(filters, ArrayObject) and len(filters) == 1:
        filters = resolve(filters.raw_get(0))
    encoded: bytes = program.encoded_data
    if filters is None:
        return encoded[:_LONGEST_MARK]
    if str(filters) != "/FlateDecode":
        return b""
    try:
        return zlib.decompressobj().decompress(encoded, _LONGEST_MARK)
    except zlib.error:
        return b""


def _has_plain_advances(font: object) -> bool:
    """Return whether a CIDFont's widths are numbers that readers read alike."""
    numbers = [entry(font, "/DW")]
    for raw in raw_items(entry(font, "/W")):
        each = resolve(raw)
        is_row = isinstance(each, ArrayObject)
        numbers.extend(map(resolve, raw_items(each)) if is_row else [each])
    values = [number(each) for each in numbers if each is not None]
    return all(each is not None and 0 <= each <= _CID_MOST for each in values)


def _has_usual_parts(font: object) -> bool:
    return _is_usual_encoding(entry(font, "/Encoding")) and _has_plain_widths(font)


def _has_plain_widths(font: object) -> bool:
    """Return whether a font has no widths, or one for each code from first to last."""
    widths = [*raw_items(entry(font, "/Widths"))]
    if not widths:
        return True
    first, last = (raw_entry(font, each) for each in ("/FirstChar", "/LastChar"))
    return (
        isinstance(first, NumberObject)
        and isinstance(last, NumberObject)
        and 0 <= int(first) <= int(last) <= _CODE_MOST
        and len(widths) == int(last) - int(first) + 1
        and all(_is_plain_width(each) for each in widths)
    )


def _is_plain_width(raw: object) -> bool:
    width = number(raw) if isinstance(raw, NumberObject | FloatObject) else None
    return width is not None and 0 <= width <= _WIDTH_MOST


def _is_usual_encoding(encoding: object) -> bool:
    """Return whether an encoding is a usual one, with glyphs that have known names."""
    if isinstance(encoding, StreamObject):
        return False
    if not isinstance(encoding, DictionaryObject):
        return encoding is None or str(encoding) in BASES
    base = entry(encoding, "/BaseEncoding")
    if base is not None and str(base) not in BASES:
        return False
    return names_codes_alike(
        str(each)[1:]
        if isinstance(each, NameObject)
        else int(each)
        if isinstance(each, NumberObject)
        else None
        for each in raw_items(entry(encoding, "/Differences"))
    )
