"""Doing harm to an appliance, and judging what it left.

with harmed(...) as appliance:
    crowd = Crowd(appliance, people, pdf)
    with crowd.calling():
        kill_one(appliance)
    assert_sound(crowd, before=0)
"""

import fcntl
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psutil
from sqlalchemy import text, update

from appliance.database.engines import open_engines
from appliance.database.tables import worker_status
from appliance.domain.vocab import IntentState, RequestState
from hsm_config.profile import load_profile
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.ledger import read_intents, read_ledger
from tests.support.faults.retrying_callers import BROKEN, LET_IN, Crowd
from tests.support.faults.theft import write
from tests.support.hsm.pkcs11_shim import Pkcs11Shim
from tests.support.processes.event_loops import run_apart
from tests.support.processes.scratch import short_folder
from worker.failpoints import VARIABLE

LONGEST_S: Final = 25.0
"""That anybody waits for a signed document, whatever is done meanwhile.

For long tests, which have the machine to themselves; elsewhere callers are patient.
"""
_PATIENCE_S: Final = 300.0
_LONG_WRITE_S: Final = 0.5
"""A transaction that is open for longer is taken for a stopped process's."""
_OPEN_WRITES: Final = text(
    "SELECT virtualtransaction FROM pg_locks JOIN pg_stat_activity USING (pid)"
    " WHERE locktype = 'transactionid' AND granted AND datname = current_database()"
    " AND pid <> pg_backend_pid()"
)
_LOOK_S: Final = 0.1
"""Between two looks; one may open the record, which takes its time."""
_ALIVE_LATER: Final = update(worker_status).values(
    # By the database's clock; a worker that goes on says its own time again.
    at=datetime(9000, 1, 1, tzinfo=UTC)
)
NO_REDIS: Final = '[redis]\nurl = "redis://127.0.0.1:1/0"'
"""Settings with an address where nobody listens."""


@contextmanager
def harmed(**options: str) -> Iterator[Appliance]:
    """An appliance with a folder of crash points."""
    with short_folder() as folder:
        crash = folder / "crash"
        crash.mkdir()
        environment = {VARIABLE: str(crash)}
        with Appliance.made(folder, environment=environment, **options) as appliance:
            yield appliance


@contextmanager
def troubled(
    *, call_limit_s: float = 3, **options: str
) -> Iterator[tuple[Appliance, Pkcs11Shim]]:
    """An appliance whose HSM fails as it is told to, and what tells it.

    Args:
        call_limit_s: after which a call that hangs is ended with its worker.
        options: of `Appliance.made`.
    """
    with short_folder() as folder:
        crash, shims = folder / "crash", folder / "shim"
        crash.mkdir()
        shims.mkdir()
        shim = Pkcs11Shim(shims, load_profile("softhsm2").modules[0])
        limit = f"call_limit_s = {call_limit_s}"
        hsm = f'module = "{shim.path}"\n{limit}\n{options.pop("hsm", "")}'
        environment = {VARIABLE: str(crash), **shim.environment}
        with Appliance.made(
            folder, environment=environment, hsm=hsm, **options
        ) as appliance:
            yield appliance, shim


@contextmanager
def restarted(appliance: Appliance, **sections: str) -> Iterator[None]:
    """Have it run with other settings for a while."""
    before = appliance.configure(**sections)
    try:
        appliance.stop()
        appliance.start()
        yield
    finally:
        appliance.stop()
        appliance.configure(**before)
        appliance.start()


def order_crash(appliance: Appliance, point: str, wish: str = "") -> Path:
    """Have the next worker that passes a point die there, or freeze."""
    crash = appliance.folder / "crash"
    (crash / ".new").write_text(wish, "ascii")
    # No worker finds it before it is written.
    return (crash / ".new").rename(crash / point)


def kill_one(appliance: Appliance, role: str = "signing") -> None:
    """End a random process of a role, as nothing can prevent."""
    if living := appliance.children(role):
        try:
            secrets.choice(living).kill()
        except psutil.NoSuchProcess:
            return


def execute(appliance: Appliance, *statements: str) -> None:
    """Change the record behind everybody's back, in one transaction."""

    async def run() -> None:
        engines = open_engines(appliance.settings)
        try:
            async with engines.writer.begin() as connection:
                for statement in statements:
                    await connection.exec_driver_sql(statement)
        finally:
            await engines.dispose()

    run_apart(run())


