"""A pytest plugin that marks what is behind `./check --full`.

`./check` is run at every commit and has minutes: of the folders `functional`, `faults`
and `e2e` it runs what the contract's statements are answered by (`contract.toml` names
it), and
of tests that run on both databases those on SQLite, but for the marker `storage`, which
says that the databases themselves are the matter. What is dear elsewhere is marked
where it stands. `./check --full` runs all but what is marked `long`.
"""

from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.tools.contract import read_entries

_TESTS: Final = Path(__file__).resolve().parents[2]
_ENTRIES: Final = _TESTS / "functional" / "contract.toml"
_WHOLE: Final = (_TESTS / "functional", _TESTS / "faults", _TESTS / "e2e")
_SECOND: Final = "postgresql"
"""The parameter, of whatever fixture, of a test's second run."""


@cache
def _named() -> frozenset[str]:
    """The tests that answer for the contract."""
    return frozenset(test for entry in read_entries(_ENTRIES) for test in entry.tests)


def is_for_the_full_run(item: pytest.Item) -> bool:
    """Whether it is behind `./check --full` for its folder or for its database."""
    if item.nodeid in _named():
        return False
    if any(item.path.is_relative_to(folder) for folder in _WHOLE):
        return True
    if item.get_closest_marker("storage") is not None:
        return False
    call = getattr(item, "callspec", None)
    return call is not None and _SECOND in call.params.values()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them before `-m` looks."""
    for item in items:
        if is_for_the_full_run(item):
            item.add_marker(pytest.mark.full)
