"""Later revisions that keep the letter of a signed file, and change its meaning.

The pictures of pages reach 40 pages. Each file here has its change on a later one, or
looks the same to PDFium, so that the rules alone must find it.
"""

import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import (
    BasicConstraints,
    CertificateBuilder,
    load_der_x509_certificate,
    random_serial_number,
)

from appliance.domain.documents.verification import Answer
from tests.support.documents.contract_pdf import contract, line, stream
from tests.support.documents.filled_fields import TEXT, WIDGET, filled_in
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import Makers, base, makers
from worker.sandbox.verify.verify import verify

_PAGES: Final = 45
_FIRST: Final = 100
"""Number of the first page."""
_LAST: Final = _FIRST + _PAGES - 1
_OBJECT: Final = 200
"""First number of the last page's objects."""
_BOX: Final = b"/MediaBox[0 0 300 400]"


def long_file(last: bytes, objects: Mapping[int, bytes]) -> SignedFile:
    """Sign a file whose last page, beyond those that are compared, is given."""
    numbers = range(_FIRST, _FIRST + _PAGES)
    kids = b" ".join(b"%d 0 R" % each for each in numbers)
    page = b"<</Type/Page/Parent 2 0 R/Contents 6 0 R%s>>" % _BOX
    pages = dict.fromkeys(numbers, page)
    pages[_FIRST] = page[:-2] + b"/Annots[21 0 R 22 0 R 24 0 R]>>"
    pages[_LAST] = b"<</Type/Page/Parent 2 0 R%s%s>>" % (_BOX, last)
    tree = b"<</Type/Pages/Kids[%s]/Count %d/Resources<</Font<</F1 7 0 R>>>>>>"
    pdf = contract({2: tree % (kids, _PAGES), **pages, **objects})
    return SignedFile(makers().signed(pdf))


def answer(file: SignedFile, objects: Mapping[int, bytes]) -> tuple[Answer, str]:
    """Append objects and all pages but the last, and judge what follows."""
    again = {each: file.changed(each) for each in range(_FIRST, _LAST)}
    report = verify(file.append({**again, **objects}), [makers().root])
    assert report.pages_compared < report.pages_changed
    return report.verdict, report.signatures[0].changes.reason


def test_string_in_another_encoding_is_another_string() -> None:
    """A palette in UTF-16 has other colours, and is the same text to pyHanko."""
    last = b"/Contents 202 0 R/Resources<</XObject<</Im 201 0 R>>>>"
    image = b"/Type/XObject/Subtype/Image/Width 2/Height 1/BitsPerComponent 8"
    file = long_file(
        last,
        {
            _OBJECT: b"[/Indexed/DeviceRGB 1(ABCDEF)]",
            201: stream(b"\0\1", image + b"/ColorSpace 200 0 R"),
            202: stream(b"q 200 0 0 200 20 20 cm /Im Do Q"),
        },
    )
    palette = b"[/Indexed/DeviceRGB 1<FEFF%s>]" % b"".join(
        b"00%02X" % each for each in b"ABCDEF"
    )
    verdict, reason = answer(file, {_OBJECT: palette})
    assert verdict is Answer.NO
    assert "page 45" in reason


def test_name_in_another_encoding_is_not_passed() -> None:
    """A resource in Latin-1 is not found, though it reads alike; the same bytes are."""
    last = b"/Contents 202 0 R/Resources 200 0 R"
    names = b"<</Font<</F1 7 0 R>>/XObject<</%s 9 0 R>>>>"
    content = stream(line(b"Fin") + b" /#C3#A9 Do")
    file = long_file(last, {_OBJECT: names % b"#C3#A9", 202: content})
    assert answer(file, {_OBJECT: names % b"#E9"})[0] is Answer.NO
    assert answer(file, {_OBJECT: names % b"#C3#A9"})[0] is Answer.YES


