"""Documents of more than one reading: written anew, or refused; never signed as is.

Source: docs/documents.md "One reading".
"""

import io
from pathlib import Path
from typing import Any, Final, Literal

import pikepdf
import pytest

from appliance.domain.documents.inspected import (
    Damage,
    FindingKind,
    Inspection,
    Repair,
    as_it_came,
)
from appliance.domain.documents.verification import Answer
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from tests.support.documents import hostile_pdfs, pdfs
from tests.support.documents.ambiguous_pdfs import AMBIGUOUS, upon
from tests.support.documents.appended_revisions import Appended
from tests.support.documents.crypt_filters import (
    DECRYPTED_DIFFERENTLY,
    metadata_in_the_clear,
)
from tests.support.documents.hostile_pdfs import CONTENT, PAGE
from tests.support.documents.software_signer import signed
from worker.pades.appearance.fonts import load_fonts
from worker.sandbox import page_looks
from worker.sandbox.inspect.single_reading import (
    MOST_OBJECTS,
    ROOM,
    demand_single_reading,
)
from worker.sandbox.inspection import inspect
from worker.sandbox.page_looks import PageLooks
from worker.sandbox.repair import repair
from worker.sandbox.structure import CheckedReader, read_structure
from worker.sandbox.trial.trial_chain import TrialSignature, chains, sign
from worker.sandbox.verify.verify import weigh

FONTS: Final = load_fonts(Path("/usr/share/fonts/truetype/liberation2"))
PAGES: Final = 10
NOT_TAKEN: Final = {
    ErrorCode.PDF_AMBIGUOUS,
    ErrorCode.PDF_UNVERIFIABLE,
    ErrorCode.PDF_MALFORMED,
    ErrorCode.PDF_NO_PAGES,
    ErrorCode.PDF_TOO_COMPLEX,
    ErrorCode.PDF_ENCRYPTED,
}


def taken(pdf: bytes) -> Inspection:
    """The inspection of a document, as a job of the sandbox has it."""
    return inspect(pdf, PAGES, FONTS)


def refusal(pdf: bytes) -> ErrorCode:
    """The code by which a document is not taken as it is; other errors are repaired."""
    try:
        taken(pdf)
    except DocumentRefusedError as exc:
        return exc.code
    except Exception:  # noqa: BLE001 (a job answers PDF_MALFORMED for any of them)
        return ErrorCode.PDF_MALFORMED
    return ErrorCode.INTERNAL


def assert_one_reading(copy: bytes) -> None:
    """No other reading, all numbers in use, nothing referred to that is not there."""
    structure = read_structure(copy, CheckedReader(copy), follow=frozenset())
    assert structure.ambiguities == ()
    assert structure.references is not None
    assert structure.references.dangling is None
    assert structure.references.greatest == structure.references.listed


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_unsigned_document_is_never_taken_as_it_is(name: str) -> None:
    """Its copy has one reading, and is taken; or there is none."""
    with upon(hostile_pdfs.plain()):
        pdf = AMBIGUOUS[name][0]()

    assert refusal(pdf) in NOT_TAKEN
    try:
        made = repair(pdf)
    except DocumentRefusedError:
        return

    assert_one_reading(made.pdf)
    assert taken(made.pdf).signatures == 0
    assert repair(pdf) == made


def test_most_unsigned_documents_are_written_anew() -> None:
    """What can be read by qpdf is: a refusal is the exception."""
    made = 0
    for make, _ in AMBIGUOUS.values():
        with upon(hostile_pdfs.plain()):
            pdf = make()
        try:
            made += bool(repair(pdf).pdf)
        except DocumentRefusedError:
            continue
    assert made > 0.7 * len(AMBIGUOUS)


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_signed_document_is_refused(name: str) -> None:
    """Whatever is appended to it: nobody signs on top, and nobody breaks it."""
    pdf = AMBIGUOUS[name][0]()

    assert refusal(pdf) in NOT_TAKEN
    with pytest.raises(DocumentRefusedError):
        repair(pdf)


STRAY: Final = b"<</Type/Sig/Filter/Adobe.PPKLite/ByteRange[0 1 2 3]/Contents<00>>>"


