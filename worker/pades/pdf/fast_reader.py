"""A pyHanko reader with short cuts for what is plain, in a file that is in memory.

Each short cut reads what pyHanko would; where the file is odd it leaves all to
pyHanko.
"""

import io
import re
from typing import Final, TypeGuard

from pyhanko.pdf_utils.decode_limits import DecodeContext, DecodeLimits, DecodePurpose
from pyhanko.pdf_utils.generic import (
    DictionaryObject,
    PdfObject,
    Reference,
    StreamObject,
    TrailerReference,
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

from worker.pades.pdf.plain_objects import SPACE, STOP, parse_plain

_HEADER: Final = re.compile(rb"(\d{1,10}) (\d{1,5}) obj" + STOP)
_END: Final = re.compile(SPACE + rb"*+endobj" + STOP)
_ROW_BYTES: Final = 20
_ROWS: Final = re.compile(rb"(?:\d{10} \d{5} [nf](?: \n| \r|\r\n))*+")
_ROWS_HEADER: Final = re.compile(SPACE + rb"*+(\d{1,9}) (\d{1,9})" + SPACE + rb"++")
_TRAILER: Final = re.compile(SPACE + rb"*+trailer" + SPACE + rb"*+(?=<<)")
_HIGHEST_GENERATION: Final = 0xFFFF
_LAST_BYTES: Final = 64
_LAST_LINES: Final = re.compile(
    rb"[\r\n]startxref(?:\r?\n|\r)(\d{1,10})(?:\r?\n|\r)%%EOF(?:\r?\n|\r)?\Z"
)


class Reader(PdfFileReader):
    """A tolerant reader of a file that is in memory.

    Args:
        stream: the file.
        content: the same, as bytes.
    """

    def __init__(self, stream: io.BytesIO, content: bytes) -> None:
        self._content = content
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
        sections = _Sections(self, stream, content, _newest_section(stream, content))
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
        parsed = parse_plain(self._content, header.end(), container)
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
            parsed = parse_plain(held.data, place, Reference(idnum, 0, self))
            if parsed is not None:
                return parsed[0]
        read: PdfObject = super()._get_object_from_stream(  # type: ignore[no-untyped-call]
            idnum, stmnum, idx
        )
        return read


def _newest_section(stream: io.BytesIO, content: bytes) -> int:
    """Where the last lines of a file say that its newest cross-references are.

    Args:
        stream: the file.
        content: the same, as bytes.
    """
    last = _LAST_LINES.search(content[-_LAST_BYTES:])
    if last is not None:
        return int(last[1])
    stream.seek(-1, io.SEEK_END)
    return process_data_at_eof(stream)


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


class _Sections(XRefBuilder):
    """Reads a file's cross-references.

    Args:
        reader: of the file.
        stream: the file.
        content: the same, as bytes.
        startxref: where the newest section starts.
    """

    def __init__(
        self, reader: Reader, stream: io.BytesIO, content: bytes, startxref: int
    ) -> None:
        super().__init__(reader, stream, strict=False, last_startxref=startxref)
        self._content = content

    def _read_xref_table(self, declared_startxref: int) -> int | None:
        """Read the table at hand and its trailer; as the parent does.

        Returns:
            Where the section before starts.
        """
        start: int = self.stream.tell()
        found = _plain_table(self._content, start)
        if found is not None:
            data, end = found
            parsed = parse_plain(self._content, end, TrailerReference(self.handler))
            trailer = parsed[0] if parsed else None
            if _is_plain_trailer(trailer):
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


def _is_plain_trailer(trailer: PdfObject | None) -> TypeGuard[DictionaryObject]:
    """Whether a trailer is of no hybrid file, and its numbers are numbers."""
    return (
        isinstance(trailer, DictionaryObject)
        and "/XRefStm" not in trailer
        and isinstance(trailer.get("/Size"), int)
        and isinstance(trailer.get("/Prev", 0), int)
    )


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
        for number in range(first, first + count):
            _add_row(data, number, content[start : start + _ROW_BYTES])
            start += _ROW_BYTES
    trailer = _TRAILER.match(content, at)
    return None if trailer is None else (data, trailer.end())


def _add_row(data: XRefSectionData, number: int, row: bytes) -> None:
    """Take a row over, as `XRefSectionData.process_entries` does."""
    generation = int(row[11:16])
    if number == 0 or generation > _HIGHEST_GENERATION:
        return
    if row[17:18] == b"n":
        data.standard_xrefs[number] = generation, int(row[:10])
        data.explicit_refs_in_revision.add((number, generation))
    else:
        data.freed[number] = generation
        data.explicit_refs_in_revision.add((number, generation - 1))
