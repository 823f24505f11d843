"""Drawings of filled fields show the value, or are not believed."""

from collections.abc import Mapping
from typing import Final

import pytest

from appliance.domain.documents.verification import Answer
from tests.support.documents.contract_pdf import contract, line, stream
from tests.support.documents.filled_fields import TEXT, WIDGET, filled_in, filled_number
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import makers
from worker.sandbox.verify.verify import verify

_EMPTY: Final = TEXT % b"" + b">>"
_USUAL: Final[Mapping[str, bytes]] = {
    "bare": b"BT /F1 12 Tf 0 g 2 4 Td (1000) Tj ET",
    "marked, clipped": b"/Tx BMC q 1 1 118 18 re W n BT /F1 12 Tf 2 4 Td (1000) Tj ET Q"
    b" EMC",
    "background and border": b".9 g 0 0 120 20 re f 0 G 1 w .5 .5 119 19 re s q 2 2 116"
    b" 16 re W n BT /F1 12 Tf 0 0 .5 rg 1 0 0 1 4 5 Tm (1000) Tj ET Q",
    "line below, closed": b"0 G 1 w 0 1 m 120 1 l s BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "line below": b"0 G 1 w 0 1 m 120 1 l S BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "dark background": b"0 g 0 0 120 20 re f 1 g BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "one by one": b"BT /F1 9 Tf 4 4 Td (1) Tj 20 0 Td (0) Tj 20 0 Td (0) Tj 20 0 Td (0)"
    b" Tj ET",
    "two lines": b"BT /F1 8 Tf 9 TL 2 11 Td (10) Tj T* (00) Tj ET",
    "kerned": b"BT /F1 12 Tf 2 4 Td [(1) 40 (00) -30 (0)] TJ ET",
    "scaled": b"BT /F1 1 Tf 12 0 0 12 2 4 Tm (1000) Tj ET",
    "moved": b"q q 1 0 0 1 2 3 cm BT /F1 12 Tf 0 1 Td (1000) Tj ET Q Q",
    "clip of lines": b"q 1 1 m 1 19 l 119 19 l 119 1 l h W n BT /F1 12 Tf 2 4 Td (1000)"
    b" Tj ET Q",
    "word by word": b"BT 0 Tr 100 Tz /F1 12 Tf 2 4 Td (10 ) Tj 17 0 Td (0) Tj 9 0 "
    b"Td (0)"
    b" Tj ET",
    "letter by letter": b"BT /F1 12 Tf 2 4 Td (1) Tj (0) Tj (0) Tj (0) Tj ET",
    "clip that does not end": b"q 1 1 118 18 re W BT /F1 12 Tf 2 4 Td (1000) Tj ET Q",
    "font again": b"BT /F1 8 Tf 9 TL 2 11 Td (10) Tj /F1 8 Tf T* (00) Tj ET",
    "octal and hexadecimal": b"BT /F1 12 Tf 2 4 Td <31> Tj ET",
}
_ODD: Final[Mapping[str, bytes]] = {
    "unpainted letters": b"BT /F1 12 Tf 2 4 Td (1) Tj 3 Tr 9 0 Td (000) Tj ET",
    "white letters": b"1 g BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "letters of the background": b".5 g 0 0 120 20 re f "
    b"BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "clipped letters": b"0 0 20 20 re W n BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "letters beyond the box": b"BT /F1 12 Tf 2 30 Td (1000) Tj ET",
    "tiny letters": b"BT /F1 1 Tf 2 4 Td (1000) Tj ET",
    "in a layer": b"/OC /oc1 BDC BT /F1 12 Tf 2 4 Td (1000) Tj ET EMC",
    "glued operator": b"BT /F1 12 Tf 2 4 Td (1000) Tj 0 3Tr ET",
    "glued box": b"BT /F1 12 Tf 2 4 Td (1000) Tj ET 0 0 60 20 re 0f",
    "drawn digit": b"2 4 1 10 re f BT /F1 12 Tf 6 4 Td (1000) Tj ET",
    "drawn line": b"2 2 m 2 12 l S BT /F1 12 Tf 6 4 Td (1000) Tj ET",
    "box over the letters": b"BT /F1 12 Tf 2 4 Td (1000) Tj ET 1 g 0 0 120 20 re f",
    "backwards by spacing": b"BT /F1 12 Tf 60 4 Td -13.3 Tc (1000) Tj ET",
    "backwards by kerning": b"BT /F1 12 Tf 60 4 Td "
    b"[(1) 1112 (0) 1112 (0) 1112 (0)] TJ ET",
    "mirrored": b"BT /F1 12 Tf -1 0 0 1 60 4 Tm (1000) Tj ET",
    "upside down": b"BT /F1 12 Tf -1 0 0 -1 60 14 Tm (1000) Tj ET",
    "turned by the content": b"q -1 0 0 -1 60 18 cm BT /F1 12 Tf 2 4 Td (1000) Tj ET Q",
    "written twice": b"BT /F1 12 Tf 2 4 Td (1000) Tj ET "
    b"BT /F1 12 Tf 5 4 Td (1000) Tj ET",
    "second on the left": b"BT /F1 12 Tf 40 4 Td (10) Tj -30 0 Td (00) Tj ET",
    "written over": b"BT /F1 12 Tf 2 4 Td (1   00) Tj 10 0 Td (0) Tj ET",
    "written twice on a line": b"BT /F1 12 Tf 2 4 Td (10) Tj 6 0 Td (10) Tj ET",
    "bevel that is a digit": b"0 2 m 2 2 l 2 14 l 0 14 l f BT /F1 12 Tf 4 4 Td "
    b"(1000) Tj"
    b" ET",
    "lines over the letters": b"BT /F1 12 Tf 2 4 Td (1000) Tj ET 0 G 4 w 0 5 m 120 "
    b"5 l S",
    "broad line": b"1 G 20 w 0 1 m 120 1 l S BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "white letters beside the background": b"0 g 0 0 96 20 re f 1 g "
    b"BT /F1 12 Tf 89 4 Td (1000) Tj ET",
    "background with a hole": b"0 g 0 0 120 20 re 24 0 96 20 re f* 1 g "
    b"BT /F1 12 Tf 20 4 Td (1000) Tj ET",
    "bevel of the letters' colour": b".75 g 0 0 m 0 20 l 1 20 l 1 .1 l 6 .1 l 6 4 l "
    b"120 4 l 120 0 l h f BT /F1 5 Tf 2 .4 Td (1000) Tj ET",
    "beyond 32 bits": b"BT /F1 12 Tf 2 4 Td [(1) -4294967296 (000)] TJ ET",
    "wide spaces": b"BT /F1 12 Tf 2 4 Td 99999999999 Tw (1 000) Tj ET",
    "far spacing": b"BT /F1 12 Tf 2 4 Td 9999 Tc (1000) Tj ET",
    "brackets within each other": b"BT /F1 12 Tf 2 4 Td (1) Tj [ [ 0 d [ ] 0 d (000) "
    b"Tj ] ] 0 d ET",
    "text before an array": b"BT /F1 12 Tf 2 4 Td (000) [(1000)] TJ ET",
    "inks": b"1 1 1 0 k 0 0 120 20 re f .2118 g BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "two colours": b"BT /F1 12 Tf 2 4 Td 0 g (1) Tj .5 g (000) Tj ET",
    "lines upwards": b"-10 TL q 10 TL Q BT /F1 8 Tf 2 1 Td (10) Tj T* (00) Tj ET",
    "letters cut below": b"BT /F1 12 Tf 2 -4 Td (1000) Tj ET",
    "octal beyond a byte": b"BT /F1 12 Tf 2 4 Td (1\\460\\460\\460) Tj ET",
    "path before the text": b"0 0 120 20 re BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "path within the text": b"BT /F1 12 Tf 2 4 Td (1) Tj 900 0 m (000) Tj ET",
    "clip within the text": b"BT /F1 12 Tf 2 4 Td 0 0 120 20 re W n (1000) Tj ET",
    "line on the left": b"1.8 w 3 2 m 3 18 l S BT /F1 12 Tf 6 4 Td (1000) Tj ET",
    "line above": b"1 w 0 19 m 120 19 l S BT /F1 12 Tf 6 4 Td (1000) Tj ET",
    "lines of other colours": b"1 G 0 1 m 120 1 l S 119 0 m 119 20 l S 0 19 m 120 19 l"
    b" S 0 G 1 0 m 1 20 l S BT /F1 12 Tf 6 4 Td (1000) Tj ET",
    "lines of other widths": b"0 w 0 1 m 120 1 l S 119 0 m 119 20 l S 0 19 m 120 19 l"
    b" S 2 w 1 0 m 1 20 l S BT /F1 12 Tf 6 4 Td (1000) Tj ET",
    "second border": b"1 w 1 1 118 18 re s 0 1 m 120 1 l S BT /F1 12 Tf 6 4 Td (1000) "
    b"Tj ET",
    "dashes that leave a piece": b"[14 400] 0 d 1 w 2 3 116 14 re S BT /F1 12 Tf 6 4 "
    b"Td (1000) Tj ET",
    "strip of the background": b"0 g 0 0 120 20 re f 1 g 3 0 117 20 re f 0 g "
    b"BT /F1 12 Tf 6 4 Td (1000) Tj ET",
    "background that is cut": b"0 g 0 0 120 20 re f q 3 0 117 20 re W n 1 g 0 0 120 20"
    b" re f 0 g BT /F1 12 Tf 6 4 Td (1000) Tj ET Q",
    "bevel of one side": b"0 g 0 0 m 4 0 l 4 19.9 l 119 19.9 l 120 20 l 0 20 l f BT "
    b"/F1 12 Tf 6 4 Td (1000) Tj ET",
    "three bevels": b"1 g "
    + 3 * (b"1 1 m 1 19 l 119 19 l 118 18 l 2 18 l 2 2 l f ")
    + b"0 g BT /F1 12 Tf 6 4 Td (1000) Tj ET",
    "bevel": b".9 g 0 0 120 20 re f 1 g 1 1 m 1 19 l 119 19 l 118 18 l 2 18 l 2 2 l "
    b"f .6 g "
    b"119 19 m 119 1 l 1 1 l 2 2 l 118 2 l 118 18 l f 0 G .5 .5 119 19 re s BT /F1 12"
    b" Tf 0 g 4 5 Td (1000) Tj ET",
    "dashed border": b"0 G 1 w [3 3] 0 d 1 1 118 18 re S BT /F1 12 Tf 2 4 Td (1000) "
    b"Tj ET",
    "points of a number": b"[.5 6] 6 d .5 w 0 1 m 120 1 l S BT /F1 12 Tf 2 4 Td (1000)"
    b" Tj ET",
    "lines beyond the box": b"1 w 2 -3 m 118 -3 l S 123 0 m 123 20 l S 0 23 m 120 23 l"
    b" S 2 0 m 2 20 l S BT /F1 12 Tf 6 4 Td (1000) Tj ET",
    "background over lines": b"1 w 2 1 m 118 1 l S 119 0 m 119 20 l S 0 19 m 120 19 l S"
    b" 1 g 0 0 120 20 re f 2 0 m 2 20 l S 0 g BT /F1 12 Tf 6 4 Td (1000) Tj ET",
    "divider of no comb": b"0 G 1 w 30 1 m 30 19 l S BT /F1 12 Tf 4 4 Td (1000) Tj ET",
    "negative width": b"-30 w 0 1 m 120 1 l S BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "more than all ink": b"1 3 34 0 k BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "picture": b"BT /F1 12 Tf 2 4 Td (1000) Tj ET /Fm1 Do",
    "inline picture": b"BT /F1 12 Tf 2 4 Td (1000) Tj ET BI /W 1 /H 1 ID x EI",
    "unended text": b"BT /F1 12 Tf 2 4 Td (1000) Tj",
    "more ends than beginnings": b"Q BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "raised letters": b"BT /F1 12 Tf 2 4 Td (1) Tj 9 Ts (000) Tj ET",
    "pattern": b"/Pattern cs /P1 scn BT /F1 12 Tf 2 4 Td (1000) Tj ET",
    "graphics state": b"/GS1 gs BT /F1 12 Tf 2 4 Td (1000) Tj ET",
}


