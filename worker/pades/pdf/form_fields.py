"""Form fields by their full names, found by walking the field tree.

Shared by the sandbox, which tells of a document's signature fields, and by the
engine, which fills one: both must mean the same field by a name.

Source: ISO 32000-2, 12.7.4 (field dictionaries; names and inheritance).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
)

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.pades.pdf.document import entry

_STEPS: Final = 200_000
_NAME_LENGTH: Final = 4096
"""Longer names are nobody's; they would grow with each level of the tree."""
_READ_ONLY: Final = 1


@dataclass(frozen=True, slots=True)
class SignatureField:
    """A signature field, signed or still empty."""

    name: str
    """Fully qualified: partial names from the root, with dots between."""
    node: DictionaryObject
    widgets: tuple[DictionaryObject, ...]
    """What shows it on pages: itself where the two are one dictionary."""
    keys: tuple[tuple[int, int] | None, ...]
    """Number and generation of each widget, None for a direct one."""
    value: DictionaryObject | None
    """The signature dictionary."""
    read_only: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the walk stands, and what is inherited there."""

    raw: object
    prefix: str
    kind: str | None
    flags: int


def signature_fields(root: DictionaryObject) -> Iterator[SignatureField]:
    """Walk the form's fields; loops and shared nodes are visited once.

    Args:
        root: the document's catalog.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`: the tree is too large.
    """
    form = entry(root, "/AcroForm", DictionaryObject)
    todo = [_Place(raw, "", None, 0) for raw in reversed(_items(form, "/Fields"))]
    seen: set[tuple[int, int]] = set()
    steps = 0
    while todo:
        place = todo.pop()
        steps += 1
        if steps > _STEPS:
            raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "too many fields")
        key = _key(place.raw)
        node = _resolved(place.raw)
        if not isinstance(node, DictionaryObject) or key in seen:
            continue
        if key is not None:
            seen.add(key)
        name = _joined(place.prefix, entry(node, "/T", str))
        if len(name) > _NAME_LENGTH:
            continue
        kind = entry(node, "/FT", NameObject) or place.kind
        flags = entry(node, "/Ff", int)
        flags = place.flags if flags is None else flags
        kids = _items(node, "/Kids")
        fields = [kid for kid in kids if _is_field(kid)]
        if fields:
            todo += [_Place(kid, name, kind, flags) for kid in reversed(fields)]
        elif kind == "/Sig" and name:
            yield _field(name, place.raw, node, kids, flags)


def _field(
    name: str, raw: object, node: DictionaryObject, kids: list[object], flags: int
) -> SignatureField:
    widgets = kids or [raw]
    shown = [
        (widget, _key(each))
        for each in widgets
        if isinstance(widget := _resolved(each), DictionaryObject)
    ]
    return SignatureField(
        name=name,
        node=node,
        widgets=tuple(widget for widget, _ in shown),
        keys=tuple(key for _, key in shown),
        value=entry(node, "/V", DictionaryObject),
        read_only=bool(flags & _READ_ONLY),
    )


def widget_rect(
    widget: DictionaryObject,
) -> tuple[float, float, float, float] | None:
    """Where a widget is shown, in unrotated user space; None for nowhere.

    Returns:
        x0, y0, x1, y1 with x0 < x1 and y0 < y1.
    """
    raw = entry(widget, "/Rect", ArrayObject)
    try:
        left, bottom, right, top = (float(side) for side in raw or ())
    except (TypeError, ValueError, OverflowError):
        return None
    rect = min(left, right), min(bottom, top), max(left, right), max(bottom, top)
    x0, y0, x1, y1 = rect
    # Comparisons that a NaN fails, too.
    return rect if x0 < x1 and y0 < y1 else None


def _joined(prefix: str, part: str | None) -> str:
    """A full name; a node without a partial name adds nothing to it."""
    if part is None:
        return prefix
    return f"{prefix}.{part}" if prefix else str(part)


def _is_field(raw: object) -> bool:
    """Whether a kid is a field of its own, and no mere widget."""
    return entry(_resolved(raw), "/T", str) is not None


def _items(holder: object, key: str) -> list[object]:
    """Elements of an array, references unfollowed."""
    array = entry(holder, key, ArrayObject)
    return [] if array is None else [array.raw_get(at) for at in range(len(array))]


def _resolved(raw: object) -> object:
    return raw.get_object() if isinstance(raw, IndirectObject) else raw


def _key(raw: object) -> tuple[int, int] | None:
    return (raw.idnum, raw.generation) if isinstance(raw, IndirectObject) else None
