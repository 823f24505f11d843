"""What a stamp can show."""

from typing import Final

CHARACTERS: Final = (
    "".join(map(chr, range(0x20, 0x7F)))
    # Between them U+00AD, the soft hyphen: no visible character.
    + "".join(map(chr, (*range(0xA0, 0xAD), *range(0xAE, 0x180))))
    + "\u2013\u2014\u2018\u2019\u201c\u201d\u2022\u2026\u20ac"
)
"""What a stamp can show: Latin and the usual punctuation."""