@pytest.mark.parametrize("looks", [b"", b"/DA(/Foo 12 Tf 0 g)"])
@pytest.mark.parametrize("shown", [False, True])
def test_defaults_may_not_draw_a_signed_value(looks: bytes, *, shown: bool) -> None:
    """A value without an appearance is drawn by the form's added defaults."""
    appearance = b"/AP<</N 26 0 R>>" if shown else b""
    field = b"/FT/Tx/T(Precio)/V(900.000)/Rect[20 200 200 230]%s%s" % (
        looks, appearance,
    )  # fmt: skip
    file = long_file(
        b"/Contents 6 0 R/Annots[200 0 R]",
        {
            _OBJECT: b"<</Type/Annot/Subtype/Widget/F 4%s>>" % field,
            20: b"<</Fields[21 0 R 22 0 R 24 0 R 200 0 R]/DR<</Font<<>>>>>>",
            201: b"<</Type/Font/Subtype/Type1/BaseFont/ZapfDingbats>>",
        },
    )
    entries = {b"/DA": b"(/Foo 20 Tf)", b"/DR": b"<</Font<</Foo 201 0 R>>>>"}
    verdict, reason = answer(file, {file.form: file.changed(file.form, entries)})
    if shown:
        assert verdict is Answer.YES
    else:
        assert verdict is Answer.NO
        assert '"Precio"' in reason


def test_font_for_a_missing_font_may_be_added() -> None:
    """PDFBox adds Helvetica to each form without it."""
    file = long_file(
        b"/Contents 6 0 R/Annots[200 0 R]",
        {
            _OBJECT: b"<</Type/Annot/Subtype/Widget/F 4/FT/Tx/T(Precio)/V(100)"
            b"/DA(/Helv 12 Tf 0 g)/Rect[20 200 200 230]>>",
            20: b"<</Fields[21 0 R 22 0 R 24 0 R 200 0 R]/DR<</Font<<>>>>>>",
        },
    )
    entries = {b"/DR": b"<</Font<</Helv 19 0 R>>>>"}
    found = answer(file, {file.form: file.changed(file.form, entries)})
    assert found[0] is Answer.YES


def judged(objects: Mapping[int, bytes]) -> tuple[Answer, str]:
    """Append objects to a B-B file and judge what follows."""
    report = verify(SignedFile(base("B-B")).append(objects), [makers().root])
    return report.verdict, report.signatures[0].changes.reason


def test_new_field_on_a_page_has_a_place() -> None:
    """MuPDF draws an empty signature field without /Rect over the whole page."""
    file = SignedFile(base("B-B"))
    widget = b"<</Type/Annot/Subtype/Widget/FT/Sig/T(Otra)/F 4/P %d 0 R%s>>"
    found = [
        judged(
            {
                file.free: widget % (file.page, place),
                file.page: file.changed(
                    file.page, {b"/Annots": file.listed("Annots", file.free)}
                ),
                **file.form_with(file.free),
            }
        )
        for place in (b"", b"/Rect[0 0 0 0]")
    ]
    assert found[0] == (Answer.NO, 'the new field "Otra" has no place on its page')
    assert found[1][0] is Answer.YES


@pytest.mark.parametrize("flags", [b"0", b"260"])
def test_filled_field_stays_on_paper_and_screen(flags: bytes) -> None:
    """A value that is shown is printed, too."""
    file = SignedFile(base("B-B"))
    text = file.field("Nombre")
    entries = {b"/V": b"(Eva)", b"/F": flags}
    verdict, reason = judged({text: file.changed(text, entries)})
    assert verdict is Answer.NO
    assert "hidden or shown" in reason


def test_box_shows_its_value() -> None:
    """A box that is shown checked has the value of that state."""
    file = SignedFile(base("B-B"))
    box = file.field("Acepto")
    verdict, reason = judged({box: file.changed(box, {b"/AS": b"/Yes"})})
    assert verdict is Answer.NO
    assert "another state than its value" in reason


@pytest.mark.parametrize("value", [b"<FEFF0041006E0061>", b"stream"])
def test_value_in_another_form_is_the_same_value(value: bytes) -> None:
    """Another encoding, or a stream, hides no other drawing of the same value."""
    file = SignedFile(base("B-B"))
    text, free = file.field("Nombre"), file.free
    value = b"%d 0 R" % (free + 1) if value == b"stream" else value
    entries = {b"/V": value, b"/AP": b"<</N %d 0 R>>" % free}
    verdict, reason = judged(
        {
            text: file.changed(text, entries),
            free: file.look(free, line(b"Eva", 2, 4), b"[0 0 120 20]"),
            free + 1: file.stream(free + 1, b"Ana"),
        }
    )
    assert verdict is Answer.NO
    assert "shows something else with the same value" in reason


