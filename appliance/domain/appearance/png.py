"""Pictures of the record as PNG files, for pages.

The record keeps pixels as a PDF wants them; a browser wants a filter byte before each
row. The pixels were drawn by the sandbox and are bounded, so nothing is decoded here
but our own zlib stream.

Source: W3C PNG (third edition), 5 and 9.
"""

import struct
import zlib
from typing import Final

from appliance.domain.appearance.details import LogoPicture

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_RGB, _BITS = 2, 8


def logo_png(picture: LogoPicture) -> bytes:
    """A logo as a PNG file, RGB, its size as stored."""
    width, height = picture.logo.width_px, picture.logo.height_px
    pixels = zlib.decompressobj().decompress(picture.deflated, width * height * 3)
    stride = width * 3
    rows = b"".join(
        b"\0" + pixels[start : start + stride]
        for start in range(0, height * stride, stride)
    )
    header = struct.pack(">IIBBBBB", width, height, _BITS, _RGB, 0, 0, 0)
    return (
        _SIGNATURE
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(rows))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    length = struct.pack(">I", len(content))
    return length + kind + content + struct.pack(">I", zlib.crc32(kind + content))
