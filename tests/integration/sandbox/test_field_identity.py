"""Objects of a form are known by what refers to them, and not by their names.

Source: ISO 32000-2, 12.5.2, 12.7.3 to 12.7.6 and 14.7.5.3.
"""

from collections.abc import Mapping
from typing import Final

import pytest

from appliance.domain.documents.verification import Answer, VerificationReport
from tests.support.documents.contract_pdf import contract, drawing, line, stream
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import base, makers
from worker.sandbox.verify.verify import verify

WIDGET: Final = b"/Type/Annot/Subtype/Widget/F 4/P 3 0 R"
LOOK: Final = b"/DA(/Helv 12 Tf 0 g)/AP<</N 26 0 R>>"
DEFAULTS: Final = b"/DA(/Helv 12 Tf 0 g)/DR<</Font<</Helv 19 0 R>>>>"
PAGE: Final = (
    b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 400]/Contents 5 0 R/StructParents 0"
    b"/Resources<</Font<</F1 7 0 R>>/XObject<</Fm1 9 0 R/Fm2 10 0 R>>"
    b"/Properties<</oc1 15 0 R>>>>/Annots[%s]>>"
)
CATALOG: Final = (
    b"<</Type/Catalog/Pages 2 0 R/AcroForm 20 0 R/StructTreeRoot 16 0 R"
    b"/MarkInfo<</Marked true>>/OCProperties<</OCGs[15 0 R]/D<</OFF[15 0 R]>>>>%s>>"
)
OTHER_TEXT: Final = (
    b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n"
    b"/CMapName /Other def /CMapType 2 def\n"
    b"1 begincodespacerange <00> <FF> endcodespacerange\n"
    b"1 beginbfchar <31> <0039> endbfchar\nendcmap end end"
)
Objects = Mapping[int, bytes]


def judged(pdf: bytes) -> VerificationReport:
    """Verify a file against the root of the test authority."""
    return verify(pdf, [makers().root])


def signed(objects: Objects, *, info: int | None = None) -> SignedFile:
    """Sign the contract with other objects.

    Args:
        objects: as for `contract`.
        info: number of the document information.
    """
    pdf = contract(objects)
    if info is not None:
        at = pdf.index(b"<<", pdf.rindex(b"trailer")) + 2
        pdf = pdf[:at] + b"/Info %d 0 R" % info + pdf[at:]
    found = makers().signed(pdf)
    assert judged(found).verdict is Answer.YES
    return SignedFile(found)


def filled(
    f: SignedFile, number: int = 21, entries: Mapping[bytes, bytes] | None = None
) -> dict[int, bytes]:
    """Fill in a text field, with a new drawing that is numbered `f.free`."""
    look = f.look(f.free, b"/Tx BMC " + line(b"Eva", 2, 4) + b" EMC", b"[0 0 120 20]")
    value = {b"/V": b"(Eva)", b"/AP": b"<</N %d 0 R>>" % f.free}
    return {number: f.changed(number, {**value, **(entries or {})}), f.free: look}


def named(name: bytes) -> bytes:
    """Write the text field of the contract with another name."""
    return b"<<%s/FT/Tx/T%s/V(Ana)/Rect[20 60 140 80]%s>>" % (WIDGET, name, LOOK)


def text(shown: bytes, box: bytes = b"[0 0 120 20]") -> bytes:
    """Draw the value of a text field."""
    fonts = b"/Resources<</Font<</Helv 19 0 R>>>>"
    return drawing(b"/Tx BMC " + line(shown, 2, 4, b"Helv") + b" EMC", box, fonts)


def test_font_that_is_the_information_may_not_change() -> None:
    """A font named /Parent is no node of a tree above."""
    f = signed(
        {
            3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 400]/Contents 5 0 R"
            b"/Resources<</Font<</F1 7 0 R/Parent 30 0 R>>>>>>",
            5: stream(line(b"Precio: 100", font=b"Parent")),
            16: b"<</Type/StructTreeRoot/K 17 0 R/ParentTree 18 0 R/Keep 31 0 R>>",
            30: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Title(Contrato)>>",
            31: stream(OTHER_TEXT),
        },
        info=30,
    )
    report = judged(f.append({30: f.changed(30, {b"/ToUnicode": b"31 0 R"})}))
    assert report.verdict is Answer.NO
    assert "page 1" in report.signatures[0].changes.reason