def test_filled_field_over_text_is_stated() -> None:
    """The report says that a filled field hides what the page shows."""
    field = b"<</Type/Annot/Subtype/Widget/F 4/P 3 0 R/FT/Tx/T(Nombre)%s>>"
    pdf = contract({21: field % b"/DA(/Helv 9 Tf)/Rect[0 0 300 400]"})
    file = SignedFile(makers().signed(pdf))
    text, look = file.field("Nombre"), file.free
    white = b"1 g 0 0 300 400 re f"
    found = [
        verify(
            file.append(
                {
                    text: file.changed(
                        text, {b"/V": b"(x)", b"/AP": b"<</N %d 0 R>>" % look}
                    ),
                    look: file.look(look, drawn),
                }
            ),
            [makers().root],
        )
        for drawn in (white, line(b"x", 2, 4))
    ]
    assert [each.text_covered for each in found] == [Answer.YES, Answer.NO]


_SHOWN: Final = b"/AP<</N 26 0 R>>>>"


_OTHER_LOOK: Final = line(b"900", 2, 4)


@pytest.mark.parametrize(
    ("field", "entries"),
    [
        (TEXT % b"/V(100)" + _SHOWN, {}),
        (TEXT % b"/V(100)" + _SHOWN, {b"/AS": b"/N"}),
        (TEXT % b"/V(100)" + _SHOWN, {b"/AS": b"/Off"}),
        (
            TEXT.replace(b"/Tx", b"/Ch") % b"/Opt[(100)(900)]/V[(100)]" + _SHOWN,
            {b"/V": b"(100)"},
        ),
        (
            TEXT.replace(b"/Tx", b"/Ch") % b"/Opt[(100)(900)]/V(100)" + _SHOWN,
            {b"/V": b"[<FEFF003100300030>]", b"/AS": b"/N"},
        ),
        (TEXT.replace(b"/Tx", b"/Btn/Ff 65536") % b"" + _SHOWN, {}),
        (TEXT.replace(b"/Tx", b"/Btn/Ff 65536") % b"" + _SHOWN, {b"/AS": b"/Off"}),
        (TEXT.replace(b"/Tx", b"/Btn/Ff 65536") % b"" + _SHOWN, {b"/V": b"/Off"}),
        (TEXT.replace(b"/Tx", b"/Btn/Ff 65536") % b"" + _SHOWN, {b"/V": b"(9)"}),
    ],
)
def test_same_value_keeps_its_look(
    field: bytes, entries: Mapping[bytes, bytes | None]
) -> None:
    """A state means nothing to a text or choice, and a push button has no value."""
    assert filled_in(field, entries, _OTHER_LOOK)[0] is Answer.NO


@pytest.mark.parametrize("entries", [{b"/I": b"[1]"}, {b"/TI": b"1"}])
def test_choice_marks_its_value(entries: Mapping[bytes, bytes | None]) -> None:
    """Another marked option is another value to some readers."""
    field = TEXT.replace(b"/Tx", b"/Ch") % b"/Opt[(100)(900)]/V(100)/I[0]" + _SHOWN
    assert filled_in(field, entries)[0] is Answer.NO
    changed = {b"/V": b"(900)", b"/I": b"[0]"}
    assert filled_in(field, changed, _OTHER_LOOK)[0] is Answer.UNCHECKED
    assert filled_in(field, {**changed, b"/I": b"[1]"}, _OTHER_LOOK)[0] is Answer.YES


