"""Names that are stored or known outside are what they were.

Whoever changes one on purpose makes its file anew; tests/vectors/README.md tells how.
"""

import json

import pytest

from tests.vectors import kept
from tests.vectors.names import NAMES


def test_every_kind_of_name_is_kept() -> None:
    """A file for each, and no file for nothing."""
    assert {path.stem for path in kept.NAMES.glob("*.json")} == NAMES.keys()


@pytest.mark.parametrize("kind", NAMES)
def test_names_are_what_they_were(kind: str) -> None:
    """None went, none came, none is spelt in another way."""
    now = json.loads(json.dumps(NAMES[kind]()))

    assert now == kept.read(kept.NAMES / f"{kind}.json")
