"""The faces answer over HTTP as an earlier tree did: status, headers, body.

The answers stand in tests/vectors/wire; its README says how they are made.
"""

import json
from pathlib import Path

import pytest

from tests.vectors import kept
from tests.vectors.scenes import SCENES, play


def test_every_scene_is_kept() -> None:
    """A file for each, and no file for nothing."""
    assert {path.stem for path in kept.WIRE.glob("*.json")} == SCENES.keys()


@pytest.mark.parametrize("name", SCENES)
async def test_answers_are_what_they_were(name: str, tmp_path: Path) -> None:
    """Random words by name, everything else to the letter, members in their order."""
    answers = json.dumps(await play(name, tmp_path))
    before = json.dumps(kept.read(kept.WIRE / f"{name}.json"))

    assert json.loads(answers) == json.loads(before)
    assert answers == before
