"""What a field of a message is, and whether a payload has it right.

One description serves three readers: the check below, the JSON Schemas, and the
page's own check, which is generated from the same rows.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """JSON type of a field."""

    STRING = "string"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    OBJECT = "object"
    ARRAY = "array"
    """Of texts."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a payload.

    Unknown fields are not described: they are ignored both ways.
    """

    name: str
    kind: Kind
    doc: str
    """One sentence, for the reference."""
    required: bool = False
    most: int | None = None
    """Longest text, in UTF-16 units as JavaScript counts; None: no limit here."""
    pattern: str | None = None
    """Of the whole text; means the same in Python and JavaScript."""
    allowed: tuple[str, ...] = ()
    fields: tuple["Field", ...] = ()
    """Of an object."""


def first_fault(
    payload: Mapping[str, object], fields: tuple[Field, ...], prefix: str = ""
) -> str | None:
    """Find the first field that is not as described.

    An optional field that is null or an empty text counts as absent: hosts send
    whole forms, filled in or not.

    Args:
        payload: as it came.
        fields: its description.
        prefix: put before names, for fields of fields.

    Returns:
        The field's path (`userData.email`), or None when all are right.
    """
    for field in fields:
        path = prefix + field.name
        value = payload.get(field.name)
        if value is None or value == "":
            if field.required:
                return path
            continue
        fault = _fault(value, field, path)
        if fault is not None:
            return fault
    return None


def _fault(value: object, field: Field, path: str) -> str | None:
    """The path of what is wrong with one value."""
    if field.kind is Kind.OBJECT:
        if not isinstance(value, Mapping):
            return path
        return first_fault(value, field.fields, f"{path}.")
    if field.kind is Kind.STRING:
        return None if isinstance(value, str) and _fits(value, field) else path
    if field.kind in {Kind.BOOLEAN, Kind.ARRAY}:
        wanted = bool if field.kind is Kind.BOOLEAN else list
        return None if isinstance(value, wanted) else path
    whole = isinstance(value, int) and not isinstance(value, bool)
    return None if whole else path


def _fits(text: str, field: Field) -> bool:
    """Whether a text has an allowed length, form and value."""
    length = len(text.encode("utf-16-le", "surrogatepass")) // 2
    return (
        (field.most is None or length <= field.most)
        and (
            field.pattern is None
            or re.fullmatch(field.pattern, text, re.ASCII) is not None
        )
        and (not field.allowed or text in field.allowed)
    )


def described(
    path: str, fields: tuple[Field, ...], prefix: str = ""
) -> dict[str, object]:
    """What a field must be, for whoever sent it wrongly.

    Args:
        path: of the field, as `first_fault` gives it.
        fields: the description.
        prefix: put before names, for fields of fields.

    Returns:
        `fieldType` and, where there is a list of values, `allowed`; empty for a path
        that is not described.
    """
    for field in fields:
        here = prefix + field.name
        if here == path:
            told: dict[str, object] = {"fieldType": field.kind.value}
            return {**told, "allowed": [*field.allowed]} if field.allowed else told
        if path.startswith(f"{here}."):
            return described(path, field.fields, f"{here}.")
    return {}


def as_schema(fields: tuple[Field, ...]) -> dict[str, object]:
    """Describe an object in JSON Schema 2020-12.

    Args:
        fields: of the object.
    """
    schema: dict[str, object] = {
        "type": "object",
        "properties": {field.name: _field_schema(field) for field in fields},
    }
    required = [field.name for field in fields if field.required]
    if required:
        schema["required"] = required
    return schema


def _field_schema(field: Field) -> dict[str, object]:
    if field.kind is Kind.OBJECT:
        return {"description": field.doc, **as_schema(field.fields)}
    schema: dict[str, object] = {"description": field.doc, "type": field.kind.value}
    if field.kind is Kind.ARRAY:
        schema["items"] = {"type": Kind.STRING.value}
    if field.most is not None:
        schema["maxLength"] = field.most
    if field.pattern is not None:
        schema["pattern"] = f"^(?:{field.pattern})$"
    if field.allowed:
        schema["enum"] = list(field.allowed)
    return schema


def as_data(fields: tuple[Field, ...]) -> list[dict[str, object]]:
    """The description as plain values, for the page's own check.

    Args:
        fields: of an object.
    """
    rows = []
    for field in fields:
        row: dict[str, object] = {"name": field.name, "kind": field.kind.value}
        if field.required:
            row["required"] = True
        if field.most is not None:
            row["most"] = field.most
        if field.pattern is not None:
            row["pattern"] = f"^(?:{field.pattern})$"
        if field.allowed:
            row["allowed"] = list(field.allowed)
        if field.fields:
            row["fields"] = as_data(field.fields)
        rows.append(row)
    return rows