def test_parent_of_a_page_that_is_the_information_may_not_change() -> None:
    """Some readers take inherited resources from there."""
    f = signed(
        {
            2: b"<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>",
            3: b"<</Type/Page/Parent 30 0 R/MediaBox[0 0 300 400]/Contents 5 0 R>>",
            4: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 400]/Contents 6 0 R>>",
            5: stream(line(b"Precio: 100")),
            30: b"<</Type/Pages/Title(x)/Resources<</Font<</F1 7 0 R>>>>>>",
        },
        info=30,
    )
    fonts = b"<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/ZapfDingbats>>>>>>"
    report = judged(f.append({30: f.changed(30, {b"/Resources": fonts})}))
    assert report.verdict is Answer.NO


def test_drawing_that_is_the_metadata_may_not_change() -> None:
    """An XObject named /Parent is no node of a tree above."""
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/">\n%s\n</x:xmpmeta>'
    kind = b"/Type/Metadata/Subtype/Form/BBox[0 0 300 400]"
    f = signed(
        {
            1: CATALOG % b"/Metadata 25 0 R",
            4: b"<</Type/Page/Parent 2 0 R/Contents 6 0 R"
            b"/Resources<</XObject<</Parent 25 0 R>>>>>>",
            25: stream(xmp % b"", kind),
        }
    )
    changed = stream(xmp % b"0 g 0 0 100 100 re f", kind)
    assert judged(f.append({25: changed})).verdict is Answer.NO


@pytest.mark.parametrize("kid", ["stamp", "signature's", "locked field's", "loose"])
def test_kid_that_is_no_widget_of_the_field_stays(kid: str) -> None:
    """A filled field draws its own widgets and nothing else.

    A reader may take any widget among its kids for one that shows its value.
    """
    marks = {
        "stamp": b"<</Type/Annot/Subtype/Stamp/F 4/P 3 0 R/Parent 40 0 R",
        "signature's": b"<<%s/Parent 24 0 R" % WIDGET,
        "locked field's": b"<<%s/Parent 50 0 R" % WIDGET,
        "loose": b"<<%s" % WIDGET,
    }
    f = signed(
        {
            3: PAGE % b"41 0 R 42 0 R",
            20: b"<</Fields[40 0 R 50 0 R 24 0 R]%s>>" % DEFAULTS,
            24: b"<</FT/Sig/T(Vendedor)/Kids[%s]>>"
            % (b"42 0 R" if kid == "signature's" else b""),
            40: b"<</FT/Tx/T(Nombre)/V(Ana)/DA(/Helv 12 Tf)/Kids[41 0 R 42 0 R]>>",
            41: b"<<%s/Parent 40 0 R/Rect[20 60 140 80]/AP<</N 26 0 R>>>>" % WIDGET,
            42: marks[kid] + b"/Rect[20 330 280 360]/AP<</N 44 0 R>>>>",
            44: text(b"Total: 100", b"[0 0 260 30]"),
            50: b"<</FT/Tx/T(Precio)/V(100)/DA(/Helv 12 Tf)/Kids[%s]>>"
            % (b"42 0 R" if kid == "locked field's" else b""),
        }
    )
    drawn = {
        f.free: f.look(f.free, line(b"Eva", 2, 4), b"[0 0 120 20]"),
        41: f.changed(41, {b"/AP": b"<</N %d 0 R>>" % f.free}),
        40: f.changed(40, {b"/V": b"(Eva)"}),
    }
    expected = Answer.YES if kid == "stamp" else Answer.UNCHECKED
    assert judged(f.append(drawn)).verdict is expected

    look = f.look(f.free + 1, line(b"Eva pide 900.000", 2, 8), b"[0 0 260 30]")
    again = f.changed(42, {b"/AP": b"<</N %d 0 R>>" % (f.free + 1)})
    report = judged(f.append({**drawn, f.free + 1: look, 42: again}))
    assert report.verdict is Answer.NO


