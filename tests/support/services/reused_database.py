"""A PostgreSQL database that tests use in turn, emptied between them.

To make a database takes PostgreSQL a tenth of a second and more, whose files the next
checkpoint pays for once more; to delete a test's few rows takes two milliseconds.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import asyncpg

from tests.support.services.postgres import database_name

Result = TypeVar("Result")

_TABLES = """\
SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
WHERE schemaname = 'public' ORDER BY 1
"""
_SEQUENCES = """\
SELECT format('%I.%I', schemaname, sequencename), start_value FROM pg_sequences
WHERE schemaname = 'public' ORDER BY 1
"""
_SCHEMA = """\
SELECT md5(string_agg(line, E'\\n' ORDER BY line)) FROM (
    SELECT format('%s %s %s %s', c.oid, c.relname, c.relacl, a.attnum) AS line
    FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('%s %s', oid, tgenabled) FROM pg_trigger
    UNION ALL
    SELECT format('%s', setconfig) FROM pg_db_role_setting JOIN pg_database d
    ON d.oid = setdatabase AND datname = current_database()
) AS lines
"""
_END_OTHERS = """\
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class ReusedDatabase:
    """A migrated database and what brings it back to how the migrations left it.

    Args:
        url: of the database, as its owner, who may switch triggers off.

    Its own thread has a loop: a test's loop may be another each time.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = database_name(url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._connection = self._run(asyncpg.connect(url))
        self._schema = self._run(self._connection.fetchval(_SCHEMA))
        self._statements = self._run(self._plan())

    def empty(self) -> bool:
        """End other connections and bring the rows back.

        Returns:
            Whether the tables themselves are what they were; if not, this database
            is of no more use.
        """
        return self._run(self._empty())

    def close(self) -> None:
        """Close the connection and end the thread."""
        self._run(self._connection.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _plan(self) -> str:
        """What empties every table, and gives those their rows that came with some."""
        tables = [row[0] for row in await self._connection.fetch(_TABLES)]
        statements = ["SET session_replication_role = replica"]
        statements += [f"DELETE FROM {table}" for table in tables]  # noqa: S608
        for table in tables:
            rows = await self._connection.fetchval(
                f"SELECT json_agg(t)::text FROM {table} AS t"  # noqa: S608 (quoted above)
            )
            if rows is not None:
                literal = rows.replace("'", "''")
                statements.append(
                    f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM "  # noqa: S608 (the same)
                    f"json_populate_recordset(NULL::{table}, '{literal}')"
                )
        statements += [
            f"SELECT setval('{name}', {start}, false)"
            for name, start in await self._connection.fetch(_SEQUENCES)
        ]
        return "; ".join(statements)

    async def _empty(self) -> bool:
        await self._connection.execute(_END_OTHERS)
        await self._connection.execute(self._statements)
        return bool(await self._connection.fetchval(_SCHEMA) == self._schema)
