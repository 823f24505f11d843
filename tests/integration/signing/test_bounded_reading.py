"""What reading a document costs in the process that holds a PIN is bounded.

The files here are such as the sandbox refuses: this is what holds should one ever
come through.
"""

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from tests.support.documents import hostile_pdfs
from tests.support.documents.pdf_samples import make_plan
from tests.support.documents.software_signer import make_signer
from worker.pades import add_dss, prepare
from worker.pades.pdf.revision import refusing
from worker.pades.reading_limits import bounded, lane, read_apart

CPU_S = 0.3
SIGNER = make_signer(KeyAlgorithm.EC_P256)
HOSTILE: dict[str, Callable[[], bytes]] = {
    "2,000,000 kids": lambda: hostile_pdfs.kids(b"3 0 R " * 2_000_000, 2_000_000),
    "a catalog of 20 MB": lambda: hostile_pdfs.plain(
        catalog=b"/X[%s]" % (b"[(a)<</B 1>>]" * 1_500_000)
    ),
    "1,000,000 fields": lambda: hostile_pdfs.plain(
        catalog=b"/AcroForm<</Fields[%s]>>" % (b"<</T(a)/FT/Sig>>" * 1_000_000)
    ),
}


def read(pdf: bytes) -> None:
    """Read it as for a signature, and as for validation data."""
    prepare(pdf, make_plan(SIGNER), None)
    add_dss(pdf, [])


@pytest.fixture
def small_heap() -> Iterator[None]:
    """What other tests left behind is none of the collector's business here.

    It would be looked through again and again while millions of objects are made.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("small_heap")
@pytest.mark.parametrize("kind", HOSTILE)
def test_reading_ends_when_its_time_is_used_up(kind: str) -> None:
    """By a code, soon after, and the thread goes on as if nothing were."""
    pdf = HOSTILE[kind]()
    began = time.thread_time()

    with pytest.raises(DocumentRefusedError) as caught, bounded(CPU_S):
        read(pdf)

    assert caught.value.code is ErrorCode.PDF_TOO_COMPLEX
    # It would take ten times as long and more; it is looked at twenty times a second.
    assert time.thread_time() - began < 8 * CPU_S
    with bounded(CPU_S):
        read(hostile_pdfs.plain())


@pytest.mark.usefixtures("small_heap")
@pytest.mark.parametrize("kind", HOSTILE)
def test_reading_ends_when_its_memory_is_used_up(kind: str) -> None:
    """By the same code, where it has time enough."""
    pdf = HOSTILE[kind]()
    # From proc(5): the most that it held is counted from here.
    Path("/proc/self/clear_refs").write_text("5")
    before = held_kib("VmRSS")

    with pytest.raises(DocumentRefusedError) as caught, bounded(60, 500_000):
        read(pdf)

    assert caught.value.code is ErrorCode.PDF_TOO_COMPLEX
    # 64 MB of objects, the list of what is still to be read, and what one look misses.
    assert held_kib("VmHWM") - before < 300 * 1024
    with bounded(CPU_S):
        read(hostile_pdfs.plain())


def held_kib(what: str) -> int:
    """`VmRSS`: memory of this process; `VmHWM`: the most of it."""
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith(what)]
    return int(line.split()[1])


def stubborn() -> None:
    """Goes on whatever is raised, as libraries and `refusing` do."""
    while True:
        try:
            with refusing():
                while True:
                    hash("")
        except Exception:  # noqa: BLE001, S112 (that is the point)
            continue


def test_nothing_that_refuses_swallows_the_end() -> None:
    """Neither pyHanko's nor our own `except Exception`."""
    with pytest.raises(DocumentRefusedError) as caught, bounded(CPU_S):
        stubborn()

    assert caught.value.code is ErrorCode.PDF_TOO_COMPLEX


def spin(cpu_s: float) -> None:
    """Use so much CPU time."""
    began = time.thread_time()
    while time.thread_time() - began < cpu_s:
        hash("")


