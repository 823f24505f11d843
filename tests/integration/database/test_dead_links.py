"""Links that die without a word: noticed within seconds, and let go of on both ends.

Source: docs/database.md "Failover"; `appliance.system.dead_connections`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.bootstrap.core import _tables_state
from appliance.database.engines import Engines, open_engines
from appliance.database.migrate import migrate
from appliance.documents.local.folder_mark import DocumentMark
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.keys.health import Health
from appliance.messaging.redis_link import NEWS, listen, redis_settings
from appliance.record.database_clock import database_time
from appliance.record.unit_of_work import Database, store_faults
from appliance.settings import RedisSettings, Settings
from appliance.system.clock_check import ClockCheck
from appliance.system.dead_connections import NOTICED_S
from tests.support.factories.fake_sandbox import PlayedSandbox
from tests.support.hosts.database_host import USER, DatabaseHost
from tests.support.hosts.network import Host, Network, can_make_networks
from tests.support.hosts.several_hosts import REDIS_PORT, RedisHost
from tests.support.installation.settings import settings_in
from tests.support.processes.scratch import short_folder

Result = TypeVar("Result")
NOTICED_AT_MOST_S = 4.0 * NOTICED_S
"""On a machine that is busy with other things; without our doing it is 30 s or more."""
CALLERS = 40
LOOK_S = 0.1
LOOKED_AT_MOST_S = 12.0
"""Three times as long as on a quiet machine: cancelling a statement over a dead link
takes two seconds more."""
pytestmark = [
    # They wait for most of their time, and leave the machine to others meanwhile.
    pytest.mark.full,
    pytest.mark.skipif(not can_make_networks(), reason="it takes root and iproute2"),
]


@dataclass
class SeparateHosts:
    """A client on a host of its own, two databases and a Redis on others."""

    network: Network
    client: Host
    first: DatabaseHost
    second: DatabaseHost
    redis: RedisHost
    settings: Settings

    @contextmanager
    def away(self, host: Host) -> Iterator[None]:
        """Have a host be cut off meanwhile."""
        self.network.cut(host)
        try:
            yield
        finally:
            self.network.mend(host)

    def at_client(self, work: Callable[[Engines], Awaitable[Result]]) -> Result:
        """Do something with the database from the client's host."""

        async def run() -> Result:
            engines = open_engines(self.settings)
            try:
                return await work(engines)
            finally:
                await engines.dispose()

        return self.client.within(lambda: asyncio.run(run()))


@pytest.fixture(scope="module")
def separate_hosts() -> Iterator[SeparateHosts]:
    """All of it, and settings that name both databases."""
    with short_folder() as folder, Network.made() as network:
        folder.chmod(0o711)
        first = DatabaseHost.made(network.host("db-a"), folder / "a")
        second = first.standby(network.host("db-b"), folder / "b")
        redis = RedisHost(network.host("redis"), folder)
        redis.start()
        (folder / "pw").write_text(first.password, "ascii")
        hosts = f"{first.host.address},{second.host.address}"
        url = f"postgresql://{USER}@{hosts}/{USER}"
        database = {"url": url, "password_file": str(folder / "pw")}
        settings = settings_in(folder, database=database).model_copy(
            update={
                "redis": RedisSettings(
                    url=f"redis://{redis.host.address}:{REDIS_PORT}/0"
                )
            }
        )
        try:
            client = network.host("client")
            yield SeparateHosts(network, client, first, second, redis, settings)
        finally:
            redis.kill()
            first.kill()
            second.kill()


async def ask(connection: AsyncConnection, sql: str = "SELECT 1") -> object:
    """One statement's one value."""
    return (await connection.execute(text(sql))).scalar_one()


async def asked(engines: Engines, sql: str = "SELECT 1") -> ErrorCode | None:
    """How a statement ends for who works with the record."""
    try:
        with store_faults():
            async with engines.reader.connect() as connection:
                await ask(connection, sql)
    except ApplianceError as exc:
        return exc.code
    return None


async def well_again(engines: Engines) -> None:
    """Wait until statements are answered; for a moment all are refused."""
    async with asyncio.timeout(NOTICED_AT_MOST_S):
        while await asked(engines) is not None:  # noqa: ASYNC110 (it tells nobody)
            await asyncio.sleep(LOOK_S)


@pytest.mark.parametrize("statement", ["SELECT 1", "SELECT pg_sleep(25)"])
def test_dead_link_to_the_database_is_noticed(
    separate_hosts: SeparateHosts, statement: str
) -> None:
    """Before a statement, or while one runs; once it is there again, all is well."""

    async def work(engines: Engines) -> tuple[list[ErrorCode | None], float]:
        assert await asked(engines) is None
        running = asyncio.create_task(asked(engines, statement))
        # So long that the server has taken what takes its time.
        await asyncio.wait({running}, timeout=0.5)
        with separate_hosts.away(separate_hosts.client):
            begun = time.monotonic()
            codes = [await asked(engines), await running]
            took_s = time.monotonic() - begun
        await well_again(engines)
        return codes, took_s

    (new, begun), took_s = separate_hosts.at_client(work)

    assert new is ErrorCode.STORE_UNAVAILABLE
    assert begun is (ErrorCode.STORE_UNAVAILABLE if "sleep" in statement else None)
    assert took_s < NOTICED_AT_MOST_S


