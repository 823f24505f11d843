"""What an earlier tree had a real part make is used by this one alike.

Wrapped keys, Redis, archives; the vectors stand in tests/vectors/parts.
"""

import json
from pathlib import Path

import pytest

from tests.vectors import kept
from tests.vectors.part_adapters import PARTS

_LONG = 100


def test_every_part_is_kept() -> None:
    """A file for each, and no file for nothing."""
    assert {path.stem for path in kept.PARTS.glob("*.json")} == PARTS.keys()


@pytest.mark.parametrize("name", PARTS)
async def test_what_was_made_is_used(name: str, short_dir: Path) -> None:
    """It opens, signs and reads as it did, and gives the same bytes."""
    vector = kept.read(kept.PARTS / f"{name}.json")

    used = await PARTS[name].use(short_dir, vector["made"])

    assert json.loads(json.dumps(used)) == vector["used"]


@pytest.mark.parametrize("name", PARTS)
async def test_what_is_made_now_has_the_form_of_before(
    name: str, short_dir: Path
) -> None:
    """The same members; as long, where what they hold is random."""
    before = kept.read(kept.PARTS / f"{name}.json")["made"]

    made = json.loads(json.dumps(await PARTS[name].make(short_dir)))

    assert _form(made) == _form(before)


def _form(value: object) -> object:
    """Members and lengths; of what DER makes longer or shorter, that it is long."""
    if isinstance(value, dict):
        return {name: _form(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_form(each) for each in value]
    if isinstance(value, str):
        return min(len(value), _LONG)
    return value