def test_object_that_looks_like_a_signature_protects_nothing() -> None:
    """Only the value of a signature field is one."""
    pdf = hostile_pdfs.plain(page=b"/Contents 6 0 R", o5=STRAY, o6=CONTENT)

    assert refusal(pdf) is ErrorCode.PDF_AMBIGUOUS
    assert_one_reading(repair(pdf).pdf)


def test_empty_signature_field_is_no_signature() -> None:
    """Nor does it keep the copy from being taken."""
    pdf = hostile_pdfs.plain(
        b"/AcroForm<</Fields[5 0 R]>>",
        b"/Annots[5 0 R]/Contents 4 0 R/Contents 6 0 R",
        o5=b"<</Type/Annot/Subtype/Widget/FT/Sig/T(Firma)/Rect[10 10 90 40]/P 3 0 R>>",
        o6=CONTENT,
    )

    copy = repair(pdf).pdf

    assert [each.name for each in taken(copy).signing.empty] == ["Firma"]


@pytest.mark.parametrize(
    ("entries", "objects"),
    [
        (b"/Annots[99 0 R]", {}),
        (b"/Resources<</XObject<</X 99 0 R>>>>", {}),
        (b"/Note(1 \\(2\\) 3)/PieceInfo 99 0 R", {}),
        (b"/Group 99 1 R", {}),
        (b"/Resources 5 0 R", {"o5": b"<</Font[<</F 99 0 R>>]>>"}),
    ],
)
def test_reference_to_nothing_is_written_anew(
    entries: bytes, objects: dict[str, bytes]
) -> None:
    """A later revision could define it: null today, a picture tomorrow."""
    pdf = hostile_pdfs.plain(page=entries, **objects)

    assert refusal(pdf) is ErrorCode.PDF_AMBIGUOUS
    assert_one_reading(repair(pdf).pdf)


@pytest.mark.parametrize(
    "text",
    [
        b"(99 0 R)",
        b"(a (99 0 R) b)",
        b"(a (b (c (99 0 R))) \\) 99 0 R)",
        b"<3939203020 52>",
        b"1 % 99 0 R\n",
    ],
)
def test_text_is_no_reference(text: bytes) -> None:
    """Strings and comments refer to nothing, however deep their parentheses are."""
    described = taken(hostile_pdfs.plain(page=b"/Note " + text))

    assert described.last_number == 4


def test_reference_in_a_signed_document_is_numbered_above() -> None:
    """It cannot be written anew: what is appended gets greater numbers."""
    pdf = signed(hostile_pdfs.plain(page=b"/PieceInfo 5000 0 R"))

    above = demand_single_reading(pdf, PAGES, signed=True)

    assert above == 5000
    described = Inspection(len(pdf), (), (), 1, None, last_number=above)
    copy = sign(pdf, (TrialSignature(),), described, FONTS).pdf
    assert min(_numbers(copy) - _numbers(pdf)) == 5001


def _numbers(pdf: bytes) -> set[int]:
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        return {each.objgen[0] for each in opened.objects}


def test_numbers_without_room_are_written_anew() -> None:
    """Numbers that `/Size` leaves out, and numbers near the last one there is."""
    high = MOST_OBJECTS - ROOM + 1
    gap = hostile_pdfs.plain().replace(b"/Size 5", b"/Size 900000")
    end = hostile_pdfs.build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: PAGE.replace(b"4 0 R", b"%d 0 R" % high),
        },
        apart=high,
    )

    assert refusal(gap) is ErrorCode.PDF_AMBIGUOUS
    assert refusal(end) in {ErrorCode.PDF_UNVERIFIABLE, ErrorCode.PDF_AMBIGUOUS}
    for pdf in (gap, end):
        assert taken(repair(pdf).pdf).last_number < ROOM


def test_usage_rights_are_gone_from_a_copy() -> None:
    """And it says so."""
    pdf = hostile_pdfs.plain(
        b"/Perms<</UR3 5 0 R>>", b"/Contents 6 0 R", o5=STRAY, o6=CONTENT
    )

    made = repair(pdf)

    assert Damage.USAGE_RIGHTS in made.damage
    assert b"/Perms" not in made.pdf


def test_copy_that_looks_different_says_so() -> None:
    """PDFium draws the page that is listed first, qpdf keeps the one listed last."""
    pdf = _page_listed_twice()

    made = repair(pdf)

    assert refusal(pdf) is ErrorCode.PDF_AMBIGUOUS
    assert page_looks.are_drawn_alike(pdf, made.pdf) is False


