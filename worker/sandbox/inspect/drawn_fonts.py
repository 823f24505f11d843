"""Fonts for which programs may choose different glyphs.

A font program may hold several maps from codes to glyphs. A signer is shown 100 where
others read 900 if two of them disagree, since each program goes its own way through
them. Looked at are the codes that are shown, by every way that some program goes.

Source: ISO 32000-2, 9.6 and 9.7.
"""

import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pikepdf

from worker.sandbox.inspect.drawn_values import are_numbers, is_number, items
from worker.sandbox.inspect.latin_glyphs import (
    BASES,
    CHARACTERS,
    NAMES,
    NOTHING,
    names_codes_alike,
)
from worker.sandbox.inspect.truetype_maps import TrueTypeMaps, UnreadableFontError

_FILES: Final = ("/FontFile", "/FontFile2", "/FontFile3")
_PROGRAMS: Final[Mapping[str, frozenset[str]]] = {
    "/Type1": frozenset({"/FontFile", "/FontFile3"}),
    "/MMType1": frozenset({"/FontFile", "/FontFile3"}),
    "/TrueType": frozenset({"/FontFile2", "/FontFile3"}),
    "/CIDFontType0": frozenset({"/FontFile3"}),
    "/CIDFontType2": frozenset({"/FontFile2", "/FontFile3"}),
}
_SIMPLE: Final = frozenset({"/Type1", "/MMType1", "/TrueType"})
_SIGNS: Final = frozenset({"/Symbol", "/ZapfDingbats"})
_WIDTH_MOST: Final = 32_767
_CODE_MOST: Final = 255
_SYMBOLIC: Final = 4
_NONSYMBOLIC: Final = 32
_UNICODE: Final = frozenset(
    {(3, 1), (3, 10), (0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 6)}
)
_SYMBOLS: Final = (3, 0)
_MACINTOSH: Final = (1, 0)
_PRIVATE: Final = 0xF000
"""Offset of the codes in a (3, 0) map (ISO 32000-2, 9.6.5.4)."""
_BLANKS: Final = frozenset({9, 10, 13, 32, 160, 173})
"""Codes that programs leave blank, or a map may do without."""
_PROGRAM_BYTES: Final = 8_388_608
_CMAP_BYTES: Final = 262_144
_CODED_BYTES: Final = 65_536
"""Coded data of another kind than deflate that are decoded whole."""
_IDENTITY: Final = frozenset({"/Identity-H", "/Identity-V"})
_PREDEFINED: Final = frozenset(
    f"/{each}-{direction}"
    for direction in "HV"
    for each in (
        "Identity", "GB-EUC", "GBpc-EUC", "GBK-EUC", "GBKp-EUC", "GBK2K", "UniGB-UCS2",
        "UniGB-UTF16", "B5pc", "HKscs-B5", "ETen-B5", "ETenms-B5", "CNS-EUC",
        "UniCNS-UCS2", "UniCNS-UTF16", "83pv-RKSJ", "90ms-RKSJ", "90msp-RKSJ",
        "90pv-RKSJ", "Add-RKSJ", "EUC", "Ext-RKSJ", "UniJIS-UCS2", "UniJIS-UCS2-HW",
        "UniJIS-UTF16", "KSC-EUC", "KSCms-UHC", "KSCms-UHC-HW", "KSCpc-EUC",
        "UniKS-UCS2", "UniKS-UTF16",
    )
) | {"/H", "/V"}  # fmt: skip
"""Names of encodings. Source: ISO 32000-2, table 116."""
_OTHER_MAP: Final = re.compile(rb"usecmap|notdef")
_CHAR: Final = b"char"
_RANGE_WORD: Final = b"range"
_RANGE: Final = re.compile(
    rb"\s*+<\s*+([0-9A-Fa-f]{2,8})\s*+>\s*+(?:<\s*+([0-9A-Fa-f]{2,8})\s*+>\s*+)?\d{1,5}"
)


def is_plain_font(font: Any) -> bool:
    """Return whether a font's dictionary leaves programs no choice.

    Its kind is that of its program; its parts are of their kinds; what has no program
    has an encoding and widths that all programs understand.

    Args:
        font: a dictionary.

    Source: ISO 32000-2, 9.6.2 (table 109), 9.7.6 (table 119) and 9.9 (table 124).
    """
    kind, holder = str(font.get("/Subtype")), font
    if kind == "/Type0":
        below = font.get("/DescendantFonts")
        if not isinstance(below, pikepdf.Array) or len(below) != 1:
            return False
        holder = below[0]
        if not isinstance(holder, pikepdf.Dictionary) or not _is_plain_map(font):
            return False
    elif isinstance(font.get("/Encoding"), pikepdf.Stream):
        return False
    is_embedded = _held_programs(holder)
    if is_embedded is None:
        return False
    if kind not in _SIMPLE:
        return kind != "/Type3" or _has_plain_glyphs(font)
    return _has_plain_widths(font) and (is_embedded or _is_known_by_name(font))


