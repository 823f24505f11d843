"""The first pages that a stranger reads: short, with pictures, with good links."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.appliance.manual import DOCS, fenced
from tests.tools import pictures

ROOT: Final = DOCS.parent
README: Final = ROOT / "README.md"
START: Final = DOCS / "README.md"
LINK: Final = re.compile(r"\]\(([^)#\s]+)(?:#([^)]+))?\)")
PICTURE: Final = re.compile(r"!\[([^\]]+)\]\(([^)]+)\)")


def linked(page: Path) -> set[Path]:
    """The files that a page links to."""
    text = page.read_text("utf-8")
    return {
        (page.parent / target).resolve()
        for target, _ in LINK.findall(text)
        if "://" not in target
    }


def test_readme_is_short() -> None:
    """Two minutes to read."""
    assert len(README.read_text("utf-8").splitlines()) <= 120


def test_start_page_is_one_screen() -> None:
    """It sorts, and explains nothing."""
    assert len(START.read_text("utf-8").splitlines()) <= 50


@pytest.mark.parametrize("page", [README, START], ids=["readme", "start"])
def test_links_lead_to_files(page: Path) -> None:
    """Relative ones, pictures included."""
    assert [path for path in linked(page) if not path.exists()] == []


@pytest.mark.parametrize("page", [README, START], ids=["readme", "start"])
def test_links_lead_to_headings(page: Path) -> None:
    """Those with a `#`."""
    for target, anchor in LINK.findall(page.read_text("utf-8")):
        if anchor and "://" not in target:
            text = (page.parent / target).read_text("utf-8")
            headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
            made = {
                re.sub(r"[^\w\- ]", "", x.lower()).replace(" ", "-") for x in headings
            }
            assert anchor in made, (target, anchor)


def test_start_page_has_every_page() -> None:
    """A new page has a reader, and stands where that reader looks."""
    pages = set(DOCS.glob("*.md")) - {START}

    assert pages - linked(START) == set()


def test_pictures_are_those_that_the_script_takes() -> None:
    """Each in the README, with words for who does not see it, and no other one."""
    shown = PICTURE.findall(README.read_text("utf-8"))

    assert {(ROOT / path).resolve() for _, path in shown} == {
        pictures.FOLDER / name for name in pictures.NAMES
    }
    assert {path.name for path in pictures.FOLDER.iterdir()} == set(pictures.NAMES)
    assert all(len(words.split()) >= 3 for words, _ in shown)


@pytest.mark.parametrize("name", pictures.NAMES)
def test_picture_is_small(name: str) -> None:
    """The clone of a stranger does not grow."""
    content = (pictures.FOLDER / name).read_bytes()

    assert content.startswith(b"\x89PNG")
    assert len(content) <= pictures.LARGEST <= 150_000


def test_picture_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, before it is written."""
    kept = {name: (pictures.FOLDER / name).read_bytes() for name in pictures.NAMES}
    monkeypatch.setattr(pictures, "LARGEST", 1_000)

    with pytest.raises(SystemExit, match=r"frame\.png: \d+ bytes, at most 1000"):
        pictures.write(kept, tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("page", [README, DOCS / "trial.md"], ids=["readme", "trial"])
def test_ways_to_start_are_those_of_the_script(page: Path) -> None:
    """Every `./quickstart --…` that is told is one; the script says which there are."""
    said = subprocess.run(
        [ROOT / "quickstart", "--help"], capture_output=True, text=True, check=True
    ).stdout
    told = re.findall(r"\./quickstart (--[a-z]+)", page.read_text("utf-8"))

    assert told
    assert {way for way in told if way not in said} == set()


def test_commands_of_the_readme_are_there() -> None:
    """What its blocks start stands in the tree."""
    blocks = fenced(README.read_text("utf-8"))
    started = {
        word
        for block in blocks
        for word in re.findall(r"^\./(\w+)", block.text, re.MULTILINE)
    }

    assert started == {"quickstart", "check"}
    assert all((ROOT / name).stat().st_mode & 0o100 for name in started)
