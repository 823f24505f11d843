"""Fonts by which all readers draw the letters that they read; for confined jobs only.

Without an embedded program the readers choose one. They then draw a letter by its name,
and differ about names that no list has (`C57`, `uni0030`), other encodings, and widths
beyond 16 bits.

Source: ISO 32000-2, 9.6 and Annex D.
"""

from typing import Final

from pyhanko.pdf_utils.generic import (
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    StreamObject,
)

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
_ENCODINGS: Final = {"/WinAnsiEncoding", "/MacRomanEncoding", "/StandardEncoding"}
_CODE_MOST: Final = 255
_WIDTH_MOST: Final = 2_000
_NAMES: Final = """
    .notdef space exclam quotedbl numbersign dollar percent ampersand quotesingle
    parenleft parenright asterisk plus comma hyphen period slash zero one two three four
    five six seven eight nine colon semicolon less equal greater question at
    A B C D E F G H I J K L M N O P Q R S T U V W X Y Z bracketleft backslash
    bracketright asciicircum underscore grave a b c d e f g h i j k l m n o p q r s t u
    v w x y z braceleft bar braceright asciitilde breve caron circumflex dotaccent
    hungarumlaut ogonek ring tilde bullet dagger daggerdbl ellipsis emdash endash florin
    fraction guilsinglleft guilsinglright minus perthousand quotedblbase quotedblleft
    quotedblright quoteleft quoteright quotesinglbase trademark fi fl Lslash OE Scaron
    Ydieresis Zcaron dotlessi lslash oe scaron zcaron Euro exclamdown cent sterling
    currency yen brokenbar section dieresis copyright ordfeminine guillemotleft
    logicalnot registered macron degree plusminus twosuperior threesuperior acute mu
    paragraph periodcentered cedilla onesuperior ordmasculine guillemotright onequarter
    onehalf threequarters questiondown Agrave Aacute Acircumflex Atilde Adieresis Aring
    AE Ccedilla Egrave Eacute Ecircumflex Edieresis Igrave Iacute Icircumflex Idieresis
    Eth Ntilde Ograve Oacute Ocircumflex Otilde Odieresis multiply Oslash Ugrave Uacute
    Ucircumflex Udieresis Yacute Thorn germandbls agrave aacute acircumflex atilde
    adieresis aring ae ccedilla egrave eacute ecircumflex edieresis igrave iacute
    icircumflex idieresis eth ntilde ograve oacute ocircumflex otilde odieresis divide
    oslash ugrave uacute ucircumflex udieresis yacute thorn ydieresis
"""
_GLYPHS: Final = frozenset(_NAMES.split())
"""Names of the Latin character set. Source: ISO 32000-2, Annex D.2."""
_FAMILIES: Final = (
    "Helvetica", "Arial", "Times", "Courier", "Verdana", "Tahoma", "Calibri", "Georgia",
    "Trebuchet", "Liberation", "DejaVu",
)  # fmt: skip
_PROGRAMS: Final = ("/FontFile", "/FontFile2", "/FontFile3")


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
    letters that readers have, or have a likeness of.

    Args:
        font: its dictionary.
    """
    if isinstance(font, StreamObject):
        return False
    kind = name(font, "/Subtype")
    if kind == "/Type3":
        return True
    holder = font
    if kind == "/Type0":
        holder = resolve(next(iter(raw_items(entry(font, "/DescendantFonts"))), None))
    descriptor = plain_dictionary(holder, "/FontDescriptor")
    if any(entry(descriptor, each) is not None for each in _PROGRAMS):
        return True
    family = (name(font, "/BaseFont") or "/").removeprefix("/").rpartition("+")[2]
    return (
        kind in {"/Type1", "/TrueType"}
        and family.startswith(_FAMILIES)
        and _has_usual_parts(font)
    )


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
        return encoding is None or str(encoding) in _ENCODINGS
    base = entry(encoding, "/BaseEncoding")
    if base is not None and str(base) not in _ENCODINGS:
        return False
    code = -1
    for each in raw_items(entry(encoding, "/Differences")):
        if isinstance(each, NameObject):
            code += 1
            known = str(each)[1:] in _GLYPHS
        elif isinstance(each, NumberObject):
            known = int(each) > code
            code = int(each) - 1
        else:
            return False
        if not known or code > _CODE_MOST:
            return False
    return True
