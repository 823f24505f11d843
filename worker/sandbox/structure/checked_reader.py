"""A pyHanko reader that reads no object otherwise than the structural reader.

What is changed after a signature is judged by the values that pyHanko reads. Each of
its objects is compared with the value of the same bytes when it is read, whoever asks
for it (`worker.sandbox.structure.values`).
"""

import io
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from pyhanko.pdf_utils.decode_limits import DecodePurpose
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DecryptedObjectProxy,
    DictionaryObject,
    IndirectObject,
    NullObject,
    PdfObject,
    Reference,
    StreamObject,
    read_object,
)
from pyhanko.pdf_utils.misc import PdfReadError
from pyhanko.pdf_utils.xref import ObjStreamRef

from worker.pades.pdf.fast_reader import Reader, Sections, parse_plain
from worker.pades.pdf.integers import integers_of
from worker.sandbox.structure.objects import END_STREAM, HEADER, STREAM
from worker.sandbox.structure.tokens import SPACE, after_blanks
from worker.sandbox.structure.values import (
    NoValueError,
    Value,
    corrected,
    plain_value,
    value_at,
)

ROWS_MAX: Final = 250_000
"""Most cross-reference entries of a file. pyHanko takes up to 15 microseconds, and a
kilobyte of memory, for one."""
_ROW_BYTES: Final = 18
_TRAILER: Final = re.compile(SPACE + rb"trailer")
_LAST_LINE: Final = re.compile(rb"[^\r\n]*\Z")
_LAST_BYTES: Final = 1_024
_BLANKS: Final = b"\0\t\n\f\r "


class ReadDifferentlyError(PdfReadError):
    """pyHanko reads another object than the structural reader does."""


class TooManyRowsError(PdfReadError):
    """The cross-references have more entries than are read here."""


