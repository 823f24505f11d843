"""Decoding of cross-reference streams and object streams.

pyHanko decodes no PNG filter beyond Up, and only for objects that it finds itself;
an object that another reader may find has to be decoded from its bytes.

Source: ISO 32000-2, 7.4.4 and 7.6.2.
"""

import zlib
from collections.abc import Callable
from typing import Final

from pyhanko.pdf_utils.filters import get_generic_decoder

from worker.sandbox.structure.ambiguity import Steps, UsedUpError
from worker.sandbox.structure.tokens import (
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
        UnreadableError: it is none of PNG's, or the parameters are odd.
    """
    if reference_at(data, at) is not None:
        raise UnreadableError
    start = at
    while data[start : start + 1] in b"\0\t\n\f\r [" and start < len(data):
        if data[start : start + 1] == b"[" and number > 0:
            raise UnreadableError  # parameters of a later filter: not seen in the wild
        start += 1
    parameters = TokenReader(data, steps, compares=False).read(start).entries
    if not isinstance(parameters, dict):
        return raw
    predictor = integer_at(data, parameters.get(b"Predictor")) or 1
    if predictor == 1:
        return raw
    columns = integer_at(data, parameters.get(b"Columns")) or 1
    plain = all(
        (integer_at(data, parameters.get(key)) or usual) == usual
        for key, usual in ((b"Colors", 1), (b"BitsPerComponent", 8))
    )
    if predictor < _PNG or not plain or filters > 1 or columns > len(raw):
        raise UnreadableError
    steps.take(len(raw) // 4)
    return _png(raw, columns)


def _png(raw: bytes, columns: int) -> bytes:
    """Undo PNG's filters for one byte a pixel.

    Raises:
        UnreadableError: the length is no whole number of rows, or a filter is unknown.
    """
    width = columns + 1
    if len(raw) % width:
        raise UnreadableError
    above = bytes(columns)
    out = bytearray()
    for at in range(0, len(raw), width):
        above = _row(raw[at], raw[at + 1 : at + width], above)
        out += above
    return bytes(out)


def _row(kind: int, row: bytes, above: bytes) -> bytes:
    """Undo the filter of one row (RFC 2083, 6)."""
    if kind == 0:
        return row
    if kind == 2:  # noqa: PLR2004 (Up, by far the most frequent)
        return bytes([(x + y) & 0xFF for x, y in zip(row, above, strict=True)])
    out = bytearray()
    left = corner = 0
    for value, up in zip(row, above, strict=True):
        if kind == 1:
            guess = left
        elif kind == 3:  # noqa: PLR2004 (Average)
            guess = (left + up) // 2
        elif kind == 4:  # noqa: PLR2004 (Paeth)
            guess = _paeth(left, up, corner)
        else:
            raise UnreadableError
        left, corner = (value + guess) & 0xFF, up
        out.append(left)
    return bytes(out)


def _paeth(left: int, up: int, corner: int) -> int:
    estimate = left + up - corner
    return min((left, up, corner), key=lambda one: abs(estimate - one))