@pytest.mark.parametrize(
    ("signed", "entries", "drawn", "wanted"),
    [
        (b"/V(Ana)" + _SHOWN[:-2], {b"/V": None, b"/AP": None}, None, Answer.YES),
        (b"/V(Ana)" + _SHOWN[:-2], {b"/V": b"()"}, b"/Tx BMC EMC", Answer.YES),
        (b"", {b"/V": b"()"}, b"/Tx BMC q BT () Tj ET Q EMC", Answer.YES),
        (b"", {b"/V": b"()"}, b"0 0 9 9 re f", Answer.UNCHECKED),
        (b"", {}, b"0 0 9 9 re 0f", Answer.UNCHECKED),
        (b"", {}, b"0 0 9 9 re 1.f", Answer.UNCHECKED),
        (b"", {}, b"0 0 9 9 re\x00f\x00", Answer.UNCHECKED),
        (b"", {}, b"0 0 9 9 re f\x80", Answer.UNCHECKED),
        # A font may draw anything for a space.
        (b"/V(x)", {b"/V": b"()"}, b"BT /F1 9 Tf ( ) Tj ET", Answer.UNCHECKED),
        (b"/V(x)", {b"/V": b"()"}, b"/Tx BMC q BT /F1 9 Tf <> Tj ET Q EMC", Answer.YES),
        (b"/V()", {b"/V": b"(Ana)"}, line(b"Ana", 2, 4), Answer.YES),
        (b"/V(x)/Ff 8192", {b"/V": b"(yz)"}, line(b"**", 2, 4), Answer.YES),
        (b"/V(x)", {b"/V": b"()"}, b"0 0 9 9 re f", Answer.UNCHECKED),
        (b"/V(x)", {b"/V": b"( )"}, b"0 0 9 9 re f", Answer.UNCHECKED),
        (
            b"/V(x)",
            {b"/V": b"(yz)", b"/Ff": b"8192"},
            line(b"**", 2, 4),
            Answer.UNCHECKED,
        ),
        (b"/V(x)", {b"/V": b"(yz)", b"/Ff": b"1"}, line(b"yz", 2, 4), Answer.YES),
    ],
)
def test_field_may_be_cleared_and_filled(
    signed: bytes,
    entries: Mapping[bytes, bytes | None],
    drawn: bytes | None,
    wanted: Answer,
) -> None:
    """An empty field may get an empty drawing, and nothing else."""
    found = filled_in(TEXT % signed + b">>", entries, drawn)
    assert found[0] is wanted, found


_STATES: Final = b"/AP<</N<</Yes 27 0 R/Off 28 0 R>>>>>>"
_BOX_FIELD: Final = TEXT.replace(b"/Tx", b"/Btn") % b"%s" + _STATES


@pytest.mark.parametrize(
    ("signed", "entries", "wanted"),
    [
        (b"/V/Off/AS/Off", {b"/V": b"/Yes", b"/AS": b"/Yes"}, Answer.YES),
        (b"/V/Yes/AS/Yes", {b"/V": b"/Off", b"/AS": b"/Off"}, Answer.YES),
        (b"/V/Yes/AS/Yes", {b"/V": b"/Off", b"/AS": None}, Answer.YES),
        (b"/V/Off/AS/Off", {b"/V": b"/Yes"}, Answer.NO),
        (b"/V/Off/AS/Off", {b"/V": b"/Other"}, Answer.NO),
        (b"/V/Yes/AS/Yes", {b"/AS": b"/Off"}, Answer.NO),
        (b"/V/Yes/AS/Yes", {b"/AS": None}, Answer.NO),
        (b"/V/Yes/AS/Yes", {b"/AS": b"/Other"}, Answer.NO),
    ],
)
def test_box_shows_exactly_its_value(
    signed: bytes, entries: Mapping[bytes, bytes | None], wanted: Answer
) -> None:
    """A state that is missing, or has no drawing, is off."""
    assert filled_in(_BOX_FIELD % signed, entries)[0] is wanted


@pytest.mark.parametrize("value", [b"", b"/V/Off"])
@pytest.mark.parametrize("looks", [b"", b"/AP<<>>"])
def test_box_without_drawings_shows_its_value(value: bytes, looks: bytes) -> None:
    """Its state alone may not change."""
    field = TEXT.replace(b"/Tx", b"/Btn") % (value + looks) + b">>"
    assert filled_in(field, {b"/AS": b"/Yes"})[0] is Answer.NO


