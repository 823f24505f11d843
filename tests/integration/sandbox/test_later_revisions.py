"""Changes that may follow a signature, and flaws of pyHanko's rules that ours refuse.

Each flaw has a small reproduction: pyHanko's own policy accepts the same file.
"""

import io
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pikepdf import ObjectStreamMode, Pdf
from pyhanko.pdf_utils.generic import (
    DictionaryObject,
    IndirectObject,
    NameObject,
    NumberObject,
    Reference,
    TextStringObject,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign import fields
from pyhanko.sign.diff_analysis import (
    DEFAULT_DIFF_POLICY,
    DiffResult,
    ModificationLevel,
)
from pyhanko.sign.fields import (
    FieldMDPAction,
    FieldMDPSpec,
    MDPPerm,
    SigFieldSpec,
    enumerate_sig_fields,
)
from pyhanko.sign.validation import EmbeddedPdfSignature

from appliance.domain.documents.verification import Answer, FilledField
from appliance.domain.requests.levels import ValidationData
from tests.support.documents import hostile_pdfs
from tests.support.documents.altered_pdfs import update
from tests.support.documents.growth import MOST, growth
from tests.support.documents.many_signatures import signed_many_times
from tests.support.documents.software_signer import signed, software_signer
from worker.pades import Validated, add_dss
from worker.pades.appearance.fonts import StampFonts
from worker.sandbox.verify.later_revisions import LaterChanges, LaterRevisions
from worker.sandbox.verify.revisions import Revisions

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
DRAWN = (
    b"<</Type/XObject/Subtype/Form/BBox[0 0 200 300]/Length 27>>stream\n"
    b"1 0 0 rg 0 0 200 300 re f  \nendstream"
)
EMPTY = b"<</Type/XObject/Subtype/Form/BBox[0 0 0 0]/Length 0>>stream\n\nendstream"
STAMP = (
    b"<</Type/DocTimeStamp/Filter/Adobe.PPKLite/SubFilter/ETSI.RFC3161"
    b"/ByteRange[0 0 0 0]/Contents<00>>>"
)


def open_signatures(pdf: bytes) -> tuple[PdfFileReader, list[EmbeddedPdfSignature]]:
    """Open a file and the signatures in it that can be read, oldest first."""
    reader = PdfFileReader(io.BytesIO(pdf), strict=False)
    if reader.encrypted:
        reader.decrypt("")
    found = []
    for title, _, field in enumerate_sig_fields(reader, filled_status=True):
        with suppress(ValueError):  # without a CMS
            found.append(EmbeddedPdfSignature(reader, field, title))
    return reader, sorted(found, key=lambda each: each.signed_revision)


def changes(pdf: bytes) -> list[LaterChanges]:
    """Judge what follows each signature of a file."""
    reader, signatures = open_signatures(pdf)
    policy = LaterRevisions(reader)
    return [policy.changes_after(each) for each in signatures]


def stock_level(pdf: bytes) -> ModificationLevel | None:
    """Level that pyHanko's own policy gives the first signature; None: refused."""
    reader, (first, *_) = open_signatures(pdf)
    result = DEFAULT_DIFF_POLICY.review_file(reader, first.signed_revision)
    return result.modification_level if isinstance(result, DiffResult) else None


def root_of(pdf: bytes) -> int:
    """Number of the catalog."""
    return int(re.findall(rb"/Root (\d+) \d+ R", pdf)[-1])


def saved(pdf: bytes, objects: dict[int, bytes]) -> bytes:
    """Append a revision with these objects."""
    return update(pdf, objects, b"%d 0 R" % root_of(pdf))


def edited(pdf: bytes, edit: Callable[[IncrementalPdfFileWriter], None]) -> bytes:
    """Append a revision that pyHanko writes."""
    writer = IncrementalPdfFileWriter(io.BytesIO(pdf), strict=False)
    edit(writer)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def with_field(
    pdf: bytes, field: bytes, *, on_page: bool = True, **more: bytes
) -> bytes:
    """Append a revision with one more field, 90; `more` are further objects."""
    form = int(re.findall(rb"/AcroForm (\d+) 0 R", pdf)[-1])
    known = re.findall(rb"/Fields \[(.*?)\]", pdf)[-1]
    objects = {int(name[1:]): body for name, body in more.items()}
    if on_page:
        page = b"/Annots[%s 90 0 R]>>" % known
        objects[3] = hostile_pdfs.PAGE[:-2] + page
    objects[90] = field
    objects[form] = b"<</SigFlags 3/Fields[%s 90 0 R]>>" % known
    return saved(pdf, objects)


@cache
def base() -> bytes:
    """A signed document of one page; object 4 is its content."""
    return signed(hostile_pdfs.plain())


@cache
def text_form(certify: MDPPerm | None = None, lock: str = "") -> bytes:
    """A signed form with the text fields `a` (5, value 100) and `b` (7, empty)."""
    entries = b"<</Type/Annot/Subtype/Widget/FT/Tx/F 4/P 3 0 R/DA(/F 9 Tf)"
    pdf = hostile_pdfs.plain(
        b"/AcroForm 8 0 R",
        b"/Annots[5 0 R 7 0 R]",
        o5=entries + b"/T(a)/V(100)/Rect[0 0 200 30]/AP<</N 6 0 R>>>>",
        o6=DRAWN,
        o7=entries + b"/T(b)/Rect[0 40 200 70]>>",
        o8=b"<</Fields[5 0 R 7 0 R]/DA(/F 9 Tf)>>",
    )
    if not lock:
        return signed(pdf, certify=certify)
    writer = IncrementalPdfFileWriter(io.BytesIO(pdf), strict=False)
    spec = FieldMDPSpec(FieldMDPAction.INCLUDE, [lock])
    fields.append_signature_field(writer, SigFieldSpec("Firma1", field_mdp_spec=spec))
    out = io.BytesIO()
    writer.write(out)
    return signed(out.getvalue())


def fill(
    pdf: bytes, title: str, value: str, *, drawn: bool = True, **entries: int
) -> bytes:
    """Append a revision that fills in a text field.

    Args:
        pdf: the form.
        title: name of the field.
        value: its new value.
        drawn: whether it gets a new appearance.
        entries: further entries of the field.
    """

    def edit(writer: IncrementalPdfFileWriter) -> None:
        nodes = writer.root["/AcroForm"]["/Fields"]
        node = next(one for one in nodes if one.get_object().get("/T") == title)
        node = node.get_object()
        node["/V"] = TextStringObject(value)
        for key, number in entries.items():
            node[f"/{key}"] = NumberObject(number)
        if drawn:
            reader = PdfFileReader(
                io.BytesIO(hostile_pdfs.plain(b"/X 5 0 R", o5=DRAWN)), strict=False
            )
            look = writer.import_object(reader.root["/X"])
            node["/AP"] = pdfs_dictionary({"/N": writer.add_object(look)})
        writer.update_container(node)

    return edited(pdf, edit)


def pdfs_dictionary(entries: dict[str, Any]) -> Any:
    """Make a dictionary of pyHanko's."""
    return DictionaryObject({NameObject(k): v for k, v in entries.items()})


UNSEEN = b"<</Type/Annot/Subtype/Widget/FT/Sig/T(b)/F 4/P 3 0 R/Rect%s%s>>"
LOOK = b"/AP<</N 91 0 R>>"


RECTS = {
    "number by reference": b"[0 0 200 5 0 R]",
    "null": b"[0 0 200 null]",
    "boolean": b"[0 0 200 true]",
    "names": b"[/a /b /c /d]",
    "three": b"[0 0 200]",
    "five": b"[0 0 200 300 400]",
    "array by reference": b" 6 0 R",
}


def with_odd_place(rect: bytes) -> bytes:
    """An empty signature field that shows the whole page, at an odd /Rect."""
    pdf = signed(hostile_pdfs.plain(o5=b"300", o6=b"[0 0 0 0]", o7=DRAWN))
    return with_field(pdf, UNSEEN % (rect, b"/AP<</N 7 0 R>>"))


@pytest.mark.parametrize("kind", RECTS)
def test_field_without_plain_place_is_refused(kind: str) -> None:
    """S3: readers draw such a field, and pyHanko takes it for one without area."""
    pdf = with_odd_place(RECTS[kind])

    (found,) = changes(pdf)

    # Its own policy calls it less than form filling.
    assert stock_level(pdf) is ModificationLevel.LTA_UPDATES
    assert found.answer is Answer.NO
    assert found.reason == 'the place of the field "b" is not four plain numbers'


@pytest.mark.parametrize(("look", "answer"), [(b"", Answer.YES), (LOOK, Answer.NO)])
def test_unseen_field_draws_nothing(look: bytes, answer: Answer) -> None:
    """An empty signature field may follow if it shows nothing at all."""
    pdf = with_field(base(), UNSEEN % (b"[0 0 0 0]", look), o91=DRAWN)

    (found,) = changes(pdf)

    assert found.answer is answer
    assert found.reason in {"", 'the visible field "b" was added and not signed'}


@pytest.mark.parametrize(("look", "answer"), [(EMPTY, Answer.YES), (DRAWN, Answer.NO)])
def test_document_timestamp_may_have_an_empty_appearance(
    look: bytes, answer: Answer
) -> None:
    """P5: EU DSS writes one; a certification of level 1 allows it, too."""
    pdf = with_field(
        signed(hostile_pdfs.plain(), certify=MDPPerm.NO_CHANGES),
        UNSEEN % (b"[0 0 0 0]", b"/V 92 0 R" + LOOK),
        o91=look,
        o92=STAMP,
    )

    (found,) = changes(pdf)

    assert found.answer is answer


DANGLING: dict[str, bytes] = {
    "content": hostile_pdfs.build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: hostile_pdfs.PAGE.replace(b"4 0 R>>", b"[4 0 R 5000 0 R]>>"),
            4: hostile_pdfs.CONTENT,
        }
    ),
    "XObject": hostile_pdfs.plain(page=b"/Resources<</XObject<</X 5000 0 R>>>>"),
    "parent": hostile_pdfs.plain(
        page=b"/Annots[5 0 R]", o5=b"<</Type/Annot/Parent 5000 0 R>>"
    ),
    "generation": hostile_pdfs.plain(page=b"/Resources<</XObject<</X 5000 7 R>>>>"),
}


