"""A pyHanko reader with short cuts for what is plain, in a file that is in memory.

pyHanko reads byte by byte. Most objects are plain: no comments, no escapes but octal
ones, which pyHanko itself writes, no streams but those that say their length. Those are
read here, token by token. Each short cut reads what pyHanko would; at anything else
pyHanko reads the whole itself, so it alone decides what to make of what is odd.
"""

import io
import re
from collections.abc import Callable, Mapping
from typing import Final

from pyhanko.pdf_utils.decode_limits import DecodeContext, DecodeLimits, DecodePurpose
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
    TrailerReference,
    pdf_string,
)
from pyhanko.pdf_utils.reader import (
    PdfFileReader,
    _read_header_version,
    process_data_at_eof,
)
from pyhanko.pdf_utils.xref import (
    ObjStreamRef,
    XRefBuilder,
    XRefCache,
    XRefSection,
    XRefSectionData,
    XRefSectionMetaInfo,
    XRefSectionType,
)

from worker.pades.pdf.integers import integers_of
from worker.pades.pdf.kept_values import keep_values
from worker.pades.pdf.predictors import use_all_predictors

use_all_predictors()
keep_values()
_DEEPEST: Final = 32
"""Most containers within each other; pyHanko's own limit is Python's."""
_SPACE: Final = rb"[ \n\r\t\f\0]"
# What a token ends before. A number that a comma or sign follows is none of ours.
_STOP: Final = rb"(?=[ \n\r\t\f\0()<>\[\]/%]|\Z)"
_HEADER: Final = re.compile(rb"(\d{1,10}) (\d{1,5}) obj" + _STOP)
_END: Final = re.compile(_SPACE + rb"*+endobj" + _STOP)
_STREAM: Final = re.compile(_SPACE + rb"*+stream\r?\n")
_END_STREAM: Final = re.compile(
    _SPACE + rb"*+endstream" + _SPACE + rb"*+endobj" + _STOP
)
_ROW_BYTES: Final = 20
_ROWS: Final = re.compile(rb"(?:\d{10} \d{5} [nf](?: \n| \r|\r\n))*+")
_ROWS_HEADER: Final = re.compile(_SPACE + rb"*+(\d{1,9}) (\d{1,9})" + _SPACE + rb"++")
_TRAILER: Final = re.compile(_SPACE + rb"*+trailer" + _SPACE + rb"*+(?=<<)")
_HIGHEST_GENERATION: Final = 0xFFFF
_LAST_BYTES: Final = 64
_LAST_LINES: Final = re.compile(
    rb"[\r\n]startxref(?:\r?\n|\r)(\d{1,10})(?:\r?\n|\r)%%EOF(?:\r?\n|\r)?\Z"
)
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
    + rb"|\((?P<text>[^()\\\r]*+(?:\\[0-3][0-7]{2}[^()\\\r]*+)*)\)"
    + rb"|(?P<word>true|false|null)"
    + _STOP
    + rb")"
)
_ESCAPE: Final = re.compile(rb"\\([0-7]{3})")
_WORDS: Final[Mapping[bytes, Callable[[], PdfObject]]] = {
    b"true": lambda: BooleanObject(value=True),
    b"false": lambda: BooleanObject(value=False),
    b"null": NullObject,
}

Container = Reference | TrailerReference


class Reader(PdfFileReader):
    """A tolerant reader of a file that is in memory.

    Args:
        stream: the file.
        content: the same, as bytes.
    """

    sections_reader: "type[Sections]"

    def __init__(self, stream: io.BytesIO, content: bytes) -> None:
        self.content = content
        self._object_streams: dict[int, _ObjectStream] = {}
        # The parent's, which takes no other builder of cross-references.
        self._security_handler = None
        self.strict = False
        self._decode_context = DecodeContext(DecodeLimits(), input_size=len(content))
        self.resolved_objects = {}
        self._header_version = _read_header_version(stream)
        self._input_version = None
        self._historical_resolver_cache = {}
        self.stream = stream
        last = _LAST_LINES.search(content[-_LAST_BYTES:])
        if last is not None:
            newest = int(last[1])
        else:
            stream.seek(-1, io.SEEK_END)
            newest = process_data_at_eof(stream)
        sections = self.sections_reader(
            self, stream, strict=False, last_startxref=newest
        )
        self.xrefs = XRefCache(self, sections.read_xrefs())  # type: ignore[no-untyped-call]
        self.last_startxref = sections.last_startxref
        self.trailer = sections.trailer
        self.has_xref_stream = sections.has_xref_stream
        self._embedded_signatures = None

    def _read_object(
        self,
        ref: Reference,
        marker: int | ObjStreamRef | None,
        never_decrypt: bool = False,  # noqa: FBT001, FBT002 (the parent's form)
        as_metadata_stream: bool = False,  # noqa: FBT001, FBT002 (the parent's form)
    ) -> PdfObject:
        """Read an object by its place; as the parent does."""
        if isinstance(marker, int) and not never_decrypt and not self.encrypted:
            header = _HEADER.match(self.content, marker)
            named = (int(header[1]), int(header[2])) if header else None
            if header is not None and named == (ref.idnum, ref.generation):
                container = Reference(ref.idnum, ref.generation, self)
                parsed = parse_plain(self.content, header.end(), container)
                if parsed is not None and _END.match(self.content, parsed[1]):
                    return parsed[0]
                if parsed is not None and not as_metadata_stream:
                    stream = _plain_stream(self.content, *parsed)
                    if stream is not None:
                        stream.container_ref = container
                        return stream
        read: PdfObject = super()._read_object(
            ref, marker, never_decrypt, as_metadata_stream
        )
        return read

    def _get_object_from_stream(self, idnum: int, stmnum: int, idx: int) -> PdfObject:
        """Read an object out of an object stream; as the parent does."""
        if stmnum not in self._object_streams:
            stream = Reference(stmnum, 0, self).get_object()
            self._object_streams[stmnum] = _ObjectStream(stream)
        held = self._object_streams[stmnum]
        place = held.places.get(idnum)
        if place is not None and 0 <= idx < len(held.places):
            parsed = parse_plain(held.data, place, Reference(idnum, 0, self))
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
        head = integers_of(self.data[: max(first, 0)]) or []
        # Twins, too few, what is no number: pyHanko is to decide.
        numbers, offsets = head[::2], head[1::2]
        if len(offsets) == len(set(numbers)) == count:
            self.places = {
                number: first + offset
                for number, offset in zip(numbers, offsets, strict=True)
            }


