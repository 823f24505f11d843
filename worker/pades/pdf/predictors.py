"""PNG predictors of Flate streams.

pyHanko 0.38 decodes rows of PNG's type Up alone: a row without a filter becomes zeros,
and a row of type Sub adds the bytes as they are stored. A cross-reference stream or an
object stream with such rows is other objects to pyHanko than to every other reader.

Source: ISO 32000-2, 7.4.4.4; RFC 2083, 6.
"""

from collections.abc import Mapping
from typing import Any, Final

from pyhanko.pdf_utils.filters import DECODERS, Decoder, FlateDecode

_PNG: Final = range(10, 16)
_NONE: Final = 0
_SUB: Final = 1
_UP: Final = 2
_AVERAGE: Final = 3
_PAETH: Final = 4
_USUAL: Final[Mapping[str, int]] = {"/Colors": 1, "/BitsPerComponent": 8}
"""Parameters that make a pixel one byte."""


def undo_png(raw: bytes, columns: int) -> bytes:
    """Undo PNG's filters for one byte a pixel.

    Args:
        raw: rows of `columns` bytes, each after a byte with the type of its filter.
        columns: at least 1.

    Raises:
        ValueError: the length is no whole number of rows, or a filter is unknown.
    """
    width = columns + 1
    if columns < 1 or len(raw) % width:
        raise ValueError(columns)
    above = bytes(columns)
    out = bytearray()
    for at in range(0, len(raw), width):
        above = _row(raw[at], raw[at + 1 : at + width], above)
        out += above
    return bytes(out)


def _row(kind: int, row: bytes, above: bytes) -> bytes:
    """Undo the filter of one row."""
    if kind == _NONE:
        return row
    if kind == _UP:  # by far the most frequent
        return bytes([(x + y) & 0xFF for x, y in zip(row, above, strict=True)])
    out = bytearray()
    left = corner = 0
    for value, up in zip(row, above, strict=True):
        if kind == _SUB:
            guess = left
        elif kind == _AVERAGE:
            guess = (left + up) // 2
        elif kind == _PAETH:
            guess = _paeth(left, up, corner)
        else:
            raise ValueError(kind)
        left, corner = (value + guess) & 0xFF, up
        out.append(left)
    return bytes(out)


def _paeth(left: int, up: int, corner: int) -> int:
    estimate = left + up - corner
    return min((left, up, corner), key=lambda one: abs(estimate - one))


class _Flate(Decoder):
    """pyHanko's decoder, with all of PNG's filters."""

    def decode(self, data: bytes, decode_params: Any) -> bytes:
        """Decode a stream of any size."""
        return self.decode_bounded(data, decode_params, None)

    def decode_bounded(
        self, data: bytes, decode_params: Any, max_output_size: int | None
    ) -> bytes:
        """Decode a stream.

        Args:
            data: as it is stored.
            decode_params: a dictionary; anything else is no parameters.
            max_output_size: most bytes; None: without limit.

        Raises:
            NotImplementedError: a pixel is not one byte, or the predictor is unknown.
        """
        inflated: bytes = FlateDecode().decode_bounded(data, None, max_output_size)
        parameters = decode_params if isinstance(decode_params, dict) else {}
        predictor = parameters.get("/Predictor", 1)
        if predictor == 1:
            return inflated
        if predictor not in _PNG or any(
            parameters.get(key, usual) != usual for key, usual in _USUAL.items()
        ):
            raise NotImplementedError(predictor)
        return undo_png(inflated, int(parameters.get("/Columns", 1)))

    def encode(self, data: bytes, decode_params: Any) -> bytes:
        """Encode a stream without a predictor, as pyHanko does."""
        encoded: bytes = FlateDecode().encode(data, decode_params)
        return encoded


def use_all_predictors() -> None:
    """Let pyHanko decode Flate streams by this module, in the whole process."""
    DECODERS["/FlateDecode"] = DECODERS["/Fl"] = _Flate
