"""What a job of the sandbox cannot do, and what happens to one that tries."""

import asyncio
import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from appliance.documents.sandbox_connection import exchange
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.sandbox import (
    JobCaller,
    JobKind,
    Operation,
    encode,
    says_nothing,
)
from tests.support.documents import pdfs
from tests.support.processes.proc import open_files, status
from tests.support.services.sandbox_server import SandboxServer, running_sandbox

pytestmark = pytest.mark.full

DEADLINE_S = 60
WAITING = 256


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox whose jobs are cut soon."""
    limits = {"memory_bytes": 402_653_184, "cpu_s": 1, "wall_s": 3}
    with running_sandbox(**limits, document_bytes=1_000_000) as server:
        yield server
        assert server.process.poll() is None


async def running_job(server: SandboxServer) -> int:
    """Wait for the one job that runs, and has nothing more to give up."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        template = filters(server.process.pid)
        # A child that prepares the template's start has no filter of its own.
        if jobs := [pid for pid in server.jobs() if filters(pid) > template > 0]:
            return jobs[0]
        await asyncio.sleep(0.02)
    pytest.fail("no job was started")


def filters(pid: int) -> int:
    """How many filters of system calls a process has; 0 if it is over."""
    try:
        return int(status(pid)["Seccomp_filters"])
    except (FileNotFoundError, KeyError):
        return 0


async def let_go(job: int, asked: asyncio.Task[dict[str, object]]) -> None:
    """Have a job that holds still go on, once it listens, until it is answered."""
    while not asked.done():
        with suppress(ProcessLookupError):
            os.kill(job, signal.SIGURG)
        await asyncio.sleep(0.02)


def is_over(pid: int) -> bool:
    """Say whether a process has ended, reaped or not."""
    try:
        return status(pid)["State"].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        # The latter where it ends between the opening and the reading.
        return True


def network_of(pid: int) -> str:
    """The network namespace of a process."""
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def limits_of(pid: int) -> str:
    """The resource limits of a process, as text."""
    return Path(f"/proc/{pid}/limits").read_text("ascii")


