"""Finds annotations that some programs draw and others do not.

Each program asks other entries before it draws an annotation's appearance: poppler asks
for the lines of a highlight, PDFium leaves out links and pop-ups, MuPDF reads flags
that are no integer. One that has what its kind requires all of them draw.

Source: ISO 32000-2, 12.5.2 (table 166), 12.5.3, 12.5.5 and 12.5.6.
"""

from collections.abc import Sequence
from typing import Final

from pyhanko.pdf_utils.generic import (
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    StreamObject,
)

from appliance.domain.documents.inspected import FindingKind
from worker.sandbox.inspect.annotations import find_among_annotations
from worker.sandbox.inspect.pages import Page
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    entry,
    inherited,
    number,
    plain_dictionary,
    raw_items,
    resolve,
)

_UNSEEN: Final = 0x02 | 0x20  # Hidden, NoView
_INVISIBLE: Final = 0x01
_MOST_FLAGS: Final = 0x3FF
_LONGEST: Final = 1_000_000
"""Coordinates that every program holds."""
_CORNERS: Final = 4
_NUMBERS: Final = (NumberObject, FloatObject)
_REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "/Text": (),
    "/FreeText": (),
    "/Line": ("/L",),
    "/Square": (),
    "/Circle": (),
    "/Polygon": ("/Vertices", "/Path"),
    "/PolyLine": ("/Vertices", "/Path"),
    "/Highlight": ("/QuadPoints",),
    "/Underline": ("/QuadPoints",),
    "/Squiggly": ("/QuadPoints",),
    "/StrikeOut": ("/QuadPoints",),
    "/Caret": (),
    "/Stamp": (),
    "/Ink": ("/InkList", "/Path"),
    "/FileAttachment": ("/FS",),
    "/Redact": (),
    "/Watermark": (),
}
"""Kinds that all programs draw, each with the entries of which it needs one."""
_UNSTATED: Final = {"/Screen", "/PrinterMark", "/TrapNet", "/3D", "/RichMedia"}
"""Kinds that are told of elsewhere, or that are for printing presses."""


def find_odd_annotations(pages: Sequence[Page], budget: Budget) -> set[FindingKind]:
    """Look for an annotation with an appearance that is not drawn by all programs.

    Args:
        pages: of the document.
        budget: steps that may be taken over the whole document.

    Returns:
        `DRAWN_DIFFERENTLY`; `UNEXAMINED_PARTS` for one that cannot be read.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
    """
    return find_among_annotations(pages, budget, _is_odd, FindingKind.DRAWN_DIFFERENTLY)


def _is_odd(node: DictionaryObject, _page: Page) -> bool:
    """Return whether programs draw an annotation's look by rules of their own."""
    flags: object = entry(node, "/F")
    if flags is not None and type(flags) is not NumberObject:
        return _draws(node)
    value = int(number(flags) or 0)
    is_odd = not 0 <= value <= _MOST_FLAGS or bool(value & _INVISIBLE)
    if (value & _UNSEEN and not is_odd) or not _draws(node):
        return False
    if is_odd:
        return True
    if isinstance(node, StreamObject) or plain_dictionary(node, "/AP") is None:
        return True
    return not (_is_of_kind(node) and _has_area(node))


def _is_of_kind(node: DictionaryObject) -> bool:
    """Return whether an annotation has what its kind requires."""
    kind: object = entry(node, "/Subtype")
    if not isinstance(kind, NameObject):
        return False
    if str(kind) in _UNSTATED:
        return True
    if kind == "/Widget":
        return isinstance(inherited(node, "/FT"), NameObject)
    required = _REQUIRED.get(str(kind))
    return required is not None and (
        not required or any(entry(node, key) is not None for key in required)
    )


def _draws(node: DictionaryObject) -> bool:
    """Return whether an annotation has an appearance that shows anything."""
    looks: object = entry(node, "/AP")
    if not isinstance(looks, DictionaryObject):
        return False
    if isinstance(looks, StreamObject):
        return True
    drawn: object = entry(looks, "/N")
    drawings = [drawn]
    if isinstance(drawn, DictionaryObject) and not isinstance(drawn, StreamObject):
        drawings = [resolve(drawn.raw_get(key)) for key in drawn]
    return any(
        isinstance(each, StreamObject) and bool(each.encoded_data.strip())
        for each in drawings
        if not _is_nothing(each)
    )


def _is_nothing(drawing: object) -> bool:
    """Return whether an appearance has a box without area, as that of no stamp."""
    box = _corners(entry(drawing, "/BBox"))
    return box is not None and (box[0] == box[2] or box[1] == box[3])


def _has_area(node: DictionaryObject) -> bool:
    """Return whether a rectangle is four plain numbers, apart from one another."""
    rect = _corners(entry(node, "/Rect"))
    return (
        rect is not None
        and rect[0] != rect[2]
        and rect[1] != rect[3]
        and all(abs(each) <= _LONGEST for each in rect)
    )


def _corners(box: object) -> tuple[float, ...] | None:
    """Return the numbers of a box; None where it is not four of them."""
    found = [resolve(each) for each in raw_items(box)]
    numbers = [number(each) for each in found if type(each) in _NUMBERS]
    known = tuple(each for each in numbers if each is not None)
    return known if len(found) == len(known) == _CORNERS else None
