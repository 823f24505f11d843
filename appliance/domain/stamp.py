"""Size and place of the visible stamp: pure functions for all who need them.

Signing, preview and the browser's frame ask the same functions, so what a
signer was shown is what is drawn. Nothing here opens a PDF or a font.
"""

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from appliance.domain.command import SignParameters
from appliance.domain.document import PageBox
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.font_metrics import CHARACTERS, FONTS
from appliance.domain.person import format_cuil
from appliance.domain.vocab import FontName, FontStyle

LINE_HEIGHT: Final = 1.2
"""Distance of two baselines, as a multiple of the font size."""
PADDING_PT: Final = 6.0
"""Between edge and text at 100 %, on each side."""
MARGIN_PT: Final = 18.0
"""Between page edge and a stamp that is placed by itself."""
MIN_TEXT_PT: Final = 4.0
"""Scaled down below this size, a stamp has no text."""

_MARGIN_SHARE = 0.05  # of the shorter side: a tiny page has a tiny margin
_EPSILON_PT = 1e-6  # boxes are sums of floats
# Fixed, for tz data may be absent; there has been no summer time since 2009.
_BUENOS_AIRES = timezone(timedelta(hours=-3))
_KNOWN = frozenset(CHARACTERS)
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


@dataclass(frozen=True, slots=True)
class StampLayout:
    """A stamp ready to be drawn on a page."""

    page: int
    """1-based."""
    lines: tuple[str, ...]
    """Text, top to bottom; empty for a stamp without text."""
    font_name: FontName
    font_style: FontStyle
    font_size_pt: float
    """Size as drawn, the zoom included."""
    color: tuple[float, float, float]
    """RGB, each 0 to 1."""
    padding_pt: float
    """Between edge and text, as drawn."""
    x: float
    """Left edge on the page as seen, in points from its left."""
    y: float
    """Top edge on the page as seen, in points from its top."""
    width: float
    height: float
    rect: tuple[float, float, float, float]
    """The same box in unrotated user space: x0, y0, x1, y1."""
    rotate: int
    """The page's rotation: 0, 90, 180 or 270."""


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


def stamp_lines(name: str, cuil: str, at: datetime, locale: str) -> tuple[str, ...]:
    """The stamp's words: who signs, under which number, and when.

    The words are neutral: what the law calls the signature depends on the
    certificate's chain. A character that the fonts lack becomes its compatible
    form without the unknown marks (`ǹ` → `n`, `ﬁ` → `fi`), else `?`; controls and
    runs of spaces become one space.

    Args:
        name: the signer's name.
        cuil: eleven digits.
        at: the signing time, aware.
        locale: `es` (time of Buenos Aires) or another (English, UTC).

    Returns:
        Four lines, only of characters with known widths. All digits are equally
        wide, so the time does not change the stamp's size.
    """
    spanish = locale == "es"
    local = at.astimezone(_BUENOS_AIRES if spanish else UTC)
    return (
        "Firmado por" if spanish else "Signed by",
        _showable(name),
        f"CUIL {format_cuil(cuil)}",
        _time_text(local),
    )


def _time_text(local: datetime) -> str:
    """Date, time and offset, such as `2026-11-20 14:03:11 -03:00`."""
    text = local.isoformat(sep=" ", timespec="seconds")
    return f"{text[:19]} {text[19:]}"


def _showable(text: str) -> str:
    """The text in characters that the fonts have."""
    shown = "".join(map(_showable_char, unicodedata.normalize("NFC", text)))
    return " ".join(shown.split())


def _showable_char(char: str) -> str:
    """One composed character, or what stands for it."""
    if char in _KNOWN:
        return char
    if unicodedata.category(char)[0] in "ZC":
        return " "
    if unicodedata.combining(char):
        return ""
    parts = unicodedata.normalize("NFKD", char)
    known = "".join(part for part in parts if part in _KNOWN)
    return known.strip() or "?"


def natural_size(
    lines: Sequence[str], font_name: FontName, style: FontStyle, size: float
) -> tuple[float, float]:
    """Size of the stamp at 100 %.

    Args:
        lines: characters of `font_metrics.CHARACTERS` only.
        font_name: the logical font.
        style: its style.
        size: font size in points.

    Returns:
        Width and height in points: the widest line + 12, lines * 1.2 * size + 12.

    Source: decisions "natural size of the stamp".
    """
    metrics = FONTS[font_name, style]
    widest = max((metrics.width(line) for line in lines), default=0.0)
    return (
        widest * size + 2 * PADDING_PT,
        len(lines) * LINE_HEIGHT * size + 2 * PADDING_PT,
    )


