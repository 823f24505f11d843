"""Draws the visible stamp: its fonts, its drawing, and the page it hangs on.

Shared by the signing engine and the sandbox's preview, so that a preview shows
the very drawing that a signature would carry. Size and place were settled by
`appliance.domain.stamp`.
"""

from worker.stamp.drawing import draw_on_page, write_stamp
from worker.stamp.fields import SignatureField, signature_fields, widget_rect
from worker.stamp.fonts import (
    EmbeddedFont,
    FontsUnusableError,
    StampFonts,
    load_fonts,
)
from worker.stamp.revision import (
    add_annotation,
    demand_extensible,
    find_page,
    open_revision,
)
from worker.stamp.tagging import tag_widget

__all__ = [
    "EmbeddedFont",
    "FontsUnusableError",
    "SignatureField",
    "StampFonts",
    "add_annotation",
    "demand_extensible",
    "draw_on_page",
    "find_page",
    "load_fonts",
    "open_revision",
    "signature_fields",
    "tag_widget",
    "widget_rect",
    "write_stamp",
]
