"""Entries that fields and widgets may have, and their kinds; for confined jobs only.

Lists of what is allowed: an annotation draws by entries that no list of what is refused
would have.
"""

from collections.abc import Callable, Mapping
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    ByteStringObject,
    DictionaryObject,
    FloatObject,
    IndirectObject,
    NameObject,
    NumberObject,
    StreamObject,
    TextStringObject,
)

from worker.sandbox.inspect.pdf_objects import raw_items, resolve
from worker.sandbox.verify.revisions import references
from worker.sandbox.verify.step_context import Objection, raw_entry, title_of

_ACTIONS: Final = ("/A", "/AA")

Shape = Callable[[object], bool]
"""Test of an entry's value as it stands there."""


def _is_text(raw: object) -> bool:
    return isinstance(raw, TextStringObject | ByteStringObject)


def _is_number(raw: object) -> bool:
    return isinstance(raw, NumberObject | FloatObject)


def _is_name(raw: object) -> bool:
    return isinstance(raw, NameObject)


def _is_reference(raw: object) -> bool:
    return isinstance(raw, IndirectObject)


def _is_plain(raw: object) -> bool:
    """Return whether a value has no references in it, and so no streams."""
    return not isinstance(raw, StreamObject) and next(references(raw), None) is None


def _is_any(raw: object) -> bool:
    """Return true: the entry is judged elsewhere, or draws nothing."""
    del raw
    return True


def _is_lock(raw: object) -> bool:
    value = resolve(raw)
    return _is_plain(value) and _has_keys(value, _LOCK_KEYS)


def _is_seed(raw: object) -> bool:
    """Return whether a seed value has known entries, and no streams below it."""
    todo = [(raw, 0)]
    while todo:
        raw, depth = todo.pop()
        value = resolve(raw)
        if isinstance(value, StreamObject) or depth > _DEEPEST:
            return False
        if isinstance(value, DictionaryObject):
            todo += ((value.raw_get(key), depth + 1) for key in value)
        elif isinstance(value, ArrayObject):
            todo += ((each, depth + 1) for each in raw_items(value))
    return True


def _has_keys(value: object, keys: frozenset[str]) -> bool:
    return isinstance(value, DictionaryObject) and value.keys() <= keys


_DEEPEST: Final = 32
"""Parts of a seed value within each other."""
_LOCK_KEYS: Final = frozenset({"/Type", "/Action", "/Fields", "/P"})


FLAG_SHAPES: Final[Mapping[str, Shape]] = {
    "/Ff": _is_number,
    "/Type": lambda raw: raw == "/Annot",
}
"""Entries that any writer may set: they change nothing that is shown."""


_STYLE_SHAPES: Final[Mapping[str, Shape]] = {
    "/M": _is_text,
    "/NM": _is_text,
    "/DA": _is_text,
    "/DS": _is_text,
    "/Q": _is_number,
    "/F": _is_number,
    "/BS": _is_plain,
    "/MK": _is_plain,
}
"""Entries by which a reader made an appearance: with the appearance they do not
count. Source: ISO 32000-2, tables 166, 192 and 228."""


SIGNING_SHAPES: Final[Mapping[str, Shape]] = {
    **FLAG_SHAPES, **_STYLE_SHAPES, "/AP": _is_any, "/AS": _is_name, "/V": _is_any,
}  # fmt: skip


VALUE_SHAPES: Final[Mapping[str, Shape]] = {
    **SIGNING_SHAPES, "/I": _is_any, "/TI": _is_number, "/RV": _is_any,
    "/DV": _is_plain,
}  # fmt: skip
"""Entries that change with a value: chosen items, the first visible one, rich text
among them. Source: ISO 32000-2, tables 226, 228 and 234."""


WIDGET_SHAPES: Final[Mapping[str, Shape]] = {
    "/AP": _is_any, "/AS": _is_name, "/M": _is_text, "/NM": _is_text,
    "/BS": _is_plain, "/MK": _is_plain,
}  # fmt: skip


FIELD_SHAPES: Final[Mapping[str, Shape]] = {
    **dict.fromkeys(("/T", "/TU", "/TM", "/DA"), _is_text),
    **dict.fromkeys(("/Ff", "/F", "/Q"), _is_number),
    "/FT": lambda raw: raw == "/Sig",
    "/Type": lambda raw: raw == "/Annot",
    **dict.fromkeys(("/Kids", "/V", "/DR", "/Rect"), _is_any),
    "/P": _is_reference,
    "/Lock": _is_lock,
    "/SV": _is_seed,
}
"""Entries of a new signature field. Source: ISO 32000-2, tables 226, 228 and 235."""


GROUP_SHAPES: Final[Mapping[str, Shape]] = {
    "/T": _is_text, "/FT": lambda raw: raw == "/Sig", "/Kids": _is_any,
}  # fmt: skip
"""Entries of a new field that only names the fields below it."""


MARK_SHAPES: Final[Mapping[str, Shape]] = {
    **_STYLE_SHAPES,
    **dict.fromkeys(("/Contents", "/Lang"), _is_text),
    **dict.fromkeys(("/Border", "/C"), _is_plain),
    **dict.fromkeys(("/AS", "/H"), _is_name),
    "/P": _is_reference,
    **dict.fromkeys(("/AP", "/Rect", "/DR"), _is_any),
    "/Type": lambda raw: raw == "/Annot",
    "/Subtype": lambda raw: raw == "/Widget",
    "/StructParent": _is_number,
}
"""Entries of the widget of a new signature field, besides /Parent of a kid. Other
annotations draw by more than /Rect and /AP. Source: ISO 32000-2, tables 166 and 191."""


def changed_entries(
    title: str, before: object, after: object, shapes: Mapping[str, Shape]
) -> set[str]:
    """Return the keys of the entries in which two states of a field differ.

    Raises:
        Objection: an entry may not change, or is of another kind now.
    """
    nodes = [
        each
        for each in (before, after)
        if isinstance(each, DictionaryObject) and not isinstance(each, StreamObject)
    ]
    reason = f'the field "{title_of(title)}" was changed after it'
    if len(nodes) < 2:  # noqa: PLR2004 (before and after)
        raise Objection(reason)
    old, new = nodes
    # By equality, as another spelling of a text or number is no change here.
    changed = {
        key for key in {**old, **new} if raw_entry(old, key) != raw_entry(new, key)
    }
    for key in changed:
        is_known = key in shapes and (key not in new or shapes[key](new.raw_get(key)))
        if not is_known or (key == "/Type" and key in old):
            raise Objection(reason)
    return changed


def demand_shapes(
    title: str, node: DictionaryObject, shapes: Mapping[str, Shape]
) -> None:
    """Demand that a new field or mark has known entries alone.

    Raises:
        Objection: it has another one, or one of another kind.
    """
    for key in node:
        if key in _ACTIONS:
            raise Objection(f'the new signature field "{title}" has an action')
        if key not in shapes or not shapes[key](node.raw_get(key)):
            # A key of a file may hold anything.
            shown = key if key in shapes else "an entry"
            words = "is not that of a signature"
            raise Objection(f'{shown} of the new field "{title}" {words}')
