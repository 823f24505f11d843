"""Tests that share something dear run in one process, also under xdist."""

import re
from types import SimpleNamespace

import pytest

from tests.support.plugins.grouping import GroupScheduling, group_of
from tests.tools import contract

PROBE = """
import pytest

@pytest.mark.parametrize("number", range(8))
def test_probe(number): ...
"""


@pytest.mark.parametrize(
    ("node_id", "group"),
    [
        ("tests/e2e/console/test_console_flow.py::test_a[x@y]", "e2e"),
        ("tests/e2e/embedding/test_frame_flow.py::test_a", "ceremonies"),
        ("tests/faults/test_signing_kills.py::test_a", "faults"),
        ("tests/functional/api/test_flow.py::test_a", "functional"),
        (
            "tests/functional/keys/test_key_ownership.py::test_a",
            "tests/functional/keys/test_key_ownership.py",
        ),
        ("tests/unit/test_e2e.py::test_a", "tests/unit/test_e2e.py"),
    ],
)
def test_group_follows_the_folder_or_the_file(node_id: str, group: str) -> None:
    """Whole folders where appliances are shared, else each file."""
    assert group_of(node_id) == group


def test_files_of_a_whole_folder_run_in_one_process(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers, three files: those of `functional` are not torn apart."""
    monkeypatch.setenv("PYTHONPATH", str(contract.ROOT))
    for name in ("functional/test_a", "functional/test_b", "unit/test_c"):
        path = pytester.path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROBE)

    done = pytester.runpytest_subprocess(
        "-p", "tests.support.plugins.grouping", "-n", "2", "-v"
    )

    ran = re.findall(r"^\[(gw\d)\].* PASSED (\w+)/", done.stdout.str(), re.MULTILINE)
    assert len(ran) == 24
    assert len({worker for worker, folder in ran if folder == "functional"}) == 1


class Worker:
    """A process of tests, as the scheduler knows it: it takes all that it is given."""

    shutting_down = False
    gateway = SimpleNamespace(id="gw")

    def send_runtest_some(self, tests: list[int]) -> None:
        """Take them."""

    def shutdown(self) -> None:
        """End after what was taken."""
        self.shutting_down = True


def test_two_browsers_run_beside_what_waits(pytester: pytest.Pytester) -> None:
    """The third one when one of them is over, or where nothing else is left."""
    browsers = ("test_flow", "test_frame_flow", "test_frame_contract")
    files = [f"tests/e2e/{name}.py" for name in browsers]
    files += ["tests/functional/test_b.py", "tests/unit/test_c.py"]
    scheduling = GroupScheduling(pytester.parseconfig("--tx=4*popen"))
    scheduling.config.option.loadscopereorder = False
    workers = [Worker() for _ in range(4)]
    tests = [f"{file}::test_{number}" for file in files for number in range(8)]
    for worker in workers:
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, tests)

    scheduling.schedule()
    first = [list(scheduling.assigned_work[worker]) for worker in workers]
    for number, test in enumerate(tests):
        if group_of(test) == "ceremonies":
            scheduling.mark_test_complete(workers[1], number)
    then = list(scheduling.assigned_work[workers[1]])

    apart = [["e2e"], ["ceremonies"], ["functional"], ["tests/unit/test_c.py"]]
    assert first == apart
    assert then == ["ceremonies", "messages"]
