"""Database engines: SQLite with a reader and a writer, or PostgreSQL.

SQLite runs in WAL mode with one writer at a time: `BEGIN IMMEDIATE`, because a
transaction that first reads and then writes fails at once when another wrote
meanwhile, whatever the time-out. Those who write take turns, in this process and
among all. Readers are `query_only`.
"""

import asyncio
import contextlib
import fcntl
import os
import pwd
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from sqlalchemy import URL, event, make_url
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import QueuePool

from appliance.database.password_files import read_password
from appliance.database.sqlite_connection import creator
from appliance.metrics import metrics
from appliance.settings import Settings
from appliance.system.late_imports import load_late
from appliance.system.tls import database_tls

_LOOK_AGAIN_S = 0.01
_SQLITE: Final = "sqlite+aiosqlite"
_POSTGRES: Final = "postgresql+asyncpg"
_PORT: Final = 5432
_CONNECT_S: Final = 3
"""Longest that connecting to a host of PostgreSQL may take, in seconds."""
_STATEMENT_S: Final = 30
"""Longest that a statement there may take."""
_MODE: Final = 0o660
"""What a group may do is for the umask to say, as with the database."""


class FileTurn:
    """One process's place among those that write one SQLite file, in their order.

        turn = FileTurn(path, wait_s=5)
        async with turn.held():
            ...

    Who waits for SQLite's own lock looks again now and then, up to ten times a second.
    Where others write without a pause it finds the lock taken each time: of eight
    processes some wrote hundreds of times in ten seconds, and some once. The kernel
    wakes those who wait for a lock of a file in their order, and frees it when its
    holder dies. One task at a time may enter.

    Args:
        path: of a file that stands for the turn; made where there is none.
        wait_s: longest wait for it.

    Source: flock(2); SQLite, "sqlite3_busy_timeout".
    """

    def __init__(self, path: Path, wait_s: float) -> None:
        self._path = path
        self._wait_s = wait_s
        self._coming: asyncio.Future[int] | None = None

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Wait for the turn, and leave it to the next after the block.

        Raises:
            TimeoutError: others kept it for `wait_s`.
            OSError: the file cannot be opened.
        """
        coming = self._coming
        if coming is not None and not coming.done():
            # A place in the queue that a task left; one that is done is on its way
            # back already.
            coming.remove_done_callback(self._give_back)
        else:
            loop = asyncio.get_running_loop()
            coming = self._coming = loop.create_future()
            # A daemon: the end of the process waits for nobody's turn.
            queueing = self._path, loop, coming
            threading.Thread(
                target=_queue_in_thread, args=queueing, daemon=True
            ).start()
        try:
            async with asyncio.timeout(self._wait_s):
                lock = await asyncio.shield(coming)
        except (TimeoutError, asyncio.CancelledError):
            # The thread waits on; the turn goes to whoever enters next, or back.
            coming.add_done_callback(self._give_back)
            raise
        try:
            yield
        finally:
            os.close(lock)

    def _give_back(self, coming: asyncio.Future[int]) -> None:
        """Leave a turn that came when nobody waited for it any more."""
        if coming.exception() is None:
            os.close(coming.result())


def _queue_in_thread(
    path: Path, loop: asyncio.AbstractEventLoop, coming: asyncio.Future[int]
) -> None:
    """Take the lock, however long that takes, and tell the loop its descriptor."""
    descriptor: int | None = None
    try:
        # Opened anew for each turn, so that descriptor and lock end together.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _MODE)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        loop.call_soon_threadsafe(coming.set_result, descriptor)
    except (OSError, RuntimeError) as exc:
        if descriptor is not None:
            os.close(descriptor)
        with contextlib.suppress(RuntimeError):  # the loop ended meanwhile
            loop.call_soon_threadsafe(coming.set_exception, exc)


@dataclass(frozen=True, slots=True)
class Engines:
    """Where to read and where to write; the same connections on PostgreSQL."""

    reader: AsyncEngine
    writer: AsyncEngine
    turn: FileTurn | None = None
    """Among the processes that write; PostgreSQL needs none."""

    @property
    def is_one_pool(self) -> bool:
        """Whether who reads and who writes take the same connections."""
        return self.writer.pool is self.reader.pool

    @property
    def reading_at_once(self) -> int:
        """How many connections that read may be open at one time."""
        return _size_of(self.reader)

    @property
    def writing_at_once(self) -> int:
        """How many connections that write may be open at one time."""
        return _size_of(self.writer)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A connection in a transaction that may write.

        Raises:
            TimeoutError: other processes kept on writing.
            OSError, SQLAlchemyError: the database is away.
        """
        async with (
            self.writer.connect() as connection,
            self.turn.held() if self.turn else contextlib.nullcontext(),
            connection.begin(),
        ):
            yield connection

    async def dispose(self) -> None:
        """Close every connection."""
        await self.reader.dispose()
        if not self.is_one_pool:
            await self.writer.dispose()