@pytest.mark.parametrize("pages", [3, 45])
def test_last_page_of_a_copy_is_compared_as_well(pages: int) -> None:
    """However many there are, for as long as there is time."""
    pdf = _last_listed_twice(pages)

    assert page_looks.are_drawn_alike(pdf, repair(pdf).pdf) is False


def test_page_that_is_not_compared_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """That it could not be compared is not that it looks the same."""
    pdf = _last_listed_twice(3)
    monkeypatch.setattr(page_looks, "_CPU_S", -1.0)

    made = repair(pdf)

    assert page_looks.are_drawn_alike(pdf, made.pdf) is None
    unknown = Repair("", (Damage.LOOK_UNKNOWN,))
    told = as_it_came(taken(made.pdf), unknown).findings
    assert FindingKind.UNEXAMINED_PARTS in told


def test_original_that_pdfium_does_not_open_is_told() -> None:
    """Nobody knows what the copy would have to look like."""
    pdf = DECRYPTED_DIFFERENTLY["streams in the clear"]

    assert page_looks.are_drawn_alike(pdf, repair(pdf).pdf) is None


def _last_listed_twice(pages: int) -> bytes:
    """Pages of which a table has the last one at two places, as below."""
    first = 6
    last = first + pages - 1
    kids = b" ".join(b"%d 0 R" % number for number in range(first, last + 1))
    pdf = hostile_pdfs.build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, pages),
            3: b"null",
            4: CONTENT,
            5: CONTENT.replace(b"0 0 100", b"9 9 180"),
            **dict.fromkeys(range(first, last + 1), PAGE),
            last + 1: PAGE.replace(b"4 0 R", b"5 0 R"),
        }
    )
    return _renumbered(pdf, last + 1, last)


def _page_listed_twice() -> bytes:
    """A page that a table has at two places, with another content at each."""
    other = PAGE.replace(b"4 0 R", b"5 0 R")
    pdf = hostile_pdfs.plain(o5=CONTENT.replace(b"0 0 100", b"9 9 180"), o6=other)
    return _renumbered(pdf, 6, 3)


def _renumbered(pdf: bytes, last: int, number: int) -> bytes:
    """The last object becomes a second one of another number, which is listed last."""
    at = pdf.index(b"\n%d 0 obj" % last) + 1
    was = b"%d" % last
    pdf = pdf[:at] + (b"%d" % number).ljust(len(was)) + pdf[at + len(was) :]
    row = b"%010d 00000 n \n" % at
    return (
        pdf.replace(b"\n0 %d\n" % (last + 1), b"\n0 %d\n" % last)
        .replace(row, b"%d 1\n" % number + row)
        .replace(b"/Size %d" % (last + 1), b"/Size %d" % last)
    )


def test_second_stamp_leaves_reals_as_they_are() -> None:
    """A page with `0.0` in its box is written again for the second signer's stamp."""
    page = PAGE.replace(b"[0 0 200 300]", b"[0.0 0. 200. 300.50]")
    pdf = hostile_pdfs.build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R 5 0 R]/Count 2>>",
            3: page,
            4: CONTENT,
            5: page,
        }
    )

    described = taken(pdf)

    assert len(described.pages) == 2
    chain = chains(described, FONTS)[0]
    copy = sign(pdf, chain, described, FONTS)
    assert len(chain) == len(copy.marks) == 2
    assert {each.answer for each in weigh(copy.pdf).values()} <= {Answer.YES, Answer.NO}
    assert all(weigh(copy.pdf)[name].answer is Answer.YES for name in copy.fields)


def test_strings_are_written_again_by_their_bytes() -> None:
    """The colours of a picture may look like UTF-16; a stamp changes none of them."""
    palette = b"<FEFF00410042>"
    page = (
        PAGE[:-2]
        + b"/Resources<</ColorSpace<</C[/Indexed/DeviceRGB 1 %s]>>>>>>" % palette
    )
    pdf = hostile_pdfs.build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: page,
            4: CONTENT,
        }
    )
    described = taken(pdf)

    copy = sign(pdf, chains(described, FONTS)[0], described, FONTS).pdf

    with pikepdf.open(io.BytesIO(copy)) as opened:
        kept = opened.pages[0].obj.Resources.ColorSpace.C[3]
    assert bytes(kept) == bytes.fromhex(palette.strip(b"<>").decode())


