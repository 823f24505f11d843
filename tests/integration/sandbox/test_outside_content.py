"""Content that a file does not hold, and parts that each program shows in its own way.

Source: docs/documents.md "Findings"; ISO 32000-2, 7.3.8.2, 8.9.5.4, 8.10.4, 9.9 and
12.5.5.
"""

import io

import pytest
from pyhanko.pdf_utils.reader import PdfFileReader

from appliance.domain.documents.inspected import FindingKind
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from tests.support.documents import drawn_freely_pdfs as free
from tests.support.documents import outside_content_pdfs as outside
from tests.support.documents.hostile_pdfs import plain
from tests.support.documents.software_signer import signed
from worker.sandbox.inspect import (
    external_content,
    hidden_text,
    object_scan,
    unembedded_fonts,
)
from worker.sandbox.inspect.missing_appearances import find_missing_appearances
from worker.sandbox.inspect.pages import walk_pages
from worker.sandbox.inspect.pdf_objects import Budget
from worker.sandbox.inspection import inspect
from worker.sandbox.repair import repair

PAGES = 50


def told(pdf: bytes) -> set[FindingKind]:
    """Findings of a document, but that it opens without a password."""
    findings = inspect(pdf, PAGES).findings
    return {*findings} - {FindingKind.ENCRYPTED_EMPTY_PASSWORD}


def refusal(pdf: bytes) -> ErrorCode:
    """Code by which a document is refused."""
    with pytest.raises(DocumentRefusedError) as caught:
        inspect(pdf, PAGES)
    return caught.value.code


@pytest.mark.parametrize("kind", outside.EXTERNAL)
def test_content_of_another_file_is_refused(kind: str) -> None:
    """Wherever it is used, and however it is named."""
    assert refusal(outside.EXTERNAL[kind]) is ErrorCode.PDF_EXTERNAL_CONTENT


@pytest.mark.parametrize("kind", outside.INSIDE)
def test_document_that_is_whole_tells_nothing(kind: str) -> None:
    """What looks like it, and is none; inline images cannot have an external file."""
    usual = {FindingKind.REPLACED_CONTENT} if kind == "earlier revision" else set()
    pdf = outside.INSIDE[kind]
    if kind in outside.AMBIGUOUS_KEYS:
        assert refusal(pdf) is ErrorCode.PDF_AMBIGUOUS
        pdf = repair(pdf).pdf

    assert told(pdf) - usual == set()


def test_tolerant_reading_finds_it_too() -> None:
    """A key twice in the page, which strict reading refuses; and a signed file."""
    twice = b"/Rotate 0/Rotate 0"
    external = outside.stream(outside.OUTSIDE)

    for pdf in (plain(page=twice, o4=external), signed(plain(o4=external)) + b"x\n"):
        assert refusal(pdf) is ErrorCode.PDF_EXTERNAL_CONTENT
    assert FindingKind.DAMAGED in told(plain(page=twice))


def test_objects_in_another_file_are_refused() -> None:
    """An object stream with external data: what its objects are is not known."""
    hidden = plain(o5=outside.stream(b"/Type/ObjStm/N 1/First 4" + outside.OUTSIDE))

    assert refusal(hidden) is ErrorCode.PDF_EXTERNAL_CONTENT


@pytest.mark.parametrize("kind", free.ALTERNATE)
def test_alternate_images_are_told(kind: str) -> None:
    """One is shown, another printed."""
    assert told(free.ALTERNATE[kind]) == {FindingKind.ALTERNATE_IMAGES}


@pytest.mark.parametrize("kind", free.UNDRAWN)
def test_missing_appearances_are_told(kind: str) -> None:
    """Of notes of every kind, and of fields that have something to show."""
    # One without a box is no form either, and no look of a state is another one.
    besides = {FindingKind.DRAWN_DIFFERENTLY, FindingKind.FIELD_SHOWS_OTHER}

    assert told(free.UNDRAWN[kind]) - besides == {FindingKind.MISSING_APPEARANCES}