@pytest.mark.parametrize("name", _USUAL)
def test_usual_drawing_shows_the_value(name: str) -> None:
    """Writers draw a background, a border, and the text line by line."""
    value = b"(1)" if "<31>" in _USUAL[name].decode() else b"(1000)"
    found = filled_in(_EMPTY, {b"/V": value}, _USUAL[name])
    assert found == (Answer.YES, "")


@pytest.mark.parametrize("name", _ODD)
def test_odd_drawing_is_not_believed(name: str) -> None:
    """Readers may show something else than the text that is read from it."""
    found = filled_in(_EMPTY, {b"/V": b"(1000)"}, _ODD[name])
    assert found[0] is Answer.UNCHECKED, found


@pytest.mark.parametrize(
    ("font", "wanted"),
    [
        (b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", Answer.YES),
        (
            b"<</Type/Font/Subtype/Type1/BaseFont/Courier/Encoding/WinAnsiEncoding>>",
            Answer.YES,
        ),
        (
            (
                b"<</Type/Font/Subtype/Type1/BaseFont/Courier/Encoding<</Type/Encoding"
                b"/Differences[24/breve/caron 128/bullet/dagger 160/Euro]>>>>"
            ),
            Answer.YES,
        ),
        (b"<</Type/Font/Subtype/Type1/BaseFont/ZapfDingbats>>", Answer.UNCHECKED),
        (
            (
                b"<</Type/Font/Subtype/Type1/BaseFont/Courier/FirstChar 49/LastChar 49"
                b"/Widths[-64980]>>"
            ),
            Answer.UNCHECKED,
        ),
        (
            (
                b"<</Type/Font/Subtype/Type1/BaseFont/Courier"
                b"/Encoding<</Differences[49/C57]>>>>"
            ),
            Answer.UNCHECKED,
        ),
        (
            b"<</Type/Font/Subtype/Type1/BaseFont/Courier/Encoding/MacExpertEncoding>>",
            Answer.UNCHECKED,
        ),
        (
            b"<</Type/Font/Subtype/Type1/BaseFont/Courier/ToUnicode 5 0 R>>",
            Answer.UNCHECKED,
        ),
        (
            b"<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[.1 0 0 .1 0 0]>>",
            Answer.UNCHECKED,
        ),
    ],
)
def test_font_is_signed_or_every_readers(font: bytes, wanted: Answer) -> None:
    """A font that comes with a drawing may draw anything for a letter."""
    found = filled_in(
        _EMPTY,
        {b"/V": b"(1)"},
        b"BT /Z 12 Tf 2 4 Td (1) Tj ET",
        more={1: font},
        resources=b"<</Font<</Z %d 0 R>>>>",
    )
    assert found[0] is wanted, found


@pytest.mark.parametrize(
    ("box", "more", "wanted"),
    [
        (b"[0 0 120 20]", b"", Answer.YES),
        (b"[0 0 120 20]", b"/Matrix[1 0 0 1 0 0]", Answer.YES),
        (b"[0 0 12000 2000]", b"", Answer.UNCHECKED),
        (b"[0 0 120 60]", b"", Answer.UNCHECKED),
        (b"[-4294967296 0 120 20]", b"", Answer.UNCHECKED),
        (b"[0 0 120 20]", b"/Matrix[1 0 0 1 4294967296 0]", Answer.UNCHECKED),
        (b"[0 0 120 20]", b"/Matrix[-1 0 0 -1 0 0]", Answer.UNCHECKED),
        (b"[0 0 120 20]", b"/OC 15 0 R", Answer.UNCHECKED),
        (b"[0 0 120 20]", b"/Group<</S/Transparency>>", Answer.UNCHECKED),
    ],
)
def test_drawing_fits_its_field(box: bytes, more: bytes, wanted: Answer) -> None:
    """Letters may not be too small to be read, or be moved away."""
    look = b"/Subtype/Form/BBox%s%s/Resources<</Font<</F1 7 0 R>>>>" % (box, more)
    number = filled_number(_EMPTY)
    found = filled_in(
        _EMPTY,
        {b"/V": b"(1000)", b"/AP": b"<</N %d 0 R>>" % (number + 1)},
        more={1: stream(_USUAL["bare"], look)},
    )
    assert found[0] is wanted, found


@pytest.mark.parametrize(
    ("at", "wanted"), [(b"30", Answer.YES), (b"37", Answer.UNCHECKED)]
)
def test_comb_has_lines_between_its_cells(at: bytes, wanted: Answer) -> None:
    """Acrobat and MuPDF draw them."""
    field = TEXT % b"/Ff 16777216/MaxLen 4" + b">>"
    drawn = b"0 G 1 w 60 1 m 60 19 l S 90 1 m 90 19 l s %s 1 m %s 19 l S " % (at, at)
    letters = b"BT /F1 12 Tf 10 4 Td (1) Tj 30 0 Td (0) Tj 30 0 Td (0) Tj ET"
    found = filled_in(field, {b"/V": b"(100)"}, drawn + letters)
    assert found[0] is wanted, found


@pytest.mark.parametrize(
    ("font", "wanted"),
    [
        (b"/Encoding/WinAnsiEncoding", Answer.YES),
        (b"/Subtype/TrueType/BaseFont/ABCDEF+ArialMT", Answer.YES),
        (b"/Subtype/TrueType/BaseFont/Symbol", Answer.UNCHECKED),
        (b"/Subtype/TrueType/BaseFont/Wingdings", Answer.UNCHECKED),
        (b"/Subtype/MMType1/BaseFont/Helvetica", Answer.UNCHECKED),
        (b"/Subtype/Type0/BaseFont/Helvetica/DescendantFonts[]", Answer.UNCHECKED),
        (b"/Encoding/MacExpertEncoding", Answer.UNCHECKED),
        (b"/Encoding<</Differences[49/C57]>>", Answer.UNCHECKED),
        (b"/Encoding<</Differences[48/foo]>>", Answer.UNCHECKED),
        (b"/Encoding<</Differences[4294967345/nine]>>", Answer.UNCHECKED),
        (b"/FirstChar 49/LastChar 49/Widths[66092]", Answer.UNCHECKED),
        (b"/FirstChar 48/LastChar 49/Widths[556 556]", Answer.YES),
        (b"/FirstChar 48.0/LastChar 49/Widths[556 556]", Answer.UNCHECKED),
        (b"/Encoding<</Differences[160/.notdef]>>", Answer.YES),
        (
            b"/FontDescriptor<</FontFile2 0>>/FirstChar 49/LastChar 49/Widths[66092]",
            Answer.UNCHECKED,
        ),
        (
            b"/FontDescriptor<</FontFile3 5 0 R>>/Encoding<</Differences[48/zero.x]>>",
            Answer.UNCHECKED,
        ),
        (
            b"/Subtype/TrueType/BaseFont/X/FontDescriptor<</FontFile2<<>>>>",
            Answer.UNCHECKED,
        ),
        (
            b"/Subtype/TrueType/BaseFont/X/FontDescriptor<</FontFile2 5 0 R>>",
            Answer.UNCHECKED,
        ),
        (b"/Subtype/TrueType/BaseFont/SegoeUISymbol", Answer.UNCHECKED),
        (b"/FirstChar 48/LastChar 48/Widths[556 556]", Answer.UNCHECKED),
    ],
)
@pytest.mark.parametrize("is_drawn", [True, False])
def test_signed_font_is_read_alike(
    font: bytes, wanted: Answer, *, is_drawn: bool
) -> None:
    """Readers choose a program for it, and its letters by their names."""
    own = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica%s>>" % font
    if b"/Subtype" in font:
        own = b"<</Type/Font%s>>" % font
    file = SignedFile(makers().signed(contract({21: _EMPTY, 19: own})))
    look = file.free
    entries = {b"/V": b"(100)"}
    if is_drawn:
        entries[b"/AP"] = b"<</N %d 0 R>>" % look
    form = b"/Subtype/Form/BBox[0 0 120 20]/Resources<</Font<</Helv 19 0 R>>>>"
    drawn = b"BT /Helv 12 Tf 2 4 Td (100) Tj ET"
    later = file.append(
        {21: file.changed(21, entries), look: file.stream(look, drawn, form)}
    )
    report = verify(later, [makers().root])
    assert report.verdict is wanted, report.signatures[0].changes


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (b"/Link/Border[0 0 0]", Answer.YES),
        (b"/Link", Answer.UNCHECKED),
        (b"/Square/C[1 1 1]/IC[1 1 1]", Answer.UNCHECKED),
        (b"/Link/Border[0 0 40]/C[0 0 0]", Answer.UNCHECKED),
        (b"/Link/BS<</W 40>>", Answer.UNCHECKED),
        (b"/FileAttachment", Answer.UNCHECKED),
        (b"/Stamp/Name/Draft", Answer.UNCHECKED),
        (b"/Square/C[1 1 1]/IC[1 1 1]/Elsewhere true", Answer.YES),
        (b"/Line/L[20 70 140 70]/Elsewhere true", Answer.UNCHECKED),
        (b"/Ink/InkList[[20 70 140 70]]/Elsewhere true", Answer.UNCHECKED),
        (b"/Text/Elsewhere true/Rect[141 81 150 90]", Answer.UNCHECKED),
        (b"/Text/Elsewhere true", Answer.YES),
        (b"/Stamp", Answer.UNCHECKED),
        (b"/Link/Border[0 0 40]/AP<</N 26 0 R>>", Answer.UNCHECKED),
        (
            b"/StrikeOut/QuadPoints[20 60 140 60 20 80 140 80]/Elsewhere true",
            Answer.UNCHECKED,
        ),
        (b"/Square/C[1 1 1]/IC[1 1 1]/AP<</N<</X 26 0 R>>>>", Answer.UNCHECKED),
        (b"/Link/Border[0 0 40]/Elsewhere true/Rect[150 60 200 80]", Answer.UNCHECKED),
    ],
)
@pytest.mark.parametrize("is_before", [True, False])
def test_field_is_clear_of_other_annotations(
    kind: bytes, wanted: Answer, *, is_before: bool
) -> None:
    """Poppler draws annotations in their order, and widgets with the others."""
    rect = b"[200 60 240 80]" if b"Elsewhere" in kind else b"[40 60 140 80]"
    order = b"60 0 R 21 0 R" if is_before else b"21 0 R 60 0 R"
    page = (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 400]/Contents 5 0 R"
        b"/Resources<</Font<</F1 7 0 R>>>>/Annots[22 0 R 24 0 R %s]>>" % order
    )
    square = b"<</Type/Annot/Subtype%s%s/F 4>>" % (
        kind,
        b"" if b"/Rect" in kind else b"/Rect" + rect,
    )
    pdf = contract({21: _EMPTY, 3: page, 60: square})
    file = SignedFile(makers().signed(pdf))
    look = file.free
    entries = {b"/V": b"(1000)", b"/AP": b"<</N %d 0 R>>" % look}
    later = file.append(
        {
            21: file.changed(21, entries),
            look: file.look(look, _USUAL["bare"], b"[0 0 120 20]"),
        }
    )
    report = verify(later, [makers().root])
    assert report.verdict is wanted, report.signatures[0].changes