@pytest.mark.parametrize("kind", ["widget", "free text"])
def test_defaults_may_not_draw_what_is_outside_the_form(kind: str) -> None:
    """Readers draw widgets and free texts of pages by the form's defaults, too."""
    notes = {
        "widget": b"<<%s/FT/Tx/T(Precio)/V(100)/Rect[20 60 180 80]" % WIDGET,
        "free text": b"<</Type/Annot/Subtype/FreeText/Contents(100)/F 4"
        b"/Rect[20 60 180 80]",
    }
    f = signed(
        {
            3: PAGE % b"24 0 R 70 0 R",
            20: b"<</Fields[24 0 R]%s>>" % DEFAULTS,
            70: notes[kind] + b"/DA(/Zz 12 Tf 0 g)>>",
        }
    )
    font = b"<</Type/Font/Subtype/Type1/BaseFont/ZapfDingbats>>"
    for entry, value in {
        b"/NeedAppearances": b"true",
        b"/DA": b"(/Helv 12 Tf 1 g)",
        b"/DR": b"<</Font<</Helv 19 0 R/Zz %s>>>>" % font,
    }.items():
        report = judged(f.append({f.form: f.changed(f.form, {entry: value})}))
        assert report.verdict is Answer.NO, entry


def test_transform_parameters_approve_no_object() -> None:
    """Parameters of a new signature are new: an old object has another meaning."""
    f = SignedFile(base("B-B"))
    content = f.redrawn(f.content, line(b"Precio: 900.000"))
    signature = (
        b"<</Type/Sig/Filter/Adobe.PPKLite/SubFilter/ETSI.CAdES.detached"
        b"/ByteRange[0 0 0 0]/Contents<00>/Reference[<</Type/SigRef"
        b"/TransformMethod/FieldMDP/TransformParams %d 0 R>>]>>" % f.content
    )
    field = b"<</FT/Sig/T(Otra)/V %d 0 R>>" % (f.free + 1)
    objects = {f.free: field, f.free + 1: signature, f.content: content}
    report = judged(f.append({**objects, **f.form_with(f.free)}))
    (first,) = (each for each in report.signatures if each.field == "Firma")
    assert first.changes.answer is Answer.NO
    assert f"object {f.content}" in first.changes.reason


def test_field_keeps_its_object() -> None:
    """Another object with the name of a signed field is another field."""
    f = SignedFile(base("B-B"))
    old = f.field("Nombre")
    fields = f.qpdf.Root.AcroForm.Fields.unparse(resolved=True)
    swapped = fields.replace(b" %d 0 R" % old, b" %d 0 R" % f.free)
    assert swapped != fields
    report = judged(
        f.append(
            {
                f.free: f.changed(old, {b"/V": b"(Eva)"}),
                f.form: f.changed(f.form, {b"/Fields": swapped}),
            }
        )
    )
    assert report.verdict is Answer.NO


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        ("Firma 1", "Firma\N{NO-BREAK SPACE}1"),
        ("Firma 1", "Firma\t1"),
        ("x" * 210, "x" * 205 + "y"),
    ],
)
def test_name_that_looks_signed_is_not_signed(name: str, alike: str) -> None:
    """An empty field covers the page, and has the shown name of a signed one."""
    f = SignedFile(makers().stock_signed(contract(), name))
    written = (b"\xfe\xff" + alike.encode("utf-16-be")).hex().encode()
    body = b"<<%s/FT/Sig/T<%s>/Rect[0 0 300 400]/AP<</N %d 0 R>>>>"
    report = judged(
        f.append(
            {
                f.free: body % (WIDGET, written, f.free + 1),
                f.free + 1: f.look(f.free + 1, line(b"Precio: 900.000")),
                f.page: f.changed(f.page, {b"/Annots": f.listed("Annots", f.free)}),
                **f.form_with(f.free),
            }
        )
    )
    assert report.verdict is Answer.NO
    assert report.signatures[0].changes.reason.endswith("was added and not signed")


@pytest.mark.parametrize(
    ("rich", "answer"), [(b"<b>E</b>va", Answer.YES), (b"<b>900</b>", Answer.NO)]
)
def test_rich_text_is_the_value(rich: bytes, answer: Answer) -> None:
    """Some readers show rich text in place of the value."""
    f = SignedFile(base("B-B"))
    number = f.field("Nombre")
    body = b'(<?xml version="1.0"?><body><p>%s</p></body>)' % rich
    objects = filled(f, number, {b"/RV": body})
    assert judged(f.append(objects)).verdict is answer


