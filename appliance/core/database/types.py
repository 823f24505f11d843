"""Column types that behave alike on SQLite and PostgreSQL."""

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, Text
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


class JsonText(TypeDecorator[Any]):
    """A JSON value kept as text, the same bytes on both databases."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:
        """Write compactly, keys sorted."""
        del dialect
        if value is None:
            return None
        return json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), sort_keys=True
        )

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        """Read back."""
        del dialect
        return None if value is None else json.loads(value)
