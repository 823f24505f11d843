"""Commands that the manual tells an operator to type: they are there, and are run.

Who runs a line says so itself, by `run_block` or `run_lines` of
`tests.support.appliance.manual`,
which take it from the manual and run it at once. Those calls are read here: a line that
is in none of them has to be told below, with why.
"""

import ast
import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from appliance.cli import command_parser
from tests.support.appliance.manual import DOCS, fenced, script, scripts, typed_lines

TESTS: Final = DOCS.parent / "tests"
PAGES: Final = sorted(path.name for path in DOCS.glob("*.md"))
_BY_HAND: Final = ("installing.md", "First installation, with systemd", 0)
NOT_RUN: Final[dict[tuple[str, str, int, str], str]] = {
    (*_BY_HAND, "python3 -m venv /tmp/npm"): "the machine has no network for npm",
    (*_BY_HAND, "/tmp/npm/"): "the same",  # noqa: S108 (the manual's)
    (
        *("api.md", "Sign several at once", 0),
        'curl -sS "$BASE_URL/solicitudes/lotes/7"',
    ): "there after 20 s alone; test_batch_kills.py asks it",
}
"""Page, heading, number of the block and how the line begins: why no test runs it."""
_TAKES: Final = frozenset({"run_block", "run_lines"})
_BETWEEN: Final = frozenset("();<>|&")
"""Of which a shell's operators are made."""
_WORD: Final = re.compile("[a-z][a-z-]*")
_INLINE: Final = re.compile(r"`rubrica ([^`]+)`")
_LACKING: Final = re.compile(
    r"arguments are required|expected one argument|'(?:[A-Z][A-Za-z-]*|n|…)'"
)
"""Told of what a page leaves out, or writes as a name to be filled in."""


def commands_in(script: str) -> list[tuple[str, ...]]:
    """The words after `rubrica`, of each command of a script."""
    found: list[list[str]] = []
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        found.append(words)
        for word in lexer:
            if set(word) <= _BETWEEN:
                words = []
                found.append(words)
            else:
                words.append(word)
    return [tuple(words[1:]) for words in found if words[:1] == ["rubrica"]]


@cache
def fault(given: tuple[str, ...]) -> str:
    """What is wrong with a command line, by the parser's word; empty for nothing."""
    # "and so on", which is no word of the command
    kept = [w for at, w in enumerate(given) if w != "…" or given[at - 1][:2] == "--"]
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
            command_parser().parse_args(kept)
    except SystemExit as ended:
        return told.getvalue().strip().splitlines()[0] if ended.code else ""
    return ""


def blocks_of(page: str) -> list[str]:
    """The scripts of a page."""
    text = (DOCS / page).read_text("utf-8")
    return [block.text for block in fenced(text) if block.language == "sh"]


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_blocks_are_commands(page: str) -> None:
    """As they stand there, but for what one fills in."""
    for words in commands_in("\n".join(blocks_of(page))):
        told = fault(words)
        assert not told or _LACKING.search(told), f"rubrica {words}\n{told}"


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_text_are_commands(page: str) -> None:
    """Sub-commands and options, even where arguments are left out."""
    text = (DOCS / page).read_text("utf-8")
    for line in _INLINE.findall(text):
        words = tuple(shlex.split(line.replace("[", " ").replace("]", " ")))
        told = fault(words)
        assert not told or _LACKING.search(told), f"rubrica {words}\n{told}"


@pytest.mark.parametrize(
    "words", ["backup drill", "setup --answer-file x", "hsm takeover", "audit"]
)
def test_command_that_is_none_is_noticed(words: str) -> None:
    """The parser is the real one; what is merely left out is not of this kind."""
    told = fault(tuple(words.split()))

    assert told
    assert bool(_LACKING.search(told)) == (words == "audit")


@dataclass(frozen=True, slots=True)
class Run:
    """A call that takes lines of the manual and runs them."""

    page: str
    heading: str
    number: int
    only: str
    without: tuple[str, ...]
    where: str
    """File and function."""

    def lines(self) -> list[str]:
        """Those that it runs."""
        lines = typed_lines(script(self.page, self.heading, self.number))
        left_out = self.without or ("\n",)
        return [
            x for x in lines if x.startswith(self.only) if not x.startswith(left_out)
        ]


