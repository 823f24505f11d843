"""Places of the visible mark that a signer picks by name instead of by numbers.

The numbers are made here, once, by the rules that firmar holds everybody to: what
the frame shows is what it asks for.

Source: decisions "x, y", "natural size of the stamp".
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from appliance.domain.appearance.arrangement import arrange
from appliance.domain.appearance.details import PLAIN, StampDetails
from appliance.domain.appearance.geometry import (
    Box,
    Corner,
    Parts,
    corner_place,
    fitting,
    free_place,
    marks_of,
    scales,
    size_as_seen,
)
from appliance.domain.appearance.stamp import MIN_TEXT_PT
from appliance.domain.appearance.text import StampSigner, stamp_text
from appliance.domain.documents.inspected import Inspection, PageBox
from appliance.domain.errors import PageOutOfRangeError
from appliance.domain.signing_command import SignParameters

__all__ = ["Corner", "preset", "put"]

_DEFAULTS = SignParameters()


def preset(
    corner: Corner,
    page: int,
    signer: StampSigner,
    at: datetime,
    inspection: Inspection,
    details: StampDetails = PLAIN,
    look: SignParameters = _DEFAULTS,
) -> SignParameters:
    """The parameters of a mark in a corner, wholly on the page.

    Args:
        corner: which.
        page: 1-based.
        signer: whom it names.
        at: the signing time, aware.
        inspection: of the document; the mark goes beside those of signatures that
            are there already, as long as there is another place.
        details: what it shows besides.
        look: what it looks like; its place counts nothing.

    Returns:
        That look, scaled down where the page is small. Where the text would be too
        small to be read, the mark is left to place itself.

    Raises:
        PageOutOfRangeError: it is not one of them.
    """
    base = _at(page, look)
    box = _page(inspection, page)
    if corner is Corner.NONE:
        return replace(base, visible=False)
    natural = _natural(base, signer, at, details)
    # A point larger on each side, for what rounding to whole points takes.
    there = [
        (x0 - 1, y0 - 1, x1 + 1, y1 + 1)
        for x0, y0, x1, y1 in marks_of(inspection.marks, page, box)
    ]
    zoom, x, y = _place(box, natural, there, corner, base)
    if natural.text_pt * zoom / 100 < MIN_TEXT_PT:
        return base
    width, height = natural.width * zoom / 100, natural.height * zoom / 100
    # Rounded away from the edge it lies at, but not over the opposite one.
    x = math.ceil(x) if corner.value.endswith("Left") else max(math.floor(x), 0)
    y = math.ceil(y) if corner.value.startswith("top") else max(math.floor(y), 0)
    page_width, page_height = size_as_seen(box)
    x = min(x, math.floor(page_width - width))
    y = min(y, math.floor(page_height - height))
    return replace(base, x=x, y=y, zoom_percent=zoom)


def put(
    x: float,
    y: float,
    page: int,
    signer: StampSigner,
    at: datetime,
    inspection: Inspection,
    details: StampDetails = PLAIN,
    look: SignParameters = _DEFAULTS,
) -> SignParameters:
    """The parameters of a mark that the signer put somewhere on a page.

    Args:
        x: of the mark's top left, in points from the left of the page as seen.
        y: from its top.
        page: 1-based.
        signer: whom it names.
        at: the signing time, aware.
        inspection: of the document.
        details: what it shows besides.
        look: what it looks like; its place counts nothing.

    Returns:
        That look, scaled down where the page is small; whether it lies on
        the page is for whoever lays it out to say. Where the text would be too small
        to be read, the mark is left to place itself.

    Raises:
        PageOutOfRangeError: it is not one of them.
    """
    base = _at(page, look)
    box = _page(inspection, page)
    natural = _natural(base, signer, at, details)
    zoom = _largest(box, natural, base)[0]
    if natural.text_pt * zoom / 100 < MIN_TEXT_PT:
        return base
    # Downwards: what lay on the page before still does.
    return replace(base, x=math.floor(x), y=math.floor(y), zoom_percent=zoom)


def _at(page: int, look: SignParameters) -> SignParameters:
    """A look that is to be seen somewhere on a page."""
    return replace(look, page=page, x=None, y=None, field=None, visible=True)


def _page(inspection: Inspection, page: int) -> PageBox:
    """A page of the document.

    Raises:
        PageOutOfRangeError: it is not one of them.
    """
    pages = inspection.pages
    if not 1 <= page <= len(pages):
        raise PageOutOfRangeError(page, len(pages))
    return pages[page - 1]


def _natural(
    base: SignParameters, signer: StampSigner, at: datetime, details: StampDetails
) -> Parts:
    """The mark at 100 %."""
    lines = stamp_text(base, signer, at, details)
    font = base.font_name, base.font_style, base.font_size
    return arrange(lines, *font, details)


def _largest(page: PageBox, natural: Parts, base: SignParameters) -> tuple[int, float]:
    """The largest whole zoom, up to the mark's own, that fits; and its exact share."""
    own = base.zoom_percent / 100
    share = fitting(page, natural.width * own, natural.height * own)
    return max(math.floor(share * base.zoom_percent), 0), share


def _place(
    page: PageBox,
    natural: Parts,
    marks: Sequence[Box],
    corner: Corner,
    base: SignParameters,
) -> tuple[int, float, float]:
    """The largest whole zoom, up to its own, at which there is a place, and x and y."""
    whole, largest = _largest(page, natural, base)
    least = MIN_TEXT_PT / (natural.text_pt * base.zoom_percent / 100)
    for scale in scales(largest, least):
        zoom = max(math.floor(scale * base.zoom_percent), 0)
        width, height = natural.width * zoom / 100, natural.height * zoom / 100
        found = free_place(page, width, height, marks, corner)
        if found is not None:
            return zoom, *found
    width, height = natural.width * whole / 100, natural.height * whole / 100
    return whole, *corner_place(page, width, height, corner)
