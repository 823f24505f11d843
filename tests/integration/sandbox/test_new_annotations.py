"""Annotations that are added after a signature, and what certifications permit."""

from typing import Final

import pytest

from appliance.domain.documents.verification import Answer
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import base, makers
from worker.sandbox.verify.verify import verify

_KINDS: Final = {
    "note": b"/Text/Contents(nota)",
    "note with its window": b"/Text/Contents(nota)/Popup %d 0 R",
    "text": b"/FreeText/Contents(900)/DA(/Helv 12 Tf 0 g)",
    "opaque box": b"/Square/C[1 1 1]/IC[1 1 1]",
    "highlight": b"/Highlight/QuadPoints[20 330 250 330 20 280 250 280]/C[1 1 0]",
}


def annotated(
    name: str, kind: bytes, *, changes: dict[bytes, bytes | None] | None = None
) -> tuple[Answer, Answer, str]:
    """Add an annotation to a signed file, and change its page.

    Returns:
        The verdict, and answer and reason of what follows the first signature.
    """
    f = SignedFile(base(name))
    window = f.free + 1
    kind = kind.replace(b"%d", b"%d" % window)
    note = b"<</Type/Annot/Subtype%s/Rect[20 280 250 330]/P %d 0 R/F 4>>"
    annotations = {b"/Annots": f.listed("Annots", f.free)}
    popup = b"<</Type/Annot/Subtype/Popup/Parent %d 0 R/Rect[0 0 50 50]>>" % f.free
    pdf = f.append(
        {
            f.free: note % (kind, f.page),
            **({window: popup} if b"/Popup" in kind else {}),
            f.page: f.changed(f.page, annotations | (changes or {})),
        }
    )
    report = verify(pdf, [makers().root])
    checked = report.signatures[0].changes
    return report.verdict, checked.answer, checked.reason


@pytest.mark.parametrize("kind", _KINDS)
def test_annotations_are_permitted_and_leave_a_doubt(kind: str) -> None:
    """They may hide what was signed: to permit them is not to know them."""
    verdict, answer, reason = annotated("P3", _KINDS[kind])
    assert (verdict, answer) == (Answer.UNCHECKED, Answer.UNCHECKED), reason
    assert "page 1 got annotations" in reason


@pytest.mark.parametrize("name", ["B-B", "P1", "P2", "two signers", "xref streams"])
@pytest.mark.parametrize("kind", _KINDS)
def test_annotations_are_changes_elsewhere(name: str, kind: str) -> None:
    """Nothing says that the signer allows them."""
    verdict, answer, reason = annotated(name, _KINDS[kind])
    assert (verdict, answer) == (Answer.NO, Answer.NO), reason
    assert "page 1" in reason


@pytest.mark.parametrize(
    "kind",
    [
        b"/Link/A<</S/URI/URI(http://x)>>",
        b"/Text/A<</S/JavaScript/JS(1)>>",
        b"/Text/AA<</E<</S/JavaScript/JS(1)>>>>",
        b"/Widget/FT/Tx/T(otro)",
        b"/Screen",
        b"/FileAttachment",
        b"/Redact",
    ],
)
def test_what_acts_is_no_annotation_of_a_reader(kind: bytes) -> None:
    """Links, scripts, fields and media are no comments."""
    assert annotated("P3", kind)[0] is Answer.NO


def test_page_with_a_new_annotation_stays_as_it_was() -> None:
    """The page's other entries are the signed ones."""
    changes: dict[bytes, bytes | None] = {b"/Rotate": b"90"}
    assert annotated("P3", _KINDS["note"], changes=changes)[0] is Answer.NO


def test_annotation_that_was_there_may_not_be_shown_again() -> None:
    """An object that is not new may be anything."""
    f = SignedFile(base("P3"))
    again = f.listed("Annots", f.field("Nombre"))
    pdf = f.append({f.page: f.changed(f.page, {b"/Annots": again})})
    assert verify(pdf, [makers().root]).verdict is Answer.NO
