"""Connections to SQLite that go to their thread once a statement.

aiosqlite has a thread for each connection, and SQLAlchemy sends four things there for
one statement: make a cursor, execute, fetch the rows, close the cursor. Each of these
is two switches of threads, which together cost more than the statement itself. Here
rows come back along with the execution, and what touches no file stays where it is.
"""

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import aiosqlite
from aiosqlite.context import Result

_CHUNK: Final = 64
"""Rows that aiosqlite would fetch at a time; nothing here is fetched in chunks."""
_BEGIN: Final = "BEGIN"
"""It waits for nothing and reads nothing: the first statement does."""


class _Cursor(aiosqlite.Cursor):
    """A cursor whose rows are all there once it has executed."""

    def __init__(self, connection: "SqliteConnection", cursor: sqlite3.Cursor) -> None:
        super().__init__(connection, cursor)
        self._connection = connection
        self._rows: list[Any] = []

    async def execute(
        self, sql: str, parameters: Iterable[Any] | None = None
    ) -> "_Cursor":
        """Execute, and fetch what there is."""
        if sql == _BEGIN and self._connection.is_idle:
            self._run(sql, ())
        else:
            await super()._execute(self._run, sql, parameters or ())  # type: ignore[no-untyped-call]  # aiosqlite's
        return self

    def _run(self, sql: str, parameters: Any) -> None:
        self._cursor.execute(sql, parameters)
        # Of a statement that gives no rows there is no description.
        self._rows = self._cursor.fetchall() if self._cursor.description else []

    async def fetchall(self) -> Iterable[Any]:
        """All rows; once."""
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        """Close it; after the thread is done with it."""
        if self._connection.is_idle:
            self._cursor.close()
        else:
            await super().close()


class SqliteConnection(aiosqlite.Connection):
    """A connection whose cursors are made and closed without its thread.

    Args:
        path: of the database.
        query_only: whether it never writes, so that the end of its transactions waits
            for no disk.
    """

    def __init__(self, path: Path, *, query_only: bool) -> None:
        super().__init__(lambda: _connect(path), _CHUNK)
        self._query_only = query_only
        self._given = 0
        """Pieces of work that the thread was given; counted by the event loop."""
        self._done = 0
        """Of these, those it has done; counted by the thread."""
        # It keeps no process from ending, as SQLAlchemy has it for its own.
        self._thread.daemon = True

    @property
    def is_idle(self) -> bool:
        """Whether its thread has nothing to do, also for a caller who has left."""
        return self._given == self._done

    async def _execute(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """Have its thread do something: what is given is counted, and what is done."""

        def work() -> Any:
            try:
                return fn(*args, **kwargs)
            finally:
                self._done += 1

        self._given += 1
        return await super()._execute(work)  # type: ignore[no-untyped-call]  # aiosqlite's

    def cursor(self) -> Any:
        """A cursor, made here; to be awaited or entered, as aiosqlite's."""
        return Result(self._made())

    async def _made(self) -> _Cursor:
        return _Cursor(self, self._conn.cursor())

    async def rollback(self) -> None:
        """Undo the transaction, where there is something to undo."""
        if self.is_idle and (self._query_only or not self._conn.in_transaction):
            self._conn.rollback()
        else:
            await super().rollback()

    async def commit(self) -> None:
        """End the transaction, durably where it wrote."""
        if self._query_only and self.is_idle:
            self._conn.commit()
        else:
            await super().commit()


def creator(path: Path, *, query_only: bool) -> Callable[..., SqliteConnection]:
    """What SQLAlchemy calls for each connection (`async_creator_fn`).

    Args:
        path: of the database.
        query_only: see `SqliteConnection`.
    """

    def create(*_: object, **__: object) -> SqliteConnection:
        return SqliteConnection(path, query_only=query_only)

    return create


def _connect(path: Path) -> sqlite3.Connection:
    # Used by one thread at a time, though not always by the same one.
    return sqlite3.connect(path, check_same_thread=False)
