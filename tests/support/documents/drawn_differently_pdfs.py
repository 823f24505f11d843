"""PDFs that common programs draw differently, and others that all draw alike.

Each was drawn by PDFium, poppler, MuPDF, Ghostscript or pdf.js: where one showed a text
another one showed none, or another text.

Source: ISO 32000-2, 7.8, 8.9, 8.10 and 12.5.
"""

import io
from collections.abc import Mapping
from typing import Final

from PIL import Image

from tests.support.documents.hostile_pdfs import plain
from tests.support.documents.outside_content_pdfs import stream

_FONT: Final = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
_INVERTING: Final = b"<</FunctionType 2/Domain[0 1]/C0[1]/C1[0]/N 1>>"
_FORM: Final = b"/Type/XObject/Subtype/Form/BBox[0 0 300 300]"
_FONTS: Final = b"/Resources<</Font<</F 5 0 R>>>>"
TEXT: Final = b"BT /F 24 Tf 20 100 Td (CIEN) Tj ET\n"


def drawn(content: bytes, resources: bytes = b"", **more: bytes) -> bytes:
    """One page with a font, and with other resources.

    Args:
        content: of the page.
        resources: categories beside the fonts.
        more: further objects, from `o6` on.
    """
    page = b"/Resources<</Font<</F 5 0 R>>" + resources + b">>"
    return plain(b"", page, o4=stream(b"", content), **{"o5": _FONT, **more})


def form(content: bytes, entries: bytes = _FORM + _FONTS) -> bytes:
    """One page that draws a form, object 6."""
    return drawn(b"/X Do", b"/XObject<</X 6 0 R>>", o6=stream(entries, content))


def image(entries: bytes, data: bytes, **more: bytes) -> bytes:
    """One page that draws an image, object 6."""
    kind = b"/Type/XObject/Subtype/Image"
    return drawn(
        b"q 99 0 0 99 9 9 cm /X Do Q",
        b"/XObject<</X 6 0 R>>",
        o6=stream(kind + entries, data),
        **more,
    )


def noted(
    entries: bytes, appearance: bytes = b"<</N 6 0 R>>", catalog: bytes = b""
) -> bytes:
    """One page with an annotation that has a look."""
    return plain(
        catalog,
        b"/Annots[5 0 R]",
        o4=stream(b"", b""),
        o5=b"<</Type/Annot/AP %s%s>>" % (appearance, entries),
        o6=stream(_FORM, b"0 0 300 300 re f"),
    )


def _picture(kind: str, mode: str = "L", size: tuple[int, int] = (8, 4)) -> bytes:
    out = io.BytesIO()
    Image.new(mode, size).save(out, kind)
    return out.getvalue()


_GRAY: Final = b"/Width 8/Height 4/BitsPerComponent 8/ColorSpace/DeviceGray"
_RGB: Final = b"/Width 8/Height 4/BitsPerComponent 8/ColorSpace/DeviceRGB"
_DCT: Final = b"/Filter/DCTDecode"
_JPX: Final = b"/Filter/JPXDecode"
_FAX: Final = b"/Width 8/Height 4/BitsPerComponent 1/ColorSpace/DeviceGray"
_RECT: Final = b"/Rect[9 9 90 90]"
_INLINE: Final = b"BI /W 2/H 2/CS/G/BPC 8"

_TILE: Final = (
    b"/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 9 9]/XStep 9/YStep 9"
    b"/Resources<<>>"
)
_AXIAL: Final = (
    b"<</ShadingType 2/ColorSpace/DeviceGray/Coords[0 0 300 0]/Function 6 0 R>>"
)
_GROUP: Final = b"/Group<</S/Transparency/CS/DeviceGray>>"
_MASK: Final = b"/SMask<</S/Luminosity/G 8 0 R>>"
_UNMASKING: Final = (
    _FORM + b"/Resources<</Font<</F 5 0 R>>/ExtGState<</N<</SMask/None>>>>>>"
)
_GLYPHS: Final = (
    b"/FontBBox[0 0 9 9]/CharProcs<</C 7 0 R>>/Encoding<</Differences[67/C]>>"
    b"/FirstChar 67/LastChar 67/Widths[9]"
)


