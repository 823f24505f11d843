"""A pytest plugin that hands out tests by files, the slowest first.

Tests of one file share that file's fixtures. Some fixtures live as long as a process
and are dear: an appliance, a browser. The folders whose tests share those are a
*family*; a few processes begin with a family and stay with it until its files are
over, so that few appliances are made. Browsers keep a core busy, the others wait for
half of their time: two processes of the former run beside two of the latter.
xdist's own groups (`--dist loadgroup`) are of no use here: xdist 3.8 writes them into
an attribute that pytest 9.2 does not read, and hands out each test by itself.
"""

import tomllib
from pathlib import Path, PurePath
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Begin with the slowest files, where processes share the tests."""
    if hasattr(config, "workerinput"):
        slowest_first(items)


class FileScheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Hands out whole files, in the order of the collection: see `slowest_first`."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._families: dict[Any, str] = {}
        """Which family a process began with."""

    def _split_scope(self, nodeid: str) -> str:
        return file_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        file = self._next_for(node)
        self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _next_for(self, node: Any) -> str:
        """The slowest of its own family, else of what no other processes hold."""
        files: list[str] = list(self.workqueue)
        waiting = [(file, family_of(file)) for file in files]
        mine = self._families.get(node)
        for file, family in waiting:
            if mine is not None and family == mine:
                return file
        for file, family in waiting:
            if family is None:
                return file
            if list(self._families.values()).count(family) < _PROCESSES:
                self._families[node] = family
                return file
        return waiting[0][0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling:
    """Schedule by our groups, whatever `--dist` says."""
    config.option.loadscopereorder = False
    return FileScheduling(config, log)
