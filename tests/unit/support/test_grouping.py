"""Tests that share something dear run in one process, also under xdist."""

import re

import pytest

from tests.support.plugins.grouping import group_of
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
