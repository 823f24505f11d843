"""What every role stands on: the record, documents, and news."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from appliance.admission.connection_turns import ConnectionTurns
from appliance.database.engines import Engines, open_engines
from appliance.database.table_version import (
    Standing,
    TableVersion,
    newest,
    table_version,
)
from appliance.documents.blob_stores import document_store
from appliance.documents.document_keys import IntegratorDocumentKeys
from appliance.documents.sandbox_client import SandboxClient
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import new_id
from appliance.domain.ports import (
    BlobMaintenance,
    CompletionNotifier,
    PdfInspector,
    Sealer,
    WorkNotifier,
)
from appliance.messaging import redis_link
from appliance.record.database_clock import database_time
from appliance.record.unit_of_work import Database, store_faults
from appliance.secrets.key_files import KeyFile
from appliance.secrets.sealed_box import SecretBox
from appliance.settings import Settings, SettingsError
from appliance.system.clock_check import ClockCheck

_log = structlog.get_logger(__name__)
_LOOK_S = 3.0
"""Longest look at the tables as a process starts, in seconds."""
_SANDBOX_MARGIN_S = 5
"""The sandbox ends a late job itself; the client waits a little longer."""


@dataclass(frozen=True, slots=True)
class WorkChannel:
    """How a worker hears that there is work."""

    queue: str
    job: str
    connect: Callable[[], Any]
    """Makes a connection; awaited, gives an arq pool."""
    listen: Callable[[], AsyncIterator[str | None]]
    """Messages of the channel of work, for ever."""
    serialize: Callable[[dict[str, Any]], bytes]
    deserialize: Callable[[bytes], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Core:
    """What every role stands on."""

    settings: Settings
    clock: Clock
    process: str
    """Id of this process start."""
    store: Database
    documents: BlobMaintenance
    inspector: PdfInspector
    work_notifier: WorkNotifier
    completion_notifier: CompletionNotifier
    work_channel: WorkChannel
    tables: Callable[[], Awaitable[str]]
    """Gives `ok`, or a code where this version may not use the tables."""
    clock_check: ClockCheck
    redis_answers: Callable[[], Awaitable[bool | None]]
    """Pings Redis with a limit; None: this process may not connect to it."""


def data_sealer(settings: Settings) -> Sealer:
    """What seals and opens values with the data key.

    Args:
        settings: of the installation.

    Raises:
        SettingsError: its file cannot be used.
    """
    return SecretBox(KeyFile(settings.secrets.data_key_file))


def document_sealer(settings: Settings) -> Sealer:
    """What seals and opens the keys of documents with the document key.

    Args:
        settings: of the installation.

    Raises:
        SettingsError: its file cannot be used.
    """
    return SecretBox(KeyFile(settings.document_key_file))


class OpensCore(Protocol):
    """Opens what a face stands on, as `open_core` does."""

    def __call__(
        self, settings: Settings, clock: Clock, role: str, sealer: Sealer | None = None
    ) -> AbstractAsyncContextManager[Core]:
        """See `open_core`."""
        ...


@asynccontextmanager
async def open_core(
    settings: Settings, clock: Clock, role: str, sealer: Sealer | None = None
) -> AsyncIterator[Core]:
    """Build what every role stands on, and close it.

    Args:
        settings: of the installation.
        clock: the time.
        role: what this process is, for the audit.
        sealer: with the document key; None for who opens no document.

    Raises:
        SettingsError: a file that the settings name cannot be used, or the tables are
            too new.
    """
    redis_settings = redis_link.redis_settings(settings)
    engines = open_engines(settings)
    store = Database(engines, clock, role, ConnectionTurns(engines))
    document_keys = IntegratorDocumentKeys(store, sealer, clock)
    work_notifier = redis_link.RedisWorkNotifier(redis_settings)
    completion_notifier = redis_link.RedisCompletionNotifier(redis_settings)

    try:
        await _refuse_tables_too_new(engines)
        yield Core(
            settings=settings,
            clock=clock,
            process=new_id(),
            store=store,
            documents=document_store(settings, store, document_keys),
            inspector=SandboxClient(
                settings.sandbox_socket, settings.sandbox.wall_s + _SANDBOX_MARGIN_S
            ),
            work_notifier=work_notifier,
            completion_notifier=completion_notifier,
            work_channel=WorkChannel(
                queue=redis_link.QUEUE,
                job=redis_link.RING_JOB,
                connect=lambda: redis_link.connect_queue(redis_settings),
                listen=lambda: redis_link.listen(redis_settings, redis_link.BELL),
                serialize=redis_link.serialize,
                deserialize=redis_link.deserialize,
            ),
            tables=lambda: _tables_state(engines),
            clock_check=ClockCheck(clock, lambda: database_time(engines)),
            redis_answers=lambda: redis_link.answers(redis_settings),
        )
    finally:
        await work_notifier.close()
        await completion_notifier.close()
        await store.close()


async def _tables_state(engines: Engines) -> str:
    """`ok` where this version may use the tables, or else a code.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`.
    """
    found = await _found_tables(engines)
    standing = Standing.CURRENT if found.is_usable else found.standing
    return standing.value


async def _refuse_tables_too_new(engines: Engines) -> None:
    """Do not begin on tables that only a newer version may use.

    Tables that are still to be migrated, or a database that is away, are waited for:
    until then the role is not ready.

    Raises:
        SettingsError: they are too new.
    """
    try:
        async with asyncio.timeout(_LOOK_S):
            found = await _found_tables(engines)
    except (ApplianceError, TimeoutError):
        return
    if found.standing is Standing.TOO_NEW:
        raise SettingsError(found.refusal)
    if found.standing is Standing.NEWER:
        _log.info("tables.newer", version=found.version, known=newest())


async def _found_tables(engines: Engines) -> TableVersion:
    """What the database says of its tables.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`.
    """
    with store_faults():
        async with engines.reader.connect() as connection:
            return await table_version(connection)
