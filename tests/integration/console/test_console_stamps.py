"""The stamp tried out in the console, of an installation with the card.

Source: docs/console.md; docs/stamp.md "Two designs".
"""

from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest

from appliance.domain.vocab import StampDesign
from appliance.settings import StampSettings
from tests.integration.console.forms import HERE, open_acme_console
from tests.support.installation.console import Console

CARD = StampSettings(design=StampDesign.CARD, qr=True)


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in."""
    async with open_acme_console(tmp_path, stamp=CARD) as made:
        yield made


async def command_of(console: Console, query: str = "") -> str:
    """The page, in which stands what of a command makes the sample."""
    return unescape((await console.get(f"{HERE}/stamp?{query}")).text)


async def test_command_says_what_makes_the_stamp_classic(console: Console) -> None:
    """By one field of the font at least; the card needs none of them."""
    as_sent = "fontName=Serif&fontStyle=PLAIN&fontSize=12&fontColor=BLACK&design="
    for query in ("", as_sent):
        assert '"fontName": ' not in await command_of(console, query)

    chosen = await command_of(console, f"{as_sent}classic")
    bold = await command_of(console, "fontStyle=BOLD")

    assert '"fontName": "Serif"' in chosen
    assert '"fontName": "Serif"' in bold
    assert '"fontStyle": "BOLD"' in bold


async def test_page_of_an_installation_with_classic_stamps_offers_no_design(
    tmp_path: Path,
) -> None:
    """There is nothing to choose."""
    async with open_acme_console(tmp_path) as console:
        text = (await console.get(f"{HERE}/stamp")).text

    assert 'name="design"' not in text
