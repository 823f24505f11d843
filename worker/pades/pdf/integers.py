"""Lists of integers in bytes of a PDF.

Python takes a vertical tab for white space, and no NUL. To PDF it is the other way
round, so that `bytes.split` cuts other tokens than readers do.

Source: ISO 32000-2, 7.2.3 and 7.3.3.
"""

import re
from typing import Final

_LIST: Final = re.compile(
    # Not possessive: Python 3.11.2 forgets the look-ahead of the last part.
    rb"(?:[\0\t\n\f\r ]*+\d{1,18}(?=[\0\t\n\f\r ]|\Z))*[\0\t\n\f\r ]*+"
)
_INTEGER: Final = re.compile(rb"\d++")


def integers_of(data: bytes) -> list[int] | None:
    """Return unsigned integers of at most 18 digits, with PDF's white space between.

    Args:
        data: the bytes of the list alone.

    Returns:
        None if anything else stands there, a comment too.
    """
    if _LIST.fullmatch(data) is None:
        return None
    return [*map(int, _INTEGER.findall(data))]