def draws_by_one_glyph(font: Any, shown: Iterator[bytes]) -> bool:
    """Return whether each code that is shown has one glyph by every way.

    Args:
        font: one of `is_plain_font`.
        shown: strings.
    """
    kind = str(font.get("/Subtype"))
    if kind == "/TrueType":
        program = _program(font, "/FontFile2")
        return program is None or _is_one_way(font, program, set().union(*shown))
    if kind == "/Type0" and str(font.get("/Encoding")) in _IDENTITY:
        glyphs = font.DescendantFonts[0].get("/CIDToGIDMap")
        if isinstance(glyphs, pikepdf.Stream):
            return _covers(glyphs, shown)
        return glyphs is None or glyphs == pikepdf.Name.Identity
    return True


def _held_programs(holder: Any) -> bool | None:
    """Return whether a font has a program; None where it has another kind's or more."""
    descriptor = holder.get("/FontDescriptor")
    if not isinstance(descriptor, pikepdf.Dictionary):
        return False
    held = [key for key in _FILES if key in descriptor]
    programs = _PROGRAMS.get(str(holder.get("/Subtype")))
    if programs is not None and (len(held) > 1 or not programs.issuperset(held)):
        return None
    return bool(held)


def _has_plain_glyphs(font: Any) -> bool:
    """Return whether a font of Type 3 has what it is drawn by.

    Source: ISO 32000-2, 9.6.4 (table 110).
    """
    encoding = font.get("/Encoding")
    return (
        are_numbers(font.get("/FontMatrix"), 6)
        and are_numbers(font.get("/FontBBox"), 4)
        and isinstance(font.get("/CharProcs"), pikepdf.Dictionary)
        and isinstance(encoding, pikepdf.Dictionary)
        and isinstance(encoding.get("/Differences"), pikepdf.Array)
        and "/Widths" in font
    )


def _has_plain_widths(font: Any) -> bool:
    """Return whether widths are numbers of 16 bits, one for each code or more."""
    widths = font.get("/Widths")
    if widths is None:
        return True
    first, last = font.get("/FirstChar"), font.get("/LastChar")
    return (
        isinstance(widths, pikepdf.Array)
        and type(first) is int
        and type(last) is int
        and 0 <= first <= last <= _CODE_MOST
        and len(widths) >= last - first + 1
        and all(_is_width(each) for each in items(widths))
    )


def _is_width(value: Any) -> bool:
    return is_number(value) and 0 <= value <= _WIDTH_MOST


def _is_known_by_name(font: Any) -> bool:
    """Return whether the letters of a font without a program have known names."""
    encoding = font.get("/Encoding")
    if str(font.get("/BaseFont")) in _SIGNS:
        return encoding is None
    return _is_usual_encoding(encoding)


def _is_usual_encoding(encoding: object) -> bool:
    if encoding is None:
        return True
    if isinstance(encoding, pikepdf.Name):
        return str(encoding) in BASES
    if not isinstance(encoding, pikepdf.Dictionary):
        return False
    base = encoding.get("/BaseEncoding")
    if base is not None and str(base) not in BASES:
        return False
    return names_codes_alike(_differences(encoding))


def _differences(encoding: pikepdf.Object) -> Iterator[int | str | None]:
    held = encoding.get("/Differences")
    if held is None:
        return
    if not isinstance(held, pikepdf.Array):
        yield None
        return
    for each in items(held):
        if isinstance(each, pikepdf.Name):
            yield str(each)[1:]
        else:
            yield each if type(each) is int else None


def _program(font: Any, key: str) -> bytes | None:
    """A font's program, unfolded; None where there is none, and empty if too long."""
    descriptor = font.get("/FontDescriptor")
    stream = None if descriptor is None else descriptor.get(key)
    return _unfolded(stream, _PROGRAM_BYTES) if stream is not None else None


def _unfolded(stream: Any, most: int) -> bytes:
    """Decode a stream; to nothing, what is damaged or too long."""
    if not isinstance(stream, pikepdf.Stream):
        return b""
    coding = stream.get("/Filter")
    if isinstance(coding, pikepdf.Array) and len(coding) == 1:
        coding = coding[0]
    data = stream.read_raw_bytes()
    if coding is None:
        return data if len(data) <= most else b""
    if coding != pikepdf.Name.FlateDecode or stream.get("/DecodeParms") is not None:
        # One filter on another unfolds beyond all bounds.
        is_small = isinstance(coding, pikepdf.Name) and len(data) <= _CODED_BYTES
        return _unfolded_by_qpdf(stream, most) if is_small else b""
    inflater = zlib.decompressobj()
    try:
        out = inflater.decompress(data, most + 1)
    except zlib.error:
        return b""
    return out if len(out) <= most else b""


