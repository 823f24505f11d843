"""Mutants are killed by the tests that run their statements."""

import ast
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support.faults.fault_injection import until
from tests.support.mutation.changes import statements
from tests.support.mutation.coverage_map import CoverageMap, CoveringTest, is_near
from tests.support.mutation.keeper import OVERDUE
from tests.support.mutation.outcomes import Outcome
from tests.support.mutation.probes import Probes, with_probes
from tests.support.mutation.results import Result, Results, lost, summary
from tests.support.mutation.runner import MutantRunner, batches
from tests.support.mutation.sample import Mutant, modules, sample
from tests.support.mutation.trees import Limits, StoppedError, Tree
from tests.support.services.postgres import URL_VARIABLE
from tests.tools import mutants as tool

LIMITS = Limits(run=300, test=60)
QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_timeout"}
"""To load the plugins of our own tests takes longer than all else here."""
PRODUCT = """\
\"\"\"Text.\"\"\"

import os


def is_adult(age):
    return age >= 18


def in_a_process(age):
    if (child := os.fork()) == 0:
        is_adult(age)
        os._exit(0)
    os.waitpid(child, 0)


def loop(count):
    while count:
        count -= 1
    return "over"


def unused():
    return 1
"""
TESTS = """\
from appliance.identity.age import in_a_process, is_adult, loop


def test_adult():
    assert is_adult(40)


def test_child():
    assert not is_adult(17)


def test_other_process():
    in_a_process(18)


def test_loop():
    assert loop(2)


def test_fails():
    assert not is_adult(40)
"""
FILE = "appliance/identity/age.py"
TEST_FILE = "tests/unit/identity/test_age.py"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A tree with one module and its tests."""
    tree = tmp_path / "small"
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        "appliance/__init__.py": "",
        "appliance/signing/__init__.py": "",
        "worker/signing/__init__.py": "",
        "worker/sandbox/verify/__init__.py": "",
        "appliance/identity/__init__.py": "",
        FILE: PRODUCT,
        TEST_FILE: TESTS,
        "tests/unit/other/test_loop.py": (
            "from appliance.identity import age\n"
            "def test_it(): assert age.loop(1) == 'over'\n"
        ),
    }
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tree


def mutant_of(tree: Path, head: str, kind: str) -> Mutant:
    """The first one of a statement."""
    source = (tree / FILE).read_text()
    return next(
        Mutant(f"{head} {kind}", "appliance/identity", FILE, source, statement, change)
        for statement in statements(source)
        for change in statement.changes
        if (statement.head, change.kind) == (head, kind)
    )


def probes_of(tree: Path) -> Probes:
    """Probes of all packages of a tree."""
    return with_probes(
        {file: text for part in modules(tree).values() for file, text in part.items()}
    )


def runner_of(tree: Path, folder: Path) -> MutantRunner:
    """One worker."""
    folder.mkdir()
    return MutantRunner(
        tree,
        folder,
        workers=1,
        variables=QUICK,
        probes=probes_of(tree),
        marks="not full",
        budget_s=600,
    )


def test_mutants_are_tested_by_what_runs_them(small: Path, tmp_path: Path) -> None:
    """Killed where a test checks it, alive where tests only run it, else uncovered."""
    checked = mutant_of(small, "return age >= 18", "comparison flipped")
    only_run = mutant_of(small, "is_adult(age)", "statement removed")
    unused = mutant_of(small, "return 1", "constant changed")

    with runner_of(small, tmp_path / "runner") as runner:
        assert list(runner.record([TEST_FILE])) == [[TEST_FILE]]
        assert list(runner.record([TEST_FILE])) == []
        assert runner.map.failed([TEST_FILE]) == [f"{TEST_FILE}::test_fails"]
        covering = runner.map.covering(checked, [TEST_FILE])
        given = [(mutant, None) for mutant in (checked, only_run, unused)]
        ended = runner.run(given, [TEST_FILE], seed=1, ring="near")
        results = {result.mutant: result for result in ended}

    assert {each.test.partition("::")[2] for each in covering} == {
        "test_adult",
        "test_child",
        "test_other_process",
    }
    assert results[checked.name].outcome == "killed"
    assert results[checked.name].by in {each.test for each in covering}
    # A process that the test forked runs it.
    assert results[only_run.name].outcome == "survived"
    assert results[only_run.name].tests == results[only_run.name].covering == 1
    assert results[unused.name].outcome == "uncovered"
    assert (small / FILE).read_text() == PRODUCT


def test_failure_without_a_mutant_is_no_kill(small: Path, tmp_path: Path) -> None:
    """The tests after it run all the same."""
    border = "\ndef test_border():\n    assert is_adult(18)\n"
    (small / TEST_FILE).write_text(TESTS + border)
    mutant = mutant_of(small, "return age >= 18", "boundary moved")
    tests = [f"{TEST_FILE}::{name}" for name in ("test_fails", "test_border")]
    with runner_of(small, tmp_path / "runner") as runner:
        passed = [Outcome(test, "passed", 0.1, hits=1) for test in tests]
        runner.map.save([TEST_FILE], passed)

        (result,) = runner.run([(mutant, None)], [TEST_FILE], seed=1, ring="near")

    assert (result.outcome, result.by, result.tests) == ("killed", tests[1], 1)


def test_endless_test_is_stopped(small: Path, tmp_path: Path) -> None:
    """By its own time, and by that of the run, which leaves no process."""
    (small / TEST_FILE).write_text(
        TESTS + "\ndef test_hangs(tmp_path):\n"
        "    import pathlib, subprocess, sys\n"
        "    endless = 'import time; time.sleep(9999)'\n"
        "    child = subprocess.Popen([sys.executable, '-c', endless],"
        " start_new_session=True)\n"
        "    pathlib.Path('child').write_text(str(child.pid))\n"
        "    child.wait()\n"
    )
    test = f"{TEST_FILE}::test_hangs"
    tree = Tree.copied(small, folder_in(tmp_path), QUICK)

    late = tree.run([TEST_FILE], Limits(run=300, test=1), only=[test])
    child = int((tree.root / "child").read_text())

    assert late.failure is not None
    assert (late.failure.test, late.failure.result) == (test, "timeout")
    assert not psutil.pid_exists(child)

    stopped = tree.run([TEST_FILE], Limits(run=0.01, test=300), only=[test])

    assert stopped.status == OVERDUE
    assert stopped.failure is not None
    assert stopped.failure.result == "timeout"


def test_stopped_run_says_nothing(small: Path, tmp_path: Path) -> None:
    """What it started ends; no other run begins."""
    (small / TEST_FILE).write_text(
        "def test_hangs():\n"
        "    import pathlib, time\n"
        "    pathlib.Path('runs').touch()\n"
        "    time.sleep(9999)\n"
    )
    tree = Tree.copied(small, folder_in(tmp_path), QUICK)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(tree.run, [TEST_FILE], Limits(run=9999, test=9999))
        try:
            until((tree.root / "runs").exists)
        finally:
            tree.stop()

        with pytest.raises(StoppedError):
            run.result()
    with pytest.raises(StoppedError):
        tree.run([TEST_FILE], LIMITS)


def folder_in(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "copy"
    folder.mkdir()
    return folder


def test_each_change_of_a_file_is_compiled(small: Path, tmp_path: Path) -> None:
    """Also where a text is as long as the one before, in the same second."""
    tree = Tree.copied(small, folder_in(tmp_path), QUICK)
    results = []

    for text in ("40", "17"):
        tree.write(TEST_FILE, TESTS.replace("is_adult(40)", f"is_adult({text})"))
        run = tree.run([TEST_FILE], LIMITS, only=[f"{TEST_FILE}::test_adult"])
        results.append(run.outcomes[-1].result)
    tree.restore()

    assert results == ["passed", "failed"]
    assert (tree.root / TEST_FILE).read_text() == TESTS


def test_module_that_cannot_be_imported_fails(small: Path, tmp_path: Path) -> None:
    """Its file is what failed."""
    tree = Tree.copied(small, folder_in(tmp_path), QUICK)
    tree.write(FILE, PRODUCT.replace("import os", "raise OSError"))

    run = tree.run([TEST_FILE], LIMITS, only=[f"{TEST_FILE}::test_adult"])

    assert run.failure == Outcome(TEST_FILE, "failed")


def test_probes_change_nothing_else() -> None:
    """One before each statement of a function, none in a class or a module."""
    source = (
        '"""Text."""\nfrom __future__ import annotations\nx = 1\nclass A:\n'
        '    y = 2\n    def f(self):\n        """Text."""\n        try:\n'
        "            return 1\n        except B:\n            pass\n"
        "        else:\n            match x:\n                case 1:\n"
        "                    g()\n"
    )

    probes = with_probes({"a.py": source})

    lines = probes.texts["a.py"].splitlines()
    assert probes.places == [("a.py", line) for line in (8, 9, 11, 13, 15)]
    kept = [line for line in lines if "_hits_of_statements" not in line]
    assert "\n".join(kept) == ast.unparse(ast.parse(source))
    assert len(lines) - len(kept) == 1 + len(probes.places)
    assert lines[2].startswith("from appliance")


def test_changed_file_of_tests_is_recorded_again(small: Path) -> None:
    """And no other; so is everything after a change of the product."""
    other = "tests/unit/other/test_loop.py"
    places = probes_of(small).places
    tests = CoverageMap(small, places)
    tests.save([TEST_FILE, other], [])
    assert tests.missing([TEST_FILE, other]) == []

    (small / TEST_FILE).write_text(f"{TESTS}\n")

    assert CoverageMap(small, places).missing([TEST_FILE, other]) == [TEST_FILE]
    (small / FILE).write_text(f"{PRODUCT}\n")
    again = CoverageMap(small, probes_of(small).places)
    assert again.missing([TEST_FILE, other]) == [TEST_FILE, other]


def test_near_files_and_different_files_come_first(small: Path) -> None:
    """Then the cheapest; what runs on import concerns all users of the module."""
    other, far = "tests/unit/identity/test_other.py", "tests/unit/other/test_loop.py"
    (small / other).write_text("")
    assert is_near(small, other, "appliance/identity")
    assert is_near(small, far, "appliance/identity")
    (small / far).write_text("")
    places = probes_of(small).places
    tests = CoverageMap(small, places)
    hits = 1 << places.index((FILE, 7))
    seconds = {
        f"{TEST_FILE}::a": 1,
        f"{TEST_FILE}::b": 2,
        f"{other}::c": 3,
        f"{far}::d": 0,
    }
    outcomes = [Outcome(test, "passed", took, hits) for test, took in seconds.items()]
    unfit = [
        Outcome(f"{TEST_FILE}::e", "failed", 0, hits),
        Outcome(f"{far}::f", "passed"),
    ]
    files = [far, other, TEST_FILE]
    tests.save(files, [Outcome("", "passed"), *outcomes, *unfit])
    mutant = mutant_of(small, "return age >= 18", "boundary moved")

    covering = tests.covering(mutant, files)

    assert [each.test[-1] for each in covering] == ["a", "c", "b", "d"]
    on_import = replace(
        mutant, statement=replace(mutant.statement, is_in_function=False)
    )
    assert tests.covering(on_import, files) == covering


def test_batches_grow_within_the_budget() -> None:
    """The first is short; what would go beyond the budget is left out."""
    tests = [
        CoveringTest(f"a.py::{number}", 1.0, is_near=True) for number in range(200)
    ]

    cut = list(batches(tests, 150.0))

    assert [len(batch) for batch in cut] == [10, 80, 60]
    assert [each for batch in cut for each in batch] == tests[:150]


def result(mutant: str, outcome: str) -> Result:
    """One, as it is written."""
    return Result(
        seed=1,
        sources="s",
        mutant=mutant,
        at="a.py:1",
        kind="k",
        before="b",
        after="c",
        outcome=outcome,
        by="",
        tests=1,
        covering=2,
        rings={"near": "state"},
        seconds=0.1,
    )


def test_file_has_the_last_result(tmp_path: Path) -> None:
    """Of each mutant; a file of another kind is refused."""
    results = Results(tmp_path / "out")
    assert results.read() == {}
    for each in (
        result("m", "survived"),
        result("n", "timeout"),
        result("m", "killed"),
    ):
        results.add(each)

    assert results.read() == {"m": result("m", "killed"), "n": result("n", "timeout")}
    assert summary(results.read().values()) == (
        "2 mutants: 1 killed, 1 timeout, 0 survived, 0 uncovered"
    )
    (tmp_path / "out").write_text('{"mutant": "m"}\n')
    with pytest.raises(ValueError, match="no file of results"):
        results.read()


def test_only_what_was_killed_is_lost() -> None:
    """An earlier survivor is no loss, and neither is a mutant that is new."""
    before = {
        each.mutant: each for each in (result("m", "killed"), result("n", "survived"))
    }
    after = [result(name, "survived") for name in ("m", "n", "o")]

    assert lost(before, after) == [after[0]]
    assert lost(before, [result("m", "timeout")]) == []


def test_list_prints_the_sample(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line for each mutant; nothing is run."""
    assert (
        tool.main(["--seed", "5", "--count", "4", "--list", "--tree", str(small)]) == 0
    )

    head, *lines = capsys.readouterr().out.splitlines()
    assert head == f"seed 5, {len(lines)} mutants"
    assert all(f" {FILE}:" in line for line in lines)