async def gone(server: SandboxServer) -> bool:
    """Wait until no job runs; False when one stays."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if not server.jobs():
            return True
        await asyncio.sleep(0.02)
    return False


def test_job_has_no_power(sandbox: SandboxServer) -> None:
    """No network, no path, no process, no signal, no other user."""
    outcomes = sandbox.probe("powers")

    assert outcomes == dict.fromkeys(outcomes, "PermissionError")
    assert {"socket", "open", "fork", "execute", "kill", "memfd"} <= set(outcomes)


async def test_job_is_confined_and_holds_its_request_alone() -> None:
    """As /proc shows it: seccomp, no new privileges, limits, descriptors."""
    with running_sandbox(wall_s=2 * DEADLINE_S) as server:
        probe = asyncio.create_task(asyncio.to_thread(server.probe, "state"))
        pid = await running_job(server)

        found, links, limits = status(pid), open_files(pid), limits_of(pid)
        await let_go(pid, probe)
    assert (found["Seccomp"], found["NoNewPrivs"]) == ("2", "1")
    assert (found["CapEff"], found["Threads"]) == ("0" * 16, "1")
    *nulls, request = links
    assert nulls == ["/dev/null"] * 3
    assert request.startswith("socket:")
    assert "Max core file size        0                    0" in limits
    assert "Max processes             0                    0" in limits


async def test_template_is_confined_too(sandbox: SandboxServer) -> None:
    """It has a filter of its own, no root and no network of the host."""
    await sandbox.client.ping()

    found = status(sandbox.process.pid)
    own, host = (network_of(pid) for pid in (sandbox.process.pid, os.getpid()))

    assert (found["Seccomp"], found["NoNewPrivs"]) == ("2", "1")
    if os.geteuid() == 0:
        assert found["Uid"].split() == ["65534"] * 4
        assert own != host


def test_job_knows_no_secret_holder(sandbox: SandboxServer) -> None:
    """No database, Redis, HSM or web module is loaded where a PDF is read."""
    modules = set(sandbox.probe("environment")["modules"])

    assert not modules & {"sqlalchemy", "redis", "arq", "pkcs11", "quart", "asyncpg"}
    assert not modules & {"appliance.settings", "appliance.database", "hsm_config"}
    assert not modules & {"appliance.secrets", "appliance.messaging.redis_link"}
    assert "pyhanko" in modules


@pytest.mark.parametrize("hog", ["memory", "memory_kept", "cpu", "sleep"])
def test_hog_is_cut(sandbox: SandboxServer, hog: str) -> None:
    """Memory, CPU time and wall time end in the same refusal, in time."""
    started = time.monotonic()

    with pytest.raises(DocumentRefusedError) as caught:
        sandbox.probe(hog)

    assert caught.value.code is ErrorCode.PDF_TOO_COMPLEX
    assert time.monotonic() - started < DEADLINE_S


def test_crash_is_a_refusal(sandbox: SandboxServer) -> None:
    """A native library that dies takes its job along and nothing else."""
    with pytest.raises(DocumentRefusedError) as caught:
        sandbox.probe("crash")

    assert caught.value.code is ErrorCode.PDF_MALFORMED
    assert says_nothing(caught.value)


async def test_document_over_the_limit_is_refused(sandbox: SandboxServer) -> None:
    """The refusal names the limit."""
    with pytest.raises(DocumentRefusedError) as caught:
        await sandbox.client.inspect(bytes(1_000_001))

    assert caught.value.code is ErrorCode.DOCUMENT_TOO_LARGE
    assert caught.value.params == {"limit": 1_000_000}


def test_unsealed_document_is_not_read(sandbox: SandboxServer) -> None:
    """What the sender could still change is no document."""
    memory = os.memfd_create("pdf", os.MFD_ALLOW_SEALING)
    os.write(memory, pdfs.one_page())
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)

    assert answer_to(sandbox, [memory]) == b""
    os.close(memory)


def test_ordinary_file_is_not_read(sandbox: SandboxServer, tmp_path: Path) -> None:
    """Only memory is taken, never a stored file's own descriptor."""
    path = tmp_path / "document.pdf"
    path.write_bytes(pdfs.one_page())

    with path.open("rb") as file:
        assert answer_to(sandbox, [file.fileno()]) == b""


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\xff\xff\xff\xff",
        b"\0\0\0\x02[]",
        b"\0\0\0\x05{nope",
        encode({"operation": "unknown", "params": {}}),
        encode({"operation": "render", "params": {"page": 0, "dpi": 72}}),
        encode({"operation": "verify", "params": {"roots": ["*"], "stampRoots": []}}),
        encode({"operation": "verify", "params": {"roots": []}}),
        b"\0\0",
    ],
)
def test_malformed_request_gets_no_answer(
    sandbox: SandboxServer, request_bytes: bytes
) -> None:
    """The connection is closed, and the next job is served."""
    assert answer_to(sandbox, [], request_bytes) == b""
    assert sandbox.probe("environment")


def test_wall_time_ends_no_job_that_hardly_had_a_processor() -> None:
    """On a machine that others use up a document is read late, and not refused."""
    with running_sandbox(wall_s=1) as server, ExitStack() as held:
        server.probe("environment")
        processor = os.sched_getaffinity(0).pop()
        os.sched_setaffinity(server.process.pid, {processor})
        # It waits for a processor no longer than its jobs do, whatever this run's is.
        os.setpriority(os.PRIO_PROCESS, server.process.pid, 0)
        for _ in range(2):
            held.enter_context(endless(processor))
        begun = time.monotonic()

        assert server.probe("compute") == {}

    assert time.monotonic() - begun > 1


def test_wall_time_ends_no_job_that_had_less_than_half_of_its_processor_time() -> None:
    """What takes its time on a busy machine is not too complex."""
    with running_sandbox(wall_s=1, cpu_s=10) as server:
        assert server.probe("compute_long") == {}


@contextmanager
def endless(processor: int) -> Iterator[None]:
    """A process that keeps a processor busy, with the priority of a job."""
    process = subprocess.Popen(
        ["taskset", "-c", str(processor), "yes"], stdout=subprocess.DEVNULL
    )
    try:
        # By itself it would have that of this run, which may be a low one.
        os.setpriority(os.PRIO_PROCESS, process.pid, 5)
        yield
    finally:
        process.kill()
        process.wait()


async def test_client_that_leaves_takes_its_job_along() -> None:
    """Nothing goes on for nobody, not to the end of its time either."""
    with running_sandbox(wall_s=2 * DEADLINE_S) as server:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(server.path))
            connection.sendall(encode({"operation": "sleep", "params": {}}))
            await running_job(server)

        assert await gone(server)


