"""Decoding of cross-reference streams and object streams.

pyHanko decodes only what it finds itself; an object that another reader may find has to
be decoded from its bytes.

Source: ISO 32000-2, 7.4.4 and 7.6.2.
"""

import re
import zlib
from collections.abc import Callable
from typing import Final

from pyhanko.pdf_utils.filters import get_generic_decoder

from worker.pades.pdf.predictors import undo_png
from worker.sandbox.structure.ambiguity import Steps, UsedUpError
from worker.sandbox.structure.tokens import (
    END,
    TokenReader,
    array_at,
    integer_at,
    name_at,
    reference_at,
)

DECODED_MAX: Final = 32 * 1024 * 1024
_BYTES_A_STEP: Final = 32
_FILTERS_MAX: Final = 4
_PNG: Final = 10
_PARAMETERS: Final = {
    b"Predictor": 1,
    b"Columns": 1,
    b"Colors": 1,
    b"BitsPerComponent": 8,
}
"""Parameters of Flate and their defaults. Source: ISO 32000-2, table 8."""
_ONE_BYTE: Final = [1, 8]
_NULL: Final = re.compile(rb"null" + END)
_FLATE: Final = {b"FlateDecode", b"Fl"}
_TEXT: Final = {
    b"ASCIIHexDecode": "/ASCIIHexDecode",
    b"AHx": "/ASCIIHexDecode",
    b"ASCII85Decode": "/ASCII85Decode",
    b"A85": "/ASCII85Decode",
}

Decrypt = Callable[[bytes], bytes]


class UnreadableError(Exception):
    """The stream cannot be decoded here."""


class AmbiguousError(Exception):
    """Readers decode the stream in different ways; the text follows "parameters"."""


def decoded(
    data: bytes,
    entries: dict[bytes, int],
    raw: bytes,
    steps: Steps,
    decrypt: Decrypt | None = None,
) -> bytes:
    """Decode a stream.

    Args:
        data: bytes that the entries' offsets refer to.
        entries: of the stream's dictionary.
        raw: content of the stream as it is in the file.
        steps: budget of the whole file.
        decrypt: decrypts the content; None if it is not encrypted.

    Raises:
        AmbiguousError: a parameter of a filter is no direct integer.
        UnreadableError: it has a filter or parameter that is not supported here, or is
            damaged.
        UsedUpError: it unfolds to more than `DECODED_MAX`, or the budget is used up.
    """
    if decrypt is not None:
        raw = decrypt(raw)
    filters = _filters(data, entries)
    at = entries.get(b"DecodeParms")
    for number, name in enumerate(filters):
        steps.take(len(raw) // _BYTES_A_STEP)
        if name in _FLATE:
            raw = _inflated(raw)
            if at is not None:
                raw = _unpredicted(raw, data, at, number, len(filters), steps)
        elif name in _TEXT:
            raw = _plain(raw, _TEXT[name])
        else:
            raise UnreadableError
    steps.take(len(raw) // _BYTES_A_STEP)
    return raw


def _filters(data: bytes, entries: dict[bytes, int]) -> list[bytes]:
    """Return the names of a stream's filters, in their order.

    Raises:
        UnreadableError: they are no names, or too many.
    """
    if b"F" in entries or b"DP" in entries:
        # pdf.js prefers these to /Filter, MuPDF and Poppler use them without one, and
        # to qpdf /F is another file (7.3.8.2).
        raise UnreadableError
    at = entries.get(b"Filter")
    if at is None:
        return []
    if (single := name_at(data, at)) is not None:
        return [single]
    listed = array_at(data, at)
    if listed is None:
        raise UnreadableError
    names = [one.strip(b"\0\t\n\f\r ") for one in listed.split(b"/")]
    if names[0] or len(names) > _FILTERS_MAX + 1:
        raise UnreadableError
    return names[1:]


def _inflated(raw: bytes) -> bytes:
    """Inflate at most `DECODED_MAX` bytes.

    Raises:
        UnreadableError: the data is damaged, or ends too early.
        UsedUpError: there is more.
    """
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(raw, DECODED_MAX)
    except zlib.error as exc:
        raise UnreadableError from exc
    if not inflater.eof:
        # A stream that is cut off reads differently in each reader.
        raise UsedUpError if inflater.unconsumed_tail else UnreadableError
    return content


def _plain(raw: bytes, name: str) -> bytes:
    try:
        return get_generic_decoder(name).decode(raw, {})
    except Exception as exc:
        # pyHanko's decoders raise anything for damaged data.
        raise UnreadableError from exc


def _unpredicted(
    raw: bytes, data: bytes, at: int, number: int, filters: int, steps: Steps
) -> bytes:
    """Undo the predictor that the parameters name, if they name one.

    Raises:
        AmbiguousError: a parameter is no direct integer. Readers that do not follow a
            reference here, or take no real number, use the default.
        UnreadableError: it is none of PNG's, or the parameters are not supported.
    """
    parameters = _parameters(data, at, number, steps)
    predictor, columns, *pixel = parameters
    if predictor == 1:
        return raw
    if predictor < _PNG or pixel != _ONE_BYTE or filters > 1 or columns > len(raw):
        raise UnreadableError
    steps.take(len(raw) // 4)
    try:
        return undo_png(raw, columns)
    except ValueError as exc:
        raise UnreadableError from exc


def _parameters(data: bytes, at: int, number: int, steps: Steps) -> list[int]:
    """Return a filter's parameters, in the order of `_PARAMETERS`.

    Raises:
        AmbiguousError: one is no direct integer.
        UnreadableError: they are those of a later filter.
    """
    start = at
    while data[start : start + 1] in b"\0\t\n\f\r [" and start < len(data):
        if data[start : start + 1] == b"[" and number > 0:
            raise UnreadableError  # parameters of a later filter: not seen in the wild
        start += 1
    if reference_at(data, start) is not None:
        raise AmbiguousError("are a reference")
    entries = TokenReader(data, steps, compares=False).read(start).entries
    if not isinstance(entries, dict):
        if _NULL.match(data, start) is None:
            raise AmbiguousError("are no dictionary")
        return [*_PARAMETERS.values()]
    values: list[int] = []
    for key, usual in _PARAMETERS.items():
        value = integer_at(data, entries[key]) if key in entries else usual
        if value is None:
            raise AmbiguousError(f"have a /{key.decode()} that is no direct integer")
        values.append(value)
    return values
