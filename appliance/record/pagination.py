"""Cursors of lists: where the next page begins, as text for an address.

A cursor says only what the last row shown says itself; whoever makes one up
gets another page of what they may see anyway, or `QUERY_INVALID`.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeAlias, TypeVar

from appliance.domain.console.lists import AuditPlace
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import MAX_REQUEST_ID

_Row = TypeVar("_Row")
CursorOf: TypeAlias = Callable[[_Row], str]
_FORM: Final = "%Y%m%dT%H%M%S.%f"
_SEPARATOR: Final = "~"


def instant(at: datetime, ident: str) -> str:
    """The place of a row by time and id.

    Args:
        at: its time.
        ident: its id.
    """
    return f"{at.astimezone(UTC).strftime(_FORM)}{_SEPARATOR}{ident}"


def read_instant(cursor: str) -> tuple[datetime, str] | None:
    """Read what `instant` wrote; None for an empty cursor.

    Raises:
        ApplianceError: `QUERY_INVALID`.
    """
    if not cursor:
        return None
    at, _, ident = cursor.partition(_SEPARATOR)
    try:
        return datetime.strptime(at, _FORM).replace(tzinfo=UTC), ident
    except ValueError as exc:
        raise ApplianceError(
            ErrorCode.QUERY_INVALID, params={"field": "cursor"}
        ) from exc


def place(of: AuditPlace) -> str:
    """The place of an audit row.

    Args:
        of: the row's.
    """
    return instant(of.at, f"{of.writer}{_SEPARATOR}{of.n}")


def read_place(cursor: str) -> AuditPlace | None:
    """Read what `place` wrote; None for an empty cursor.

    Raises:
        ApplianceError: `QUERY_INVALID`.
    """
    found = read_instant(cursor)
    if found is None:
        return None
    writer, _, n = found[1].partition(_SEPARATOR)
    number = read_number(n)
    if number is None:
        raise ApplianceError(ErrorCode.QUERY_INVALID, params={"field": "cursor"})
    return AuditPlace(found[0], writer, number)


def read_number(cursor: str) -> int | None:
    """Read a number; None for an empty cursor.

    Raises:
        ApplianceError: `QUERY_INVALID`.
    """
    if not cursor:
        return None
    longest = len(str(MAX_REQUEST_ID))
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > longest:
        raise ApplianceError(ErrorCode.QUERY_INVALID, params={"field": "cursor"})
    return min(int(cursor), MAX_REQUEST_ID)