def frozen(appliance: Appliance) -> list[psutil.Process]:
    """The signing workers that stand still."""
    return [
        process
        for process in appliance.children("signing")
        if process.status() == psutil.STATUS_STOPPED
    ]


def _may_write(appliance: Appliance) -> bool:
    """Return True if no stopped process keeps others from writing."""
    if appliance.settings.database.url != "sqlite":
        before = _writing(appliance)
        if not before:
            return True
        time.sleep(_LONG_WRITE_S)
        return not before & _writing(appliance)
    path = appliance.folder / "rubrica.db"
    if not _turn_comes(path.with_name(f"{path.name}-turn")):
        return False
    with closing(sqlite3.connect(path, timeout=1)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        connection.rollback()
    return True


def _writing(appliance: Appliance) -> set[str]:
    """Transactions of PostgreSQL that have written or locked a row, and are open."""

    async def run() -> set[str]:
        engines = open_engines(appliance.settings)
        try:
            async with engines.writer.connect() as connection:
                return set((await connection.execute(_OPEN_WRITES)).scalars())
        finally:
            await engines.dispose()

    return run_apart(run())


def _turn_comes(path: Path) -> bool:
    """Whether those who have their turn to write give it back within a second."""
    deadline = time.monotonic() + 1
    with path.open("ab") as turn:
        while time.monotonic() < deadline:
            with suppress(BlockingIOError):
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            time.sleep(_LOOK_S)
    return False


def _stands_still(process: psutil.Process) -> bool:
    """Whether all its threads do."""
    try:
        states = {
            file.read_text("ascii").rpartition(")")[2].split()[0]
            for file in Path(f"/proc/{process.pid}/task").glob("*/stat")
        }
    except OSError:  # of a thread that ended
        return False
    return states == {"T"}


@contextmanager
def held(appliance: Appliance, role: str = "signing") -> Iterator[list[psutil.Process]]:
    """Workers of a role that do not get on with their work."""
    workers: list[psutil.Process] = appliance.children(role)
    with standing_still(appliance, workers):
        yield workers


@contextmanager
def standing_still(
    appliance: Appliance, processes: Sequence[psutil.Process]
) -> Iterator[None]:
    """Have processes stand still, none of them within a write that others wait for.

    Signing workers of all hosts count as alive meanwhile, however long it takes: fronts
    go on sealing to their hosts.

    Args:
        appliance: whose database they write to.
        processes: of it, also on other hosts.
    """

    def stopped() -> bool:
        for each in processes:
            each.suspend()
        # What waits for a processor stops when it gets one, and may take a lock before.
        until(lambda: all(map(_stands_still, processes)))
        if _may_write(appliance):
            return True
        for each in processes:
            each.resume()
        return False

    try:
        until(stopped)
        write(appliance, _ALIVE_LATER)
        yield
    finally:
        for each in processes:
            each.resume()


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; a zombie that nobody has reaped does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def until(true: Callable[[], bool], patience_s: float = _PATIENCE_S) -> None:
    """Wait for something to become true; how long is no matter of the test."""
    deadline = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(_LOOK_S)


def newest(appliance: Appliance) -> int:
    """The last request made so far."""
    return read_ledger(appliance).newest


def interrupted(appliance: Appliance) -> int:
    """Intents that a dead worker left."""
    return read_intents(appliance)[IntentState.INTERRUPTED]


def assert_sound(
    crowd: Crowd,
    *,
    before: int,
    longest_s: float | None = None,
    is_restarted: bool = False,
) -> None:
    """All calls ended with a document, in time, and the ledger is clean.

    Args:
        crowd: whose calls ended.
        before: documents of requests up to this one were looked at before.
        longest_s: that anybody may have waited; None for as long as callers do.
        is_restarted: the front may have been there before a signing worker.
    """
    assert all(call.signed for call in crowd.calls), crowd.answers
    expected = {"200", "202", BROKEN}
    if crowd.concurrency > LET_IN:
        expected.add("503 OVERLOADED")
    if is_restarted:
        expected.add("503 HSM_UNAVAILABLE")
    assert crowd.answers.keys() <= expected, crowd.answers
    assert longest_s is None or crowd.longest_wait_s <= longest_s
    ledger = read_ledger(crowd.appliance, after=before)
    signed = {row.id for row in ledger.with_state(RequestState.SIGNED)}
    assert {call.request for call in crowd.calls} <= signed
    faults = ledger.faults()
    assert not faults, faults
