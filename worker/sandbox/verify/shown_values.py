"""Comparison of the text that a page shows in a field with the field's value.

A field's value and its appearance are two entries, and nothing keeps them alike.
The person who fills in a form after a signature writes both, so the report names the
value, and the text on the page if it differs. For confined jobs only.
"""

import unicodedata
from typing import Final

_SECRET: Final = frozenset("*\N{BULLET}\N{BLACK CIRCLE}\N{MIDDLE DOT}")
"""Signs that stand for the characters of a password."""
# PDFium returns U+0002 for a hyphen at the end of a line, and fonts draw a soft hyphen
# as a hyphen.
_JOINS: Final = frozenset("\u200b\u200c\u200d")
_HYPHENS: Final = dict.fromkeys((0x2010, 0x2011), "-")
_DRAWN_HYPHENS: Final = dict.fromkeys((0x02, 0xAD), "-")


def differs(value: str, shown: str) -> bool:
    """Return whether a page shows another text than a field's value.

    White space does not count, nor ligatures and other forms of the same letters.
    Signs, digits and capitals do: -1 is not 1, and 1.000 is not 1000.

    Args:
        value: of the field, as text.
        shown: text in its place.
    """
    return plain_text(value) != plain_text(shown.translate(_DRAWN_HYPHENS))


def is_concealed(shown: str) -> bool:
    """Return whether a text shows nothing of a password.

    Args:
        shown: text in the field's place.
    """
    return _SECRET.issuperset(plain_text(shown))


def plain_text(text: str) -> str:
    """Write a text without white space, and its letters in their usual form.

    Signs that have no form of their own count, but for those that join or part letters:
    some turn the order of what follows.
    """
    composed = unicodedata.normalize("NFC", text).translate(_HYPHENS)
    return "".join(
        _letter(each) for each in composed if not each.isspace() and each not in _JOINS
    )


def _letter(char: str) -> str:
    """Return the usual form of a letter; a digit's other forms are other values."""
    usual = unicodedata.normalize("NFKC", char)
    return usual if usual.isalpha() else char
