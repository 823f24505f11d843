"""End of a file.

Source: ISO 32000-2, 7.5.5.
"""

import re
from dataclasses import dataclass
from typing import Final

from worker.sandbox.structure.ambiguity import AmbiguityKind, Findings
from worker.sandbox.structure.tokens import BLANK, END

_KEYWORD: Final = b"startxref"
_BLANKS_MAX: Final = 1_000
"""Most white space after the marker, which readers seek in the last 1,024 bytes."""
# Some readers search the last 1,024 bytes alone, so that blanks may hide the number.
START: Final = re.compile(rb"startxref" + BLANK + rb"{1,8}+(\d{1,18})" + END)
_MARKER: Final = re.compile(BLANK + rb"*+%%EOF")
_BEFORE: Final = b"\0\t\n\f\r "
_BLANKS: Final = re.compile(BLANK + rb"*+")


@dataclass(frozen=True, slots=True)
class FileEnd:
    """The last `startxref`.

    Args:
        at: offset of the keyword.
        value: offset that it gives.
    """

    at: int
    value: int


def read_end(pdf: bytes, findings: Findings) -> FileEnd | None:
    """Read the last `startxref`; None if there is none that can be read.

    Args:
        pdf: the whole file.
        findings: takes what follows the last revision.
    """
    at = pdf.rfind(_KEYWORD)
    start = START.match(pdf, at) if at > 0 and pdf[at - 1] in _BEFORE else None
    if start is None:
        words = "the file has no startxref at its end"
        findings.add(AmbiguityKind.NOT_AT_END, max(at, 0), None, words)
        return None
    marker = _MARKER.match(pdf, start.end())
    position = start.end() if marker is None else marker.end()
    blanks = _BLANKS.match(pdf, position)
    rest = position if blanks is None else blanks.end()
    if marker is None:
        words = "no end-of-file marker follows the last startxref"
        findings.add(AmbiguityKind.NOT_AT_END, start.end(), None, words)
    elif rest < len(pdf):
        words = f"the file goes on for {len(pdf) - rest} bytes after its last revision"
        findings.add(AmbiguityKind.NOT_AT_END, rest, None, words)
    elif rest - position > _BLANKS_MAX:
        words = f"{rest - position} bytes of white space follow the last revision"
        beyond = position + _BLANKS_MAX
        findings.add(AmbiguityKind.NOT_AT_END, beyond, None, words)
    return FileEnd(at, int(start[1]))
