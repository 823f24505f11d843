"""A PDF opened with qpdf, and revisions appended to it byte by byte.

    opened = SignedFile(pdf)
    again = opened.changed(opened.page, {b"/Rotate": b"90"})
    forged = opened.append({opened.page: again})

The form of a revision is right unless an argument of `append` says otherwise, so that
a test can be wrong in one place at a time.
"""

import io
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pikepdf
from pyhanko.pdf_utils import generic
from pyhanko.pdf_utils.reader import PdfFileReader

Offsets = Mapping[int, int]
"""Byte offset of each appended object, by number."""
Table = Callable[[Offsets], bytes]
"""Writes the subsections of a classic table, without the keyword `xref`."""

_STARTXREF: Final = re.compile(rb"startxref\s+(\d+)")
_PASSED_ON: Final = ("/Info", "/Encrypt", "/ID")


_NUMBER_MAX: Final = 4_194_304
"""Largest object number that every reader takes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of a cross-reference stream (ISO 32000-2, 7.5.8.3)."""

    number: int
    kind: int
    second: int
    third: int = 0


def table_of(offsets: Offsets, freed: Iterable[int] = ()) -> bytes:
    """Write one subsection an entry, and object 0 first."""
    out = bytearray(b"0 1\n0000000000 65535 f \n")
    rows = {number: (offset, 0, b"n") for number, offset in offsets.items()}
    rows |= dict.fromkeys(freed, (0, 1, b"f"))
    for number, (offset, generation, kind) in sorted(rows.items()):
        out += b"%d 1\n%010d %05d %s \n" % (number, offset, generation, kind)
    return bytes(out)