@pytest.mark.parametrize(
    "lines",
    [
        b"1 w 30 1 m 30 19 l S ",
        b"1 w 30 4 m 30 16 l S 60 4 m 60 16 l S 90 4 m 90 16 l S ",
        b"5 w 30 1 m 30 19 l S 60 1 m 60 19 l S 90 1 m 90 19 l S ",
        b"1 w 30 1 m 30 19 l S 60 31 m 60 49 l S 90 31 m 90 49 l S ",
        b"1 w 30 1 m 30 19 l S 60 1 m 60 19 l S 90 1 m 90 19 l S 1 g 0 0 120 20 re f ",
        b"1 w 30 1 m 30 19 l S 60 1 m 60 19 l S 90 1 m 90 19 l S 30 1 m 30 19 l S ",
        b"1 G 1 w 60 1 m 60 19 l S 90 1 m 90 19 l S 0 G 30 1 m 30 19 l S ",
        b"1 w 30 1 m 30 19 l 20 19 l S 60 1 m 60 19 l S 90 1 m 90 19 l S ",
    ],
)
def test_line_of_a_comb_is_no_digit(lines: bytes) -> None:
    """One line alone reads as a digit, and so does a bent one."""
    field = TEXT % b"/Ff 16777216/MaxLen 4" + b">>"
    letters = b"BT /F1 12 Tf 40 4 Td (0) Tj 30 0 Td (0) Tj ET"
    found = filled_in(field, {b"/V": b"(00)"}, lines + letters)
    assert found[0] is Answer.UNCHECKED, found


