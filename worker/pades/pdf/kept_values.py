"""Values that are written again as they were read.

pyHanko writes `0.0` as `0`, a very small number with an exponent, which is no number in
PDF, and a string of bytes that look like UTF-16 in another encoding. As an entry of a
page's own resources, such a string may be the colours of a picture. A page that is
written again has to say what it said.

Source: ISO 32000-2, 7.3.3, 7.3.4 and 7.9.2.
"""

import io
from typing import Any

from pyhanko.pdf_utils.generic import (
    ByteStringObject,
    FloatObject,
    TextStringEncoding,
    TextStringObject,
)


def keep_values() -> None:
    """Have pyHanko write numbers by their digits, and strings by their bytes."""
    FloatObject.__repr__ = _digits  # type: ignore[method-assign]
    # mypy takes the function for an unbound one.
    TextStringObject.write_to_stream = _write_text  # type: ignore[method-assign, assignment]


def _digits(number: FloatObject) -> str:
    return format(number, "f")


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