@pytest.mark.parametrize("kind", DANGLING)
@pytest.mark.parametrize("between", [False, True])
def test_gap_in_the_signed_revision_may_not_be_filled(kind: str, between: bool) -> None:
    """S4: neither by the next revision, nor by one after it."""
    pdf = signed(DANGLING[kind])
    if between:
        pdf = with_dss(pdf)

    found = changes(saved(pdf, {5000: DRAWN}))[0]

    assert found.answer is Answer.NO
    assert found.reason == "page 1 refers to object 5000, which was added after it"


def test_stock_policy_calls_the_filling_of_a_gap_an_orphan() -> None:
    """PyHanko's flaw: what it allows is less than form filling."""
    pdf = saved(signed(DANGLING["XObject"]), {5000: DRAWN})

    assert stock_level(pdf) is ModificationLevel.LTA_UPDATES


def test_gap_that_the_trailer_alone_refers_to_may_be_filled() -> None:
    """Hybrid files of LibreOffice refer to undefined numbers in /AdditionalStreams."""
    pdf = hostile_pdfs.plain().replace(
        b"/Root 1 0 R", b"/AdditionalStreams[/a 90 0 R]/Root 1 0 R"
    )

    (found,) = changes(with_field(signed(pdf), UNSEEN % (b"[0 0 0 0]", b"")))

    assert found.answer is Answer.YES


