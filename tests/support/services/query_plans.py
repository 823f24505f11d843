"""What PostgreSQL does for each statement of a use case, and what of it grows.

    watch = await PlanWatch.over(url)
    with watch.watching():
        await a_use_case()
    assert watch.found == {}

Each statement is explained (`EXPLAIN ANALYZE`) in its own transaction, with its own
parameters, just before it runs; what that changed is rolled back.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg
from sqlalchemy import Connection, Engine, event

MANY_ROWS: Final = 1_000
"""Of a table that has more, no statement reads all; of no table it reads so many."""
_MANY_PAGES: Final = 1_000
"""Pages of 8 KiB that no statement reads: an index may be walked in vain."""
_TIMES: Final = 3
"""How often a statement is explained: parameters may make another plan."""
_EXPLAINED: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
_SIZES: Final = """\
SELECT relname, reltuples::bigint AS reltuples FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


@dataclass
class PlanWatch:
    """Looks at the plans of statements, and keeps those that grow with the record.

    Args:
        rows: how many each table has.
    """

    rows: dict[str, int]
    seen: dict[str, int] = field(default_factory=dict)
    """Each statement, and how often it was explained."""
    found: dict[str, str] = field(default_factory=dict)
    """What is wrong with which."""

    @classmethod
    async def over(cls, url: str) -> "PlanWatch":
        """Know the tables of a database, which has been analysed."""
        connection = await asyncpg.connect(url)
        try:
            rows = await connection.fetch(_SIZES)
        finally:
            await connection.close()
        return cls({row["relname"]: row["reltuples"] for row in rows})

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at whatever runs in the block, in any engine of this process."""
        event.listen(Engine, "before_cursor_execute", self._explain)
        try:
            yield
        finally:
            event.remove(Engine, "before_cursor_execute", self._explain)

    def _explain(
        self,
        connection: Connection,
        cursor: object,
        statement: str,
        parameters: Any,
        context: object,
        is_many: bool,
    ) -> None:
        del cursor, context
        if connection.dialect.name != "postgresql" or is_many:
            return
        if not statement.lstrip().startswith(_EXPLAINED):
            return
        if self.seen.get(statement, 0) >= _TIMES:
            return
        self.seen[statement] = self.seen.get(statement, 0) + 1
        plan = _plan(connection, statement, parameters)
        if plan is not None and (wrong := self._wrong(plan)):
            self.found[statement] = wrong

    def _wrong(self, plan: dict[str, Any]) -> str:
        """What of a plan grows with the record; empty for nothing."""
        root = plan["Plan"]
        for node in _nodes(root):
            table = node.get("Relation Name")
            is_large = self.rows.get(table or "", 0) > MANY_ROWS
            if node["Node Type"] == "Seq Scan" and is_large:
                return f"reads all of {table}"
            each = sum(node.get(name, 0) for name in _READ)
            if (read := each * node["Actual Loops"]) > MANY_ROWS:
                return f"reads {read} rows of {table or node.get('Index Name')}"
        pages = root["Shared Hit Blocks"] + root["Shared Read Blocks"]
        return f"reads {pages} pages" if pages > _MANY_PAGES else ""


_READ: Final = (
    "Actual Rows",
    "Rows Removed by Filter",
    "Rows Removed by Index Recheck",
)
_WITHIN: Final = ("SAVEPOINT explained", "ROLLBACK TO SAVEPOINT explained")
"""How to try something in a transaction, and to take it back."""


def _plan(
    connection: Connection, statement: str, parameters: Any
) -> dict[str, Any] | None:
    """What a statement does, of which nothing stays; None if it is refused."""
    raw: Any = connection.connection.dbapi_connection
    # Who only reads is in no transaction.
    begin, end = ("BEGIN", "ROLLBACK") if raw.autocommit else _WITHIN
    cursor = raw.cursor()
    cursor.execute(begin)
    # Tables that are small as yet are not read whole because a seek would cost more.
    cursor.execute("SET LOCAL random_page_cost = 1.1")
    try:
        cursor.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", parameters
        )
        told = cursor.fetchall()[0][0]
    except connection.dialect.loaded_dbapi.Error:
        return None  # the same happens to whoever runs it
    finally:
        cursor.execute(end)
        cursor.close()
    plans: list[dict[str, Any]] = json.loads(told) if isinstance(told, str) else told
    return plans[0]


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A node of a plan and all below it."""
    yield node
    for below in node.get("Plans", ()):
        yield from _nodes(below)


def shortened(statement: str) -> str:
    """A statement in one line, without its list of columns."""
    line = " ".join(statement.split())
    return re.sub(r"SELECT .*? FROM", "SELECT … FROM", line)
