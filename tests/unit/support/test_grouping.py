"""Tests that share something dear run in one process, also under xdist."""

import re
from types import SimpleNamespace

import pytest

from tests.support.plugins.grouping import FileScheduling, family_of, file_of
from tests.tools import contract

PROBE = """
import pytest

@pytest.mark.parametrize("number", range(8))
def test_probe(number): ...
"""


@pytest.mark.parametrize(
    ("file", "family"),
    [
        ("tests/e2e/console/test_console_flow.py", "browsers"),
        ("tests/faults/test_signing_kills.py", "calls"),
        ("tests/functional/api/test_flow.py", "calls"),
        ("tests/functional/keys/test_key_ownership.py", None),
        ("tests/unit/test_e2e.py", None),
    ],
)
def test_family_follows_the_folder(file: str, family: str | None) -> None:
    """Of folders that share appliances; not files there that start their own."""
    assert family_of(file) == family


def test_tests_of_a_file_run_in_one_process(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes, three files: none is torn apart."""
    monkeypatch.setenv("PYTHONPATH", str(contract.ROOT))
    for name in ("functional/test_a", "functional/test_b", "unit/test_c"):
        path = pytester.path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROBE)

    done = pytester.runpytest_subprocess(
        "-p", "tests.support.plugins.grouping", "-n", "2", "-v"
    )

    said = done.stdout.str()
    ran = set(re.findall(r"^\[(gw\d)\].* PASSED (\S+)::", said, re.MULTILINE))
    assert len(ran) == len({file for _, file in ran}) == 3


class Worker:
    """A process of tests, as the scheduler knows it: it takes all that it is given."""

    shutting_down = False
    gateway = SimpleNamespace(id="gw")

    def send_runtest_some(self, tests: list[int]) -> None:
        """Take them."""

    def shutdown(self) -> None:
        """End after what was taken."""
        self.shutting_down = True


def scheduling_of(config: pytest.Config, files: list[str]) -> FileScheduling:
    """Four processes that were given their first files, of eight tests each."""
    scheduling = FileScheduling(config, None)
    scheduling.config.option.loadscopereorder = False
    tests = [f"{file}::test_{number}" for file in files for number in range(8)]
    for worker in [Worker() for _ in range(4)]:
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, tests)
    scheduling.schedule()
    return scheduling


def end(scheduling: FileScheduling, worker: Worker, file: str) -> None:
    """A process has done all tests of a file."""
    for number, test in enumerate(scheduling.collection):
        if file_of(test) == file:
            scheduling.mark_test_complete(worker, number)


def test_a_family_has_two_processes_until_it_is_over(
    pytester: pytest.Pytester,
) -> None:
    """They stay with it; the others leave it alone, and help where nothing is left."""
    browsers = [f"tests/e2e/test_{number}.py" for number in range(5)]
    calls = [f"tests/functional/test_{number}.py" for number in range(3)]
    files = [*browsers, *calls, "tests/unit/test_a.py", "tests/unit/test_b.py"]
    scheduling = scheduling_of(pytester.parseconfig("--tx=4*popen"), files)
    workers = list(scheduling.assigned_work)

    def given(number: int) -> list[str]:
        return list(scheduling.assigned_work[workers[number]])

    first = [given(number) for number in range(4)]
    assert first == [browsers[:1], browsers[1:2], calls[:1], calls[1:2]]
    end(scheduling, workers[2], calls[0])
    end(scheduling, workers[1], browsers[1])
    end(scheduling, workers[3], calls[1])
    end(scheduling, workers[2], calls[2])
    assert given(1) == browsers[1:3]
    assert given(2) == [calls[0], calls[2], "tests/unit/test_b.py"]
    assert given(3) == [calls[1], "tests/unit/test_a.py"]
    end(scheduling, workers[3], "tests/unit/test_a.py")
    assert given(3)[-1] == browsers[3]
