"""What may follow a signature, where pyHanko's own rules have no verdict."""

import io
from typing import Any

import pytest
from pyhanko.pdf_utils import layout
from pyhanko.pdf_utils.content import RawContent
from pyhanko.pdf_utils.generic import NameObject
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.misc import IndirectObjectExpected
from pyhanko.sign import PdfSignatureMetadata, PdfSigner
from pyhanko.sign.fields import SigFieldSpec
from pyhanko.stamp import TextStampStyle

from appliance.domain.documents.inspected import FindingKind
from appliance.domain.documents.verification import Answer, worst
from appliance.domain.requests.levels import ValidationData
from tests.support.documents import pdfs
from tests.support.documents.altered_pdfs import ATTACKS, form_drawn_anew
from tests.support.documents.field_pdfs import check_box_without_state
from tests.support.documents.software_signer import signed, software_signer
from tests.support.documents.validators import pyhanko_verdicts, read_pdf
from tests.support.processes.event_loops import run_apart
from worker.pades import Validated, add_dss
from worker.sandbox.inspection import inspect
from worker.sandbox.verify.verify import verify, weigh


@pytest.fixture(scope="module")
def kept() -> bytes:
    """A signed form whose check box has looks without a state, and a DSS after it."""
    pdf = signed(check_box_without_state())
    (signature,) = read_pdf(pdf).embedded_signatures
    data = ValidationData(certificates=(software_signer().root,))
    return pdf + add_dss(pdf, [Validated(signature.pkcs7_content, data)])


def _answer(pdf: bytes) -> Answer:
    """The most serious answer for all signatures of a file."""
    return worst(each.answer for each in weigh(pdf).values())


def box_of(writer: IncrementalPdfFileWriter) -> Any:
    """The form's check box."""
    return writer.root["/AcroForm"]["/Fields"][0]


def test_validation_data_leaves_such_a_form_valid(kept: bytes) -> None:
    """For the verifier, and for whoever signs next; pyHanko's rules raise."""
    with pytest.raises(IndirectObjectExpected):
        pyhanko_verdicts(kept, [software_signer().root])

    report = verify(kept, [software_signer().root])

    assert report.valid
    assert _answer(kept) is Answer.YES


@pytest.mark.parametrize("state", ["/Yes", "/Off"])
def test_looks_that_are_redrawn_in_place_are_told(kept: bytes, state: str) -> None:
    """The box would show something else than what was signed."""
    writer = IncrementalPdfFileWriter(io.BytesIO(kept))
    drawing = box_of(writer)["/AP"]["/N"][state]
    drawing._data = b"1 0 0 rg 0 0 9 9 re f"
    drawing._encoded_data = None
    writer.update_container(drawing)
    out = io.BytesIO()
    writer.write(out)

    (report,) = verify(out.getvalue(), [software_signer().root]).signatures

    assert report.integrity.answer is Answer.YES
    assert report.changes.answer is Answer.NO
    assert _answer(out.getvalue()) is Answer.NO


def test_form_may_still_be_filled_in(kept: bytes) -> None:
    """Both values of the check box are shown, and nothing is called broken."""
    writer = IncrementalPdfFileWriter(io.BytesIO(kept))
    box = box_of(writer)
    box["/V"] = box["/AS"] = NameObject("/Yes")
    writer.update_container(box)
    out = io.BytesIO()
    writer.write(out)

    (report,) = verify(out.getvalue(), [software_signer().root]).signatures
    assert report.valid
    assert [each.after for each in report.filled] == ["Yes"]
    assert _answer(out.getvalue()) is Answer.YES


@pytest.mark.parametrize(
    "attack", ["SSA: second mark", "SSA: mark shown twice", "stamp: junk unseen"]
)
def test_next_signer_is_told_of_marks_that_are_nobodys(attack: str) -> None:
    """Before they sign: what is there is no field that a signature needs."""
    assert _answer(ATTACKS[attack](signed)) is Answer.NO


