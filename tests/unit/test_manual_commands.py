"""Commands that the manual tells an operator to type: they are there, and are run.

What runs the blocks of the pages on installing, running and backups is listed here,
block by block: a test that takes it from the manual, or one that has the same command.
"""

import contextlib
import io
import itertools
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from appliance.commands import command_parser
from tests.parts.manual import DOCS, fenced

TESTS: Final = DOCS.parent / "tests" / "functional"
PAGES: Final = sorted(path.name for path in DOCS.glob("*.md"))
_PACKAGE: Final = "test_package.py::test_five_commands_to_a_signed_document"
_BACKUP: Final = "test_package.py::test_backup_is_made_and_tried_out"
_RESTORE: Final = "test_restore.py::test_another_machine_takes_its_place"
_CONTAINERS_RESTORE: Final = "test_compose.py::test_lost_installation_comes_back"
_CONTAINERS_UPGRADE: Final = "test_compose.py::test_upgrade_and_the_way_back"
RUN_BY: Final[dict[str, list[tuple[str, str]]]] = {
    "installing.md": [
        ("packaging/build-deb", "test_package.py::machine"),
        ("apt-get install", _PACKAGE),
        ("rubrica setup", _PACKAGE),
        ("ln -s", _PACKAGE),
        ("psql", "test_production.py::test_two_runs_and_the_sql_between_them"),
        ("apt-get install", "test_installation.py::machine"),
        ("cd /opt/rubrica", "test_installation.py::machine"),
        ("rubrica database roles", "test_installation.py::machine"),
        ("rubrica hsm init", "test_installation.py::machine"),
        ("docker build", "test_compose.py::installation"),
        ("docker tag", _CONTAINERS_UPGRADE),
        ("cd /srv/rubrica", _CONTAINERS_UPGRADE),
        ("docker compose", "test_compose.py::test_trial_in_one_container"),
    ],
    "running.md": [
        ("rubrica audit verify", _RESTORE),
        (
            "rubrica migrate",
            "test_installation.py::test_roles_restart_while_callers_sign",
        ),
    ],
    "backup.md": [
        ("age-keygen", _BACKUP),
        ("rubrica backup", _BACKUP),
        ("install -d", _BACKUP),
        ("systemctl start", _BACKUP),
        ("rubrica restore", _RESTORE),
        ("rubrica database", _RESTORE),
        ("rubrica setup --no-start", _RESTORE),
        ("install -d", _CONTAINERS_RESTORE),
        ("docker compose", _CONTAINERS_RESTORE),
        ("install -d", _CONTAINERS_RESTORE),
        ("cd /srv/rubrica", _CONTAINERS_RESTORE),
        ("rubrica restore", _BACKUP),
    ],
}
"""By page: how each block of `sh` begins, and the test or fixture that runs it."""
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
        return told.getvalue().strip().splitlines()[-1] if ended.code else ""
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


@pytest.mark.parametrize("page", RUN_BY)
def test_every_block_is_run_by_a_test(page: str) -> None:
    """One that takes it from the manual, or has the same commands in it."""
    scripts = blocks_of(page)

    assert len(scripts) == len(RUN_BY[page])
    for script, (begins, test) in zip(scripts, RUN_BY[page], strict=True):
        assert script.startswith(begins), script
        file, _, name = test.partition("::")
        source = (TESTS / file).read_text("utf-8")
        assert f"def {name}(" in source, test
        for words in () if "blocks(" in source else commands_in(script):
            command = " ".join(itertools.takewhile(_WORD.fullmatch, _plain(words)))
            assert f"rubrica {command}" in source, (test, words)


def _plain(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words that name a command, as far as they are alike everywhere."""
    return words[: 1 if words[0] in {"backup", "restore", "setup"} else 2]


def test_manual_begins_with_where_to_find_what() -> None:
    """Every chapter of the three pages, in order, by its heading."""
    door = (DOCS / "operations.md").read_text("utf-8")
    told = re.findall(r"\[([^\]]+)\]\((\w+\.md)#[a-z0-9-]+\)", door)
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


def test_places_are_there() -> None:
    """Where this test looks."""
    assert {*RUN_BY, "operations.md"} <= set(PAGES)
    assert Path(TESTS / "test_package.py").is_file()