def test_object_beyond_a_low_size_may_not_be_replaced() -> None:
    """PyHanko's flaw: it takes numbers from /Size on for new ones."""
    pdf = base()
    pdf = pdf[: pdf.rindex(b"trailer")] + re.sub(
        rb"/Size \d+",
        lambda m: b"/Size 3".ljust(len(m[0])),
        pdf[pdf.rindex(b"trailer") :],
    )
    reader, (signature,) = open_signatures(saved(pdf, {4: DRAWN}))

    found = LaterRevisions(reader).changes_after(signature)

    assert found.answer is Answer.NO
    assert found.reason == "page 1 was changed after it (object 4)"


def test_object_may_not_get_a_second_generation() -> None:
    """Many readers ignore generations, and would show the later object."""
    pdf = saved(base(), {4: DRAWN})
    pdf = pdf[: len(base())] + pdf[len(base()) :].replace(
        b"4 0 obj", b"4 1 obj"
    ).replace(b" 00000 n", b" 00001 n")

    (found,) = changes(pdf)

    assert found.reason == "object 4 was given a second generation after it"


def test_object_stream_may_not_be_replaced() -> None:
    """Nothing refers to one, and every object in it would be another."""
    with Pdf.open(io.BytesIO(hostile_pdfs.plain())) as pdf:
        out = io.BytesIO()
        pdf.save(out, object_stream_mode=ObjectStreamMode.generate)
    packed = signed(out.getvalue())
    reader = PdfFileReader(io.BytesIO(packed), strict=False)
    (stream,) = reader.xrefs.object_streams_used_in(0)

    found = changes(edited_raw(packed, {stream.idnum: DRAWN}))[0]

    assert found.answer is Answer.NO
    assert found.reason == f"the object stream {stream.idnum} was replaced after it"


