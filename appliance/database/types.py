"""Column types that behave alike on SQLite and PostgreSQL."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from sqlalchemy import JSON, DateTime, Dialect, Text
from sqlalchemy.dialects import sqlite
from sqlalchemy.types import TypeDecorator


class Instant(TypeDecorator[datetime]):
    """An aware UTC time, to the microsecond.

    `timestamptz` on PostgreSQL; on SQLite text of fixed width, so that
    comparing as text is comparing times.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(
        self, value: datetime | None, dialect: Dialect
    ) -> datetime | None:
        """Turn an aware time into what the database keeps.

        Raises:
            ValueError: a time without zone, which is a fault of the caller.
        """
        if value is None:
            return None
        if value.tzinfo is None:
            msg = "a time without zone has no place in the record"
            raise ValueError(msg)
        utc = value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.replace(tzinfo=None)

    def process_result_value(
        self, value: datetime | None, dialect: Dialect
    ) -> datetime | None:
        """Give the zone back."""
        del dialect
        if value is None:
            return None
        return (
            value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        )


_COMPACT: Final = sqlite.dialect(
    json_serializer=partial(
        json.dumps, ensure_ascii=False, separators=(",", ":"), sort_keys=True
    )
)
"""Writes JSON compactly, names in order: the same bytes on both databases."""
_JSON: Final[Any] = JSON(none_as_null=True)


class JsonText(TypeDecorator[Any]):
    """A JSON value kept as text, as SQLAlchemy's own type of SQLite does."""

    impl = Text
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        """What writes."""
        del dialect
        write: Callable[[Any], Any] | None = _JSON.bind_processor(_COMPACT)
        return write

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], Any] | None:
        """What reads back."""
        del dialect
        read: Callable[[Any], Any] | None = _JSON.result_processor(_COMPACT, coltype)
        return read
