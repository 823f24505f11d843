"""Values that are written again as they were read.

pyHanko writes `0.0` as `0`, a very small number with an exponent, which is no number in
PDF, a string of bytes that look like UTF-16 in another encoding, and a name that is no
UTF-8 as another name. Among a page's own resources such a string may be the colours of
a picture, and such a name that of a font. A page that is written again has to say what
it said.

Source: ISO 32000-2, 7.3.3, 7.3.4, 7.3.5 and 7.9.2.
"""

import io
import re
from decimal import Decimal
from typing import Any, Final

from pyhanko.pdf_utils import generic
from pyhanko.pdf_utils.generic import (
    ByteStringObject,
    FloatObject,
    NameObject,
    TextStringEncoding,
    TextStringObject,
)

_ESCAPE: Final = re.compile(rb"#([0-9A-Fa-f]{2})")


class ByteName(NameObject):
    """A name whose bytes are no UTF-8, read as Latin-1.

    Source: ISO 32000-2, 7.3.5 (a name is a sequence of bytes).
    """

    def write_to_stream(
        self, stream: Any, handler: Any = None, container_ref: Any = None
    ) -> None:
        """Write the name by its bytes."""
        del handler, container_ref
        stream.write(b"/")
        for code in self[1:].encode("latin-1"):
            is_plain = chr(code).isascii() and chr(code).isalnum()
            stream.write(b"%c" % code if is_plain else b"#%02X" % code)


def keep_values() -> None:
    """Have pyHanko write numbers by their digits, strings and names by their bytes."""
    if generic._decode_name is not _decode:  # noqa: SLF001 (no public way to the bytes)
        generic._decode_name = _decode  # noqa: SLF001
    FloatObject.__repr__ = _digits  # type: ignore[method-assign]
    FloatObject.__new__ = _new  # type: ignore[method-assign]
    # mypy takes the function for an unbound one.
    TextStringObject.write_to_stream = _write_text  # type: ignore[method-assign, assignment]


_decode_name = generic._decode_name  # noqa: SLF001


def _decode(name_bytes: bytes) -> NameObject:
    """Read a name, and say of what kind it is."""
    name = _decode_name(name_bytes)
    if name.isascii():
        return name
    plain = _ESCAPE.sub(lambda code: bytes([int(code[1], 16)]), name_bytes)
    try:
        plain.decode("utf-8")
    except UnicodeDecodeError:
        return ByteName(name)
    return name


def _digits(number: FloatObject) -> str:
    return format(number, "f")


def _new(kind: type[FloatObject], value: object = "0") -> FloatObject:
    """Make a number; `4.` is a real number, and stays one."""
    digits = str(value)
    if digits.endswith("."):
        digits += "0"
    return Decimal.__new__(kind, digits)


_write_as_new = TextStringObject.write_to_stream


def _write_text(
    text: TextStringObject,
    stream: io.BytesIO,
    handler: Any = None,
    container_ref: Any = None,
) -> None:
    """Write a string that was read by its bytes, and any other as pyHanko does."""
    if is_new(text):
        _write_as_new(text, stream, handler, container_ref)
        return
    encoded = ByteStringObject(text.original_bytes)
    encoded.write_to_stream(stream, handler, container_ref)


def is_new(text: TextStringObject) -> bool:
    """Say whether pyHanko's own way writes the bytes that a string has to have.

    It does for one that was made here, or read in PDFDocEncoding, which it tries first.
    """
    read = text.autodetected_encoding
    return (
        read in {None, TextStringEncoding.PDF_DOC}
        or text.force_output_encoding is not None
    )
