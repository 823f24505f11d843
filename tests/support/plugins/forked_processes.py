"""A pytest plugin that runs tests in processes, forked once all are gathered.

    pytest --processes 6

Each process has the tests as they are. With xdist each would be a Python of its own
that imports and gathers all of them again: 9.6 s of a processor each, a twentieth of
`./check`. In return there are no other hosts, and no process may have threads or open
connections from importing tests.

Files are handed out whole, in the order of `Files`. Reports and warnings go to the
process that gathered, which prints and counts them. Where a process dies, the test that
it was at has failed, and another one goes on.

A process has `workerinput` in its configuration, as one of xdist's has: by that name
plugins know that they are not the ones to write what a run leaves.
"""

import multiprocessing
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from types import SimpleNamespace
from typing import Any, Final, Literal

import pytest

from appliance.runtime.processes import die_with_parent
from tests.support.plugins.grouping import Files, slowest_first
from tests.support.processes import rubrica

_END_S: Final = 60.0
_TOLD_BY_THE_FIRST: Final = (
    "terminalreporter",
    "rubrica-passed",
    "rubrica-durations",
    "junitxml",
)
"""Plugins that hear of all tests, in the process that gathered them."""

_fork: Final = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Asks:
    """A process is at the last test that it was given."""


@dataclass(frozen=True, slots=True)
class Begins:
    """A process begins a test.

    Args:
        number: of the test, in the order of the collection.
    """

    number: int


@dataclass(frozen=True, slots=True)
class Reports:
    """One phase of a test has ended.

    Args:
        report: as `pytest_report_to_serializable` has it.
    """

    report: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Warns:
    """Something warned.

    Args:
        text: of the warning.
        file: that it is about.
        line: in it.
        when: as of `pytest_warning_recorded`.
        test: its id; empty outside of tests.
    """

    text: str
    file: str
    line: int
    when: Literal["config", "collect", "runtest"]
    test: str


@dataclass(frozen=True, slots=True)
class Ends:
    """A process has closed all that it had opened.

    Args:
        why: it stopped before its tests were over; else empty.
    """

    why: str = ""


@dataclass(slots=True)
class _Process:
    """A process as the first one knows it."""

    number: int
    process: ForkProcess
    connection: Connection
    waiting: list[int] = field(default_factory=list)
    """Tests that it was given and has not begun."""
    at: int | None = None
    """The test that it is at."""
    has_ended: bool = False


class Runs:
    """Runs the tests of a session in processes.

    Args:
        session: with the tests gathered.
        processes: how many at a time; 1 or more.
    """

    def __init__(self, session: pytest.Session, processes: int) -> None:
        self._session = session
        self._config = session.config
        self._files = Files([item.nodeid for item in session.items])
        self._loaded = rubrica.shared(processes)
        self._scratch = _temporary_folders(self._config).getbasetemp()
        self._processes = [self._start(number) for number in range(processes)]

    def run(self) -> None:
        """Return when every test has run, or the session is to stop."""
        try:
            while running := [one for one in self._processes if not one.has_ended]:
                ready = wait(
                    [
                        *(one.connection for one in running),
                        *(one.process.sentinel for one in running),
                    ]
                )
                for one in running:
                    if one.connection in ready or one.process.sentinel in ready:
                        self._hear(one)
        finally:
            self._end()

    def _start(self, number: int) -> _Process:
        ours, theirs = _fork.Pipe()
        process = _fork.Process(
            target=_work,
            args=(self._session, number, self._scratch, theirs, self._loaded),
            name=f"tests-{number}",
        )
        process.start()
        theirs.close()
        if self._loaded is not None:
            self._loaded.has_forked(number)
        return _Process(number, process, ours)

    def _hear(self, one: _Process) -> None:
        try:
            told = one.connection.recv()
        except (EOFError, OSError):
            self._has_died(one)
            return
        hook = self._config.hook
        match told:
            case Asks():
                one.waiting = self._given(one.number)
                self._send(one, one.waiting)
            case Begins(number=number):
                one.at = number
                one.waiting.remove(number)
            case Reports(report=data):
                report = hook.pytest_report_from_serializable(
                    config=self._config, data=data
                )
                self._log(one, report)
                if report.when == "teardown":
                    one.at = None
            case Warns():
                _record(self._config, told)
            case Ends(why=why):
                one.has_ended = True
                if why and not self._must_stop():
                    self._session.shouldstop = why

    def _log(self, one: _Process, report: Any) -> None:
        # What pytest prints of a process of xdist's, it asks this of.
        node: Any = SimpleNamespace(gateway=SimpleNamespace(id=str(one.number)))
        node._workerinfocache = f"[process {one.number}]"
        report.node = node
        self._config.hook.pytest_runtest_logreport(report=report)

    def _given(self, number: int) -> list[int]:
        return [] if self._must_stop() else self._files.next_for(number)

    def _must_stop(self) -> bool:
        return bool(self._session.shouldfail or self._session.shouldstop)

    def _send(self, one: _Process, tests: list[int]) -> None:
        with suppress(OSError):  # it has died; its sentinel tells so next
            one.connection.send(tests)

    def _has_died(self, one: _Process) -> None:
        one.has_ended = True
        one.process.join(_END_S)
        status = one.process.exitcode
        if one.at is None and not one.waiting:
            self._session.shouldstop = f"a process of tests ended with {status}"
            return
        at = one.waiting.pop(0) if one.at is None else one.at
        item = self._session.items[at]
        report = pytest.TestReport(
            item.nodeid,
            item.location,
            {},
            "failed",
            f"its process ended with {status}",
            "call",
        )
        self._log(one, report)
        self._files.give_back(one.waiting)
        self._processes.append(self._start(one.number))

    def _end(self) -> None:
        for one in self._processes:
            one.connection.close()
        for one in self._processes:
            one.process.join(_END_S)
            if one.process.is_alive():
                one.process.kill()
                one.process.join()
        if self._loaded is not None:
            self._loaded.end()


