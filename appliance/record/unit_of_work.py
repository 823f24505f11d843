"""Transactions of the database, and what the stores of every feature are made of.

Those for whom a process works take turns for its connections, as `Turns` has it
(`appliance.admission.connection_turns`).

A change that was made from an earlier state says so by a precondition, which its
transaction checks first (`demanding`).
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

import structlog
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.database import tables
from appliance.database.engines import Engines
from appliance.database.upsert import insert_into
from appliance.domain.audit.record import GENESIS
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import new_id
from appliance.record.audit_store import AuditHead, SqlAudit

_log = structlog.get_logger(__name__)
_AWAY = (OperationalError, InterfaceError, PoolTimeoutError, OSError)
_AWAY_STATES = ("08", "40", "53", "57")
"""Classes of SQLSTATE: connection, deadlock, resources, a stop by an operator."""

_DENIED = "42501"
"""SQLSTATE of what the user of the database has no right to."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """What is read together, or written together: stores are made of it."""

    connection: AsyncConnection
    audit: SqlAudit
    """What happened, written as the last statement."""
    clock: Clock
    """The time of rows."""


class Store:
    """SQL of one group of tables, within a transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._connection = transaction.connection
        self._clock = transaction.clock


class Demand(Protocol):
    """A precondition of a change (`appliance.record.edit_versions`)."""

    is_met: bool
    """Set once a transaction that checked it is committed."""

    @property
    def is_held_by_use_case(self) -> bool:
        """True if the use case calls `demand` after it has locked its rows."""

    async def check(self, transaction: Transaction) -> None:
        """Refuse the change if the precondition does not hold."""


_demand: ContextVar[Demand | None] = ContextVar("rubrica.demand", default=None)


@contextmanager
def demanding(precondition: Demand | None) -> Iterator[None]:
    """Have the next transaction that writes check a precondition first.

    Later transactions of the block are further steps of the same change and check
    nothing, once the first one is committed.

    Args:
        precondition: of the change; None: of what the block does, nothing is demanded.
    """
    token = _demand.set(precondition)
    try:
        yield
    finally:
        _demand.reset(token)


def demand_here(precondition: Demand | None) -> None:
    """Demand a precondition for the rest of this task, such as a request.

    Args:
        precondition: as of `demanding`.
    """
    _demand.set(precondition)


async def demand(transaction: Transaction) -> None:
    """Check the precondition of a use case that locks its rows by itself.

    Args:
        transaction: of the change, in which the rows are locked.

    Raises:
        ChangedMeanwhileError: it does not hold.
    """
    precondition = _demand.get()
    if precondition is not None and precondition.is_held_by_use_case:
        await precondition.check(transaction)


class Turns(Protocol):
    """Whose turn it is for one of the connections of a process.

    Either block may raise `ApplianceError` (`OVERLOADED`) as it is entered.
    """

    def reading(self) -> AbstractAsyncContextManager[None]:
        """Hold a place among those who read, for the block."""

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Hold a place among those who write, for the block."""


class _NoTurns:
    """Nobody waits: commands, and whoever has a process to themselves."""

    def reading(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def writing(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class Database:
    """Transactions over the engines of one process.

    Args:
        engines: where to read and write; closed by `close`.
        clock: the time of audit rows.
        role: what this process is, for its audit writer.
        turns: for the connections; None: nobody waits for another.
    """

    def __init__(
        self, engines: Engines, clock: Clock, role: str, turns: Turns | None = None
    ) -> None:
        self._engines = engines
        self._clock = clock
        self._role = role
        self._user = engines.reader.url.username
        self._writer = new_id()
        self._head = AuditHead()
        self._registered = False
        self._registering = asyncio.Lock()
        self._turns: Turns = turns or _NoTurns()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Transaction]:
        """Read what is committed; nothing can be written.

        On SQLite all statements see one state, on PostgreSQL each the newest.

        Raises:
            ApplianceError: `OVERLOADED`, `STORE_UNAVAILABLE`.
        """
        with store_faults(self._user):
            async with (
                self._turns.reading(),
                self._engines.reader.connect() as connection,
            ):
                audit = SqlAudit(connection, self._writer, self._clock, self._head)
                yield Transaction(connection, audit, self._clock)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """Change the record: all of it at the end, or nothing on any error.

        Raises:
            ApplianceError: `OVERLOADED`, `STORE_UNAVAILABLE`.
            ChangedMeanwhileError: a precondition does not hold (`demanding`).
        """
        precondition = _demand.get()
        with store_faults(self._user):
            if not self._registered:
                await self._register()
            async with (
                self._turns.writing(),
                self._engines.writing() as connection,
            ):
                audit = SqlAudit(connection, self._writer, self._clock, self._head)
                transaction = Transaction(connection, audit, self._clock)
                if precondition is not None and not (
                    precondition.is_met or precondition.is_held_by_use_case
                ):
                    await precondition.check(transaction)
                yield transaction
                # Last, so that the writer's row is locked for the shortest
                # time and a rollback leaves no hole in its numbers.
                if audit.queued:
                    await audit.flush()
            if precondition is not None:
                precondition.is_met = True

    async def _register(self) -> None:
        """Give this process start its row, once."""
        # Whoever writes second waits until the row is committed.
        async with self._registering:
            if self._registered:
                return
            async with self._engines.writing() as connection:
                # A caller that left between commit and return left the row.
                await connection.execute(
                    insert_into(connection, tables.audit_writer)
                    .values(
                        id=self._writer,
                        role=self._role,
                        started=self._clock.now(),
                        n=0,
                        hash=GENESIS,
                    )
                    .on_conflict_do_nothing()
                )
            self._registered = True

    async def close(self) -> None:
        """Close every connection."""
        await self._engines.dispose()


@contextmanager
def store_faults(user: str | None = None) -> Iterator[None]:
    """Turn a database that is away into `STORE_UNAVAILABLE`.

    So it does with a right that is missing, which is logged.

    Args:
        user: of the database, for the log.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`.
    """
    try:
        yield
    except Exception as exc:
        if isinstance(exc, IntegrityError):
            raise
        if (denied := denied_right(exc)) is not None:
            # Not away, and no retry will do: an operator has to look.
            _log.error("store.permission_denied", user=user, **denied)
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc
        if isinstance(exc, _AWAY) or (isinstance(exc, DBAPIError) and _away(exc)):
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc
        raise


def denied_right(exc: BaseException | None) -> dict[str, str] | None:
    """What a right is missing for, in PostgreSQL's words, and what to do about it.

    Args:
        exc: of a statement.

    Returns:
        Fields for the log, or None for any other error.
    """
    if not isinstance(exc, DBAPIError) or exc.statement is None:
        return None
    if getattr(exc.orig, "sqlstate", None) != _DENIED:
        return None
    # "permission denied for table person": asyncpg's own error below SQLAlchemy's.
    told = str(getattr(exc.orig, "__cause__", None) or exc.orig)
    return {
        "reason": told.partition("\n")[0],
        "statement": exc.statement.split(maxsplit=1)[0],
        "remedy": "run rubrica migrate",
    }


def _away(exc: DBAPIError) -> bool:
    """Whether an error is none of the statement's: asyncpg's come in one kind."""
    # Without a statement it was refused while connecting: the server starts,
    # stops, or takes no more.
    return (
        exc.connection_invalidated
        or exc.statement is None
        or str(getattr(exc.orig, "sqlstate", "")).startswith(_AWAY_STATES)
    )
