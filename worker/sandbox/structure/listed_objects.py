"""Objects that the cross-references list.

Source: ISO 32000-2, 7.3.8, 7.5.4, 7.5.7 and 7.5.8.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from worker.sandbox.structure.ambiguity import AmbiguityKind, Findings, Steps
from worker.sandbox.structure.history import History, Listing, in_use
from worker.sandbox.structure.object_streams import ObjectStream, ObjectStreamReader
from worker.sandbox.structure.objects import HEADER, IndirectObject, ObjectReader
from worker.sandbox.structure.sections import Entry, Section
from worker.sandbox.structure.tokens import BLANK, END, integer_at, name_at
from worker.sandbox.structure.values import Value, value_at

_INTEGER: Final = re.compile(BLANK + rb"*+(\d{1,18})" + BLANK + rb"++endobj" + END)
_REFERENCE: Final = re.compile(
    rb"(?<![0-9])(\d{1,10})" + BLANK + rb"++0" + BLANK + rb"++R" + END
)
STREAM: Final = object()
"""Stands for the value of a stream."""


class ListedObjects:
    """The listed objects of one file.

    Args:
        pdf: the whole file.
        chain: sections, the oldest first.
        history: entries of every number.
        objects: reader of the file's objects.
        streams: reader of its object streams.
        findings: takes what is wrong.
        steps: budget of the whole file.
    """

    def __init__(
        self,
        pdf: bytes,
        chain: Sequence[Section],
        history: History,
        objects: ObjectReader,
        streams: ObjectStreamReader,
        findings: Findings,
        steps: Steps,
    ) -> None:
        self._pdf = pdf
        self._chain = chain
        self.history = history
        self.objects = objects
        self._streams = streams
        self._findings = findings
        self._steps = steps
        self._ranks: dict[int, int] = {}
        self._held: dict[int, ObjectStream | None] = {}
        self._resolves = False
        self.entries_at: dict[int, int] = {}
        """By the offset of an object, the offset of the first entry that lists it."""
        objects.length_of = self._length_of

    def check(self) -> None:
        """Read every listed object, and report what is wrong with entries and objects.

        Raises:
            UsedUpError: the budget is used up.
        """
        placed = [
            (number, entry, rank)
            for rank, section in zip(self.history.ranks, self._chain, strict=True)
            for number, entry in section.entries.items()
            if entry.kind == 1 and entry.where
        ]
        for _, entry, rank in placed:
            self._ranks.setdefault(entry.where, rank)
            self.entries_at.setdefault(entry.where, entry.at)
        for number, entry, rank in placed:
            self._check_place(number, entry, rank)
        for at in self._ranks:
            found = self.objects.read(at)
            if found is not None:
                self.objects.report(found)
                self._check_later_lengths(found)
        checked: set[int] = set()
        for rank, section in zip(self.history.ranks, self._chain, strict=True):
            self._check_streams(section, rank, checked)
        self._check_unused_streams()
        for number, listings in self.history.items():
            if len(listings) > 1:
                self._check_generations(number, listings)
        self._check_hidden()
        self._check_section_numbers()
        self._check_references()

    def values(self) -> Iterator[tuple[bytes, int, int]]:
        """Yield the values of the last revision's objects, without their streams.

        Each with the bytes that hold it, and its offsets in them, from and to. Objects
        that cannot be read are left out.

        Raises:
            UsedUpError: the budget is used up.
        """
        for number, listings in self.history.items():
            entry = listings[-1].entry
            place = self.place(number, entry) if in_use(entry) else None
            if place is not None:
                yield place

    def place(self, number: int, entry: Entry) -> tuple[bytes, int, int] | None:
        """Return what holds an object's value, and from and to where in it.

        Args:
            number: of the object.
            entry: one of the last revision.

        Raises:
            UsedUpError: the budget is used up.
        """
        if entry.kind == 1:
            found = self.objects.read(entry.where)
            if found is None or found.number != number:
                return None
            return self._pdf, found.tokens.at, found.tokens.end
        held = self._object_stream(entry.where, None)
        if held is None or entry.detail >= len(held.starts):
            return None
        ends = [*held.starts[entry.detail + 1 :][:1], len(held.content)]
        return held.content, held.starts[entry.detail], ends[0]

    def content(self, entry: Entry) -> tuple[bytes, bytes | None] | None:
        """Return the bytes of an object's value and of its stream, as read before.

        Args:
            entry: one of the last revision.
        """
        if entry.kind == 1:
            found = self.objects.read(entry.where)
            if found is None:
                return None
            start, stop = found.tokens.at, found.tokens.end
            stream = None if found.content is None else found.raw(self._pdf)
            return self._pdf[start:stop], stream
        held = self._object_stream(entry.where, None)
        if held is None or entry.detail >= len(held.starts):
            return None
        bounds = [*held.starts, len(held.content)]
        start, stop = bounds[entry.detail], bounds[entry.detail + 1]
        return held.content[start:stop], None

    def value(self, number: int, entry: Entry) -> Value:
        """Return an object's value; `STREAM` for a stream, None for what is none.

        Args:
            number: of the object.
            entry: one of the last revision.
        """
        if entry.kind == 1:
            found = self.objects.read(entry.where)
            if found is not None and found.content is not None:
                return STREAM
        place = self.place(number, entry)
        if place is None:
            return None
        try:
            return value_at(*place[:2])[0]
        except ValueError:
            return None

    def _check_place(self, number: int, entry: Entry, rank: int) -> None:
        """Check that an entry points exactly at its object."""
        found = self.objects.read(entry.where)
        add = self._findings.add
        if found is None or found.number != number:
            words = f"an entry does not point at object {number}"
            add(AmbiguityKind.WRONG_OFFSET, entry.at, number, words)
        elif found.generation != entry.detail:
            words = f"an entry gives object {number} another generation than it has"
            add(AmbiguityKind.WRONG_GENERATION, entry.at, number, words)
        elif found.at > self.history.ends[rank]:
            words = f"object {number} is after the revision that lists it"
            add(AmbiguityKind.WRONG_OFFSET, found.at, number, words)

    def _length_of(self, number: int, at: int) -> int | None:
        """Return the integer that a stream's `/Length` refers to."""
        entry = self.history.entry(number, self._ranks.get(at))
        return None if entry is None else self._integer(number, entry, at)

    def _integer(self, number: int, entry: Entry, at: int) -> int | None:
        """Return the integer that an entry's object is; None if it is none."""
        pdf = self._pdf
        if entry.kind == 1:
            header = HEADER.match(pdf, entry.where) if entry.where else None
            if header is None or int(header[1]) != number:
                return None
            value = _INTEGER.match(pdf, header.end())
            return None if value is None else int(value[1])
        if entry.kind == 0 or self._resolves:
            # An object stream whose length is in an object stream is not resolved.
            return None
        self._resolves = True
        try:
            held = self._object_stream(entry.where, self._ranks.get(at))
        finally:
            self._resolves = False
        if held is None or entry.detail >= len(held.starts):
            return None
        return integer_at(held.content, held.starts[entry.detail])

    def _check_later_lengths(self, found: IndirectObject) -> None:
        """Check that no later revision changes a length under its stream."""
        if found.length_number is None or found.content is None:
            return
        length = found.content[1] - found.content[0]
        first = self._ranks[found.at]
        listings = self.history.of(found.length_number)
        self._steps.take(len(listings))
        for rank, entry in listings:
            if rank <= first:
                continue
            stream = self.history.entry(found.number, rank)
            if stream is None or stream.kind != 1 or stream.where != found.at:
                continue
            if self._integer(found.length_number, entry, entry.where) != length:
                words = f"changes the length of stream {found.number}"
                self._findings.add(
                    AmbiguityKind.STREAM_LENGTH,
                    entry.at,
                    found.number,
                    f"object {found.length_number} {words}",
                )

    def _object_stream(self, number: int, rank: int | None) -> ObjectStream | None:
        """Return the object stream that a number is in a revision; None if none."""
        entry = self.history.entry(number, rank)
        if entry is None or entry.kind != 1 or not entry.where:
            return None
        if entry.where not in self._held:
            found = self.objects.read(entry.where)
            self._held[entry.where] = None
            if found is not None and found.number == number:
                self._held[entry.where] = self._streams.read(found)
        return self._held[entry.where]

    def _check_streams(self, section: Section, rank: int, checked: set[int]) -> None:
        """Check the entries of one section that point into object streams.

        Args:
            section: it.
            rank: its revision.
            checked: offsets of the streams whose other objects are checked.
        """
        by_stream: dict[int, list[tuple[int, Entry]]] = defaultdict(list)
        for number, entry in section.entries.items():
            if entry.kind == 2:  # noqa: PLR2004 (in an object stream)
                by_stream[entry.where].append((number, entry))
        for holder, inner in by_stream.items():
            held = self._object_stream(holder, rank)
            numbers = () if held is None else held.numbers
            for number, entry in inner:
                index = entry.detail
                if index >= len(numbers) or numbers[index] != number:
                    words = f"object stream {holder} does not hold object {number}"
                    self._findings.add(
                        AmbiguityKind.OBJECT_STREAM,
                        entry.at,
                        number,
                        f"{words} where its entry says",
                    )
            self._check_replaced(holder, rank, inner)
            place = self.history.entry(holder, rank)
            if held is not None and place is not None and place.where not in checked:
                checked.add(place.where)
                self._check_others(holder, place.where, held)

    def _check_replaced(
        self, holder: int, rank: int, inner: Sequence[tuple[int, Entry]]
    ) -> None:
        """Check that no later revision replaces a stream whose objects are in use."""
        for later, entry in self.history.of(holder):
            self._steps.take(1 + (len(inner) if later > rank else 0))
            if later > rank and any(
                self.history.entry(number, later) is one for number, one in inner
            ):
                words = (
                    f"object stream {holder} is replaced while objects in it are used"
                )
                kind = AmbiguityKind.OBJECT_STREAM
                self._findings.add(kind, entry.at, holder, words)

    def _check_others(self, holder: int, at: int, held: ObjectStream) -> None:
        """Check that a stream holds no second object of a number listed elsewhere."""
        for index, number in enumerate(held.numbers):
            listings = self.history.of(number)
            self._steps.take(1 + len(listings))
            if not any(in_use(one.entry) for one in listings):
                continue
            if all(one.entry[:3] != (2, holder, index) for one in listings):
                words = f"object stream {holder} holds a second object {number}"
                kind = AmbiguityKind.UNLISTED_OBJECT
                self._findings.add(kind, at, number, words)

    def _check_unused_streams(self) -> None:
        """Check that object streams that no entry names hold no listed object.

        A reader that repairs a file takes the objects of all object streams.
        """
        for at in self._ranks:
            found = self.objects.read(at)
            entries = (found and found.tokens.entries) or {}
            if (
                found is None
                or at in self._held
                or name_at(self._pdf, entries.get(b"Type")) != b"ObjStm"
            ):
                continue
            held = self._streams.read(found)
            numbers = () if held is None else held.numbers
            used = next((one for one in numbers if self.history.is_used(one)), None)
            if used is not None:
                words = f"object stream {found.number}, which no entry names, holds"
                self._findings.add(
                    AmbiguityKind.HIDDEN_OBJECT,
                    at,
                    used,
                    f"{words} a second object {used}",
                )

    def _check_generations(self, number: int, listings: Sequence[Listing]) -> None:
        """Check that each generation follows from the one before.

        pyHanko keys objects by number and generation, other readers by number.
        """
        live = freed = before = None
        add = self._findings.add
        for _, entry in listings:
            if entry.kind == 0:
                if live is not None and entry.detail != live + 1:
                    words = (
                        f"object {number} is freed with a generation that is not next"
                    )
                    add(AmbiguityKind.WRONG_GENERATION, entry.at, number, words)
                live, freed, before = None, entry.detail, live
                continue
            if not in_use(entry):
                if live is not None:
                    words = f"an entry gives object {number} the offset 0"
                    add(AmbiguityKind.WRONG_OFFSET, entry.at, number, words)
                continue
            generation = entry.detail if entry.kind == 1 else 0
            expected = {live} if live is not None else {before, freed}
            if (live is not None or before is not None) and generation not in expected:
                words = f"object {number} gets a generation that is not next"
                add(AmbiguityKind.WRONG_GENERATION, entry.at, number, words)
            live = generation

    def _check_hidden(self) -> None:
        """Check that `/XRefStm` brings back no number that the table frees."""
        for rank, section in zip(self.history.ranks, self._chain, strict=True):
            for number in section.hidden_numbers:
                earlier = self.history.entry(number, rank - 1) if rank else None
                if earlier is not None and in_use(earlier):
                    words = f"a table frees object {number}, which /XRefStm lists"
                    kind = AmbiguityKind.HYBRID_CONFLICT
                    self._findings.add(kind, section.at, number, words)

    def _check_section_numbers(self) -> None:
        """Check that no cross-reference stream has the number of another object.

        MuPDF, Poppler and qpdf take the stream for that object, although its entry
        points elsewhere. The number of an older cross-reference stream may be reused.
        """
        sections = {
            one.at
            for each in self._chain
            for one in (each, each.hidden)
            if one is not None and one.number is not None
        }
        for rank, section in zip(self.history.ranks, self._chain, strict=True):
            for one in (section, section.hidden):
                if one is None or one.number is None:
                    continue
                entry = self.history.entry(one.number, rank)
                if entry is None or not in_use(entry):
                    continue
                if entry.kind != 1 or entry.where not in sections:
                    words = "a cross-reference stream has the number of object"
                    self._findings.add(
                        AmbiguityKind.SECTION_NUMBER,
                        one.at,
                        one.number,
                        f"{words} {one.number}",
                    )

    def _check_references(self) -> None:
        """Check that references give the generation that their number has.

        PDFium finds an object by its number alone, whatever the generation is.
        """
        odd = {
            number: listings[-1].entry
            for number, listings in self.history.items()
            if listings[-1].entry.kind == 1 and listings[-1].entry.detail
        }
        for at in self._ranks:
            found = self.objects.read(at)
            if found is None:
                continue
            for number, generation, place in found.tokens.references:
                self._check_reference(number, generation, place)
            if odd and self._is_live(found.number, at):
                ends = found.end if found.content is None else found.content[0]
                self._check_first_generation(self._pdf, (at, ends), at, odd)
        for at, held in self._held.items():
            if held is None:
                continue
            for number, generation in held.references:
                self._check_reference(number, generation, at)
            if odd:
                span = (0, len(held.content))
                self._check_first_generation(held.content, span, at, odd)

    def _is_live(self, number: int, at: int) -> bool:
        """Return whether the last revision has the object there."""
        entry = self.history.entry(number)
        return entry is not None and entry.kind == 1 and entry.where == at

    def _check_first_generation(
        self, data: bytes, span: tuple[int, int], at: int, odd: Mapping[int, Entry]
    ) -> None:
        """Check references by generation 0 to numbers that have another one now."""
        for match in _REFERENCE.finditer(data, *span):
            entry = odd.get(int(match[1]))
            if entry is not None:
                words = f"generation 0 of object {match[1].decode()} is no longer used"
                self._findings.add(
                    AmbiguityKind.WRONG_GENERATION,
                    max(at, entry.at),
                    int(match[1]),
                    f"{words}, but object at byte {at} refers to it",
                )

    def _check_reference(self, number: int, generation: int, at: int) -> None:
        """Check a reference by another generation than 0."""
        listings = self.history.of(number)
        self._steps.take(1 + len(listings))
        had = {
            one.entry.detail if one.entry.kind == 1 else 0
            for one in listings
            if in_use(one.entry)
        }
        if had and generation not in had:
            words = f"a reference gives object {number} a generation that it never had"
            self._findings.add(AmbiguityKind.WRONG_GENERATION, at, number, words)
