"""Sizes that pictures state in their own headers.

Source: ITU-T T.81, annex B (JPEG); ISO/IEC 15444-1, annexes A.5.1 and I (JPEG 2000).
"""

import re
import struct
from dataclasses import dataclass
from typing import Final

_SKIPPED: Final = re.compile(rb"\xff++")
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE: Final = frozenset({0x01, *range(0xD0, 0xD8)})
_MOST_SEGMENTS: Final = 10_000
_SIZES: Final = b"\xff\x4f\xff\x51"
"""Start of a codestream, and of its first marker segment."""


@dataclass(frozen=True, slots=True)
class Header:
    """Size of a picture.

    Args:
        width: pixels.
        height: pixels.
        components: colours and, in JPEG 2000, what is said of opacity.
        may_be_opaque: whether one component may be opacity.
    """

    width: int
    height: int
    components: int
    may_be_opaque: bool = False

    def may_have(self, colours: int) -> bool:
        """Return whether a colour space of so many components fits."""
        return self.components == colours or (
            self.may_be_opaque and self.components == colours + 1
        )


def read_jpeg(data: bytes) -> Header | None:
    """Read the frame's header; None for data that do not begin as a JPEG does."""
    if not data.startswith(b"\xff\xd8"):
        return None
    at = 2
    for _ in range(_MOST_SEGMENTS):
        marker = _SKIPPED.match(data, at)
        if marker is None or marker.end() + 3 > len(data):
            return None
        at = marker.end()
        code = data[at]
        at += 1
        if code in _ALONE:
            continue
        if code in _FRAMES:
            if at + 8 > len(data):
                return None
            height, width, components = struct.unpack_from(">HHB", data, at + 3)
            return Header(width, height, components)
        (length,) = struct.unpack_from(">H", data, at)
        at += length
    return None


def read_jpx(data: bytes) -> Header | None:
    """Read the sizes of a codestream, in boxes or bare; None where there are none."""
    at = data.find(_SIZES)
    if at < 0 or at + 42 > len(data):
        return None
    right, lower, left, upper = struct.unpack_from(">IIII", data, at + 8)
    (components,) = struct.unpack_from(">H", data, at + 40)
    return Header(right - left, lower - upper, components, may_be_opaque=True)
