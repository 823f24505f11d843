"""Strings in content that are longer than all programs read.

Source: ISO 32000-1, annex C.2; ISO 32000-2, 7.3.4 and 8.9.7.
"""

import re
from typing import Final

from worker.sandbox.structure.ambiguity import Steps
from worker.sandbox.structure.tokens import TEXT

STRING_BYTES: Final = 32_767
"""Most bytes of a string in content; PDFium cuts longer ones."""
_DELIMITER: Final = rb"[\0\t\n\f\r ()<>\[\]{}/%]"
_PART: Final = re.compile(
    TEXT
    + rb"|(?P<text>\()|%[^\r\n]*+|<[0-9A-Fa-f\0\t\n\f\r ]*+>"
    + rb"|(?<![^\0\t\n\f\r \])>}])(?P<picture>BI)(?=[\0\t\n\f\r /])"
)
_REGULAR: Final = rb"[^\0\t\n\f\r ()<>\[\]{}/%]"
_BLANK: Final = rb"[\0\t\n\f\r ]"
# Each part is told by its first byte, so that none is tried twice.
_KEYS: Final = re.compile(
    rb"(?:"
    + _BLANK
    + rb"++|/"
    + _REGULAR
    + rb"*+|(?!ID"
    + _BLANK
    + rb")"
    + _REGULAR
    + rb"++|\[[^\[\]()]{0,999}+\]|<<[^()<>]{0,999}+>>){0,200}ID"
    + _BLANK
)
_END_PICTURE: Final = re.compile(rb"[\0\t\n\f\r ]EI(?=" + _DELIMITER + rb"|\Z)")
_TEXT_PART: Final = re.compile(rb"\\[\0-\xff]|[()]")
_PARTS_A_STEP: Final = 8


def has_long_string(content: bytes, steps: Steps) -> bool:
    """Return whether a string of some content is longer than `STRING_BYTES`.

    An inline picture without an end, which may hide one, counts as one.

    Args:
        content: decoded.
        steps: budget of the whole file.

    Raises:
        UsedUpError: the budget is used up.
    """
    position, size = 0, len(content)
    while size - position > STRING_BYTES:
        for count, part in enumerate(_PART.finditer(content, position)):
            if count % _PARTS_A_STEP == 0:
                steps.take(1)
            if part["picture"]:
                end = _end_of_picture(content, part.end())
                if end is None:
                    return size - part.end() > STRING_BYTES
                position = end
                break
            if part["text"]:
                position = _end_of_text(content, part.start(), steps)
                if position - part.start() > STRING_BYTES:
                    return True
                break
            if _is_long(part[0]):
                return True
        else:
            return False
    return False


def _is_long(part: bytes) -> bool:
    """Return whether a token is a string that is too long."""
    if part[:1] == b"<":
        return len(part) > 2 * STRING_BYTES
    return part[:1] == b"(" and len(part) > STRING_BYTES


def _end_of_picture(content: bytes, at: int) -> int | None:
    """Return the offset after an inline picture; None for one without an end."""
    keys = _KEYS.match(content, at)
    if keys is None:
        return at  # an operator without any meaning
    end = _END_PICTURE.search(content, keys.end() - 1)
    return None if end is None else end.end()


def _end_of_text(content: bytes, start: int, steps: Steps) -> int:
    """Return the offset after a string; that of the end, where none ends it."""
    depth = 0
    for count, part in enumerate(_TEXT_PART.finditer(content, start)):
        if count % _PARTS_A_STEP == 0:
            steps.take(1)
        if part[0] == b"(":
            depth += 1
        elif part[0] == b")":
            depth -= 1
            if depth == 0:
                return part.end()
        if part.end() - start > STRING_BYTES:
            break
    return len(content)
