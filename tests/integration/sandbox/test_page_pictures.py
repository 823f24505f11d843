"""Pages that look different after a signature, found by drawing them twice."""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    StreamObject,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner
from pyhanko.sign.fields import SigFieldSpec
from pyhanko.stamp import TextStampStyle

from appliance.domain.appearance.stamp import StampLayout, lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.documents.inspected import PageBox
from appliance.domain.requests.levels import ValidationData
from appliance.domain.signing_command import SignParameters
from tests.integration.sandbox.test_later_changes import signed_with_mark
from tests.support.documents import pdf_samples, pdfs
from tests.support.documents.altered_pdfs import ATTACKS, update
from tests.support.documents.field_pdfs import Field, with_fields
from tests.support.documents.growth import MOST, growth
from tests.support.documents.hostile_pdfs import build, many_pages, plain
from tests.support.documents.pdf_samples import SIGNED_AT, make_pdf, make_plan
from tests.support.documents.software_signer import signed, software_signer
from tests.support.documents.validators import read_pdf
from tests.support.processes.event_loops import run_apart
from worker.pades import Validated, add_dss
from worker.pades.appearance.fonts import StampFonts
from worker.sandbox.inspect.hidden_annotations import Rect
from worker.sandbox.inspection import inspect
from worker.sandbox.verify.changed_pages import ChangedPages
from worker.sandbox.verify.object_history import ObjectHistory
from worker.sandbox.verify.page_pictures import (
    PAGES_MOST,
    PagePictures,
    PictureComparison,
    later_widgets,
)
from worker.sandbox.verify.raw_references import RawReferences

CORPUS: Final = Path(__file__).parents[3].parent / "shared" / "corpus-signed"
Change = Callable[[IncrementalPdfFileWriter], None]

FONT = b"<</Type/Font/Subtype/Type1/BaseFont/%s>>"
SQUARE = (
    b"<</Type/XObject/Subtype/Form/BBox[0 0 50 50]%s/Length %d>>stream\n%s\nendstream"
)


def stream(data: bytes) -> bytes:
    """A content stream."""
    return b"<</Length %d>>stream\n%s\nendstream" % (len(data), data)


def form(data: bytes, entries: bytes = b"") -> bytes:
    """A form XObject of 50 by 50."""
    return SQUARE % (entries, len(data), data)


def text(words: bytes, page: bytes = b"") -> bytes:
    """One page of 200 by 300 with small print; 4 is its content and 5 its font."""
    return plain(
        page=b"/Resources<</Font<</F 5 0 R>>>>" + page,
        o4=stream(b"BT /F 8 Tf 20 150 Td (%s) Tj ET" % words),
        o5=FONT % b"Helvetica",
    )


def signature_ends(pdf: bytes) -> list[tuple[int, int]]:
    """The byte at which each signed revision ends, and its index."""
    found = []
    for each in read_pdf(pdf).embedded_signatures:
        _, _, start, length = map(int, each.byte_range)
        found.append((start + length, each.signed_revision))
    return found


def compared(
    pdf: bytes,
    masks: Mapping[int, Sequence[Rect]] | None = None,
    filled: Sequence[str] = (),
) -> PictureComparison:
    """The first signature's revision against the whole, outside later widgets."""
    end, revision = signature_ends(pdf)[0]
    with PagePictures(pdf, read_pdf(pdf)) as pictures:
        if masks is None:
            masks = pictures.later_widgets(end, revision, filled)
        return pictures.compare(end, revision, masks)


def first_revision(pdf: bytes, before: bytes) -> PictureComparison:
    """A file that is not signed against what a revision made of it."""
    with PagePictures(pdf, read_pdf(pdf)) as pictures:
        return pictures.compare(len(before), 0, {})


def changed(pdf: bytes, change: Change) -> bytes:
    """The file with a revision of pyHanko's."""
    writer = IncrementalPdfFileWriter(io.BytesIO(pdf), strict=False)
    change(writer)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def marked(pdf: bytes, field: str, box: tuple[int, int, int, int] | None) -> bytes:
    """The file signed with a mark, in a new field or in one that is there."""
    spec = None if box is None else SigFieldSpec(field, box=box)
    signer = PdfSigner(
        PdfSignatureMetadata(field, md_algorithm="sha256"),
        signer=software_signer().stock(),
        stamp_style=TextStampStyle(stamp_text=field, background=None),
        new_field_spec=spec,
    )
    out = io.BytesIO()
    writer = IncrementalPdfFileWriter(io.BytesIO(pdf))
    run_apart(signer.async_sign_pdf(writer, output=out))
    return out.getvalue()


