"""A pytest plugin that writes down each test as it begins and as it ends.

`--outcomes FILE` gets one JSON object a line. What was written is there whenever the
run is stopped: a test that began and did not end is the one that hung. In a tree with
probes (`tests.support.mutation.probes`) the line of a test has the statements that ran.

`--only-tests FILE` names the tests to run, one a line, in that order.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

_HITS: Final = "appliance.statement_hits"
_DIGITS: Final = bytes.maketrans(b"\0\1", b"01")
_TIMEOUT: Final = "Timeout (>"
"""With this pytest-timeout begins the message of a test that took too long."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a test.

    Args:
        test: its id; the file's where that could not be imported, "" for the hits
            of collecting.
        result: `passed`, `skipped`, `failed`, `timeout` or `started`.
        seconds: of set-up, call and tear-down.
        hits: a bit for each probe whose statement ran.
    """

    test: str
    result: str
    seconds: float = 0.0
    hits: int = 0


class _Hits:
    """The probes of this tree; none in a tree without."""

    def __init__(self) -> None:
        self._bytes: Any = (
            import_module(_HITS).HITS if find_spec(_HITS) else bytearray()
        )

    def take(self) -> int:
        """Statements that ran since this was last called, by any process."""
        seen = bytes(self._bytes[:])
        self._bytes[:] = bytes(len(seen))
        return int(seen[::-1].translate(_DIGITS) or b"0", 2)


class Outcomes:
    """Hears of tests and writes lines.

    Args:
        path: the file to add to.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._hits = _Hits()
        self._seconds = 0.0
        self._results: set[str] = set()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Hear of a file that cannot be imported."""
        if report.failed:
            self._write(Outcome(report.nodeid, "failed"))

    def pytest_collection_finish(self) -> None:
        """Take what ran as test files were imported."""
        self._write(Outcome("", "passed", hits=self._hits.take()))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Take what runs during a test."""
        self._seconds, self._results = 0.0, set()
        self._write(Outcome(item.nodeid, "started"))
        self._hits.take()
        result = yield
        of_worst = ("timeout", "failed", "skipped")
        worst = next((each for each in of_worst if each in self._results), "passed")
        self._write(
            Outcome(item.nodeid, worst, round(self._seconds, 3), self._hits.take())
        )
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hear of one phase of one test."""
        self._seconds += report.duration
        is_late = report.failed and _TIMEOUT in str(report.longrepr)
        self._results.add("timeout" if is_late else report.outcome)

    def _write(self, outcome: Outcome) -> None:
        line = {
            "test": outcome.test,
            "result": outcome.result,
            "seconds": outcome.seconds,
            "hits": f"{outcome.hits:x}",
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")


def read_outcomes(path: Path) -> list[Outcome]:
    """Lines of a run, in their order; none where it wrote no file."""
    if not path.exists():
        return []
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return [
        Outcome(line["test"], line["result"], line["seconds"], int(line["hits"], 16))
        for line in lines
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add both options."""
    group = parser.getgroup("mutation")
    group.addoption("--outcomes", type=Path, help="write what became of each test")
    group.addoption("--only-tests", type=Path, help="ids of the tests to run, in order")


def pytest_configure(config: pytest.Config) -> None:
    """Start to listen, where it is asked for."""
    if (path := config.getoption("--outcomes")) is not None:
        config.pluginmanager.register(Outcomes(path), "mutation-outcomes")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave the tests that are named, in that order."""
    if (path := config.getoption("--only-tests")) is None:
        return
    by_id = {item.nodeid: item for item in items}
    names = path.read_text("utf-8").splitlines()
    chosen = [by_id[name] for name in names if name in by_id]
    wanted = set(map(id, chosen))
    config.hook.pytest_deselected(items=[i for i in items if id(i) not in wanted])
    items[:] = chosen
