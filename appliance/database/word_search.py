"""A text that was typed into a search box, as a condition on columns.

Words are looked for one by one, in any order: a row holds the text if each of its words
is part of one of the columns. Accents, case and the kind of an apostrophe or a blank do
not count.
"""

import unicodedata
from typing import Final

from sqlalchemy import ColumnElement, and_, func, or_

from appliance.domain.people.identity import bare_number

_ACCENTS: Final = (
    ("á", "a"), ("é", "e"), ("í", "i"), ("ó", "o"), ("ú", "u"), ("ü", "u"), ("ñ", "n"),
)  # fmt: skip
_MARKS: Final = (
    # Combining acute, tilde, diaeresis: some systems name files in decomposed form.
    ("\u0301", ""), ("\u0303", ""), ("\u0308", ""),
    # Apostrophes as telephones and word processors write them, and no-break spaces.
    ("\u2019", "'"), ("\u2018", "'"), ("\u02bc", "'"), ("\u00b4", "'"),
    ("\u00a0", " "), ("\u202f", " "),
)  # fmt: skip
"""Characters besides, and what they count as."""
_ESCAPE: Final = "\\"
_MOST_WORDS: Final = 8
"""Words looked for one by one; what follows is looked for as it stands."""
_CUIL_PART: Final = range(7, 12)
"""Digits of part of a CUIL, from those of a short DNI."""


def holds_words(
    text: str, *columns: ColumnElement[str], cuil: ColumnElement[str] | None = None
) -> ColumnElement[bool]:
    """Build the condition that a row holds each word of a text.

    Args:
        text: as typed.
        *columns: that people know it by, `folded` where they have accents.
        cuil: a column of CUILs; 7 digits or more, as one word or as all of the text,
            may be part of one.
    """
    words = search_words(text)
    found = and_(*(_holds(word, columns, cuil) for word in words))
    digits = _digits(text)
    if cuil is None or len(words) == 1 or len(digits) not in _CUIL_PART:
        return found
    # A DNI as people write it, in groups: "26 756 539".
    return or_(found, contains(cuil, digits))


def search_words(text: str) -> list[str]:
    """Split a text into the words that are looked for, each once.

    Args:
        text: as typed; blanks alone are one empty word, which everything holds.
    """
    words = list(dict.fromkeys(fold(text).split()))
    if len(words) > _MOST_WORDS:
        rest = fold(text).split(maxsplit=_MOST_WORDS - 1)[-1]
        words = [*words[: _MOST_WORDS - 1], rest]
    return words or [""]


def _holds(
    word: str,
    columns: tuple[ColumnElement[str], ...],
    cuil: ColumnElement[str] | None,
) -> ColumnElement[bool]:
    found = [contains(column, word) for column in columns]
    digits = _digits(word)
    if cuil is not None and len(digits) in _CUIL_PART:
        found.append(contains(cuil, digits))
    return or_(*found)


def _digits(text: str) -> str:
    """The digits of a printed number; empty for a text that is more than that."""
    bare = bare_number(text)
    return bare if bare.isascii() and bare.isdigit() else ""


def contains(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    """Whether a column has a text in it, whatever characters that is made of."""
    for special in (_ESCAPE, "%", "_"):
        text = text.replace(special, _ESCAPE + special)
    return column.like(f"%{text}%", escape=_ESCAPE)


def folded(column: ColumnElement[str]) -> ColumnElement[str]:
    """A column as people search it: SQLite lowers ASCII alone, and has no more."""
    made: ColumnElement[str] = column
    for accented, bare in _ACCENTS:
        made = func.replace(made, accented, bare)
        made = func.replace(made, accented.upper(), bare)
    for mark, bare in _MARKS:
        made = func.replace(made, mark, bare)
    return func.lower(made)


def fold(text: str) -> str:
    """What is searched for, as `folded` has it."""
    text = unicodedata.normalize("NFC", text)
    for accented, bare in _ACCENTS:
        text = text.replace(accented, bare).replace(accented.upper(), bare)
    for mark, bare in _MARKS:
        text = text.replace(mark, bare)
    return "".join(char.lower() if char.isascii() else char for char in text)