def _size_of(engine: AsyncEngine) -> int:
    pool = engine.pool
    return pool.size() if isinstance(pool, QueuePool) else 1


def load_driver(settings: Settings) -> None:
    """Import what `open_engines` will use, without a look at any file.

    Args:
        settings: of the installation.
    """
    is_sqlite = settings.database.url == "sqlite"
    if not is_sqlite:
        load_late(["appliance.database.postgres_hosts"])
    name = _SQLITE if is_sqlite else _POSTGRES
    URL.create(name).get_dialect().import_dbapi()


def database_url(settings: Settings) -> URL:
    """The address of the record, its password read from its file.

    Where it names no user, that is libpq's: `PGUSER`, or else the system's user, by
    which PostgreSQL's `peer` knows a role on its socket.

    Raises:
        SettingsError: that file cannot be read.
    """
    text = settings.database.url
    if text == "sqlite":
        path = settings.data_dir / "rubrica.db"
        return URL.create(_SQLITE, database=str(path))
    url = make_url(_without_further_hosts(text)).set(drivername=_POSTGRES)
    if url.username is None and "user" not in url.query:
        url = url.set(username=os.environ.get("PGUSER") or _system_user())
    if settings.database.password_file is not None:
        url = url.set(password=read_password(settings.database.password_file))
    return url


def _system_user() -> str | None:
    """Who this process runs as, as libpq sees it; None for a number without a name."""
    # asyncpg would believe `USER`, which sudo and setpriv leave as it was.
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return None


def _netloc(text: str) -> tuple[str, list[str]]:
    """User and hosts, each with its port, of a PostgreSQL URL."""
    netloc = text.partition("://")[2].partition("?")[0].partition("/")[0]
    user, _, hosts = netloc.rpartition("@")
    return user, hosts.split(",")


def _without_further_hosts(text: str) -> str:
    """The same URL with its first host alone; SQLAlchemy reads no list there."""
    _, (first, *others) = _netloc(text)
    return text.replace(",".join((first, *others)), first, 1) if others else text


def connect_options(
    settings: Settings, statement_s: float | None = _STATEMENT_S
) -> dict[str, Any]:
    """What asyncpg is told beside the URL: limits, TLS, and the hosts of a failover.

    Raises:
        SettingsError: a file for TLS cannot be used.
    """
    options: dict[str, Any] = {
        "timeout": _CONNECT_S,
        "command_timeout": statement_s,
        "ssl": database_tls(settings.database),
    }
    _, hosts = _netloc(settings.database.url)
    if len(hosts) > 1:
        places = [urlsplit(f"//{host}") for host in hosts]
        options["host"] = [place.hostname for place in places]
        options["port"] = [place.port or _PORT for place in places]
        options["target_session_attrs"] = "read-write"
    return options


