"""Size and place of the visible stamp: pure functions for all who need them.

Signing, preview and the browser's frame ask the same function (`stamp_field.lay_out`),
so what a signer was shown is what is drawn. Nothing here opens a PDF, a font or a
picture.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from appliance.domain.appearance.colors import NAMED_COLORS, parse_color
from appliance.domain.appearance.details import PLAIN, StampDetails
from appliance.domain.appearance.geometry import (
    LINE_HEIGHT,
    PADDING_PT,
    QUIET_MODULES,
    LogoFigure,
    Parts,
    QrFigure,
    arrange,
    natural_size,
)
from appliance.domain.appearance.layout import (
    MARGIN_PT,
    MARKS_AT_MOST,
    Box,
    Corner,
    Rect,
    as_seen,
    corner_place,
    fitting,
    free_place,
    round_down,
    round_up,
    scales,
    to_user_space,
)
from appliance.domain.appearance.text import stamp_lines
from appliance.domain.documents import PageBox, SignatureMark
from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
    PageOutOfRangeError,
)
from appliance.domain.requests.signing_command import SignParameters
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
    "marks_of",
    "natural_size",
    "parse_color",
    "place",
    "stamp_lines",
    "to_user_space",
]

MIN_TEXT_PT: Final = 4.0
"""Scaled down below this size, a stamp has no content."""
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
    """Size as drawn, the zoom included."""
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
        lines: what `all_lines` made.
        pages: the document's pages, at least one.
        marks: of signatures that are there already; placed by itself, the stamp
            does not cover them as long as there is another place.
        details: QR code and logo.

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
    zoom = params.zoom_percent / 100
    style = params.font_name, params.font_style
    parts = arrange(lines, *style, params.font_size, details).scaled(zoom)
    scale = 1.0
    if params.x is None and params.y is None:
        least = MIN_TEXT_PT / (params.font_size * zoom)
        there = marks_of(marks, params.page, page)
        scale, x, y = _own_place(page, parts, there, least)
        has_content = scale == 1 or scale >= least
    else:
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
        font_size_pt=params.font_size * zoom * scale,
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
    )


def marks_of(marks: Sequence[SignatureMark], number: int, page: PageBox) -> list[Box]:
    """The earlier marks of one page, as seen; the last `MARKS_AT_MOST` of them.

    Args:
        marks: of the document.
        number: the page's, 1-based.
        page: its box.
    """
    there = [as_seen(page, mark.rect) for mark in marks if mark.page == number]
    return there[-MARKS_AT_MOST:]


def _own_place(
    page: PageBox, parts: Parts, marks: Sequence[Box], least: float
) -> tuple[float, float, float]:
    """Scale (at most 1), x and y of a stamp that is placed by itself.

    The largest that finds a free place. On a page without any, the corner: a mark
    that covers another one is better than a signer who cannot sign.
    """
    largest = fitting(page, parts.width, parts.height)
    for scale in scales(largest, least):
        width, height = parts.width * scale, parts.height * scale
        found = free_place(page, width, height, marks)
        if found is not None:
            return scale, *found
    return largest, *corner_place(
        page, parts.width * largest, parts.height * largest, Corner.BOTTOM_LEFT
    )


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
    if (
        min(x, y) < 0
        or x + width > page.width_pt + _EPSILON_PT
        or y + height > page.height_pt + _EPSILON_PT
    ):
        raise ApplianceError(
            ErrorCode.POSITION_OUT_OF_PAGE,
            extras={
                **_misplaced(x, page.width_pt - width, page.height_pt - height),
                # Rounded so that a stamp moved by these numbers does fit.
                "stamp": _box(x, y, round_up(width), round_up(height)),
                "page": _box(
                    0.0, 0.0, round_down(page.width_pt), round_down(page.height_pt)
                ),
            },
        )
    return x, y


def _misplaced(x: float, most_x: float, most_y: float) -> dict[str, object]:
    """Which field puts a stamp off its page, and what it may be.

    Args:
        x: as asked for.
        most_x: largest that leaves room for the stamp; below zero: none does.
        most_y: likewise.
    """
    if min(most_x, most_y) < -_EPSILON_PT:
        return {"field": "zoomPercent"}
    field, most = ("y", most_y) if 0 <= x <= most_x + _EPSILON_PT else ("x", most_x)
    return {"field": field, "allowed": [f"0..{math.floor(most + _EPSILON_PT)}"]}


def _box(x: float, y: float, width: float, height: float) -> dict[str, object]:
    """A box as an answer shows it."""
    return {"x": x, "y": y, "width": width, "height": height}
