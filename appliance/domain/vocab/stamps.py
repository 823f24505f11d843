"""How a stamp looks, in the words of the signing command."""

from enum import StrEnum


class FontName(StrEnum):
    """`fontName`: the logical names, each a Liberation family."""

    SERIF = "Serif"
    SANS_SERIF = "SansSerif"
    MONOSPACED = "Monospaced"


class FontStyle(StrEnum):
    """`fontStyle`."""

    PLAIN = "PLAIN"
    BOLD = "BOLD"
    ITALIC = "ITALIC"
    BOLD_ITALIC = "BOLD_ITALIC"


class StampDesign(StrEnum):
    """How a stamp is arranged: `stamp.design` of the settings."""

    CLASSIC = "classic"
    """Lines of one font and size in a box, as the font fields of the command say."""
    CARD = "card"
    """Sans serif in several sizes, with the code in letters beside its QR code."""


class CuilDisplay(StrEnum):
    """How much of the CUIL a stamp shows: `cuil` of the signing command."""

    WHOLE = "COMPLETO"
    MASKED = "ENMASCARADO"