def seen(page: int = 1) -> PictureComparison:
    """The outcome for one page that looks different."""
    return PictureComparison((page,), 1, 1, ())


SAME: Final = PictureComparison((), 1, 1, ())
NOTHING: Final = PictureComparison((), 0, 0, ())


def test_nothing_follows() -> None:
    """No page is drawn."""
    assert compared(signed(text(b"100"))) == NOTHING


def test_validation_data_costs_no_picture() -> None:
    """The file is not even opened by PDFium."""
    pdf = signed(text(b"100"))
    (signature,) = read_pdf(pdf).embedded_signatures
    data = ValidationData(certificates=(software_signer().root,))
    kept = pdf + add_dss(pdf, [Validated(signature.pkcs7_content, data)])
    end, revision = signature_ends(kept)[0]

    with PagePictures(kept, read_pdf(kept)) as pictures:
        assert pictures.compare(end, revision, {}) == NOTHING
        assert pictures.draws == 0


@pytest.mark.parametrize("rotate", [0, 90])
def test_one_digit_of_small_print_is_seen(rotate: int) -> None:
    """At 8 points, a 1 became a 9."""
    pdf = signed(text(b"100", b"/Rotate %d" % rotate))

    later = update(pdf, {4: stream(b"BT /F 8 Tf 20 150 Td (900) Tj ET")})

    assert compared(later) == seen()


def test_same_content_written_again_is_no_difference() -> None:
    """The page is drawn, since its objects changed."""
    pdf = signed(text(b"100"))

    again = update(pdf, {4: stream(b"BT /F 8 Tf 20 150 Td (100) Tj ET")})

    assert compared(again) == SAME


def test_font_that_was_replaced_is_seen() -> None:
    """Its number is reached through the resources."""
    pdf = update(signed(text(b"100")), {5: FONT % b"ZapfDingbats"})

    assert compared(pdf) == seen()


def test_form_deep_in_resources_is_seen() -> None:
    """Forms draw forms, and the last of them was changed."""
    pdf = signed(
        plain(
            page=b"/Resources<</XObject<</X 5 0 R>>>>",
            o4=stream(b"/X Do"),
            o5=form(b"/Y Do", b"/Resources 6 0 R"),
            o6=b"<</XObject<</Y 7 0 R>>>>",
            o7=form(b"/Kids Do", b"/Resources<</XObject<</Kids 8 0 R>>>>"),
            o8=form(b"0 0 20 20 re f"),
        )
    )

    assert compared(update(pdf, {8: form(b"0 0 30 20 re f")})) == seen()


def test_loop_of_resources_ends() -> None:
    """Two forms that use each other, one of which was changed."""
    pdf = plain(
        page=b"/Resources<</XObject<</X 5 0 R>>>>",
        o4=stream(b"/X Do"),
        o5=form(b"0 0 9 9 re f /Y Do", b"/Resources<</XObject<</Y 6 0 R>>>>"),
        o6=form(b"/X Do", b"/Resources<</XObject<</X 5 0 R>>>>"),
    )
    later = form(b"0 0 20 20 re f", b"/Resources<</XObject<</X 5 0 R>>>>")

    assert first_revision(update(pdf, {6: later}), pdf) == seen()


def test_object_that_no_page_needs_costs_no_picture() -> None:
    """The outlines are not drawn."""
    pdf = plain(b"/Outlines 5 0 R", o5=b"<</Type/Outlines>>")

    assert first_revision(update(pdf, {5: b"<</Count 0>>"}), pdf) == NOTHING


def test_link_to_a_changed_page_is_no_change_of_its_own() -> None:
    """Each page is drawn for its own objects."""
    pdf = build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2/MediaBox[0 0 99 99]>>",
            3: b"<</Type/Page/Parent 2 0 R/Annots[5 0 R]>>",
            4: b"<</Type/Page/Parent 2 0 R/Contents 6 0 R>>",
            5: b"<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/P 3 0 R/Dest[4 0 R/Fit]>>",
            6: stream(b"0 0 9 9 re f"),
        }
    )

    assert first_revision(update(pdf, {6: stream(b"0 0 9 8 re f")}), pdf) == seen(2)


# Later widgets


