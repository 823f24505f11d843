"""The table of powers of docs/keys.md is the one that tests try, cell by cell."""

import ast
from functools import cache

import pytest

from tests.tools import powers_doc
from tests.tools.powers_doc import TESTS, WORDS, Cell

TABLE = powers_doc.read()
CELLS = [
    pytest.param(cell, id=f"{power}-{goal}")
    for power, row in TABLE.powers.items()
    for goal, cell in row.cells.items()
]


@cache
def functions(file: str) -> frozenset[str]:
    """Names of the tests of a file below tests/."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    )


def test_table_on_the_page_is_current() -> None:
    """The committed page shows what the cells say."""
    assert powers_doc.main(["--check"]) == 0


def test_changed_table_is_noticed() -> None:
    """A row that is gone comes back."""
    page = powers_doc.TARGET.read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if "| writes to Redis |" in line)
    assert powers_doc.render(page.replace(row, "")) == page


@pytest.mark.parametrize("cell", CELLS)
def test_cell_is_tried(cell: Cell) -> None:
    """By tests that exist, unless words alone answer it: then it has them."""
    assert cell.result in WORDS
    assert cell.sqlite is None or cell.sqlite in WORDS
    if cell.result == "words":
        assert cell.note
    else:
        assert cell.tests
    for test in cell.tests:
        file, _, name = test.partition("::")
        assert name in functions(file)
