"""Values in JSON of somebody distrusted, each demanded to be what it must be.

A boolean is no integer here, as it is none in JSON.
"""

from collections.abc import Sequence
from typing import Any, cast


def integer(value: object) -> int:
    """Demand an integer.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def boolean(value: object) -> bool:
    """Demand a boolean.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, bool):
        raise TypeError
    return value


def text(value: object) -> str:
    """Demand a string.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, str):
        raise TypeError
    return value


def texts(value: object, most: int) -> tuple[str, ...]:
    """Demand an array of strings.

    Args:
        value: of the message.
        most: so many of them.

    Raises:
        TypeError: it is none, or a longer one.
    """
    if not isinstance(value, list) or len(value) > most:
        raise TypeError
    if not all(isinstance(each, str) for each in value):
        raise TypeError
    return tuple(cast("list[str]", value))


def rect(sides: Sequence[Any]) -> tuple[float, float, float, float]:
    """Demand a box: x0 < x1, y0 < y1.

    Raises:
        TypeError: a side is no number.
        ValueError: it is no box.
    """
    x0, y0, x1, y1 = (float(side) for side in sides)
    # Comparisons that a NaN fails, too.
    if not (x0 < x1 and y0 < y1):
        raise ValueError
    return x0, y0, x1, y1


def docmdp(value: object) -> int | None:
    """Demand P of a certification, or nothing.

    Raises:
        ValueError: it is neither.
    """
    if value is None:
        return None
    level = integer(value)
    if level not in {1, 2, 3}:
        raise ValueError
    return level