def edited_raw(pdf: bytes, objects: dict[int, bytes]) -> bytes:
    """Append objects to a file with cross-reference streams."""
    given = hostile_pdfs.build({1: b"<<>>", **objects})
    source = PdfFileReader(io.BytesIO(given), strict=False)
    writer = IncrementalPdfFileWriter(io.BytesIO(pdf), strict=False)
    for number in objects:
        value = source.get_object(Reference(number, 0, source))
        writer.objects[0, number] = value
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize("generation", [b"00000", b"00001", b"65535"])
def test_object_may_not_be_freed(generation: bytes) -> None:
    """PDFium frees an object whatever the generation; pyHanko ignores 0."""
    pdf = saved(base(), {90: b"null"})
    start = pdf.rindex(b"xref\n0 1\n")
    table = b"4 1\n0000000000 %s f \n" % generation
    pdf = pdf[: start + 5] + b"0 1\n0000000000 65535 f \n" + table + pdf[start + 29 :]

    (found,) = changes(pdf)

    assert found.answer is Answer.NO
    assert found.reason == "object 4 of page 1 was removed after it"


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        (b"/ID[<02><02>]", "the file identifier was changed after it"),
        (b"/ID[<01><02>]", ""),
        (b"/Encrypt 4 0 R", "the encryption was changed after it"),
    ],
)
def test_later_trailer_keeps_its_entries(entries: bytes, reason: str) -> None:
    """The second element of /ID changes with each revision; nothing else does."""
    first = hostile_pdfs.plain().replace(b"/Root 1", b"/ID[<01><01>]/Root 1")
    pdf = signed(first)
    later = saved(pdf, {90: b"null"})[len(pdf) :].replace(b"/Root", entries + b"/Root")
    reader = PdfFileReader(io.BytesIO(pdf + later), strict=False)
    revision = reader.total_revisions - 2

    found = LaterRevisions(reader).changes_after_revision(revision)

    assert found.reason == reason


def test_later_trailer_keeps_the_catalog() -> None:
    """Another catalog with equal entries is another one."""
    root = root_of(base())
    catalog = re.findall(rb"\n%d 0 obj\s*(<<.*?>>)\s*endobj" % root, base(), re.DOTALL)[
        -1
    ]

    (found,) = changes(update(base(), {90: catalog}, b"90 0 R"))

    assert found.reason == "the trailer names another document catalog"