def test_survivor_is_tested_again_by_new_tests(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a mutant that survives now, killed before, is the exit status."""
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    # No test here asks for a database.
    monkeypatch.setenv(URL_VARIABLE, "postgresql:///none")
    names = {m.statement.head: m.name for m in sample(modules(small), 1, 400)}
    mutant = names["return 1"]
    given = f"--seed 1 --count 400 --only {mutant} --workers 1 --tree {small}".split()
    out, later = tmp_path / "out", tmp_path / "later"
    on_stop = signal.getsignal(signal.SIGTERM)

    assert tool.main([*given, "--out", str(out)]) == 0
    assert Results(out).read()[mutant].outcome == "uncovered"

    import_it = "\nfrom appliance.identity.age import unused\n"
    with_test = f"{TESTS}{import_it}def test_unused():\n    assert unused() == 1\n"
    (small / TEST_FILE).write_text(with_test)
    assert tool.main([*given, "--out", str(out)]) == 0
    assert Results(out).read()[mutant].outcome == "killed"

    (small / TEST_FILE).write_text(TESTS)
    assert tool.main([*given, "--out", str(later), "--against", str(out)]) == 1
    assert signal.getsignal(signal.SIGTERM) == on_stop


def test_unknown_mutant_is_refused(small: Path) -> None:
    """Before anything is run."""
    given = ["--seed", "5", "--only", "none", "--list", "--tree", str(small)]

    with pytest.raises(ValueError, match="not in the sample: none"):
        tool.main(given)