@pytest.mark.parametrize(
    "name",
    [
        "Domicilio\N{NO-BREAK SPACE}legal",
        "a\N{ZERO WIDTH SPACE}b",
        "Línea\N{SOFT HYPHEN}1",
        "x" * 205,
        "名前",
    ],
)
def test_field_of_any_name_may_be_filled_in(name: str) -> None:
    """The exact name counts, and not the one that is shown."""
    written = b"\xfe\xff" + name.encode("utf-16-be")
    f = signed({21: named(b"<%s>" % written.hex().encode())})
    report = judged(f.append(filled(f)))
    assert report.verdict is Answer.YES, report
    assert [each.after for each in report.signatures[0].filled] == ["Eva"]


@pytest.mark.parametrize("name", [b"<4e9f>", b"<4e7f>", b"(a.b)"])
def test_field_of_an_odd_name_may_be_filled_in(name: bytes) -> None:
    """A name of the signed revision is no reason against what follows it."""
    f = signed({21: named(name)})
    assert judged(makers().renewed(f.pdf)).verdict is Answer.YES
    assert judged(f.append(filled(f))).verdict is Answer.YES


def test_field_of_an_empty_name_shows_nothing() -> None:
    """PDFium draws no such field, so that a value is not seen."""
    f = signed({21: named(b"()")})
    assert judged(makers().renewed(f.pdf)).verdict is Answer.YES
    assert judged(f.append(filled(f))).verdict is Answer.UNCHECKED


@pytest.mark.parametrize(
    "fields",
    [
        b"21 0 R 22 0 R 24 0 R 999 0 R",
        b"21 0 R 22 0 R 24 0 R 90 0 R",
        b"21 0 R 22 0 R 24 0 R 91 0 R",
        b"21 0 R 22 0 R 24 0 R 92 0 R",
        b"21 0 R 22 0 R 24 0 R null",
        b"21 0 R 22 0 R 24 0 R 21 0 R",
    ],
    ids=["undefined", "no type", "no name", "same name", "null", "twice"],
)
def test_oddities_of_the_signed_form_are_no_changes(fields: bytes) -> None:
    """They stay as they were."""
    f = signed(
        {
            20: b"<</Fields[%s]%s>>" % (fields, DEFAULTS),
            90: b"<</T(x)>>",
            91: b"<</FT/Tx/V(x)>>",
            92: b"<</FT/Tx/T(Acepto)/V(x)>>",
        }
    )
    assert judged(makers().renewed(f.pdf)).verdict is Answer.YES
    assert judged(makers().signed_visibly(f.pdf)).verdict is Answer.YES
    assert judged(f.append(filled(f))).verdict is Answer.YES


ELEMENT: Final = b"<</Type/StructElem/S/Form/P 17 0 R/Pg 3 0 R/K %s>>"
OBJECT: Final = b"<</Type/OBJR/Obj 21 0 R/Pg 3 0 R>>"
ACTIONS: Final = {
    "hide": b"<</S/Hide/T 21 0 R>>",
    "hide several": b"<</S/Hide/T[21 0 R 22 0 R]>>",
    "reset": b"<</S/ResetForm/Fields[21 0 R]>>",
    "submit": b"<</S/SubmitForm/F(a)/Fields[21 0 R]>>",
}
USES: Final[Mapping[str, Objects]] = {
    "tagged": {50: ELEMENT % OBJECT},
    "tagged in an array": {50: ELEMENT % (b"[0 %s]" % OBJECT)},
    "tagged by reference": {50: ELEMENT % b"51 0 R", 51: OBJECT},
    "order of calculation": {
        20: b"<</Fields[21 0 R 22 0 R 24 0 R]/CO[21 0 R]%s>>" % DEFAULTS
    },
    "arrays of their own": {
        20: b"<</Fields 60 0 R/CO 61 0 R%s>>" % DEFAULTS,
        60: b"[21 0 R 22 0 R 24 0 R]",
        61: b"[21 0 R]",
    },
    "kids of pages by reference": {
        2: b"<</Type/Pages/Kids 60 0 R/Count 2/MediaBox[0 0 300 400]/Rotate 0"
        b"/Resources<</Font<</F1 7 0 R>>>>>>",
        60: b"[3 0 R 4 0 R]",
    },
    **{
        name: {
            3: PAGE % b"21 0 R 22 0 R 24 0 R 70 0 R",
            70: b"<</Type/Annot/Subtype/Link/Rect[1 1 9 9]/P 3 0 R/A %s>>" % action,
        }
        for name, action in ACTIONS.items()
    },
}
"""Objects that name the text field, by what they are."""
TAGGED: Final = {
    17: b"<</Type/StructElem/S/P/P 16 0 R/Pg 3 0 R/K[0 50 0 R]>>",
    18: b"<</Nums[0[17 0 R]1 50 0 R]>>",
    50: ELEMENT % b"0",
}


