"""What a stamp shows besides the fields of its command.

Settled when the signer consents and kept with the activation's item, so that every
attempt draws the same, whatever a setting or a logo has become meanwhile.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Self

from appliance.domain.vocab import StampDesign

CODE_CHARACTERS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: nothing in it looks like something else."""
CODE_LENGTH: Final = 26
"""Of a verification code: 130 random bits."""
SAMPLE_CODE: Final = "0" * CODE_LENGTH
"""Stands in previews, where there is no signature yet; leads to none."""
CONTENT_AT_MOST: Final = 213
"""Bytes that a QR code here can hold (version 10)."""

_GROUP: Final = 4
"""Characters of a code between two hyphens: people copy it by groups."""

LOGO_WIDTH_PX: Final = 400
LOGO_HEIGHT_PX: Final = 200
"""A logo is kept within these: 240 KB of pixels at the most, in every signed PDF."""
LOGO_FILE_BYTES: Final = 1_000_000
"""Of the file that it is made from."""

# Bytes that versions 1, 2 … hold at error level M: ISO/IEC 18004, table 7.
_CAPACITY: Final = (14, 26, 42, 62, 84, 106, 122, 152, 180, 213)


def qr_version(content: str) -> int:
    """The smallest QR code at error level M that holds a text, 1 to 10.

    Args:
        content: ASCII, up to `CONTENT_AT_MOST` characters.

    Raises:
        ValueError: it is longer.
    """
    for version, capacity in enumerate(_CAPACITY, 1):
        if len(content) <= capacity:
            return version
    raise ValueError(content)


def qr_modules(content: str) -> int:
    """Modules along a side of a text's QR code, without its quiet zone."""
    return 17 + 4 * qr_version(content)


@dataclass(frozen=True, slots=True)
class Logo:
    """A picture that stamps may show; its pixels stand in the record by `sha256`."""

    sha256: str
    """Of the pixels as stored, hex."""
    width_px: int
    height_px: int


@dataclass(frozen=True, slots=True)
class LogoPicture:
    """A logo with its pixels, ready to be put into a PDF."""

    logo: Logo
    deflated: bytes = field(repr=False)
    """Rows from the top, RGB, a byte each, without padding; in zlib's format."""


@dataclass(frozen=True, slots=True)
class StampDetails:
    """What a stamp shows besides the fields of its command."""

    is_cuil_masked: bool = False
    qr: str | None = None
    """Address in the QR code, ASCII; None: there is none."""
    logo: Logo | None = None
    design: StampDesign = StampDesign.CLASSIC

    def to_json(self) -> dict[str, Any]:
        """For the record; only what differs from a plain stamp."""
        logo = self.logo
        return {
            **({"maskedCuil": True} if self.is_cuil_masked else {}),
            **({} if self.qr is None else {"qr": self.qr}),
            **({} if logo is None else {"logo": _logo_to_json(logo)}),
            **({} if self.is_classic else {"design": self.design.value}),
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """Read back what `to_json` wrote; for the record, not for input."""
        logo = fields.get("logo")
        return cls(
            is_cuil_masked=fields.get("maskedCuil", False),
            qr=fields.get("qr"),
            logo=logo and Logo(logo["sha256"], logo["width"], logo["height"]),
            design=StampDesign(fields.get("design", StampDesign.CLASSIC)),
        )

    @property
    def is_classic(self) -> bool:
        """True if the font fields of the command rule the look."""
        return self.design is StampDesign.CLASSIC

    @property
    def address(self) -> str:
        """The page where the code is typed in, without scheme; empty without a code."""
        return (self.qr or "").rpartition("/")[0].partition("://")[2]

    @property
    def code(self) -> str:
        """The verification code in groups; empty without one."""
        code = (self.qr or "").rpartition("/")[2]
        groups = (code[at : at + _GROUP] for at in range(0, len(code), _GROUP))
        return "-".join(groups)


def _logo_to_json(logo: Logo) -> dict[str, Any]:
    return {"sha256": logo.sha256, "width": logo.width_px, "height": logo.height_px}


PLAIN: Final = StampDetails()
"""A stamp of words alone, the CUIL whole."""
