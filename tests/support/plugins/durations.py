"""A pytest plugin that writes down what each test took.

`--durations-to FILE` gets one JSON object a line, the slowest test first: its id, the
seconds of its set-up, call and tear-down together, and the seconds of a processor that
its process used for them, with those of children that ended meanwhile. Where
several processes run the tests, the one that gathered them writes: it hears of all.
"""

import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

_PROCESSOR: Final = "processor"
_began: Final = pytest.StashKey[float]()


class Durations:
    """Adds up and writes the file at the end.

    Args:
        path: the file to write.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._processor: dict[str, object] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hear of one phase of one test."""
        self._seconds[report.nodeid] += report.duration
        for name, value in report.user_properties:
            if name == _PROCESSOR:
                self._processor[report.nodeid] = value

    def pytest_sessionfinish(self) -> None:
        """Write all."""
        slowest = sorted(self._seconds.items(), key=lambda entry: -entry[1])
        lines = (
            json.dumps(
                {
                    "test": test,
                    "seconds": round(seconds, 3),
                    _PROCESSOR: self._processor.get(test, 0),
                }
            )
            for test, seconds in slowest
        )
        self._path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def read_durations(path: Path) -> dict[str, float]:
    """Seconds by test, as a run wrote them; none where there is no such file.

    Raises:
        ValueError: it is not such a file.
    """
    if not path.exists():
        return {}
    told = map(json.loads, path.read_text("utf-8").splitlines())
    return {entry["test"]: entry["seconds"] for entry in told}


def _used() -> float:
    """Seconds of a processor so far, of this process and of its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Begin to count for a test."""
    item.stash[_began] = _used()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add up with its last phase."""
    report = yield
    if call.when == "teardown":
        used = round(_used() - item.stash[_began], 3)
        report.user_properties.append((_PROCESSOR, used))
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--durations-to`."""
    parser.addoption(
        "--durations-to", type=Path, metavar="FILE", help="write what each test took"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start to listen, where it is asked for and not in one of its processes."""
    path = config.getoption("--durations-to")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(path), "rubrica-durations")