def test_mark_of_the_next_signer_is_left_out() -> None:
    """It differs where no widget is left out."""
    pdf = signed_with_mark(signed(pdfs.one_page()), (40, 770, 120, 800))

    assert compared(pdf) == SAME
    assert compared(pdf, {}) == seen()


def layout(pdf: bytes, x: int) -> StampLayout:
    """A stamp of our own."""
    who = StampSigner("María José Ñandú", "20267565393", "es")
    laid = lay_out(SignParameters(x=x, y=50), who, SIGNED_AT, inspect(pdf, 10))
    assert laid is not None
    return laid


@pytest.mark.parametrize(
    "make", [make_pdf, pdfs.encrypted, lambda: pdfs.encrypted(revision=3)]
)
def test_our_own_stamps_are_left_out(
    make: Callable[[], bytes], fonts: StampFonts
) -> None:
    """Encrypted files open with the empty password."""
    pdf, who = make(), software_signer()
    for name, x in (("Firma-1", 40), ("Firma-2", 300)):
        plan = replace(make_plan(who, layout(pdf, x)), field_name=name)
        pdf = pdf_samples.sign(pdf, who, plan, fonts)

    assert compared(pdf) == SAME
    assert compared(pdf, {}) == seen()


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("unit", [1.0, 2.0])
def test_mask_is_where_the_mark_is(rotate: int, unit: float) -> None:
    """The page is turned and cropped; a mask that is moved by 6 units fails."""
    page = PageBox(100, 150, 500, 450, rotate, unit)
    pdf = signed(make_pdf([page], media=(0.0, 0.0, 612.0, 792.0)))
    pdf = marked(pdf, "b", (150, 200, 230, 240))

    assert compared(pdf).different == ()
    for moved in ((156, 200, 236, 240), (144, 200, 224, 240), (150, 206, 230, 246)):
        assert compared(pdf, {1: [moved]}) == seen()


def test_prepared_field_that_is_signed_later_is_left_out() -> None:
    """It was empty in the signed revision."""
    pdf = signed(with_fields(Field("Firma")), field="Previa")
    pdf = marked(pdf, "Firma", None)

    assert compared(pdf) == SAME
    assert compared(pdf, {}) == seen()


def test_mark_of_the_signature_itself_is_not_left_out() -> None:
    """A mark of the signed revision is compared as well."""
    pdf = marked(pdfs.one_page(), "a", (40, 40, 120, 80))

    def redraw(writer: IncrementalPdfFileWriter) -> None:
        look = writer.root["/AcroForm"]["/Fields"][0]["/AP"]["/N"]
        look._data = b"0 0 30 30 re f"
        look._encoded_data = None
        writer.update_container(look)

    assert compared(changed(pdf, redraw)) == seen()


def test_mask_does_not_hide_another_change_of_the_page() -> None:
    """The next signer's mark is there, and a digit was changed beside it."""
    pdf = marked(signed(text(b"100")), "b", (100, 20, 180, 60))

    later = update(pdf, {4: stream(b"BT /F 8 Tf 20 150 Td (900) Tj ET")})

    assert compared(later) == seen()


def test_mask_does_not_hide_content_below_it() -> None:
    """The page is compared without its annotations too, once its content changed."""
    pdf = marked(signed(text(b"100")), "b", (10, 140, 60, 170))

    later = update(pdf, {4: stream(b"BT /F 8 Tf 20 150 Td (900) Tj ET")})

    assert compared(pdf) == SAME
    assert compared(later) == seen()


@pytest.mark.parametrize(
    "rect", [b"9 0 R", b"[10 20 9 0 R 40]", b"[10 20 30]", b"[10 20 10 40]"]
)
def test_rectangle_that_readers_may_read_differently_is_no_mask(rect: bytes) -> None:
    """Only four direct numbers with an area are one."""
    pdf = plain(b"/AcroForm<</Fields[]>>", o9=b"40")
    field = b"<</Type/Annot/Subtype/Widget/FT/Sig/T(b)/Rect%s/P 3 0 R>>"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 300]/Annots[7 0 R]>>"
    catalog = b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[7 0 R]>>>>"

    good = update(pdf, {1: catalog, 3: page, 7: field % b"[10 20 30 40]"})
    other = update(pdf, {1: catalog, 3: page, 7: field % rect})

    assert later_widgets(read_pdf(good), 0) == {1: [(10, 20, 30, 40)]}
    assert later_widgets(read_pdf(good), 1) == {}
    assert later_widgets(read_pdf(other), 0) == {}


