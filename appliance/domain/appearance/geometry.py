"""Size and place of a stamp and its parts; pure arithmetic.

Logo, text and QR code lie beside one another. From the page as seen to user space and
back, and the places that a stamp finds by itself.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from appliance.domain.appearance.details import Logo, StampDetails, qr_modules
from appliance.domain.appearance.font_metrics import FONTS
from appliance.domain.documents.inspected import PageBox, SignatureMark
from appliance.domain.vocab import FontName, FontStyle

LINE_HEIGHT: Final = 1.2
"""Distance of two baselines, as a multiple of the font size."""
PADDING_PT: Final = 6.0
"""Between edge and content at 100 %, on each side, and between its parts."""
MODULE_PT: Final = 1.8
"""Least side of a QR code's module at 100 %: 0.64 mm, 2.5 pixels at 100 dpi, where
decoders fail on 1.6 pt."""
QUIET_MODULES: Final = 4
"""White around a QR code, on each side (ISO/IEC 18004, 9.1)."""
FIGURE_LINES: Final = 4
"""Logo and QR code are as high as so many lines, even beside more of them."""
LOGO_ASPECT: Final = 2.5
"""A logo is at most so many times as wide as it may be high."""
MARGIN_PT: Final = 18.0
"""Between page edge and a stamp that is placed by itself."""
GAP_PT: Final = 6.0
"""Between such a stamp and an earlier signature's mark."""
SHRINK: Final = 0.8
"""Where no place is left free, a stamp is tried so much smaller, again and again."""
MARKS_AT_MOST: Final = 32
"""Earlier marks of a page that are looked at; the last ones."""

_MARGIN_SHARE: Final = 0.05  # of the shorter side: a tiny page has a tiny margin
_TOUCH_PT: Final = 1e-6  # boxes are sums of floats

Box = tuple[float, float, float, float]
"""Left, top, right, bottom on the page as seen, in points from its top left."""
Rect = tuple[float, float, float, float]
"""x0, y0, x1, y1 in unrotated user space, x0 ≤ x1 and y0 ≤ y1."""


@dataclass(frozen=True, slots=True)
class QrFigure:
    """A QR code, counted from the stamp's top left, as drawn."""

    content: str
    """ASCII; at error level M, in bytes, of the version `qr_version` gives."""
    x: float
    y: float
    side: float
    """Quiet zone included."""


@dataclass(frozen=True, slots=True)
class LogoFigure:
    """A logo, counted from the stamp's top left, as drawn."""

    sha256: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class TextRun:
    """Words of one size on one line, counted from the stamp's top left, as drawn."""

    text: str
    """Characters of `font_metrics.CHARACTERS` only."""
    font_name: FontName
    font_style: FontStyle
    size: float
    """Font size in points."""
    x: float
    """Left edge."""
    y: float
    """Top edge of its row, which is `LINE_HEIGHT` times as high as the size."""
    is_faint: bool = False
    """Drawn in a lighter tint of the stamp's colour."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a stamp at some scale, each from the stamp's top left."""

    width: float
    height: float
    text_x: float
    text_y: float
    text_pt: float
    """Size of its smallest words, in points."""
    qr: QrFigure | None
    logo: LogoFigure | None
    runs: tuple[TextRun, ...] = ()
    """Words in sizes of their own; none: all lines are of one font."""

    def scaled(self, by: float) -> "Parts":
        """All of it, larger or smaller."""
        qr, logo = self.qr, self.logo
        return Parts(
            self.width * by,
            self.height * by,
            self.text_x * by,
            self.text_y * by,
            self.text_pt * by,
            qr and QrFigure(qr.content, qr.x * by, qr.y * by, qr.side * by),
            logo
            and LogoFigure(
                logo.sha256,
                logo.x * by,
                logo.y * by,
                logo.width * by,
                logo.height * by,
            ),
            tuple(
                replace(run, size=run.size * by, x=run.x * by, y=run.y * by)
                for run in self.runs
            ),
        )


