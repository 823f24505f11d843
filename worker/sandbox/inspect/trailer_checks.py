"""How a PDF ends."""

import re
from typing import Final

_TAIL_BYTES: Final = 1024
_TAIL: Final = re.compile(rb"%%EOF\s*\Z")


def is_well_ended(pdf: bytes) -> bool:
    """Say whether nothing but white space follows the last end marker.

    Source: ISO 32000-2, 7.5.5.
    """
    return _TAIL.search(pdf, max(0, len(pdf) - _TAIL_BYTES)) is not None
