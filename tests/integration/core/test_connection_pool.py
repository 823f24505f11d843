"""Connections to the database are waited for, but not for ever."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from appliance.core.database.engines import open_engines
from appliance.core.unit_of_work import Database
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode
from tests.support.faces.api_services import make_settings
from tests.support.factories.migrated_folder import lay_tables


@pytest.mark.parametrize("write", [False, True])
async def test_call_beyond_the_pool_is_told_so(tmp_path: Path, *, write: bool) -> None:
    """Whoever waited `database.busy_timeout_s` in vain gets 503, and others go on."""
    database = {"pool_size": 1, "busy_timeout_s": 0.2}
    settings = make_settings(tmp_path, database=database)
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
    tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that somebody keeps locked makes nobody wait for ever."""
    monkeypatch.setattr("appliance.core.database.engines._STATEMENT_S", 0.3)
    settings = make_settings(tmp_path, database={"url": migrated_url})
    engines = open_engines(settings)
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
    engines = open_engines(make_settings(tmp_path, database={"url": migrated_url}))

    async with engines.reader.connect() as connection:
        found = (await connection.execute(text("SHOW jit"))).scalar_one()

    await engines.dispose()
    assert found == "off"
