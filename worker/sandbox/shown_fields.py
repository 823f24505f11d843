"""Finds filled fields that show another thing than their value.

A field's value and its look are two entries, and nothing keeps them alike. Readers of
values, among them browsers that put a field of their own in the place, show the value;
others the look. A signer has seen one of the two.

Source: ISO 32000-2, 12.7.4.3 and 12.7.5.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from pyhanko.pdf_utils.generic import DictionaryObject, StreamObject
from pyhanko.pdf_utils.misc import PdfDecodeLimitError

from appliance.domain.documents.inspected import FindingKind
from worker.sandbox.inspect.pages import Box, Page, read_box
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    dictionary,
    entry,
    inherited,
    name,
    number,
    raw_items,
    resolve,
)
from worker.sandbox.verify.page_texts import PageTexts
from worker.sandbox.verify.shown_values import differs

_UNSEEN: Final = 0x02 | 0x20  # Hidden, NoView
_PASSWORD: Final = 1 << 13
_RADIO: Final = 1 << 15
_PUSH_BUTTON: Final = 1 << 16
_COMBO: Final = 1 << 17
_FIELDS_MOST: Final = 2_000
_TEXT_CHARS: Final = 4_000
_OFF: Final = "/Off"


@dataclass(frozen=True, slots=True)
class _FilledText:
    """A text or choice that a field shows.

    Args:
        page: 1-based.
        rect: in user space.
        expected: what it may show: a value, or the name that a choice has for it.
    """

    page: int
    rect: Box
    expected: tuple[str, ...]


def find_other_values(
    pdf: bytes, pages: Sequence[Page], budget: Budget
) -> set[FindingKind]:
    """Compare what filled fields show with their values.

    A value that a script of the field writes in another form, a password and a list of
    many lines are not compared.

    Args:
        pdf: the whole file; encrypted with the empty password at the most.
        pages: of the document.
        budget: steps that may be taken over the whole document.

    Returns:
        `FIELD_SHOWS_OTHER` for such a field, `UNEXAMINED_PARTS` where fields cannot
        be compared, or not in the time there is.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
    """
    filled: list[_FilledText] = []
    try:
        for at, page in enumerate(pages, 1):
            for raw in raw_items(entry(page.node, "/Annots")):
                budget.take()
                widget = resolve(raw)
                if not isinstance(widget, DictionaryObject):
                    continue
                if _shows_other_state(widget):
                    return {FindingKind.FIELD_SHOWS_OTHER}
                filled += _texts(widget, at)
    except (MemoryError, PdfDecodeLimitError):
        raise
    except (ValueError, TypeError, AttributeError, KeyError):
        return {FindingKind.UNEXAMINED_PARTS}
    if not filled:
        return set()
    if len(filled) > _FIELDS_MOST:
        return {FindingKind.UNEXAMINED_PARTS}
    with closing(PageTexts(pdf)) as texts:
        return _compared(filled, texts)


def _compared(filled: Sequence[_FilledText], texts: PageTexts) -> set[FindingKind]:
    """Compare texts, page by page."""
    by_page: dict[int, list[_FilledText]] = {}
    for each in filled:
        by_page.setdefault(each.page, []).append(each)
    for page, fields in by_page.items():
        shown = texts.looks(page, [each.rect for each in fields])
        if shown is None:
            return {FindingKind.UNEXAMINED_PARTS}
        for field, text in zip(fields, shown, strict=True):
            if all(differs(each[:_TEXT_CHARS], text) for each in field.expected):
                return {FindingKind.FIELD_SHOWS_OTHER}
    return set()


def _is_shown(widget: DictionaryObject) -> bool:
    """Return whether a widget has a look that is to be seen."""
    flags = int(number(entry(widget, "/F")) or 0)
    return (
        name(widget, "/Subtype") == "/Widget"
        and not flags & _UNSEEN
        and dictionary(widget, "/AP") is not None
    )


def _shows_other_state(widget: DictionaryObject) -> bool:
    """Return whether a button shows another state than its field has."""
    if not _is_shown(widget) or inherited(widget, "/FT") != "/Btn":
        return False
    if int(number(inherited(widget, "/Ff")) or 0) & _PUSH_BUTTON:
        return False
    states = dictionary(dictionary(widget, "/AP"), "/N")
    if states is None or isinstance(states, StreamObject):
        return False
    value, state = inherited(widget, "/V"), name(widget, "/AS") or _OFF
    wanted = value if isinstance(value, str) and value in states else _OFF
    return state != wanted


def _texts(widget: DictionaryObject, page: int) -> Iterator[_FilledText]:
    """Yield the text that a widget has to show, if it is known."""
    kind = inherited(widget, "/FT") if _is_shown(widget) else None
    flags = int(number(inherited(widget, "/Ff")) or 0)
    if kind not in {"/Tx", "/Ch"} or _has_format(widget):
        return
    if (kind == "/Tx" and flags & _PASSWORD) or (kind == "/Ch" and not flags & _COMBO):
        return
    value, rect = inherited(widget, "/V"), read_box(entry(widget, "/Rect"))
    if isinstance(value, StreamObject):
        value = value.data.decode("latin-1")
    if rect is None or not isinstance(value, str):
        return
    yield _FilledText(page, rect, (value, *_displayed(widget, value)))


def _has_format(widget: DictionaryObject) -> bool:
    """Return whether a script writes the value in another form."""
    return entry(dictionary(widget, "/AA"), "/F") is not None or (
        entry(inherited(widget, "/AA"), "/F") is not None
    )


def _displayed(widget: DictionaryObject, value: str) -> Iterator[str]:
    """Yield the texts that a choice has for a value (ISO 32000-2, table 234)."""
    for raw in raw_items(inherited(widget, "/Opt")):
        pair = [resolve(each) for each in raw_items(resolve(raw))]
        if len(pair) > 1 and str(pair[0]) == value:
            yield str(pair[1])
