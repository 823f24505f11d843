"""PDFs of which each program shows a part in its own way, and others that fix it.

Source: ISO 32000-2, 8.9.5.4, 9.6 to 9.9 and 12.5.5.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.support.documents.hostile_pdfs import plain
from tests.support.documents.outside_content_pdfs import (
    compressed,
    drawing,
    locked_up,
    nested_forms,
    stream,
)

_FORM: Final = b"/Type/XObject/Subtype/Form/BBox[0 0 99 99]"
_ARIAL: Final = b"/Type/Font/Subtype/TrueType/BaseFont/ArialMT"
_ARIAL_FONT: Final = b"<<%s>>" % _ARIAL
_TEXT: Final = b"BT /T 12 Tf 20 150 Td (Debo 100) Tj ET"
_IMAGE: Final = (
    b"/Type/XObject/Subtype/Image/Width 1/Height 1/BitsPerComponent 8"
    b"/ColorSpace/DeviceGray"
)
_LIBERATION: Final = Path(
    "/usr/share/fonts/truetype/liberation2/LiberationSans-Regular.ttf"
)


def noted(entries: bytes, appearance: bytes = b"", rect: bytes = b"9 9 90 90") -> bytes:
    """One page with an annotation, 5, which may be a field.

    Args:
        entries: of the annotation.
        appearance: object 6; usual ones are drawn by one.
        rect: where the annotation is.
    """
    form = b"/AcroForm<</Fields[5 0 R]>>" if b"/FT" in entries else b""
    return plain(
        form,
        b"/Annots[5 0 R]",
        o5=b"<</Type/Annot/Rect[%s]%s>>" % (rect, entries),
        o6=appearance or stream(_FORM, b"0 0 9 9 re f"),
    )


_MARKS: Final = (
    "Caret",
    "Circle",
    "FreeText",
    "Highlight",
    "Ink",
    "Line",
    "Polygon",
    "PolyLine",
    "Square",
    "Squiggly",
    "Stamp",
    "StrikeOut",
    "Text",
    "Underline",
)
_SHOWN: Final = b"/AP<</N 6 0 R>>"

UNDRAWN: Final[Mapping[str, bytes]] = {
    **{each: noted(b"/Subtype/" + each.encode()) for each in _MARKS},
    "text field": noted(b"/Subtype/Widget/FT/Tx/T(a)/V(100)"),
    "choice": noted(b"/Subtype/Widget/FT/Ch/T(a)/V(100)/Opt[(100)]"),
    "choice of several": noted(b"/Subtype/Widget/FT/Ch/T(a)/V[(1)(2)]/Opt[(1)(2)]"),
    "ticked box": noted(b"/Subtype/Widget/FT/Btn/T(a)/V/On/AS/On"),
    "button with words": noted(b"/Subtype/Widget/FT/Btn/Ff 65536/T(a)/MK<</CA(Ok)>>"),
    "value of the field above": plain(
        b"/AcroForm<</Fields[6 0 R]>>",
        b"/Annots[5 0 R]",
        o5=b"<</Type/Annot/Subtype/Widget/Rect[9 9 90 90]/Parent 6 0 R>>",
        o6=b"<</FT/Tx/T(a)/V(100)/Kids[5 0 R]>>",
    ),
    "appearance for the mouse alone": noted(b"/Subtype/Stamp/AP<</R 6 0 R/D 6 0 R>>"),
    "appearance that is null": noted(b"/Subtype/Stamp/AP<</N null>>"),
    "appearance without a box": noted(
        b"/Subtype/Stamp" + _SHOWN, stream(b"/Subtype/Form", b"0 0 9 9 re f")
    ),
    "appearance of no state": noted(b"/Subtype/Stamp/AP<</N<</On 6 0 R>>>>"),
    "appearance of another state": noted(
        b"/Subtype/Widget/FT/Btn/T(a)/V/On/AS/On/AP<</N<</Yes 6 0 R>>>>"
    ),
    "encrypted": locked_up(noted(b"/Subtype/Stamp")),
    "in object streams": compressed(noted(b"/Subtype/Widget/FT/Tx/T(a)/V(100)")),
}
"""Notes and fields that each program draws as it likes."""

DRAWN: Final[Mapping[str, bytes]] = {
    "stamp with an appearance": noted(b"/Subtype/Stamp" + _SHOWN),
    "ticked box with states": noted(
        b"/Subtype/Widget/FT/Btn/T(a)/V/On/AS/On/AP<</N<</On 6 0 R>>>>"
    ),
    "box that is not ticked": noted(
        b"/Subtype/Widget/FT/Btn/T(a)/V/Off/AS/Off/AP<</N<</On 6 0 R>>>>"
    ),
    "field without a value": noted(b"/Subtype/Widget/FT/Tx/T(a)"),
    "field of an empty value": noted(b"/Subtype/Widget/FT/Tx/T(a)/V()"),
    "button without words": noted(b"/Subtype/Widget/FT/Btn/Ff 65536/T(a)"),
    "place for a signature": noted(b"/Subtype/Widget/FT/Sig/T(a)"),
    "link": noted(b"/Subtype/Link"),
    "pop-up": noted(b"/Subtype/Popup"),
    "note of glass": noted(b"/Subtype/Square/CA 0"),
}
"""Notes and fields that look alike everywhere, or that nobody is to see."""


def _embedded() -> bytes:
    """Text in a font that is in the file."""
    program = _LIBERATION.read_bytes()
    return drawing(
        b"/Font<</T 5 0 R>>",
        _TEXT,
        o5=b"<</Type/Font/Subtype/TrueType/BaseFont/AAAAAA+LiberationSans"
        b"/Encoding/WinAnsiEncoding/FontDescriptor 6 0 R>>",
        o6=b"<</Type/FontDescriptor/FontName/AAAAAA+LiberationSans/Flags 32"
        b"/FontFile2 7 0 R>>",
        o7=stream(b"/Length1 %d" % len(program), program),
    )


def _lettered(font: bytes, text: bytes = _TEXT, **more: bytes) -> bytes:
    """One page with this text, in font 5."""
    return drawing(b"/Font<</T 5 0 R>>", text, o5=font, **more)


FOREIGN_FONTS: Final[Mapping[str, bytes]] = {
    "TrueType": _lettered(_ARIAL_FONT),
    "Type 1": _lettered(b"<</Type/Font/Subtype/Type1/BaseFont/Garamond>>"),
    "descriptor without a program": _lettered(
        b"<<%s/FontDescriptor 6 0 R>>" % _ARIAL,
        o6=b"<</Type/FontDescriptor/FontName/ArialMT/Flags 32>>",
    ),
    "composite": _lettered(
        b"<</Type/Font/Subtype/Type0/BaseFont/KozMinPro-Regular/Encoding/UniJIS-UCS2-H"
        b"/DescendantFonts[6 0 R]>>",
        b"BT /T 12 Tf 20 150 Td <65E5672C> Tj ET",
        o6=b"<</Type/Font/Subtype/CIDFontType0/BaseFont/KozMinPro-Regular/CIDSystemInfo"
        b"<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>/FontDescriptor 7 0 R>>",
        o7=b"<</Type/FontDescriptor/FontName/KozMinPro-Regular/Flags 4>>",
    ),
    "font of the resources themselves": drawing(b"/Font<</T%s>>" % _ARIAL_FONT, _TEXT),
    "form in thirty forms": nested_forms(
        b"/Resources<</Font<</T%s>>>>" % _ARIAL_FONT, _TEXT
    ),
    "name that is no text": drawing(
        b"/Font<</#FF 5 0 R>>", _TEXT.replace(b"/T ", b"/#FF "), o5=_ARIAL_FONT
    ),
    "appearance": noted(
        b"/Subtype/Stamp" + _SHOWN,
        stream(_FORM + b"/Resources<</Font<</T%s>>>>" % _ARIAL_FONT, _TEXT),
    ),
    "standard name that goes on": _lettered(
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Narrow>>"
    ),
    "encrypted": locked_up(_lettered(_ARIAL_FONT)),
    "in object streams": compressed(_lettered(_ARIAL_FONT)),
}
"""Documents that show text in fonts that they do not hold."""

OWN_FONTS: Final[Mapping[str, bytes]] = {
    "embedded": _embedded(),
    "standard": _lettered(b"<</Type/Font/Subtype/Type1/BaseFont/Times-BoldItalic>>"),
    "Type 3": _lettered(
        b"<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[1 0 0 1 0 0]"
        b"/CharProcs<</a 6 0 R>>/Encoding<</Differences[97/a]>>/FirstChar 97"
        b"/LastChar 97/Widths[9]/Resources<<>>>>",
        b"BT /T 1 Tf 20 150 Td (a) Tj ET",
        o6=stream(b"", b"9 0 0 0 9 9 d1 0 0 9 9 re f"),
    ),
    "not used": _lettered(_ARIAL_FONT, b"0 0 9 9 re f"),
    "text that is invisible": _lettered(
        _ARIAL_FONT, b"BT /T 12 Tf 3 Tr 20 150 Td (Debo 100) Tj ET"
    ),
    "spaces alone": _lettered(_ARIAL_FONT, b"BT /T 12 Tf 20 150 Td (   ) Tj ET"),
    "font of a form without fields": plain(
        b"/AcroForm<</Fields[]/DR<</Font<</T%s>>>>>>" % _ARIAL_FONT
    ),
}
"""Documents that hold their fonts, or show nothing in others."""

ALTERNATE: Final[Mapping[str, bytes]] = {
    name: make(
        drawing(
            b"/XObject<</X 5 0 R>>",
            o5=stream(
                _IMAGE + b"/Alternates[<</Image 6 0 R/DefaultForPrinting true>>]", b"0"
            ),
            o6=stream(_IMAGE, b"9"),
        )
    )
    for name, make in (
        ("as it is", bytes),
        ("in object streams", compressed),
        ("encrypted", locked_up),
    )
}
"""Documents with an image that has another version."""

ONE_VERSION: Final[Mapping[str, bytes]] = {
    "list of none": drawing(
        b"/XObject<</X 5 0 R>>", o5=stream(_IMAGE + b"/Alternates[]", b"0")
    ),
    "image that nothing leads to": plain(
        o5=stream(_IMAGE + b"/Alternates[<</Image 6 0 R>>]", b"0"),
        o6=stream(_IMAGE, b"9"),
    ),
}
"""Documents whose images have one version."""

_GRANTED: Final = (
    b"<</Type/Sig/Filter/Adobe.PPKLite/SubFilter/adbe.pkcs7.detached"
    b"/ByteRange[0 0 0 0]/Contents<00>>>"
)
RIGHTS: Final[Mapping[str, bytes]] = {
    key: plain(b"/Perms<</%s 5 0 R>>" % key.encode(), o5=_GRANTED)
    for key in ("UR3", "UR")
}
"""Documents that a producer extended for Adobe Reader."""

NO_RIGHTS: Final[Mapping[str, bytes]] = {
    "no permissions": plain(b"/Perms<<>>"),
    "rights that are null": plain(b"/Perms<</UR3 null>>"),
}
"""Documents without such rights."""
