"""Processes that say they are alive, and what Salud shows of those that do not."""

import asyncio
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest

from appliance.bootstrap import heartbeat
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.keys.worker_store import WorkerStore
from tests.support.installation.console import Console
from tests.support.installation.installation import Installation

pytestmark = pytest.mark.storage

SOON_S = 60


@pytest.fixture
async def console(tmp_path: Path, each_url: str) -> AsyncIterator[Console]:
    """A console on either database."""
    async with Installation(tmp_path, each_url).console() as made:
        yield made


async def slots(console: Console) -> dict[str, WorkerStatus]:
    """Every process that was seen, by role."""
    views = await console.front.views.workers()
    return {one.slot.partition("/")[0]: one for one in views}


async def seen(console: Console, role: str) -> WorkerStatus:
    """Wait for a process's first sign of life."""
    async with asyncio.timeout(SOON_S):
        while role not in (found := await slots(console)):
            pass  # The record is asked each time, so others have their turn.
    return found[role]


async def beat(console: Console, slot: str, hsm: str, age_s: float = 0) -> None:
    """What a process said of itself, some time ago."""
    at = console.clock.now()
    async with console.services.store.write() as transaction:
        status = WorkerStatus(slot, "p", at, hsm, "")
        await WorkerStore(transaction).beat(status)
    console.clock.forward(age_s)


def rows(text: str) -> dict[str, str]:
    """What the page says of each process, by slot or missing role."""
    table = text[text.index('aria-labelledby="workers"') :]
    found = {}
    for row in re.findall(r"<tr>\s*<th scope=\"row\">.*?</tr>", table, re.DOTALL):
        slot = re.search(r'<code class="id">([^<]+)</code>', row)
        assert slot
        found[slot[1]] = unescape(re.sub(r"<[^>]+>", " ", row))
    return found


async def test_process_says_that_it_is_alive_until_it_leaves(console: Console) -> None:
    """Again and again; who stops in order is no silent one."""
    core = console.front.core
    async with heartbeat(core, "api", 1, every_s=0.01):
        first = await seen(console, "api")
        assert first.hsm == "none"
        assert first.process == core.process
        console.clock.forward(60)
        async with asyncio.timeout(SOON_S):
            while (await seen(console, "api")).at == first.at:
                pass  # As above.
    assert "api" not in await slots(console)


async def test_who_leaves_does_not_take_the_place_of_the_next(console: Console) -> None:
    """A process that was started in its place stays to be seen."""
    async with heartbeat(console.front.core, "api", 1, every_s=3600):
        mine = await seen(console, "api")
        await beat(console, mine.slot, "none")
    assert (await slots(console))["api"].process == "p"


async def test_hsm_of_a_silent_worker_is_not_known(console: Console) -> None:
    """What it said before it fell silent is no word on its HSM."""
    await beat(console, "signing/a/1", "ready", age_s=16)
    await beat(console, "signing/b/1", "ready")
    await console.sign_in()
    # Signing in took the clock on by a step, past the bound.
    await beat(console, "signing/b/1", "ready")

    told = rows((await console.get("/admin/health")).text)

    assert "Sin señales" in told["signing/a/1"]
    assert "No se sabe" in told["signing/a/1"]
    assert "Listo" not in told["signing/a/1"]
    assert "Listo" in told["signing/b/1"]


async def test_every_role_is_told_running_or_not(console: Console) -> None:
    """Chores, API, frame and console as well as workers; a missing one is said."""
    await console.sign_in()
    for role in ("signing", "chores", "api"):
        await beat(console, f"{role}/a/1", "none")

    told = rows((await console.get("/admin/health")).text)

    wanted = ["signing/a/1", "chores/a/1", "api/a/1", "embed", "admin"]
    # The desk has a signing host of its own.
    assert [slot for slot in told if slot != "signing/h/1"] == wanted
    assert "No está en marcha" in told["embed"]
    assert "API y páginas públicas" in told["api/a/1"]
    assert "No está en marcha" not in told["api/a/1"]
