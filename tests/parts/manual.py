"""Lines that the manual tells an operator to run, taken from it."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    language: str
    text: str


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
    found = re.findall(r"^( *)```(\w+)\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [Block(language, textwrap.dedent(inside)) for _, language, inside in found]


def packages(script: str) -> list[str]:
    """Debian's packages that a script installs by `apt-get install`."""
    joined = script.replace("\\\n", " ")
    (line,) = re.findall(r"^apt-get install (.*)$", joined, re.MULTILINE)
    return [word for word in line.split() if not word.startswith("-")]