@pytest.mark.parametrize("attack", ["SSA: second mark", "SSA: mark shown twice"])
def test_several_marks_of_one_signature_are_not_left_out(attack: str) -> None:
    """Only one of them would be the signer's."""
    assert compared(ATTACKS[attack](signed)).different == (1,)


def filled_in(value: bytes) -> dict[int, bytes]:
    """A text field of `plain`, 5, and how it is drawn, 6."""
    return {
        5: b"<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/V(%s)/Rect[20 20 70 70]/F 4"
        b"/P 3 0 R/DA(/F 9 Tf)/AP<</N 6 0 R>>>>" % value,
        6: form(b"BT /F 12 Tf 2 9 Td (%s) Tj ET" % value, b"/Resources 7 0 R"),
        7: b"<</Font<</F 8 0 R>>>>",
        8: FONT % b"Helvetica",
    }


def with_text_field() -> bytes:
    """A page with a text field that says 100."""
    objects = {f"o{number}": body for number, body in filled_in(b"100").items()}
    return plain(
        b"/AcroForm<</Fields[5 0 R]>>", b"/Annots[5 0 R]", o4=stream(b""), **objects
    )


def test_field_that_was_filled_in_is_left_out_by_name() -> None:
    """The caller names the fields that may be filled in."""
    pdf = update(signed(with_text_field()), filled_in(b"900"))

    assert compared(pdf) == seen()
    assert compared(pdf, filled=["other"]) == seen()
    assert compared(pdf, filled=["a"]) == SAME


def test_widget_that_was_moved_is_not_left_out() -> None:
    """A field that may be filled in could cover the page otherwise."""
    objects = filled_in(b"900")
    objects[5] = objects[5].replace(b"[20 20 70 70]", b"[0 0 200 300]")

    pdf = update(signed(with_text_field()), objects)

    assert compared(pdf, filled=["a"]) == seen()


@pytest.mark.parametrize("entries", [b"", b"/MK<</BG[1 1 1]/BC[0 0 0]>>", b"/Ff 4096"])
def test_appearance_is_compared_and_not_the_value(entries: bytes) -> None:
    """PDFium draws the appearance that the file has, as other readers do."""
    field = filled_in(b"100")[5][:-2] + entries + b">>"
    pdf = signed(update(with_text_field(), {5: field}))

    assert compared(update(pdf, {6: filled_in(b"900")[6]})) == seen()


# Changes of the whole document


def test_page_that_was_added_is_named() -> None:
    """Nothing has to be drawn for it."""
    assert compared(ATTACKS["ISA: page"](signed)) == PictureComparison((2,), 2, 2, ())


def test_page_that_was_removed_is_named() -> None:
    """Pages after it move up, and are compared with what was there."""
    pdf = build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2/MediaBox[0 0 99 99]>>",
            3: b"<</Type/Page/Parent 2 0 R/Contents 5 0 R>>",
            4: b"<</Type/Page/Parent 2 0 R>>",
            5: stream(b"0 0 9 9 re f"),
        }
    )
    tree = b"<</Type/Pages/Kids[%s 0 R]/Count 1/MediaBox[0 0 99 99]>>"

    last, first = (update(pdf, {2: tree % kid}) for kid in (b"3", b"4"))

    assert first_revision(last, pdf) == PictureComparison((2,), 2, 2, ())
    assert first_revision(first, pdf) == PictureComparison((1, 2), 2, 2, ())


def test_box_that_pages_inherit_is_seen() -> None:
    """The tree's own entries count for each page."""
    pdf = pdfs.inherited_box()

    def turn(writer: IncrementalPdfFileWriter) -> None:
        writer.root["/Pages"]["/Rotate"] = NumberObject(180)
        writer.update_container(writer.root["/Pages"])

    assert compared(changed(signed(pdf), turn)) == seen()


def test_layer_that_was_switched_off_is_seen() -> None:
    """No object of the page changed."""
    pdf = signed(
        plain(
            b"/OCProperties<</OCGs[5 0 R]/D<<>>>>",
            b"/Resources<</Properties<</L 5 0 R>>>>",
            o4=stream(b"/OC /L BDC 0 0 90 90 re f EMC"),
            o5=b"<</Type/OCG/Name(a)>>",
        )
    )

    def switch(writer: IncrementalPdfFileWriter) -> None:
        layers = writer.root["/OCProperties"]
        layers["/D"][NameObject("/OFF")] = ArrayObject([layers["/OCGs"].raw_get(0)])
        writer.update_root()

    assert compared(changed(pdf, switch)) == seen()


