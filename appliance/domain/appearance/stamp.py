"""Size and place of the visible stamp: pure functions for all who need them.

Signing, preview and the browser's frame ask the same function, `lay_out`, so what a
signer was shown is what is drawn. Nothing here opens a PDF, a font or a picture.

In a field that the document has already the field's box rules: the stamp fills it, its
text scaled down until it fits, never up, from the top left corner. A field without a
box is signed invisibly.

Source: decisions "campo"; ISO 32000-2, 12.7.5.5.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.domain.appearance.arrangement import (
    arrange,
    arrange_within,
    natural_size,
)
from appliance.domain.appearance.details import PLAIN, StampDetails
from appliance.domain.appearance.geometry import (
    LINE_HEIGHT,
    MARGIN_PT,
    PADDING_PT,
    QUIET_MODULES,
    LogoFigure,
    Parts,
    QrFigure,
    Rect,
    TextRun,
    as_seen,
    margin,
    marks_of,
    own_place,
    round_down,
    round_up,
    size_as_seen,
    to_user_space,
)
from appliance.domain.appearance.text import StampSigner, stamp_lines, stamp_text
from appliance.domain.documents.inspected import (
    EmptyField,
    Inspection,
    PageBox,
    SignatureMark,
)
from appliance.domain.errors import (
    POSITION_OF_BOTH,
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
    PageOutOfRangeError,
)
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import FontName, FontStyle

__all__ = [
    "LINE_HEIGHT",
    "MARGIN_PT",
    "MIN_TEXT_PT",
    "NAMED_COLORS",
    "PADDING_PT",
    "QUIET_MODULES",
    "LogoFigure",
    "QrFigure",
    "StampLayout",
    "natural_size",
    "parse_color",
    "place",
    "stamp_lines",
    "to_user_space",
]

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
MIN_TEXT_PT: Final = 4.0
"""Scaled down below this size, a stamp has no content."""
_HAIRLINE: Final = 0.07
"""A card's frame, as a share of its smallest words: half a point at 100 %."""
_EPSILON_PT = 1e-6  # boxes are sums of floats


@dataclass(frozen=True, slots=True)
class StampLayout:
    """A stamp ready to be drawn on a page."""

    page: int
    """1-based."""
    lines: tuple[str, ...]
    """Text, top to bottom; empty for a stamp without content."""
    font_name: FontName
    font_style: FontStyle
    font_size_pt: float
    """Size as drawn, the zoom included; of a card, of its smallest words."""
    color: tuple[float, float, float]
    """RGB, each 0 to 1."""
    text_x: float
    """Left edge of the text, from the stamp's left edge, as drawn."""
    text_y: float
    """Top of the first line's row, from the stamp's top edge, as drawn."""
    x: float
    """Left edge on the page as seen, in points from its left."""
    y: float
    """Top edge on the page as seen, in points from its top."""
    width: float
    height: float
    rect: Rect
    """The same box in unrotated user space: x0, y0, x1, y1."""
    rotate: int
    """The page's rotation: 0, 90, 180 or 270."""
    qr: QrFigure | None = None
    logo: LogoFigure | None = None
    runs: tuple[TextRun, ...] = ()
    """The lines of a card, each in its size; empty: all are of one font."""
    frame_pt: float | None = None
    """Width of a card's frame; None: by the size of the font."""


def lay_out(
    params: SignParameters,
    signer: StampSigner,
    at: datetime,
    inspection: Inspection,
    details: StampDetails = PLAIN,
) -> StampLayout | None:
    """Lay the stamp out, in the command's field or on its page.

    Args:
        params: the signing command's fields.
        signer: whom it names.
        at: the signing time, aware.
        inspection: of the document.
        details: what it shows besides.

    Returns:
        The stamp, or None when it is not to be seen.

    Raises:
        ApplianceError: as `place`;
            `SIGNATURE_FIELD_NOT_FOUND`.
    """
    lines = stamp_text(params, signer, at, details)
    if params.field is None:
        return place(params, lines, inspection.pages, inspection.marks, details)
    field = inspection.signing.find(params.field)
    if field is None:
        raise ApplianceError(ErrorCode.SIGNATURE_FIELD_NOT_FOUND)
    return place_in_field(params, lines, inspection.pages, field, details)


