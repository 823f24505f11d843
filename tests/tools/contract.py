"""Hold the tests against the contract: `python -m tests.tools.contract`.

Every statement of docs/contract.md has one entry in tests/functional/contract.toml,
in the same order, and every test that an entry names passed in the run whose
results are given. `./check` runs it after pytest.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

from tests.tools.cutter import Statement, cut

ROOT: Final = Path(__file__).resolve().parents[2]
MOST_ABOUT: Final = 30
STEPS: Final = range(2, 13)
_KINDS: Final = frozenset({"tests", "step", "about"})


class EntryError(Exception):
    """The file of entries cannot be used; the text says which entry and why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What answers for one statement: exactly one of the last three is set."""

    text: str
    tests: tuple[str, ...] = ()
    step: int | None = None
    about: str | None = None


def read_entries(path: Path) -> list[Entry]:
    """Read the file of entries.

    Raises:
        EntryError: an entry is not of one of the three kinds.
    """
    with path.open("rb") as file:
        raw = tomllib.load(file)
    return [_entry(number, table) for number, table in enumerate(raw["entry"], 1)]


def _entry(number: int, table: dict[str, object]) -> Entry:
    """Check one table of the file."""
    where = f"entry {number} ({table.get('text', 'no text')!r})"
    text = table.get("text")
    if not isinstance(text, str) or not text:
        raise EntryError(f"{where}: no text")
    if unknown := table.keys() - _KINDS - {"text"}:
        raise EntryError(f"{where}: unknown keys {sorted(unknown)}")
    if len(table.keys() & _KINDS) != 1:
        raise EntryError(f"{where}: needs exactly one of tests, step, about")
    match table:
        case {"tests": list(tests)} if tests and all(map(_is_id, tests)):
            return Entry(text, tests=tuple(map(str, tests)))
        case {"step": int(step)} if step in STEPS:
            return Entry(text, step=step)
        case {"about": str(about)} if about.strip():
            return Entry(text, about=about)
        case _:
            raise EntryError(f"{where}: the value of its kind is not allowed")


def _is_id(test: object) -> bool:
    """Say whether it looks like a test's id."""
    return isinstance(test, str) and test.startswith("tests/") and "::" in test


def read_passed(path: Path) -> set[str]:
    """Read the ids of the tests that passed, one JSON string a line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {json.loads(line) for line in lines if line}


def check_cut(statements: Sequence[Statement], entries: Sequence[Entry]) -> list[str]:
    """Compare the cut with the entries, in order.

    Returns:
        One line for each entry too many and each too few.
    """
    wanted = [statement.text for statement in statements]
    found = [entry.text for entry in entries]
    faults = []
    # autojunk would take words that often recur for noise.
    matcher = SequenceMatcher(None, wanted, found, autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            continue
        faults += [
            f"contract line {s.line}: no entry here for: {s.text}"
            for s in statements[i1:i2]
        ]
        faults += [
            f"entry {j}: the contract does not say here: {found[j - 1]}"
            for j in range(j1 + 1, j2 + 1)
        ]
    return faults


def check_tests(entries: Sequence[Entry], passed: set[str]) -> list[str]:
    """Find the named tests that did not pass in this run."""
    named = dict.fromkeys(test for entry in entries for test in entry.tests)
    return [f"did not pass in this run: {test}" for test in named if test not in passed]


def check_about(entries: Sequence[Entry]) -> list[str]:
    """Find out whether too much is explained away."""
    count = sum(entry.about is not None for entry in entries)
    if count <= MOST_ABOUT:
        return []
    return [f"{count} entries say `about`; at most {MOST_ABOUT} may"]


def main(argv: Sequence[str] | None = None) -> int:
    """Check everything and print each fault.

    Returns:
        0 when the contract is answered for, 1 otherwise.
    """
    parser = argparse.ArgumentParser(prog="contract", description=__doc__)
    parser.add_argument("--results", type=Path, help="ids that passed (JSON lines)")
    parser.add_argument("--contract", type=Path, default=ROOT / "docs/contract.md")
    parser.add_argument(
        "--entries", type=Path, default=ROOT / "tests/functional/contract.toml"
    )
    options = parser.parse_args(argv)
    statements = cut(options.contract.read_text(encoding="utf-8"))
    try:
        entries = read_entries(options.entries)
    except EntryError as exc:
        return _report([str(exc)])
    faults = check_cut(statements, entries) + check_about(entries)
    if options.results is not None:
        faults += check_tests(entries, read_passed(options.results))
    tested = sum(bool(entry.tests) for entry in entries)
    later = sum(entry.step is not None for entry in entries)
    print(  # noqa: T201 (a command's output)
        f"contract: {len(statements)} statements; {tested} tested, "
        f"{later} of later steps, {len(entries) - tested - later} about"
    )
    return _report(faults)


def _report(faults: Sequence[str]) -> int:
    """Print the faults where errors go."""
    for fault in faults:
        print(f"contract: {fault}", file=sys.stderr)  # noqa: T201 (a command's output)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
