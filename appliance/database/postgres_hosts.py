"""Connecting to PostgreSQL: the hosts of a failover, and links that die.

    create_async_engine(url, connect_args={"async_creator_fn": PostgresHosts().connect})
    ask_after_rest(engine)
    reader = reading(engine)

asyncpg has one time-out for all of its hosts together, which the first uses up that
does not answer; here each has its own, and who answered last is asked first.
"""

import time
from typing import Any, Final

import asyncpg
from sqlalchemy import event
from sqlalchemy.exc import InvalidatePoolError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from appliance.system.dead_connections import NOTICED_S, notice_dead_link

_REST_S: Final = 0.5
"""Time that hosts none of which answered are left alone, in seconds."""
_COMPRESS_FAST: Final = """\
SELECT set_config(name, 'lz4', false) FROM pg_settings
WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)
"""
"""Of what a session writes; not every server is built with it, or is new enough.

What is kept of a document until it is published takes 0.4 ms then, and 1.1 by pglz.
"""
_ASK_AFTER_S: Final = 1.0
"""After so long without use a connection is asked whether it still is one."""
_ANSWER_S: Final = 2.0
"""Longest wait for that answer. A server that was stopped (SIGSTOP) keeps its
connections open and takes what is sent, so nothing else tells of it."""
_USED: Final = "rubrica_used"
_AWAY: Final = "PostgreSQL was away a moment ago"
_PASSED_OVER: Final = (
    # Nobody there, or nobody who answers in time.
    OSError,
    asyncpg.CannotConnectNowError,
    asyncpg.ConnectionDoesNotExistError,
    # A standby.
    asyncpg.TargetServerAttributeNotMatched,
)
SERVER_SETTINGS: Final = {
    # What a host of ours that vanished holds locked, the server lets go of likewise.
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    # Twice as long: here a client that is slow to read counts as dead, too.
    "tcp_user_timeout": str(2 * NOTICED_S * 1000),
    # Of a process that was stopped in mid-transaction; its lease was over long before.
    "idle_in_transaction_session_timeout": "60000",
    # What is asked here takes milliseconds; to compile it took seconds of a batch.
    "jit": "off",
}
"""Of each session. Source: PostgreSQL 12, 20.3.2 and 20.11.1."""


class _Connection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg is not typed
    """One that breaks soon after its link."""

    __slots__ = ()

    def __init__(self, protocol: Any, transport: Any, *more: Any) -> None:
        super().__init__(protocol, transport, *more)
        notice_dead_link(transport.get_extra_info("socket"))


class PostgresHosts:
    """Where the record is, whichever host has it now.

    While none answers, one caller at a time looks whether one does again, and all
    others are refused at once: else each would wait for its own time-out, and those
    behind them for a place in the pool.
    """

    def __init__(self) -> None:
        self._first = 0
        self._is_away = False
        self._is_tried = False
        self._again_at = 0.0

    async def connect(
        self,
        *,
        host: str | list[str] | None = None,
        port: int | list[int] | None = None,
        **options: Any,
    ) -> asyncpg.Connection:
        """Connect to the first host that will do, from the last one on that did.

        Args:
            host: one, or several; None for asyncpg's own choice.
            port: of it, or of each.
            options: of `asyncpg.connect`; `timeout` is that of each host.

        Raises:
            ConnectionRefusedError: they were away a moment ago, or somebody looks.
            OSError, asyncpg.PostgresError, asyncpg.InterfaceError: what the last host
                that was asked said.
        """
        hosts = host if isinstance(host, list) else [host]
        ports = port if isinstance(port, list) else [port] * len(hosts)
        places = [*zip(hosts, ports, strict=True)]
        if not self._is_away:
            return await self._connect(places, options)
        if self._is_tried or time.monotonic() < self._again_at:
            raise ConnectionRefusedError(_AWAY)
        self._is_tried = True
        try:
            return await self._connect(places, options)
        finally:
            self._is_tried = False

    async def _connect(
        self, places: list[tuple[str | None, int | None]], options: dict[str, Any]
    ) -> asyncpg.Connection:
        error: Exception = OSError("no host is named")
        begin = self._first
        for number in range(len(places)):
            place = (begin + number) % len(places)
            # A caller that leaves in the midst has this one passed over next time.
            self._first = (place + 1) % len(places)
            try:
                connection = await asyncpg.connect(
                    host=places[place][0],
                    port=places[place][1],
                    connection_class=_Connection,
                    server_settings=SERVER_SETTINGS,
                    **options,
                )
                await _have_compressed(connection, options.get("timeout"))
            except _PASSED_OVER as exc:
                error = exc
            else:
                self._first, self._is_away = place, False
                return connection
        self._is_away, self._again_at = True, time.monotonic() + _REST_S
        raise error


async def _have_compressed(
    connection: asyncpg.Connection, timeout_s: float | None
) -> None:
    """Have a new connection's server compress fast; none is left open by a failure."""
    try:
        await connection.execute(_COMPRESS_FAST, timeout=timeout_s)
    except BaseException:
        # Also of a caller that leaves in the midst.
        connection.terminate()
        raise


def ask_after_rest(engine: AsyncEngine) -> None:
    """Have the server asked before a connection is used that has rested.

    SQLAlchemy's own `pool_pre_ping` asks before each use, by three statements. One
    that breaks while it rests is known to be closed, whatever its last use; only a
    host that vanished says nothing, and whoever uses one soon after waits for it as
    in the midst of a transaction.

    Args:
        engine: of PostgreSQL, made without `pool_pre_ping`.
    """

    def use(connection: Any, record: Any, _proxy: object) -> None:
        if connection.driver_connection.is_closed():
            raise InvalidatePoolError
        rested_s = time.monotonic() - record.info.get(_USED, time.monotonic())
        if rested_s < _ASK_AFTER_S:
            return
        try:
            connection.run_async(_ask)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as exc:
            raise InvalidatePoolError from exc

    def leave(_connection: object, record: Any) -> None:
        record.info[_USED] = time.monotonic()

    event.listen(engine.sync_engine, "checkout", use)
    event.listen(engine.sync_engine, "checkin", leave)


async def _ask(connection: asyncpg.Connection) -> None:
    """Have the server answer a query.

    Raises:
        TimeoutError: it did not within `_ANSWER_S`.
        OSError, asyncpg.PostgresError, asyncpg.InterfaceError: the connection is none.
    """
    # Without parameters it prepares no statement, which a pooler before the server
    # might keep for another connection.
    await connection.execute("SELECT 1", timeout=_ANSWER_S)


def reading(engine: AsyncEngine) -> AsyncEngine:
    """The same connections for reading alone: no statement begins a transaction.

    There each statement sees what is committed then, in a transaction too; to begin
    and to end it would only be two more statements.

    Args:
        engine: of PostgreSQL.

    Returns:
        One whose statements raise `OperationalError` where they would write.
    """
    reader = engine.execution_options(isolation_level="AUTOCOMMIT")
    event.listen(reader.sync_engine, "before_cursor_execute", _refuse_writing)
    return reader


def _refuse_writing(
    _connection: object,
    _cursor: object,
    statement: str,
    _parameters: object,
    context: Any,
    _many: object,
) -> None:
    """Nobody would take it back, as SQLite refuses it too."""
    if context.isinsert or context.isupdate or context.isdelete or context.isddl:
        reason = PermissionError("this connection is for reading")
        raise OperationalError(statement, None, reason)
