"""Widgets of signature fields, and whether they can be seen; for confined jobs only.

Source: ISO 32000-2, 12.5.2 and 12.7.5.5.
"""

from collections.abc import Sequence

from pyhanko.pdf_utils.generic import (
    DictionaryObject,
    FloatObject,
    NumberObject,
    StreamObject,
)

from worker.sandbox.inspect.pdf_objects import (
    Key,
    entry,
    key_of,
    name,
    number,
    raw_items,
)
from worker.sandbox.verify.field_values import (
    is_blank,
)
from worker.sandbox.verify.step_context import (
    Objection,
    raw_entry,
    title_of,
)


def is_widget(node: object, owner: Key, *, is_mark: bool = False) -> bool:
    """Return whether an object is a widget, and no field, below a field.

    Args:
        node: the object.
        owner: the field that lists it.
        is_mark: whether the field is for a signature. pyHanko 0.38 writes marks of
            their own without `/Parent`.
    """
    if (
        not isinstance(node, DictionaryObject)
        or isinstance(node, StreamObject)
        or "/T" in node
        or name(node, "/Subtype") != "/Widget"
    ):
        return False
    if is_mark and not {"/Parent", "/FT", "/V"} & node.keys():
        return True
    return key_of(raw_entry(node, "/Parent")) == owner


def demand_blank_timestamp(title: str, nodes: Sequence[object]) -> None:
    """Demand that a document timestamp draws nothing, in whatever field it is.

    Args:
        title: full name of the field.
        nodes: the field, and its widget.

    Source: ISO 32000-2, 12.8.5 (a document timestamp should have no appearance).

    Raises:
        Objection: it may be seen.
    """
    shown = title_of(title)
    is_timestamp = name(entry(nodes[0], "/V"), "/Type") == "/DocTimeStamp"
    if is_timestamp and any(can_be_seen(each, shown) for each in nodes):
        raise Objection(f'the document timestamp "{shown}" shows something')


def can_be_seen(mark: object, title: str) -> bool:
    """Return whether an annotation can show anything.

    pyHanko takes a /Rect that it cannot compute with for one without area: numbers by
    reference, null, names, three or five entries. Readers draw some of these, so an
    empty signature field could cover a page.

    Raises:
        Objection: /Rect is not four direct numbers.

    Source: ISO 32000-2, 12.5.2 (/Rect) and 12.5.5 (no area, nothing drawn).
    """
    if not isinstance(mark, DictionaryObject) or not {"/Rect", "/AP"} & mark.keys():
        return False
    box = _direct_box(mark.raw_get("/Rect") if "/Rect" in mark else None)
    if box is None:
        raise Objection(f'the place of the field "{title}" is not four plain numbers')
    return _has_area(box) or _is_drawn(entry(mark, "/AP"))


def _direct_box(raw: object) -> list[float] | None:
    """Read four numbers that stand in the array itself, and the array in its holder."""
    items = list(raw_items(raw))
    direct = all(isinstance(each, NumberObject | FloatObject) for each in items)
    known = [n for each in items if (n := number(each)) is not None]
    return known if direct and len(items) == len(known) == 4 else None  # noqa: PLR2004 (corners)


def may_cover(node: object) -> bool:
    """Return whether an annotation may cover a part of its page."""
    raw = raw_entry(node, "/Rect")
    box = _direct_box(raw)
    return raw is not None and (box is None or _has_area(box))


def _has_area(box: Sequence[float]) -> bool:
    return box[0] != box[2] and box[1] != box[3]


def _is_drawn(looks: object) -> bool:
    """Return whether an appearance dictionary draws anything in any state."""
    if looks is None:
        return False
    if not isinstance(looks, DictionaryObject):
        return True
    drawings = [entry(looks, kind) for kind in looks]
    return not all(_has_no_area(each) or is_blank(each) for each in drawings)


def _has_no_area(drawing: object) -> bool:
    """Return whether a drawing has an empty /BBox."""
    box = _direct_box(raw_entry(drawing, "/BBox"))
    return isinstance(drawing, StreamObject) and box is not None and not _has_area(box)
