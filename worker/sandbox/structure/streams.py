"""Decoding of cross-reference streams and object streams.

pyHanko decodes only what it finds itself; an object that another reader may find has to
be decoded from its bytes.

Source: ISO 32000-2, 7.4.4 and 7.6.2.
"""

import re
import zlib
from collections.abc import Callable
from typing import Final

from worker.pades.pdf.predictors import undo_png
from worker.sandbox.structure.ambiguity import Steps, UsedUpError
from worker.sandbox.structure.tokens import (
    END,
    SPACE,
    TokenReader,
    array_at,
    integer_at,
    name_at,
    reference_at,
)

DECODED_MAX: Final = 32 * 1024 * 1024
_BYTES_A_STEP: Final = 32
_PNG: Final = 10
_PARAMETERS: Final = {
    b"Predictor": 1,
    b"Columns": 1,
    b"Colors": 1,
    b"BitsPerComponent": 8,
}
"""Parameters of Flate and their defaults. Source: ISO 32000-2, table 8."""
_ONE_BYTE: Final = [1, 8]
_FLATE: Final = {b"FlateDecode", b"Fl"}
_ARRAY: Final = re.compile(SPACE + rb"\[")
_END_ARRAY: Final = re.compile(SPACE + rb"\]")
_NULL: Final = re.compile(SPACE + rb"null" + END)
_NAMES: Final = re.compile(
    SPACE + rb"(?:/([^\0\t\n\f\r ()<>\[\]{}/%]++)" + SPACE + rb")?"
)

Decrypt = Callable[[bytes], bytes]


class UnreadableError(Exception):
    """The stream cannot be decoded here."""


class AmbiguousError(Exception):
    """Readers decode the stream in different ways; the text says what it has."""


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
        AmbiguousError: it has another filter than Flate, which readers decode in
            different ways, or parameters that not all of them use.
        UnreadableError: it has a parameter that is not supported here, or is damaged.
        UsedUpError: it unfolds to more than `DECODED_MAX`, or the budget is used up.
    """
    if decrypt is not None:
        raw = decrypt(raw)
    is_listed, is_flate = _filter(data, entries)
    if is_flate:
        steps.take(len(raw) // _BYTES_A_STEP)
        raw = _inflated(raw)
        at = entries.get(b"DecodeParms")
        if at is not None:
            parameters = _parameters(data, at, steps, is_listed=is_listed)
            raw = _unpredicted(raw, parameters, steps)
    steps.take(len(raw) // _BYTES_A_STEP)
    return raw


def _filter(data: bytes, entries: dict[bytes, int]) -> tuple[bool, bool]:
    """Return whether a stream's filter is in an array, and whether there is one.

    Raises:
        AmbiguousError: there is another one than Flate, or more than one.
    """
    if b"F" in entries or b"DP" in entries:
        # pdf.js prefers these to /Filter, MuPDF and Poppler use them without one, and
        # to qpdf /F is another file (7.3.8.2).
        raise AmbiguousError("the key /F or /DP")
    at = entries.get(b"Filter")
    if at is None:
        return False, False
    single, listed = name_at(data, at), array_at(data, at)
    if single is None:
        found = None if listed is None else _NAMES.fullmatch(listed)
        if found is None:
            raise AmbiguousError("another filter than Flate")
        if found[1] is None:
            return True, False
        single = found[1]
    if single not in _FLATE:
        raise AmbiguousError("another filter than Flate")
    return listed is not None, True


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


def _unpredicted(raw: bytes, parameters: list[int], steps: Steps) -> bytes:
    """Undo the predictor that the parameters name, if they name one.

    Raises:
        UnreadableError: it is none of PNG's, or the parameters are not supported.
    """
    predictor, columns, *pixel = parameters
    if predictor == 1:
        return raw
    if predictor < _PNG or pixel != _ONE_BYTE or columns > len(raw):
        raise UnreadableError
    steps.take(len(raw) // 4)
    try:
        return undo_png(raw, columns)
    except ValueError as exc:
        raise UnreadableError from exc


def _parameters(data: bytes, at: int, steps: Steps, *, is_listed: bool) -> list[int]:
    """Return the parameters of Flate, in the order of `_PARAMETERS`.

    Args:
        data: bytes that hold them.
        at: offset of them.
        steps: budget of the whole file.
        is_listed: whether the filter is in an array.

    Raises:
        AmbiguousError: they are in an array and the filter is not, or the other way
            round; PDFium and poppler do not use those. One is no direct integer;
            readers that do not follow a reference, or take no real number, use the
            default.
    """
    start = at
    if (bracket := _ARRAY.match(data, at)) is not None:
        start = bracket.end()
    end = start
    values = [*_PARAMETERS.values()]
    if (null := _NULL.match(data, start)) is not None:
        end = null.end()
    elif reference_at(data, start) is not None:
        raise AmbiguousError("filter parameters that are a reference")
    else:
        tokens = TokenReader(data, steps, compares=False).read(start)
        if not isinstance(tokens.entries, dict):
            raise AmbiguousError("filter parameters that are no dictionary")
        end = tokens.end
        for index, key in enumerate(_PARAMETERS):
            if key not in tokens.entries:
                continue
            value = integer_at(data, tokens.entries[key])
            if value is None:
                words = f"filter parameters with a /{key.decode()}"
                raise AmbiguousError(f"{words} that is no direct integer")
            values[index] = value
        is_usual = values == [*_PARAMETERS.values()]
        if is_listed is (bracket is None) and not is_usual:
            raise AmbiguousError("filter parameters of another shape than its filter")
    if bracket is not None and _END_ARRAY.match(data, end) is None:
        raise AmbiguousError("filter parameters of several filters")
    return values
