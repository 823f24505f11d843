"""Linearized files whose length a later revision has met.

A reader that finds the file as long as its linearization dictionary says starts at the
first section of the file, and sees no later revision. Firefox and poppler do. A signed
file whose dictionary names a greater length is whole, and shows what was signed. Once
it is that long, they show the revision before all others.

Source: ISO 32000-2, annex F.
"""

import re
from typing import Final

from worker.sandbox.structure.ambiguity import AmbiguityKind, Findings, Steps
from worker.sandbox.structure.file_end import START
from worker.sandbox.structure.tokens import BLANK, SPACE, TokenReader, after_blanks

_HEADER_BYTES: Final = 1_024
_DICTIONARY_BYTES: Final = 2_048
_FIRST: Final = re.compile(
    SPACE + rb"\d{1,10}" + BLANK + rb"++\d{1,5}" + BLANK + rb"++obj"
)
# A real number without a fraction is an integer to JavaScript.
_LENGTH: Final = re.compile(SPACE + rb"\+?(\d{1,18})(?:\.0*)?(?![\d.])")
_AFTER: Final = re.compile(SPACE + rb"endobj" + SPACE)
_ENDING: Final = re.compile(rb"%%EOF" + BLANK + rb"{0,4}\Z")
_ENDING_BYTES: Final = 9


def check_linearization(pdf: bytes, findings: Findings, steps: Steps) -> None:
    """Find a revision that ends where the linearization dictionary ends the file.

    Args:
        pdf: the whole file.
        findings: takes the revision, at its startxref.
        steps: budget of the file.

    Raises:
        UsedUpError: the budget is used up.
    """
    # Whatever stands before the first object is a comment, the header too.
    first = _FIRST.match(pdf, max(pdf.find(b"%PDF-", 0, _HEADER_BYTES), 0))
    if first is None:
        return
    begin = first.end()
    read = pdf[begin : begin + _DICTIONARY_BYTES]
    tokens = TokenReader(read, steps, compares=False).read(0)
    entries = tokens.entries or {}
    length = _LENGTH.match(read, entries[b"L"]) if b"L" in entries else None
    after = _AFTER.match(pdf, begin + tokens.end)
    if b"Linearized" not in entries or length is None or after is None:
        return
    end = int(length[1])
    if end > len(pdf):
        return
    if end < len(pdf) and not _ENDING.search(pdf, max(end - _ENDING_BYTES, 0), end):
        return
    at = pdf.rfind(b"startxref", 0, end)
    start = START.match(pdf, at) if at >= 0 else None
    if start is None or after_blanks(pdf, int(start[1])) == after.end():
        return
    words = "by its linearization dictionary the file ends here, without revisions"
    findings.add(AmbiguityKind.LINEARIZED, at, None, words)
