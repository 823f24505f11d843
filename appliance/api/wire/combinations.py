"""Rules about several fields of one object, as keywords of JSON Schema.

    KEYWORDS = exactly_one("cuil", "email", "personaId")

Generators of clients make an object of each branch of a `oneOf` or `anyOf` and lose
the fields that all share. They leave `if`, `then`, `else` and `not` alone, so rules
use these.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, Final

Keywords = Mapping[str, Any]
TEXT: Final = {"type": "string"}
"""A value that is no null, of fields where null says nothing."""
NUMBER: Final = {"type": "integer"}


def given(name: str, value: Keywords | None = None) -> dict[str, Any]:
    """A field that is there.

    Args:
        name: the field.
        value: what it must be to count as given; None: null counts too.
    """
    there: dict[str, Any] = {"required": [name]}
    return there if value is None else {**there, "properties": {name: {**value}}}


def exactly_one(*names: str, value: Keywords | None = None) -> dict[str, Any]:
    """One of several fields is given, and no other.

    Args:
        names: the fields.
        value: see `given`.
    """
    first, *others = names
    if not others:
        return given(first, value)
    none_of_others = {"not": {"anyOf": [given(other, value) for other in others]}}
    return {
        "if": given(first, value),
        "then": none_of_others,
        "else": exactly_one(*others, value=value),
    }


def at_most_one(*names: str) -> dict[str, Any]:
    """No two of several fields are there.

    Args:
        names: the fields.
    """
    pairs = [{"required": [*pair]} for pair in combinations(names, 2)]
    return {"not": {"anyOf": pairs}}


def not_beside(name: str, *others: str) -> dict[str, Any]:
    """Where one field is there, some others are not.

    Args:
        name: the field.
        others: the fields that it excludes.
    """
    return {"not": {"anyOf": [{"required": [name, other]} for other in others]}}


def both_or_neither(first: str, second: str, value: Keywords) -> dict[str, Any]:
    """Two fields are given together, or are both null or absent.

    Args:
        first: one field.
        second: the other.
        value: what each is where it is given.
    """
    return {
        "if": given(first, value),
        "then": given(second, value),
        "else": {"properties": {second: {"type": "null"}}},
    }
