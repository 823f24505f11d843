"""The tool that holds the tests against the contract."""

import json
from pathlib import Path
from typing import Final

import pytest

from tests.tools import contract
from tests.tools.contract import Entry, EntryError
from tests.tools.cutter import Statement, cut, cut_sentences


def texts(markdown: str) -> list[str]:
    """The words of each statement."""
    return [statement.text for statement in cut(markdown)]


def test_sentence_ends_before_space_and_capital() -> None:
    """A full stop, a space and a capital letter end a sentence."""
    assert cut_sentences("It signs. Ñandú reads. It ends.") == [
        "It signs.",
        "Ñandú reads.",
        "It ends.",
    ]


def test_sentence_goes_on_before_small_letter_or_digit() -> None:
    """A full stop that no capital follows ends nothing."""
    assert cut_sentences("See e.g. this, or no. 5 there") == [
        "See e.g. this, or no. 5 there"
    ]


def test_sentence_goes_on_inside_code_span() -> None:
    """A full stop inside a code span ends nothing."""
    assert cut_sentences("Send `a. B` first. Then `c`.") == [
        "Send `a. B` first.",
        "Then `c`.",
    ]


def test_paragraph_of_several_lines_is_one_text() -> None:
    """A line break inside a paragraph is a space."""
    assert texts("One sentence\non two lines. Another\none.\n") == [
        "One sentence on two lines.",
        "Another one.",
    ]


def test_list_item_is_one_statement_with_all_its_sentences() -> None:
    """Items, also nested and continued ones, are never cut."""
    markdown = (
        "1. First. Still first:\n   - Nested one.\n     Goes on. Ends.\n2. Second\n"
    )

    assert texts(markdown) == [
        "First. Still first:",
        "Nested one. Goes on. Ends.",
        "Second",
    ]


def test_table_gives_its_rows_without_header_and_rule() -> None:
    """Each row is one statement; its header and rule are none."""
    markdown = "| A | B |\n|---|:-:|\n| one. Two | x |\n| `p. Q` | y |\n"

    assert texts(markdown) == ["| one. Two | x |", "| `p. Q` | y |"]


def test_heading_is_no_statement_but_is_remembered() -> None:
    """A heading ends a paragraph and names what follows."""
    assert cut("Before\n## Head. Line\nAfter\n") == [
        Statement("Before", 1, ""),
        Statement("After", 3, "Head. Line"),
    ]


def test_contract_and_its_entries_agree() -> None:
    """The committed entries answer for the committed contract, in order."""
    assert contract.main([]) == 0


def write(path: Path, *entries: str) -> Path:
    """Write a file of entries."""
    path.write_text("\n".join(f"[[entry]]\n{entry}" for entry in entries), "utf-8")
    return path


@pytest.mark.parametrize(
    "entry",
    [
        'text = "A."',
        'text = "A."\nstep = 2\nabout = "why"',
        'text = "A."\nstep = 1',
        'text = "A."\nstep = 13',
        'text = "A."\ntests = []',
        'text = "A."\nabout = " "',
        'text = "A."\nstep = 2\nnote = "x"',
        "step = 2",
    ],
)
def test_entry_of_no_allowed_kind_is_refused(tmp_path: Path, entry: str) -> None:
    """An entry is exactly one of tests, step 2 to 12, and about."""
    path = write(tmp_path / "entries.toml", entry)

    with pytest.raises(EntryError, match="entry 1"):
        contract.read_entries(path)


def test_cut_faults_name_missing_and_surplus_entries() -> None:
    """A missing, an extra and a moved entry are each told."""
    statements = [Statement(text, i, "") for i, text in enumerate("ABC", 1)]

    assert contract.check_cut(statements, [Entry(t, step=2) for t in "ABC"]) == []
    assert contract.check_cut(statements, [Entry(t, step=2) for t in "AC"]) == [
        "contract line 2: no entry here for: B"
    ]
    assert contract.check_cut(statements, [Entry(t, step=2) for t in "ABXC"]) == [
        "entry 3: the contract does not say here: X"
    ]
    assert len(contract.check_cut(statements, [Entry(t, step=2) for t in "ACB"])) == 2


def test_named_test_must_have_passed_in_this_run(tmp_path: Path) -> None:
    """The command fails on a named test that the results do not hold."""
    (tmp_path / "spec.md").write_text("One.\n", "utf-8")
    entries = write(tmp_path / "e.toml", 'text = "One."\ntests = ["tests/t.py::a[x]"]')
    results = tmp_path / "passed"
    argv = ["--contract", str(tmp_path / "spec.md"), "--entries", str(entries)]
    argv += ["--results", str(results)]

    results.write_text(json.dumps("tests/t.py::a") + "\n", "utf-8")
    assert contract.main(argv) == 1

    results.write_text(json.dumps("tests/t.py::a[x]") + "\n", "utf-8")
    assert contract.main(argv) == 0


def test_more_than_thirty_about_are_refused() -> None:
    """Explaining away has a limit."""
    assert contract.check_about([Entry("A", about="why")] * 30) == []
    assert len(contract.check_about([Entry("A", about="why")] * 31)) == 1


_PLUGINS: Final = ("passed_tests", "forked_processes")
PROBE = """
import pytest


def test_good(): ...


@pytest.fixture
def torn():
    yield
    raise ValueError


def test_torn(torn): ...


def test_bad():
    raise ValueError


@pytest.mark.skip(reason="probe")
def test_skipped(): ...


@pytest.mark.xfail
def test_unexpected(): ...
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_results_hold_only_what_passed_throughout(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    """Failed, skipped, unexpectedly passed and badly torn down tests are left out."""
    monkeypatch.setenv("PYTHONPATH", str(contract.ROOT))
    plugins = [f"tests.support.plugins.{name}" for name in _PLUGINS]
    pytester.makeconftest(f"pytest_plugins = {plugins}")
    pytester.makepyfile(test_probe=PROBE)

    pytester.runpytest_subprocess("--passed=out", "--processes", processes)

    assert (pytester.path / "out").read_text("utf-8") == '"test_probe.py::test_good"\n'
