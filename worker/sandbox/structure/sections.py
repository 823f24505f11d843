"""Cross-reference tables and streams.

Source: ISO 32000-2, 7.5.4, 7.5.5 and 7.5.8.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from worker.pades.pdf.integers import integers_of
from worker.sandbox.structure.ambiguity import AmbiguityKind, Findings, Steps
from worker.sandbox.structure.objects import IndirectObject, ObjectReader
from worker.sandbox.structure.streams import AmbiguousError, UnreadableError, decoded
from worker.sandbox.structure.tokens import (
    END,
    SPACE,
    TokenReader,
    after_blanks,
    array_at,
    integer_at,
    name_at,
    reference_at,
)

_TABLE: Final = re.compile(rb"xref[\t\n\f\r ]{1,4}+(?=\d)")
# qpdf and MuPDF give up on a longer line.
_HEADER: Final = re.compile(rb"(\d{1,10}) (\d{1,10})[ \t]{0,2}(?:\r\n|\n|\r)")
_ROW_BYTES: Final = 20
_ROWS: Final = re.compile(rb"(?:\d{10} \d{5} [nf](?: \n| \r|\r\n))*+")
_TRAILER: Final = re.compile(SPACE + rb"trailer(?=" + SPACE + rb"<<)")
_NULL: Final = re.compile(SPACE + rb"null" + END)
_STEPS_A_ROW: Final = 4
_SEARCH_BYTES: Final = 65_536
_TYPES: Final = (0, 1, 2)
_WIDTHS: Final = 3
_WIDEST: Final = 8
_WIDEST_TYPE: Final = 4  # Poppler's limit
_NUMBER_MAX: Final = 4_194_304
"""Largest object number, and PDFium's limit. Poppler and qpdf repair a file that has
far larger ones (ISO 32000-2, annex C, has 8,388,607)."""


class Entry(NamedTuple):
    """One cross-reference entry.

    Args:
        kind: 0 (free), 1 (at an offset) or 2 (in an object stream).
        where: offset, or number of the object stream.
        detail: generation, or index in the object stream.
        at: offset of the entry in the file, or of the stream that holds it.
    """

    kind: int
    where: int
    detail: int
    at: int


@dataclass(slots=True)
class Section:
    """One section of the cross-references.

    Args:
        at: offset.
        end: offset after it.
        entries: by number.
        number: of the cross-reference stream; None for a table.
        previous: value of `/Prev`; None if there is none.
        hybrid: value of `/XRefStm`; None if there is none.
        encryption: number and generation that `/Encrypt` refers to, or -1s for a direct
            dictionary; None if there is none.
        has_root: it has an indirect `/Root`.
        problems: `/Prev`, `/XRefStm` or `/Size` that is no integer.
        size: value of `/Size`; None if it is no integer.
        trailer: offset of the trailer's or stream's dictionary.
        hidden: the stream that `/XRefStm` points at.
        hidden_numbers: numbers that are free in the table and used in that stream.
    """

    at: int
    end: int
    entries: Mapping[int, Entry]
    number: int | None = None
    previous: int | None = None
    hybrid: int | None = None
    encryption: tuple[int, int] | None = None
    has_root: bool = False
    problems: list[bytes] = field(default_factory=list)
    size: int | None = None
    trailer: int = 0
    hidden: Self | None = None
    hidden_numbers: frozenset[int] = frozenset()


class SectionReader:
    """Reader of the sections of one file.

    Args:
        pdf: the whole file.
        objects: reader of its objects.
        findings: takes what is wrong with a section.
        steps: budget of the whole file.
    """

    def __init__(
        self, pdf: bytes, objects: ObjectReader, findings: Findings, steps: Steps
    ) -> None:
        self._pdf = pdf
        self._objects = objects
        self._findings = findings
        self._steps = steps

    def read(self, at: int) -> Section | None:
        """Read the section at an offset; None if none begins exactly there.

        Raises:
            UsedUpError: the budget is used up.
        """
        table = _TABLE.match(self._pdf, at)
        if table is not None:
            return self._table(at, table.end())
        found = self._objects.read(at)
        return None if found is None else self.stream(found)

    def stream(self, found: IndirectObject) -> Section | None:
        """Read a cross-reference stream; None if the object is none."""
        pdf, entries = self._pdf, found.tokens.entries
        if entries is None or found.content is None:
            return None
        if name_at(pdf, entries.get(b"Type")) != b"XRef":
            return None
        self._objects.report(found)
        section = Section(found.at, found.end, {}, found.number, trailer=found.at)
        self._describe(section, dict(entries))
        try:
            rows = decoded(pdf, dict(entries), found.raw(pdf), self._steps)
        except AmbiguousError as exc:
            self._say(section, f"have {exc}")
            return section
        except UnreadableError:
            self._say(section, "cannot be decoded")
            return section
        widths = _integers(pdf, entries.get(b"W"))
        if (
            widths is None
            or len(widths) != _WIDTHS
            or max(widths) > _WIDEST
            or widths[0] > _WIDEST_TYPE
            or not sum(widths)
        ):
            self._say(section, "has field widths that are not valid")
            return section
        ranges = _integers(pdf, entries.get(b"Index"))
        if ranges is None or len(ranges) % 2:
            if b"Index" in entries:
                self._say(section, "has an /Index that is not valid")
            ranges = [0, integer_at(pdf, entries.get(b"Size")) or 0]
        for first, count in zip(ranges[::2], ranges[1::2], strict=True):
            # An empty range counts: readers check its numbers all the same.
            self._check_number(first + max(count - 1, 0), section.at)
        self._steps.take(len(ranges))
        section.entries = self._rows(section, rows, widths, ranges)
        return section

    def _rows(
        self, section: Section, rows: bytes, widths: list[int], ranges: list[int]
    ) -> dict[int, Entry]:
        """Read the entries of a cross-reference stream."""
        width = sum(widths)
        count = len(rows) // width
        if len(rows) % width or count != sum(ranges[1::2]):
            self._say(section, "has another number of entries than it says")
        self._steps.take(_STEPS_A_ROW * count)
        first, second = widths[0], widths[0] + widths[1]
        entries: dict[int, Entry] = {}
        numbers = _numbers(ranges)
        for at, number in zip(range(0, count * width, width), numbers, strict=False):
            row = rows[at : at + width]
            kind = int.from_bytes(row[:first], "big") if first else 1
            entry = Entry(
                kind,
                int.from_bytes(row[first:second], "big"),
                int.from_bytes(row[second:], "big"),
                section.at,
            )
            if kind not in _TYPES:
                words = f"the entry of object {number} has the type {kind}"
                self._findings.add(AmbiguityKind.ENTRY_FORM, section.at, number, words)
            self._enter(entries, number, entry)
        return entries

    def _table(self, at: int, position: int) -> Section:
        """Read a table and its trailer."""
        pdf = self._pdf
        entries: dict[int, Entry] = {}
        section = Section(at, position, entries)
        while (header := _HEADER.match(pdf, position)) is not None:
            first, count = int(header[1]), int(header[2])
            start = header.end()
            # An empty subsection counts: readers check its numbers all the same.
            self._check_number(first + max(count - 1, 0), header.start())
            rows = _ROWS.match(pdf, start, start + count * _ROW_BYTES)
            found = 0 if rows is None else len(rows[0]) // _ROW_BYTES
            self._steps.take(1 + _STEPS_A_ROW * found)
            self._enter_rows(entries, first, start, found)
            position = section.end = start + found * _ROW_BYTES
            if found < count:
                words = "a cross-reference table has an entry of another form"
                self._findings.add(AmbiguityKind.ENTRY_FORM, position, None, words)
                break
        trailer = _TRAILER.match(pdf, position)
        if trailer is None:
            words = "a cross-reference table does not end with its trailer"
            self._findings.add(AmbiguityKind.ENTRY_FORM, position, None, words)
            # As qpdf does, for what else the revision says.
            start = pdf.find(b"trailer", position, position + _SEARCH_BYTES)
            self._steps.take(_SEARCH_BYTES // 64)
            trailer = _TRAILER.match(pdf, start) if start >= 0 else None
        if trailer is None:
            self._say(section, "has no trailer", AmbiguityKind.TRAILER)
            return section
        tokens = TokenReader(pdf, self._steps).read(trailer.end())
        section.end, section.trailer = tokens.end, trailer.start()
        for fault in tokens.faults:
            words = f"the trailer {fault.words}"
            self._findings.add(fault.kind, fault.at, None, words)
        self._describe(section, dict(tokens.entries or {}))
        return section

    def _enter_rows(
        self, entries: dict[int, Entry], first: int, start: int, count: int
    ) -> None:
        """Enter rows of a table that have the right form."""
        pdf = self._pdf
        for row in range(count):
            at = start + row * _ROW_BYTES
            kind = 1 if pdf[at + 17] == ord("n") else 0
            entry = Entry(kind, int(pdf[at : at + 10]), int(pdf[at + 11 : at + 16]), at)
            # pdf.js and Poppler take such a subsection for one that begins at 0.
            if row == 0 and first == 1 and kind == 0:
                words = "a free first entry of object 1 may be read as object 0"
                self._findings.add(AmbiguityKind.ENTRY_FORM, at, 1, words)
            self._enter(entries, first + row, entry)

    def _enter(self, entries: dict[int, Entry], number: int, entry: Entry) -> None:
        """Enter one; report a number that is there already."""
        self._check_number(number, entry.at)
        if number == 0:  # head of the free list
            # pdf.js repairs a file that has it in use, at whatever offset.
            if entry.kind:
                words = "object 0 is listed as used"
                self._findings.add(AmbiguityKind.ENTRY_FORM, entry.at, 0, words)
            return
        if entry.kind == 1 and entry.where:
            place = after_blanks(self._pdf, entry.where)
            if place != entry.where:
                entry = entry._replace(where=place)
        if number in entries:
            words = f"one section lists object {number} twice"
            self._findings.add(AmbiguityKind.LISTED_TWICE, entry.at, number, words)
        entries[number] = entry

    def _describe(self, section: Section, entries: dict[bytes, int]) -> None:
        """Read what the trailer says of other sections and of the document."""
        pdf = self._pdf
        section.has_root = reference_at(pdf, entries.get(b"Root")) is not None
        if b"Encrypt" in entries and not _NULL.match(pdf, entries[b"Encrypt"]):
            encryption = reference_at(pdf, entries[b"Encrypt"])
            section.encryption = encryption or (-1, -1)
        section.previous = integer_at(pdf, entries.get(b"Prev"))
        section.hybrid = integer_at(pdf, entries.get(b"XRefStm"))
        for key, value in (
            (b"Prev", section.previous),
            (b"XRefStm", section.hybrid),
        ):
            if key in entries and value is None:
                section.problems.append(key)
        # Without any, readers repair the file.
        size = section.size = integer_at(pdf, entries.get(b"Size"))
        if size is None or size > _NUMBER_MAX + 1:
            section.problems.append(b"Size")

    def _check_number(self, number: int, at: int) -> None:
        """Report a number that is too large for some readers."""
        if number > _NUMBER_MAX:
            words = f"the cross-references list object {number}, a number too large"
            self._findings.add(AmbiguityKind.ENTRY_FORM, at, number, words)

    def _say(
        self,
        section: Section,
        words: str,
        kind: AmbiguityKind = AmbiguityKind.ENTRY_FORM,
    ) -> None:
        named = f"the cross-references at byte {section.at} {words}"
        self._findings.add(kind, section.at, section.number, named)


def _integers(data: bytes, at: int | None) -> list[int] | None:
    """Return the integers of a flat array; None if it is none."""
    listed = array_at(data, at)
    if listed is None:
        return None
    return integers_of(listed)


def _numbers(ranges: list[int]) -> Iterator[int]:
    """Yield the numbers of an `/Index`; the caller stops at the last entry."""
    for first, count in zip(ranges[::2], ranges[1::2], strict=True):
        yield from range(first, first + count)
