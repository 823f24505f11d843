"""One who floods the sandbox, and the others who need it, over its real socket."""

import asyncio
import itertools
import statistics
import time
from collections.abc import Awaitable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from appliance.admission.work_owner import WorkOwner, working_for
from appliance.documents.page_pictures import PagePictures, PageWanted
from appliance.documents.sandbox_client import SandboxClient
from appliance.documents.sandbox_connection import exchange
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ids import IntegratorId
from appliance.domain.sandbox import JobCaller, JobKind, encode
from tests.support.documents import pdfs
from tests.support.documents.slow_pdfs import transparent_groups
from tests.support.services.sandbox_server import SandboxServer, running_sandbox

ACME = IntegratorId("acme")
_PATIENCE_S = 60.0
_LOOK_AGAIN_S = 0.01
_QUIET_TIMES = 9
_ROUNDS = 8
_ASK_AGAIN_S = 0.1
_ROOM_S = 0.3
"""What a machine that others use may take of a time that is a few hundredths."""


_THREADS = ThreadPoolExecutor(16)
Asked = asyncio.Future[Any]


@pytest.fixture
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox of four places."""
    with running_sandbox() as server:
        yield server


def ask(server: SandboxServer, operation: str, caller: JobCaller) -> Asked:
    """Ask in a process of nobody's: there is no queue but the server's own."""
    request = encode({"operation": operation, "params": {}})
    deadline = time.monotonic() + _PATIENCE_S
    return asyncio.get_running_loop().run_in_executor(
        _THREADS, exchange, str(server.path), request, None, deadline, caller
    )


async def running(server: SandboxServer, count: int) -> None:
    """Wait until that many jobs run."""
    async with asyncio.timeout(_PATIENCE_S):
        while len(server.jobs()) != count:  # noqa: ASYNC110 (another process's)
            await asyncio.sleep(_LOOK_AGAIN_S)


async def test_many_processes_of_one_share_leave_a_place(
    sandbox: SandboxServer,
) -> None:
    """Twelve endless jobs of one integrator, whatever asked for them: three run."""
    acme = JobCaller(JobKind.EXAMINE, "acme")
    flood = [ask(sandbox, "sleep", acme) for _ in range(12)]
    await running(sandbox, 3)

    reply = await ask(sandbox, "environment", JobCaller(JobKind.EXAMINE, "beta"))

    assert reply.head["result"]
    await running(sandbox, 3)
    await end(sandbox, flood)


async def test_drawing_of_many_integrators_leaves_a_place(
    sandbox: SandboxServer,
) -> None:
    """So documents come in, and signatures are checked, whoever wants pictures."""
    flood = [
        ask(sandbox, "sleep", JobCaller(JobKind.DRAW, f"i{number}"))
        for number in range(8)
    ]
    await running(sandbox, 3)

    inspection = await sandbox.client.inspect(pdfs.one_page())

    assert len(inspection.pages) == 1
    await end(sandbox, flood)


async def test_a_full_sandbox_still_answers_a_ping(sandbox: SandboxServer) -> None:
    """Or a node that is busy would leave the balancer."""
    flood = [
        ask(sandbox, "sleep", JobCaller(JobKind.EXAMINE, f"i{number}"))
        for number in range(8)
    ]
    await running(sandbox, 4)

    await sandbox.client.ping()

    await end(sandbox, flood)


async def end(server: SandboxServer, flood: Sequence[Asked]) -> None:
    """End the server, so that nobody waits for the floods."""
    server.close_listener()
    server.kill()
    await asyncio.gather(*flood, return_exceptions=True)


async def test_drawing_is_cut_well_before_an_inspection() -> None:
    """A page that takes too long, in a document that is taken in."""
    slow = transparent_groups(60_000)
    with running_sandbox(render_cpu_s=1) as server:
        inspection = await server.client.inspect(pdfs.one_page())
        with pytest.raises(DocumentRefusedError) as caught:
            await server.client.render(slow, 1, None, 96)

    assert len(inspection.pages) == 1
    assert caught.value.code is ErrorCode.PDF_TOO_COMPLEX


class Shelf:
    """Documents, as the store gives them."""

    def __init__(self, pdf: bytes) -> None:
        self._pdf = pdf

    async def get(self, integrator: IntegratorId, sha256: str) -> bytes:
        """One."""
        del integrator, sha256
        return self._pdf


async def told_at_once(flood: Sequence[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    """Those that are answered before the sandbox is even asked."""
    for _ in range(5):
        await asyncio.sleep(0)
    return [task for task in flood if task.done()]


async def timed(work: Awaitable[object]) -> float:
    """Seconds that it takes."""
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def upload(client: SandboxClient, number: int) -> float:
    """Seconds that the inspection of another integrator's small document takes."""
    with working_for("beta", f"session:{number}"):
        return await timed(client.inspect(pdfs.one_page()))