@pytest.mark.parametrize("part", ["fonts", "encoding", "font"])
def test_stream_is_no_dictionary_of_fonts(part: str) -> None:
    """Some readers take its dictionary, and others have no font."""
    number = filled_number(_EMPTY) + 1
    helvetica = b"/Type/Font/Subtype/Type1/BaseFont/Helvetica"
    objects = {
        "fonts": (b"/Font %d 0 R", b"/Z<<" + helvetica + b">>"),
        "encoding": (
            b"/Font<</Z<<" + helvetica + b"/Encoding %d 0 R>>>>",
            b"/Differences[49/nine]",
        ),
        "font": (b"/Font<</Z %d 0 R>>", helvetica),
    }
    resources, made = objects[part]
    found = filled_in(
        _EMPTY,
        {b"/V": b"(1)"},
        b"BT /Z 12 Tf 2 4 Td (1) Tj ET",
        more={1: stream(b"", made)},
        resources=b"<<" + resources.replace(b"%d", b"%d" % number) + b">>%% %d\n",
    )
    assert found[0] in {Answer.UNCHECKED, Answer.NO}, found


def test_drawing_has_fonts_alone() -> None:
    """A default colour space may turn any colour into white."""
    resources = b"<</Font<</F1 7 0 R>>/ColorSpace<</DefaultGray[/CalGray<<>>]>>>>"
    found = filled_in(
        _EMPTY, {b"/V": b"(1000)"}, _USUAL["bare"], resources=resources + b"%% %d\n"
    )
    assert found[0] is Answer.UNCHECKED, found


