"""Meaning of a form field's value, and the states that its widgets show.

For confined jobs only. Source: ISO 32000-2, 12.5.5, 12.7.4 and 12.7.5.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    NameObject,
    PdfObject,
    StreamObject,
    pdf_string,
)

from worker.sandbox.inspect.pdf_objects import (
    dictionary,
    entry,
    name,
    number,
    raw_items,
    resolve,
)
from worker.sandbox.verify.plain_looks import plain_content

_PAIR: Final = 2
"""Value and text of an option. Source: ISO 32000-2, table 234."""
_DEEPEST: Final = 32
"""Fields within each other."""
_PUSH: Final = 1 << 16
_OFF: Final = "/Off"
_SPACE: Final = rb"[\0\t\n\f\r ]"
_BLANK_CONTENT: Final = re.compile(
    rb"(?:"
    + _SPACE
    + rb"++|(?:[+-]?(?:\d++\.?\d*+|\.\d++)|/[A-Za-z0-9_.+-]++|"
    # Source: ISO 32000-2, Annex A; without what paints, and without inline images.
    + rb"BDC|BMC|EMC|DP|MP|BX|EX|q|Q|cm|w|J|j|M|d|i|ri|gs|"
    + rb"m|l|c|v|y|h|re|n|W\*?|CS|cs|SCN?|scn?|G|g|RG|rg|K|k|"
    + rb"BT|ET|Tc|Td|TD|Tf|TL|Tm|Tr|Ts|Tw|Tz|T\*|Tj)(?="
    + _SPACE
    + rb"|[()<>/]|\Z)"
    # A font may draw anything for a space, so that an empty text alone paints nothing.
    + rb"|\(\)|<"
    + _SPACE
    + rb"*+>|<<"
    + _SPACE
    + rb"*+>>)*"
)
"""Content that no program takes for more than it is, and that paints nothing."""
_READ_BYTES: Final = 4096
"""Longest stream that is read to see whether it draws nothing."""


class FieldKind(Enum):
    """Kinds of fields by what their value means."""

    TEXT = auto()
    """Shows its value; also a field whose type is missing or unknown."""
    CHOICE = auto()
    """Shows its value, or the text that `/Opt` has for it."""
    STATES = auto()
    """Check box or radio button: the value is the state of its widgets."""
    PUSH = auto()
    """Push button: it has no value."""
    SIGNATURE = auto()


def widgets_of(field: object) -> list[object]:
    """Return the widgets of a terminal field: its kids without a name, or itself."""
    kids: list[object] = [resolve(raw) for raw in raw_items(entry(field, "/Kids"))]
    nameless = [each for each in kids if "/T" not in _keys(each)]
    return nameless if kids else [field]


def kind_of(field: object) -> FieldKind:
    """Return the kind of a field, whose type may be its parent's or its widgets'.

    Widgets count for a field without a type alone: a kid may be another field's.
    """
    above = inherited(field, "/FT")
    typed = [field] if above is not None else [field, *widgets_of(field)]
    types = {str(above or entry(each, "/FT") or "") for each in typed}
    flags = 0
    for each in typed:
        own = inherited(field, "/Ff") if each is field else entry(each, "/Ff")
        flags |= int(number(own) or 0)
    if "/Btn" in types:
        return FieldKind.PUSH if flags & _PUSH else FieldKind.STATES
    if "/Sig" in types:
        return FieldKind.SIGNATURE
    return FieldKind.CHOICE if "/Ch" in types else FieldKind.TEXT


def inherited(node: object, key: str) -> PdfObject | None:
    """Return an entry of a field or of those above it."""
    for _ in range(_DEEPEST):
        value = entry(node, key)
        if value is not None or node is None:
            return value
        node = entry(node, "/Parent")
    return None


def values_of(value: object) -> tuple[str, ...]:
    """Return the texts of a value; a list of one text means that text.

    Args:
        value: of `/V`, resolved. A stream is a long text, and a name a state.
    """
    if value is None:
        return ()
    if isinstance(value, ArrayObject):
        return tuple(_text(resolve(raw)) for raw in raw_items(value))
    return (_text(value),)


def is_same_value(old: object, new: object) -> bool:
    """Return whether two values of `/V` mean the same, in whatever form they are.

    Another encoding, a stream in place of a string, or a list of one is no other
    value, and an empty text is none.
    """
    one, other = (values_of(each) for each in (old, new))
    return one == other or not any((*one, *other))


def shown_state(widget: object) -> str:
    """Return the state that a widget shows.

    Readers show a widget without `/AS`, or with a state that it has no drawing for, as
    off. A widget without drawings shows what `/AS` says.
    """
    state, states = name(widget, "/AS") or _OFF, _states(widget)
    return state if states is None or state in states else _OFF


def shows_value(field: object) -> bool:
    """Return whether exactly the widgets whose state is the value show it.

    Args:
        field: a check box, or a set of radio buttons, with its value.
    """
    value = "/" + next(iter(values_of(inherited(field, "/V"))), _OFF[1:])
    found = False
    for widget in widgets_of(field):
        states, shown = _states(widget), shown_state(widget)
        has_state = states is None or value in states
        if states is None and shown in {_OFF, value}:
            expected = shown
        else:
            expected = value if has_state else _OFF
        if shown != expected:
            return False
        found |= shown == value
    return found or value in {_OFF, "/"}


def is_blank(drawing: object) -> bool:
    """Return whether a drawing is known to paint nothing.

    Programs differ in where an operator ends: some read `0f` as a number and `f`. So
    the content has to be of known parts, each apart from the next.

    Args:
        drawing: a form XObject; None draws nothing.
    """
    if drawing is None:
        return True
    if not isinstance(drawing, StreamObject):
        return False
    content = plain_content(drawing, _READ_BYTES)
    return content is not None and _BLANK_CONTENT.fullmatch(content) is not None


def option_texts(field: object, chosen: Sequence[str]) -> list[str]:
    """Return the texts that a choice field shows for its values.

    Args:
        field: the choice field.
        chosen: its values.
    """
    texts: dict[str, str] = {}
    for raw in raw_items(inherited(field, "/Opt")):
        pair = [_text(resolve(each)) for each in raw_items(resolve(raw))]
        if len(pair) == _PAIR:
            texts.setdefault(pair[0], pair[1])
    return [texts.get(each, each) for each in chosen]


def is_option(field: object) -> bool:
    """Return whether the value of a choice field is one of its options, and no other.

    Readers show the text of the option. Some look for it by the text as well, and some
    show nothing of a value that is none of them.
    """
    values = values_of(inherited(field, "/V"))
    if not any(values):
        return True
    options = {_option(resolve(raw)) for raw in raw_items(inherited(field, "/Opt"))}
    found = [each for each in options if values[0] in each]
    return (
        len(values) == len(found) == 1
        and len(found[0]) <= _PAIR
        and found[0][0] == values[0]
    )


def _option(raw: object) -> tuple[str, ...]:
    """Return the texts of an option: value and text, or one for both."""
    parts = [_text(resolve(each)) for each in raw_items(raw)]
    return tuple(parts) if parts else (_text(raw),)


def chooses_value(field: object) -> bool:
    """Return whether the options that a choice field has as chosen are its values."""
    indices = [number(each) for each in raw_items(inherited(field, "/I"))]
    options = [resolve(each) for each in raw_items(inherited(field, "/Opt"))]
    if not indices or not options:
        return True
    chosen = [
        options[int(at)] for at in indices
        if at is not None and 0 <= at < len(options)
    ]  # fmt: skip
    pairs = [values_of(each)[:1] for each in chosen]
    return sorted(text for each in pairs for text in each) == sorted(
        values_of(inherited(field, "/V"))
    )


def _states(widget: object) -> frozenset[str] | None:
    """Return the states that a widget has drawings for; None if it has no drawings."""
    drawings = entry(dictionary(widget, "/AP"), "/N")
    if isinstance(drawings, StreamObject) or not isinstance(drawings, DictionaryObject):
        return None
    return frozenset(drawings)


def _text(value: object) -> str:
    if isinstance(value, StreamObject):
        value = pdf_string(value.data)
    if isinstance(value, NameObject):
        return str(value[1:])
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _keys(node: object) -> Sequence[str]:
    return [*node] if isinstance(node, DictionaryObject) else ()
