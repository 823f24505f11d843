"""Places of the visible mark that a signer picks by name instead of by numbers.

The numbers are made here, once, by the rules that firmar holds everybody to: what
the frame shows is what it asks for.

Source: decisions "x, y", "natural size of the stamp".
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from appliance.domain.command import SignParameters
from appliance.domain.document import PageBox
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.stamp import MARGIN_PT, MIN_TEXT_PT, natural_size

_MARGIN_SHARE: Final = 0.05
"""Of the shorter side: a tiny page has a tiny margin."""


class Corner(StrEnum):
    """Where the mark goes on its page."""

    TOP_LEFT = "topLeft"
    TOP_RIGHT = "topRight"
    BOTTOM_LEFT = "bottomLeft"
    BOTTOM_RIGHT = "bottomRight"
    NONE = "none"
    """A signature without a visible mark."""


def preset(
    corner: Corner, page: int, lines: Sequence[str], pages: Sequence[PageBox]
) -> SignParameters:
    """The parameters of a mark in a corner, wholly on the page.

    Args:
        corner: which.
        page: 1-based.
        lines: of the mark.
        pages: of the document.

    Returns:
        Default font and size; scaled down where the page is small. Where the text
        would be too small to be read, the mark is left to place itself.

    Raises:
        ApplianceError: `PAGE_OUT_OF_RANGE`.
    """
    if not 1 <= page <= len(pages):
        raise ApplianceError(
            ErrorCode.PAGE_OUT_OF_RANGE, params={"page": page, "pages": len(pages)}
        )
    base = SignParameters(page=page)
    if corner is Corner.NONE:
        return replace(base, visible=False)
    box = pages[page - 1]
    margin = min(MARGIN_PT, _MARGIN_SHARE * min(box.width_pt, box.height_pt))
    natural = natural_size(lines, base.font_name, base.font_style, base.font_size)
    zoom = _zoom(box, margin, natural)
    if base.font_size * zoom / 100 < MIN_TEXT_PT:
        return base
    width, height = natural[0] * zoom / 100, natural[1] * zoom / 100
    left, top = math.ceil(margin), math.ceil(margin)
    right = max(math.floor(box.width_pt - margin - width), 0)
    bottom = max(math.floor(box.height_pt - margin - height), 0)
    places = {
        Corner.TOP_LEFT: (left, top),
        Corner.TOP_RIGHT: (right, top),
        Corner.BOTTOM_LEFT: (left, bottom),
        Corner.BOTTOM_RIGHT: (right, bottom),
    }
    x, y = places[corner]
    # Rounding must not push it over the opposite edge.
    x = min(x, math.floor(box.width_pt - width))
    y = min(y, math.floor(box.height_pt - height))
    return replace(base, x=x, y=y, zoom_percent=zoom)


def _zoom(box: PageBox, margin: float, natural: tuple[float, float]) -> int:
    """The largest whole zoom, up to 100, at which the mark fits."""
    fits = min(
        1.0,
        (box.width_pt - 2 * margin) / natural[0],
        (box.height_pt - 2 * margin) / natural[1],
    )
    return max(math.floor(fits * 100), 0)
