"""Connections to the database are waited for, but not for ever."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from asyncpg.connection import LoggedQuery
from sqlalchemy import text

from appliance.database.engines import Engines, open_engines
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.record.unit_of_work import Database
from tests.support.installation.api import API
from tests.support.installation.installation import Installation
from tests.support.installation.record import lay_tables
from tests.support.patience import CALL_S
from tests.support.services.postgres import USER, PostgresServer, database_name
from tests.support.services.tcp_links import Link


@pytest.mark.parametrize("write", [False, True])
async def test_call_beyond_the_pool_is_told_so(tmp_path: Path, *, write: bool) -> None:
    """Whoever waited `database.busy_timeout_s` in vain gets 503, and others go on."""
    database = {"pool_size": 1, "busy_timeout_s": 0.2}
    settings = Installation(tmp_path, database=database).settings(API)
    await lay_tables(settings)
    store = Database(open_engines(settings), SystemClock(), "test")

    async def one() -> None:
        async with store.write() if write else store.read() as transaction:
            await transaction.audit.writers()

    async with store.write() if write else store.read() as transaction:
        await transaction.audit.writers()
        waiting = await asyncio.gather(
            *(one() for _ in range(5)), return_exceptions=True
        )
    await one()

    assert [fault.code for fault in waiting if isinstance(fault, ApplianceError)] == [
        ErrorCode.STORE_UNAVAILABLE
    ] * 5
    await store.close()


async def test_statement_that_takes_too_long_is_told_so(
    tmp_path: Path, migrated_url: str
) -> None:
    """A table that somebody keeps locked makes nobody wait for ever."""
    settings = Installation(tmp_path, database={"url": migrated_url}).settings(API)
    engines = open_engines(settings, statement_s=0.3)
    store = Database(engines, SystemClock(), "test")

    async with engines.writer.begin() as other:
        await other.execute(text("LOCK TABLE audit_writer IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(ApplianceError) as caught:
            async with store.read() as transaction:
                await transaction.audit.writers()
    async with store.read() as transaction:
        await transaction.audit.writers()

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    await store.close()


async def test_server_compiles_no_statement(tmp_path: Path, migrated_url: str) -> None:
    """For a batch of 200 it took seconds, for what runs in milliseconds."""
    engines = open_engines(
        Installation(tmp_path, database={"url": migrated_url}).settings(API)
    )

    async with engines.reader.connect() as connection:
        found = (await connection.execute(text("SHOW jit"))).scalar_one()

    await engines.dispose()
    assert found == "off"


async def test_server_compresses_fast_where_it_can(
    tmp_path: Path, migrated_url: str
) -> None:
    """What is kept of a document until it is published is 40 KB."""
    engines = open_engines(
        Installation(tmp_path, database={"url": migrated_url}).settings(API)
    )
    setting = "FROM pg_settings WHERE name = 'default_toast_compression'"

    async with engines.reader.connect() as connection:
        query = text(f"SELECT setting, enumvals {setting}")
        found = (await connection.execute(query)).one_or_none()

    await engines.dispose()
    if found is None:
        pytest.skip("it is older than PostgreSQL 14")
    assert found.setting == ("lz4" if "lz4" in found.enumvals else "pglz")


@dataclass
class OneConnection:
    """A record on PostgreSQL with one connection, and what it is told besides SQL."""

    store: Database
    engines: Engines
    controls: list[str] = field(default_factory=list)
    """Begins and ends of transactions, and questions whether it is alive."""

    def note(self, record: LoggedQuery) -> None:
        """Of the driver, which tells no statement that was prepared."""
        self.controls.append(record.query.strip(";").partition(" ")[0])


@pytest.fixture
async def one_connection(
    tmp_path: Path, migrated_url: str
) -> AsyncIterator[OneConnection]:
    """Its connection has been used just now."""
    settings = Installation(
        tmp_path, database={"url": migrated_url, "pool_size": 1, "busy_timeout_s": 5}
    ).settings(API)
    engines = open_engines(settings)
    found = OneConnection(Database(engines, SystemClock(), "test"), engines)
    async with engines.reader.connect() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection
    async with found.store.write() as transaction:
        await transaction.audit.writers()
    raw.add_query_logger(found.note)
    yield found
    await found.store.close()


async def test_reading_takes_its_statements_and_nothing_besides(
    one_connection: OneConnection,
) -> None:
    """Neither a question whether it is alive, nor a transaction around them."""
    async with one_connection.store.read() as transaction:
        await transaction.audit.writers()
        await transaction.audit.writers()

    assert one_connection.controls == []


async def test_writing_begins_and_ends_one_transaction(
    one_connection: OneConnection,
) -> None:
    """Also after the same connection has read."""
    async with one_connection.store.read() as transaction:
        await transaction.audit.writers()
    async with one_connection.store.write() as transaction:
        await transaction.audit.writers()
        await transaction.audit.writers()

    assert one_connection.controls == ["BEGIN", "COMMIT"]


async def test_connection_that_rested_is_asked_first(
    one_connection: OneConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is alive: one that a dead host left would fail its next user."""
    monkeypatch.setattr("appliance.database.postgres_hosts._ASK_AFTER_S", 0.0)

    async with one_connection.store.read() as transaction:
        await transaction.audit.writers()

    assert one_connection.controls == ["SELECT"]


async def test_database_that_hangs_is_told_as_away(
    tmp_path: Path,
    migrated_url: str,
    postgres_server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that was stopped keeps its connections and answers nothing on them.

    A statement may take any time here: the question before it is what notices.
    """
    hosts = "appliance.database.postgres_hosts"
    monkeypatch.setattr(f"{hosts}._ASK_AFTER_S", 0.0)
    monkeypatch.setattr(f"{hosts}._REST_S", 0.0)
    password = tmp_path / "pw"
    password.write_text(postgres_server.password, "ascii")
    with Link(postgres_server.port) as link:
        name = database_name(migrated_url)
        url = f"postgresql://{USER}@127.0.0.1:{link.port}/{name}"
        database = {"url": url, "password_file": str(password)}
        settings = Installation(tmp_path, database=database).settings(API)
        engines = open_engines(settings, statement_s=None)
        store = Database(engines, SystemClock(), "test")
        async with store.read() as transaction:
            await transaction.audit.writers()
        with monkeypatch.context() as hurried:
            hurried.setattr(f"{hosts}._ANSWER_S", 0.3)
            with link.cut():
                async with asyncio.timeout(CALL_S):
                    with pytest.raises(ApplianceError) as caught:
                        async with store.read() as transaction:
                            await transaction.audit.writers()
        async with store.read() as transaction:
            await transaction.audit.writers()
        await store.close()

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE


async def test_connection_that_was_closed_meanwhile_is_made_anew(
    one_connection: OneConnection,
) -> None:
    """However short its rest was."""
    async with one_connection.engines.reader.connect() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection
    raw.terminate()

    async with one_connection.store.read() as transaction:
        await transaction.audit.writers()

    assert raw.is_closed()


async def test_connection_used_last_is_used_next(
    tmp_path: Path, migrated_url: str
) -> None:
    """Each has statements of its own to prepare: of many one knows them already."""
    settings = Installation(
        tmp_path, database={"url": migrated_url, "pool_size": 3}
    ).settings(API)
    engines = open_engines(settings)
    asked = text("SELECT pg_backend_pid()")

    async with engines.reader.connect() as first, engines.writer.connect() as second:
        await first.execute(asked)
        last = (await second.execute(asked)).scalar_one()
        await first.close()
    async with engines.reader.connect() as again:
        found = (await again.execute(asked)).scalar_one()

    await engines.dispose()
    assert found == last