_BELOW: Final = b"<<%s/Parent 40 0 R%%s/Rect[20 60 140 80]/AP<</N 26 0 R>>>>" % WIDGET
_ABOVE: Final = b"<</T(p)/FT/Tx/V(100)/Kids[%d 0 R]>>"


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({40: _ABOVE % 21, 21: _BELOW % b"/T(Monto)"}, Answer.NO),
        # A widget within a widget shows the same value.
        (
            {
                40: _ABOVE % 41,
                41: b"<</Parent 40 0 R/Kids[21 0 R]>>",
                21: _BELOW.replace(b"40", b"41") % b"",
            },
            Answer.UNCHECKED,
        ),
    ],
)
def test_value_of_a_field_above_is_looked_at(
    fields: Mapping[int, bytes], wanted: Answer
) -> None:
    """It is the value of the fields below, which still show the one before."""
    form = b"<</Fields[40 0 R 22 0 R 24 0 R]/DA(/F1 9 Tf)>>"
    file = SignedFile(makers().signed(contract({20: form, **fields})))
    changed = file.append({40: file.changed(40, {b"/V": b"(900)"})})
    assert verify(changed, [makers().root]).verdict is wanted


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ((b"/Off", b"/b"), Answer.YES),
        ((b"/a", b"/Off"), Answer.NO),
        ((b"/a", b"/b"), Answer.NO),
        ((b"/Off", b"/Off"), Answer.NO),
    ],
)
def test_radio_buttons_show_exactly_their_value(
    shown: tuple[bytes, bytes], wanted: Answer
) -> None:
    """Each button is looked at, those that were not changed among them."""
    button = b"<<%s/Parent 40 0 R/AS%%s/Rect[%%d 20 %%d 40]/AP<</N<</%%s 27 0 R/Off"
    button = button % WIDGET + b" 28 0 R>>>>>>"
    pdf = contract(
        {
            20: b"<</Fields[21 0 R 22 0 R 24 0 R 40 0 R]>>",
            23: button % (b"/a", 20, 40, b"a"),
            14: button % (b"/Off", 50, 70, b"b"),
            40: b"<</FT/Btn/Ff 49152/T(Pago)/V/a/Kids[23 0 R 14 0 R]>>",
            3: b"<</Type/Page/Parent 2 0 R/Contents 6 0 R/Annots[14 0 R 21 0 R 22 0 R"
            b" 23 0 R 24 0 R]>>",
        }
    )
    file = SignedFile(makers().signed(pdf))
    kids = {
        kid: file.changed(kid, {b"/AS": state})
        for kid, state, had in zip((23, 14), shown, (b"/a", b"/Off"), strict=True)
        if state != had
    }
    later = file.append({40: file.changed(40, {b"/V": b"/b"}), **kids})
    assert verify(later, [makers().root]).verdict is wanted


def test_field_keeps_its_object() -> None:
    """Another object with the same name has another value and the same look."""
    file = SignedFile(base("B-B"))
    text, free = file.field("Nombre"), file.free
    fields = file.qpdf.Root.AcroForm.Fields.unparse(resolved=True)
    renamed = fields.replace(b"%d 0 R" % text, b"%d 0 R" % free)
    verdict, reason = judged(
        {
            free: file.changed(text, {b"/V": b"(900.000)"}),
            file.form: file.changed(file.form, {b"/Fields": renamed}),
        }
    )
    assert verdict is Answer.NO
    assert reason == 'the field "Nombre" was replaced after it'


def test_text_of_a_field_whose_widget_has_its_type_is_compared() -> None:
    """A type that only the widget has is a type."""
    file = SignedFile(
        makers().signed(
            contract(
                {
                    21: b"<</T(Nombre)/V(100)/Kids[23 0 R]>>",
                    23: b"<<%s/FT/Tx/Parent 21 0 R/Rect[20 60 140 80]%s"
                    % (WIDGET, _SHOWN),
                }
            )
        )
    )
    look = file.free
    later = file.append(
        {
            21: file.changed(21, {b"/V": b"(200)"}),
            23: file.changed(23, {b"/AP": b"<</N %d 0 R>>" % look}),
            look: file.look(look, _OTHER_LOOK, b"[0 0 120 20]"),
        }
    )
    assert verify(later, [makers().root]).verdict is Answer.UNCHECKED