def open_engines(
    settings: Settings, *, statement_s: float | None = _STATEMENT_S
) -> Engines:
    """Make the engines; nothing is connected before its first use.

    Args:
        settings: of the installation.
        statement_s: longest that a statement may take on PostgreSQL; None: any time.
    """
    url = database_url(settings)
    if url.get_backend_name() == "sqlite":
        return _open_sqlite(url, settings)
    from appliance.database.postgres_hosts import PostgresHosts, ask_after_rest, reading  # noqa: PLC0415 (heavy)

    options = connect_options(settings, statement_s)
    engine = create_async_engine(
        url,
        pool_size=settings.database.pool_size,
        max_overflow=0,
        pool_timeout=settings.database.busy_timeout_s,
        # The last one used knows most statements, and need not be asked.
        pool_use_lifo=True,
        hide_parameters=True,
        connect_args={**options, "async_creator_fn": PostgresHosts().connect},
    )
    ask_after_rest(engine)
    _watch(engine, "database")
    return Engines(reading(engine), engine)


def _open_sqlite(url: URL, settings: Settings) -> Engines:
    """A pool of readers, and one writer for whom this process's writers queue."""
    path = Path(url.database or "")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # SQLite would make it readable to all; its journal takes over this mode. What
    # a group may do is for the umask to say, as with documents.
    path.touch(mode=0o660, exist_ok=True)
    wait_s = settings.database.busy_timeout_s
    reader = create_async_engine(
        url,
        pool_size=settings.database.pool_size,
        max_overflow=0,
        pool_timeout=wait_s,
        hide_parameters=True,
        connect_args={"async_creator_fn": creator(path, query_only=True)},
    )
    writer = create_async_engine(
        url,
        pool_size=1,
        max_overflow=0,
        pool_timeout=wait_s,
        hide_parameters=True,
        connect_args={"async_creator_fn": creator(path, query_only=False)},
    )
    _prepare_sqlite(reader, wait_s, query_only=True)
    _prepare_sqlite(writer, wait_s, query_only=False)
    _watch(reader, "database")
    _watch(writer, "database_write")
    turn = FileTurn(path.with_name(f"{path.name}-turn"), wait_s)
    return Engines(reader, writer, turn)


def _watch(engine: AsyncEngine, name: str) -> None:
    """Show in `/metrics` how many connections are in use."""
    if isinstance(engine.pool, QueuePool):
        metrics.watch_pool(name, engine.pool, _pool_state, refuses=False)


def _pool_state(pool: QueuePool) -> metrics.PoolState:
    return metrics.PoolState(pool.size(), pool.checkedout())


def _prepare_sqlite(engine: AsyncEngine, wait_s: float, *, query_only: bool) -> None:
    """Set up each connection, and begin transactions ourselves."""

    def connect(connection: Any, record: object) -> None:
        del record
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {int(wait_s * 1000)}")
        _enter_wal(connection, cursor, wait_s)
        # FULL: the last commits survive a power cut, the audit's among them.
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        if query_only:
            cursor.execute("PRAGMA query_only = ON")
        cursor.close()

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN" if query_only else "BEGIN IMMEDIATE")

    def invalidate(connection: Any, record: object, exc: object) -> None:
        # A caller left in mid-transaction. Closing alone would keep the file
        # locked for as long as a cursor lives, in a traceback for instance.
        del record, exc
        with contextlib.suppress(sqlite3.Error):
            connection.rollback()

    event.listen(engine.sync_engine, "invalidate", invalidate)
    event.listen(engine.sync_engine, "connect", connect)
    event.listen(engine.sync_engine, "begin", begin)


def _enter_wal(connection: Any, cursor: Any, wait_s: float) -> None:
    """Have the file use a write-ahead log, which it does for good from then on.

    `busy_timeout` does not hold for this change: where two processes open a new
    file at once, one of them is refused at once and has to try again.
    """
    deadline = time.monotonic() + wait_s
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() >= deadline:
                raise
            connection.run_async(lambda _: asyncio.sleep(_LOOK_AGAIN_S))
        else:
            return