@pytest.mark.parametrize(
    ("drawn", "wanted"), [(b"(100)", Answer.YES), (b"(19000)", Answer.UNCHECKED)]
)
def test_code_without_a_glyph_is_not_drawn(drawn: bytes, wanted: Answer) -> None:
    """MuPDF and Firefox show the sign that the code has elsewhere."""
    font = (
        b"/Font<</Z<</Type/Font/Subtype/Type1/BaseFont/Helvetica"
        b"/Encoding<</Differences[57/.notdef]>>>>>>"
    )
    number = filled_number(_EMPTY)
    look = b"/Subtype/Form/BBox[0 0 120 20]/Resources<<%s>>" % font
    value = b"(100)" if wanted is Answer.YES else b"(1000)"
    found = filled_in(
        _EMPTY,
        {b"/V": value, b"/AP": b"<</N %d 0 R>>" % (number + 1)},
        more={1: stream(b"BT /Z 12 Tf 2 4 Td %s Tj ET" % drawn, look)},
    )
    assert found[0] is wanted, found


_GAP: Final = b" " * 30


@pytest.mark.parametrize(
    ("value", "drawn", "wanted"),
    [
        (b"(1%s000)" % _GAP, b"(1 000) Tj", Answer.UNCHECKED),
        (b"(%s1000)" % _GAP, b"(1000) Tj", Answer.UNCHECKED),
        (b"(10\\n\\r\\n\\n00)", b"(10) Tj 0 -11 Td (00) Tj", Answer.UNCHECKED),
        (b"(10\\r\\n00)", b"(10) Tj 0 -11 Td (00) Tj", Answer.YES),
        (b"(1000%s)" % _GAP, b"(1000) Tj", Answer.YES),
        (b"(1\\t\\t000)", b"(1 000) Tj", Answer.UNCHECKED),
        (b"<FEFF003130003000300030>", b"(1 000) Tj", Answer.UNCHECKED),
        (b"<FEFF003100A0003000300030>", b"(1 000) Tj", Answer.YES),
        (b"(100\\n000)", b"(100 000) Tj", Answer.UNCHECKED),
        (b"(100\\n000)", b"(100 000) Tj 0 -11 Td", Answer.UNCHECKED),
        (b"<FEFF00312009200900A0003000300030>", b"(1 000) Tj", Answer.UNCHECKED),
        (b"(1  000)", b"(1  000) Tj", Answer.YES),
    ],
)
def test_gaps_of_a_value_move_nothing_away(
    value: bytes, drawn: bytes, wanted: Answer
) -> None:
    """Firefox shows the value in a box of its own size."""
    drawn = b"BT /F1 8 Tf 2 11 Td %s ET" % drawn
    assert filled_in(_EMPTY, {b"/V": value}, drawn)[0] is wanted


