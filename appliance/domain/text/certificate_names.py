"""Names that verifiers can compare in certificates.

They compare prepared strings (RFC 5280, 7.1; RFC 4518, 2). The preparation knows
Unicode 3.2 alone and refuses what came later, and names that mix directions: a
certificate with such a name belongs to no chain.
"""

import stringprep
import unicodedata
from typing import Final

_REFUSED: Final = (
    stringprep.in_table_a1,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c8,
    "\N{REPLACEMENT CHARACTER}".__eq__,
)


def is_comparable(name: str) -> bool:
    """True if string preparation accepts a name.

    Args:
        name: printable; not empty.
    """
    folded = "".join(map(stringprep.map_table_b2, name))
    prepared = unicodedata.normalize("NFKC", folded)
    if any(refuses(char) for char in prepared for refuses in _REFUSED):
        return False
    if not any(map(stringprep.in_table_d1, prepared)):
        return True
    # RFC 3454, 6: one direction throughout, from the first character to the last.
    return not any(map(stringprep.in_table_d2, prepared)) and all(
        stringprep.in_table_d1(end) for end in (prepared[0], prepared[-1])
    )
