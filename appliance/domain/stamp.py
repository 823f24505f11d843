"""Size and place of the visible stamp: one pure function for all who need it."""

from dataclasses import dataclass

from appliance.domain.vocab import FontName, FontStyle


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
