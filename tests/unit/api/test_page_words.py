"""Every sentence of the pages under {base_url} has its Spanish."""

import re
from pathlib import Path

import pytest

from appliance.api import ayuda, revocar
from appliance.web import i18n

TEMPLATES = Path(revocar.__file__).parent / "templates"
SAID = re.compile(r"""\bt\((?P<quote>["'])(?P<text>.+?)(?P=quote)\)""")


@pytest.mark.parametrize(
    "text",
    sorted(
        {
            match["text"]
            for path in TEMPLATES.glob("*.html")
            for match in SAID.finditer(path.read_text(encoding="utf-8"))
        }
        | {*revocar._REASONS.values(), *revocar._FAULTS.values()}
        | {*ayuda._SAID.values(), *ayuda._FAULTS.values()}
    ),
)
def test_sentence_has_its_spanish(text: str) -> None:
    """A page never falls back to English in the middle."""
    assert i18n.translate("es", text) != text
