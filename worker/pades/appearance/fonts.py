"""The fonts of a stamp, cut down to Latin once and kept ready to be embedded.

Cutting a font down costs tens of milliseconds; embedding a prepared one costs
next to nothing.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final

from appliance.domain.appearance.font_metrics import FONTS, FontMetrics
from appliance.domain.vocab import FontName, FontStyle
from appliance.system.forked_work import ForkedWork
from worker.pades.appearance.embedded_font import EmbeddedFont, FontsUnusableError

StampFonts = Mapping[tuple[FontName, FontStyle], EmbeddedFont]
"""Every font of a stamp."""


_begun: Final[dict[Path, ForkedWork]] = {}
_loaded: Final[dict[Path, StampFonts]] = {}


def begin_cutting(fonts_dir: Path) -> None:
    """Have a child begin what `load_fonts` will wait for, if it is to wait.

    Args:
        fonts_dir: as of `load_fonts`.
    """
    # Nobody would wait for the child, which could not hand over what it has.
    if fonts_dir not in _loaded and fonts_dir not in _begun:
        _begun[fonts_dir] = ForkedWork.begun(partial(_cut, fonts_dir))


def load_fonts(fonts_dir: Path) -> StampFonts:
    """Cut every font down to Latin, once a process (a quarter of a second in all).

    A child does it, which takes fontTools with it, and nine megabytes. Call it
    where a process may still fork: before its threads.

    Args:
        fonts_dir: folder of the Liberation 2 TrueType files.

    Raises:
        FontsUnusableError: a file is missing, unreadable, or of another version.
    """
    if fonts_dir not in _loaded:
        begin_cutting(fonts_dir)
        _loaded[fonts_dir] = _finish_cutting(fonts_dir)
    return _loaded[fonts_dir]


def _finish_cutting(fonts_dir: Path) -> StampFonts:
    """Wait for the child.

    Raises:
        FontsUnusableError: as of `load_fonts`.
    """
    told = json.loads(_begun.pop(fonts_dir).result())
    if "reason" in told:
        raise FontsUnusableError(Path(told["path"]), told["reason"])
    return {
        key: _unpacked(font, FONTS[key])
        for key, font in zip(FONTS, told["fonts"], strict=True)
    }


def _cut(fonts_dir: Path) -> bytes:
    """All fonts in their order, or what is wrong with one, as JSON."""
    from worker.pades.appearance.font_cutting import (  # noqa: PLC0415 (heavy)
        cut_font,
    )

    told: dict[str, object]
    try:
        fonts = [cut_font(fonts_dir, key, FONTS[key]) for key in FONTS]
    except FontsUnusableError as exc:
        told = {"path": str(exc.path), "reason": exc.reason}
    else:
        told = {"fonts": [_packed(font) for font in fonts]}
    return json.dumps(told).encode()


def _packed(font: EmbeddedFont) -> dict[str, object]:
    """A font as JSON has it, without its metrics."""
    packed: dict[str, object] = {}
    for field in fields(font):
        value = getattr(font, field.name)
        if field.type is bytes:
            packed[field.name] = base64.b64encode(value).decode("ascii")
        elif field.name != "metrics":
            packed[field.name] = value
    return packed


def _unpacked(packed: dict[str, Any], metrics: FontMetrics) -> EmbeddedFont:
    """The font that was packed."""
    names = [field.name for field in fields(EmbeddedFont) if field.type is bytes]
    binary = {name: base64.b64decode(packed[name]) for name in names}
    bbox = tuple(packed["bbox"])
    return EmbeddedFont(**{**packed, **binary, "bbox": bbox, "metrics": metrics})
