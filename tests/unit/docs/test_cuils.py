"""CUILs that documentation shows: whoever copies one is not told that it is none."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from appliance.domain.errors import FieldInvalidError
from appliance.domain.people.identity import parse_cuil
from tests.support.appliance.manual import DOCS

ROOT: Final = DOCS.parent
_CUIL: Final = re.compile(r"(?<![\w-])[0-9]{2}-?[0-9]{8}-?[0-9](?![\w-])", re.ASCII)
SHOWN_AS_WRONG: Final[frozenset[str]] = frozenset()
"""Those that stand there to be refused."""


def pages() -> Iterator[Path]:
    """Everything that somebody may copy a CUIL from."""
    yield from ROOT.glob("*.md")
    yield from DOCS.glob("*.md")
    yield from (ROOT / "sdk").glob("*/README.md")
    for ending in ("md", "html", "sh", "py", "mjs", "php", "java", "toml"):
        yield from (ROOT / "appliance/developer_docs").rglob(f"*.{ending}")


def shown(text: str) -> list[str]:
    """The CUILs of a text, right or wrong."""
    return [
        each
        for each in _CUIL.findall(text)
        # Without its hyphens it is a CUIL only where it begins as a person's.
        if "-" in each or each.startswith(("20", "23", "24", "27"))
    ]


def test_every_cuil_is_one() -> None:
    """Its check digit is right."""
    wrong, seen = [], 0
    for page in pages():
        for cuil in shown(page.read_text()):
            seen += 1
            try:
                parse_cuil(cuil)
            except FieldInvalidError:
                if cuil not in SHOWN_AS_WRONG:
                    wrong.append((page.relative_to(ROOT), cuil))
    assert not wrong
    assert seen > 5


@pytest.mark.parametrize("wrong", ["27-11111111-4", "27111111114"])
def test_a_wrong_one_is_seen(wrong: str) -> None:
    """In JSON and in an address."""
    assert shown(f'"cuil": "{wrong}", ?cuil={wrong}&') == [wrong, wrong]
    with pytest.raises(FieldInvalidError):
        parse_cuil(wrong)
