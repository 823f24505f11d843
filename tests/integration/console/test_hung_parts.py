"""A part that hangs: pages say so in time, and none of them hangs with it."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from admin_ui.figures import FiguresInReach
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.keys.worker_store import WorkerStore
from appliance.messaging.redis_link import answers, redis_settings
from tests.integration.console.health_page import hand_over, page, plain, sample, told
from tests.support.installation.console import Console
from tests.support.installation.installation import Installation
from tests.support.patience import CALL_S
from tests.support.services.redis import RedisServer

_SAID = "Redis no responde"


@pytest.fixture
async def console(
    tmp_path: Path, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Console]:
    """A console that pings a real Redis and gives it up at once; somebody signed in."""
    monkeypatch.setattr("appliance.messaging.redis_link._ANSWER_S", 0.5)
    redis = {"socket": str(redis_server.socket)}
    async with Installation(tmp_path, redis=redis).console() as made:
        given = redis_settings(made.front.settings)
        # The core of tests asks none.
        object.__setattr__(made.front.core, "redis_answers", partial(answers, given))
        await made.sign_in()
        # Else each role that is missing stands before Redis on *Inicio*.
        async with made.services.store.write() as transaction:
            for role in ("signing", "chores", "api", "embed", "admin"):
                hsm = "ready" if role == "signing" else "none"
                now = made.clock.now()
                status = WorkerStatus(f"{role}/h/1", "p", now, hsm, "")
                await WorkerStore(transaction).beat(status)
        yield made


async def test_redis_that_hangs_is_told(
    console: Console, redis_server: RedisServer
) -> None:
    """On *Inicio* with the next step, and on *Salud*; then it answers again."""
    assert _SAID not in plain((await console.get("/admin/")).text)

    with redis_server.hung():
        async with asyncio.timeout(CALL_S):
            home = plain((await console.get("/admin/")).text)
            rows = await told(console, "ground")

    assert f"{_SAID} " in home
    assert "Iniciá Redis, o reinicialo si está colgado" in home
    (row,) = [row for name, row in rows.items() if name.startswith("Redis")]
    assert row.startswith("Atención")
    assert "no le responde a la consola" in row
    (row,) = [
        row
        for name, row in (await told(console, "ground")).items()
        if name.startswith("Redis")
    ]
    assert row == "Bien le responde a la consola"


async def test_redis_is_named_once_for_its_host(
    console: Console, redis_server: RedisServer
) -> None:
    """A worker that is busy still says that it hears Redis; the ping counts more."""
    host = "consola"
    hand_over(console, "signing", sample("rubrica_redis_connected", 1), host=host)
    with pytest.MonkeyPatch.context() as here:
        here.setattr("admin_ui.health_report.socket.gethostname", lambda: host)
        assert "lo oye el 100" in (await told(console, "ground"))[f"Redis {host}"]
        with redis_server.hung():
            rows = await told(console, "ground")

    assert [name for name in rows if name.startswith("Redis")] == [f"Redis {host}"]
    assert "no le responde a la consola" in rows[f"Redis {host}"]


async def test_document_store_that_hangs_takes_no_thread_of_the_figures(
    console: Console,
) -> None:
    """Its callers wait in the threads that all share, however many there are."""
    answer = threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    waiting = loop.run_in_executor(None, answer.wait)
    folder = console.front.settings.metrics_dir
    hand_over(console, "signing", sample("rubrica_redis_connected", 1))
    try:
        async with asyncio.timeout(CALL_S):
            facts = await FiguresInReach(folder).facts(console.clock.now(), ())
    finally:
        answer.set()
        await waiting

    assert [each.kind for each in facts.grounds] == ["redis"]
    assert "Procesos" in plain(await page(console))
