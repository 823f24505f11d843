"""Signed files of other makers get the answers that their page gives.

No root is trusted, so trust is never *yes*. Source: the README beside the files.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from appliance.domain.documents.verification import (
    Answer,
    SignatureReport,
    VerificationReport,
)
from appliance.domain.errors import DocumentRefusedError
from worker.sandbox.verify.verify import verify

CORPUS: Final = Path(__file__).parents[3].parent / "shared" / "corpus-signed"
EXCEPTION: Final = re.compile(r"[A-Z]\w+(Error|Exception)\b")

pytestmark = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the shared corpus does not stand beside the project"
)

YES: Final = frozenset({Answer.YES})
NO: Final = frozenset({Answer.NO})
NOT_YES: Final = frozenset({Answer.NO, Answer.UNCHECKED})
NOT_NO: Final = frozenset({Answer.YES, Answer.UNCHECKED})
ANY: Final = frozenset(Answer)


class Expected(NamedTuple):
    """Answers that a signature may get."""

    integrity: frozenset[Answer]
    coverage: frozenset[Answer]
    changes: frozenset[Answer]


INTACT: Final = Expected(YES, YES, YES)
CHANGED: Final = Expected(YES, YES, NO)
UNCOVERED: Final = Expected(ANY, NO, ANY)
BROKEN: Final = Expected(NOT_YES, ANY, ANY)

EXPECTED: Final[dict[str, list[Expected]]] = {
    "pdf-signed-original": [INTACT],
    "pdf-eof": [Expected(ANY, NOT_YES, ANY)],
    "shadow-hide": [Expected(YES, ANY, NO)],
    "shadow-replace": [CHANGED],
    "pdf-signed-added-page": [CHANGED],
    "pades-signed-filled-form": [INTACT],
    "pades-lta-copied-doctst": [Expected(YES, YES, NOT_NO)],
    "pades-t-duplicated-doctst": [Expected(YES, YES, NOT_NO)],
    "pades-two-sig-copied-tst": [INTACT, INTACT],
    "pdf-double-signer-info": [BROKEN],
    "BadEncodedCMS": [BROKEN],
    "usf_01_Empty_Contents": [BROKEN],
    "usf_02_00_Contents": [BROKEN],
    "usf_03_Null_Contents": [BROKEN],
    "pyhanko_base": [BROKEN],
    "pyhanko_tail-uncovered": [UNCOVERED],
    "pyhanko_signature-gap-too-big": [UNCOVERED],
    "pyhanko_one-byterange": [UNCOVERED],
    "pyhanko_weird-byterange": [UNCOVERED],
    "pyhanko_form-update-ap-indirect-sneaky-trailer": [CHANGED, INTACT],
    "pyhanko_form-update-no-override-appearance-stream-ap-indirect-sneaky": [
        CHANGED, INTACT,
    ],
    "pyhanko_form-update-override-appearance-stream-ap-indirect-sneaky": [
        CHANGED, INTACT,
    ],
    "pyhanko_form-update-override-appearance-stream-sneaky": [CHANGED, INTACT],
    "pyhanko_form-update-no-override-appearance-stream-ap-indirect": [INTACT, INTACT],
    "pyhanko_form-update-original-ap-type-wrong": [INTACT, INTACT],
    "pyhanko_form-update-override-appearance-stream-ap-indirect": [INTACT, INTACT],
    "pyhanko_form-update-override-appearance-stream": [INTACT, INTACT],
    "pyhanko_extensions-direct": [INTACT, INTACT],
    "pyhanko_extensions-indirect": [INTACT, INTACT],
    "pyhanko_extensions-update-direct": [INTACT, INTACT],
    "pyhanko_extensions-update-indirect": [INTACT, INTACT],
    "pyhanko_extensions-indirect-not-all-paths": [
        Expected(YES, YES, NOT_YES), INTACT,
    ],
}  # fmt: skip
"""Answers of the signatures, in order; document timestamps are none."""
UNREADABLE: Final = (
    "pdf-signed-corrupted", "pdf-spoofing-attack", "pades_infinite_loop",
)  # fmt: skip
"""Files that are never valid, and that a reader may refuse as malformed."""
PAGES: Final = {
    "shadow-hide": "page 1",
    "shadow-replace": "page 1",
    "pdf-signed-added-page": "page 2",
}
"""Page that a reason names."""


def verified(name: str) -> VerificationReport:
    """Verify a file of the corpus."""
    return verify((CORPUS / f"{name}.pdf").read_bytes(), [])


def reasons(report: VerificationReport) -> list[str]:
    """List the reasons of every answer that is not *yes*."""
    checks = [report.ending]
    for each in report.signatures:
        checks += [
            each.integrity, each.identity, each.trust, each.revocation,
            each.time, each.coverage, each.changes,
        ]  # fmt: skip
    return [each.reason for each in checks if each.answer is not Answer.YES]


def answers(signature: SignatureReport) -> tuple[Answer, Answer, Answer]:
    """Give integrity, coverage and changes of a signature."""
    return (
        signature.integrity.answer,
        signature.coverage.answer,
        signature.changes.answer,
    )


@pytest.mark.parametrize("name", EXPECTED)
def test_signatures_get_the_answers_of_the_page(name: str) -> None:
    """Integrity, coverage and changes of each, in order."""
    report = verified(name)

    found = [answers(each) for each in report.signatures]
    assert len(found) >= len(EXPECTED[name]), report
    for given, expected in zip(found, EXPECTED[name], strict=False):
        assert all(one in may for one, may in zip(given, expected, strict=True)), report
    assert report.verdict is not Answer.YES
    assert not [each for each in reasons(report) if EXCEPTION.search(each)]


@pytest.mark.parametrize("name", EXPECTED)
def test_trust_is_never_found(name: str) -> None:
    """An unknown root is no reason to call a signature invalid."""
    report = verified(name)

    for each, expected in zip(report.signatures, EXPECTED[name], strict=False):
        if expected is INTACT:
            assert each.trust.answer is Answer.UNCHECKED
            assert each.verdict is Answer.UNCHECKED


@pytest.mark.parametrize("name", UNREADABLE)
def test_damaged_file_is_never_valid(name: str) -> None:
    """It gets a verdict, or the documented refusal of a malformed file."""
    try:
        report = verified(name)
    except DocumentRefusedError:
        return
    assert report.verdict is not Answer.YES
    assert not [each for each in reasons(report) if EXCEPTION.search(each)]


@pytest.mark.parametrize("name", PAGES)
def test_reason_names_the_page(name: str) -> None:
    """A change of what a page shows is *no*, with the page."""
    report = verified(name)

    assert report.verdict is Answer.NO
    assert any(PAGES[name] in each for each in reasons(report)), reasons(report)


def test_every_file_has_its_answers() -> None:
    """No file of the folder is left out here."""
    names = {each.stem for each in CORPUS.glob("*.pdf")}

    assert names <= {*EXPECTED, *UNREADABLE}
