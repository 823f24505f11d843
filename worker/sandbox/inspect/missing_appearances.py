"""Finds annotations and fields that each program draws as it likes.

What an annotation looks like is in its normal appearance. Without one, programs draw it
from its other entries, or not at all: what a signer saw is not what others see. Links
and pop-ups have no appearance, and a signature field needs none. A field is looked at
where it has something to show.

Source: ISO 32000-2, 12.5.5 and 12.7.4.3.
"""

from collections.abc import Sequence
from typing import Final

from pyhanko.pdf_utils.generic import ArrayObject, DictionaryObject, StreamObject

from appliance.domain.documents.inspected import FindingKind
from worker.sandbox.inspect.annotations import find_among_annotations
from worker.sandbox.inspect.pages import Page, page_box, read_box
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    dictionary,
    entry,
    inherited,
    name,
    number,
)

_UNSEEN: Final = 0x02 | 0x20  # Hidden, NoView
_NEVER_DRAWN: Final = {"/Link", "/Popup", "/PrinterMark", "/Projection", "/TrapNet"}
_OFF: Final = "/Off"
_PUSH_BUTTON: Final = 0x10000  # of /Ff
_CAPTIONS: Final = ("/CA", "/I")  # of a push button: its words and its icon


def find_missing_appearances(pages: Sequence[Page], budget: Budget) -> set[FindingKind]:
    """Look for an annotation that is to be seen and does not say how.

    Args:
        pages: of the document.
        budget: steps that may be taken over the whole document.

    Returns:
        `MISSING_APPEARANCES` for such a one, `UNEXAMINED_PARTS` for one that cannot
        be read.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
    """
    return find_among_annotations(
        pages, budget, _is_missing, FindingKind.MISSING_APPEARANCES
    )


def _is_missing(node: DictionaryObject, page: Page) -> bool:
    """Return whether each program draws an annotation as it likes."""
    subtype = name(node, "/Subtype")
    if subtype in _NEVER_DRAWN or int(number(entry(node, "/F")) or 0) & _UNSEEN:
        return False
    if subtype == "/Widget" and not _has_something_to_show(node):
        return False
    # Only now, as it is read with its data.
    return not _has_appearance(node) and _has_place(node, page)


def _has_appearance(node: DictionaryObject) -> bool:
    """Return whether a normal appearance can be drawn, in the state that is set."""
    drawing = dictionary(dictionary(node, "/AP"), "/N")
    if drawing is None or isinstance(drawing, StreamObject):
        return _is_drawable(drawing)
    state = name(node, "/AS")
    return state is not None and _is_drawable(entry(drawing, state))


def _is_drawable(drawing: object) -> bool:
    """Return whether a form has a box, without which it is drawn by no rule."""
    if not isinstance(drawing, StreamObject):
        return False
    return read_box(entry(drawing, "/BBox")) is not None


def _has_something_to_show(widget: DictionaryObject) -> bool:
    """Return whether a field's widget should be seen, as its field and state say."""
    kind = inherited(widget, "/FT")
    if kind in {"/Tx", "/Ch"}:
        return _is_filled(inherited(widget, "/V"))
    if kind != "/Btn":
        return False
    if int(number(inherited(widget, "/Ff")) or 0) & _PUSH_BUTTON:
        look = dictionary(widget, "/MK")
        return any(entry(look, key) is not None for key in _CAPTIONS)
    state = name(widget, "/AS") or inherited(widget, "/V")
    return isinstance(state, str) and state != _OFF


def _is_filled(value: object) -> bool:
    if isinstance(value, StreamObject | DictionaryObject):
        return True
    return bool(value) if isinstance(value, str | bytes | ArrayObject) else False


def _has_place(node: DictionaryObject, page: Page) -> bool:
    """Return whether it is on the visible part of the page, and opaque at all."""
    opacity, rect = number(entry(node, "/CA")), read_box(entry(node, "/Rect"))
    if opacity == 0 or rect is None:
        return False
    shown = page_box(page)
    return min(rect[2], shown.x1) > max(rect[0], shown.x0) and min(
        rect[3], shown.y1
    ) > max(rect[1], shown.y0)
