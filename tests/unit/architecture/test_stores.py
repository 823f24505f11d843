"""Where SQL is: in stores and queues, which call no use case."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
APPLIANCE = ROOT / "appliance"
SQL_ELSEWHERE = {"appliance.record.database_clock", "appliance.record.unit_of_work"}
"""The server's time and the transaction, besides `database` and the stores."""
BELOW = tuple(
    f"appliance.{name}"
    for name in (
        *("record", "database", "metrics", "secrets", "system"),
        # For whom the present work is done: a value, and no use case.
        "admission.work_owner",
        *("settings", "domain"),
    )
)
CODECS = {"appliance.domain.documents.inspected"}
"""How a value is stored, without I/O."""


def test_sql_is_in_stores_and_queues() -> None:
    """`rooms`: a feature's SQL stands beside its use cases, in modules of its own."""
    found = {
        module
        for module, names in _modules()
        if any(name.split(".")[0] == "sqlalchemy" for name in names)
    }

    assert "appliance.people.person_store" in found
    assert {module for module in found if not _may_use_sql(module)} == set()


def test_stores_call_no_use_case() -> None:
    """Every feature above may use it: so it leads back to none."""
    wrong = {
        (module, name)
        for module, names in _modules()
        if _is_store(module) and "sqlalchemy" in {n.split(".")[0] for n in names}
        for name in names
        if name.startswith("appliance.")
        and not name.startswith(BELOW)
        and not _is_store(name)
    }

    assert wrong == set()


def _modules() -> Iterator[tuple[str, set[str]]]:
    """Every module of the appliance, and the modules that it imports from."""
    for path in sorted(APPLIANCE.rglob("*.py")):
        if "migrations" in path.parts:
            continue
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
            elif isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), names


def _is_store(module: str) -> bool:
    return module.endswith(("_store", "_queue"))


def _may_use_sql(module: str) -> bool:
    database = "appliance.database"
    return (
        _is_store(module)
        or module in SQL_ELSEWHERE
        or module == database
        or module.startswith(f"{database}.")
    )