def _unfolded_by_qpdf(stream: Any, most: int) -> bytes:
    try:
        out: bytes = stream.read_bytes()
    except pikepdf.PdfError:
        return b""
    return out if len(out) <= most else b""


def _is_one_way(font: Any, program: bytes, codes: set[int]) -> bool:
    """Return whether all ways of a TrueType font lead each code to the same glyph.

    Source: ISO 32000-2, 9.6.5.4.
    """
    encoding = font.get("/Encoding")
    names = None if encoding is None else _names(encoding)
    flags = font.FontDescriptor.get("/Flags", 0)
    is_symbolic = type(flags) is not int or (
        bool(flags & _SYMBOLIC) or not flags & _NONSYMBOLIC
    )
    try:
        maps = TrueTypeMaps(program)
        for code in codes - _BLANKS:
            glyphs = set(_glyphs(maps, code, names, is_symbolic=is_symbolic))
            if len(glyphs) != 1 or not all(glyphs):
                return False
    except UnreadableFontError:
        return False
    return True


def _names(encoding: Any) -> dict[int, str]:
    """Names of the glyphs of codes, as far as an encoding has any."""
    base, named = encoding, {}
    if isinstance(encoding, pikepdf.Dictionary):
        base = encoding.get("/BaseEncoding")
    codec = BASES.get(str(base))
    if codec is not None:
        for code in range(_CODE_MOST + 1):
            character = bytes([code]).decode(codec, "replace")
            if character in NAMES:
                named[code] = NAMES[character]
    if isinstance(encoding, pikepdf.Dictionary):
        code = -1
        for each in _differences(encoding):
            if isinstance(each, int):
                code = each
            else:
                named[code] = each or NOTHING
                code += 1
    return named


def _glyphs(
    maps: TrueTypeMaps, code: int, names: Mapping[int, str] | None, *, is_symbolic: bool
) -> Iterator[int]:
    """Glyphs of a code, by each way that a program goes."""
    name = None if names is None else names.get(code, NOTHING)
    if name is None or is_symbolic:
        yield from _direct(maps, code)
    character = chr(code) if name is None else CHARACTERS.get(name)
    if character is None:
        yield 0
        return
    kinds = maps.kinds.intersection(_UNICODE)
    for kind in kinds:
        yield maps.glyph(kind, ord(character))
    if name is not None:
        yield from _by_name(maps, name, character, is_asked_last=bool(kinds))


def _direct(maps: TrueTypeMaps, code: int) -> Iterator[int]:
    if _SYMBOLS in maps.kinds:
        yield maps.glyph(_SYMBOLS, _PRIVATE + code) or maps.glyph(_SYMBOLS, code)
    if _MACINTOSH in maps.kinds:
        yield maps.glyph(_MACINTOSH, code)


def _by_name(
    maps: TrueTypeMaps, name: str, character: str, *, is_asked_last: bool
) -> Iterator[int]:
    sign = character.encode("mac_roman", "ignore")
    if sign and _MACINTOSH in maps.kinds:
        yield maps.glyph(_MACINTOSH, sign[0])
    # Names of glyphs are often those of the font that a program was cut from.
    glyph = None if is_asked_last else maps.named(name)
    if glyph:
        yield glyph


def _covers(glyphs: Any, shown: Iterator[bytes]) -> bool:
    """Return whether a map has a glyph for each CID that is shown."""
    size = len(_unfolded(glyphs, _PROGRAM_BYTES)) // 2
    for each in shown:
        if len(each) % 2:
            return False
        if max(struct.unpack(f">{len(each) // 2}H", each), default=0) >= size:
            return False
    return True


def _is_plain_map(font: Any) -> bool:
    """Return whether codes have one CID each, by a map that programs have or read.

    Source: ISO 32000-2, 9.7.5.
    """
    encoding = font.get("/Encoding")
    if not isinstance(encoding, pikepdf.Stream):
        return str(encoding) in _PREDEFINED
    if "/UseCMap" in encoding:
        return False
    data = _unfolded(encoding, _CMAP_BYTES)
    if not data or _OTHER_MAP.search(data):
        return False
    return all(_is_section(each) for each in data.split(b"begincid")[1:])


def _is_section(data: bytes) -> bool:
    """Return whether what follows on `begincid` gives each code once, in order."""
    body, _, rest = data.partition(b"endcid")
    kind = body[: len(_CHAR)] if body.startswith(_CHAR) else body[: len(_RANGE_WORD)]
    if not rest.startswith(kind) or kind not in {_CHAR, _RANGE_WORD}:
        return False
    body, at, before = body[len(kind) :], 0, -1
    while found := _RANGE.match(body, at):
        first = int(found[1], 16)
        last = first if found[2] is None else int(found[2], 16)
        if not before < first <= last:
            return False
        before, at = last, found.end()
    return not body[at:].strip()
