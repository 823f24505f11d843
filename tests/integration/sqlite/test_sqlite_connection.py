"""Connections to SQLite: how often they go to their thread, and what leavers leave."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from appliance.database import sqlite_connection
from appliance.database.sqlite_connection import SqliteConnection, creator

READER, WRITER = "reader", "writer"
Engines = Callable[[str], AsyncEngine]


@pytest.fixture
async def trips(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What connections gave their threads to do."""
    given: list[str] = []
    execute = SqliteConnection._execute

    async def counted(self: SqliteConnection, fn: Any, *args: Any, **named: Any) -> Any:
        given.append(str(args[0]) if args else fn.__name__)
        return await execute(self, fn, *args, **named)

    monkeypatch.setattr(SqliteConnection, "_execute", counted)
    return given


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engines]:
    """Makes engines of one file with a table of two rows."""
    path = tmp_path / "record.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT)")
        made.execute("INSERT INTO word VALUES (1, 'uno'), (2, 'dos')")
    made.close()
    engines = []

    def make(kind: str) -> AsyncEngine:
        engines.append(
            create_async_engine(
                f"sqlite+aiosqlite:///{path}",
                connect_args={
                    "async_creator_fn": creator(path, query_only=kind == READER)
                },
            )
        )
        return engines[-1]

    yield make
    for each in engines:
        await each.dispose()


async def test_statement_is_one_trip_to_the_thread(
    engine: Engines, trips: list[str]
) -> None:
    """Its rows come along; cursors, and the end of a reading, take none."""
    async with engine(READER).connect() as connection:
        await connection.execute(text("SELECT 1"))
        trips.clear()
        rows = (await connection.execute(text("SELECT text FROM word"))).all()
        assert [row.text for row in rows] == ["uno", "dos"]
        assert len(trips) == 1
        await connection.rollback()
        assert len(trips) == 1


async def test_writing_ends_in_the_thread(engine: Engines, trips: list[str]) -> None:
    """What waits for the disk holds up nobody in the event loop."""
    writer = engine(WRITER)
    async with writer.begin() as connection:
        await connection.execute(text("INSERT INTO word VALUES (3, 'tres')"))
        trips.clear()
    assert trips == ["commit"]
    async with writer.connect() as connection:
        found = await connection.scalar(text("SELECT count(*) FROM word"))
        assert found == 3
        await connection.execute(text("DELETE FROM word"))
        trips.clear()
        await connection.rollback()
        assert trips == ["rollback"]


async def test_refused_statement_raises_and_leaves_the_connection_usable(
    engine: Engines,
) -> None:
    """What SQLite refuses is raised as what it is."""
    async with engine(WRITER).connect() as connection:
        with pytest.raises(IntegrityError):
            await connection.execute(text("INSERT INTO word VALUES (1, 'otra')"))
        await connection.rollback()
        assert await connection.scalar(text("SELECT count(*) FROM word")) == 2


async def test_caller_who_leaves_waits_for_no_thread_and_spoils_nothing(
    engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that still runs is ended before anything else is done with it."""
    running, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(number: int) -> int:
        loop.call_soon_threadsafe(running.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(30)
        return number

    def connect(path: Path) -> sqlite3.Connection:
        made = sqlite3.connect(path, check_same_thread=False)
        made.create_function("slow", 1, slow)
        return made

    monkeypatch.setattr(sqlite_connection, "_connect", connect)
    reader = engine(READER)

    async def ask() -> None:
        async with reader.connect() as connection:
            await connection.execute(text("SELECT slow(id) FROM word"))

    asking = asyncio.create_task(ask())
    await asyncio.wait_for(running.wait(), 30)
    asking.cancel()
    # The event loop goes on, or this would never come.
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asking
    async with reader.connect() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM word")) == 2
