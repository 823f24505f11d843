"""Requests whose document a file begins with, and errors that concern all files."""

import hashlib
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.domain.errors import (
    ApplianceError,
    DocumentRefusedError,
    DocumentsAwayError,
    ErrorCode,
)
from appliance.signing.document_recovery import _refuse_outage, begins_with

FILE = b"first revision, second revision, third"


def view_of(document: bytes) -> Any:
    """A request for a document."""
    return SimpleNamespace(
        sha256=hashlib.sha256(document).hexdigest(),
        inspection=SimpleNamespace(size_bytes=len(document)),
    )


def test_requests_are_found_by_the_revisions_of_a_file() -> None:
    """In any order; not the file itself, nor another document of a revision's size."""
    second, other, first = (
        view_of(FILE[:31]),
        view_of(b"x" * 31),
        view_of(FILE[:14]),
    )
    whole, longer = view_of(FILE), view_of(FILE + b"!")

    found = begins_with(FILE, [second, other, whole, first, longer])

    assert found == [second, first]
    assert begins_with(FILE, []) == []


@pytest.mark.parametrize(
    "outage", [ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE), DocumentsAwayError()]
)
def test_outage_ends_the_recovery(outage: ApplianceError) -> None:
    """Sandbox or documents are away: no other file would fare better."""
    with pytest.raises(ApplianceError) as caught:
        _refuse_outage(outage)

    assert caught.value is outage


def test_recovery_goes_on_after_a_file_that_is_wrong() -> None:
    """Its error concerns no other file."""
    _refuse_outage(DocumentRefusedError(ErrorCode.PDF_MALFORMED, "no end"))
