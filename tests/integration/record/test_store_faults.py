"""What becomes of a transaction when the database or its caller goes away."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from sqlalchemy import text

from appliance.bootstrap.core import _tables_state
from appliance.database.engines import open_engines
from appliance.database.migrate import migrate
from appliance.documents.local.folder_mark import DocumentMark
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.vocab import EventKind
from appliance.keys.health import Health
from appliance.people.person_store import PersonStore
from appliance.record.database_clock import database_time
from appliance.record.unit_of_work import Database
from appliance.system.clock_check import ClockCheck
from tests.support.factories.fake_sandbox import PlayedSandbox
from tests.support.factories.fakes import error_code
from tests.support.installation.record import CoreFixture, open_record
from tests.support.installation.settings import settings_in
from tests.support.services.postgres import PostgresServer, database_name

pytestmark = pytest.mark.storage

EVENT = AuditEvent(EventKind.REQUEST_VIEWED, "system")
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"


async def code_of(store: Database, *, write: bool) -> ErrorCode | None:
    """How a transaction ends."""

    async def look() -> None:
        async with store.write() if write else store.read() as transaction:
            await transaction.audit.writers()

    return await error_code(look())


@pytest.mark.parametrize("write", [False, True])
async def test_store_unavailable_when_postgres_is_away(
    tmp_path: Path, *, write: bool
) -> None:
    """Nobody listens: `STORE_UNAVAILABLE`, and nothing else."""
    url = f"postgresql://rubrica@/none?host={tmp_path}&port=5432"
    store = Database(open_engines(settings_in(tmp_path, url)), SystemClock(), "test")

    assert await code_of(store, write=write) is ErrorCode.STORE_UNAVAILABLE

    await store.close()


@pytest.mark.parametrize("write", [False, True])
async def test_store_comes_back_with_postgres(
    tmp_path: Path, postgres_server: PostgresServer, migrated_url: str, *, write: bool
) -> None:
    """Connections are cut and new ones refused; later the same store works."""
    name = database_name(migrated_url)
    async with open_record(settings_in(tmp_path, migrated_url)) as core:
        assert await code_of(core.store, write=True) is None

        postgres_server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        postgres_server.execute(CUT.format(name=name))
        away = await code_of(core.store, write=write)
        postgres_server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        back = await code_of(core.store, write=write)

    assert (away, back) == (ErrorCode.STORE_UNAVAILABLE, None)


async def test_store_unavailable_when_postgres_goes_in_mid_transaction(
    tmp_path: Path, postgres_server: PostgresServer, migrated_url: str
) -> None:
    """A connection that is cut under a transaction takes all of it back."""
    name = database_name(migrated_url)
    async with open_record(settings_in(tmp_path, migrated_url)) as core:
        signer = await core.add_signer()

        async def count() -> None:
            async with core.store.write() as transaction:
                await PersonStore(transaction).set_counted(signer.person, 5, None)
                postgres_server.execute(CUT.format(name=name))
                await PersonStore(transaction).signing_secret(signer.person)

        with pytest.raises(ApplianceError) as caught:
            await count()

        async with core.store.read() as transaction:
            secret = await PersonStore(transaction).signing_secret(signer.person)
    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    assert secret is not None
    assert secret.counted == 0


async def test_store_unavailable_when_sqlite_stays_locked(tmp_path: Path) -> None:
    """Another process holds the file longer than the time-out."""
    settings = settings_in(tmp_path, database={"url": "sqlite", "busy_timeout_s": 0.1})
    await migrate(settings)
    async with open_record(settings) as core:
        holder = open_engines(settings)
        async with holder.writer.begin() as connection:
            await connection.execute(text("DELETE FROM audit_event"))
            locked = await code_of(core.store, write=True)
            readable = await code_of(core.store, write=False)
        freed = await code_of(core.store, write=True)
        await holder.dispose()

    assert (locked, readable, freed) == (ErrorCode.STORE_UNAVAILABLE, None, None)


async def test_read_writes_nothing(core: CoreFixture) -> None:
    """What is written in a reading transaction is refused or forgotten."""
    signer = await core.add_signer()

    with contextlib.suppress(ApplianceError):
        async with core.store.read() as transaction:
            await PersonStore(transaction).set_counted(signer.person, 5, None)

    async with core.store.read() as transaction:
        secret = await PersonStore(transaction).signing_secret(signer.person)
    assert secret is not None
    assert secret.counted == 0


async def test_store_works_on_after_callers_left_at_any_moment(
    core: CoreFixture,
) -> None:
    """Callers cancelled in the middle leave no lock, no hole, no half of a change."""

    async def write() -> None:
        async with core.store.write() as transaction:
            transaction.audit.add(EVENT)
            await transaction.audit.writers()
            transaction.audit.add(EVENT)

    async def read() -> None:
        async with core.store.read() as transaction:
            await transaction.audit.writers()

    for wait in range(40):
        tasks = [asyncio.create_task(work()) for work in (write, read, write)]
        await asyncio.sleep(wait * 0.0005)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    await asyncio.wait_for(write(), 5)
    rows = await core.audit()
    assert [row.n for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) % 2 == 0


async def test_readiness_tells_that_postgres_refuses(tmp_path: Path) -> None:
    """It is an answer, not a fault."""
    url = f"postgresql://rubrica@/none?host={tmp_path}&port=5432"
    engines = open_engines(settings_in(tmp_path, url))
    store = Database(engines, SystemClock(), "test")
    clock = SystemClock()
    check = ClockCheck(clock, lambda: database_time(engines))
    health = Health(
        store,
        PlayedSandbox(),
        clock,
        lambda: _tables_state(engines),
        check,
        DocumentMark(store, tmp_path).check,
    )

    checks = await health.ready()

    assert checks["database"] == checks["hsm"] == "STORE_UNAVAILABLE"
    assert checks["clock"] == "STORE_UNAVAILABLE"
    assert checks["documents"] == "STORE_UNAVAILABLE"
    await store.close()