@pytest.mark.parametrize("name", [b"/#F1", b"/#C3#B1", b"/#FE#FF"])
def test_names_are_written_again_by_their_bytes(name: bytes) -> None:
    """A font of a name that is no UTF-8 is found by the content after a stamp, too."""
    page = PAGE[:-2] + b"/Resources<</Font<<%s 5 0 R>>>>>>" % name
    pdf = hostile_pdfs.build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: page,
            4: CONTENT,
            5: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        }
    )
    described = taken(pdf)

    copy = sign(pdf, chains(described, FONTS)[0], described, FONTS).pdf

    assert name + b" 5 0 R" in copy[len(pdf) :]


def test_trailer_without_information_stays_so() -> None:
    """PyHanko would take `/Info` from the trailer before."""
    revision = Appended(
        hostile_pdfs.plain(o5=b"<</Title(Otro)>>").replace(
            b"/Root", b"/Info 5 0 R/Root"
        )
    )
    revision.add(4, CONTENT)
    pdf = revision.table().replace(b"/Size 1000", b"/Size 6")
    described = taken(pdf)

    copy = sign(pdf, chains(described, FONTS)[0], described, FONTS).pdf

    with pikepdf.open(io.BytesIO(copy)) as opened:
        assert "/Info" not in opened.trailer


def test_fields_that_readers_draw_stay_so() -> None:
    """What a signer saw in a field is not gone once it is signed."""
    pdf = hostile_pdfs.plain(
        b"/AcroForm<</Fields[5 0 R]/NeedAppearances true/DA(/Helv 12 Tf 0 g)>>",
        b"/Annots[5 0 R]",
        o5=b"<</Type/Annot/Subtype/Widget/FT/Tx/T(Monto)/V(100)/Rect[10 10 90 40]>>",
    )
    described = taken(pdf)

    copy = sign(pdf, chains(described, FONTS)[0], described, FONTS).pdf

    with pikepdf.open(io.BytesIO(copy)) as opened:
        form: Any = opened.Root.AcroForm
        assert (form.get("/NeedAppearances"), form.get("/SigFlags")) == (True, 3)


def test_field_with_a_widget_of_its_own_cannot_be_signed() -> None:
    """Poppler calls it unsigned; the document itself can be signed."""
    pdf = hostile_pdfs.plain(
        b"/AcroForm<</Fields[5 0 R]>>",
        b"/Annots[6 0 R]",
        o5=b"<</FT/Sig/T(Firma)/Kids[6 0 R]>>",
        o6=b"<</Type/Annot/Subtype/Widget/Parent 5 0 R/Rect[10 10 90 40]/P 3 0 R>>",
    )

    (field,) = taken(pdf).signing.empty

    assert not field.usable
    assert field.needs == ("Kids",)


@pytest.mark.parametrize("revision", [None, 2, 3, 4, 6])
def test_each_file_has_a_copy_of_its_own(
    revision: Literal[2, 3, 4, 6] | None,
) -> None:
    """However alike the files are, and however soon one comes after the other."""
    like_ours = b"/ID [<00><" + b"0" * 32 + b">] /Encrypt 1 0 R >>\nstartxref\n"
    plain = hostile_pdfs.plain()
    if revision is not None:
        plain = pdfs.encrypted(user="", revision=revision)
    with pikepdf.open(io.BytesIO(plain)) as opened:
        opened.trailer["/Like"] = pikepdf.String(like_ours)
        out = io.BytesIO()
        opened.save(out, encryption=revision is not None)

    copies = [repair(out.getvalue() + b"\n%d" % at).pdf for at in range(6)]

    assert len(set(copies)) == len(copies)
    names = set()
    for copy in copies:
        assert taken(copy).pages
        with pikepdf.open(io.BytesIO(copy)) as opened:
            assert opened.is_encrypted is (revision is not None)
            names.add(tuple(map(bytes, opened.trailer["/ID"].as_list())))
    assert len(names) == len(copies)


