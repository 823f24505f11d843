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
# Comments within the header are white space to poppler and Firefox.
_FIRST: Final = re.compile(
    SPACE + rb"[+-]?\d{1,18}" + SPACE + rb"[+-]?\d{1,18}" + SPACE + rb"obj"
)
# Programs read different numbers of `20-0000` and `2e5`.
_NUMBER: Final = SPACE + rb"\+?\d{1,18}(?:\.\d*+)?(?=[\0\t\n\f\r \[\]/<>%])"
_PLAIN: Final = re.compile(
    SPACE
    + rb"<<(?:"
    + SPACE
    + rb"/[A-Za-z]++(?:"
    + _NUMBER
    + rb"|"
    + SPACE
    + rb"\[(?:"
    + _NUMBER
    + rb")*+"
    + SPACE
    + rb"\]))*+"
    + SPACE
    + rb">>"
)
_SEARCHED: Final = 1024 * 1024
# A real number without a fraction is an integer to JavaScript. Of several lengths each
# may be the one that a reader takes.
_LENGTH: Final = re.compile(
    rb"/([^\0\t\n\f\r ()<>\[\]{}/%]*+)" + SPACE + rb"\+?(\d{1,18})(?:\.0*)?(?![\d.])"
)
_ESCAPE: Final = re.compile(rb"#([0-9A-Fa-f]{2})")
_AFTER: Final = re.compile(SPACE + rb"endobj" + SPACE)
_ENDING: Final = re.compile(rb"%%EOF" + BLANK + rb"{0,4}\Z")
_ENDING_BYTES: Final = 9
_BYTES_A_STEP: Final = 64


def check_linearization(pdf: bytes, findings: Findings, steps: Steps) -> None:
    """Find a revision that ends where the linearization dictionary ends the file.

    Args:
        pdf: the whole file.
        findings: takes the revision, at its startxref, and a dictionary that is not
            well-formed, at the header.
        steps: budget of the file.

    Raises:
        UsedUpError: the budget is used up.
    """
    # Whatever stands before the first object is a comment, the header too.
    start = max(pdf.find(b"%PDF-", 0, _HEADER_BYTES), 0)
    first = _FIRST.match(pdf, start)
    begin = start if first is None else first.end()
    tokens = TokenReader(pdf, steps, compares=False).read(begin)
    is_clear = first is not None and tokens.complete and not tokens.faults
    # PDFium begins to read nine bytes after the header, be that within a comment.
    searched = pdf[start : begin if is_clear else start + _SEARCHED]
    steps.take(len(searched) // _BYTES_A_STEP)
    if b"/Linearized" in _unescaped(searched):
        _refuse(start, findings)
        return
    if not is_clear:
        return
    if b"Linearized" not in (tokens.entries or {}):
        return
    if _PLAIN.fullmatch(pdf, begin, tokens.end) is None:
        _refuse(start, findings)
    after = _AFTER.match(pdf, tokens.end)
    for name, length in _LENGTH.findall(pdf, begin, tokens.end):
        if _unescaped(name) == b"L":
            _check_length(pdf, int(length), after, findings)


def _refuse(at: int, findings: Findings) -> None:
    """Note a linearization dictionary that programs read differently."""
    words = "the linearization dictionary is not well-formed"
    findings.add(AmbiguityKind.LINEARIZED, at, None, words)


def _unescaped(data: bytes) -> bytes:
    return _ESCAPE.sub(lambda code: bytes([int(code[1], 16)]), data)


def _check_length(
    pdf: bytes, end: int, after: re.Match[bytes] | None, findings: Findings
) -> None:
    """Find a revision that ends at a length of the linearization dictionary.

    Args:
        pdf: the whole file.
        end: the length.
        after: match that ends where the first section has to be.
        findings: takes the revision, at its startxref.
    """
    if end > len(pdf):
        return
    if end < len(pdf) and not _ENDING.search(pdf, max(end - _ENDING_BYTES, 0), end):
        return
    at = pdf.rfind(b"startxref", 0, end)
    start = START.match(pdf, at) if at >= 0 else None
    if start is None:
        return
    if after is not None and after_blanks(pdf, int(start[1])) == after.end():
        return
    words = "by its linearization dictionary the file ends here, without revisions"
    findings.add(AmbiguityKind.LINEARIZED, at, None, words)
