"""The look that all faces share: tokens, mark, icon.

Each face serves these bytes under its own static path, so that its policy needs
no other origin; the files are in one place, `appliance/web/static`.

    TOKENS  # style sheet: the custom properties that every style is made of
    MARK    # SVG to be put into a page: it takes the colour of the text
    ICON    # SVG for a browser's tab
"""

from pathlib import Path
from typing import Final

from markupsafe import Markup

_FOLDER: Final = Path(__file__).resolve().parent / "static"

TOKENS: Final = (_FOLDER / "tokens.css").read_bytes()
ICON: Final = (_FOLDER / "icon.svg").read_bytes()
MARK: Final = Markup(  # noqa: S704 (a file of ours, nothing in it is given)
    (_FOLDER / "mark.svg").read_text(encoding="ascii").strip()
)
"""Trusted markup: a template shows it as it is."""

FILES: Final = {"tokens.css": TOKENS, "icon.svg": ICON}
"""What pages load, by name."""