@pytest.mark.parametrize(
    ("options", "value", "drawn", "wanted"),
    [
        (b"[(100)(900)]", b"(900)", b"(900)", Answer.YES),
        (b"[(100)(900)]", b"( 900)", b"(900)", Answer.UNCHECKED),
        (b"[(100)(900)]", b"(90)", b"(90)", Answer.UNCHECKED),
        (b"[(100)(900)(900)]", b"(900)", b"(900)", Answer.YES),
        (b"[(100)(900)]", b"[(100)(900)]", b"(100900)", Answer.UNCHECKED),
        (b"[[(1)(2)(3)]]", b"(1)", b"(1)", Answer.UNCHECKED),
        (b"[[(a)(100)][(b)(900)]]", b"(b)", b"(900)", Answer.YES),
        (b"[[(a)(100)][(b)(900)]]", b"(b)", b"(b)", Answer.UNCHECKED),
        (b"[[(0)(1)][(1)(2)]]", b"(1)", b"(1)", Answer.UNCHECKED),
        (b"[[(0)(1)][(1)(2)]]", b"(1)", b"(2)", Answer.UNCHECKED),
    ],
)
def test_choice_shows_its_option(
    options: bytes, value: bytes, drawn: bytes, wanted: Answer
) -> None:
    """Readers look for it by its value or by its text."""
    field = TEXT.replace(b"/FT/Tx", b"/FT/Ch/Ff 131072/Opt%s" % options) % b"" + b">>"
    found = filled_in(field, {b"/V": value}, b"BT /F1 12 Tf 2 4 Td %s Tj ET" % drawn)
    assert found[0] is wanted, found


@pytest.mark.parametrize("moment", [b"/R", b"/D"])
def test_mouse_shows_the_value(moment: bytes) -> None:
    """Drawings for the mouse are compared with nothing."""
    entries = {b"/V": b"(1)", b"/AP": b"<</N 26 0 R%s 26 0 R>>" % moment}
    signed = TEXT % b"/V(Ana)/AP<</N 26 0 R>>" + b">>"
    assert filled_in(signed, entries)[0] in {Answer.UNCHECKED, Answer.NO}


@pytest.mark.parametrize(
    ("before", "after", "value", "wanted"),
    [
        (b"", b"4", b"", Answer.NO),
        (b"/F 32", b"36", b"", Answer.NO),
        (b"/F 32", b"36", b"(1)", Answer.UNCHECKED),
        (b"", b"4", b"(1)", Answer.YES),
        (b"/F 4", b"6", b"(1)", Answer.NO),
        (b"/F 2", b"2", b"(1)", Answer.YES),
    ],
)
def test_paper_and_screen_show_what_they_showed(
    before: bytes, after: bytes, value: bytes, wanted: Answer
) -> None:
    """An empty field may have a background, which readers draw by themselves."""
    signed = (TEXT % b"/MK<</BG[1 1 0]>>" + b">>").replace(b"/F 4", before)
    entries = {b"/F": after, **({b"/V": value} if value else {})}
    drawn = b"BT /F1 12 Tf 2 4 Td (1) Tj ET" if value else None
    assert filled_in(signed, entries, drawn)[0] is wanted