def test_encrypted_copy_has_no_object_streams() -> None:
    """A second stamp would make the first signature invalid for pyHanko."""
    page = PAGE[:-2] + b"/Resources<</Font<</F 6 0 R>>>>>>"
    plain = hostile_pdfs.build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R 5 0 R]/Count 2>>",
            3: page,
            4: CONTENT,
            5: page,
            6: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        }
    )
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(plain)) as opened:
        opened.save(
            out,
            encryption=pikepdf.Encryption(owner="o", user="", R=6),
            object_stream_mode=pikepdf.ObjectStreamMode.generate,
        )
    pdf = out.getvalue()

    assert refusal(pdf) is ErrorCode.PDF_UNVERIFIABLE
    copy = repair(pdf).pdf
    assert b"/ObjStm" not in copy
    assert FindingKind.ENCRYPTED_EMPTY_PASSWORD in taken(copy).findings


_WIDGET: Final = b"<</Type/Annot/Subtype/Widget/F 4/Rect[9 9 90 90]/AP<</N 6 0 R>>%s>>"


@pytest.mark.parametrize(
    ("form", "widget", "above"),
    [
        (b"", b"/FT/Tx/T(a)/V(x)", b"null"),
        (b"/AcroForm null", b"/FT/Tx/T(a)/V(x)", b"null"),
        (b"", b"/FT/Tx/Parent 7 0 R", b"<</T(a)/V(x)/Kids[5 0 R]>>"),
    ],
)
def test_fields_without_a_form_get_one(
    form: bytes, widget: bytes, above: bytes
) -> None:
    """PDFium shows them only once a signature has made a form."""
    pdf = hostile_pdfs.plain(
        form,
        b"/Annots[5 0 R]",
        o5=_WIDGET % widget,
        o6=hostile_pdfs.NO_MARKS,
        o7=above,
    )

    assert refusal(pdf) is ErrorCode.PDF_AMBIGUOUS
    made = repair(pdf)
    assert Damage.FORM_FIELDS in made.damage
    with pikepdf.open(io.BytesIO(made.pdf)) as copy:
        assert copy.Root.AcroForm.Fields[0].T == "a"
    assert len(taken(made.pdf).pages) == 1


@pytest.mark.parametrize("revision", [2, 3, 4, 6])
def test_encryption_within_the_trailer_stays_there(
    revision: Literal[2, 3, 4, 6],
) -> None:
    """MuPDF writes it so, and every later trailer has to say the same."""
    pdf = pdfs.encrypted_in_trailer(revision)

    described = taken(pdf)
    assert described.findings == (FindingKind.ENCRYPTED_EMPTY_PASSWORD,)
    for chain in chains(described, FONTS):
        signed_pdf = sign(pdf, chain, described, FONTS, renewed=True).pdf
        with (
            pikepdf.open(io.BytesIO(pdf)) as was,
            pikepdf.open(io.BytesIO(signed_pdf)) as has,
        ):
            assert not has.trailer.Encrypt.is_indirect
            assert has.trailer.Encrypt.unparse() == was.trailer.Encrypt.unparse()
        with PageLooks(signed_pdf) as looks:
            assert len(looks) == 1


@pytest.mark.parametrize("name", DECRYPTED_DIFFERENTLY)
def test_file_that_is_decrypted_in_different_ways_is_written_anew(name: str) -> None:
    """PDFium shows nothing of it, or does not open it; others show all of it."""
    pdf = DECRYPTED_DIFFERENTLY[name]

    assert refusal(pdf) is ErrorCode.PDF_AMBIGUOUS
    copy = repair(pdf).pdf
    assert FindingKind.ENCRYPTED_EMPTY_PASSWORD in taken(copy).findings
    with PageLooks(copy) as looks:
        assert looks.picture(1).convert("L").getextrema() == (0, 255)


def test_metadata_in_the_clear_is_usual() -> None:
    """They are no content, and a search finds a file by them."""
    found = taken(metadata_in_the_clear()).findings

    assert found == (FindingKind.ENCRYPTED_EMPTY_PASSWORD,)


def test_page_that_nobody_can_be_shown_is_not_signed() -> None:
    """PDFium believes a /Count that is too low, and has fewer pages."""
    pdf = hostile_pdfs.build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R 5 0 R]/Count 1>>",
            3: PAGE,
            4: CONTENT,
            5: PAGE,
        }
    )

    assert refusal(pdf) is ErrorCode.PDF_UNVERIFIABLE
    with PageLooks(repair(pdf).pdf) as looks:
        assert len(looks) == 2
