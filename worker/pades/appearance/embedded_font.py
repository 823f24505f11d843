"""A font of the stamp, ready to be embedded, and what keeps it from being one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from appliance.domain.appearance.font_metrics import FontMetrics
from appliance.domain.errors import ApplianceError, ErrorCode


class FontsUnusableError(ApplianceError):
    """The folder of fonts lacks a font, or has another version of it."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(ErrorCode.INTERNAL)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        """The file and what is wrong with it, for operators."""
        return (
            f"{self.path}: {self.reason}; the Liberation 2 fonts "
            "(Debian: fonts-liberation2) must stand in `fonts_dir`"
        )


@dataclass(frozen=True, slots=True)
class EmbeddedFont:
    """One font, cut down to what a stamp can show, ready to be embedded."""

    name: str
    """PostScript name with the subset's tag."""
    metrics: FontMetrics
    glyphs: Mapping[str, int]
    """Glyph number of each character."""
    program: bytes
    """The TrueType file, deflated."""
    program_length: int
    """Its length when inflated."""
    to_unicode: bytes
    """The CMap from glyph numbers to characters, deflated."""
    bbox: tuple[int, int, int, int]
    """In 1/1000 em."""
    italic_angle: float
    ascent: int
    """In 1/1000 em, as all heights."""
    descent: int
    """Negative: below the baseline."""
    cap_height: int
    flags: int
    stem_v: int
    cid_set: bytes
    """A bit for each glyph of the program: all are set (ISO 32000-2, 9.8.3.2)."""