def test_text_that_cannot_be_read_is_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the page is named, in place of an answer that no text is covered."""
    twice = signed_with_mark(signed(pdfs.one_page()), (9, 9, 40, 20))
    monkeypatch.setattr("worker.sandbox.verify.page_texts._CPU_S", 0.0)

    report = verify(twice, [software_signer().root])

    assert report.verdict is Answer.UNCHECKED
    assert report.text_covered is Answer.UNCHECKED
    assert report.signatures[0].reason == (
        "page 1: the text below later marks or fields could not be examined"
    )


@pytest.mark.parametrize("later", [b"/NeedAppearances false", b"/DA(/F 9 Tf)/Q 0"])
def test_form_that_says_the_same_leaves_it_valid(later: bytes) -> None:
    """Readers write forms anew, and draw them as before."""
    pdf = form_drawn_anew(later)(signed)

    assert verify(pdf, [software_signer().root]).valid


def test_broken_bytes_are_told_alone(kept: bytes) -> None:
    """Whose they were, and when they were stamped, says nothing of these."""
    (report,) = verify(
        kept.replace(b"/MediaBox", b"/MediaBux", 1), [software_signer().root]
    ).signatures

    assert report.integrity.answer is Answer.NO
    assert (report.level, report.timestamp) == ("", None)
    assert report.reason == "the signed bytes were changed"


def signed_with_mark(pdf: bytes, box: tuple[int, int, int, int]) -> bytes:
    """A document that is signed once more, with a mark of white paper."""
    paper = RawContent(
        b"1 g 0 0 595 842 re f", box=layout.BoxConstraints(width=595, height=842)
    )
    whole = layout.SimpleBoxLayoutRule(
        layout.AxisAlignment.ALIGN_MID,
        layout.AxisAlignment.ALIGN_MID,
        inner_content_scaling=layout.InnerScaling.STRETCH_FILL,
    )
    style = TextStampStyle(
        stamp_text="b", background=paper, background_opacity=1, background_layout=whole
    )
    signer = PdfSigner(
        PdfSignatureMetadata("b", md_algorithm="sha256"),
        signer=software_signer().stock(),
        stamp_style=style,
        new_field_spec=SigFieldSpec("b", box=box),
    )
    out = io.BytesIO()
    writer = IncrementalPdfFileWriter(io.BytesIO(pdf))
    run_apart(signer.async_sign_pdf(writer, output=out))
    return out.getvalue()


@pytest.mark.parametrize(
    ("rect", "hides"), [((0, 0, 595, 842), True), ((9, 9, 40, 20), False)]
)
def test_mark_over_signed_text_is_told(
    rect: tuple[int, int, int, int], hides: bool
) -> None:
    """It may be there, and readers no longer show what the first signer saw."""
    pdf = signed_with_mark(signed(pdfs.one_page()), rect)

    report = verify(pdf, [software_signer().root])

    assert report.valid
    assert report.text_covered is (Answer.YES if hides else Answer.NO)
    assert report.covered_pages == ((1,) if hides else ())


@pytest.mark.parametrize("tail", [b"\n", b"\r\n", b" ", b"\n" * 999])
def test_white_space_after_the_end_changes_nothing(tail: bytes) -> None:
    """As mail gateways and forms on the web add it; no reader reads it."""
    pdf = signed(pdfs.one_page()) + tail

    assert {each.answer for each in weigh(pdf).values()} == {Answer.YES}
    assert FindingKind.SIGNATURE_BROKEN not in inspect(pdf, 1).findings


@pytest.mark.parametrize("tail", [b"x", b"\n% one line\n", b"\n" * 1_001])
def test_anything_else_after_the_end_is_told(tail: bytes) -> None:
    """Nor more white space than a reader looks back for the end."""
    pdf = signed(pdfs.one_page()) + tail

    assert {each.answer for each in weigh(pdf).values()} == {Answer.NO}
