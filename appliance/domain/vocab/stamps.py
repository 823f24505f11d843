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


class CuilDisplay(StrEnum):
    """How much of the CUIL a stamp shows: `cuil` of the signing command."""

    WHOLE = "COMPLETO"
    MASKED = "ENMASCARADO"
