"""Cut the contract into its statements: table rows and sentences, in order.

A statement is what one entry of `contract.toml` answers for. Headings and the
header of a table state nothing. The cut depends on the file alone, so a changed
word shows as an entry too many and one too few.
"""

import re
from dataclasses import dataclass
from typing import Final

_ITEM: Final = re.compile(r"^\s*(?:[-*]|\d+\.)\s+(?P<text>.*)$")
_RULE: Final = re.compile(r"^\|(?:\s*:?-+:?\s*\|)+$")
_HEADING: Final = re.compile(r"^#{1,6}\s+(?P<text>.*)$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One table row, list item or sentence of the contract."""

    text: str
    """Its exact words, on one line."""
    line: int
    """Line of the file where its paragraph, item or row begins, from 1."""
    heading: str
    """The heading that it stands under."""


def cut_sentences(paragraph: str) -> list[str]:
    """Cut one paragraph after each full stop that a space and a capital follow.

    A full stop inside a code span ends nothing, nor does a span's end count as
    the space: spans are whole.

    Args:
        paragraph: text on one line.

    Returns:
        The sentences, trimmed, none of them empty.
    """
    sentences = []
    start = 0
    in_code = False
    for i, char in enumerate(paragraph):
        if char == "`":
            in_code = not in_code
        ends = (
            char == "."
            and not in_code
            and paragraph[i + 1 : i + 2] == " "
            and paragraph[i + 2 : i + 3].isupper()
        )
        if ends:
            sentences.append(paragraph[start : i + 1].strip())
            start = i + 1
    sentences.append(paragraph[start:].strip())
    return [sentence for sentence in sentences if sentence]


def cut(markdown: str) -> list[Statement]:
    """Cut a whole file.

    Args:
        markdown: headings, paragraphs, lists (also nested) and pipe tables.

    Returns:
        Its statements in the order of the file.
    """
    cutter = _Cutter()
    lines = markdown.splitlines()
    for number, line in enumerate(lines, start=1):
        following = lines[number] if number < len(lines) else ""
        cutter.feed(number, line.rstrip(), following.strip())
    cutter.end_block()
    return cutter.statements


class _Cutter:
    """Gathers the lines of a paragraph or item until the block ends."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self._heading = ""
        self._block: list[str] = []
        self._block_line = 0
        self._is_item = False

    def feed(self, number: int, line: str, following: str) -> None:
        """Take the next line, knowing the one after it."""
        if heading := _HEADING.match(line):
            self.end_block()
            self._heading = heading["text"]
        elif line.lstrip().startswith("|"):
            self.end_block()
            is_header = _RULE.match(following) is not None
            if not is_header and not _RULE.match(line.strip()):
                self._state(line.strip(), number)
        elif item := _ITEM.match(line):
            self.end_block()
            self._open(item["text"], number, is_item=True)
        elif not line.strip():
            self.end_block()
        elif self._block:
            self._block.append(line.strip())
        else:
            self._open(line.strip(), number, is_item=False)

    def end_block(self) -> None:
        """Turn what was gathered into statements: an item is one, whole."""
        text = " ".join(self._block)
        self._block = []
        if not text:
            return
        for sentence in [text] if self._is_item else cut_sentences(text):
            self._state(sentence, self._block_line)

    def _open(self, text: str, number: int, *, is_item: bool) -> None:
        self._block = [text]
        self._block_line = number
        self._is_item = is_item

    def _state(self, text: str, number: int) -> None:
        self.statements.append(Statement(text, number, self._heading))