def test_callers_are_refused_at_once_while_all_hosts_are_away(
    separate_hosts: SeparateHosts,
) -> None:
    """One of them looks whether that is over; the others do not queue behind it."""

    async def timed(engines: Engines) -> float:
        begun = time.monotonic()
        assert await asked(engines) is ErrorCode.STORE_UNAVAILABLE
        return time.monotonic() - begun

    async def work(engines: Engines) -> list[float]:
        with separate_hosts.away(separate_hosts.client):
            await timed(engines)
            return await asyncio.gather(*(timed(engines) for _ in range(CALLERS)))

    took_s = sorted(separate_hosts.at_client(work))

    # Were they to queue, the one in the middle would wait for half of all looks.
    assert took_s[CALLERS // 2] < took_s[-1] / 3
    assert separate_hosts.at_client(asked) is None


def test_server_lets_go_of_what_a_dead_host_had_locked(
    separate_hosts: SeparateHosts,
) -> None:
    """Else all others would wait for a host that is not there."""
    separate_hosts.first.execute("CREATE TABLE IF NOT EXISTS thing (n int)")
    wanted = f"SET lock_timeout = '{NOTICED_AT_MOST_S}s'; LOCK TABLE thing"

    async def work(engines: Engines) -> None:
        async with engines.writer.connect() as connection:
            await connection.execute(text("LOCK TABLE thing"))
            with separate_hosts.away(separate_hosts.client):
                await asyncio.to_thread(
                    separate_hosts.first.execute, f"BEGIN; {wanted}; COMMIT"
                )
            # The server has ended it, and nobody here knows by now.
            with suppress(Exception):
                await connection.rollback()
            await connection.invalidate()

    separate_hosts.at_client(work)


def test_readiness_is_told_in_time_over_a_dead_link(
    separate_hosts: SeparateHosts, tmp_path: Path
) -> None:
    """A balancer waits for a few seconds, not for the driver."""

    async def work(engines: Engines) -> tuple[dict[str, str], float]:
        await migrate(separate_hosts.settings)
        clock = SystemClock()
        store = Database(engines, clock, "test")
        health = Health(
            store,
            PlayedSandbox(),
            clock,
            lambda: _tables_state(engines),
            ClockCheck(clock, lambda: database_time(engines)),
            DocumentMark(store, tmp_path).check,
        )
        await health.ready()
        with separate_hosts.away(separate_hosts.client):
            begun = time.monotonic()
            told = await health.ready()
            return told, time.monotonic() - begun

    told, took_s = separate_hosts.at_client(work)

    assert told["database"] in {"TIMEOUT", "STORE_UNAVAILABLE"}
    assert took_s < LOOKED_AT_MOST_S


def test_silent_redis_is_noticed_and_heard_again(separate_hosts: SeparateHosts) -> None:
    """By who listens for news, and says nothing itself."""

    async def run() -> float:
        told: asyncio.Queue[bool] = asyncio.Queue()

        def tell(*, hears: bool) -> None:
            told.put_nowait(hears)

        async def hear() -> None:
            async for _ in listen(redis_settings(separate_hosts.settings), NEWS, tell):
                pass

        listening = asyncio.create_task(hear())
        assert await told.get()
        with separate_hosts.away(separate_hosts.redis.host):
            begun = time.monotonic()
            async with asyncio.timeout(NOTICED_AT_MOST_S):
                assert not await told.get()
            took_s = time.monotonic() - begun
        async with asyncio.timeout(NOTICED_AT_MOST_S):
            while not await told.get():
                pass
        listening.cancel()
        await asyncio.wait({listening})
        return took_s

    assert separate_hosts.client.within(lambda: asyncio.run(run())) < NOTICED_AT_MOST_S


def test_standby_takes_over_from_a_host_that_is_silent(
    separate_hosts: SeparateHosts,
) -> None:
    """Connections go to who takes writes now, and to that one first from then on.

    The last one here: the first database is cut off.
    """

    async def work(engines: Engines) -> list[object]:
        assert await asked(engines) is None
        separate_hosts.network.cut(separate_hosts.first.host)
        separate_hosts.second.promote()
        await well_again(engines)
        begun = time.monotonic()
        async with engines.reader.connect() as one, engines.reader.connect() as two:
            found = [
                await ask(each, "SELECT inet_server_addr()") for each in (one, two)
            ]
        return [*map(str, found), time.monotonic() - begun]

    one, two, took_s = separate_hosts.at_client(work)
    # Who starts only now asks the silent one first.
    assert separate_hosts.at_client(asked) is None

    assert one == two == separate_hosts.second.host.address
    assert isinstance(took_s, float)
    assert took_s < NOTICED_S