@pytest.mark.parametrize(
    ("drawn", "covers"),
    [
        (b"1 g 81 5 21 25 re f", True),
        (b"1 g 0 0 190 40 re f 0 g " + line(b"Precio: 900", 10, 10), True),
        (b"1 w 1 1 188 38 re S", False),
    ],
)
@pytest.mark.parametrize("pages", [0, 80])
def test_filled_field_leaves_signed_text_alone(
    drawn: bytes, covers: bool, pages: int
) -> None:
    """Two digits are enough, on any page; a field may stand over its own label."""
    numbers = [*range(_FIRST, _FIRST + pages)]
    kids = b"".join(b" %d 0 R" % each for each in numbers)
    dense = b" ".join(line(b"Clausula", 20, y) for y in range(0, 400, 4))
    extra = dict.fromkeys(numbers, b"<</Type/Page/Parent 2 0 R/Contents 6 0 R>>")
    tree = b"<</Type/Pages/Kids[4 0 R%s 3 0 R]/Count %d/MediaBox[0 0 300 400]"
    extra |= {
        2: tree % (kids, pages + 2) + b"/Resources<</Font<</F1 7 0 R>>>>>>",
        6: stream(dense),
        21: b"<<%s/FT/Tx/T(Nombre)/Rect[10 290 200 330]>>" % WIDGET,
    }
    file = SignedFile(makers().signed(contract(extra)))
    look = file.free
    entries = {b"/V": b"(-)", b"/AP": b"<</N %d 0 R>>" % look}
    form = b"/Subtype/Form/BBox[0 0 %d 40]/Resources<</Font<</F1 7 0 R>>>>"
    later = file.append(
        {
            21: file.changed(21, entries),
            look: file.stream(look, drawn + b" " + line(b"-", 150, 10), form % 190),
        }
    )
    report = verify(later, [makers().root])
    assert report.covered_pages == ((pages + 2,) if covers else ())
    reason = report.signatures[0].changes.reason
    assert (f"text of page {pages + 2}" in reason) is covers
    assert report.verdict is (Answer.UNCHECKED if covers else Answer.YES)


@pytest.mark.parametrize("opaque", [False, True])
def test_filled_field_hides_no_other_value(*, opaque: bool) -> None:
    """The value of a field below it is signed text, too."""
    below = b"<<%s/FT/Tx/T(Monto)/V(100)/Rect[150 62 190 78]%s"
    pdf = contract(
        {
            20: b"<</Fields[21 0 R 22 0 R 23 0 R 24 0 R]>>",
            3: b"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 7 0 R>>>>"
            b"/Annots[23 0 R 21 0 R 22 0 R 24 0 R]>>",
            21: b"<<%s/FT/Tx/T(Nombre)/Rect[20 60 240 80]>>" % WIDGET,
            23: below % (WIDGET, _SHOWN),
        }
    )
    file = SignedFile(makers().signed(pdf))
    look = file.free
    paper = b"1 g 0 0 220 20 re f 0 g " if opaque else b""
    later = file.append(
        {
            21: file.changed(21, {b"/V": b"(x)", b"/AP": b"<</N %d 0 R>>" % look}),
            look: file.look(look, paper + line(b"x", 2, 4), b"[0 0 220 20]"),
        }
    )
    report = verify(later, [makers().root])
    assert report.text_covered is (Answer.YES if opaque else Answer.NO)
    assert report.verdict is Answer.UNCHECKED


@pytest.mark.parametrize("outside", [False, True])
def test_unexamined_rules_leave_a_filled_field_unchecked(
    monkeypatch: pytest.MonkeyPatch, *, outside: bool
) -> None:
    """A field may have been filled in; what else looks different was changed."""
    later = makers().filled(base("B-B"))
    if outside:
        file = SignedFile(later)
        content = file.stream(file.content, line(b"Precio: 900"))
        later = file.append({file.content: content})
    monkeypatch.setattr("worker.sandbox.verify.later_revisions._STEPS", 1)
    report = verify(later, [makers().root])
    assert report.verdict is (Answer.NO if outside else Answer.UNCHECKED)