def place(
    params: SignParameters, lines: Sequence[str], pages: Sequence[PageBox]
) -> StampLayout | None:
    """Lay the stamp out on its page.

    An invisible signature's fields are held to the same rules, so that showing
    or hiding the stamp never changes whether a command is accepted.

    Args:
        params: the signing command's fields.
        lines: what `stamp_lines` made.
        pages: the document's pages, at least one.

    Returns:
        The stamp, or None when it is not to be seen.

    Raises:
        ApplianceError: `PAGE_OUT_OF_RANGE`, or `POSITION_OUT_OF_PAGE` with the
            boxes of stamp and page.
        FieldInvalidError: not a colour; x without y, or y without x.

    Source: decisions "x, y", "zoomPercent", "page", "invisible".
    """
    color = parse_color(params.font_color)
    if not 1 <= params.page <= len(pages):
        raise ApplianceError(
            ErrorCode.PAGE_OUT_OF_RANGE,
            params={"page": params.page, "pages": len(pages)},
        )
    page = pages[params.page - 1]
    natural = natural_size(lines, params.font_name, params.font_style, params.font_size)
    zoom = params.zoom_percent / 100
    width, height = natural[0] * zoom, natural[1] * zoom
    if params.x is None and params.y is None:
        scale, x, y = _fit(page, width, height)
        width, height, zoom = width * scale, height * scale, zoom * scale
        with_text = scale == 1 or params.font_size * zoom >= MIN_TEXT_PT
    else:
        x, y = _asked_place(params, page, width, height)
        with_text = True
    if not params.visible:
        return None
    return StampLayout(
        page=params.page,
        lines=tuple(lines) if with_text else (),
        font_name=params.font_name,
        font_style=params.font_style,
        font_size_pt=params.font_size * zoom,
        color=color,
        padding_pt=PADDING_PT * zoom,
        x=x,
        y=y,
        width=width,
        height=height,
        rect=to_user_space(page, x, y, width, height),
        rotate=page.rotate,
    )


def _fit(page: PageBox, width: float, height: float) -> tuple[float, float, float]:
    """Scale (at most 1), x and y of a stamp that is placed by itself."""
    margin = min(MARGIN_PT, _MARGIN_SHARE * min(page.width_pt, page.height_pt))
    scale = min(
        1.0,
        (page.width_pt - 2 * margin) / width,
        (page.height_pt - 2 * margin) / height,
    )
    return scale, margin, page.height_pt - margin - height * scale


def _asked_place(
    params: SignParameters, page: PageBox, width: float, height: float
) -> tuple[float, float]:
    """Take x and y as asked, if the whole stamp lies on the page.

    Raises:
        ApplianceError: `POSITION_OUT_OF_PAGE`.
        FieldInvalidError: only one of the two is there.
    """
    if params.x is None or params.y is None:
        raise FieldInvalidError("x" if params.x is None else "y", "x and y together")
    x, y = float(params.x), float(params.y)
    if (
        min(x, y) < 0
        or x + width > page.width_pt + _EPSILON_PT
        or y + height > page.height_pt + _EPSILON_PT
    ):
        raise ApplianceError(
            ErrorCode.POSITION_OUT_OF_PAGE,
            extras={
                # Rounded so that a stamp moved by these numbers does fit.
                "stamp": _box(x, y, _up(width), _up(height)),
                "page": _box(0.0, 0.0, _down(page.width_pt), _down(page.height_pt)),
            },
        )
    return x, y


def _box(x: float, y: float, width: float, height: float) -> dict[str, object]:
    """A box as an answer shows it."""
    return {"x": x, "y": y, "width": width, "height": height}


def _up(value: float) -> float:
    """Hundredths of a point, never less."""
    return math.ceil(value * 100) / 100


def _down(value: float) -> float:
    """Hundredths of a point, never more."""
    return math.floor(value * 100) / 100


def to_user_space(
    page: PageBox, x: float, y: float, width: float, height: float
) -> tuple[float, float, float, float]:
    """Turn a box on the page as seen into unrotated user space.

    Args:
        page: the visible box and its rotation.
        x: left edge from the left of the page as seen, in points.
        y: top edge from the top of the page as seen, in points.
        width: as seen.
        height: as seen.

    Returns:
        x0, y0, x1, y1 with x0 ≤ x1 and y0 ≤ y1.

    Source: ISO 32000-2, 7.7.3.3 (Rotate: clockwise as shown).
    """
    if page.rotate == 90:  # noqa: PLR2004 (degrees)
        # As seen, right is up in user space and down is right.
        x0, y0 = page.x0 + y, page.y0 + x
        return x0, y0, x0 + height, y0 + width
    if page.rotate == 180:  # noqa: PLR2004 (degrees)
        x1, y0 = page.x1 - x, page.y0 + y
        return x1 - width, y0, x1, y0 + height
    if page.rotate == 270:  # noqa: PLR2004 (degrees)
        # As seen, right is down in user space and down is left.
        x1, y1 = page.x1 - y, page.y1 - x
        return x1 - height, y1 - width, x1, y1
    x0, y1 = page.x0 + x, page.y1 - y
    return x0, y1 - height, x0 + width, y1
