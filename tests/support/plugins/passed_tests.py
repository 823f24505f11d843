"""A pytest plugin that writes down which tests passed, for the contract check.

`--passed FILE` gets one JSON string a line: the ids of the tests whose set-up,
call and tear-down all passed. Where several processes
run the tests, the one that gathered them writes: it hears of all.
"""

import json
from pathlib import Path

import pytest


class PassedTests:
    """Gathers outcomes and writes the file at the end.

    Args:
        path: the file to write.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._called: dict[str, None] = {}
        self._unsound: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hear of one phase of one test."""
        node_id = report.nodeid
        if not report.passed or hasattr(report, "wasxfail"):
            self._unsound.add(node_id)
        elif report.when == "call":
            self._called[node_id] = None

    def pytest_sessionfinish(self) -> None:
        """Write what passed from set-up to tear-down."""
        passed = [node_id for node_id in self._called if node_id not in self._unsound]
        lines = "".join(f"{json.dumps(node_id)}\n" for node_id in passed)
        self._path.write_text(lines, encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--passed`."""
    parser.addoption(
        "--passed", type=Path, metavar="FILE", help="write the ids of passed tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start to gather, where it is asked for and not in one of its processes."""
    path = config.getoption("--passed")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(PassedTests(path), "rubrica-passed")
