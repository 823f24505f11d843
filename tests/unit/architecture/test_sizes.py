"""Largest functions and constructors."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles

ROOT = Path(__file__).parents[3]
PACKAGES = ("appliance", "worker", "admin_ui", "embed", "hsm_config")
DEPENDENCIES = 6
"""Of a constructor: beyond that a concept is missing."""
FUNCTION_P90 = 25
"""Lines, without those of the docstring, that nine of ten functions stay below."""

MANY_DEPENDENCIES = {
    "ActivationKeys": "where its keys are, who proves them, and whose they are",
    "Ceremony": "each of them is a step that the page may take",
    "EmbedSessionIdentity": "two keys of personal data, two limits of guessing",
    "EmbedSessionSigning": "what the last step of the page calls, and a link",
    "Enrolment": "both passwords, both keys of personal data, key and PIN made at once",
    "Health": "each part that may be away, and the time",
    "ListedObjects": "the file, its history, its readers, and two that count",
    "Login": "two keys of personal data",
    "PasswordChange": "both passwords, and the key of personal data",
    "People": "as an enrolment, by an operator",
    "SignersForTests": "makes somebody up, or back: their person, key and certificate",
    "Signing": "the path of a signature reads in one class",
    "ValidationSource": "three sources of validation material, and how long to wait",
}
"""Constructors that need more, and why."""


def test_functions_are_short() -> None:
    """Nine of ten of them."""
    lengths = [
        _code_lines(node)
        for _, text in _modules()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]

    assert quantiles(lengths, n=10)[-1] < FUNCTION_P90


def test_constructors_take_few_dependencies() -> None:
    """Those that take more are listed, with the reason."""
    many = {
        node.name: len(made.args.args) - 1 + len(made.args.kwonlyargs)
        for _, text in _modules()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        for made in node.body
        if isinstance(made, ast.FunctionDef) and made.name == "__init__"
    }

    assert {name for name, n in many.items() if n > DEPENDENCIES} == set(
        MANY_DEPENDENCIES
    )


def _code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From its `def` to its end, its docstring not counted."""
    whole = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node) is None:
        return whole
    return whole - ((first.end_lineno or first.lineno) - first.lineno + 1)


def _modules() -> Iterator[tuple[str, str]]:
    """Every module of production, by its path from the root, and its text."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text()