async def uploads(server: SandboxServer) -> float:
    """The median of some."""
    taken = [await upload(server.client, n) for n in range(_QUIET_TIMES)]
    return statistics.median(taken)


async def ask_on(kept: PagePictures, page: int) -> None:
    """Ask for a page, ever larger, whenever that was answered or refused."""
    for dpi in itertools.count(97):
        with suppress(ApplianceError):
            await kept.get(PageWanted(ACME, "aa", page, dpi))
        await asyncio.sleep(_ASK_AGAIN_S)


@pytest.mark.alone
@pytest.mark.parametrize("at_once", [16, 40])
async def test_one_sessions_slow_pictures_delay_nobodys_upload(at_once: int) -> None:
    """Who asks for too many is told at once; another's upload is as quick as ever."""
    slow = transparent_groups(60_000, pages=at_once)
    with running_sandbox() as server:
        documents: Any = Shelf(slow)
        kept = PagePictures(documents, server.client, 33_554_432)
        await upload(server.client, 0)
        quiet_s = await uploads(server)
        with working_for(ACME, "session:1"):
            flood: list[asyncio.Task[Any]] = [
                asyncio.create_task(kept.get(PageWanted(ACME, "aa", page, 96)))
                for page in range(1, at_once + 1)
            ]
            told = await told_at_once(flood)
            # Pictures that are given up make room; the session asks on.
            flood += [
                asyncio.create_task(ask_on(kept, page))
                for page in range(1, at_once + 1)
            ]
        most_s = 2 * quiet_s + _ROOM_S
        busy_s: list[float] = []
        # What else the machine does makes it slower, never quicker: the best of
        # some rounds says what the pictures cost.
        while len(busy_s) < _ROUNDS and min(busy_s, default=most_s + 1) > most_s:
            await running(server, 2)
            busy_s.append(await uploads(server))
            await running(server, 2)
        for task in flood:
            task.cancel()
        await end(server, flood)

    assert min(busy_s) <= most_s, busy_s
    assert len(told) == at_once - 10
    for task in told:
        error = task.exception()
        assert isinstance(error, ApplianceError)
        assert error.code is ErrorCode.OVERLOADED


async def test_a_session_has_two_jobs_at_the_sandbox(sandbox: SandboxServer) -> None:
    """And its integrator's other sessions have theirs."""
    limits = WorkOwner("acme", "session:1")
    with working_for(limits.share, limits.party):
        flood = [
            asyncio.create_task(
                sandbox.client.render(transparent_groups(60_000), 1, None, 96)
            )
            for _ in range(12)
        ]
    over = await told_at_once(flood)
    await running(sandbox, 2)
    with working_for(limits.share, "session:2"):
        inspection = await sandbox.client.inspect(pdfs.one_page())

    assert len(inspection.pages) == 1
    assert len(over) == 2
    assert {str(task.exception())[:10] for task in over} == {"OVERLOADED"}
    await end(sandbox, flood)
