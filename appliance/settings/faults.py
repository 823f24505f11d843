"""What is wrong with a file, each fault in a line: key, value, what is allowed.

    found = read_tables(tables)  # the settings, or every fault at once

A secret that stands where a path belongs is not shown.
"""

import copy
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from appliance.settings.coherence import ContradictionError, Fault
from appliance.settings.root import Settings
from appliance.settings.section import SettingsError

_ROUNDS: Final = 8
_SHOWN: Final = 80
_SIGNS: Final = ((Ge, "≥", "ge"), (Gt, ">", "gt"), (Le, "≤", "le"), (Lt, "<", "lt"))
_KINDS: Final[dict[object, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
}
_SECRET: Final = ("_file", "pin", "password", "secret", "key", "url", "proxy")
"""Ends of keys where somebody may have written a secret by mistake."""

_Place = tuple[int | str, ...]


def read_tables(tables: Mapping[str, Any]) -> Settings:
    """The settings of a file's tables.

    What is wrong is left out and the rest looked at again, so that all faults
    are found at once.

    Args:
        tables: as TOML gives them; paths are absolute.

    Raises:
        SettingsError: of one line for each fault, without the file's name.
    """
    left: dict[str, Any] = copy.deepcopy(dict(tables))
    faults: list[Fault] = []
    gone: list[str] = []
    for _ in range(_ROUNDS):
        try:
            settings = Settings.model_validate(left)
        except ValidationError as exc:
            found = [fault for error in exc.errors() for fault in _explain(error)]
            faults += [one for one in found if not _follows(one, gone)]
            if not (out := _leave_out(left, exc)):
                break
            gone += filter(None, out)
        else:
            if not faults:
                return settings
            break
    # dict: a fault is told once, where it was found first
    raise SettingsError(
        "\n".join(f"{key}: {text}" for key, text in dict.fromkeys(faults))
    )


def _follows(fault: Fault, gone: Sequence[str]) -> bool:
    """Whether a fault may be there only because something was left out."""
    key, text = fault
    return any(key == one or key.startswith(f"{one}.") or one in text for one in gone)


def _leave_out(tables: dict[str, Any], exc: ValidationError) -> list[str]:
    """Take out what is wrong, put in what is missing; the keys."""
    gone = []
    for error in exc.errors():
        place: _Place = error["loc"]
        words = [part for part in _before_list(place) if isinstance(part, str)]
        if not words:
            continue
        table: Any = tables
        for word in words[:-1]:
            table = table.get(word) if isinstance(table, dict) else None
        if not isinstance(table, dict):
            continue
        if error["type"] == "missing":
            if _is_table(_field_at(place)):
                table[words[-1]] = {}
                gone.append("")  # its own keys are told of in the next round
                continue
            table[words[-1]] = "missing"
        else:
            table.pop(words[-1], None)
        gone.append(".".join(words))
    return gone


def _before_list(place: _Place) -> _Place:
    """A place as far as the first list that it goes through."""
    for at, part in enumerate(place):
        if isinstance(part, int):
            return place[:at]
    return place


def _explain(error: Any) -> Iterable[Fault]:
    """One fault, or all of those that contradict each other."""
    cause = _cause(error)
    if isinstance(cause, ContradictionError):
        return cause.faults
    place: _Place = error["loc"]
    key = ".".join(str(part) for part in place)
    if error["type"] == "extra_forbidden":
        allowed = ", ".join(sorted(_keys_beside(place)))
        return [(key, f"unknown key; allowed here: {allowed}")]
    if error["type"] == "value_error":
        return [_of_validator(key, str(cause))]
    return _of_field(key, error, _field_at(place))


def _of_field(key: str, error: Any, field: FieldInfo | None) -> list[Fault]:
    """A value of another kind or out of its range, or none at all."""
    if field is None:
        return [(key, error["msg"])]
    allowed = _allowed(field)
    if error["type"] != "missing":
        return [(key, f"{_shown(key, error['input'])}must be {allowed}")]
    # The keys of a table are told of in the next round.
    return [] if _is_table(field) else [(key, f"is missing; set {allowed}")]


def _of_validator(key: str, text: str) -> Fault:
    """A fault of a table or a key by our own words; a table's begin with its key."""
    first, colon, rest = text.partition(": ")
    if colon and first.isidentifier():
        return f"{key}.{first}".lstrip("."), rest
    return key, text


def _cause(error: Any) -> object:
    return error.get("ctx", {}).get("error")


def _shown(key: str, value: object) -> str:
    """A value before what is said of it; nothing where it may be a secret."""
    name = key.rpartition(".")[2]
    # An address without a password in it is no secret.
    plain = isinstance(value, str) and name.endswith("url") and "@" not in value
    if isinstance(value, dict | list) or (name.endswith(_SECRET) and not plain):
        return ""
    text = repr(value) if not isinstance(value, bool) else str(value).lower()
    return f"{text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}: "


def _keys_beside(place: _Place) -> list[str]:
    """The keys that the table holding a place may have."""
    return list(_model_at(place[:-1]).model_fields)


def _model_at(place: _Place) -> type[BaseModel]:
    model: type[BaseModel] = Settings
    for part in place:
        if isinstance(part, int):
            continue  # a place in a list, whose elements' model it is already
        model = _model_of(model.model_fields[part].annotation) or model
    return model


def _model_of(annotation: object) -> type[BaseModel] | None:
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _field_at(place: _Place) -> FieldInfo | None:
    words = [part for part in place if isinstance(part, str)]
    if not words:
        return None
    return _model_at(tuple(words[:-1])).model_fields.get(words[-1])


def _is_table(field: FieldInfo | None) -> bool:
    return field is not None and _model_of(field.annotation) is not None


def _allowed(field: FieldInfo) -> str:
    """What a key may be, in words."""
    if field.examples:
        return f"like {' or '.join(map(repr, field.examples))}"
    bounds = [
        f"{sign} {getattr(mark, name)}"
        for mark in _marks(field)
        for kind, sign, name in _SIGNS
        if isinstance(mark, kind)
    ]
    for mark in _marks(field):
        if isinstance(mark, MaxLen):
            bounds.append(f"at most {mark.max_length} long")
        if isinstance(mark, MinLen):
            bounds.append(f"at least {mark.min_length} long")
        if pattern := getattr(mark, "pattern", None):
            bounds.append(f"of the form {pattern}")
    return ", ".join([_kind(field.annotation), *bounds])


def _marks(field: FieldInfo) -> list[Any]:
    marks = list(field.metadata)
    return [one for mark in marks for one in getattr(mark, "metadata", [mark])]


def _kind(annotation: object) -> str:
    """A type, in the words of TOML."""
    members = [kind for kind in get_args(annotation) if kind is not types.NoneType]
    origin = get_origin(annotation)
    if origin is Literal:
        return f"one of {', '.join(map(str, members))}"
    if origin is tuple:
        return f"a list, each {_kind(members[0])}"
    if origin in {typing.Union, types.UnionType}:
        return " or ".join(map(_kind, members))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"one of {', '.join(str(each.value) for each in annotation)}"
    if _model_of(annotation) is not None:
        return "a table"
    return _KINDS.get(annotation, "of another kind")