class SignedFile:
    """A file whose objects can be copied, changed and appended.

    Args:
        pdf: the whole file; an encrypted one must open with the empty password.
    """

    def __init__(self, pdf: bytes) -> None:
        self.pdf = pdf
        self.qpdf = pikepdf.open(io.BytesIO(pdf), inherit_page_attributes=False)
        self.catalog = self.qpdf.Root.objgen[0]
        self.form = self.qpdf.Root.AcroForm.objgen[0]
        self.tree = self.qpdf.Root.Pages.objgen[0]
        self.page, self.page2 = (each.obj.objgen[0] for each in self.qpdf.pages[:2])
        self.previous = int(_STARTXREF.findall(pdf)[-1])
        self.free = int(self.qpdf.trailer.Size)
        self.has_stream = pdf[self.previous : self.previous + 4] != b"xref"

    @cached_property
    def _reader(self) -> Callable[[generic.Reference], Any]:
        reader = PdfFileReader(io.BytesIO(self.pdf), strict=False)
        return reader.get_object

    @cached_property
    def _filter(self) -> Any:
        """The cipher of strings and streams; None for a file that is not encrypted."""
        if not self.qpdf.is_encrypted:
            return None
        reader = PdfFileReader(io.BytesIO(self.pdf), strict=False)
        reader.decrypt("")
        assert reader.security_handler is not None
        return reader.security_handler.get_stream_filter()

    def cipher(self, number: int, data: bytes) -> bytes:
        """Encrypt the bytes of a stream or string of an object, where needed."""
        if self._filter is None:
            return data
        return bytes(
            self._filter.encrypt(self._filter.derive_object_key(number, 0), data)
        )

    def string(self, number: int, text: bytes) -> bytes:
        """Write a string of an object, hexadecimal."""
        return b"<%s>" % self.cipher(number, text).hex().encode()

    def stream(
        self,
        number: int,
        data: bytes,
        entries: bytes = b"",
        length: bytes | None = None,
    ) -> bytes:
        """Write a stream object.

        Args:
            number: of the object.
            data: the stream's bytes before encryption.
            entries: further entries of its dictionary.
            length: the value of `/Length`; None: the true length.
        """
        data = self.cipher(number, data)
        length = b"%d" % len(data) if length is None else length
        return b"<<%s/Length %s>>stream\n%s\nendstream" % (entries, length, data)

    def look(self, number: int, data: bytes, box: bytes = b"[0 0 300 400]") -> bytes:
        """Write a form XObject that draws on a page of the contract."""
        return self.stream(
            number,
            data,
            b"/Type/XObject/Subtype/Form/BBox%s"
            b"/Resources<</Font<</F1 %d 0 R>>>>" % (box, self.number("Font", "F1")),
        )

    def get(self, number: int) -> pikepdf.Object:
        """Give an object by its number."""
        return self.qpdf.get_object(number, 0)

    def number(self, kind: str, name: str) -> int:
        """Give the number of a resource of page 1."""
        return int(self.get(self.page).Resources[f"/{kind}"][f"/{name}"].objgen[0])

    def field(self, name: str) -> int:
        """Give the number of a field of the form by its partial name.

        Raises:
            KeyError: there is none.
        """
        for each in self.qpdf.Root.AcroForm.Fields.as_list():
            if str(each.get("/T")) == name:
                return int(each.objgen[0])
        raise KeyError(name)

    @property
    def content(self) -> int:
        """The number of the content stream of page 1."""
        return int(self.get(self.page).Contents.objgen[0])

    def find(self, wanted: Callable[[pikepdf.Object], bool]) -> int:
        """Give the number of the first dictionary object that is wanted.

        Raises:
            LookupError: there is none.
        """
        for each in self.qpdf.objects:
            if isinstance(each, pikepdf.Dictionary) and wanted(each):
                return int(each.objgen[0])
        raise LookupError

    def offsets(self, number: int) -> list[int]:
        """Give the places where an object of that number begins, oldest first."""
        header = re.compile(rb"(?<=[\r\n])%d 0 obj\b" % number)
        return [found.start() for found in header.finditer(self.pdf)]

    def signed_fields(self) -> list[int]:
        """Give the numbers of the filled signature fields, in the form's order."""
        return [
            int(each.objgen[0])
            for each in self.qpdf.Root.AcroForm.Fields.as_list()
            if each.get("/FT") == "/Sig" and "/V" in each
        ]

    def signature_contents(self) -> list[bytes]:
        """Give the `/Contents` of the filled signature fields, with the padding."""
        reader = PdfFileReader(io.BytesIO(self.pdf), strict=False)
        if reader.encrypted:
            reader.decrypt("")
        return [each.pkcs7_content for each in reader.embedded_signatures]

    def written(self, value: Any, number: int) -> bytes:
        """Write a direct value inside an object, with its strings encrypted again."""
        if isinstance(value, pikepdf.Object) and value.is_indirect:
            return b"%d %d R" % value.objgen
        return self._direct(value, number)

    def _direct(self, value: Any, number: int) -> bytes:
        if isinstance(value, pikepdf.String):
            return self.string(number, bytes(value))
        if isinstance(value, pikepdf.Array):
            inner = b" ".join(self.written(each, number) for each in value.as_list())
            return b"[%s]" % inner
        if isinstance(value, pikepdf.Dictionary):
            return b"<<%s>>" % b" ".join(
                key.encode() + b" " + self.written(each, number)
                for key, each in value.items()
            )
        if isinstance(value, pikepdf.Object):
            return value.unparse()
        return b"null" if value is None else str(value).lower().encode()

    def entries(self, number: int) -> dict[bytes, bytes]:
        """Give the entries of a dictionary or stream object, each value as written."""
        if self._filter is None:
            # qpdf leaves references to undefined objects out, pyHanko keeps them.
            held = self._reader(generic.Reference(number, 0))
            return {key.encode(): _unparsed(held.raw_get(key)) for key in held}
        found = self.get(number)
        if isinstance(found, pikepdf.Stream):
            found = found.stream_dict
        return {
            key.encode(): self.written(value, number) for key, value in found.items()
        }

    def changed(
        self,
        number: int,
        entries: Mapping[bytes, bytes | None] | None = None,
        more: bytes = b"",
    ) -> bytes:
        """Write a dictionary object again.

        Args:
            number: of the object.
            entries: entries that are added or replaced; None removes one.
            more: bytes before the closing `>>`.
        """
        merged = self.entries(number) | dict(entries or {})
        return b"<<%s%s>>" % (
            b" ".join(k + b" " + v for k, v in merged.items() if v is not None),
            more,
        )

    def data(self, number: int) -> bytes:
        """Give the decoded bytes of a stream object."""
        return bytes(self.get(number).read_bytes())

    def redrawn(self, number: int, data: bytes) -> bytes:
        """Write a stream object again with the same entries and other bytes."""
        entries = self.entries(number)
        for key in (b"/Length", b"/Filter", b"/DecodeParms"):
            entries.pop(key, None)
        return self.stream(
            number, data, b" ".join(k + b" " + v for k, v in entries.items())
        )

    def listed(self, key: str, *numbers: int, page: int | None = None) -> bytes:
        """Write an array of a page with more references at its end."""
        held = self.get(page or self.page).get(f"/{key}")
        had = b"[]" if held is None else held.unparse(resolved=True)
        more = b" ".join(b"%d 0 R" % each for each in numbers)
        return had.rstrip()[:-1] + b" " + more + b"]"

    def form_with(self, *numbers: int) -> dict[int, bytes]:
        """Give the form again, with more fields at its end."""
        had = self.qpdf.Root.AcroForm.Fields.unparse(resolved=True)
        more = b" ".join(b"%d 0 R" % each for each in numbers)
        fields = had.rstrip()[:-1] + b" " + more + b"]"
        return {self.form: self.changed(self.form, {b"/Fields": fields})}

    def trailer(
        self,
        size: int,
        previous: int | None,
        root: bytes | None = None,
        changes: Mapping[bytes, bytes | None] | None = None,
    ) -> bytes:
        """Write the entries of a trailer that follows the file's last one."""
        held = self.qpdf.trailer
        entries: dict[bytes, bytes | None] = {
            b"/Size": b"%d" % size,
            b"/Root": root or b"%d 0 R" % self.catalog,
            b"/Prev": None if previous is None else b"%d" % previous,
        }
        for key in _PASSED_ON:
            if key in held:
                value = held[key]
                entries[key.encode()] = (
                    b"%d %d R" % value.objgen if value.is_indirect else value.unparse()
                )
        entries |= dict(changes or {})
        return b" ".join(k + b" " + v for k, v in entries.items() if v is not None)

    def append(
        self,
        objects: Mapping[int, bytes],
        *,
        freed: Sequence[int] = (),
        unlisted: Sequence[int] = (),
        table: Table | None = None,
        previous: int | None = -1,
        root: bytes | None = None,
        trailer: Mapping[bytes, bytes | None] | None = None,
        more: bytes = b"",
        shift: int = 0,
        generation: int = 0,
        classic: bool = False,
        end: bytes = b"%%EOF\n",
    ) -> bytes:
        """Append a revision.

        Args:
            objects: bodies of new or replaced objects, by number.
            freed: numbers that become free.
            unlisted: numbers among `objects` that the section does not list.
            table: writes a classic table; None: a section that lists every object.
            previous: value of `/Prev`; -1: the true value, None: no such entry.
            root: value of `/Root`; None: the same catalog.
            trailer: entries that are added or replaced; None removes one.
            more: bytes at the end of the trailer dictionary.
            shift: what is added to the true value of `startxref`.
            generation: of the objects, in the file and in the section.
            classic: write a classic table even if the file has streams.
            end: what follows the value of `startxref`.
        """
        out, offsets = self.bodies(objects, generation)
        previous = self.previous if previous == -1 else previous
        listed = {n: at for n, at in offsets.items() if n not in unlisted}
        size = max([self.free, *(n + 1 for n in objects)])
        if self.has_stream and not classic and table is None:
            rows = [Row(n, 1, at, generation) for n, at in listed.items()]
            rows += [Row(n, 0, 0, 1) for n in freed]
            entries = self.trailer(size + 1, previous, root, trailer) + more
            return self.with_stream(
                out, rows, entries, number=size, shift=shift, end=end
            )
        start = len(out)
        body = table(listed) if table else table_of(listed, freed)
        if table is None and generation:
            body = body.replace(b" 00000 n", b" %05d n" % generation)
        out += b"xref\n%strailer\n<<%s%s>>\n" % (
            body, self.trailer(size, previous, root, trailer), more,
        )  # fmt: skip
        return bytes(out + b"startxref\n%d\n%s" % (start + shift, end))

    def bodies(
        self, objects: Mapping[int, bytes], generation: int = 0
    ) -> tuple[bytearray, dict[int, int]]:
        """Append objects, and give the file so far and the place of each."""
        out = bytearray(self.pdf if self.pdf.endswith(b"\n") else self.pdf + b"\n")
        offsets = {}
        for number, body in sorted(objects.items()):
            offsets[number] = len(out)
            out += b"%d %d obj\n%s\nendobj\n" % (number, generation, body)
        return out, offsets

    def append_rows(
        self,
        objects: Mapping[int, bytes],
        rows: Callable[[Offsets], Sequence[Row]],
        *,
        more: bytes = b"",
        widths: tuple[int, ...] = (1, 4, 2),
        number: int | None = None,
        index: bytes | None = None,
    ) -> bytes:
        """Append a revision with a cross-reference stream.

        Args:
            objects: bodies of new or replaced objects, by number.
            rows: gives the section's entries.
            more: further entries of the stream's dictionary.
            widths: value of `/W`.
            number: of the stream; None: a free one.
            index: value of `/Index`; None: one range an entry.
        """
        out, offsets = self.bodies(objects)
        size = max([self.free, *(n + 1 for n in objects)])
        number = size if number is None else number
        listed = rows(offsets)
        # Readers repair a file whose /Size leaves out a number that is listed.
        size = max([size, *(row.number for row in listed if row.number <= _NUMBER_MAX)])
        entries = self.trailer(size + 1, self.previous) + more
        return self.with_stream(
            out, listed, entries, number=number, widths=widths, index=index
        )

    @staticmethod
    def with_stream(
        out: bytearray,
        rows: Sequence[Row],
        entries: bytes,
        *,
        number: int,
        widths: tuple[int, ...] = (1, 4, 2),
        index: bytes | None = None,
        shift: int = 0,
        end: bytes = b"%%EOF\n",
    ) -> bytes:
        """Append a cross-reference stream that lists itself."""
        start = len(out)
        rows = sorted([*rows, Row(number, 1, start)], key=lambda row: row.number)
        if index is None:
            index = b" ".join(b"%d 1" % row.number for row in rows)
        data = b"".join(_packed(row, widths) for row in rows)
        packed = zlib.compress(data)
        out += (
            b"%d 0 obj\n<</Type/XRef/W[%s]/Index[%s]%s/Filter/FlateDecode/Length %d>>"
            b"stream\n%s\nendstream\nendobj\nstartxref\n%d\n%s"
            % (
                number, b" ".join(b"%d" % each for each in widths), index, entries,
                len(packed), packed, start + shift, end,
            )
        )  # fmt: skip
        return bytes(out)

    def object_stream(
        self,
        number: int,
        bodies: Sequence[tuple[int, bytes]],
        entries: bytes = b"",
        lead: bytes = b"",
    ) -> bytes:
        """Write an object stream (ISO 32000-2, 7.5.7).

        Args:
            number: of the stream.
            bodies: number and body of each object in it.
            entries: further entries of its dictionary.
            lead: bytes between the list of offsets and the first object.
        """
        heads, at = b"", len(lead)
        for each, body in bodies:
            heads += b"%d %d " % (each, at)
            at += len(body) + 1
        data = heads + lead + b"".join(body + b"\n" for _, body in bodies)
        return self.stream(
            number,
            data,
            b"/Type/ObjStm/N %d/First %d%s" % (len(bodies), len(heads), entries),
        )


def _unparsed(value: generic.PdfObject) -> bytes:
    out = io.BytesIO()
    value.write_to_stream(out)
    return out.getvalue()


def _packed(row: Row, widths: tuple[int, ...]) -> bytes:
    values = (row.kind, row.second, row.third, 0)
    return b"".join(
        struct.pack(">Q", value)[-width:] if width else b""
        for value, width in zip(values, widths, strict=False)
    )
