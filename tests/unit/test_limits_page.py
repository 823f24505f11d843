"""docs/limits.md: each row has its five cells, and names a test that exists."""

import ast
import re
from pathlib import Path

import pytest

from appliance.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in (ROOT / "docs/limits.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| what |")
]
FILES = {path.name: path for path in (ROOT / "tests").rglob("test_*.py")}


def known(section: str, key: str) -> bool:
    """Whether the settings have that key."""
    model = Settings.model_fields[section].annotation
    assert isinstance(model, type)
    return key in getattr(model, "model_fields", {})


def test_every_row_is_whole() -> None:
    """What, number, setting, what the caller gets, test."""
    assert len(ROWS) > 40
    assert [row for row in ROWS if len(row) != 5] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_row_names_what_exists(row: list[str]) -> None:
    """Its tests, and its settings."""
    for file, name in re.findall(r"`(test_\w+\.py)::(test_\w+)`", row[-1]):
        tree = ast.parse(FILES[file].read_text(encoding="utf-8"))
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        assert name in {n.name for n in ast.walk(tree) if isinstance(n, functions)}
    for section, key in re.findall(r"`([a-z]+)\.([a-z_]+)`", row[2]):
        assert known(section, key)