def test_form_that_is_drawn_by_readers_is_seen() -> None:
    """No object of the page changed."""
    assert compared(ATTACKS["shadow: fields drawn anew"](signed)).different == (1,)


def test_forty_pages_are_drawn() -> None:
    """The outcome says how many should have been."""
    pdf = signed(pdfs.pages(PAGES_MOST + 5))

    def replace_font(writer: IncrementalPdfFileWriter) -> None:
        page: Any = writer.root["/Pages"]["/Kids"][0]
        page["/Resources"]["/Font"]["/F1"]["/BaseFont"] = NameObject("/Courier")
        writer.update_container(page["/Resources"]["/Font"]["/F1"])

    drawn = compared(changed(pdf, replace_font))

    assert drawn.different == tuple(range(1, PAGES_MOST + 1))
    assert (drawn.compared, drawn.wanted) == (PAGES_MOST, PAGES_MOST + 5)


# Costs


def test_each_revision_of_a_page_is_drawn_once() -> None:
    """Every signature before the last one, and the whole file once."""
    pdf = pdfs.one_page()
    for at in range(6):
        pdf = marked(pdf, f"f{at}", (20 + 90 * at, 20, 90 + 90 * at, 60))

    with PagePictures(pdf, read_pdf(pdf)) as pictures:
        drawn = [
            pictures.compare(end, revision, pictures.later_widgets(end, revision))
            for end, revision in signature_ends(pdf)
        ]

        assert drawn == [SAME] * 5 + [NOTHING]
        assert pictures.draws == 5 + 1


def test_comparisons_of_a_file_share_their_time() -> None:
    """A file with many signatures gets no more of it than one with few."""
    pdf = text(b"100")
    later = update(pdf, {4: stream(b"f")})

    with PagePictures(later, read_pdf(later)) as pictures:
        left = [pictures._cpu_s]
        for _ in range(2):
            assert pictures.compare(len(pdf), 0, {}).compared == 1
            left.append(pictures._cpu_s)
        assert left == sorted(left, reverse=True)
        assert len(set(left)) == 3

        pictures._cpu_s = 0.0
        assert pictures.compare(len(pdf), 0, {}) == PictureComparison((), 0, 1, ())


def test_objects_are_traversed_in_linear_time() -> None:
    """The time doubles with the number of objects."""
    files = {}
    for count in (1_500, 3_000):
        names = b"".join(b"/X%d %d 0 R" % (n, n) for n in range(5, count))
        pdf = plain(
            page=b"/Resources<</XObject<<%s>>>>" % names,
            **{f"o{n}": form(b"", b"/R[%d 0 R]" % (n + 1)) for n in range(5, count)},
        )
        files[count] = update(pdf, {4: stream(b"f")})

    def traverse(count: int) -> object:
        reader = read_pdf(files[count])
        return ChangedPages(reader, ObjectHistory(reader)).after(0)

    assert traverse(1_500) == (1,)
    assert growth(traverse, 1_500) < MOST


# Files that are hard to draw


def test_revision_that_pdfium_cannot_open_fails() -> None:
    """Its pages are not called different."""
    pdf = text(b"100")
    later = update(pdf, {4: stream(b"f")})

    with PagePictures(later, read_pdf(later)) as pictures:
        assert pictures.compare(20, 0, {}) == PictureComparison((), 0, 1, (1,))


@pytest.mark.parametrize(
    "box", [b"[0 0 1e9 1e9]", b"[0 0 20000000 1]", b"[0 0 1 1]", b"[7 7 7 7]"]
)
def test_page_of_any_size_gets_an_outcome(box: bytes) -> None:
    """A page that cannot be drawn is counted; no exception."""
    pdf = build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/MediaBox%s>>" % box,
            4: stream(b""),
        }
    )
    drawn = first_revision(update(pdf, {4: stream(b"0 0 1 1 re f")}), pdf)

    assert drawn.wanted == 1
    assert drawn.compared + len(drawn.failed) == 1


def test_tree_that_cannot_be_walked_is_drawn_whole() -> None:
    """Every page that PDFium finds is compared."""
    pdf = text(b"100")
    tree = b"<</Type/Pages/Kids[3 0 R 2 0 R]/Count 1/MediaBox[0 0 200 300]>>"
    later = update(pdf, {2: tree, 4: stream(b"0 0 99 99 re f")})

    assert 1 in first_revision(later, pdf).different