@pytest.mark.parametrize(
    ("signed_entries", "later", "reason"),
    [
        (b"/Version/1.7", b"/Version/2.0", ""),
        (b"/Version/1.7", b"/Version/1.3", "the document's PDF version was lowered"),
        (b"/Version/1.7", b"", "/Version of the document catalog was removed"),
        (b"", b"/Version(x)", "/Version of the document catalog is no version"),
        (b"", b"/MarkInfo<</Marked true>>", ""),
        (b"", b"/MarkInfo 4 0 R", "the document catalog was changed after it"),
        (b"", b"/MarkInfo 7", "/MarkInfo of the document catalog is no dictionary"),
        (b"", b"/Extensions<</ADBE<</BaseVersion/1.7>>>>", ""),
        (b"/MarkInfo<<>>", b"", "/MarkInfo of the document catalog was removed"),
        *(
            (b"", b"/%s<<>>" % key, "the document catalog was changed after it")
            for key in (b"Perms", b"Names", b"Outlines", b"OCProperties", b"AA")
        ),
        (b"/Outlines<<>>", b"", "the document catalog was changed after it"),
        (b"/Lang(es)", b"/Lang(en)", "the document catalog was changed after it"),
    ],
)
def test_catalog_keeps_what_is_shown(
    signed_entries: bytes, later: bytes, reason: str
) -> None:
    """Entries that change nothing that is seen may come, and none may go."""
    pdf = signed(hostile_pdfs.plain(signed_entries))

    def edit(writer: IncrementalPdfFileWriter) -> None:
        given = PdfFileReader(io.BytesIO(hostile_pdfs.plain(later)), strict=False).root
        for key in re.findall(r"/[A-Za-z]+", signed_entries.decode()):
            writer.root.pop(key, None)
        for key in set(given) - {"/Type", "/Pages"}:
            value = given.raw_get(key)
            if isinstance(value, IndirectObject):
                value = IndirectObject(value.idnum, 0, writer)
            writer.root[key] = value
        writer.update_root()

    (found,) = changes(edited(pdf, edit))

    assert found.answer is (Answer.NO if reason else Answer.YES)
    assert found.reason.startswith(reason)


def test_metadata_stays_metadata() -> None:
    """An object that is no XMP may not be called that."""
    catalog = re.findall(rb"\n1 0 obj\s*<<(.*?)>>\s*endobj", base(), re.DOTALL)[-1]

    (found,) = changes(saved(base(), {1: b"<<%s/Metadata 4 0 R>>" % catalog}))

    assert found.reason == "the metadata was changed after it, and is no plain XMP"


def with_dss(pdf: bytes) -> bytes:
    """Append validation data for the first signature."""
    _, (signature, *_) = open_signatures(pdf)
    data = ValidationData(certificates=(software_signer().root,))
    return pdf + add_dss(pdf, [Validated(signature.pkcs7_content, data)])


@pytest.mark.parametrize("steps", [1, 2])
def test_validation_data_may_not_be_removed(steps: int) -> None:
    """Neither at once, nor first an entry and then the whole."""
    pdf = with_dss(base())
    assert changes(pdf)[0].answer is Answer.YES

    def without(key: str, holder: Callable[[Any], Any]) -> bytes:
        def edit(writer: IncrementalPdfFileWriter) -> None:
            node = holder(writer.root)
            del node[key]
            writer.update_container(node)
            writer.update_root()

        return edited(pdf, edit)

    if steps == 2:
        pdf = without("/VRI", lambda root: root["/DSS"])
        assert changes(pdf)[0].answer is Answer.NO
    pdf = without("/DSS", lambda root: root)

    reason = changes(pdf)[0].reason
    assert reason.startswith("validation data was removed after it (object ")


def test_form_filling_is_allowed_and_named() -> None:
    """After an approval signature: each field with its first and its last value."""
    pdf = fill(fill(fill(text_form(), "b", "uno"), "a", "200"), "b", "dos")

    (found,) = changes(pdf)

    assert (found.answer, found.reason) == (Answer.YES, "")
    assert found.filled == (FilledField("a", "100", "200"), FilledField("b", "", "dos"))
    assert found.fields == {"a", "b"}
    assert {5, 7} <= found.objects


@pytest.mark.parametrize(
    ("certify", "answer"),
    [
        (MDPPerm.NO_CHANGES, Answer.NO),
        (MDPPerm.FILL_FORMS, Answer.YES),
        (MDPPerm.ANNOTATE, Answer.YES),
    ],
)
def test_certification_restricts_form_filling(certify: MDPPerm, answer: Answer) -> None:
    """By its level; level 1 names the field that was filled in."""
    (found,) = changes(fill(text_form(certify), "b", "uno"))

    assert found.answer is answer
    assert ('"b"' in found.reason) is (answer is Answer.NO)


