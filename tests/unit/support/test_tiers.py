"""Which tests every run has, in which order, and what is written of them."""

import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from tests.support.plugins import grouping
from tests.support.plugins.durations import read_durations
from tests.support.plugins.grouping import slowest_first
from tests.support.plugins.tiers import is_for_the_full_run
from tests.tools import contract, slowest

NAMED = "tests/functional/identity/test_auth.py::test_login_needs_password_and_otp"
_PLUGINS: Final = ("durations", "forked_processes")
PROBE = """
import time
import pytest

@pytest.fixture
def slow():
    time.sleep(0.2)

def test_slow(slow): ...
def test_quick(): ...
def test_failed(): assert not "sound"
"""


def item(
    node_id: str, *marks: str, parameters: dict[str, Any] | None = None
) -> pytest.Item:
    """What is asked of a test that pytest collected."""
    made: Any = SimpleNamespace(
        nodeid=node_id,
        path=contract.ROOT / node_id.partition("::")[0],
        get_closest_marker=lambda name: name if name in marks else None,
    )
    if parameters is not None:
        made.callspec = SimpleNamespace(params=parameters)
    return made  # type: ignore[no-any-return]  # it stands for one


@pytest.mark.parametrize(
    ("test", "full"),
    [
        (item(NAMED), False),
        (item("tests/functional/identity/test_auth.py::test_another"), True),
        (item("tests/e2e/embedding/test_frame_appearance.py::test_another"), True),
        (item("tests/integration/test_a.py::test_b"), False),
        (item("tests/integration/test_a.py::t", parameters={"core": "sqlite"}), False),
        (item("tests/integration/test_a.py::t", parameters={"u": "postgresql"}), True),
        (
            item(
                "tests/integration/test_a.py::t",
                "storage",
                parameters={"core": "postgresql"},
            ),
            False,
        ),
    ],
)
def test_every_run_has_the_contract_and_one_database(
    test: pytest.Item, *, full: bool
) -> None:
    """Of the dear folders what the contract names; both databases where they matter."""
    assert is_for_the_full_run(test) is full


def test_every_named_test_stands_in_its_tier() -> None:
    """A statement is answered for in every run: no test of it is marked dearer."""
    entries = contract.read_entries(contract.ROOT / "tests/functional/contract.toml")
    named = {test for entry in entries for test in entry.tests}

    assert len(named) > 100
    for test in named:
        database = "postgresql" if "[postgresql" in test else "sqlite"
        assert not is_for_the_full_run(item(test, parameters={"core": database})), test


def test_slowest_files_begin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the file's seconds; the others, and the tests of one file, as they were."""
    kept = tmp_path / "slowest.toml"
    kept.write_text('"tests/integration/test_b.py" = 20\n"tests/e2e/test_c.py" = 90\n')
    monkeypatch.setattr(grouping, "SLOWEST", kept)
    tests = [
        item("tests/unit/test_a.py::test_1"),
        item("tests/integration/test_b.py::test_1"),
        item("tests/e2e/test_c.py::test_2"),
        item("tests/integration/test_b.py::test_0"),
        item("tests/e2e/test_d.py::test_1"),
    ]

    slowest_first(tests)

    assert [test.nodeid.removeprefix("tests/") for test in tests] == [
        "e2e/test_c.py::test_2",
        "integration/test_b.py::test_1",
        "integration/test_b.py::test_0",
        "unit/test_a.py::test_1",
        "e2e/test_d.py::test_1",
    ]


def test_slowest_files_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From what a run wrote: sums of files, those of over ten seconds alone."""
    told = tmp_path / "durations"
    told.write_text(
        '{"test": "tests/e2e/console/test_console_flow.py::a", "seconds": 8.0}\n'
        '{"test": "tests/e2e/console/test_console_flow.py::b", "seconds": 9.25}\n'
        '{"test": "tests/unit/test_a.py::a", "seconds": 9.0}\n'
    )
    monkeypatch.setattr(slowest, "SLOWEST", tmp_path / "slowest.toml")

    assert slowest.main([str(told)]) == 0
    kept = tomllib.loads((tmp_path / "slowest.toml").read_text())
    assert kept == {"tests/e2e/console/test_console_flow.py": 17}


@pytest.mark.parametrize("processes", ["0", "2"])
def test_durations_are_written(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    """Of every test, set-up included, failed or not; the slowest first."""
    monkeypatch.setenv("PYTHONPATH", str(contract.ROOT))
    plugins = [f"tests.support.plugins.{name}" for name in _PLUGINS]
    pytester.makeconftest(f"pytest_plugins = {plugins}")
    pytester.makepyfile(test_probe=PROBE)

    pytester.runpytest_subprocess("--durations-to=out", "--processes", processes)

    told = read_durations(pytester.path / "out")
    assert next(iter(told)) == "test_probe.py::test_slow"
    assert told["test_probe.py::test_slow"] >= 0.2
    assert {name.partition("::")[2] for name in told} == {
        "test_slow",
        "test_quick",
        "test_failed",
    }
    assert read_durations(pytester.path / "away") == {}