class Swallowing:
    """Whose destructor takes long: what is raised in it goes nowhere."""

    def __del__(self) -> None:
        spin(2 * CPU_S)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_end_that_a_destructor_swallowed_comes_again() -> None:
    """Python drops what is raised in a destructor; the next look raises it anew."""

    def read_on() -> None:
        Swallowing()
        while True:
            hash("")

    with pytest.raises(DocumentRefusedError) as caught, bounded(CPU_S):
        read_on()

    assert caught.value.code is ErrorCode.PDF_TOO_COMPLEX


@pytest.mark.usefixtures("small_heap")
def test_collection_of_cycles_comes_to_its_end() -> None:
    """Others' callbacks run in it, and are not ended in the midst of what they do."""
    begun, ended = [0], [0]

    def collecting(phase: str, _info: object) -> None:
        if phase == "start" and threading.get_ident() == mine:
            begun[0] += 1
            spin(2 * CPU_S)
            ended[0] += 1

    def read_on() -> None:
        while True:
            gc.collect()
            spin(CPU_S)

    mine = threading.get_ident()
    gc.callbacks.append(collecting)
    try:
        with pytest.raises(DocumentRefusedError), bounded(CPU_S):
            read_on()
    finally:
        gc.callbacks.remove(collecting)

    assert begun == ended != [0]


@pytest.mark.usefixtures("small_heap")
def test_end_is_never_raised_where_a_collection_begins_or_ends() -> None:
    """Python would drop it there; a thread that only collects is mostly there."""

    def collect_on() -> None:
        while True:
            gc.collect(0)

    dropped: list[object] = []
    hook = sys.unraisablehook
    sys.unraisablehook = lambda raised: dropped.append(raised.object)
    try:
        for _ in range(20):
            with pytest.raises(DocumentRefusedError), bounded(0):
                collect_on()
    finally:
        sys.unraisablehook = hook

    assert dropped == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_end_of_one_reading_touches_no_other() -> None:
    """Those beside it, and those after it in the same thread, come to their ends."""
    pdf, plain = HOSTILE["2,000,000 kids"](), hostile_pdfs.plain()

    async def run() -> int:
        count = 0
        late = asyncio.create_task(asyncio.to_thread(_refused, pdf))
        while not late.done():
            await read_apart(read, plain)
            count += 1
        assert await late is ErrorCode.PDF_TOO_COMPLEX
        return count

    assert asyncio.run(run()) > 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_readings_that_are_not_quick_come_one_after_the_other() -> None:
    """Each begins again in the one thread for them, where nothing looks for cycles."""
    running, most = [0], [0]
    begun, quick = threading.Event(), threading.Event()

    def slow(name: str) -> str:
        if not threading.current_thread().name.startswith("slow-reading"):
            while True:
                hash("")
        running[0] += 1
        most[0] = max(most[0], running[0])
        begun.set()
        assert not gc.isenabled()
        assert quick.wait(60)
        running[0] -= 1
        return name

    async def run() -> list[str]:
        late = [asyncio.create_task(read_apart(slow, name)) for name in "abc"]
        assert await asyncio.to_thread(begun.wait, 60)
        # What is quick waits for none of them.
        await read_apart(read, hostile_pdfs.plain())
        quick.set()
        return await asyncio.gather(*late)

    assert asyncio.run(run()) == ["a", "b", "c"]
    assert most == [1]
    assert gc.isenabled()


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 64])
@pytest.mark.parametrize("workers", [2, 3, 4, 9, 64])
def test_half_of_the_workers_read_nothing_slow(workers: int, cores: int) -> None:
    """Whatever a host has of both: every other worker is quick."""
    lanes = {lane(number, cores) for number in range(1, workers + 1)}

    assert len(lanes) <= (workers + 1) // 2 < workers
    assert len(lanes) <= max(1, cores // 2)
    assert len(lanes) == min((workers + 1) // 2, max(1, cores // 2))


def _refused(pdf: bytes) -> ErrorCode | None:
    try:
        with bounded(CPU_S):
            read(pdf)
    except DocumentRefusedError as exc:
        return exc.code
    return None