@pytest.mark.parametrize(
    ("value", "drawn", "wanted"),
    [
        (b"<FEFF202E003000300031>", b"(001)", Answer.UNCHECKED),
        (b"<FEFFE000003100300030>", b"(100)", Answer.UNCHECKED),
        (b"[(100)(900)]", b"(100)", Answer.UNCHECKED),
        (b"[(100)]", b"(100)", Answer.YES),
        (b"<FEFF00AD003100300030>", b"(-100)", Answer.UNCHECKED),
    ],
)
def test_every_sign_of_the_value_counts(
    value: bytes, drawn: bytes, wanted: Answer
) -> None:
    """Some signs turn the order of those that follow; of two texts one is shown."""
    found = filled_in(_EMPTY, {b"/V": value}, b"BT /F1 12 Tf 2 4 Td %s Tj ET" % drawn)
    assert found[0] is wanted, found


@pytest.mark.parametrize("value", [b"[()(x)]", b"<FEFF200B>", b"<FEFF0001>"])
def test_value_without_signs_is_empty(value: bytes) -> None:
    """Its drawing is as blank as that of an empty field."""
    found = filled_in(_EMPTY, {b"/V": value}, b"0 0 120 20 re f")
    assert found[0] is Answer.UNCHECKED, found


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        ({}, Answer.YES),
        ({b"/DA": b"(/Helv 12 Tf 1 g)"}, Answer.UNCHECKED),
        ({b"/DA": b"(/Helv .5 Tf 0 g)"}, Answer.UNCHECKED),
        ({b"/MK": b"<</BG[0]>>"}, Answer.UNCHECKED),
    ],
)
def test_readers_draw_a_value_as_it_was_signed(
    entries: Mapping[bytes, bytes], wanted: Answer
) -> None:
    """A field without an appearance is drawn by its entries."""
    found = filled_in(_EMPTY, {b"/V": b"(1000)", **entries})
    assert found[0] is wanted, found


@pytest.mark.parametrize(
    ("defaults", "value", "wanted"),
    [
        (b"/Helv 12 Tf 0 g", b"(1000)", Answer.YES),
        (b"/Helv 12 Tf 0 g", b"(1\\r000)", Answer.UNCHECKED),
        (b"/Helv 12 Tf 0 g 400 Tc", b"(1000)", Answer.UNCHECKED),
        (b"/Helv 12 Tf 0 g 3 Tr", b"(1000)", Answer.UNCHECKED),
        (b"/Helv 12 Tf /Cour 1 Tf", b"(1000)", Answer.UNCHECKED),
        (b"/Helv 12 Tf 0 g 1 g", b"(1000)", Answer.UNCHECKED),
        (b"/Helv 12 Tf 0 0 0 1 g", b"(1000)", Answer.UNCHECKED),
        (b"/Helv 12 Tf 0 0 0 1 k", b"(1000)", Answer.YES),
        (b"/ZaDb 12 Tf 0 g", b"(1000)", Answer.UNCHECKED),
        (b"0 g", b"(1000)", Answer.UNCHECKED),
    ],
)
def test_signed_entries_draw_a_value_plainly(
    defaults: bytes, value: bytes, wanted: Answer
) -> None:
    """A field without an appearance is drawn by each reader in its own way."""
    field = _EMPTY.replace(b"/Helv 8 Tf", defaults)
    found = filled_in(field, {b"/V": value})
    assert found[0] is wanted, found


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        ({b"/DA": b"(/Helv 12 Tf 0 0 .5 rg)"}, Answer.YES),
        ({b"/DA": b"(0 g /Helv 0 Tf)", b"/MK": b"<</BG[1 1 .9]/BC[0]>>"}, Answer.YES),
        ({b"/DA": b"(/Helv 12 Tf 1 g)"}, Answer.UNCHECKED),
        ({b"/DA": b"(/Helv .5 Tf 0 g)"}, Answer.UNCHECKED),
        ({b"/DA": b"(/Helv 12 Tf 0 g 3 Tr)"}, Answer.UNCHECKED),
        ({b"/DA": b"(/Helv 12 Tf 0 0 0 1 g)"}, Answer.UNCHECKED),
        ({b"/DA": b"(/Helv 12 Tf 0 1 1 1 rg)"}, Answer.UNCHECKED),
        ({b"/MK": b"<</BG[0]>>"}, Answer.UNCHECKED),
        ({b"/MK": b"<</R 180>>"}, Answer.UNCHECKED),
        ({b"/MK": b"<</R 90>>"}, Answer.UNCHECKED),
        ({b"/MK": b"<</R 0/BC[0]>>"}, Answer.YES),
        ({b"/DA": b"(/Helv 13 Tf 0 g)"}, Answer.YES),
        ({b"/DA": b"(/Helv 14 Tf 0 g)"}, Answer.UNCHECKED),
        ({b"/DA": b"(/Helv 0 Tf 0 g)"}, Answer.YES),
    ],
)
def test_value_can_be_read_where_readers_draw_it(
    entries: Mapping[bytes, bytes], wanted: Answer
) -> None:
    """Firefox draws fields by these entries, whatever their appearance is."""
    found = filled_in(_EMPTY, {b"/V": b"(1000)", **entries}, _USUAL["bare"])
    assert found[0] is wanted, found


