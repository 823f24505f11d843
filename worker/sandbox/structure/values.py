"""Values of PDF objects, read apart from pyHanko.

pyHanko reads some bytes otherwise than the format says: of a backslash with two line
ends in a string it drops both, and it keeps a raw carriage return. Its rules judge what
it reads, so each object that it reads is compared with the value here.

Source: ISO 32000-2, 7.3.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    BooleanObject,
    ByteStringObject,
    DecryptedObjectProxy,
    DictionaryObject,
    FloatObject,
    IndirectObject,
    NameObject,
    NullObject,
    NumberObject,
    PdfObject,
    TextStringEncoding,
    TextStringObject,
    pdf_string,
)

from worker.sandbox.structure.tokens import BLANK, END, SPACE

_DEEPEST: Final = 64
_TOKEN: Final = re.compile(
    SPACE
    + rb"(?:"
    + rb"/(?P<name>[^\0\t\n\f\r ()<>\[\]{}/%]*+)"
    + rb"|(?P<reference>(\d{1,10})"
    + BLANK
    + rb"++(\d{1,10})"
    + BLANK
    + rb"++R)"
    + END
    + rb"|(?P<integer>[+-]?\d++)"
    + END
    + rb"|(?P<real>[+-]?(?:\d++\.\d*+|\.\d++))"
    + END
    + rb"|(?P<text>\()"
    + rb"|<(?P<hex>[0-9A-Fa-f\0\t\n\f\r ]*+)>"
    + rb"|(?P<word>true|false|null)"
    + END
    + rb"|(?P<open><<|\[)|(?P<close>>>|\])"
    + rb")"
)
_PLAIN: Final = re.compile(rb"[^()\\\r]*+")
_TEXT_PART: Final = re.compile(
    rb"\\(?:([0-7]{1,3})|(\r\n?|\n)|([\0-\xff]))|([()])|(\r\n?)|[^()\\\r]++"
)
_ESCAPED: Final[Mapping[bytes, bytes]] = {
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"b": b"\b",
    b"f": b"\f",
}
_CODE: Final = re.compile(rb"#([0-9A-Fa-f]{2})")
_BLANKS: Final = b"\0\t\n\f\r "
_WORDS: Final[Mapping[bytes, bool | None]] = {
    b"true": True,
    b"false": False,
    b"null": None,
}
_PLAIN_TEXT: Final = re.compile(rb"[\x20-\x7e]*+")


def _pdf_doc(code: int) -> str:
    """Return pyHanko's character for a code; NUL, which it never has, for none."""
    try:
        return str(TextStringEncoding.PDF_DOC.decode(bytes([code])))
    except UnicodeDecodeError:
        return "\0"


_PDF_DOC: Final = {code: _pdf_doc(code) for code in range(256)}


class NoValueError(ValueError):
    """The bytes there are no value that is read here."""


class ObjectNumber(tuple[int, int]):
    """Number and generation."""

    __slots__ = ()


ANY: Final = object()
"""A value that is not known here, and equals any other."""
Value = Any
"""`ANY`, None, a bool, an int, a `Real`, a `str` (name, with its slash), bytes
(string), an `ObjectNumber`, a list, or a dict by names."""


class Real(str):
    """A real number, as it is written."""

    __slots__ = ()


def value_at(data: bytes, at: int) -> tuple[Value, int]:
    """Read one value.

    Args:
        data: bytes that hold it.
        at: offset of it, or of white space before it.

    Returns:
        The value, and the offset after it.

    Raises:
        NoValueError: there is none, or it is nested too deeply.
    """
    outer: list[tuple[bytes, list[Value]]] = []
    match = _TOKEN.match
    while (token := match(data, at)) is not None:
        at = token.end()
        kind = token.lastgroup or ""
        if kind == "open":
            if len(outer) >= _DEEPEST:
                break
            outer.append((token["open"], []))
            continue
        if kind == "text":
            value, at = _text(data, at)
        elif kind != "close":
            value = _LEAVES[kind](token)
        elif outer:
            value = _closed(*outer.pop(), token["close"])
        else:
            break
        if not outer:
            return value, at
        outer[-1][1].append(value)
    raise NoValueError


def _closed(opened: bytes, items: list[Value], close: bytes) -> Value:
    """Return the container that a bracket closes; of equal keys the first counts.

    Raises:
        NoValueError: it is none.
    """
    if opened == b"[" and close == b"]":
        return items
    found: dict[str, Value] = {}
    if opened != b"<<" or close != b">>" or len(items) % 2:
        raise NoValueError
    for key, value in zip(items[::2], items[1::2], strict=True):
        if type(key) is not str:
            raise NoValueError
        found.setdefault(key, value)
    return found


def _name(raw: bytes) -> str:
    """Return a name as pyHanko spells it."""
    if b"#" in raw:
        raw = _CODE.sub(lambda code: bytes([int(code[1], 16)]), raw)
    try:
        return "/" + raw.decode()
    except UnicodeDecodeError:
        return "/" + raw.decode("latin-1")


def _hexadecimal(digits: bytes) -> bytes:
    digits = digits.translate(None, _BLANKS)
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii"))


