"""Letters of filled fields that are not seen as they are read; for confined jobs only.

A text that is read from a page says what a reader sees only if its letters follow each
other from left to right, do not lie over each other, nor beyond the part of the field
that is shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from worker.sandbox.inspect.hidden_annotations import Rect

_CELL: Final = 50.0
"""Side of the cells in which fields are looked up, in points."""
_CELLS_MAX: Final = 4_000
_SEEN: Final = 0.85
"""Least share of a letter that is shown: a comma may not become a point."""
_COMPARED_MOST: Final = 300_000
"""Pairs of letters of a page that are compared."""
_THIRD: Final = 0.3
"""Largest share of a letter that the next one may cover."""


class Ink(Protocol):
    """Rectangles of a page that have dark and bright pixels."""

    def __contains__(self, rect: Rect, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class TextPlace:
    """A place where a field shows a text.

    Args:
        rect: of the widget, in user space.
        shown: the part of it that shows anything.
        turn: 0, or 1 or -1 if the lines go up or down the page.
    """

    rect: Rect
    shown: Rect
    turn: int = 0


def obscured(
    letters: Sequence[Rect],
    places: Sequence[TextPlace],
    ink: Ink,
) -> list[bool]:
    """Find the places with letters that are not seen as they are read.

    Args:
        letters: boxes of one page, in user space, as they are read.
        places: of fields.
        ink: rectangles of the page that have dark and bright pixels.

    Returns:
        For each place, whether a letter is not seen, or a part of its box lies beyond
        what is shown, or a third of it over another letter, or a letter stands before
        the one that is read before it.
    """
    cells: dict[tuple[int, int], list[int]] = {}
    for at, place in enumerate(places):
        for cell in _cells(place.rect):
            cells.setdefault(cell, []).append(at)
    own: list[list[Rect]] = [[] for _ in places]
    found = [False] * len(places)
    asked = 0
    for box in letters:
        near = {at for cell in _cells(box) for at in cells.get(cell, ())}
        asked += len(near)
        if asked > _COMPARED_MOST:
            return [True] * len(places)
        is_seen = not near or box in ink
        for at in near:
            place = places[at]
            if not _common(box, place.rect):
                continue
            own[at].append(_upright(box, place.turn))
            is_whole = _common(box, place.shown) >= _SEEN * _area(box)
            found[at] |= not is_whole or not is_seen
    left = _COMPARED_MOST
    for at, boxes in enumerate(own):
        if not found[at]:
            left = _apart(boxes, left)
            found[at] = left < 0 or not all(map(_follows, boxes, boxes[1:]))
    return found


def _upright(box: Rect, turn: int) -> Rect:
    """Turn a box so that its line goes from left to right."""
    left, bottom, right, top = box
    if not turn:
        return box
    return (bottom, -right, top, -left) if turn > 0 else (-top, left, -bottom, right)


def _follows(one: Rect, other: Rect) -> bool:
    """Return whether a letter is to the right of another, or below it."""
    return other[3] <= one[1] or one[0] < other[0]


def _cells(rect: Rect) -> list[tuple[int, int]]:
    """Return the cells that a rectangle touches, at most 4,000."""
    left, bottom, right, top = (int(each // _CELL) for each in rect)
    wide, high = right - left + 1, top - bottom + 1
    if wide * high > _CELLS_MAX:
        # No page of a document that is printed has so many.
        right, top = left + min(wide, 60), bottom + min(high, 60)
    return [
        (x, y) for x in range(left, right + 1) for y in range(bottom, top + 1)
    ]  # fmt: skip


def _apart(boxes: list[Rect], left: int) -> int:
    """Compare the letters of a place with those beside, above and below.

    Args:
        boxes: of its letters.
        left: pairs that may be compared.

    Returns:
        Pairs that are left; less than 0 if there are more, or if a third of a letter
        lies over another one.
    """
    beside: list[Rect] = []
    for box in sorted(boxes):
        beside = [each for each in beside if each[2] > box[0]]
        left -= len(beside)
        if left < 0:
            break
        for each in beside:
            if _common(each, box) > _THIRD * min(_area(each), _area(box)):
                return -1
        beside.append(box)
    return left


def _common(one: Rect, other: Rect) -> float:
    """Return the area that two rectangles share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0


def _area(box: Rect) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])