class _BoundedSections(Sections):
    """Reads a file's cross-references as far as they are not too long."""

    _rows = ROWS_MAX

    def _take(self, rows: int) -> None:
        self._rows -= rows
        if rows < 0 or self._rows < 0:
            raise TooManyRowsError("too many cross-reference entries")

    def _read_xref_table(self, declared_startxref: int) -> int | None:
        content, at = self.handler.content, self.stream.tell()
        end = content.find(b"trailer", at)
        self._take(((len(content) if end < 0 else end) - at) // _ROW_BYTES)
        return super()._read_xref_table(declared_startxref)

    def _read_xref_stream_object(self) -> tuple[Reference, StreamObject]:
        found = super()._read_xref_stream_object()  # type: ignore[no-untyped-call]
        ranges = found[1].get("/Index", None)
        counts = [found[1].get("/Size")]
        if isinstance(ranges, ArrayObject):
            # pyHanko counts on to the end of a range whose rows are missing.
            counts = [*ranges][1::2]
        for count in counts:
            self._take(1 + count if isinstance(count, int) else -1)
        read: tuple[Reference, StreamObject] = found
        return read


@dataclass(frozen=True, slots=True)
class _Held:
    """Objects of one object stream.

    Args:
        numbers: by index.
        bodies: the bytes of each, by index.
    """

    numbers: tuple[int, ...]
    bodies: tuple[bytes, ...]


class CheckedReader(Reader):
    """Tolerant reader of a file that is in memory.

    Args:
        pdf: the whole file.

    Raises:
        Exception: of any kind, for a file that cannot be read.
    """

    sections_reader = _BoundedSections

    def __init__(self, pdf: bytes) -> None:
        self._read: dict[tuple[object, ...], PdfObject] = {}
        self._held: dict[int, _Held] = {}
        last = _LAST_LINE.search(pdf[-_LAST_BYTES:])
        line = b"" if last is None else last[0]
        if b"%" in line and not line.startswith(b"%%EOF"):
            # pyHanko reads to the end of a comment for ever if the file ends in it.
            raise PdfReadError("the file ends in a comment")
        super().__init__(io.BytesIO(pdf), pdf)

    @cached_property
    def _encryption(self) -> PdfObject:
        """Raw `/Encrypt`. pyHanko searches all trailers for it, for each object."""
        trailer = self.trailer
        raw: PdfObject = NullObject()
        if "/Encrypt" in trailer:
            raw = trailer.raw_get("/Encrypt")
        return raw

    @cached_property
    def encrypt_dict(self) -> DictionaryObject | None:
        """The encryption dictionary; `/Encrypt null` is none, as null is no entry.

        pyHanko takes it for damage. Source: ISO 32000-2, 7.3.7.
        """
        raw = self._encryption
        if isinstance(raw, IndirectObject):
            # pyHanko leaves this one untyped.
            raw = self.get_object(raw.reference, never_decrypt=True)  # type: ignore[no-untyped-call]
        if isinstance(raw, NullObject):
            return None
        return super().encrypt_dict

    def _read_object(
        self,
        ref: Reference,
        marker: int | ObjStreamRef | None,
        never_decrypt: bool = False,  # noqa: FBT001, FBT002 (the parent's form)
        as_metadata_stream: bool = False,  # noqa: FBT001, FBT002 (the parent's form)
    ) -> PdfObject:
        """Read an object by its place, each place once.

        Raises:
            ReadDifferentlyError: pyHanko reads another one.
        """
        if marker == 0:
            marker = None  # no object's offset
        key = (ref.idnum, ref.generation, marker, never_decrypt, as_metadata_stream)
        if key not in self._read:
            if isinstance(marker, int):
                # First, so that pyHanko is asked for what has an end.
                value, end = self._value(ref, marker)
                found = super()._read_object(
                    ref, marker, never_decrypt, as_metadata_stream
                )
                found = _demand_same(found, value)
                self._demand_same_content(found, end)
            else:
                found = super()._read_object(
                    ref, marker, never_decrypt, as_metadata_stream
                )
            self._read[key] = found
        return self._read[key]

    def read_at(
        self, number: int, generation: int, place: int | ObjStreamRef
    ) -> PdfObject:
        """Read the object at a place, undecrypted.

        Raises:
            ReadDifferentlyError: pyHanko reads another one.
            Exception: of any kind, for an object that cannot be read.
        """
        ref = Reference(number, generation, self)
        # Neither is encrypted (ISO 32000-2, 7.5.8.2 and 7.6.2).
        is_plain = ref in self.xrefs.xref_stream_refs or (
            self._encryption == IndirectObject(number, generation, self)
        )
        return self._read_object(ref, place, is_plain)

    def decrypted_value(
        self, number: int, generation: int, place: int | ObjStreamRef
    ) -> tuple[Value, bytes | None]:
        """Return an object's value and stream, decrypted.

        Raises:
            ValueError: it cannot be read.
        """
        try:
            found = self.read_at(number, generation, place)
            value = plain_value(found)
            if isinstance(found, DecryptedObjectProxy):
                found = found.decrypted
        except MemoryError:
            raise
        except Exception as exc:
            raise NoValueError from exc  # a forged object raises anything
        content = found.encoded_data if isinstance(found, StreamObject) else None
        return value, content

    def trailers(self) -> list[DictionaryObject]:
        """Return the trailers, the oldest first."""
        newest_first = self.trailer._trailer_revisions  # noqa: SLF001 (no public way to one trailer)
        return newest_first[::-1]

    def is_trailer(self, at: int, trailer: DictionaryObject) -> bool:
        """Return whether a trailer is the dictionary at an offset of the file.

        Args:
            at: offset of the keyword, or of the stream's header.
            trailer: as pyHanko reads it.
        """
        content = self.content
        header = HEADER.match(content, at) or _TRAILER.match(content, at)
        try:
            value = None if header is None else value_at(content, header.end())[0]
        except ValueError:
            return False
        return corrected(trailer, value) is not None

    def _value(self, ref: Reference, at: int) -> tuple[Value, int]:
        """Read the value of an object that is in the file, and where it ends."""
        content = self.content
        header = HEADER.match(content, after_blanks(content, at))
        if header is None or int(header[1]) != ref.idnum:
            raise ReadDifferentlyError("no object begins where pyHanko reads one")
        return value_at(content, header.end())

    def _demand_same_content(self, found: PdfObject, end: int) -> None:
        """Demand that a stream is the bytes between its keywords."""
        raw = found.raw_object if isinstance(found, DecryptedObjectProxy) else found
        stream = STREAM.match(self.content, end)
        if not isinstance(raw, StreamObject):
            if stream is not None and isinstance(raw, DictionaryObject):
                raise ReadDifferentlyError("pyHanko reads no stream")
            return
        stored = raw.encoded_data
        if (
            stream is None
            or not self.content.startswith(stored, stream.end())
            or END_STREAM.match(self.content, stream.end() + len(stored)) is None
        ):
            raise ReadDifferentlyError("pyHanko reads another stream")

    def _get_object_from_stream(self, idnum: int, stmnum: int, idx: int) -> PdfObject:
        """Read an object out of an object stream, which is decoded once.

        Raises:
            ReadDifferentlyError: pyHanko reads another one.
        """
        if stmnum not in self._held:
            self._held[stmnum] = _hold(Reference(stmnum, 0, self).get_object())
        held = self._held[stmnum]
        container = Reference(idnum, 0, self)
        if not 0 <= idx < len(held.numbers) or held.numbers[idx] != idnum:
            null = NullObject()
            null.container_ref = container
            return null
        body = held.bodies[idx]
        value, _ = value_at(body, 0)
        plain = parse_plain(body, 0, container)
        if plain is not None:
            return _demand_same(plain[0], value)
        stream = io.BytesIO(body.lstrip(_BLANKS) + b"\n")
        return _demand_same(read_object(stream, container), value)


def _demand_same(found: PdfObject, value: Value) -> PdfObject:
    """Return an object with its strings corrected.

    Raises:
        ReadDifferentlyError: something else than a string differs from the value.
    """
    raw = found.raw_object if isinstance(found, DecryptedObjectProxy) else found
    right = corrected(raw, value)
    if right is None:
        raise ReadDifferentlyError("pyHanko reads another value")
    if right is raw:
        return found
    if isinstance(found, DecryptedObjectProxy):
        return DecryptedObjectProxy(right, found.handler)
    return right


def _hold(stream: PdfObject) -> _Held:
    """Cut an object stream into its objects.

    Raises:
        PdfReadError: it is none, or its header is not well-formed.

    Source: ISO 32000-2, 7.5.7.
    """
    if not isinstance(stream, StreamObject) or stream.get("/Type") != "/ObjStm":
        raise PdfReadError("no object stream")
    count, first = stream.raw_get("/N"), stream.raw_get("/First")
    if not isinstance(count, int) or not isinstance(first, int) or first < 0:
        raise PdfReadError("no object stream")
    data = stream.read_data(DecodePurpose.OBJECT_STREAM)
    head = integers_of(data[:first])
    if head is None or len(head) != 2 * count:
        raise PdfReadError("an object stream has another header than it says")
    starts = [first + each for each in head[1::2]]
    # Each object ends where the next one begins, in whatever order they are listed.
    edges = sorted({*starts, len(data)})
    following = dict(pairwise(edges))
    return _Held(
        tuple(head[::2]),
        tuple(data[start : following.get(start, start)] for start in starts),
    )