@pytest.mark.parametrize("use", USES)
def test_field_that_is_named_elsewhere_may_be_filled_in(use: str) -> None:
    """To name a field is not to show something of it."""
    f = signed({**TAGGED, **USES[use]})
    report = judged(f.append(filled(f)))
    assert report.verdict is Answer.YES, report
    for follow in (makers().signed_visibly, makers().renewed, makers().filled):
        assert judged(follow(f.pdf)).verdict is Answer.YES


@pytest.mark.parametrize(
    "entries",
    [
        {b"/BS": b"<</W 1/S/S>>"},
        {b"/MK": b"<</BG[1 1 1]>>"},
        {b"/DS": b"(font: Helvetica)"},
        {b"/NM": b"(a)", b"/M": b"(D:20260101)"},
        {b"/DV": b"(Eva)"},
    ],
)
def test_writer_may_say_how_it_drew_a_value(entries: Mapping[bytes, bytes]) -> None:
    """MuPDF adds these entries with a new appearance."""
    f = SignedFile(base("B-B"))
    objects = filled(f, f.field("Nombre"), entries)
    assert judged(f.append(objects)).verdict is Answer.YES


def test_page_may_get_what_it_inherits() -> None:
    """Writers with a flat list of pages copy the entries of the tree into each."""
    f = SignedFile(base("B-B"))
    inherited = {
        b"/Resources": f.written(f.get(f.tree).Resources, f.page2),
        b"/MediaBox": b"[0 0 300 400]",
        b"/Rotate": b"0",
    }
    again = {f.page2: f.changed(f.page2, inherited)}
    assert judged(f.append(again)).verdict is Answer.YES
    assert judged(makers().signed_visibly(f.append(again))).verdict is Answer.YES
    for key, value in {
        b"/Resources": b"<</Font<</F1 %d 0 R>>>>" % f.number("XObject", "Fm1"),
        b"/MediaBox": b"[0 0 300 399]",
        b"/Rotate": b"90",
        b"/CropBox": b"[0 0 300 400]",
    }.items():
        forged = {f.page2: f.changed(f.page2, {**inherited, key: value})}
        assert judged(f.append(forged)).verdict is Answer.NO, key


def test_page_inherits_by_both_ways_or_not() -> None:
    """A page whose /Parent is no node above it gets nothing of the tree."""
    f = signed(
        {
            4: b"<</Type/Page/Parent 60 0 R/Contents 6 0 R>>",
            60: b"<</Type/Pages/Rotate 0/MediaBox[0 0 300 400]"
            b"/Resources<</Font<</F1 7 0 R>>>>>>",
        }
    )
    again = {4: f.changed(4, {b"/MediaBox": b"[0 0 300 400]"})}
    assert judged(f.append(again)).verdict is Answer.NO


def test_diamonds_above_a_field_are_judged() -> None:
    """References are counted once, and not the paths through them."""
    depth = 60
    links = {
        500 + at: b"<</A %d 0 R/B %d 0 R>>" % (501 + at, 501 + at)
        for at in range(depth)
    }
    f = signed(
        {1: CATALOG % b"/PieceInfo 500 0 R", **links, 500 + depth: b"<</W 21 0 R>>"}
    )
    changes = judged(makers().filled(f.pdf)).signatures[0].changes
    # By paths there are more than any budget has, and the answer is *unchecked*.
    assert changes.answer is Answer.NO
    assert changes.reason == "page 1 was changed after it (object 21)"
