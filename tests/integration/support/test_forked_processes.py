"""Tests in several processes say what they would have said in one."""

import json
import re

import pytest

from tests.tools import contract

CONFTEST = '''
pytest_plugins = ["tests.support.plugins.forked_processes"]

import os, pytest

@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder that lives as long as its process."""
    made = tmp_path_factory.mktemp("shared")
    yield made
    with open("closed", "a") as file:
        file.write(f"{os.getpid()}\\n")
'''
OUTCOMES = '''
import os, warnings, pytest

def test_passes(): ...

def test_fails():
    """Said before, told after."""
    print("said by the test that fails")
    assert 1 == 2

@pytest.mark.skip(reason="left out")
def test_is_skipped(): ...

@pytest.mark.xfail(strict=True)
def test_is_expected_to_fail():
    assert 1 == 2

def test_warns():
    warnings.warn("something is old", DeprecationWarning)

@pytest.fixture
def broken():
    raise ValueError("no set-up")

def test_errs(broken): ...
'''
PROBE = """
import os, pytest

@pytest.mark.parametrize("number", range(8))
def test_probe(number, shared, tmp_path):
    with open("ran", "a") as file:
        file.write(f"{os.getpid()} {__file__} {shared} {tmp_path}\\n")
"""
DIES = """
import os

def test_before(): ...

def test_dies():
    os._exit(7)

def test_after(): ...
"""


@pytest.fixture
def place(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """A folder with a `conftest` that knows the plugin."""
    monkeypatch.setenv("PYTHONPATH", str(contract.ROOT))
    pytester.makeconftest(CONFTEST)
    return pytester


def test_outcomes_are_those_of_one_process(place: pytest.Pytester) -> None:
    """Passed, failed, skipped, expected, warned and erred, each with what was said."""
    place.makepyfile(test_outcomes=OUTCOMES, test_other=PROBE)
    expected = {
        "passed": 10,
        "failed": 1,
        "skipped": 1,
        "xfailed": 1,
        "errors": 1,
        "warnings": 1,
    }
    alone = place.runpytest_subprocess("-p", "no:cacheprovider")
    alone.assert_outcomes(**expected)

    done = place.runpytest_subprocess("-p", "no:cacheprovider", "--processes", "2")

    done.assert_outcomes(**expected)
    assert done.ret == alone.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["*said by the test that fails*", "*something is old*"])


def test_tests_of_a_file_run_in_one_process(place: pytest.Pytester) -> None:
    """Two processes, three files: none is torn apart, and each is closed in the end."""
    place.makepyfile(test_a=PROBE, test_b=PROBE, test_c=PROBE)

    done = place.runpytest_subprocess("--processes", "2")

    done.assert_outcomes(passed=24)
    ran = [line.split() for line in (place.path / "ran").read_text().splitlines()]
    assert len({(pid, file) for pid, file, _, _ in ran}) == 3
    processes = {pid for pid, _, _, _ in ran}
    assert sorted((place.path / "closed").read_text().split()) == sorted(processes)
    assert len({shared for _, _, shared, _ in ran}) == len(processes)
    assert len({folder for _, _, _, folder in ran}) == 24


def test_death_of_a_process_fails_its_test_alone(place: pytest.Pytester) -> None:
    """Another process runs what it had left; each test that passed counts once."""
    place.makepyfile(test_dies=DIES, test_other=PROBE)

    done = place.runpytest_subprocess("--processes", "2", "-rf")

    done.assert_outcomes(passed=10, failed=1)
    done.stdout.fnmatch_lines(["FAILED *::test_dies - *ended with 7*"])


def test_failed_ones_are_kept_to_be_run_again(place: pytest.Pytester) -> None:
    """By the first process alone, and of all processes."""
    place.makepyfile(test_outcomes=OUTCOMES, test_dies=DIES)
    place.runpytest_subprocess("--processes", "2")
    kept = place.path / ".pytest_cache" / "v" / "cache" / "lastfailed"
    assert sorted(json.loads(kept.read_text())) == [
        "test_dies.py::test_dies",
        "test_outcomes.py::test_errs",
        "test_outcomes.py::test_fails",
    ]


def test_limit_of_failures_ends_all(place: pytest.Pytester) -> None:
    """No file is begun after it; what is begun ends."""
    fails = "def test_fails():\n    assert 1 == 2\n"
    place.makepyfile(**{f"test_{number}": fails for number in range(9)})

    done = place.runpytest_subprocess("--processes", "2", "--maxfail", "1")

    assert done.ret == pytest.ExitCode.TESTS_FAILED
    failed = re.search(r"(\d+) failed", done.stdout.str())
    assert failed is not None
    assert 1 <= int(failed[1]) <= 4


def test_threads_of_an_import_are_told(place: pytest.Pytester) -> None:
    """A forked process would have the locks that they hold, and not them."""
    begins = "import threading\nthreading.Timer(5, print).start()\ndef test_a(): ...\n"
    place.makepyfile(test_begins=begins, test_other=PROBE)

    done = place.runpytest_subprocess("--processes", "2")

    assert done.ret != pytest.ExitCode.OK
    assert "importing the tests has left 1 threads" in done.stderr.str()


def test_tests_that_cannot_be_gathered_are_not_run(place: pytest.Pytester) -> None:
    """The run is interrupted, as a run of one process is."""
    place.makepyfile(test_wrong="import nothing_of_that_name", test_other=PROBE)

    done = place.runpytest_subprocess("--processes", "2")

    done.assert_outcomes(errors=1)
    assert done.ret == pytest.ExitCode.INTERRUPTED
