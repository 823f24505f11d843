"""Reads PDF objects as pyHanko does, only faster.

pyHanko reads byte by byte. Most objects are plain: no comments, no escapes, no
streams. Those are read here, token by token; at anything else pyHanko reads the
whole object itself, so it alone decides what to make of what is odd.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyhanko.pdf_utils.decode_limits import DecodePurpose
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    BooleanObject,
    DictionaryObject,
    FloatObject,
    IndirectObject,
    NameObject,
    NullObject,
    NumberObject,
    PdfObject,
    Reference,
    StreamObject,
    pdf_string,
)
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.pdf_utils.xref import ObjStreamRef

_DEEPEST: Final = 32
"""Most containers within each other; pyHanko's own limit is Python's."""
_SPACE: Final = rb"[ \n\r\t\f\0]"
# What a token ends before. A number that a comma or sign follows is none of ours.
_STOP: Final = rb"(?=[ \n\r\t\f\0()<>\[\]/%]|\Z)"
_TOKEN: Final = re.compile(
    _SPACE
    + rb"*+(?:"
    + rb"(?P<name>/[!\"$&'*-.0-;=?-Z\\^-z|~]*+)"
    + _STOP
    # Where pyHanko's own look-ahead sees all of it too.
    + rb"|(?P<reference>([1-9]\d{0,8}) (\d{1,5}) R)"
    + _STOP
    + rb"(?!\Z)"
    + rb"|(?P<integer>[+-]?\d{1,18})"
    + _STOP
    + rb"|(?P<real>[+-]?\d{1,18}\.\d{1,18})"
    + _STOP
    + rb"|(?P<open><<|\[)|(?P<close>>>|\])"
    + rb"|<(?P<hex>(?:[0-9A-Fa-f]{2})*+)>"
    + rb"|\((?P<text>[^()\\\r]*+)\)"
    + rb"|(?P<word>true|false|null)"
    + _STOP
    + rb")"
)
_HEADER: Final = re.compile(rb"(\d{1,10}) (\d{1,5}) obj" + _STOP)
_END: Final = re.compile(_SPACE + rb"*+endobj" + _STOP)
_WORDS: Final[Mapping[bytes, Callable[[], PdfObject]]] = {
    b"true": lambda: BooleanObject(value=True),
    b"false": lambda: BooleanObject(value=False),
    b"null": NullObject,
}


class Reader(PdfFileReader):
    """A tolerant reader of a file that is in memory.

    Args:
        stream: the file.
        content: the same, as bytes.
    """

    def __init__(self, stream: Any, content: bytes) -> None:
        self._content = content
        self._object_streams: dict[int, _ObjectStream] = {}
        super().__init__(stream, strict=False)

    def _read_object(
        self,
        ref: Reference,
        marker: int | ObjStreamRef | None,
        never_decrypt: bool = False,  # noqa: FBT001, FBT002 (the parent's form)
        as_metadata_stream: bool = False,  # noqa: FBT001, FBT002 (the parent's form)
    ) -> PdfObject:
        """Read an object by its place; as the parent does."""
        found = None
        if isinstance(marker, int) and not never_decrypt and not self.encrypted:
            found = self._plain_at(ref, marker)
        if found is not None:
            return found
        read: PdfObject = super()._read_object(
            ref, marker, never_decrypt, as_metadata_stream
        )
        return read

    def _plain_at(self, ref: Reference, place: int) -> PdfObject | None:
        """The object that starts at a place of the file, if it is a plain one."""
        header = _HEADER.match(self._content, place)
        if header is None or (int(header[1]), int(header[2])) != (
            ref.idnum,
            ref.generation,
        ):
            return None
        container = Reference(ref.idnum, ref.generation, self)
        parsed = _parse(self._content, header.end(), container)
        if parsed is None or not _END.match(self._content, parsed[1]):
            return None
        return parsed[0]

    def _get_object_from_stream(self, idnum: int, stmnum: int, idx: int) -> PdfObject:
        """Read an object out of an object stream; as the parent does."""
        if stmnum not in self._object_streams:
            stream = Reference(stmnum, 0, self).get_object()
            self._object_streams[stmnum] = _ObjectStream(stream)
        held = self._object_streams[stmnum]
        place = held.places.get(idnum)
        if place is not None and 0 <= idx < len(held.places):
            parsed = _parse(held.data, place, Reference(idnum, 0, self))
            if parsed is not None:
                return parsed[0]
        read: PdfObject = super()._get_object_from_stream(  # type: ignore[no-untyped-call]
            idnum, stmnum, idx
        )
        return read


class _ObjectStream:
    """What an object stream holds; nothing, where it is not as it should be.

    Args:
        stream: what stands in its place.
    """

    def __init__(self, stream: PdfObject) -> None:
        self.data = b""
        self.places: dict[int, int] = {}
        """Where each object starts in `data`, by its number."""
        if not isinstance(stream, StreamObject) or stream.get("/Type") != "/ObjStm":
            return
        count, first = stream.get("/N"), stream.get("/First")
        if not isinstance(count, int) or not isinstance(first, int):
            return
        self.data = stream.read_data(DecodePurpose.OBJECT_STREAM)
        head = self.data[: max(first, 0)].split()
        # Twins, too few, what is no number: pyHanko is to decide.
        numbers, offsets = head[::2], head[1::2]
        if all(map(bytes.isdigit, head)) and len(offsets) == len(set(numbers)) == count:
            self.places = {
                int(number): first + int(offset)
                for number, offset in zip(numbers, offsets, strict=True)
            }


def _parse(
    content: bytes, at: int, container: Reference
) -> tuple[PdfObject, int] | None:
    """Read one object.

    Args:
        content: where it stands.
        at: where it starts, white space before it included.
        container: what it is to be updated by.

    Returns:
        The object and the place after it; None when it is not plain.
    """
    outer: list[tuple[bytes, list[PdfObject]]] = []
    while (token := _TOKEN.match(content, at)) is not None:
        at = token.end()
        kind = token.lastgroup or ""
        if kind == "open":
            if len(outer) == _DEEPEST:
                return None
            outer.append((token[kind], []))
            continue
        if kind == "close":
            value = _closed(*outer.pop(), token[kind]) if outer else None
        else:
            value = _LEAVES[kind](token, container)
        if value is None:
            return None
        value.container_ref = container
        if not outer:
            return value, at
        outer[-1][1].append(value)
    return None


def _closed(opened: bytes, items: list[PdfObject], close: bytes) -> PdfObject | None:
    """The container that a bracket closes; None for what is not one."""
    if opened + close == b"[]":
        return ArrayObject(items)
    keys, values = items[::2], items[1::2]
    if (
        opened + close != b"<<>>"
        or len(keys) != len(values)
        or not all(isinstance(key, NameObject) for key in keys)
        or len(set(keys)) != len(keys)
    ):
        return None
    return DictionaryObject(dict(zip(keys, values, strict=True)))


_LEAVES: Final[Mapping[str, Callable[[re.Match[bytes], Reference], PdfObject]]] = {
    "name": lambda token, _: NameObject(token["name"].decode("ascii")),
    "reference": lambda token, container: IndirectObject(
        int(token[3]), int(token[4]), container.get_pdf_handler()
    ),
    "integer": lambda token, _: NumberObject(token["integer"]),
    "real": lambda token, _: FloatObject(token["real"].decode("ascii")),
    "hex": lambda token, _: pdf_string(bytes.fromhex(token["hex"].decode("ascii"))),
    "text": lambda token, _: pdf_string(token["text"]),
    "word": lambda token, _: _WORDS[token["word"]](),
}
