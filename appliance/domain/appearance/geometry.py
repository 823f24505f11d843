"""The parts of a stamp and their size: logo, text and QR code beside one another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from appliance.domain.appearance.details import PLAIN, Logo, StampDetails, qr_modules
from appliance.domain.appearance.font_metrics import FONTS
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
class Parts:
    """The parts of a stamp at some scale, each from the stamp's top left."""

    width: float
    height: float
    text_x: float
    text_y: float
    qr: QrFigure | None
    logo: LogoFigure | None

    def scaled(self, by: float) -> "Parts":
        """All of it, larger or smaller."""
        qr, logo = self.qr, self.logo
        return Parts(
            self.width * by,
            self.height * by,
            self.text_x * by,
            self.text_y * by,
            qr and QrFigure(qr.content, qr.x * by, qr.y * by, qr.side * by),
            logo
            and LogoFigure(
                logo.sha256,
                logo.x * by,
                logo.y * by,
                logo.width * by,
                logo.height * by,
            ),
        )


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
        details: QR code and logo.

    Returns:
        Width and height in points: the widest line + 12, lines * 1.2 * size + 12;
        more with a QR code or a logo.

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
        qr=qr or None,
        logo=logo,
    )


def _logo(logo: Logo, most: float, inner: float) -> LogoFigure:
    """The logo at the left, as high as it may be, in the middle of the content."""
    scale = min(most / logo.height_px, LOGO_ASPECT * most / logo.width_px)
    width, height = logo.width_px * scale, logo.height_px * scale
    top = PADDING_PT + (inner - height) / 2
    return LogoFigure(logo.sha256, PADDING_PT, top, width, height)
