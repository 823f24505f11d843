"""Tests that share something dear run in one process, the slowest files first."""

import pytest

from tests.support.plugins.grouping import Files, family_of


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


def _files(names: list[str]) -> tuple[Files, list[str]]:
    """Files of two tests each, and the ids of all."""
    tests = [f"{name}::test_{number}" for name in names for number in range(2)]
    return Files(tests), tests


def test_a_family_has_two_processes_until_it_is_over() -> None:
    """They stay with it; the others leave it alone, and help where nothing is left."""
    browsers = [f"tests/e2e/test_{number}.py" for number in range(5)]
    calls = [f"tests/functional/test_{number}.py" for number in range(3)]
    units = ["tests/unit/test_a.py", "tests/unit/test_b.py"]
    files, tests = _files([*browsers, *calls, *units])

    def given(process: int) -> str:
        numbers = files.next_for(process)
        (name,) = {tests[number].partition("::")[0] for number in numbers}
        assert len(numbers) == 2
        return name

    assert [given(process) for process in range(4)] == browsers[:2] + calls[:2]
    assert given(2) == calls[2]
    assert given(1) == browsers[2]
    assert given(3) == units[0]
    assert given(2) == units[1]
    assert given(3) == browsers[3]
    assert given(0) == browsers[4]
    assert files.next_for(0) == []


def test_what_a_process_left_is_given_first() -> None:
    """And it stays one file's, whatever waits."""
    files, _ = _files(["tests/unit/test_a.py", "tests/unit/test_b.py"])
    assert files.next_for(0) == [0, 1]
    files.give_back([1])
    files.give_back([])
    assert files.next_for(1) == [1]
    assert files.next_for(1) == [2, 3]