def _text(data: bytes, at: int) -> tuple[bytes, int]:
    """Read a literal string after its first parenthesis, and the offset after it.

    Raises:
        NoValueError: it does not end.

    Source: ISO 32000-2, 7.3.4.2.
    """
    plain = _PLAIN.match(data, at)
    if plain is not None and data[plain.end() : plain.end() + 1] == b")":
        return plain[0], plain.end() + 1
    out: list[bytes] = []
    depth = 1
    for part in _TEXT_PART.finditer(data, at):
        octal, line, escaped, parenthesis, carriage = part.groups()
        if parenthesis is not None:
            depth += 1 if parenthesis == b"(" else -1
            if not depth:
                return b"".join(out), part.end()
            out.append(parenthesis)
        elif carriage is not None:
            out.append(b"\n")
        elif octal is not None:
            out.append(bytes([int(octal, 8) & 0xFF]))
        elif escaped is not None:
            out.append(_ESCAPED.get(escaped, escaped))
        elif line is None:
            out.append(part[0])
    raise NoValueError


_LEAVES: Final[Mapping[str, Callable[[re.Match[bytes]], Value]]] = {
    "name": lambda token: _name(token["name"]),
    "integer": lambda token: int(token["integer"]),
    "reference": lambda token: ObjectNumber((int(token[3]), int(token[4]))),
    "hex": lambda token: _hexadecimal(token["hex"]),
    "real": lambda token: Real(token["real"].decode("ascii")),
    "word": lambda token: _WORDS[token["word"]],
}


def corrected(read: PdfObject, value: Value) -> PdfObject | None:
    """Compare an undecrypted object with the value of its bytes.

    A string that pyHanko decodes otherwise is replaced by the right one.

    Args:
        read: as pyHanko reads it.
        value: as it is read here.

    Returns:
        The object with the right strings; None if anything else differs.
    """
    agree = _AGREE.get(type(value))
    if isinstance(read, DecryptedObjectProxy):
        read = read.raw_object
    return read if agree is None else agree(read, value)


def _same_name(read: PdfObject, value: str) -> PdfObject | None:
    return read if isinstance(read, NameObject) and read == value else None


def _same_integer(read: PdfObject, value: int) -> PdfObject | None:
    return read if isinstance(read, NumberObject) and read == value else None


def _same_real(read: PdfObject, value: Real) -> PdfObject | None:
    is_same = isinstance(read, FloatObject) and read == FloatObject(str(value))
    return read if is_same else None


def _same_reference(read: PdfObject, value: ObjectNumber) -> PdfObject | None:
    is_same = (
        isinstance(read, IndirectObject) and (read.idnum, read.generation) == value
    )
    return read if is_same else None


def _same_word(read: PdfObject, value: bool | None) -> PdfObject | None:  # noqa: FBT001 (the value itself)
    if value is None:
        return read if isinstance(read, NullObject) else None
    return read if isinstance(read, BooleanObject) and read.value is value else None


def _same_string(read: PdfObject, value: bytes) -> PdfObject | None:
    if isinstance(read, TextStringObject):
        if _PLAIN_TEXT.fullmatch(value):
            is_same = read == value.decode("ascii")
        elif read.autodetected_encoding is TextStringEncoding.PDF_DOC:
            is_same = read == value.decode("latin-1").translate(_PDF_DOC)
        else:
            is_same = read.original_bytes == value
    elif isinstance(read, ByteStringObject):
        is_same = read == value
    else:
        return None
    if is_same:
        return read
    right: PdfObject = pdf_string(value)
    right.container_ref = read.container_ref
    return right


def _same_list(read: PdfObject, value: list[Value]) -> PdfObject | None:
    if not isinstance(read, ArrayObject) or len(read) != len(value):
        return None
    for at, (item, each) in enumerate(zip(list.__iter__(read), value, strict=True)):
        right = corrected(item, each)
        if right is None:
            return None
        if right is not item:
            list.__setitem__(read, at, right)
    return read


def _same_dict(read: PdfObject, value: dict[str, Value]) -> PdfObject | None:
    if not isinstance(read, DictionaryObject) or read.keys() != value.keys():
        return None
    for key, item in [*dict.items(read)]:
        right = corrected(item, value[key])
        if right is None:
            return None
        if right is not item:
            dict.__setitem__(read, key, right)
    return read


_AGREE: Final[Mapping[type, Callable[[Any, Any], PdfObject | None]]] = {
    str: _same_name,
    int: _same_integer,
    Real: _same_real,
    ObjectNumber: _same_reference,
    bool: _same_word,
    type(None): _same_word,
    bytes: _same_string,
    list: _same_list,
    dict: _same_dict,
}


def plain_value(read: object) -> Value:
    """Return the value of an object of pyHanko, decrypted throughout."""
    if isinstance(read, DecryptedObjectProxy):
        read = read.decrypted
    if isinstance(read, DictionaryObject):
        # A signature's value is never encrypted (ISO 32000-2, 7.6.2). qpdf decrypts
        # that of a document timestamp all the same.
        bare = "/Contents" if "/ByteRange" in read else ""
        return {
            str(key): ANY if key == bare else plain_value(item)
            for key, item in dict.items(read)
        }
    if isinstance(read, ArrayObject):
        return [plain_value(each) for each in list.__iter__(read)]
    plain = next((v for k, v in _PLAIN_VALUES.items() if isinstance(read, k)), None)
    return None if plain is None else plain(read)


_PLAIN_VALUES: Final[Mapping[type, Callable[[Any], Value]]] = {
    IndirectObject: lambda read: ObjectNumber((read.idnum, read.generation)),
    TextStringObject: lambda read: read.original_bytes,
    ByteStringObject: bytes,
    NameObject: str,
    FloatObject: lambda read: Real(format(read, "f")),
    NumberObject: int,
    BooleanObject: lambda read: read.value,
}
