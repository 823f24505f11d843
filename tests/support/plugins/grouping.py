"""The files of tests that each process of a run gets, the slowest first.

Tests of one file share that file's fixtures. Some fixtures live as long as a process
and are dear: an appliance, a browser. The folders whose tests share those are a
*family*; a few processes begin with a family and stay with it until its files are
over, so that few appliances are made. Browsers keep a core busy, the others wait for
half of their time: two processes of the former run beside two of the latter.
"""

import tomllib
from pathlib import Path, PurePath
from typing import Final

import pytest

SLOWEST: Final = Path(__file__).resolve().parents[2] / "slowest.toml"
"""Seconds by file, of those that take long (`tests.tools.slowest` writes it)."""

_FAMILIES: Final = {"e2e": "browsers", "functional": "calls", "faults": "calls"}
"""By the folder of `tests`: what drives appliances by a browser, what calls them."""
_PROCESSES: Final = 2
"""Of each family; of more, each browser would be late for its tests."""
_APART = frozenset(
    {
        "test_api_key_rights.py",
        "test_backend_limits.py",
        "test_backup.py",
        "test_backup_in_bucket.py",
        "test_connections.py",
        "test_developer_guide.py",
        "test_document_bucket.py",
        "test_document_folder_faults.py",
        "test_health_command.py",
        "test_hsm_faults.py",
        "test_hsm_member_faults.py",
        "test_key_ownership.py",
        "test_large_batches.py",
        "test_large_uploads.py",
        "test_mails.py",
        "test_manual_calls.py",
        "test_manual_lines.py",
        "test_metrics.py",
        "test_newer_tables.py",
        "test_openapi.py",
        "test_records_agree.py",
        "test_recovery.py",
        "test_restore_drill.py",
        "test_reverse_proxies.py",
        "test_second_hsm_make.py",
        "test_shared_bucket.py",
        "test_signing_walk.py",
        "test_theft.py",
    }
)
"""Files there that start appliances of their own and share none."""


def file_of(node_id: str) -> str:
    """The file of a test.

    Args:
        node_id: as pytest has it, from the root folder on.
    """
    return node_id.partition("::")[0]


def family_of(file: str) -> str | None:
    """Which dear fixtures the tests of a file share with other files; None if none."""
    path = PurePath(file)
    if path.name in _APART:
        return None
    return next(
        (_FAMILIES[part] for part in path.parts[:-1] if part in _FAMILIES), None
    )


def slowest_first(items: list[pytest.Item]) -> None:
    """Order tests by how long their file takes; within a file nothing changes."""
    seconds = tomllib.loads(SLOWEST.read_text("utf-8"))
    items.sort(key=lambda item: -seconds.get(file_of(item.nodeid), 0))


class Files:
    """The files of a run, and which process has which of them.

    Args:
        tests: their ids, in the order in which their files are to begin.
    """

    def __init__(self, tests: list[str]) -> None:
        self._waiting: dict[str, list[int]] = {}
        self._families: dict[int, str] = {}
        """Which family a process began with."""
        for number, test in enumerate(tests):
            self._waiting.setdefault(file_of(test), []).append(number)
        self._file = [file_of(test) for test in tests]

    def next_for(self, process: int) -> list[int]:
        """The tests of a file, for a process that has none left; empty at the end.

        The slowest file of its own family, else of what no other processes hold.

        Args:
            process: its number.

        Returns:
            Where the tests stand in the list of all.
        """
        if not self._waiting:
            return []
        return self._waiting.pop(self._choose(process))

    def _choose(self, process: int) -> str:
        waiting = [(file, family_of(file)) for file in self._waiting]
        mine = self._families.get(process)
        for file, family in waiting:
            if mine is not None and family == mine:
                return file
        for file, family in waiting:
            if family is None:
                return file
            if list(self._families.values()).count(family) < _PROCESSES:
                self._families[process] = family
                return file
        return waiting[0][0]

    def give_back(self, tests: list[int]) -> None:
        """Have tests of one file be given before all others.

        Args:
            tests: what is left of a process that died; may be empty.
        """
        if tests:
            self._waiting = {self._file[tests[0]]: tests} | self._waiting
