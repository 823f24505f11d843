"""Changes that make mutants: what each one does, and what none touches."""

from collections.abc import Callable

import pytest

from tests.support.mutation.changes import statements
from tests.support.mutation.sample import modules, sample
from tests.tools.contract import ROOT


def changed(source: str, kind: str) -> list[str]:
    """All that one kind of change makes of a module."""
    return [
        change.apply(source)
        for statement in statements(source)
        for change in statement.changes
        if change.kind == kind
    ]


@pytest.mark.parametrize(
    ("kind", "source", "mutants"),
    [
        ("comparison flipped", "a = b < c", ["a = b >= c"]),
        ("comparison flipped", "a = (b) is  not (c)", ["a = (b) is (c)"]),
        ("comparison flipped", "a = not b in (\n c,)", ["a = not b not in (\n c,)"]),
        ("boundary moved", "a = f(ñ) <= c", ["a = f(ñ) < c"]),
        ("boundary moved", "a = b == c", []),
        ("and/or", "a = b and c and d", ["a = b or c or d"]),
        ("and/or", "a = (b) or (\n c)", ["a = (b) and (\n c)"]),
        ("boolean negated", "a = not b", ["a = (b)"]),
        ("boolean negated", "if a(b):\n    c = 0", ["if (not (a(b))):\n    c = 0"]),
        ("boolean negated", "a = b if c else d", ["a = b if (not (c)) else d"]),
        ("boolean negated", "a = [b for b in c if b]", [
            "a = [b for b in c if (not (b))]"]),
        ("boolean negated", "while a == b:\n    c = 0", []),
        ("constant changed", "a = 7", ["a = 8"]),
        ("constant changed", "a = True", ["a = False"]),
        ("constant changed", "a = 0.5", ["a = 1.0"]),
        ("constant changed", "a = 'é'", ["a = 'éx'"]),
        ("constant changed", "a = b'c'", ["a = b'cx'"]),
        ("constant changed", "a = None", []),
        ("constant changed", "def a(b=1, *, c=2):\n    b = c", [
            "def a(b=2, *, c=2):\n    b = c", "def a(b=1, *, c=3):\n    b = c",
        ]),
        ("statement removed", "if a:\n    raise B", ["if a:\n    pass"]),
        ("statement removed", "await a(\n  b)  # c", ["pass  # c"]),
        ("statement removed", "a += 1", ["pass"]),
        ("statement removed", "a = 1", []),
        ("statement removed", "def f():\n    a.b = 1", ["def f():\n    pass"]),
        ("statement removed", "def __init__():\n    a.b = 1", []),
        ("statement removed", "del a[b]", ["pass"]),
        ("return value replaced", "def f():\n    return (\n  a)", [
            "def f():\n    return (\n  None)",
        ]),
        ("return value replaced", "def f() -> bool:\n    return a", [
            "def f() -> bool:\n    return (not (a))",
        ]),
        ("return value replaced", "def f():\n    return None", []),
        ("branch never taken", "if a == b:\n    c = 0", ["if False:\n    c = 0"]),
        ("branch never taken", "if a:\n    b = 0\nelif c:\n    d = 0", [
            "if False:\n    b = 0\nelif c:\n    d = 0",
            "if a:\n    b = 0\nelif False:\n    d = 0",
        ]),
    ],
)  # fmt: skip
def test_change_is_of_one_place(kind: str, source: str, mutants: list[str]) -> None:
    """Each kind, with the rest of the text as it was."""
    assert changed(source, kind) == mutants


@pytest.mark.parametrize(
    "source",
    [
        '"""Text."""',
        'a = b\n"""Text."""',
        'a: Literal["b"]',
        "def f(a: Literal[1]) -> Literal[2]: b = c",
        '@d(1, slots=True)\nclass A(B, c=True):\n    """Text."""',
        'class A:\n    __slots__ = ("b", "c")',
        '_log.warning("a.b", number=1)',
        'await log.ainfo("a")',
        'a = cast("B", c)',
        'T = TypeVar("T")',
        "a = f'{b == 1}c'",
        "assert_never(a)",
        "del a",
        'msg = "read by a person"',
        "from a import b",
        "if TYPE_CHECKING:\n    from a import b",
    ],
)
def test_nothing_is_changed(source: str) -> None:
    """Changes that no test could notice are left out."""
    assert [s.changes for s in statements(source) if s.changes] == []


def test_text_of_an_exception_stays() -> None:
    """Its code and numbers do not."""
    source = 'raise A("b", 1)'

    assert changed(source, "constant changed") == ['raise A("b", 2)']


def test_statements_know_their_place() -> None:
    """Scope, line, and whether they run on import."""
    source = (
        "a = 1\nclass B:\n    c = 2\n    def d(self):\n"
        "        try:\n            e()\n        except F:\n            g()\n"
    )

    found = [(s.line, s.scope, s.is_in_function, s.head) for s in statements(source)]

    assert found == [
        (1, "", False, "a = 1"),
        (2, "", False, "class B:"),
        (3, "B", False, "c = 2"),
        (4, "B", False, "def d(self):"),
        (5, "B.d", True, "try:"),
        (6, "B.d", True, "e()"),
        (8, "B.d", True, "g()"),
    ]


def test_mutants_of_our_packages_compile() -> None:
    """A mutant that cannot be imported would count as killed."""
    mutants = sample(modules(ROOT), 1, 200)

    for mutant in mutants:
        compile(mutant.text, mutant.at, "exec", dont_inherit=True)

    assert len(mutants) == 200


SOURCES = {
    "a": {"a/one.py": "x = 1\ny = 2\nz = 3\n", "a/two.py": "x = 1\n"},
    "b": {"b/one.py": "def f():\n    return x == 1 and y == 2\n\n\nv = 1\nw = 2\n"},
}


def test_sample_is_even_and_repeats() -> None:
    """As many of each package; the same seed chooses the same ones."""
    mutants = sample(SOURCES, 1, 5)

    assert [mutant.package for mutant in mutants] == ["a", "a", "a", "b", "b"]
    assert mutants == sample(SOURCES, 1, 5)
    assert len({mutant.name for mutant in mutants}) == 5
    assert {m.name for m in mutants}.isdisjoint(m.name for m in sample(SOURCES, 2, 5))


@pytest.mark.parametrize(
    "edit",
    [lambda text: f"import os\n\n{text}", lambda text: text.replace("y = 2", "y = 9")],
    ids=["above", "another statement"],
)
def test_edit_elsewhere_leaves_the_others(edit: Callable[[str], str]) -> None:
    """Only the mutants of what was edited differ."""
    edited = {"a": {**SOURCES["a"], "a/one.py": edit(SOURCES["a"]["a/one.py"])}}

    before = {m.name: m.change.text for m in sample({"a": SOURCES["a"]}, 1, 4)}
    after = {m.name: m.change.text for m in sample(edited, 1, 4)}

    same = before.items() & after.items()
    assert len(same) == (4 if "import" in edited["a"]["a/one.py"] else 3)


def test_same_statement_twice_is_two_mutants() -> None:
    """Told apart by their order."""
    mutants = sample({"a": {"a.py": "def f():\n    g()\n    g()\n"}}, 1, 2)

    assert sorted(m.statement.line for m in mutants) == [2, 3]
    assert sorted(m.text for m in mutants) == [
        "def f():\n    g()\n    pass\n",
        "def f():\n    pass\n    g()\n",
    ]