@pytest.mark.parametrize("kind", free.FOREIGN_FONTS)
def test_unembedded_fonts_are_told(kind: str) -> None:
    """Of a page, a form and an appearance."""
    # A name that is no text is outside the grammar of content.
    besides = {FindingKind.DRAWN_DIFFERENTLY}

    assert told(free.FOREIGN_FONTS[kind]) - besides == {FindingKind.UNEMBEDDED_FONTS}


@pytest.mark.parametrize("kind", free.RIGHTS)
def test_usage_rights_are_told(kind: str) -> None:
    """By the key of this standard, and by that of PDF 1.5."""
    assert told(free.RIGHTS[kind]) == {FindingKind.USAGE_RIGHTS}


@pytest.mark.parametrize(
    "pdf",
    [
        pytest.param(pdf, id=f"{group}: {kind}")
        for group, kinds in (
            ("drawn", free.DRAWN),
            ("own fonts", free.OWN_FONTS),
            ("one version", free.ONE_VERSION),
            ("no rights", free.NO_RIGHTS),
        )
        for kind, pdf in kinds.items()
    ],
)
def test_what_looks_alike_everywhere_is_not_told(pdf: bytes) -> None:
    """Neighbours of what is told."""
    assert told(pdf) == set()


def test_appearance_that_cannot_be_read_is_told() -> None:
    """It is neither there nor missing; the repaired copy has one."""
    broken = b"<</BBox[0 0 9 9]/Length 7>>stream\n0 0 9 9 re f\nendstream"
    pdf = free.noted(b"/Subtype/Stamp/AP<</N 6 0 R>>", broken)
    pages = walk_pages(PdfFileReader(io.BytesIO(pdf), strict=False).root, PAGES).pages

    assert find_missing_appearances(pages, Budget(99)) == {FindingKind.UNEXAMINED_PARTS}
    assert refusal(pdf) is ErrorCode.PDF_AMBIGUOUS
    assert told(repair(pdf).pdf) == set()


def test_annotations_out_of_sight_lack_nothing() -> None:
    """Hidden, beside the page, or without an area: other findings tell of them."""
    for entries in (b"/F 2", b"/F 32"):
        pdf = free.noted(b"/Subtype/Stamp" + entries)
        assert told(pdf) == {FindingKind.HIDDEN_ANNOTATIONS}
    beside = free.noted(b"/Subtype/Stamp", rect=b"900 9 990 90")
    assert told(beside) == {FindingKind.OFF_PAGE_CONTENT}
    assert told(free.noted(b"/Subtype/Stamp", rect=b"9 9 90 9")) == set()


@pytest.mark.parametrize(
    ("module", "pdf"),
    [
        (object_scan, plain()),
        (hidden_text, free.FOREIGN_FONTS["TrueType"]),
    ],
)
def test_what_is_not_known_in_time_is_told(
    module: object, pdf: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time that is over says nothing for a document."""
    monkeypatch.setattr(module, "_CPU_S", -1.0)

    assert told(pdf) == {FindingKind.UNEXAMINED_PARTS}


@pytest.mark.parametrize("kind", [*free.FOREIGN_FONTS, *free.OWN_FONTS])
def test_pages_say_which_fonts_are_used(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no time for the dictionaries, the answer is the same."""
    pdf = {**free.FOREIGN_FONTS, **free.OWN_FONTS}[kind]
    before = told(pdf)

    monkeypatch.setattr(unembedded_fonts, "_CPU_S", -1.0)

    assert told(pdf) == before


def test_external_content_counts_where_its_use_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stream that nothing leads to is refused if there is no time to see that."""
    many = plain(b"/A[%s]" % (b"[]" * 1_000), o5=outside.stream(outside.OUTSIDE))
    assert told(many) == set()

    monkeypatch.setattr(external_content, "_CPU_S", -1.0)

    assert refusal(many) is ErrorCode.PDF_EXTERNAL_CONTENT
