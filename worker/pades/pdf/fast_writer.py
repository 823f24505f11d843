"""Writes PDF objects into an increment as pyHanko does, only faster.

pyHanko writes names and strings byte by byte. What it writes is written here in one
go; what it does not know the bytes of beforehand (encrypted files, placeholders)
it writes itself.
"""

import io
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    IndirectObject,
    NameObject,
    NumberObject,
    PdfObject,
    StreamObject,
    TextStringObject,
)

_CACHED_NAME: Final = 64
"""Longest name that is remembered, in characters: files choose names."""

_ESCAPED: Final = [
    bytes([one]) if bytes([one]).isalnum() or one == ord(" ") else b"\\%03o" % one
    for one in range(128)
]
"""ASCII as pyHanko writes it into a text string."""


class Tail(io.BytesIO):
    """What is appended to a file, by its places in the whole.

    Args:
        start: length of the file that it is appended to, in bytes.
    """

    def __init__(self, start: int) -> None:
        super().__init__()
        self._start = start

    def tell(self) -> int:
        """The place in the whole file."""
        return self._start + super().tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place in the whole file, by its offset from the beginning.

        Raises:
            ValueError: counted from elsewhere, or before the appended part.
        """
        if whence != io.SEEK_SET:
            msg = "only places from the beginning"
            raise ValueError(msg)
        return self._start + super().seek(offset - self._start)


def write_object(out: io.BytesIO, value: PdfObject) -> None:
    """Write one object of a file that is not encrypted.

    Args:
        out: where to.
        value: direct; what it contains is written with it.
    """
    # By the method and not by the class: a subclass that writes otherwise does.
    writer = _WRITERS.get(type(value).write_to_stream)
    if writer is None:
        value.write_to_stream(out)
    else:
        writer(out, value)


def _write_name(out: io.BytesIO, value: NameObject) -> None:
    if len(value) > _CACHED_NAME:
        value.write_to_stream(out)
    else:
        out.write(_name(value))


@lru_cache(maxsize=4096)
def _name(value: NameObject) -> bytes:
    out = io.BytesIO()
    value.write_to_stream(out)
    return out.getvalue()


def _write_number(out: io.BytesIO, value: NumberObject) -> None:
    out.write(b"%d" % value)


def _write_real(out: io.BytesIO, value: FloatObject) -> None:
    # By its digits: numbers that are equal may be written differently.
    out.write(_real(str(value)))


@lru_cache(maxsize=4096)
def _real(digits: str) -> bytes:
    return repr(FloatObject(digits)).encode("ascii")


def _write_reference(out: io.BytesIO, value: IndirectObject) -> None:
    reference = value.reference
    out.write(b"%d %d R" % (reference.idnum, reference.generation))


def _write_text(out: io.BytesIO, value: TextStringObject) -> None:
    plain = value.isascii() and value.isprintable()
    if plain and value.force_output_encoding is None:
        out.write(b"(%s)" % b"".join([_ESCAPED[one] for one in value.encode("ascii")]))
    else:
        value.write_to_stream(out)


def _write_array(out: io.BytesIO, value: ArrayObject) -> None:
    out.write(b"[")
    for item in value:
        out.write(b" ")
        write_object(out, item)
    out.write(b" ]")


def _write_dictionary(out: io.BytesIO, value: DictionaryObject) -> None:
    _write_entries(out, value)


def _write_stream(out: io.BytesIO, value: StreamObject) -> None:
    data = value.encoded_data
    length = {NameObject("/Length"): NumberObject(len(data))}
    _write_entries(out, {**value, **length})
    out.write(b"\nstream\n")
    out.write(data)
    out.write(b"\nendstream")


def _write_entries(out: io.BytesIO, entries: Mapping[NameObject, PdfObject]) -> None:
    out.write(b"<<\n")
    for key, value in entries.items():
        _write_name(out, key)
        out.write(b" ")
        write_object(out, value)
        out.write(b"\n")
    out.write(b">>")


_WRITERS: Final[Mapping[object, Callable[[io.BytesIO, Any], None]]] = {
    NameObject.write_to_stream: _write_name,
    NumberObject.write_to_stream: _write_number,
    FloatObject.write_to_stream: _write_real,
    TextStringObject.write_to_stream: _write_text,
    IndirectObject.write_to_stream: _write_reference,
    ArrayObject.write_to_stream: _write_array,
    DictionaryObject.write_to_stream: _write_dictionary,
    StreamObject.write_to_stream: _write_stream,
}