_RDF: Final = (
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    b'<rdf:Description rdf:about=""/></rdf:RDF>'
)


@pytest.mark.parametrize(
    ("xmp", "wanted"),
    [
        (b'<x:xmpmeta xmlns:x="adobe:ns:meta/">%s</x:xmpmeta>' % _RDF, Answer.YES),
        (_RDF, Answer.UNCHECKED),
        (_RDF.decode().encode("utf-16"), Answer.UNCHECKED),
    ],
)
def test_metadata_in_another_form_is_unchecked(xmp: bytes, wanted: Answer) -> None:
    """XMP may be in UTF-16, and without its outer element."""
    file = SignedFile(base("B-B"))
    stored = file.stream(file.free, xmp, b"/Type/Metadata/Subtype/XML")
    named = {b"/Metadata": b"%d 0 R" % file.free}
    catalog = file.changed(file.catalog, named)
    assert judged({file.free: stored, file.catalog: catalog})[0] is wanted


def _other_authorities() -> list[bytes]:
    """Make certificates with the name of the signers' authority and other keys."""
    issuer = load_der_x509_certificate(makers().signer.certificate).issuer
    now = datetime.now(UTC)
    keys: list[rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey] = [
        rsa.generate_private_key(65_537, 2048),
        ec.generate_private_key(ec.SECP256R1()),
    ]
    made = [
        CertificateBuilder()
        .subject_name(issuer)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
        for key in keys
    ]
    certificates = [each.public_bytes(Encoding.DER) for each in made]
    unknown = certificates[1].replace(
        bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex("06072a8648ce3d0209")
    )
    return [*certificates, unknown]


@pytest.mark.parametrize("name", ["B-B", "B-T"])
def test_certificate_with_another_key_is_no_issuer(name: str) -> None:
    """Anybody may add one with the name of an authority to the DSS."""
    file = SignedFile(base(name))
    stored = {
        file.free + at: file.stream(file.free + at, der)
        for at, der in enumerate(_other_authorities())
    }
    certificates = b" ".join(b"%d 0 R" % each for each in stored)
    entries = {b"/DSS": b"<</Certs[%s]>>" % certificates}
    later = file.append({file.catalog: file.changed(file.catalog, entries), **stored})
    assert verify(later, [makers().root]).verdict is Answer.YES


_FRESH: Final = """
import sys
from worker.sandbox.verify.verify import verify
pdf, root = (open(path, "rb").read() for path in sys.argv[1:])
print(verify(pdf, [root]).verdict.value)
"""


def test_font_that_is_not_embedded_looks_the_same(tmp_path: Path) -> None:
    """PDFium draws the first such page of a process differently."""
    font = b"<</Type/Font/Subtype/TrueType/BaseFont/Calibri/ToUnicode 8 0 R>>"
    pdf = makers().signed(makers().signed(contract({7: font})))
    paths = [tmp_path / "signed.pdf", tmp_path / "root.der"]
    for path, data in zip(paths, (pdf, makers().root), strict=True):
        path.write_bytes(data)
    found = subprocess.run(
        [sys.executable, "-c", _FRESH, *paths],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.strip() == Answer.YES.value


def test_revocation_that_was_once_in_the_file_counts() -> None:
    """A later revision may empty the DSS, and revokes nothing back."""
    do = Makers.now()
    certificate = load_der_x509_certificate(do.signer.certificate)
    do.pki.revoked.add(certificate.serial_number)
    pdf = do.with_dss(do.signed(contract(), timestamp=True))
    file = SignedFile(pdf)
    store = int(file.qpdf.Root.DSS.objgen[0])
    entries = dict.fromkeys((b"/Certs", b"/CRLs", b"/OCSPs"), b"[]")
    emptied = file.append({store: file.changed(store, entries)})
    for each in (pdf, emptied):
        (signature,) = verify(each, [do.root]).signatures
        assert signature.revocation.answer is Answer.NO
