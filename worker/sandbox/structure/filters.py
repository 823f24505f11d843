"""Form of the filters of a stream, and decoding of what was made by them.

Programs differ in what they make of a filter that is written in another form than
table 5 says, of a filter for pictures on what is no picture, and of data with a fault:
some show the part before it, others nothing.

Source: ISO 32000-2, 7.3.8.2, 7.4 and 8.9.7.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pikepdf

from worker.pades.pdf.predictors import undo_png

FLATE: Final = "/FlateDecode"
_HEXADECIMAL: Final = "/ASCIIHexDecode"
_BASE_85: Final = "/ASCII85Decode"
_BY_QPDF: Final[Mapping[str, int]] = {
    _BASE_85: 268_435_456,
    "/RunLengthDecode": 4_194_304,
    "/LZWDecode": 131_072,
}
"""Filters that qpdf decodes, and the most bytes of each: they may unfold to 4, 64 and
some 2,000 times as many."""
_OF_DATA: Final = frozenset({FLATE, _HEXADECIMAL, *_BY_QPDF})
_OF_PICTURES: Final = frozenset(
    {"/DCTDecode", "/JPXDecode", "/CCITTFaxDecode", "/JBIG2Decode"}
)
CRYPT: Final = "/Crypt"
KEYS_OF_INLINE_PICTURES: Final = (b"F", b"DP")
_PREDICTED: Final[Mapping[str, frozenset[int]]] = {
    "/Predictor": frozenset({1, 2, *range(10, 16)}),
    "/Colors": frozenset(range(1, 33)),
    "/BitsPerComponent": frozenset({1, 2, 4, 8, 16}),
    "/Columns": frozenset(),
    "/EarlyChange": frozenset({0, 1}),
}
"""Parameters of Flate and LZW, and the integers that each may be; any where none is
said. Source: table 8."""
_KINDS: Final[Mapping[str, Mapping[str, type]]] = {
    "/CCITTFaxDecode": {
        "/K": int,
        "/Columns": int,
        "/Rows": int,
        "/DamagedRowsBeforeError": int,
        "/EndOfLine": bool,
        "/EncodedByteAlign": bool,
        "/EndOfBlock": bool,
        "/BlackIs1": bool,
    },
    "/DCTDecode": {"/ColorTransform": int},
}
"""Types of the parameters of others. Source: tables 11 and 13."""
_INTEGER_MOST: Final = 2**31
LOSSLESS: Final = pikepdf.StreamDecodeLevel.specialized
"""What qpdf decodes without any loss."""
_PNG: Final = 10
_ROWS_BYTES: Final = 65_536
"""Most bytes of content of which the rows are added up."""
_HEX_DATA: Final = re.compile(rb"[0-9A-Fa-f\0\t\n\f\r ]*+(?:>[\0-\xff]*+)?+")
_BASE_85_DATA: Final = re.compile(
    rb"(?:[\0\t\n\f\r ]*+(?:z|[!-u](?:[\0\t\n\f\r ]*+[!-u]){4}))*+"
    rb"(?:[\0\t\n\f\r ]*+[!-u]){0,4}+[\0\t\n\f\r ]*+(?:~>[\0-\xff]*+)?+"
)
_BLANKS: Final = b"\0\t\n\f\r "
_DEFLATE: Final = 8
_DICTIONARY: Final = 0x20
_HEADER: Final = 2
_ROW_KINDS: Final = bytes(range(5))

Resolve = Callable[[Any], Any]
"""Gives the value that a value or a reference stands for."""


class OddStreamError(Exception):
    """Programs may read the stream differently; the text says what it has."""


class TooLongError(Exception):
    """The data unfold to more than may be decoded."""


class Filter(NamedTuple):
    """One filter and its parameters."""

    name: str
    parameters: Mapping[str, Any]


def filters_of(
    others: Iterable[Any],
    filters: Any,
    parameters: Any,
    resolve: Resolve,
    *,
    is_picture: bool,
    is_encrypted: bool,
) -> Sequence[Filter]:
    """Return the filters of a stream in the order in which they are undone.

    Args:
        others: values of `KEYS_OF_INLINE_PICTURES`, where it has them.
        filters: value of `/Filter`.
        parameters: value of `/DecodeParms`.
        resolve: follows references.
        is_picture: it is an image.
        is_encrypted: the file is.

    Raises:
        OddStreamError: they are of another form than table 5 says.
    """
    if any(resolve(each) is not None for each in others):
        # Filters to some programs, another file to others, nothing to the rest.
        raise OddStreamError("the key /F or /DP")
    filters, parameters = resolve(filters), resolve(parameters)
    names, given = filters, parameters
    if isinstance(filters, list):
        names = [resolve(each) for each in filters]
        if given is None:
            given = [None] * len(names)
    elif filters is None:
        names, given = [], []
    else:
        names, given = [filters], [parameters]
    if not isinstance(given, list) or len(given) != len(names):
        raise OddStreamError("filter parameters of another shape than its filters")
    found = [
        _filter(name, resolve(each), resolve)
        for name, each in zip(names, given, strict=True)
    ]
    _demand_order(found, is_picture=is_picture, is_encrypted=is_encrypted)
    return found


def _filter(name: Any, parameters: Any, resolve: Resolve) -> Filter:
    """Return one filter.

    Raises:
        OddStreamError: its parameters are none.
    """
    if parameters is None:
        parameters = {}
    if type(name) is not str or not isinstance(parameters, dict):
        raise OddStreamError("a filter that is no name, or parameters that are none")
    plain = {key: resolve(value) for key, value in parameters.items()}
    kinds = _KINDS.get(name, {})
    for key, value in plain.items():
        if key in _PREDICTED and name in {FLATE, "/LZWDecode"}:
            allowed = _PREDICTED[key]
            if type(value) is not int or (
                value not in allowed if allowed else not 0 < value < _INTEGER_MOST
            ):
                raise OddStreamError(f"filter parameters with an odd {key}")
        elif key in kinds and type(value) is not kinds[key]:
            raise OddStreamError(f"filter parameters with an odd {key}")
    return Filter(name, plain)


def _demand_order(
    found: Sequence[Filter], *, is_picture: bool, is_encrypted: bool
) -> None:
    """Demand known filters, that of a picture last and in a picture alone.

    Raises:
        OddStreamError: there are others.
    """
    for index, each in enumerate(found):
        if each.name in _OF_DATA:
            continue
        if each.name in _OF_PICTURES and is_picture and index == len(found) - 1:
            continue
        if each.name == CRYPT and is_encrypted and index == 0:
            continue
        raise OddStreamError("a filter that not all programs know there")


class Decoder:
    """Decodes data by one filter after another."""

    def __init__(self) -> None:
        self._scratch: pikepdf.Pdf | None = None

    def decoded(
        self, raw: bytes, filters: Sequence[Filter], most: int, *, is_content: bool
    ) -> bytes:
        """Decode data, up to a filter of pictures.

        Args:
            raw: as they are in the file, decrypted.
            filters: of `filters_of`.
            most: bytes that each step may give.
            is_content: undo predictors as well; others leave the rows as they are.

        Raises:
            OddStreamError: they have a fault, or end too early.
            TooLongError: there are more.
        """
        for each in filters:
            if each.name not in _OF_DATA:
                break
            if each.name == FLATE:
                raw = _inflated(raw, most)
                if each.parameters.get("/Predictor", 1) > 1:
                    _demand_rows(raw, each.parameters)
                    raw = _unpredicted(raw, each.parameters) if is_content else raw
            elif each.name == _HEXADECIMAL:
                raw = _from_hexadecimal(raw)
            else:
                raw = self._by_qpdf(raw, each)
            if len(raw) > most:
                raise TooLongError
        return raw

    def _by_qpdf(self, raw: bytes, each: Filter) -> bytes:
        """Decode by qpdf.

        Raises:
            OddStreamError: qpdf finds a fault.
            TooLongError: there are too many.
        """
        if len(raw) > _BY_QPDF[each.name]:
            raise TooLongError
        if each.name == _BASE_85 and _BASE_85_DATA.fullmatch(raw) is None:
            raise OddStreamError("data with a fault in them")
        if self._scratch is None:
            self._scratch = pikepdf.new()
        stream = pikepdf.Stream(self._scratch, raw)
        stream.Filter = pikepdf.Name(each.name)
        if each.parameters:
            stream.DecodeParms = pikepdf.Dictionary(
                {
                    key: value
                    for key, value in each.parameters.items()
                    if key in _PREDICTED
                }
            )
        try:
            return stream.read_bytes(LOSSLESS)
        except (pikepdf.PdfError, RuntimeError) as exc:
            raise OddStreamError("data with a fault in them") from exc


def _inflated(raw: bytes, most: int) -> bytes:
    """Inflate data, without looking at their checksum, as programs do.

    Raises:
        OddStreamError: they have a fault, or end too early.
        TooLongError: there are more.
    """
    if not raw.strip(_BLANKS):
        return b""
    head = raw[:_HEADER]
    if (
        len(head) < _HEADER
        or head[0] & 0xF != _DEFLATE
        or int.from_bytes(head, "big") % 31
        or head[1] & _DICTIONARY
    ):
        raise OddStreamError("data that are not deflated, though it says so")
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = inflater.decompress(memoryview(raw)[_HEADER:], most)
    except zlib.error as exc:
        raise OddStreamError("data with a fault in them") from exc
    if not inflater.eof:
        if len(content) >= most:
            raise TooLongError
        raise OddStreamError("data that end too early")
    return content


def _demand_rows(content: bytes, parameters: Mapping[str, Any]) -> None:
    """Demand that the rows of a predictor of PNG are of its five kinds.

    Raises:
        OddStreamError: one is not.
    """
    bits = parameters.get("/Colors", 1) * parameters.get("/BitsPerComponent", 8)
    width = 1 + (parameters.get("/Columns", 1) * bits + 7) // 8
    is_png = parameters["/Predictor"] >= _PNG
    if is_png and content[::width].translate(None, _ROW_KINDS):
        raise OddStreamError("rows of a kind that there is not")


def _unpredicted(content: bytes, parameters: Mapping[str, Any]) -> bytes:
    """Undo the predictor of content, which hardly any has.

    Raises:
        OddStreamError: it is another one than PNG's of bytes, or of much content.
    """
    pixel = parameters.get("/Colors", 1), parameters.get("/BitsPerComponent", 8)
    if parameters["/Predictor"] < _PNG or pixel != (1, 8) or len(content) > _ROWS_BYTES:
        raise OddStreamError("content with a predictor")
    try:
        return undo_png(content, parameters.get("/Columns", 1))
    except ValueError as exc:
        raise OddStreamError("data that end too early") from exc


def _from_hexadecimal(raw: bytes) -> bytes:
    """Decode hexadecimal digits.

    Raises:
        OddStreamError: there is something else among them.
    """
    if _HEX_DATA.fullmatch(raw) is None:
        raise OddStreamError("data with a fault in them")
    digits = raw.partition(b">")[0].translate(None, _BLANKS)
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii"))