@pytest.mark.parametrize(("lock", "answer"), [("b", Answer.NO), ("a", Answer.YES)])
def test_field_locks_restrict_form_filling(lock: str, answer: Answer) -> None:
    """A lock forbids its fields alone; a later signature inherits it."""
    pdf = text_form(lock=lock)
    twice = signed(pdf, field="Firma2")

    for found in (*changes(fill(pdf, "b", "x")), *changes(fill(twice, "b", "x"))):
        assert found.answer is answer
        if answer is Answer.NO:
            assert found.reason == 'the locked field "b" was changed after it'


def test_other_appearance_of_the_same_value_is_refused() -> None:
    """The "shadow replace" attack, which pyHanko calls form filling."""
    pdf = fill(text_form(), "a", "100")

    assert stock_level(pdf) is ModificationLevel.FORM_FILLING
    reason = 'the field "a" shows something else with the same value'
    assert changes(pdf)[0].reason == reason


def test_field_may_not_be_hidden() -> None:
    """PyHanko lets all annotation flags change with a value."""
    (found,) = changes(fill(text_form(), "a", "200", F=2))

    assert found.reason == 'the field "a" was hidden or shown after it'


@pytest.mark.parametrize("nameless", [b"/T()", b"/T(a)"])
def test_fields_of_one_name_may_not_be_filled_in(nameless: bytes) -> None:
    """S12: below a nameless parent a field has the full name of another one."""
    entries = b"<</Type/Annot/Subtype/Widget/FT/Tx/F 4/P 3 0 R/T(a)/Rect[0 0 9 9]"
    pdf = signed(
        hostile_pdfs.plain(
            b"/AcroForm 8 0 R",
            b"/Annots[5 0 R 7 0 R]",
            o5=entries + b">>",
            o6=b"<<%s/Kids[7 0 R]>>" % nameless,
            o7=entries + b"/Parent 6 0 R>>",
            o8=b"<</Fields[5 0 R 6 0 R]>>",
        )
    )

    found = changes(fill(pdf, "a", "x", drawn=False))[0]

    assert found.answer is not Answer.YES
    assert found.reason in {
        'several fields are named "a"',
        "the form was changed after it (object 8)",
        "revision 3 cannot be compared with the one before",
    }


def radio_group(edit: bytes = b"") -> bytes:
    """A signed group of two radio buttons, of which the second one is chosen later."""
    button = (
        b"<</Type/Annot/Subtype/Widget/Parent 5 0 R/F 4/P 3 0 R/Rect[%d 0 %d 9]/AS/%s"
        b"/AP<</N<</%s 8 0 R/Off 9 0 R>>>>%s>>"
    )
    pdf = signed(
        hostile_pdfs.plain(
            b"/AcroForm<</Fields[5 0 R]>>",
            b"/Annots[6 0 R 7 0 R]",
            o5=b"<</FT/Btn/Ff 32768/T(r)/V/uno/Kids[6 0 R 7 0 R]>>",
            o6=button % (0, 9, b"uno", b"uno", b""),
            o7=button % (20, 29, b"Off", b"dos", b""),
            o8=DRAWN,
            o9=EMPTY,
        )
    )
    later = {
        5: b"<</FT/Btn/Ff 32768/T(r)/V/dos/Kids[6 0 R 7 0 R]>>",
        6: button % (0, 9, b"Off", b"uno", b""),
        7: button % (20, 29, b"dos", b"dos", edit),
    }
    return saved(pdf, later)


def test_radio_button_may_be_chosen() -> None:
    """PyHanko refuses it: the buttons are kids without a name."""
    (found,) = changes(radio_group())

    assert found.answer is Answer.YES
    assert found.filled == (FilledField("r", "uno", "dos"),)
    assert stock_level(radio_group()) is None


def test_radio_button_keeps_all_but_its_appearance() -> None:
    """A button that gets an action is another one."""
    (found,) = changes(radio_group(b"/A<</S/Launch>>"))

    assert found.reason == 'the field "r" was changed after it'


def test_lock_may_not_be_lowered() -> None:
    """The lock of an empty field binds its later signer."""
    lock = b"<</Type/SigFieldLock/Action/All/P 1>>"
    field = b"<</FT/Sig/T(b)/Lock 6 0 R>>"
    pdf = signed(hostile_pdfs.plain(b"/AcroForm<</Fields[5 0 R]>>", o5=field, o6=lock))

    (found,) = changes(saved(pdf, {6: lock.replace(b"/P 1", b"/P 2")}))

    assert found.reason == "object 6 was changed after it"


