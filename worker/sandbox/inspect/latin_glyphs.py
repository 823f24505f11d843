"""Names of the glyphs of the Latin character set, and encodings by them.

Source: ISO 32000-2, annex D.2.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

from pyhanko.pdf_utils.generic import decode_pdfdocencoding

NOTHING: Final = ".notdef"
_NAMES: Final = """
    space exclam quotedbl numbersign dollar percent ampersand quotesingle
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
"""In the order of PDFDocEncoding, but for its accents, which follow on ASCII."""
_CODES: Final = bytes(
    chain(range(0x20, 0x7F), range(0x18, 0x20), range(0x80, 0x9F), (0xA0,),
          range(0xA1, 0xAD), range(0xAE, 0x100))
)  # fmt: skip
_CODE_MOST: Final = 255
CHARACTERS: Final[Mapping[str, str]] = dict(
    zip(_NAMES.split(), decode_pdfdocencoding(_CODES), strict=True)
)
"""Unicode character of each glyph, by its name."""
NAMES: Final[Mapping[str, str]] = {each: name for name, each in CHARACTERS.items()}
"""Name of each character."""
BASES: Final[Mapping[str, str]] = {
    "/WinAnsiEncoding": "cp1252",
    "/MacRomanEncoding": "mac_roman",
    "/StandardEncoding": "ascii",
}
"""Codecs of encodings; of the last one for those codes alone that are of ASCII."""


def names_codes_alike(differences: Iterable[int | str | None]) -> bool:
    """Return whether readers take an array of differences alike.

    Args:
        differences: codes in ascending order, each before names without their slash;
            None for anything else.

    Source: ISO 32000-2, 9.6.5.1 (table 112).
    """
    code = -1
    for each in differences:
        if isinstance(each, str):
            code += 1
            if each not in CHARACTERS and each != NOTHING:
                return False
        elif each is None or each <= code:
            return False
        else:
            code = each - 1
        if code > _CODE_MOST:
            return False
    return True
