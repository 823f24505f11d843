"""What a run of tests does not do again and again, and what it lets rest."""

import gc
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.plugins import shared_appliances


class Rested:
    """Stands for a running appliance; says how it was stopped and started."""

    def __init__(self) -> None:
        self.is_started = True
        self.told: list[str] = []

    def start(self) -> None:
        """Be up."""
        self.is_started = True
        self.told.append("start")

    def stop(self) -> None:
        """Be down."""
        self.is_started = False
        self.told.append("stop")


def item(path: str, *fixtures: str) -> Any:
    """A test of a file, which names fixtures."""
    return SimpleNamespace(nodeid=f"{path}::test_it", fixturenames=fixtures)


UNIT = item("tests/unit/test_a.py", "tmp_path")
FLOW = item("tests/functional/api/test_flow.py", "client")
APART = item("tests/functional/api/test_openapi.py", "own")
USER = item("tests/integration/test_b.py", "appliance")


@pytest.mark.parametrize(
    ("ran", "told"),
    [
        ([FLOW, FLOW], []),
        ([FLOW, USER], []),
        ([FLOW, UNIT, UNIT], ["stop"]),
        ([FLOW, APART, UNIT], ["stop"]),
        ([FLOW, UNIT, FLOW], ["stop", "start"]),
        ([FLOW, UNIT, USER, FLOW], ["stop", "start"]),
        ([FLOW, UNIT, USER, UNIT], ["stop", "start", "stop"]),
    ],
)
def test_shared_appliance_is_down_while_nobody_wants_it(
    monkeypatch: pytest.MonkeyPatch, ran: list[Any], told: list[str]
) -> None:
    """It is up for each test that may ask for it."""
    rested = Rested()
    monkeypatch.setattr(shared_appliances, "_shared", {"appliance": rested})

    for test, after in zip(ran, [*ran[1:], None], strict=True):
        shared_appliances.pytest_runtest_setup(test)
        assert rested.is_started or test in (UNIT, APART)
        shared_appliances.pytest_runtest_teardown(after)

    assert rested.told == told


def test_gathered_tests_are_not_looked_at_by_each_collection() -> None:
    """They are frozen; what tests make is collected as ever."""
    assert gc.get_freeze_count() > 100_000
    assert gc.isenabled()
