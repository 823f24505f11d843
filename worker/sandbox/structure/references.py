"""References in the values of a file's objects.

A number that is referred to and belongs to no object is null today, and whatever a
later revision makes of it.

Source: ISO 32000-2, 7.3.10.
"""

import re
from collections.abc import Iterator
from typing import Final

from worker.sandbox.structure.ambiguity import Steps
from worker.sandbox.structure.tokens import BLANK, END, TEXT

_PART: Final = re.compile(
    rb"(?<![^\0\t\n\f\r ()<>\[\]{}/%])(\d{1,10})"
    + BLANK
    + rb"++\d{1,10}"
    + BLANK
    + rb"++R"
    + END
    + rb"|"
    + TEXT
    + rb"|(?P<text>\()|%[^\r\n]*+|<[0-9A-Fa-f\0\t\n\f\r ]*+>"
)
"""A reference, or what may look as if it held one: a string or a comment."""
_TEXT_PART: Final = re.compile(rb"\\[\0-\xff]|[()]")
_BYTES_A_STEP: Final = 64


def references_in(data: bytes, start: int, end: int, steps: Steps) -> Iterator[int]:
    """Yield the numbers that well-formed values refer to, repetitions included.

    Args:
        data: holds them.
        start: offset of the first byte.
        end: offset after the last one; no stream is in between.
        steps: budget of the whole file.

    Raises:
        UsedUpError: the budget is used up.
    """
    steps.take(1 + (end - start) // _BYTES_A_STEP)
    position = start
    while position < end:
        after = end
        for part in _PART.finditer(data, position, end):
            if part[1] is not None:
                yield int(part[1])
            elif part["text"] is not None:
                after = _end_of_text(data, part.start(), end, steps)
                break
        position = after


def _end_of_text(data: bytes, start: int, end: int, steps: Steps) -> int:
    """Return the offset after a string with parentheses within each other."""
    depth = 0
    for part in _TEXT_PART.finditer(data, start, end):
        steps.take(1)
        if part[0] == b"(":
            depth += 1
        elif part[0] == b")":
            depth -= 1
            if depth == 0:
                return part.end()
    return end
