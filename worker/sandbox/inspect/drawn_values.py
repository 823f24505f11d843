"""Values that resources have, for finding what programs draw differently."""

from typing import Any

import pikepdf


class DoubtfulError(Exception):
    """Programs may draw this differently."""


def at(holder: Any, key: str, default: object = None) -> Any:
    """Return an entry: a Python value where it is a number or a word."""
    return holder.get(key, default)


def items(array: Any) -> list[Any]:
    """Elements of an array."""
    return [*array]


def is_number(value: object) -> bool:
    """Return whether a value of a dictionary or an array is a number."""
    return not isinstance(value, pikepdf.Object | bool | None)


def are_numbers(value: object, count: int) -> bool:
    """Return whether a value is an array of so many numbers."""
    return (
        isinstance(value, pikepdf.Array)
        and len(value) == count
        and all(is_number(each) for each in items(value))
    )
