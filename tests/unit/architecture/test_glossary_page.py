"""docs/glossary.md: each word stands there once, and where its row says in the code."""

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "glossary.md"
TEXT: Final = PAGE.read_text(encoding="utf-8")
TOPICS: Final = {
    topic.splitlines()[0]: [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in topic.splitlines()
        if line.startswith("| ") and not line.startswith("| word |")
    ]
    for topic in TEXT.split("\n## ")[1:]
}
ROWS: Final = [row for rows in TOPICS.values() for row in rows]
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)#]+)\)")


def words(row: list[str]) -> list[str]:
    """The words that a row tells of, as they are looked for."""
    return re.sub("[`*]", "", row[0]).casefold().split(", ")


def test_every_row_is_whole() -> None:
    """Word, meaning, file, source."""
    assert 100 < len(ROWS) <= 150
    assert [row for row in ROWS if len(row) != 4 or not all(row)] == []


def test_every_link_names_a_file() -> None:
    """From the page's own folder, and by the name that is read."""
    links = _LINK.findall(TEXT)

    assert len(links) == len(ROWS)
    for name, target in links:
        path = (PAGE.parent / target).resolve()
        assert path.is_file(), target
        assert path == PAGE.parents[1] / name, name


def test_no_word_is_told_twice() -> None:
    """Neither in a row of its own nor beside another one."""
    seen = Counter(word for row in ROWS for word in words(row))

    assert [word for word, times in seen.items() if times > 1] == []


@pytest.mark.parametrize("topic", TOPICS)
def test_words_stand_in_order(topic: str) -> None:
    """Of the alphabet, by the first word of each row."""
    first = [words(row)[0] for row in TOPICS[topic]]

    assert first
    assert first == sorted(first)


def test_words_of_the_wire_are_in_their_files() -> None:
    """What the page spells as code is spelled so where the row says."""
    spelled = [(word, row) for row in ROWS for word in re.findall("`(.+?)`", row[0])]

    assert len(spelled) > 30
    for word, row in spelled:
        path = PAGE.parent / _LINK.findall(row[2])[0][1]
        assert re.search(rf"\b{word}\b", path.read_text(encoding="utf-8")), word