def tiled(entries: bytes) -> bytes:
    """One page that is filled with a pattern, object 6."""
    return drawn(
        b"/Pattern cs /P scn 0 0 300 300 re f " + TEXT,
        b"/Pattern<</P 6 0 R>>",
        o6=stream(entries, b"0 g 0 0 4 4 re f"),
    )


def shaded(shading: bytes) -> bytes:
    """One page that is painted with a shading; object 6 is a function."""
    return drawn(b"/S sh " + TEXT, b"/Shading<</S " + shading + b">>", o6=_INVERTING)


def drawn_glyph(entries: bytes) -> bytes:
    """One page that shows a letter of Type 3."""
    return drawn(
        b"BT /F 24 Tf 20 100 Td (C) Tj ET",
        o5=b"<</Type/Font/Subtype/Type3" + entries + b">>",
        o7=stream(b"", b"9 0 0 0 9 9 d1 0 0 9 9 re f"),
    )


def masked(content: bytes, entries: bytes, **more: bytes) -> bytes:
    """One page that draws a form, object 6, perhaps under a mask of nothing."""
    return drawn(
        content,
        b"/XObject<</X 6 0 R>>/ExtGState<</M<<" + _MASK + b">>/N<</SMask/None>>>>",
        o6=stream(entries, b"/N gs " + TEXT),
        o8=stream(_FORM + _GROUP, b""),
        **more,
    )


