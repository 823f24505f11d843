"""Revisions appended byte by byte, for what is wrong in just one place.

revision = Appended(pdf)
revision.add(4, CONTENT)
forged = revision.table(shift_prev=1)
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

_STARTXREF: Final = re.compile(rb"startxref\s+(\d+)")
_SIZE: Final = 1_000

Row = tuple[int, int, int]
"""Type, offset or object stream, generation or index."""


class Appended:
    """One revision after the end of a file.

    Args:
        pdf: the file.
        size: what `/Size` is at least; one more than the greatest number, if that is
            more.
    """

    def __init__(self, pdf: bytes, size: int = _SIZE) -> None:
        self.least_size = size
        self.out = bytearray(pdf if pdf.endswith(b"\n") else pdf + b"\n")
        self.rows: dict[int, bytes] = {}
        self.entries: dict[int, Row] = {}
        self.previous = int(_STARTXREF.findall(pdf)[-1])

    @property
    def size(self) -> int:
        """Value of `/Size` for what is listed."""
        return max(self.least_size, *(number + 1 for number in (0, *self.entries)))

    def add(self, number: int, body: bytes, generation: int = 0) -> int:
        """Write an object and list it; return its offset."""
        at = self.write(number, body, generation)
        self.list(number, at, generation)
        return at

    def write(self, number: int, body: bytes, generation: int = 0) -> int:
        """Write an object without listing it; return its offset."""
        at = len(self.out)
        self.out += b"%d %d obj\n%s\nendobj\n" % (number, generation, body)
        return at

    def list(
        self, number: int, at: int, generation: int = 0, kind: bytes = b"n"
    ) -> None:
        """List a number."""
        self.rows[number] = b"%010d %05d %s \n" % (at, generation, kind)
        self.entries[number] = (1 if kind == b"n" else 0, at, generation)

    def hold(self, number: int, objects: Mapping[int, bytes], **odd: bytes) -> int:
        """Write an object stream, and list it and its objects.

        Args:
            number: of the stream.
            objects: in it.
            odd: `header`, in place of the right one; `entries` of the dictionary.
        """
        parts, header, position = [], [], 0
        for index, (inner, body) in enumerate(objects.items()):
            header.append(b"%d %d" % (inner, position))
            parts.append(body + b" ")
            position += len(body) + 1
            self.entries[inner] = (2, number, index)
        first = odd.get("header", b" ".join(header)) + b" "
        data = zlib.compress(first + b"".join(parts))
        entries = odd.get("entries", b"")
        body = (
            b"<</Type/ObjStm/N %d/First %d/Filter/FlateDecode/Length %d%s>>"
            b"stream\n%s\nendstream"
            % (len(objects), len(first), len(data), entries, data)
        )
        return self.add(number, body)

    def table(
        self,
        *,
        more: bytes = b"",
        trailer: bytes = b"",
        root: bytes = b"/Root 1 0 R",
        prev: bytes | None = None,
        shift: int = 0,
        end: bytes = b"",
    ) -> bytes:
        """Return the file with a table for what was listed.

        Args:
            more: subsections after the others.
            trailer: entries of the trailer, besides the usual ones.
            root: in place of the usual entry.
            prev: in place of the right entry.
            shift: added to `startxref`.
            end: follows the end-of-file marker.
        """
        start = len(self.out)
        out = bytearray(self.out) + b"xref\n"
        for number, row in sorted(self.rows.items()):
            out += b"%d 1\n%s" % (number, row)
        usual = b"/Prev %d" % self.previous
        out += more + b"trailer\n<</Size %d%s%s%s>>\n" % (
            self.size,
            root,
            usual if prev is None else prev,
            trailer,
        )
        return bytes(out + b"startxref\n%d\n%%%%EOF\n%s" % (start + shift, end))

    def stream(
        self,
        number: int,
        *,
        more: Sequence[tuple[int, Row]] = (),
        trailer: bytes = b"",
        root: bytes = b"/Root 1 0 R",
        starts: bool = True,
    ) -> bytes:
        """Return the file with a cross-reference stream for what was listed.

        Args:
            number: of the stream, which it lists.
            more: rows after the others.
            trailer: entries of the dictionary, besides the usual ones.
            root: in place of the usual entry.
            starts: whether `startxref` follows.
        """
        start = len(self.out)
        rows = [*sorted(self.entries.items()), (number, (1, start, 0)), *more]
        data = b"".join(
            bytes([kind]) + where.to_bytes(4, "big") + detail.to_bytes(2, "big")
            for _, (kind, where, detail) in rows
        )
        index = b" ".join(b"%d 1" % listed for listed, _ in rows)
        size = max(self.size, number + 1)
        self.out += (
            b"%d 0 obj\n<</Type/XRef/W[1 4 2]/Index[%s]/Size %d%s/Prev %d"
            b"/Length %d%s>>stream\n%s\nendstream\nendobj\n"
            % (number, index, size, root, self.previous, len(data), trailer, data)
        )
        if starts:
            self.out += b"startxref\n%d\n%%%%EOF\n" % start
        return bytes(self.out)
