"""Write the table of powers of docs/keys.md from tests/powers.toml.

`python -m tests.tools.powers_doc` does it; with `--check` nothing is written and a
stale table is an error.
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.tools.made_pages import between, make_page

TESTS: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = TESTS / "powers.toml"
TARGET: Final = TESTS.parent / "docs/keys.md"

WORDS: Final[Mapping[str, str]] = {
    "cannot": "no",
    "own": "meanwhile",
    "told": "told",
    "can": "**yes**",
    "words": "(words)",
}
"""The result of a cell, and how the page calls it."""

_BEGIN: Final = "<!-- Made by `python -m tests.tools.powers_doc`. -->\n"
_END: Final = "<!-- End. -->\n"


@dataclass(frozen=True, slots=True)
class Cell:
    """A power and a goal.

    Attributes:
        result: a word of `WORDS`.
        sqlite: another one, where SQLite makes a difference.
        tests: `file::function` below tests/, of those that try it.
        note: what the page adds.
    """

    result: str
    sqlite: str | None
    tests: tuple[str, ...]
    note: str | None


@dataclass(frozen=True, slots=True)
class Power:
    """What somebody has, and what that lets them do, by goal."""

    name: str
    has: str | None
    cells: Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """Goals and their words; powers."""

    goals: Mapping[str, str]
    powers: Mapping[str, Power]


def read() -> Table:
    """The table as tests/powers.toml states it."""
    raw = tomllib.loads(SOURCE.read_text(encoding="utf-8"))
    goals = raw.pop("goals")
    return Table(goals, {key: _power(value, goals) for key, value in raw.items()})


def _power(raw: Mapping[str, object], goals: Mapping[str, str]) -> Power:
    left = dict(raw)
    name, has = left.pop("name"), left.pop("has", None)
    assert isinstance(name, str)
    assert has is None or isinstance(has, str)
    assert set(left) == set(goals), f"{name}: other goals than the table's"
    return Power(name, has, {goal: _cell(left[goal]) for goal in goals})


def _cell(raw: object) -> Cell:
    assert isinstance(raw, dict)
    left = dict(raw)
    result, tests = left.pop("result"), left.pop("tests")
    on, note = left.pop("on", {}), left.pop("note", None)
    assert not left, f"unknown words of a cell: {sorted(left)}"
    assert set(on) <= {"sqlite"}
    return Cell(result, on.get("sqlite"), tuple(tests), note)


def render(page: str) -> str:
    """The page with its table as it should be.

    Args:
        page: as it is.
    """
    return between(page, _BEGIN, _END, "".join(_lines(read())))


def _lines(table: Table) -> Iterator[str]:
    yield f"| who | {' | '.join(f'*{goal}*' for goal in table.goals)} |\n"
    yield f"|---{'|---' * len(table.goals)}|\n"
    for power in table.powers.values():
        cells = " | ".join(_word(power.cells[goal]) for goal in table.goals)
        yield f"| {power.name} | {cells} |\n"
    yield "\n"
    for power in table.powers.values():
        if notes := list(_notes(power)):
            has = f" ({power.has})" if power.has else ""
            yield f"- **{_capital(power.name)}**{has}. {' '.join(notes)}\n"


def _word(cell: Cell) -> str:
    word = WORDS[cell.result]
    return f"{word}; SQLite: {WORDS[cell.sqlite]}" if cell.sqlite else word


def _notes(power: Power) -> Iterator[str]:
    for goal, cell in power.cells.items():
        if cell.note:
            yield f"*{_capital(goal)}*: {cell.note}."


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def main(argv: Sequence[str] | None = None) -> int:
    """Write the table, or say that it is stale (`make_page`)."""
    return make_page("powers_doc", TARGET, render, argv)


if __name__ == "__main__":
    sys.exit(main())
