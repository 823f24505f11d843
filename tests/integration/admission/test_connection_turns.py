"""Who gets a connection to the record when many ask, on both databases."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from appliance.admission.work_owner import working_for
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.people.person_store import PersonStore
from tests.support.installation.record import CoreFixture

pytestmark = pytest.mark.storage

_PATIENCE_S = 60


class Holders:
    """Calls of one owner that read for as long as the test wants."""

    def __init__(self, core: CoreFixture, share: str, party: str) -> None:
        self._core = core
        self._owner = share, party
        self._over = asyncio.Event()
        self.held = 0
        self.tasks: list[asyncio.Task[None]] = []

    def ask(self, count: int) -> None:
        """Have that many more ask."""
        with working_for(*self._owner):
            self.tasks += [asyncio.create_task(self._hold()) for _ in range(count)]

    async def _hold(self) -> None:
        async with self._core.store.read():
            self.held += 1
            await self._over.wait()

    async def end(self) -> list[BaseException | None]:
        """Let go of all."""
        self._over.set()
        return await asyncio.gather(*self.tasks, return_exceptions=True)


async def read(core: CoreFixture, share: str) -> None:
    """Read something for somebody."""
    with working_for(share, share):
        async with asyncio.timeout(_PATIENCE_S), core.store.read() as transaction:
            await PersonStore(transaction).by_cuil("20267565393")


async def settled(holders: Holders, count: int) -> None:
    """Wait until that many hold a connection."""
    async with asyncio.timeout(_PATIENCE_S):
        while holders.held < count:  # noqa: ASYNC110 (several tasks' own pace)
            await asyncio.sleep(0.01)


async def open_all(core: CoreFixture) -> None:
    """Open every connection: how long that takes would pass for a turn."""
    async with AsyncExitStack() as held:
        for _ in range(core.settings.database.pool_size):
            await held.enter_async_context(core.store.read())


async def test_one_party_holds_half_of_the_connections(core: CoreFixture) -> None:
    """However many of its calls wait, the others' go on."""
    half = core.settings.database.pool_size // 2
    flood = Holders(core, "acme", "session:1")
    flood.ask(40)
    await settled(flood, half)

    await read(core, "beta")
    await read(core, "gamma")

    assert flood.held == half
    assert set(await flood.end()) == {None}


async def test_one_integrator_never_holds_all(core: CoreFixture) -> None:
    """Whatever its sessions do."""
    most = core.settings.database.pool_size - 1
    floods = [Holders(core, "acme", f"session:{number}") for number in range(20)]
    for flood in floods:
        flood.ask(1)
    async with asyncio.timeout(_PATIENCE_S):
        while sum(flood.held for flood in floods) < most:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    await read(core, "beta")

    assert sum(flood.held for flood in floods) == most
    for flood in floods:
        await flood.end()


async def test_too_many_are_told_at_once(core: CoreFixture) -> None:
    """503 `OVERLOADED`, instead of a wait without end."""
    flood = Holders(core, "acme", "session:1")
    flood.ask(core.settings.database.pool_size // 2)
    await settled(flood, core.settings.database.pool_size // 2)
    flood.ask(128)
    await asyncio.sleep(0)

    with pytest.raises(ApplianceError) as caught, working_for("acme", "session:1"):
        async with core.store.read():
            pass

    assert caught.value.code is ErrorCode.OVERLOADED
    assert set(await flood.end()) == {None}


async def test_who_holds_one_gets_another(core: CoreFixture) -> None:
    """Or all might wait for each other."""
    with working_for("acme", "session:1"):
        async with AsyncExitStack() as held, asyncio.timeout(_PATIENCE_S):
            for _ in range(core.settings.database.pool_size // 2 + 1):
                await held.enter_async_context(core.store.read())

        async with core.store.read() as transaction:
            await PersonStore(transaction).by_cuil("20267565393")


async def test_writers_take_turns(core: CoreFixture) -> None:
    """A hundred writes of one are passed by another's at its turn."""
    await open_all(core)
    order: list[str] = []
    beta_came = asyncio.Event()

    async def write(share: str) -> None:
        with working_for(share, share):
            async with core.store.write():
                order.append(share)
                if share == "beta":
                    beta_came.set()
                # PostgreSQL lets several write at once, and who began first need not
                # be the first to get on. So those who come late wait for beta, who
                # never comes if they had to end before its turn.
                if len(order) >= 20:
                    await beta_came.wait()

    async with core.store.write():
        tasks = [asyncio.create_task(write("acme")) for _ in range(100)]
        tasks.append(asyncio.create_task(write("beta")))
        await asyncio.sleep(0)
    async with asyncio.timeout(_PATIENCE_S):
        await asyncio.gather(*tasks)

    assert order.index("beta") < 20 + core.settings.database.pool_size
