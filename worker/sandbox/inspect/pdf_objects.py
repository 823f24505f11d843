"""Reading of PDF objects that may be anything: no key, loop or type is trusted."""

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NullObject,
    PdfObject,
    StreamObject,
)

from appliance.domain.errors import DocumentRefusedError, ErrorCode

Key = tuple[int, int]
"""Number and generation of an indirect object."""
_ANCESTORS: Final = 32


class Budget:
    """Counts steps over a document's objects and stops at a limit.

    Args:
        steps: how many may be taken.
    """

    def __init__(self, steps: int) -> None:
        self._left = steps

    def take(self, steps: int = 1) -> None:
        """Take some.

        Raises:
            DocumentRefusedError: `PDF_TOO_COMPLEX`, when none is left.
        """
        self._left -= steps
        if self._left < 0:
            raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "too many objects")


def resolve(raw: object) -> PdfObject | None:
    """Follow an indirect reference; null and nothing are None."""
    value: object = raw.get_object() if isinstance(raw, IndirectObject) else raw
    if isinstance(value, NullObject) or not isinstance(value, PdfObject):
        return None
    return value


def entry(holder: object, key: str) -> PdfObject | None:
    """Value of a dictionary's key; None where there is no dictionary or value."""
    if not isinstance(holder, DictionaryObject) or key not in holder:
        return None
    return resolve(holder.raw_get(key))


def dictionary(holder: object, key: str) -> DictionaryObject | None:
    """The same, where only a dictionary (or a stream's) will do."""
    value = entry(holder, key)
    return value if isinstance(value, DictionaryObject) else None


def plain_dictionary(holder: object, key: str) -> DictionaryObject | None:
    """The same, where a stream is none: some programs take its dictionary."""
    value = dictionary(holder, key)
    return None if isinstance(value, StreamObject) else value


def name(holder: object, key: str) -> str | None:
    """A dictionary's name or string; None where it is something else."""
    value: object = entry(holder, key)
    return str(value) if isinstance(value, str) else None


def inherited(node: DictionaryObject, key: str) -> object:
    """A field's own value for a key, or that of the nearest above it."""
    at: DictionaryObject | None = node
    for _ in range(_ANCESTORS):
        if at is None:
            break
        value = entry(at, key)
        if value is not None:
            return value
        at = dictionary(at, "/Parent")
    return None


def raw_items(value: object) -> Iterator[object]:
    """Elements of an array, references unfollowed; nothing of other types."""
    if isinstance(value, ArrayObject):
        for index in range(len(value)):
            yield value.raw_get(index)


def key_of(value: object) -> Key | None:
    """Which indirect object a raw value points to; None for a direct one."""
    if isinstance(value, IndirectObject):
        return value.reference.idnum, value.reference.generation
    return None


def number(raw: object) -> float | None:
    """A finite number, or None."""
    value: object = resolve(raw)
    if not isinstance(value, int | Decimal):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None
