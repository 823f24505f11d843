"""The verifier calls no forgery valid, and names the page or object.

Source: findings S2, S3, S4; ISO 32000-2, 7.3.7, 7.5.4 and 12.8.2.
"""

import re
from functools import cache
from typing import Final

import pytest

from appliance.domain.documents.verification import Answer, Check, VerificationReport
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from tests.support.documents.forgeries import FORGERIES, bases_of
from tests.support.documents.signed_bases import base, makers
from worker.sandbox.verify.verify import verify

KINDS: Final = tuple(FORGERIES)
SAMPLE: Final = KINDS[::5]
"""Kinds of each module; the others run behind ./check --full."""
LEAST_NAMED: Final = 0.9
"""Share of the kinds that are *no* with the page, object or field named."""
NAMED: Final = re.compile(
    r"\b(page|object) \d+|\bfield \W?\w"
    r"|\b(Nombre|Acepto|Vendedor|Otra|Otro|Sello|Precio)\b"
)
EXCEPTION: Final = re.compile(r"[A-Z]\w+(Error|Exception)\b")
CLOSED: Final = frozenset({"trailer: /Encrypt added", "trailer: /ID changed"})
"""Kinds after which the file opens with no password at all."""


def checks(report: VerificationReport) -> list[Check]:
    """List every answer of a report."""
    found = [report.ending]
    for each in report.signatures:
        found += [
            each.integrity, each.identity, each.trust, each.revocation,
            each.time, each.coverage, each.changes,
        ]  # fmt: skip
    return found


@cache
def judged(kind: str, name: str) -> VerificationReport | None:
    """Verify one forgery; None for a file that needs a password."""
    try:
        return verify(FORGERIES[kind](base(name)), [makers().root])
    except DocumentRefusedError as refused:
        if kind in CLOSED and refused.code is ErrorCode.PDF_PASSWORD_NEEDED:
            return None
        raise


def is_no_and_named(kind: str, name: str) -> bool:
    """Return whether a forgery is *no*, and a reason names where it is."""
    report = judged(kind, name)
    return (
        report is not None
        and report.verdict is Answer.NO
        and any(
            NAMED.search(each.reason)
            for each in checks(report)
            if each.answer is Answer.NO
        )
    )


def assert_not_valid(kind: str, name: str) -> None:
    """Fail if a forgery is called valid, or a reason names an exception."""
    report = judged(kind, name)
    if report is None:
        return
    assert report.verdict is not Answer.YES
    assert not [each.reason for each in checks(report) if EXCEPTION.search(each.reason)]
    reasons = [each.reason for each in checks(report) if each.answer is not Answer.YES]
    assert all(reasons)


def some_bases(kind: str, count: int) -> list[str]:
    """List some of the files that a kind applies to, others for each kind."""
    found = bases_of(kind)
    first = KINDS.index(kind)
    step = max(1, len(found) // count)
    return [found[(first + step * each) % len(found)] for each in range(count)]


@pytest.mark.parametrize("kind", SAMPLE)
def test_forgery_is_not_valid(kind: str) -> None:
    """On one of the files that it applies to."""
    assert_not_valid(kind, some_bases(kind, 1)[0])


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_forgery_is_not_valid_on_several_files(kind: str) -> None:
    """Every kind, on three files of different levels and forms."""
    for name in some_bases(kind, 3):
        assert_not_valid(kind, name)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_forgery_is_not_valid_on_any_file(kind: str) -> None:
    """Every kind, on every file that it applies to."""
    for name in bases_of(kind):
        assert_not_valid(kind, name)


@pytest.mark.full
def test_nine_tenths_of_the_kinds_are_named() -> None:
    """They are *no*, with the page, the object or the field in a reason."""
    named = [kind for kind in KINDS if is_no_and_named(kind, some_bases(kind, 1)[0])]

    missing = sorted(set(KINDS) - set(named))
    assert len(named) >= LEAST_NAMED * len(KINDS), missing


def test_most_of_the_sample_is_named() -> None:
    """The same for the kinds that every run tries."""
    named = [kind for kind in SAMPLE if is_no_and_named(kind, some_bases(kind, 1)[0])]

    missing = sorted(set(SAMPLE) - set(named))
    assert len(named) >= LEAST_NAMED * len(SAMPLE), missing