async def test_silent_clients_do_not_block_for_ever(sandbox: SandboxServer) -> None:
    """All places are taken by clients that say nothing; a real one gets its turn."""
    silent = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    for connection in silent:
        connection.connect(str(sandbox.path))

    inspection = await sandbox.client.inspect(pdfs.one_page())

    assert len(inspection.pages) == 1
    for connection in silent:
        connection.close()


def hold(server: SandboxServer, integrator: str) -> object:
    """Have a job of an integrator hold still, until it is let go."""
    return exchange(
        str(server.path),
        encode({"operation": "state", "params": {}}),
        None,
        time.monotonic() + DEADLINE_S,
        JobCaller(JobKind.EXAMINE, integrator),
    ).head["result"]


async def test_no_more_jobs_run_than_allowed() -> None:
    """Twenty ask at once, and at most four processes run."""
    most = 0
    with (
        running_sandbox(wall_s=2 * DEADLINE_S) as server,
        ThreadPoolExecutor(20) as pool,
    ):
        asked = [pool.submit(hold, server, f"i{number}") for number in range(20)]
        while not all(each.done() for each in asked):
            jobs = [pid for pid in server.jobs() if not is_over(pid)]
            most = max(most, len(jobs))
            # Each holds still until there was the time for one more.
            for job in jobs if most == 4 else ():
                with suppress(ProcessLookupError):
                    os.kill(job, signal.SIGURG)
            await asyncio.sleep(0.02)

    assert [each.result() for each in asked] == [{}] * 20
    assert most == 4


async def test_so_many_clients_wait_in_the_sandbox() -> None:
    """Others in the listener's queue, until one of them has left."""

    def inside() -> int:
        return psutil.Process(server.process.pid).num_fds() - before

    async def until_inside(count: int) -> None:
        end = time.monotonic() + DEADLINE_S
        while (now := inside()) != count:
            assert now <= WAITING
            assert time.monotonic() < end
            await asyncio.sleep(0.02)

    with running_sandbox(jobs=1, wall_s=2 * DEADLINE_S) as server, ExitStack() as held:
        asked = asyncio.create_task(asyncio.to_thread(server.probe, "sleep"))
        await running_job(server)
        before = psutil.Process(server.process.pid).num_fds()
        clients = [
            held.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(276)
        ]
        for client in clients:
            await asyncio.to_thread(client.connect, str(server.path))
        await until_inside(WAITING)
        for client in clients[:250]:
            client.close()
        await until_inside(26)
        server.close_listener()
        server.kill()
        with pytest.raises(ApplianceError):
            await asked


async def test_server_that_dies_is_asked_again() -> None:
    """A call during a restart is answered by the new server."""
    with running_sandbox() as server:
        await server.client.ping()
        asked = asyncio.create_task(asyncio.to_thread(server.probe, "state"))
        await running_job(server)
        server.kill()
        server.restart()
        await let_go(await running_job(server), asked)

        assert await asked == {}


async def test_jobs_die_with_the_server() -> None:
    """A killed template leaves no job behind."""
    with running_sandbox() as server:
        asked = asyncio.create_task(asyncio.to_thread(server.probe, "sleep"))
        job = await running_job(server)
        server.close_listener()
        server.kill()

        with pytest.raises(ApplianceError) as caught:
            await asked
        assert caught.value.code is ErrorCode.SANDBOX_UNAVAILABLE
        assert is_over(job)


async def test_term_finishes_what_runs() -> None:
    """The job that runs is answered, and then the server ends well."""
    with running_sandbox() as server:
        asked = asyncio.create_task(asyncio.to_thread(server.probe, "state"))
        job = await running_job(server)
        stopped = asyncio.create_task(asyncio.to_thread(server.stop))
        await let_go(job, asked)

        assert await stopped == 0
        assert await asked == {}


def answer_to(
    sandbox: SandboxServer, descriptors: list[int], request: bytes | None = None
) -> bytes:
    """Send bytes as they are and read until the end."""
    if request is None:
        request = encode({"operation": Operation.INSPECT.value, "params": {}})
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(sandbox.path))
        socket.send_fds(connection, [request], descriptors)
        connection.shutdown(socket.SHUT_WR)
        answer = bytearray()
        while part := connection.recv(65_536):
            answer += part
        return bytes(answer)
