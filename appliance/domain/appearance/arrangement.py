"""The parts of a stamp by its design, at 100 %: its natural size; pure functions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from appliance.domain.appearance.card import arrange_card
from appliance.domain.appearance.details import PLAIN, StampDetails
from appliance.domain.appearance.geometry import Parts, arrange_lines
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import FontName, FontStyle

_SMALL: Final = 0.6
"""Share of its size below which a card goes without logo, and then without its code."""


def natural_size(
    lines: Sequence[str],
    font_name: FontName,
    style: FontStyle,
    size: float,
    details: StampDetails = PLAIN,
) -> tuple[float, float]:
    """Size of the stamp at 100 %.

    Args:
        lines: characters of `font_metrics.CHARACTERS` only.
        font_name: the logical font.
        style: its style.
        size: font size in points.
        details: QR code, logo and design.

    Returns:
        Width and height in points: the widest line + 12, lines * 1.2 * size + 12;
        more with a QR code or a logo. Of a card, as its own sizes have it.

    Source: decisions "natural size of the stamp".
    """
    parts = arrange(lines, font_name, style, size, details)
    return parts.width, parts.height


def arrange(
    lines: Sequence[str],
    font_name: FontName,
    style: FontStyle,
    size: float,
    details: StampDetails,
) -> Parts:
    """Put logo, text and QR code beside one another.

    Args:
        lines: from `stamp_text`.
        font_name: the logical font; of no account to a card, as style and size.
        style: its style.
        size: font size in points.
        details: QR code, logo and design.
    """
    if details.is_classic:
        return arrange_lines(lines, font_name, style, size, details)
    return arrange_card(lines, details)


def arrange_within(
    lines: Sequence[str],
    params: SignParameters,
    details: StampDetails,
    room: tuple[float, float],
) -> tuple[Parts, tuple[str, ...]]:
    """Arrange a stamp for a place of a given size.

    Args:
        lines: from `stamp_text`.
        params: the signing command's fields.
        details: QR code, logo and design.
        room: width and height that there are, in points.

    Returns:
        The parts at `zoomPercent`, not scaled down to the room; of a card as many as
        are legible there. And the lines that they show.
    """
    font = params.font_name, params.font_style, params.font_size
    for shown, kept in _fewer(tuple(lines), details):
        parts = arrange(shown, *font, kept).scaled(params.zoom_percent / 100)
        if min(room[0] / parts.width, room[1] / parts.height) >= _SMALL:
            break
    return parts, shown


def _fewer(
    lines: tuple[str, ...], details: StampDetails
) -> Iterator[tuple[tuple[str, ...], StampDetails]]:
    """All that a stamp shows; then, of a card, less of it step by step."""
    yield lines, details
    if details.is_classic:
        return
    if details.logo is not None:
        yield lines, replace(details, logo=None)
    if details.qr is not None:
        # Without the page and the code in letters.
        yield lines[:-2], replace(details, logo=None, qr=None)