@pytest.mark.parametrize(
    ("below", "wanted"),
    [
        (b"", Answer.YES),
        (b" .9 g 0 0 300 400 re f", Answer.YES),
        (b" 0 g 28 60 60 20 re f", Answer.UNCHECKED),
        (b" .2 g 0 0 300 400 re f", Answer.UNCHECKED),
    ],
)
def test_letters_are_seen_on_their_page(below: bytes, wanted: Answer) -> None:
    """The page may have the letters' colour where the field is."""
    pdf = contract({21: _EMPTY, 5: stream(line(b"Precio: 100") + below)})
    file = SignedFile(makers().signed(pdf))
    look = file.free
    entries = {b"/V": b"(1000)", b"/AP": b"<</N %d 0 R>>" % look}
    drawn = _USUAL["bare"].replace(b"0 g", b".2 g" if b".2" in below else b"0 g")
    later = file.append(
        {21: file.changed(21, entries), look: file.look(look, drawn, b"[0 0 120 20]")}
    )
    report = verify(later, [makers().root])
    assert report.verdict is wanted, report.signatures[0].changes


@pytest.mark.parametrize(("most", "wanted"), [(3, Answer.UNCHECKED), (4, Answer.YES)])
def test_value_is_no_longer_than_it_may(most: int, wanted: Answer) -> None:
    """Firefox cuts a longer one."""
    field = TEXT % b"/MaxLen %d" % most + b">>"
    assert filled_in(field, {b"/V": b"(1000)"}, _USUAL["bare"])[0] is wanted


@pytest.mark.parametrize(
    ("kid", "entries", "wanted"),
    [
        (b"", {}, Answer.YES),
        (b"/V(900)", {}, Answer.UNCHECKED),
        (b"", {b"/MK": b"<</BG[0]>>"}, Answer.UNCHECKED),
        (b"", {b"/MK": b"<</BG[.9]>>"}, Answer.YES),
    ],
)
def test_widgets_of_a_field_show_its_value(
    kid: bytes, entries: Mapping[bytes, bytes], wanted: Answer
) -> None:
    """A widget may have a value of its own, or a background of the letters' colour."""
    form = b"<</Fields[40 0 R 22 0 R 24 0 R]/DA(/Helv 12 Tf 0 g)>>"
    widget = b"<<%s/Parent 40 0 R%s/Rect[20 60 140 80]>>" % (WIDGET, kid)
    pdf = contract({20: form, 40: b"<</T(p)/FT/Tx/Kids[21 0 R]>>", 21: widget})
    file = SignedFile(makers().signed(pdf))
    look = file.free
    looks = {b"/AP": b"<</N %d 0 R>>" % look, **entries}
    later = file.append(
        {
            40: file.changed(40, {b"/V": b"(1000)"}),
            21: file.changed(21, looks),
            look: file.look(look, _USUAL["bare"], b"[0 0 120 20]"),
        }
    )
    report = verify(later, [makers().root])
    assert report.verdict is wanted, report.signatures[0].changes


@pytest.mark.parametrize(
    ("turn", "wanted"), [(b"180", Answer.UNCHECKED), (b"90", Answer.YES)]
)
def test_field_that_was_signed_upside_down_is_not_believed(
    turn: bytes, wanted: Answer
) -> None:
    """Firefox turns it, and other readers draw it as its look says."""
    field = TEXT % (b"/MK<</R %s>>" % turn) + b">>"
    assert filled_in(field, {b"/V": b"(1000)"}, _USUAL["bare"])[0] is wanted


_RICH: Final = b"<body><p>%s</p></body>"


@pytest.mark.parametrize(
    ("rich", "wanted"),
    [
        (None, Answer.UNCHECKED),
        (b"(%s)" % (_RICH % b"1"), Answer.YES),
        (b"(%s)" % (_RICH % b"9"), Answer.NO),
        (b'(<p style="color:#000000;font-size:9pt">1</p>)', Answer.YES),
        (b'(<p style="color:#ffffff">1</p>)', Answer.UNCHECKED),
        (b"(<p><!-- x -->1</p>)", Answer.UNCHECKED),
    ],
)
def test_rich_text_follows_the_value(rich: bytes | None, wanted: Answer) -> None:
    """Some readers show rich text in place of the value."""
    signed = TEXT % b"/V(9)/AP<</N 26 0 R>>/RV(<p>9</p>)" + b">>"
    entries = {b"/V": b"(1)"} | ({} if rich is None else {b"/RV": rich})
    found = filled_in(signed, entries, b"BT /F1 12 Tf 2 4 Td (1) Tj ET")
    assert found[0] is wanted, found


def test_rich_text_may_be_a_stream() -> None:
    """ISO 32000-2, table 228."""
    signed = TEXT % b"/V(9)/AP<</N 26 0 R>>/RV(<p>9</p>)" + b">>"
    number = filled_number(signed) + 1
    found = filled_in(
        signed,
        {b"/V": b"(1)", b"/RV": b"%d 0 R" % number},
        b"BT /F1 12 Tf 2 4 Td (1) Tj ET",
        more={1: stream(_RICH % b"1")},
    )
    assert found[0] is Answer.YES, found


def test_long_values_are_told_from_where_they_differ() -> None:
    """Two beginnings that are alike tell nothing."""
    clause = b"El comprador paga " + b"lo convenido y " * 20
    field = TEXT % (b"/V(%s100)" % clause) + b">>"
    file = SignedFile(makers().signed(contract({21: field})))
    entries = {b"/V": b"(%s900%s)" % (clause, b" pesos" * 40)}
    report = verify(file.append({21: file.changed(21, entries)}), [makers().root])

    told = report.signatures[0].filled[0]

    assert told.before.startswith("…")
    assert told.before.endswith("100")
    assert "900 pesos" in told.after
    assert told.after.endswith("…")
    assert max(len(told.before), len(told.after)) <= 200
