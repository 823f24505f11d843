"""Lines that the manual tells an operator to run, taken from it and run.

    run_block("running.md", "Stop, restart, upgrade", 0, machine.run)
    run_lines("installing.md", "Containers", 0, host.run, ("/srv/rubrica", str(folder)))

`tests/unit/docs/test_manual_commands.py` reads these calls and holds that every line
of the
manual is in one of them: so page, heading, number, `only` and `without` stand there as
they are, and no name does.
"""

import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

Result = TypeVar("Result")
DOCS: Final = Path(__file__).resolve().parents[3] / "docs"
TYPED: Final = frozenset({"sh", "text"})
"""Languages of blocks that an operator types."""
_FENCE: Final = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    language: str
    text: str


def run_block(
    page: str,
    heading: str,
    number: int,
    run: Callable[[str], Result],
    *changes: tuple[str, str],
    only: str = "",
    without: tuple[str, ...] = (),
) -> Result:
    """Run a block of the manual, at once.

    Args:
        page: of `docs`.
        heading: that it stands below, with no other one between.
        number: of the blocks below that which are typed, from 0.
        run: what runs a script.
        changes: what is filled in, in the place of what: names, places, keys. No
            command is another one for it.
        only: how the lines begin that are run; empty: all are.
        without: how those begin that are left out.
    """
    return run("\n".join(_lines(page, heading, number, changes, only, without)))


def run_lines(
    page: str,
    heading: str,
    number: int,
    run: Callable[[str], Result],
    *changes: tuple[str, str],
    only: str = "",
    without: tuple[str, ...] = (),
) -> dict[str, Result]:
    """Run a block of the manual line by line; as of `run_block`.

    Returns:
        What each line came to, by the line.
    """
    lines = _lines(page, heading, number, changes, only, without)
    return {line: run(line) for line in lines}


def _lines(
    page: str,
    heading: str,
    number: int,
    changes: tuple[tuple[str, str], ...],
    only: str,
    without: tuple[str, ...],
) -> list[str]:
    lines = typed_lines(script(page, heading, number))
    kept = [
        line
        for line in lines
        if line.startswith(only) and not line.startswith(without or ("\n",))
    ]
    assert kept, f"{page}, {heading}, {number}: nothing is left of it"
    told = "\n".join(kept)
    for before, after in changes:
        assert before in told, f"{before} does not stand in {told}"
        told = told.replace(before, after)
    filled = told.split("\n")
    assert [_command(line) for line in filled] == [_command(line) for line in kept]
    return filled


def _command(line: str) -> str:
    """The word that a line begins with; of `NAME=value` the name."""
    return line.split(maxsplit=1)[0].partition("=")[0]


def script(page: str, heading: str, number: int) -> str:
    """A block that is typed; see `run_block`."""
    return [each for under, each in scripts(page) if under == heading][number]


def scripts(page: str) -> Iterator[tuple[str, str]]:
    """All blocks of a page that are typed: the heading that each is below, its text."""
    text = (DOCS / page).read_text("utf-8")
    parts = re.split(r"^##+ (.*)$", text, flags=re.MULTILINE)
    for heading, section in zip(["", *parts[1::2]], parts[::2], strict=True):
        for block in fenced(section):
            if block.language in TYPED:
                yield heading, block.text


def typed_lines(text: str) -> list[str]:
    """The lines of a script, each with what it goes on in; no comments of their own."""
    joined = re.sub(r" *\\\n *", " ", text)
    lines = [line.rstrip() for line in joined.splitlines()]
    return [line for line in lines if line and not line.lstrip().startswith("#")]


def blocks(heading: str, page: str = "installing.md") -> list[Block]:
    """The fenced blocks below a heading of the second or third level, in order.

    Args:
        heading: without its marks; what stands below its sub-headings counts too.
        page: of `docs`.
    """
    manual = (DOCS / page).read_text("utf-8")
    ((marks, section),) = (
        (found[1], found[2])
        for found in re.finditer(
            rf"^(##|###) {re.escape(heading)}\n(.*?)(?=^## |\Z)",
            manual,
            re.DOTALL | re.MULTILINE,
        )
    )
    if marks == "###":
        section = re.split(r"^### ", section, maxsplit=1, flags=re.MULTILINE)[0]
    return fenced(section)


def fenced(text: str) -> list[Block]:
    """All fenced blocks of a text, in order."""
    found = _FENCE.findall(text)
    return [Block(language, textwrap.dedent(inside)) for _, language, inside in found]


def packages(script: str) -> list[str]:
    """Debian's packages that a script installs by `apt-get install`."""
    joined = script.replace("\\\n", " ")
    (line,) = re.findall(r"^apt-get install (.*)$", joined, re.MULTILINE)
    return [word for word in line.split() if not word.startswith("-")]
