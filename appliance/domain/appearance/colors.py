"""The colours of a stamp."""

import re
from typing import Final

from appliance.domain.errors import FieldInvalidError

_HEX_COLOR = re.compile(r"#[0-9A-Fa-f]{6}", re.ASCII)
_Rgb = tuple[float, float, float]

NAMED_COLORS: Final[dict[str, tuple[int, int, int]]] = {
    "BLACK": (0, 0, 0),
    "BLUE": (0, 0, 255),
    "CYAN": (0, 255, 255),
    "DARK_GRAY": (64, 64, 64),
    "GRAY": (128, 128, 128),
    "GREEN": (0, 255, 0),
    "LIGHT_GRAY": (192, 192, 192),
    "MAGENTA": (255, 0, 255),
    "ORANGE": (255, 200, 0),
    "PINK": (255, 175, 175),
    "RED": (255, 0, 0),
    "WHITE": (255, 255, 255),
    "YELLOW": (255, 255, 0),
}
"""The constants of java.awt.Color, 0 to 255."""


def parse_color(text: str) -> _Rgb:
    """Read `fontColor`.

    Args:
        text: a java.awt.Color name in capitals, or `#RRGGBB`.

    Returns:
        Red, green and blue, each 0 to 1.

    Raises:
        FieldInvalidError: neither of the two.

    Source: decisions "fontColor".
    """
    red, green, blue = NAMED_COLORS.get(text, (0, 0, 0))
    if text not in NAMED_COLORS:
        if _HEX_COLOR.fullmatch(text) is None:
            raise FieldInvalidError("fontColor", [*NAMED_COLORS, "#RRGGBB"])
        red, green, blue = bytes.fromhex(text[1:])
    return red / 255, green / 255, blue / 255