def test_deleted_field_is_named() -> None:
    """A form keeps its fields."""

    def edit(writer: IncrementalPdfFileWriter) -> None:
        nodes = writer.root["/AcroForm"]["/Fields"]
        del nodes[1]
        writer.update_container(nodes)

    (found,) = changes(edited(text_form(), edit))

    assert found.reason == 'the field "b" was deleted after it'


@pytest.mark.parametrize("certify", [None, MDPPerm.ANNOTATE])
def test_annotation_is_refused_with_its_page(certify: MDPPerm | None) -> None:
    """Whatever the certification says: readers draw it over what was signed."""
    note = b"<</Type/Annot/Subtype/Square/Rect[0 0 200 300]/AP<</N 91 0 R>>>>"
    page = hostile_pdfs.PAGE[:-2] + b"/Annots[90 0 R]>>"
    pdf = signed(hostile_pdfs.plain(), certify=certify)

    (found,) = changes(saved(pdf, {3: page, 90: note, 91: DRAWN}))

    assert found.reason == "page 1 was changed after it (object 3)"


def test_inline_annotation_may_not_change_beside_a_new_mark() -> None:
    """PyHanko compares the references in /Annots alone."""
    note = b"<</Type/Annot/Subtype/Square/Rect[0 0 %s 9]>>"
    pdf = signed(hostile_pdfs.plain(page=b"/Annots[%s]" % (note % b"9")))
    known = re.findall(rb"/Annots ?\[(.*?)\]", pdf)[-1]
    assert known

    def edit(writer: IncrementalPdfFileWriter) -> None:
        page = writer.root["/Pages"]["/Kids"][0]
        page["/Annots"][0]["/Rect"][2] = NumberObject(200)
        writer.update_container(page)

    twice = edited(signed(pdf, field="Firma2"), edit)

    assert changes(twice)[-1].answer is Answer.NO


def test_added_page_is_named() -> None:
    """A page tree keeps its pages."""
    pages = b"<</Type/Pages/Kids[3 0 R 90 0 R]/Count 2>>"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"

    (found,) = changes(saved(base(), {2: pages, 90: page}))

    assert found.reason == "page 2 was added after it (object 2)"


def test_object_of_a_later_revision_may_not_be_replaced() -> None:
    """PyHanko compares with the signed revision alone, in which it is new."""
    pdf = with_field(base(), UNSEEN % (b"[0 0 0 0]", b""))
    seen = UNSEEN % (b"[0 0 200 300]", LOOK)

    (found,) = changes(saved(pdf, {90: seen, 91: DRAWN}))

    assert stock_level(saved(pdf, {90: seen, 91: DRAWN})) is not None
    assert found.reason == 'the field "b" was changed after it'


def test_unreadable_addition_is_unchecked() -> None:
    """Not refused: it may be an oddity of an honest writer."""
    pdf = saved(base(), {90: b"<</A"})

    (found,) = changes(pdf)

    assert found.answer is Answer.UNCHECKED
    assert found.reason == "revision 3 cannot be compared with the one before"


def test_unreadable_replacement_is_refused() -> None:
    """Whatever it is, it is not what was signed."""
    (found,) = changes(saved(base(), {4: b"<</Length 9>>stream\n(("}))

    assert found.reason == "page 1 was changed after it (object 4)"


@pytest.fixture(scope="module")
def many(fonts: StampFonts) -> dict[int, bytes]:
    """A page with 10, 20 and 50 signatures, half of them seen, each with a DSS."""
    return signed_many_times(fonts, {10, 20, 50})


def test_composed_answer_is_no_more_lenient(many: dict[int, bytes]) -> None:
    """If all steps are allowed, pyHanko allows the comparison with each base."""
    filled = fill(with_dss(fill(text_form(), "b", "uno")), "a", "200")
    stamped = with_field(
        with_dss(base()), UNSEEN % (b"[0 0 0 0]", b"/V 92 0 R"), o92=STAMP
    )

    for pdf in (many[10], filled, with_dss(signed(filled, field="Firma2")), stamped):
        reader, signatures = open_signatures(pdf)
        policy = LaterRevisions(reader)
        for each in signatures:
            stock = DEFAULT_DIFF_POLICY.review_file(reader, each.signed_revision)
            ours = policy.changes_after(each)
            assert isinstance(stock, DiffResult)
            assert ours.answer is Answer.YES
            assert ours.fields <= stock.changed_form_fields


