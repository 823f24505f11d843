"""Finds annotations and fields that are there without being seen.

Known attacks prepare a document so that its look can be changed after it is
signed: what will be seen later lies hidden, beside the page, or below something
else. What of that an annotation's own entries tell is found here; what the page's
content draws over itself is not.

Source: C. Mainka, V. Mladenov, S. Rohlmann: Shadow Attacks (NDSS 2021).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pyhanko.pdf_utils.generic import DictionaryObject

from appliance.domain.documents.inspected import FindingKind, PageBox
from worker.sandbox.inspect.pages import Page, page_box
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    Key,
    entry,
    inherited,
    key_of,
    name,
    number,
    raw_items,
    resolve,
)

_UNSEEN: Final = 0x02 | 0x20  # Hidden, NoView
_NOTHING_TO_SEE: Final = {"/Popup", "/Link", "/PrinterMark", "/TrapNet"}
_COVERING: Final = {
    "/3D",
    "/FreeText",
    "/Movie",
    "/Redact",
    "/RichMedia",
    "/Screen",
    "/Stamp",
    "/Widget",
}
_FILLED: Final = {"/Circle", "/Polygon", "/Square"}
_SHARE: Final = 0.25  # of the smaller one: neighbours' borders touch
_COMPARISONS_A_STEP: Final = 10

Rect = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Annotation:
    """What of an annotation decides whether it is seen."""

    subtype: str
    flags: int
    rect: Rect | None
    """Left, bottom, right, top in user space; None where there is none."""
    opacity: float
    is_filled: bool
    has_text: bool
    is_signature: bool

    @property
    def area(self) -> float:
        """Of its rectangle, in square points."""
        return 0.0 if self.rect is None else _area(self.rect)

    @property
    def is_unseen(self) -> bool:
        """Whether it is shown to nobody, though it has something to show."""
        if self.is_signature:
            return False  # many are invisible, and say nothing themselves
        if self.flags & _UNSEEN:
            return True
        gone = self.opacity == 0 or self.area == 0
        return self.subtype == "/FreeText" and self.has_text and gone

    @property
    def is_drawn(self) -> bool:
        """Whether a reader draws it at all."""
        seen = not self.flags & _UNSEEN and self.area > 0
        return seen and self.subtype not in _NOTHING_TO_SEE

    @property
    def is_covering(self) -> bool:
        """Whether what lies below it is not seen."""
        is_opaque = self.subtype in _FILLED and self.is_filled
        return self.is_drawn and (self.subtype in _COVERING or is_opaque)


@dataclass(frozen=True, slots=True)
class Hidden:
    """What annotations and fields hide, and where they may hide what is below."""

    found: set[FindingKind] = field(default_factory=set)
    covering: dict[int, list[Rect]] = field(default_factory=dict)
    """By page, the first being 0: what is drawn there, be it opaque or not."""


def find_hidden(
    pages: Sequence[Page], fields: Sequence[object], budget: Budget
) -> Hidden:
    """Find what annotations and fields hide.

    Args:
        pages: of the document.
        fields: every node of the form, as `form_fields` gives them.
        budget: steps that may be taken over the whole document.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
    """
    hidden = Hidden()
    found = hidden.found
    placed: set[Key | None] = set()
    for at, page in enumerate(pages):
        covering: list[Rect] = []
        for raw in raw_items(entry(page.node, "/Annots")):
            budget.take()
            placed.add(key_of(raw))
            node = resolve(raw)
            if not isinstance(node, DictionaryObject):
                continue
            each = _read(node)
            found |= _told_of(each, page_box(page))
            if each.rect is not None and each.is_drawn:
                hidden.covering.setdefault(at, []).append(each.rect)
            if each.is_covering and each.rect is not None:
                covering.append(each.rect)
        if _overlap(covering, budget):
            found.add(FindingKind.OVERLAPPING_ANNOTATIONS)
    if any(key_of(raw) not in placed and _has_value(resolve(raw)) for raw in fields):
        found.add(FindingKind.OFF_PAGE_CONTENT)
    return hidden


def _told_of(each: _Annotation, page: PageBox) -> set[FindingKind]:
    """What is told of one annotation by itself."""
    found: set[FindingKind] = set()
    if each.subtype in _NOTHING_TO_SEE:
        return found
    if each.is_unseen:
        found.add(FindingKind.HIDDEN_ANNOTATIONS)
    if each.rect is not None and each.area > 0 and not each.is_signature:
        visible = (page.x0, page.y0, page.x1, page.y1)
        if _shared(each.rect, visible) == 0:
            found.add(FindingKind.OFF_PAGE_CONTENT)
    return found


def _read(node: DictionaryObject) -> _Annotation:
    """Take from an annotation what counts here; odd values count as absent."""
    flags, opacity = number(entry(node, "/F")), number(entry(node, "/CA"))
    subtype = name(node, "/Subtype") or ""
    return _Annotation(
        subtype=subtype,
        flags=int(flags or 0) & 0xFFFF,
        rect=_rect(node),
        opacity=1.0 if opacity is None else opacity,
        is_filled=any(True for _ in raw_items(entry(node, "/IC"))),
        has_text=bool(name(node, "/Contents")),
        is_signature=subtype == "/Widget" and inherited(node, "/FT") == "/Sig",
    )


def _rect(node: DictionaryObject) -> Rect | None:
    """The annotation's rectangle, given by any two opposite corners."""
    edges = [number(raw) for raw in raw_items(entry(node, "/Rect"))]
    known = [edge for edge in edges if edge is not None]
    if len(edges) != 4 or len(known) != 4:  # noqa: PLR2004 (two corners)
        return None
    (x0, x1), (y0, y1) = sorted(known[0::2]), sorted(known[1::2])
    return x0, y0, x1, y1


def _has_value(node: object) -> bool:
    """Say whether a field says something, and is one that a page should show."""
    if not isinstance(node, DictionaryObject) or entry(node, "/Kids") is not None:
        return False
    kind, value = inherited(node, "/FT"), inherited(node, "/V")
    return kind in {"/Tx", "/Ch"} and bool(value)


def _overlap(rects: Sequence[Rect], budget: Budget) -> bool:
    """Say whether any two share a quarter of the smaller one, by a sweep.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
    """
    ahead: list[Rect] = []
    for rect in sorted(rects):
        ahead = [other for other in ahead if other[2] > rect[0]]
        budget.take(len(ahead) // _COMPARISONS_A_STEP)
        for other in ahead:
            smaller = min(_area(rect), _area(other))
            if _shared(rect, other) >= _SHARE * smaller:
                return True
        ahead.append(rect)
    return False


def _shared(one: Rect, other: Rect) -> float:
    """Area that two rectangles share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0.0) * max(height, 0.0)


def _area(rect: Rect) -> float:
    """Area of a rectangle."""
    return (rect[2] - rect[0]) * (rect[3] - rect[1])
