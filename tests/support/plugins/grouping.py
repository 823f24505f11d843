"""A pytest plugin that keeps tests together which share something dear.

What drives a whole appliance by a browser, and what calls it over HTTP, goes to few
processes, each test after the other: they share appliances and browsers.
Elsewhere the tests of one file share that file's fixtures. Groups with a browser keep a
core busy, the others wait for half of their time: two of the former run beside two of
the latter while there are any. xdist's own groups
(`--dist loadgroup`) are of no use here: xdist 3.8 writes them into an attribute
that pytest 9.2 does not read, and hands out each test by itself.
"""

import tomllib
from pathlib import Path, PurePath
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

SLOWEST: Final = Path(__file__).resolve().parents[2] / "slowest.toml"
"""Seconds by group, of those that take long (`tests.tools.slowest` writes it)."""

_WHOLE = {"e2e": "e2e", "faults": "faults", "functional": "functional"}
"""Groups of the folders of `tests` whose tests stay together, but for these:"""
_TOGETHER = {
    "test_frame_flow.py": "ceremonies",
    "test_frame_signature_state.py": "ceremonies",
    "test_frame_use.py": "ceremonies",
    "test_frame_contract.py": "messages",
    "test_frame_firefox.py": "messages",
    "test_frame_hosts.py": "messages",
    "test_frame_appearance.py": "messages",
    "test_frame_messages.py": "messages",
    "test_certificate_status.py": "faults",
    "test_corpus.py": "faults",
}
"""Files there that stay with others: one process with all would be the last to end."""
_WITH_A_BROWSER: Final = frozenset({"e2e", "ceremonies", "messages"})
_BROWSERS: Final = 2
"""Groups with a browser at once: of more, each would be late for its tests."""
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


def group_of(node_id: str) -> str:
    """The group of a test.

    Args:
        node_id: as pytest has it, from the root folder on.
    """
    path = PurePath(node_id.partition("::")[0])
    whole = [_WHOLE[part] for part in path.parts[:-1] if part in _WHOLE]
    if not whole or path.name in _APART:
        return str(path)
    return _TOGETHER.get(path.name, whole[0])


def slowest_first(items: list[pytest.Item]) -> None:
    """Order tests by how long their group takes; within a group nothing changes."""
    seconds = tomllib.loads(SLOWEST.read_text("utf-8"))
    items.sort(key=lambda item: -seconds.get(group_of(item.nodeid), 0))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Begin with the slowest groups, where processes share the tests."""
    if hasattr(config, "workerinput"):
        slowest_first(items)


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Hands out whole groups, in the order of the collection: see `slowest_first`."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if self._browsers() >= _BROWSERS:
            others = (each for each in self.workqueue if each not in _WITH_A_BROWSER)
            if (other := next(others, None)) is not None:
                self.workqueue.move_to_end(other, last=False)
        super()._assign_work_unit(node)

    def _browsers(self) -> int:
        """How many groups with a browser are given to somebody, and not over."""
        return sum(
            group in _WITH_A_BROWSER and not all(tests.values())
            for given in self.assigned_work.values()
            for group, tests in given.items()
        )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:
    """Schedule by our groups, whatever `--dist` says."""
    config.option.loadscopereorder = False
    return GroupScheduling(config, log)