def test_cost_is_linear_in_signatures(many: dict[int, bytes]) -> None:
    """Twice as many signatures cost about twice the time."""
    for count, pdf in many.items():
        assert [each.answer for each in changes(pdf)] == [Answer.YES] * count

    assert growth(lambda count: changes(many[count]), 10) < MOST


EXPECTED = {
    "pades-signed-filled-form.pdf": [Answer.YES],
    "pdf-signed-added-page.pdf": [Answer.NO],
    "pades-t-duplicated-doctst.pdf": [Answer.YES] * 3,
    "pades-two-sig-copied-tst.pdf": [Answer.YES] * 2,
    "pades-lta-copied-doctst.pdf": [Answer.YES] * 2,
    "shadow-hide.pdf": [Answer.NO],
    "shadow-replace.pdf": [Answer.NO],
    "pyhanko_extensions-direct.pdf": [Answer.YES] * 2,
    "pyhanko_extensions-indirect.pdf": [Answer.YES] * 2,
    "pyhanko_extensions-update-direct.pdf": [Answer.YES] * 2,
    "pyhanko_extensions-update-indirect.pdf": [Answer.YES] * 2,
    "pyhanko_extensions-indirect-not-all-paths.pdf": [Answer.NO, Answer.YES],
    "pyhanko_form-update-ap-indirect-sneaky-trailer.pdf": [Answer.NO, Answer.YES],
    "pyhanko_form-update-override-appearance-stream-sneaky.pdf": [
        Answer.NO,
        Answer.YES,
    ],
    "pyhanko_form-update-override-appearance-stream-ap-indirect-sneaky.pdf": [
        Answer.NO,
        Answer.YES,
    ],
    "pyhanko_form-update-override-appearance-stream.pdf": [Answer.YES] * 2,
    "pyhanko_form-update-override-appearance-stream-ap-indirect.pdf": [Answer.YES] * 2,
    "pyhanko_form-update-original-ap-type-wrong.pdf": [Answer.YES] * 2,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_signed_files_of_other_makers(name: str) -> None:
    """Answers are those of the README beside the corpus."""
    path = SHARED / "corpus-signed" / name
    if not path.exists():
        pytest.skip("the shared corpus of signed files is absent")

    assert [each.answer for each in changes(path.read_bytes())] == EXPECTED[name]


@pytest.mark.parametrize(
    "name",
    [
        "encrypted-objstm/two-signers-R6-invisible.pdf",
        "encrypted-objstm/two-signers-pages-1-and-2-R6.pdf",
        "linearized-signed/linearized-signed.pdf",
        "verify-timestamp-appearance/with-empty-appearance.pdf",
        "verify-timestamp-appearance/without-empty-appearance.pdf",
        "many-signers/thirty-signers.pdf",
    ],
)
def test_honest_files_that_once_failed(name: str) -> None:
    """P1, P4 and P5: nothing that follows is a forgery."""
    path = SHARED / "failing" / name
    if not path.exists():
        pytest.skip("the shared inputs that failed are absent")

    assert {each.answer for each in changes(path.read_bytes())} == {Answer.YES}


def test_objects_that_lead_in_a_circle_are_collected_once() -> None:
    """As a field and its widget do; those that were signed are left out."""
    pdf = hostile_pdfs.plain()
    circle = {8: b"<</Kids[9 0 R]>>", 9: b"<</Parent 8 0 R/P 3 0 R/MK 8 0 R>>"}
    view = Revisions(PdfFileReader(io.BytesIO(update(pdf, circle)))).view(1)

    found = view.collect_dependencies(IndirectObject(8, 0, view), since_revision=1)
    of_all = view.collect_dependencies(IndirectObject(8, 0, view))

    assert {each.idnum for each in found} == {8, 9}
    assert {each.idnum for each in of_all} == {2, 3, 4, 8, 9}
