"""Text that pages show in the places of form fields; for confined jobs only.

A field's value and its appearance are two entries, and nothing keeps them alike.
The person who fills in a form after a signature writes both, so the report names the
value, and the text on the page if it differs.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final

import pypdfium2

from worker.sandbox.inspect.hidden_annotations import Rect

Place = tuple[int, Rect]
"""1-based page, and a rectangle in unrotated user space."""

_CHARS: Final = 200
_LETTERS_LEAST: Final = 2
"""A tick or a cross is the look of a box, and no text."""


def shown_texts(pdf: bytes, places: Mapping[str, Sequence[Place]]) -> dict[str, str]:
    """Read the text in the places of fields, their appearances included.

    Args:
        pdf: the whole file.
        places: of the widgets of each field, by its name.

    Returns:
        The text of each field, at most 200 characters; what cannot be read is left out.
    """
    if not places:
        return {}
    found: dict[str, str] = {}
    try:
        document = pypdfium2.PdfDocument(pdf)
    except (pypdfium2.PdfiumError, MemoryError):
        return found
    try:
        for number in sorted({page for each in places.values() for page, _ in each}):
            for name, text in _on_page(document, number, places):
                found[name] = (found.get(name, "") + text)[:_CHARS]
    except (pypdfium2.PdfiumError, ValueError, MemoryError):
        pass  # of what was read so far nothing is wrong
    finally:
        document.close()
    return found


def _on_page(
    document: pypdfium2.PdfDocument,
    number: int,
    places: Mapping[str, Sequence[Place]],
) -> list[tuple[str, str]]:
    """Read one page, whose annotations become content first.

    Raises:
        pypdfium2.PdfiumError: PDFium cannot read it.
    """
    page = document[number - 1]
    pypdfium2.raw.FPDFPage_Flatten(page, pypdfium2.raw.FLAT_NORMALDISPLAY)
    page.close()
    # Flattened content is seen by text pages of a page that is loaded again.
    page = document[number - 1]
    text = page.get_textpage()
    found = [
        (name, text.get_text_bounded(*rect))
        for name, each in places.items()
        for at, rect in each
        if at == number
    ]
    text.close()
    page.close()
    return found


def differs(value: str, shown: str) -> bool:
    """Return whether a page shows another text than a field's value.

    Blanks, case and forms of the same letters do not count, nor what a page shows of a
    longer value.

    Args:
        value: of the field, as text.
        shown: text in its place.
    """
    one, other = _letters(value), _letters(shown)
    if len(other) < _LETTERS_LEAST:
        return False
    return not one or (one not in other and other not in one)


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(each for each in plain if each.isalnum())