DIFFERENT: Final[Mapping[str, bytes]] = {
    # Tokens.
    "exponent": drawn(b"BT /F 24 Tf 1e2 100 Td (CIEN) Tj ET"),
    "comma": drawn(b"BT /F 24 Tf 20,5 100 Td (CIEN) Tj ET"),
    "two signs": drawn(b"BT /F 24 Tf --20 100 Td (CIEN) Tj ET"),
    "sign within": drawn(b"BT /F 24 Tf 20-5 100 Td (CIEN) Tj ET"),
    "radix": drawn(b"BT /F 24 Tf 16#14 100 Td (CIEN) Tj ET"),
    "beyond 32 bits": drawn(b"BT /F 24 Tf 4294967316 100 Td (CIEN) Tj ET"),
    "number glued to an operator": drawn(b"BT /F 24Tf 20 100Td (CIEN) Tj ET"),
    "vertical tab": drawn(b"3\x0bTr " + TEXT),
    "high byte": drawn(b"BT /F 24 Tf 20 100 Td 3 Tr\x80 (CIEN) Tj ET"),
    "name with a high byte": drawn(b"/A\x80B gs " + TEXT),
    "escaped name": drawn(b"/#46 24 Tf " + TEXT),
    "empty name": drawn(b"/ Do " + TEXT),
    "long name": drawn(b"/%s gs " % (b"A" * 140) + TEXT),
    "odd hexadecimals": drawn(TEXT.replace(b"(CIEN)", b"<43494>")),
    "no hexadecimals": drawn(TEXT.replace(b"(CIEN)", b"<4349zz45>")),
    "odd escape": drawn(TEXT.replace(b"CIEN", b"\\9CIEN")),
    "high escape": drawn(TEXT.replace(b"CIEN", b"\\777CIEN")),
    "cut off": drawn(TEXT + b"(CIEN"),
    # Operators.
    "unknown operator": drawn(b"3 foo " + TEXT),
    "operands too many": drawn(b"BT /F 24 Tf 20 100 Td 3 0 Tr (CIEN) Tj ET"),
    "operands too few": drawn(b"1 rg " + TEXT),
    "colour beyond one": drawn(b"1 3 34 0 k " + TEXT),
    "colour below zero": drawn(b"-1 g " + TEXT),
    "width below zero": drawn(b"-30 w 9 9 m 99 99 l S " + TEXT),
    "dashes of nothing": drawn(b"[0 0] 0 d 30 w 9 9 m 99 99 l S " + TEXT),
    "rendering mode": drawn(b"8 Tr " + TEXT),
    "restored too often": drawn(b"q Q Q " + TEXT),
    "saved too often": drawn(b"q " * 65 + TEXT),
    "text in text": drawn(b"BT " + TEXT + b"ET"),
    # Resources.
    "font that is not there": drawn(TEXT.replace(b"/F", b"/G")),
    "font that is none": drawn(TEXT, o5=b"7"),
    "form that is not there": drawn(
        b"/X Do " + TEXT, b"/XObject<</Y 6 0 R>>", o6=stream(_FORM, b"")
    ),
    "form without resources": form(TEXT, _FORM),
    "form without a box": form(TEXT, b"/Subtype/Form" + _FONTS),
    "form with half a matrix": form(TEXT, _FORM + _FONTS + b"/Matrix[1 0 0 1 0]"),
    "form without a subtype": form(TEXT, b"/BBox[0 0 300 300]" + _FONTS),
    "PostScript": drawn(b"/X Do", b"/XObject<</X 6 0 R>>", o6=stream(b"/Subtype/PS")),
    "transfer function": drawn(
        b"/G gs " + TEXT, b"/ExtGState<</G<</TR 6 0 R>>>>", o6=_INVERTING
    ),
    "opacity that is no number": drawn(b"/G gs " + TEXT, b"/ExtGState<</G<</ca(0)>>>>"),
    "mask without a group": drawn(
        b"/G gs " + TEXT, b"/ExtGState<</G<</SMask<</S/Alpha>>>>>>"
    ),
    "default that is a spot colour": drawn(
        TEXT,
        b"/ColorSpace<</DefaultGray[/Separation/X/DeviceGray 6 0 R]>>",
        o6=_INVERTING,
    ),
    "colorant that is none": drawn(
        b"/C cs 1 scn " + TEXT,
        b"/ColorSpace<</C[/Separation/None/DeviceGray 6 0 R]>>",
        o6=_INVERTING,
    ),
    "font of another kind": drawn(
        TEXT,
        o5=_FONT[:-2] + b"/FontDescriptor<</FontFile2 6 0 R>>>>",
        o6=stream(b"", b"x"),
    ),
    "encoding that is a stream": drawn(
        TEXT, o5=_FONT[:-2] + b"/Encoding 6 0 R>>", o6=stream(b"", b"x")
    ),
    "two descendants": drawn(
        TEXT,
        o5=b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H"
        b"/DescendantFonts[6 0 R 6 0 R]>>",
        o6=b"<</Type/Font/Subtype/CIDFontType2/BaseFont/X>>",
    ),
    "pattern without a kind of paint": tiled(_TILE.replace(b"/PaintType 1", b"")),
    "pattern without resources": tiled(_TILE.replace(b"/Resources<<>>", b"")),
    "pattern without a step": tiled(_TILE.replace(b"/XStep 9", b"/XStep 0")),
    "pattern without a box": tiled(_TILE.replace(b"/BBox[0 0 9 9]", b"")),
    "shading of no length": shaded(_AXIAL.replace(b"300 0]", b"0 0]")),
    "shading without a function": shaded(_AXIAL.replace(b"/Function 6 0 R", b"")),
    "shading of no kind": shaded(_AXIAL.replace(b"Type 2", b"Type 9")),
    "mesh that is no stream": shaded(_AXIAL.replace(b"Type 2", b"Type 4")),
    "letters without a matrix": drawn_glyph(_GLYPHS),
    "letters without an encoding": drawn_glyph(
        b"/FontMatrix[.1 0 0 .1 0 0]" + _GLYPHS.replace(b"/Encoding", b"/Other")
    ),
    "mask that a form ends": masked(b"/M gs /X Do", _UNMASKING),
    "mask that a form in a form ends": masked(
        b"/M gs /Y Do",
        _UNMASKING,
        o7=stream(_FORM + b"/Resources<</XObject<</X 6 0 R>>>>", b"/X Do"),
    ).replace(b"/XObject<</X 6 0 R>>/ExtG", b"/XObject<</Y 7 0 R>>/ExtG"),
    # Images.
    "abbreviated keys": image(b"/W 8/H 4/BPC 8/CS/G", bytes(32)),
    "key beside its abbreviation": image(_GRAY + b"/D[1 0]", bytes(32)),
    "too little data": image(_GRAY, bytes(31)),
    "no colour space": image(b"/Width 8/Height 4/BitsPerComponent 8", bytes(32)),
    "colour space by name": image(_GRAY.replace(b"DeviceGray", b"Own"), bytes(32)),
    "JPEG of another size": image(_GRAY + _DCT, _picture("JPEG", size=(8, 8))),
    "JPEG of other colours": image(_RGB + _DCT, _picture("JPEG")),
    "JPEG cut off": image(_GRAY + _DCT, _picture("JPEG")[:-9]),
    "no JPEG": image(_GRAY + _DCT, b"junk"),
    "JPEG 2000 of another size": image(_GRAY + _JPX, _picture("JPEG2000", size=(8, 8))),
    "JPEG 2000 with a mask": image(
        _GRAY + _JPX + b"/SMaskInData 1", _picture("JPEG2000")
    ),
    "facsimile of other columns": image(
        _FAX + b"/Filter/CCITTFaxDecode/DecodeParms<</K -1/Columns 16>>", b"\0" * 9
    ),
    "facsimile without parameters": image(_FAX + b"/Filter/CCITTFaxDecode", b"\0" * 9),
    "two masks": image(
        _GRAY + b"/SMask 7 0 R/Mask 8 0 R",
        bytes(32),
        o7=stream(b"/Subtype/Image" + _GRAY, bytes(32)),
        o8=stream(b"/Subtype/Image/Width 8/Height 4/ImageMask true", bytes(4)),
    ),
    "coloured mask": image(
        _GRAY + b"/SMask 7 0 R",
        bytes(32),
        o7=stream(b"/Subtype/Image" + _RGB, bytes(96)),
    ),
    "mask that is none": image(
        _GRAY + b"/Mask 7 0 R",
        bytes(32),
        o7=stream(b"/Subtype/Image" + _GRAY, bytes(32)),
    ),
    "mask of eight bits": image(
        b"/Width 8/Height 4/ImageMask true/BitsPerComponent 8", bytes(32)
    ),
    "short table of colours": image(
        _GRAY.replace(b"/DeviceGray", b"[/Indexed/DeviceRGB 9<000000>]"), bytes(32)
    ),
    "inline key twice": drawn(_INLINE + b"/Width 4 ID abcd EI " + TEXT),
    "inline data too long": drawn(_INLINE + b" ID abcde EI " + TEXT),
    "inline data end early": drawn(_INLINE + b"/F/AHx ID 00 EI " + TEXT + b"> EI"),
    # Annotations.
    "link with a look": noted(_RECT + b"/Subtype/Link"),
    "pop-up with a look": noted(_RECT + b"/Subtype/Popup"),
    "highlight of nothing": noted(_RECT + b"/Subtype/Highlight"),
    "polygon without corners": noted(_RECT + b"/Subtype/Polygon"),
    "file that is not there": noted(_RECT + b"/Subtype/FileAttachment"),
    "field without a type": noted(
        _RECT + b"/Subtype/Widget", catalog=b"/AcroForm<</Fields[]>>"
    ),
    "unknown kind": noted(_RECT + b"/Subtype/Sticker"),
    "no kind": noted(_RECT),
    "no rectangle": noted(b"/Subtype/Stamp"),
    "three corners": noted(b"/Subtype/Stamp/Rect[9 9 90]"),
    "no area": noted(b"/Subtype/Stamp/Rect[9 9 9 9]"),
    "far away": noted(b"/Subtype/Stamp/Rect[9 9 3000000000 90]"),
    "flags that are no integer": noted(_RECT + b"/Subtype/Stamp/F(2)"),
    "flags below zero": noted(_RECT + b"/Subtype/Stamp/F -4"),
    "invisible": noted(_RECT + b"/Subtype/Stamp/F 1"),
    "look that is a stream": noted(_RECT + b"/Subtype/Stamp", b"6 0 R"),
}
ALIKE: Final[Mapping[str, bytes]] = {
    "text": drawn(TEXT),
    "numbers": drawn(b"q +1 0 0 1 .5 -.5 cm 1. 2.50 m 0 0 l S Q\n" + TEXT),
    "strings": drawn(TEXT.replace(b"CIEN", b"a(b(c))\\051\\n\\\\\\\n")),
    "pieces": drawn(TEXT.replace(b"(CIEN) Tj", b"[(CI)-20<454E>] TJ")),
    "operands left over": drawn(TEXT + b"3 "),
    "comments": drawn(b"% (not) a string\n" + TEXT),
    "dashes": drawn(b"[3 1] 0 d [] 0 d 0 w 9 9 m 99 99 l S " + TEXT),
    "colours": drawn(b"0 g 1 0 .5 rg 0 0 0 1.0 K 1 0 0 RG " + TEXT),
    "marked content": drawn(b"/Span <</MCID 0/E(x)/A[1 2]>> BDC " + TEXT + b"EMC"),
    "form": form(TEXT),
    "form in a form": drawn(
        b"/X Do",
        b"/XObject<</X 6 0 R>>",
        o6=stream(_FORM + b"/Resources<</XObject<</Y 7 0 R>>>>", b"/Y Do"),
        o7=stream(_FORM + _FONTS + b"/Matrix[1 0 0 1 2 2.5]", TEXT),
    ),
    "transfer that changes nothing": drawn(
        b"/G gs " + TEXT, b"/ExtGState<</G<</TR2/Default/ca .5/SMask/None>>>>"
    ),
    "calibrated default": drawn(
        TEXT, b"/ColorSpace<</DefaultGray[/CalGray<</WhitePoint[1 1 1]>>]>>"
    ),
    "pattern": tiled(_TILE),
    "shading": shaded(_AXIAL),
    "letters": drawn_glyph(b"/FontMatrix[.1 0 0 .1 0 0]" + _GLYPHS),
    "mask that a group leaves": masked(b"/M gs /X Do", _UNMASKING + _GROUP),
    "mask that ended before": masked(b"q /M gs Q /M gs /N gs /X Do", _UNMASKING),
    "image": image(_GRAY, bytes(32)),
    "JPEG": image(_RGB + _DCT, _picture("JPEG", "RGB")),
    "JPEG 2000": image(_RGB + _JPX, _picture("JPEG2000", "RGB")),
    "soft mask": image(
        _GRAY + b"/SMask 7 0 R",
        bytes(32),
        o7=stream(b"/Subtype/Image" + _GRAY, bytes(32)),
    ),
    "mask": image(b"/Width 8/Height 4/ImageMask true/Decode[1 0]", bytes(4)),
    "facsimile": image(
        _FAX + b"/Filter[/CCITTFaxDecode]/DecodeParms[<</K -1/Columns 8/Rows 4>>]",
        b"\0" * 9,
    ),
    "table of colours": image(
        _GRAY.replace(b"/DeviceGray", b"[/Indexed/DeviceGray 1<00FF>]"), bytes(32)
    ),
    "inline image": drawn(_INLINE + b" ID a\0cd\nEI " + TEXT),
    "stamp": noted(_RECT + b"/Subtype/Stamp/F 4"),
    "highlight": noted(
        _RECT + b"/Subtype/Highlight/QuadPoints[9 90 90 90 9 9 90 9]/F 4"
    ),
    "hidden link": noted(_RECT + b"/Subtype/Link/F 2"),
}
