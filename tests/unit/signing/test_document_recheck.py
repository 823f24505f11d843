"""Answers that make a signed document no longer whole, and those that do not."""

from dataclasses import replace
from typing import Any

import pytest

from appliance.domain.documents.verification import (
    YES,
    Answer,
    Check,
    CheckCode,
    SignatureReport,
    VerificationReport,
    refuted,
    unchecked,
)
from appliance.signing.document_recheck import faults_of
from tests.support.factories.fake_sandbox import whole_signature

BROKEN = refuted(CheckCode.CHANGED, "changed")
UNKNOWN = unchecked(CheckCode.PDF_AMBIGUOUS, "two readings")


def signature(field: str = "Firma-7", **answers: Any) -> SignatureReport:
    """A signature that is whole, but for the given answers."""
    return replace(whole_signature(field), **answers)


def answering(question: str, check: Check) -> SignatureReport:
    """A signature with another answer to one question."""
    answers: dict[str, Any] = {question: check}
    return signature(**answers)


def report(*signatures: SignatureReport) -> VerificationReport:
    """A report on a file that ends well."""
    return VerificationReport(signatures, YES)


def questions(
    *found: SignatureReport, ours: int = 1, known: tuple[int, ...] = ()
) -> list[tuple[str, Answer]]:
    """Questions that are not answered by *yes*."""
    return [
        (fault.question, answer)
        for fault, answer in faults_of(report(*found), ours, known)
    ]


@pytest.mark.parametrize("question", ["integrity", "coverage", "changes"])
def test_answers_on_wholeness_count(question: str) -> None:
    """*No* and *could not be checked* stay apart."""
    assert questions(answering(question, BROKEN)) == [(question, Answer.NO)]
    assert questions(answering(question, UNKNOWN)) == [(question, Answer.UNCHECKED)]


@pytest.mark.parametrize("question", ["identity", "trust", "revocation", "time"])
def test_answers_on_trust_and_time_do_not(question: str) -> None:
    """An expired certificate and a later revocation change no byte."""
    assert questions(answering(question, BROKEN)) == []


def test_signatures_that_were_in_the_document_do_not_count() -> None:
    """It came in signed by others: those before ours are theirs."""
    theirs = signature("Signature1", changes=BROKEN)

    assert questions(theirs, signature()) == []
    assert questions(theirs, signature("Signature2"), ours=2) == [
        ("changes", Answer.NO)
    ]


def test_ours_count_wherever_they_came_from() -> None:
    """A document that was signed here, changed outside, and signed here again."""
    earlier = signature("Firma-3", changes=BROKEN)
    certified_here = signature("Comprador", integrity=YES, changes=BROKEN)

    assert questions(earlier, signature()) == [("changes", Answer.NO)]
    assert questions(certified_here, signature(), known=(0,)) == [
        ("changes", Answer.NO)
    ]


def test_signature_that_is_gone_is_missed() -> None:
    """A file without it was put in its place."""
    assert questions() == [("presence", Answer.NO)]
    assert questions(signature(), ours=2) == [("presence", Answer.NO)]
    stamp = signature("Sello", is_timestamp=True)
    assert questions(stamp) == [("presence", Answer.NO)]


def test_bytes_after_the_last_revision_count() -> None:
    """They are part of no signature's revision."""
    appended = VerificationReport(
        (signature(),), refuted(CheckCode.APPENDED, "bytes follow")
    )

    ((fault, answer),) = faults_of(appended, 1)

    assert (fault.question, answer) == ("ending", Answer.NO)
