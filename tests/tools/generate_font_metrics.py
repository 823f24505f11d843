"""Write `appliance/domain/appearance/font_metrics.json` from the Liberation 2 fonts.

python -m tests.tools.generate_font_metrics FONTS_DIR > .../font_metrics.json
"""

import json
import sys
from pathlib import Path
from typing import Final

from fontTools.ttLib import TTFont

from appliance.domain.appearance.characters import CHARACTERS
from appliance.domain.vocab import FontName, FontStyle

_FAMILIES: Final = {
    FontName.SERIF: "LiberationSerif",
    FontName.SANS_SERIF: "LiberationSans",
    FontName.MONOSPACED: "LiberationMono",
}
_STYLES: Final = {
    FontStyle.PLAIN: "Regular",
    FontStyle.BOLD: "Bold",
    FontStyle.ITALIC: "Italic",
    FontStyle.BOLD_ITALIC: "BoldItalic",
}


def _widths(font: TTFont) -> list[int] | int:
    """The advance widths in the order of `CHARACTERS`, one if all are equal."""
    cmap, hmtx = font.getBestCmap(), font["hmtx"]
    widths = [hmtx[cmap[ord(character)]][0] for character in CHARACTERS]
    return widths[0] if len(set(widths)) == 1 else widths


def generate(fonts_dir: Path) -> str:
    """The text of the file: a row a line.

    Args:
        fonts_dir: folder of the Liberation 2 TrueType files.
    """
    rows = []
    for name, stem in _FAMILIES.items():
        for style, suffix in _STYLES.items():
            file = f"{stem}-{suffix}.ttf"
            with TTFont(fonts_dir / file) as font:
                row = {
                    "name": name,
                    "style": style,
                    "file": file,
                    "ascent": font["hhea"].ascent,
                    "descent": -font["hhea"].descent,
                    "widths": _widths(font),
                }
            rows.append(json.dumps(row))
    return "[\n" + ",\n".join(rows) + "\n]\n"


if __name__ == "__main__":
    sys.stdout.write(generate(Path(sys.argv[1])))