def arrange_lines(
    lines: Sequence[str],
    font_name: FontName,
    style: FontStyle,
    size: float,
    details: StampDetails,
) -> Parts:
    """Put logo, text and QR code beside one another, each in the middle, at 100 %.

    Args:
        lines: characters of `font_metrics.CHARACTERS` only.
        font_name: the logical font.
        style: its style.
        size: font size in points.
        details: QR code and logo.
    """
    metrics = FONTS[font_name, style]
    text_width = max((metrics.width(line) for line in lines), default=0.0) * size
    text_height = len(lines) * LINE_HEIGHT * size
    usual = min(text_height, FIGURE_LINES * LINE_HEIGHT * size)
    side = 0.0
    if details.qr is not None:
        modules = qr_modules(details.qr) + 2 * QUIET_MODULES
        side = max(usual, modules * MODULE_PT)
    inner = max(text_height, side)
    logo = None
    if details.logo is not None:
        logo = _logo(details.logo, max(usual, side), inner)
    text_x = PADDING_PT + (logo.width + PADDING_PT if logo else 0.0)
    qr_x = text_x + text_width + PADDING_PT
    qr = details.qr and QrFigure(
        details.qr, qr_x, PADDING_PT + (inner - side) / 2, side
    )
    return Parts(
        width=(qr_x + side if qr else text_x + text_width) + PADDING_PT,
        height=inner + 2 * PADDING_PT,
        text_x=text_x,
        text_y=PADDING_PT + (inner - text_height) / 2,
        text_pt=size,
        qr=qr or None,
        logo=logo,
    )


def _logo(logo: Logo, most: float, inner: float) -> LogoFigure:
    """The logo at the left, as high as it may be, in the middle of the content."""
    scale = min(most / logo.height_px, LOGO_ASPECT * most / logo.width_px)
    width, height = logo.width_px * scale, logo.height_px * scale
    top = PADDING_PT + (inner - height) / 2
    return LogoFigure(logo.sha256, PADDING_PT, top, width, height)


class Corner(StrEnum):
    """Where the mark goes on its page."""

    TOP_LEFT = "topLeft"
    TOP_RIGHT = "topRight"
    BOTTOM_LEFT = "bottomLeft"
    BOTTOM_RIGHT = "bottomRight"
    NONE = "none"
    """A signature without a visible mark."""


def marks_of(marks: Sequence[SignatureMark], number: int, page: PageBox) -> list[Box]:
    """The earlier marks of one page, as seen; the last `MARKS_AT_MOST` of them.

    Args:
        marks: of the document.
        number: the page's, 1-based.
        page: its box.
    """
    there = [as_seen(page, mark.rect) for mark in marks if mark.page == number]
    return there[-MARKS_AT_MOST:]


def own_place(
    page: PageBox, width: float, height: float, marks: Sequence[Box], least: float
) -> tuple[float, float, float]:
    """Scale (at most 1), x and y of a stamp that is placed by itself.

    The largest that finds a free place. On a page without any, the corner: a mark
    that covers another one is better than a signer who cannot sign.

    Args:
        page: where it is to lie.
        width: of the stamp at scale 1, in points.
        height: of the stamp.
        marks: what it must not cover; `MARKS_AT_MOST` of them at most.
        least: no scale below it is tried, but the largest that fits.
    """
    largest = fitting(page, width, height)
    for scale in scales(largest, least):
        found = free_place(page, width * scale, height * scale, marks)
        if found is not None:
            return scale, *found
    return largest, *corner_place(
        page, width * largest, height * largest, Corner.BOTTOM_LEFT
    )


def margin(page: PageBox) -> float:
    """Between the page's edge and a stamp that is placed by itself, in points."""
    return min(MARGIN_PT, _MARGIN_SHARE * min(size_as_seen(page)))


def fitting(page: PageBox, width: float, height: float) -> float:
    """The largest scale, at most 1, at which a stamp fits within the margins.

    Args:
        page: where it is to lie.
        width: of the stamp, in points.
        height: of the stamp.
    """
    both = 2 * margin(page)
    page_width, page_height = size_as_seen(page)
    return min(1.0, (page_width - both) / width, (page_height - both) / height)


def scales(largest: float, least: float) -> Iterator[float]:
    """The scales that a stamp is tried at, from the largest that fits downwards.

    Args:
        largest: always tried.
        least: no other below it.
    """
    yield largest
    scale = largest * SHRINK
    while scale >= least:
        yield scale
        scale *= SHRINK


