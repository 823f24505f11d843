"""What somebody typed, by Unicode: its NFC form, and whether it is one line."""

import unicodedata

_DECOMPOSED = 4
"""Characters of a typed text for each that is left: a base letter and its marks."""
_BREAKS = frozenset({"Cc", "Zl", "Zp"})
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""What shows the text after it in another order than it is written (UAX #9, 2)."""


def is_line(text: str) -> bool:
    """Whether a text has no line breaks, other controls, or changes of direction.

    Args:
        text: as typed, of a bounded length.
    """
    # What is printable has none; that is told without a look at each character here.
    return text.isprintable() or all(
        unicodedata.category(char) not in _BREAKS and char not in _TURNING
        for char in text
    )


def nfc(text: str, longest: int) -> str | None:
    """The NFC form of a text, or None for one that is longer than any that is taken.

    CPython sorts a run of combining marks pairwise, in quadratic time: 16,000 of
    them take a second. So the length is looked at first.

    Args:
        text: as typed.
        longest: most characters that the caller takes; four times as many are
            composed, for the caller to count what is left.

    Source: UAX #15.
    """
    if len(text) > _DECOMPOSED * longest:
        return None
    return unicodedata.normalize("NFC", text)