class _Worker:
    """Runs tests in a forked process, and reports to the one that gathered them."""

    def __init__(self, session: pytest.Session, connection: Connection) -> None:
        self._session = session
        self._connection = connection
        self._numbers = {id(item): at for at, item in enumerate(session.items)}

    def work(self) -> None:
        """Run what is given until nothing is, and end the session."""
        hook = self._session.config.hook
        why = ""
        try:
            items = self._given()
            item = next(items, None)
            while item is not None:
                self._connection.send(Begins(self._numbers[id(item)]))
                # Asked for before this one runs: what the two share is kept for it.
                following = next(items, None)
                hook.pytest_runtest_protocol(item=item, nextitem=following)
                item = None if self._session.shouldstop else following
            why = str(self._session.shouldstop or "")
        except (EOFError, BrokenPipeError):
            pass  # the first process has stopped
        except (KeyboardInterrupt, pytest.exit.Exception) as exc:
            why = str(exc) or type(exc).__name__
        finally:
            hook.pytest_sessionfinish(session=self._session, exitstatus=0)
            rubrica.end_run()
        self._tell(Ends(why))

    def _given(self) -> Iterator[pytest.Item]:
        while tests := self._ask():
            for number in tests:
                yield self._session.items[number]

    def _ask(self) -> Sequence[int]:
        self._connection.send(Asks())
        tests: Sequence[int] = self._connection.recv()
        return tests

    def _tell(self, told: object) -> None:
        with suppress(OSError):  # the gathering process has ended
            self._connection.send(told)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Pass on how a phase of a test ended."""
        config = self._session.config
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        self._tell(Reports(data))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: Literal["config", "collect", "runtest"],
        nodeid: str,
    ) -> None:
        """Pass on a warning."""
        text = f"{warning_message.category.__name__}: {warning_message.message}"
        place = warning_message.filename, warning_message.lineno
        self._tell(Warns(text, *place, when, nodeid))


def _work(
    session: pytest.Session,
    number: int,
    scratch: Any,
    connection: Connection,
    loaded: rubrica.Shared | None,
) -> None:
    """Be process `number`."""
    die_with_parent(os.getppid())
    config = session.config
    config.workerinput = {"workerid": str(number)}  # type: ignore[attr-defined]  # a name of xdist's
    for name in _TOLD_BY_THE_FIRST:
        if (plugin := config.pluginmanager.get_plugin(name)) is not None:
            config.pluginmanager.unregister(plugin)
    # What tests print goes to a file, which is to be this process's own.
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    folders = _temporary_folders(config)
    folders._given_basetemp = scratch / str(number)
    folders._basetemp = None
    if loaded is not None:
        loaded.take(number)
    worker = _Worker(session, connection)
    config.pluginmanager.register(worker, "rubrica-worker")
    worker.work()


def _temporary_folders(config: pytest.Config) -> Any:
    """The source of `tmp_path`. pytest has no public name for it."""
    return config._tmp_path_factory  # type: ignore[attr-defined]


def _record(config: pytest.Config, told: Warns) -> None:
    """Have a warning of a process stand in the summary."""
    message = warnings.WarningMessage(
        pytest.PytestWarning(told.text), pytest.PytestWarning, told.file, told.line
    )
    config.hook.pytest_warning_recorded.call_historic(
        kwargs={
            "warning_message": message,
            "when": told.when,
            "nodeid": told.test,
            "location": None,
        }
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--processes`."""
    parser.addoption(
        "--processes", type=int, metavar="N", help="run the tests in N processes"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Print no names of files: those of several run at a time."""
    if config.getoption("--processes"):
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.showfspath = False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Begin with the slowest files, where processes share the tests."""
    if config.getoption("--processes"):
        slowest_first(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run them, unless one process is to do it or they cannot be gathered."""
    config = session.config
    processes: int | None = config.getoption("--processes")
    if not processes or config.option.collectonly:
        return None
    if session.testsfailed and not config.option.continue_on_collection_errors:
        return None
    if (threads := threading.active_count()) > 1:
        message = f"importing the tests has left {threads - 1} threads"
        raise pytest.UsageError(message)
    if session.items:
        Runs(session, min(processes, len(session.items))).run()
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True