def place(
    params: SignParameters,
    lines: Sequence[str],
    pages: Sequence[PageBox],
    marks: Sequence[SignatureMark] = (),
    details: StampDetails = PLAIN,
) -> StampLayout | None:
    """Lay the stamp out on its page.

    An invisible signature's fields are held to the same rules, so that showing
    or hiding the stamp never changes whether a command is accepted.

    Args:
        params: the signing command's fields.
        lines: what `stamp_text` made.
        pages: the document's pages, at least one.
        marks: of signatures that are there already; placed by itself, the stamp
            does not cover them as long as there is another place.
        details: QR code, logo and design.

    Returns:
        The stamp, or None when it is not to be seen.

    Raises:
        PageOutOfRangeError: no such page.
        ApplianceError: `POSITION_OUT_OF_PAGE` with the boxes of stamp and page, and
            the field that puts it there.
        FieldInvalidError: not a colour; x without y, or y without x.

    Source: decisions "x, y", "zoomPercent", "page", "invisible".
    """
    color = parse_color(params.font_color)
    if not 1 <= params.page <= len(pages):
        raise PageOutOfRangeError(params.page, len(pages))
    page = pages[params.page - 1]
    scale = 1.0
    if params.x is None and params.y is None:
        page_width, page_height = size_as_seen(page)
        inset = 2 * margin(page)
        room = page_width - inset, page_height - inset
        parts, lines = arrange_within(lines, params, details, room)
        least = MIN_TEXT_PT / parts.text_pt
        there = marks_of(marks, params.page, page)
        scale, x, y = own_place(page, parts.width, parts.height, there, least)
        has_content = scale == 1 or scale >= least
    else:
        font = params.font_name, params.font_style, params.font_size
        zoom = params.zoom_percent / 100
        parts = arrange(lines, *font, details).scaled(zoom)
        x, y = _asked_place(params, page, parts.width, parts.height)
        has_content = True
    if not params.visible:
        return None
    drawn = parts.scaled(scale)
    return StampLayout(
        page=params.page,
        lines=tuple(lines) if has_content else (),
        font_name=params.font_name,
        font_style=params.font_style,
        font_size_pt=drawn.text_pt,
        color=color,
        text_x=drawn.text_x,
        text_y=drawn.text_y,
        x=x,
        y=y,
        width=drawn.width,
        height=drawn.height,
        rect=to_user_space(page, x, y, drawn.width, drawn.height),
        rotate=page.rotate,
        qr=drawn.qr if has_content else None,
        logo=drawn.logo if has_content else None,
        runs=drawn.runs if has_content else (),
        frame_pt=_frame(details, drawn),
    )


def place_in_field(
    params: SignParameters,
    lines: Sequence[str],
    pages: Sequence[PageBox],
    field: EmptyField,
    details: StampDetails = PLAIN,
) -> StampLayout | None:
    """Lay the stamp out in a field's box; page, x and y of the command are unused.

    Raises:
        FieldInvalidError: not a colour.
    """
    color = parse_color(params.font_color)
    if not params.visible or field.page is None or field.rect is None:
        return None
    page = pages[field.page - 1]
    left, top, right, bottom = as_seen(page, field.rect)
    width, height = right - left, bottom - top
    parts, lines = arrange_within(lines, params, details, (width, height))
    scale = min(1.0, width / parts.width, height / parts.height)
    drawn = parts.scaled(scale)
    has_content = drawn.text_pt >= MIN_TEXT_PT
    return StampLayout(
        page=field.page,
        lines=tuple(lines) if has_content else (),
        font_name=params.font_name,
        font_style=params.font_style,
        font_size_pt=drawn.text_pt,
        color=color,
        text_x=drawn.text_x,
        text_y=drawn.text_y,
        x=left,
        y=top,
        width=width,
        height=height,
        rect=field.rect,
        rotate=page.rotate,
        qr=drawn.qr if has_content else None,
        logo=drawn.logo if has_content else None,
        runs=drawn.runs if has_content else (),
        frame_pt=_frame(details, drawn),
    )


def _frame(details: StampDetails, drawn: Parts) -> float | None:
    """Width of a card's frame, in points."""
    return None if details.is_classic else _HAIRLINE * drawn.text_pt


def _asked_place(
    params: SignParameters, page: PageBox, width: float, height: float
) -> tuple[float, float]:
    """Take x and y as asked, if the whole stamp lies on the page.

    Raises:
        ApplianceError: `POSITION_OUT_OF_PAGE`.
        FieldInvalidError: only one of the two is there.
    """
    if params.x is None or params.y is None:
        missing = "x" if params.x is None else "y"
        raise FieldInvalidError(missing, "x and y come together")
    x, y = float(params.x), float(params.y)
    page_width, page_height = size_as_seen(page)
    if (
        min(x, y) < 0
        or x + width > page_width + _EPSILON_PT
        or y + height > page_height + _EPSILON_PT
    ):
        boxes: dict[str, object] = {
            # Rounded so that a stamp moved by these numbers does fit.
            "stamp": _box(x, y, round_up(width), round_up(height)),
            "page": _box(0.0, 0.0, round_down(page_width), round_down(page_height)),
        }
        error = _misplaced((x, y), page_width - width, page_height - height, boxes)
        raise error
    return x, y


def _misplaced(
    asked: tuple[float, float], most_x: float, most_y: float, boxes: dict[str, object]
) -> ApplianceError:
    """`POSITION_OUT_OF_PAGE`, with what puts a stamp off its page and what it may be.

    Args:
        asked: x and y.
        most_x: largest that leaves room for the stamp; below zero: none does.
        most_y: likewise.
        boxes: further members.
    """
    code = ErrorCode.POSITION_OUT_OF_PAGE
    most = {"x": most_x + _EPSILON_PT, "y": most_y + _EPSILON_PT}
    if min(most.values()) < 0:
        return ApplianceError(code, extras={"field": "zoomPercent", **boxes})
    given = dict(zip(most, asked, strict=True))
    wrong = [name for name in most if not 0 <= given[name] <= most[name]]
    ranges: dict[str, object] = {name: f"0..{math.floor(most[name])}" for name in wrong}
    return ApplianceError(
        code,
        params=ranges,
        extras={"field": wrong[0], "allowed": [ranges[wrong[0]]], **boxes},
        sentence=POSITION_OF_BOTH if len(wrong) > 1 else None,
    )


def _box(x: float, y: float, width: float, height: float) -> dict[str, object]:
    """A box as an answer shows it."""
    return {"x": x, "y": y, "width": width, "height": height}


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