class Sections(XRefBuilder):
    """Reads a file's cross-references."""

    handler: Reader

    def _read_xref_table(self, declared_startxref: int) -> int | None:
        """Read the table at hand and its trailer; as the parent does.

        Returns:
            Where the section before starts.
        """
        start: int = self.stream.tell()
        content = self.handler.content
        found = _plain_table(content, start)
        if found is not None:
            data, end = found
            parsed = parse_plain(content, end, TrailerReference(self.handler))
            trailer = parsed[0] if parsed else None
            # Of no hybrid file, and its numbers are numbers.
            if (
                isinstance(trailer, DictionaryObject)
                and "/XRefStm" not in trailer
                and isinstance(trailer.get("/Size"), int)
                and isinstance(trailer.get("/Prev", 0), int)
            ):
                meta = XRefSectionMetaInfo(
                    xref_section_type=XRefSectionType.STANDARD,
                    size=trailer.raw_get("/Size"),
                    declared_startxref=declared_startxref,
                    start_location=start,
                    end_location=end,
                    stream_ref=None,
                )
                self.sections.append(XRefSection(meta, data))
                trailer.container_ref = None
                self.trailer.add_trailer_revision(trailer)
                before: int | None = trailer.get("/Prev")
                return before
        read: int | None = super()._read_xref_table(declared_startxref)
        return read


Reader.sections_reader = Sections


def _plain_table(content: bytes, at: int) -> tuple[XRefSectionData, int] | None:
    """Read a table whose every row has its 20 bytes.

    Args:
        content: the file.
        at: the place after `xref`.

    Returns:
        The table, and the place of the trailer's dictionary; None when it is odd.

    Source: ISO 32000-2, 7.5.4.
    """
    data = XRefSectionData()
    while (header := _ROWS_HEADER.match(content, at)) is not None:
        first, count, start = int(header[1]), int(header[2]), header.end()
        at = start + count * _ROW_BYTES
        if at > len(content) or not _ROWS.fullmatch(content, start, at):
            return None
        # From here as `XRefSectionData.process_entries` does.
        for number in range(first, first + count):
            row = content[start : start + _ROW_BYTES]
            start += _ROW_BYTES
            generation = int(row[11:16])
            if number == 0 or generation > _HIGHEST_GENERATION:
                continue
            if row[17:18] == b"n":
                data.standard_xrefs[number] = generation, int(row[:10])
                data.explicit_refs_in_revision.add((number, generation))
            else:
                data.freed[number] = generation
                data.explicit_refs_in_revision.add((number, generation - 1))
    trailer = _TRAILER.match(content, at)
    return None if trailer is None else (data, trailer.end())


def parse_plain(
    content: bytes, at: int, container: Container
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


def _plain_stream(content: bytes, entries: PdfObject, at: int) -> StreamObject | None:
    """Read the stream after a dictionary that says its length itself.

    Args:
        content: the file.
        entries: the dictionary.
        at: the place after it.

    Returns:
        None when it is not plain.
    """
    opened = _STREAM.match(content, at)
    if opened is None or not isinstance(entries, DictionaryObject):
        return None
    length = entries.get("/Length") if "/Length" in entries else None
    if type(length) is not NumberObject or length < 0:
        return None
    end = opened.end() + length
    if _END_STREAM.match(content, end) is None:
        return None
    return StreamObject(entries, encoded_data=content[opened.end() : end])


def _unescaped(text: bytes) -> bytes:
    """Read the octal codes of a string (ISO 32000-2, 7.3.4.2)."""
    if b"\\" not in text:
        return text
    return _ESCAPE.sub(lambda code: bytes([int(code[1], 8)]), text)


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


_LEAVES: Final[Mapping[str, Callable[[re.Match[bytes], Container], PdfObject]]] = {
    "name": lambda token, _: NameObject(token["name"].decode("ascii")),
    "reference": lambda token, container: IndirectObject(
        int(token[3]),
        int(token[4]),
        container.get_pdf_handler(),  # type: ignore[no-untyped-call]
    ),
    "integer": lambda token, _: NumberObject(token["integer"]),
    "real": lambda token, _: FloatObject(token["real"].decode("ascii")),
    "hex": lambda token, _: pdf_string(bytes.fromhex(token["hex"].decode("ascii"))),
    "text": lambda token, _: pdf_string(_unescaped(token["text"])),
    "word": lambda token, _: _WORDS[token["word"]](),
}
