"""Advance widths of the Liberation 2 fonts, in units of 1/2048 em.

They are data (`font_metrics.json`, made by `tests/tools/generate_font_metrics.py`; a
test compares it with the font files), so that the size of a stamp is plain arithmetic:
no process that answers for geometry has to open a font.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from appliance.domain.appearance.characters import CHARACTERS
from appliance.domain.vocab import FontName, FontStyle

UNITS_PER_EM: Final = 2048


@dataclass(frozen=True, slots=True)
class FontMetrics:
    """What is known of one font without opening it."""

    file: str
    """Name of the font's file in the folder of fonts."""
    ascent: int
    """Above the baseline, in units."""
    descent: int
    """Below the baseline, in units; positive."""
    advances: Mapping[str, int]
    """Width of each character that a stamp can show, in units."""

    def width(self, text: str) -> float:
        """Width of a text in ems; each character must be one of `advances`."""
        return sum(map(self.advances.__getitem__, text)) / UNITS_PER_EM


def _metrics(font: Mapping[str, Any]) -> FontMetrics:
    """Read a font's row: `widths` are in the order of `CHARACTERS`, or one for all."""
    widths = font["widths"]
    if isinstance(widths, int):
        widths = [widths] * len(CHARACTERS)
    advances = dict(zip(CHARACTERS, widths, strict=True))
    return FontMetrics(
        font["file"], font["ascent"], font["descent"], MappingProxyType(advances)
    )


DATA: Final = Path(__file__).with_suffix(".json")
"""A list of rows, one for each font."""
FONTS: Final[Mapping[tuple[FontName, FontStyle], FontMetrics]] = MappingProxyType(
    {
        (FontName(row["name"]), FontStyle(row["style"])): _metrics(row)
        for row in json.loads(DATA.read_text("utf-8"))
    }
)
"""Each font of a stamp."""
