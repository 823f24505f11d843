"""Lines that the manual tells an operator to run, taken from it."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MANUAL: Final = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    language: str
    text: str


def blocks(heading: str) -> list[Block]:
    """The fenced blocks below a heading of the second level, in order.

    Args:
        heading: without its marks; what stands below its sub-headings counts too.
    """
    manual = MANUAL.read_text("utf-8")
    (section,) = re.findall(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", manual, re.DOTALL | re.MULTILINE
    )
    fenced = re.findall(
        r"^( *)```(\w+)\n(.*?)^\1```$", section, re.DOTALL | re.MULTILINE
    )
    return [Block(language, textwrap.dedent(text)) for _, language, text in fenced]


def packages(script: str) -> list[str]:
    """Debian's packages that a script installs by `apt-get install`."""
    joined = script.replace("\\\n", " ")
    (line,) = re.findall(r"^apt-get install (.*)$", joined, re.MULTILINE)
    return [word for word in line.split() if not word.startswith("-")]
