"""docs/limits.md: each row has its five cells, and names a test that exists."""

import ast
import re
from pathlib import Path

import pytest

from appliance.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in (ROOT / "docs/limits.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| what |")
]
FILES = list((ROOT / "tests").rglob("test_*.py"))


def known(section: str, key: str) -> bool:
    """Whether the settings have that key."""
    model = Settings.model_fields[section].annotation
    assert isinstance(model, type)
    return key in getattr(model, "model_fields", {})


def functions(file: str) -> set[str]:
    """Names of the functions in the test files of that name."""
    trees = [
        ast.parse(path.read_text(encoding="utf-8"))
        for path in FILES
        if path.name == file
    ]
    return {
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_row_is_whole() -> None:
    """What, number, setting, what the caller gets, test."""
    assert len(ROWS) > 40
    assert [row for row in ROWS if len(row) != 5] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_row_names_what_exists(row: list[str]) -> None:
    """Its tests, at least one, and its settings."""
    assert "::" in row[-1]
    for file, name in re.findall(r"`(test_\w+\.py)::(test_\w+)`", row[-1]):
        assert name in functions(file)
    for section, key in re.findall(r"`([a-z]+)\.([a-z_]+)`", row[2]):
        assert known(section, key)
