"""The card: a stamp in sans serif, with an order of sizes; pure arithmetic.

From the left: the logo; who signs, under which number, when and what for, and below it
the page and the code that confirm it; the QR code. What is smallest is 7.5 pt, so that
it is read on a screen at 60 %, and printed.

Source: docs/stamp.md "Two designs".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from appliance.domain.appearance.details import Logo, StampDetails, qr_modules
from appliance.domain.appearance.font_metrics import FONTS
from appliance.domain.appearance.geometry import (
    LINE_HEIGHT,
    MODULE_PT,
    QUIET_MODULES,
    LogoFigure,
    Parts,
    QrFigure,
    TextRun,
)
from appliance.domain.appearance.text import wrap
from appliance.domain.vocab import FontName, FontStyle

_PADDING_PT: Final = 8.0
"""Between edge and content; less beside the QR code, whose quiet zone is white."""
_GAP_PT: Final = 10.0
"""Between the logo and the words."""
_INSET_PT: Final = 2.0
"""Between the white of the QR code and the frame, which it would cover."""
_SPACE_PT: Final = 4.0
"""Above the lines of the code."""
_WIDTH_PT: Final = 200.0
"""Words go on in another line past this width."""
_LOGO_WIDTH_PT: Final = 84.0
_LOGO_HEIGHT_PT: Final = 48.0


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one kind of words is set."""

    size: float
    font: tuple[FontName, FontStyle] = (FontName.SANS_SERIF, FontStyle.PLAIN)
    is_faint: bool = False


_LABEL: Final = _Kind(7.5, is_faint=True)
_NAME: Final = _Kind(12.0, (FontName.SANS_SERIF, FontStyle.BOLD))
_BODY: Final = _Kind(9.0)
# Every character is as wide: no code makes a stamp larger than its preview.
_CODE: Final = _Kind(8.0, (FontName.MONOSPACED, FontStyle.PLAIN))


def arrange_card(lines: Sequence[str], details: StampDetails) -> Parts:
    """Arrange a card at 100 %.

    Args:
        lines: from `stamp_text`: what is done, the name, the CUIL, reason and place,
            the time, and with a QR code the page and the code.
        details: QR code and logo.
    """
    rows = [*_rows(lines, has_code=details.qr is not None)]
    text_width = max((_width(text, kind) for text, kind in rows), default=0.0)
    text_height = sum(_height(text, kind) for text, kind in rows)
    side = 0.0
    if details.qr is not None:
        modules = qr_modules(details.qr) + 2 * QUIET_MODULES
        side = modules * MODULE_PT
    logo_width, logo_height = _logo_size(details.logo)
    inner = max(text_height, logo_height)
    height = max(inner + 2 * _PADDING_PT, side + 2 * _INSET_PT)
    text_x = _PADDING_PT + (logo_width + _GAP_PT if details.logo else 0.0)
    qr_x = text_x + text_width
    return Parts(
        width=qr_x + (side + _INSET_PT if details.qr else _PADDING_PT),
        height=height,
        text_x=text_x,
        text_y=(height - text_height) / 2,
        text_pt=_LABEL.size,
        qr=None
        if details.qr is None
        else QrFigure(details.qr, qr_x, (height - side) / 2, side),
        logo=None
        if details.logo is None
        else LogoFigure(
            details.logo.sha256,
            _PADDING_PT,
            (height - logo_height) / 2,
            logo_width,
            logo_height,
        ),
        runs=tuple(_runs(rows, text_x, (height - text_height) / 2)),
    )


_Row = tuple[str, _Kind | None]
"""A line and its kind; None: space."""


def _rows(lines: Sequence[str], *, has_code: bool) -> Iterator[_Row]:
    """The lines as they are set, from the top."""
    if not lines:
        return
    label, name, *body = lines
    page, code = body[-2:] if has_code else ("", "")
    yield label, _LABEL
    yield from _broken(name, _NAME)
    for line in body[:-2] if has_code else body:
        yield from _broken(line, _BODY)
    if has_code:
        yield "", None
        yield from _broken(page, _LABEL)
        yield code, _CODE


def _broken(text: str, kind: _Kind) -> Iterator[_Row]:
    """A text in as many lines as it needs."""
    for line in wrap(text, FONTS[kind.font], _WIDTH_PT / kind.size):
        yield line, kind


def _width(text: str, kind: _Kind | None) -> float:
    return 0.0 if kind is None else FONTS[kind.font].width(text) * kind.size


def _height(_: str, kind: _Kind | None) -> float:
    return _SPACE_PT if kind is None else LINE_HEIGHT * kind.size


def _runs(rows: Sequence[_Row], x: float, top: float) -> Iterator[TextRun]:
    """Place the lines below one another."""
    for text, kind in rows:
        if kind is not None:
            yield TextRun(text, *kind.font, kind.size, x, top, kind.is_faint)
        top += _height(text, kind)


def _logo_size(logo: Logo | None) -> tuple[float, float]:
    if logo is None:
        return 0.0, 0.0
    scale = min(_LOGO_WIDTH_PT / logo.width_px, _LOGO_HEIGHT_PT / logo.height_px)
    return logo.width_px * scale, logo.height_px * scale