def calls_of(source: str, where: str) -> Iterator[Run]:
    """The calls of a file that take lines of the manual.

    Args:
        source: of the file.
        where: its name.

    Raises:
        AssertionError: one is in no test and no fixture, nor in what one of them calls,
            or does not say as it is what it takes.
    """
    functions = {
        each.name: each
        for each in ast.parse(source).body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    named = {
        name: {x.id for x in ast.walk(each) if isinstance(x, ast.Name)} & set(functions)
        for name, each in functions.items()
    }
    reached = {name for name, each in functions.items() if _is_run(each)}
    while more := {x for name in reached for x in named[name]} - reached:
        reached |= more
    for name, function in functions.items():
        for call in filter(_takes, ast.walk(function)):
            assert isinstance(call, ast.Call)
            assert name in reached, f"{where}: no test calls {name}"
            yield _run_of(call, f"{where}::{name}")


def _is_run(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether pytest runs it: a test, or a fixture."""
    marks = " ".join(map(ast.unparse, function.decorator_list))
    return function.name.startswith("test_") or "pytest.fixture" in marks


def _takes(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _TAKES
    )


def _run_of(call: ast.Call, where: str) -> Run:
    told = {x.arg: x.value for x in call.keywords if x.arg in {"only", "without"}}
    try:
        page, heading, number = map(ast.literal_eval, call.args[:3])
        values = {name: ast.literal_eval(value) for name, value in told.items()}
    except ValueError:
        msg = f"{where}, line {call.lineno}: say it as it is"
        raise AssertionError(msg) from None
    only, without = values.get("only", ""), values.get("without", ())
    return Run(page, heading, number, only, without, where)


@cache
def runs() -> tuple[Run, ...]:
    """Of all tests."""
    found: list[Run] = []
    for path in sorted(TESTS.rglob("test_*.py")):
        source = path.read_text("utf-8")
        if path.name != Path(__file__).name and any(x in source for x in _TAKES):
            found += calls_of(source, path.name)
    return tuple(found)


def test_only_tests_take_lines_of_the_manual() -> None:
    """A part that took one would say of no test that it ran it."""
    for path in TESTS.glob("support/**/*.py"):
        calls = filter(_takes, ast.walk(ast.parse(path.read_text("utf-8"))))
        assert not list(calls), path.name


@pytest.mark.parametrize("page", PAGES)
def test_every_line_is_run_by_a_test(page: str) -> None:
    """Taken from the manual; what none runs is told, and why."""
    seen: dict[str, int] = {}
    for heading, text in scripts(page):
        number = seen.setdefault(heading, 0)
        seen[heading] += 1
        taken = [
            run
            for run in runs()
            if (run.page, run.heading, run.number) == (page, heading, number)
        ]
        done = {line for run in taken for line in run.lines()}
        for line in typed_lines(text):
            why = [
                begins
                for (*block, begins) in NOT_RUN
                if block == [page, heading, number] and line.startswith(begins)
            ]
            assert (line in done) is not bool(why), (heading, number, line)


def test_what_no_test_runs_is_in_the_manual_and_little() -> None:
    """Each of it is a line's beginning there, and has a reason."""
    for (page, heading, number, begins), why in NOT_RUN.items():
        lines = typed_lines(script(page, heading, number))
        assert [line for line in lines if line.startswith(begins)], begins
        assert why
    assert len(NOT_RUN) == 3


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def helper():\n    run_block('a.md', 'H', 0, run)", "no test calls helper"),
        ("def test_a():\n    run_block(page, 'H', 0, run)", "say it as it is"),
        ("def test_a():\n    run_block('a.md', 'H', 0, run, only=x)", "say it as it"),
    ],
)
def test_call_that_could_lie_is_refused(source: str, told: str) -> None:
    """In a function that nobody runs, or of a block that only a run would tell."""
    with pytest.raises(AssertionError, match=told):
        list(calls_of(source, "x.py"))


def test_call_in_what_a_test_calls_counts() -> None:
    """Through any number of functions of the same file."""
    source = (
        "def last():\n    run_lines('a.md', 'H', 2, run, without=('x', 'y'))\n"
        "def first():\n    last()\n"
        "def test_a():\n    first()\n"
    )

    assert list(calls_of(source, "x.py")) == [
        Run("a.md", "H", 2, "", ("x", "y"), "x.py::last")
    ]


def test_manual_begins_with_where_to_find_what() -> None:
    """Every chapter of the three pages, in order, by its heading."""
    door = (DOCS / "operations.md").read_text("utf-8")
    lists = "\n".join(re.findall(r"^- \*\*.*$", door, re.MULTILINE))
    told = re.findall(r"\[([^\]]+)\]\((\w+\.md)#[a-z0-9-]+\)", lists)
    pages = ("installing.md", "running.md", "trouble.md")

    assert told == [
        (chapter, page)
        for page in pages
        for chapter in re.findall(
            r"^## (.*)$", (DOCS / page).read_text("utf-8"), re.MULTILINE
        )
    ]


@pytest.mark.parametrize("page", PAGES)
def test_links_to_pages_lead_somewhere(page: str) -> None:
    """To a page that is there, and a heading that it has."""
    text = (DOCS / page).read_text("utf-8")
    for target, anchor in re.findall(r"\]\(([\w.-]*\.md)?#([^)]+)\)", text):
        headings = re.findall(
            r"^#+ (.*)$", (DOCS / (target or page)).read_text("utf-8"), re.MULTILINE
        )
        assert anchor in {_anchor(heading) for heading in headings}, (target, anchor)
    for target in re.findall(r"\]\(([\w.-]+\.md)\)", text):
        assert (DOCS / target).is_file(), target


def _anchor(heading: str) -> str:
    """A heading's, as Git hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