def test_document_that_lost_all_pages_is_named() -> None:
    """Nothing is left to draw."""
    pdf = text(b"100")
    later = update(pdf, {2: b"<</Type/Pages/Kids[]/Count 0>>"})

    assert first_revision(later, pdf).different == (1,)
    assert first_revision(update(later, {4: stream(b"")}), later[:-1]).failed == (1,)


def test_end_that_no_file_has_fails() -> None:
    """Forged byte ranges name any number."""
    pdf = text(b"100")
    later = update(pdf, {4: stream(b"f")})

    with PagePictures(later, read_pdf(later)) as pictures:
        assert pictures.compare(-7, 0, {}).failed == (1,)
        assert pictures.compare(10**30, 0, {}) == NOTHING


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"<</A 6 0 R/Parent 7 0 R>>", [(6, False), (7, True)]),
        (b"<</A (<< \\) 8 0 R) /B[6 0 R]>>", [(6, False)]),
        (b"[6\n0\r\nR]", [(6, False)]),
        (b"<</Length 6 0 R>>stream\n8 0 R\nendstream", [(6, False)]),
        (b"<</A<(>/B 6 0 R/C<)>>>", None),
        (b"<</A (\nendobj\n) /B 6 0 R>>", None),
        (b"<</A [\nendobj\n] /B 6 0 R>>", None),
        (b"<</A (()) /B 6 0 R>>", None),
        (b"<</A 6 % 0 R\n0 R>>", None),
        (b"<<" + b" " * 5_000 + b"/A 6 0 R>>", None),
    ],
)
def test_references_are_read_from_bytes_that_are_certain(
    body: bytes, found: list[tuple[int, bool]] | None
) -> None:
    """Objects for which this returns None are parsed."""
    reader = read_pdf(plain(o5=body))

    assert RawReferences(reader, ObjectHistory(reader)).of(5) == found


@pytest.mark.full
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus is absent")
def test_references_of_the_corpus_are_all_found() -> None:
    """Every reference that pyHanko parses is among them."""
    for path in sorted(CORPUS.glob("pades-*.pdf")):
        reader = read_pdf(path.read_bytes())
        history = ObjectHistory(reader)
        raw = RawReferences(reader, history)
        for number in range(1, 500):
            reference = history.reference(number)
            if history.last(number) < 0 or reader.xrefs[reference] is None:
                continue
            parsed = io.BytesIO()
            value = reader.get_object(reference)
            if isinstance(value, StreamObject):
                value = DictionaryObject(value)
            value.write_to_stream(parsed, None)
            found = raw.of(number)
            wanted = re.findall(rb"(\d+) \d+ R\b", parsed.getvalue())
            assert found is None or {*map(int, wanted)} <= {each for each, _ in found}


def test_many_pages_that_share_all_are_not_drawn_for_another() -> None:
    """Only the page that changed is drawn."""
    pdf = many_pages(3_000)
    page = b"<</Type/Page/Parent 2 0 R/Contents 4000 0 R>>"
    later = update(pdf, {2004: page, 4000: stream(b"0 0 5 5 re f")})

    assert first_revision(later, pdf) == seen(2_000)


def test_linearized_file_is_one_revision() -> None:
    """Its two sections are both signed, whichever pyHanko names."""
    before = CORPUS.parent / "failing" / "linearized-signed" / "linearized-signed.pdf"
    if not before.is_file():
        pytest.skip("the shared files do not stand beside the project")

    assert compared(before.read_bytes()) == NOTHING


# Files of other makers


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus is absent")
@pytest.mark.parametrize(
    ("name", "different"),
    [
        ("shadow-hide.pdf", (1,)),
        ("shadow-replace.pdf", (1,)),
        ("pdf-signed-added-page.pdf", (2,)),
        ("pades-signed-filled-form.pdf", (1,)),
        ("pdf-signed-original.pdf", ()),
        ("pades-lta-copied-doctst.pdf", ()),
        ("pades-t-duplicated-doctst.pdf", ()),
        ("pades-two-sig-copied-tst.pdf", ()),
        ("pyhanko_extensions-update-indirect.pdf", ()),
        ("pyhanko_form-update-override-appearance-stream.pdf", ()),
    ],
)
def test_corpus_looks_as_its_readme_says(name: str, different: tuple[int, ...]) -> None:
    """Pages that look different are named, and no others."""
    drawn = compared((CORPUS / name).read_bytes())

    assert (drawn.different, drawn.failed) == (different, ())