def free_place(
    page: PageBox,
    width: float,
    height: float,
    marks: Sequence[Box],
    corner: Corner = Corner.BOTTOM_LEFT,
) -> tuple[float, float] | None:
    """The first free place for a stamp, counted from a corner.

    The corner itself if it is free; else beside what lies there, along the page's
    edge; else in a row further inwards, and so on.

    Args:
        page: where it is to lie.
        width: of the stamp as drawn, in points; fits within the margins.
        height: of the stamp.
        marks: what it must not cover; `MARKS_AT_MOST` of them at most.
        corner: where it begins to look; not `NONE`.

    Returns:
        x and y of the stamp's top left, or None where no place is free.
    """
    inset = margin(page)
    # Without gaps where a gap is more than the page's own margin.
    gap = min(GAP_PT, inset)
    page_width, page_height = size_as_seen(page)
    right, bottom = page_width - inset - width, page_height - inset - height
    if corner in {Corner.BOTTOM_LEFT, Corner.TOP_LEFT}:
        xs = sorted({inset, *(box[2] + gap for box in marks)})
    else:
        xs = sorted({right, *(box[0] - gap - width for box in marks)}, reverse=True)
    if corner in {Corner.TOP_LEFT, Corner.TOP_RIGHT}:
        ys = sorted({inset, *(box[3] + gap for box in marks)})
    else:
        ys = sorted({bottom, *(box[1] - gap - height for box in marks)}, reverse=True)
    inside = (
        (x, y)
        for y in ys
        for x in xs
        if inset <= x + _TOUCH_PT
        and x <= right + _TOUCH_PT
        and inset <= y + _TOUCH_PT
        and y <= bottom + _TOUCH_PT
    )
    return next(
        (
            (x, y)
            for x, y in inside
            if not any(_covers((x, y, x + width, y + height), box) for box in marks)
        ),
        None,
    )


def corner_place(
    page: PageBox, width: float, height: float, corner: Corner
) -> tuple[float, float]:
    """The place in a corner, whatever lies there: x and y of the stamp's top left."""
    place = free_place(page, width, height, (), corner)
    return place if place is not None else (0.0, 0.0)


def _covers(one: Box, other: Box) -> bool:
    """Whether two boxes share more than an edge."""
    return (
        one[0] < other[2] - _TOUCH_PT
        and other[0] < one[2] - _TOUCH_PT
        and one[1] < other[3] - _TOUCH_PT
        and other[1] < one[3] - _TOUCH_PT
    )


def to_user_space(
    page: PageBox, x: float, y: float, width: float, height: float
) -> Rect:
    """Turn a box on the page as seen into unrotated user space.

    Args:
        page: the visible box, its rotation and its unit.
        x: left edge from the left of the page as seen, in points.
        y: top edge from the top of the page as seen, in points.
        width: as seen.
        height: as seen.

    Source: ISO 32000-2, 7.7.3.3 (Rotate: clockwise as shown; UserUnit).
    """
    x, y, width, height = (side / page.user_unit for side in (x, y, width, height))
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


def size_as_seen(page: PageBox) -> tuple[float, float]:
    """Width and height of a page as a reader sees it, after rotation, in points."""
    width, height = page.x1 - page.x0, page.y1 - page.y0
    if page.rotate in {90, 270}:
        width, height = height, width
    return width * page.user_unit, height * page.user_unit


def as_seen(page: PageBox, rect: Rect) -> Box:
    """Turn a rectangle of user space into a box on the page as seen.

    The inverse of `to_user_space`.
    """
    left, below = rect[0] - page.x0, rect[1] - page.y0
    right, above = page.x1 - rect[2], page.y1 - rect[3]
    box = {
        0: (left, above, rect[2] - page.x0, page.y1 - rect[1]),
        90: (below, left, rect[3] - page.y0, rect[2] - page.x0),
        180: (right, below, page.x1 - rect[0], rect[3] - page.y0),
        270: (above, right, page.y1 - rect[1], page.x1 - rect[0]),
    }[page.rotate]
    x0, y0, x1, y1 = (side * page.user_unit for side in box)
    return x0, y0, x1, y1


def round_up(value: float) -> float:
    """Hundredths of a point, never less."""
    return math.ceil(value * 100) / 100


def round_down(value: float) -> float:
    """Hundredths of a point, never more."""
    return math.floor(value * 100) / 100
