"""Structural reader of a whole PDF: finds what two readers may read differently.

    structure = read_structure(pdf)

A PDF is ambiguous if two conforming readers can reach different objects from the last
trailer's `/Root`. pyHanko and qpdf read one way through a file and say nothing of
others, so this reader accounts for the bytes: each listed object is read where its
entry points, and what lies between the listed objects is read as well.

Source: ISO 32000-2, 7.5.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from worker.sandbox.structure.ambiguity import (
    APPENDED_ONLY,
    Ambiguity,
    Findings,
    NoStepsError,
    Steps,
    UsedUpError,
)
from worker.sandbox.structure.bytes_between import BytesBetween
from worker.sandbox.structure.checked_reader import CheckedReader
from worker.sandbox.structure.drawn_streams import DrawnStreams, DrawnStreamsReader
from worker.sandbox.structure.file_end import read_end
from worker.sandbox.structure.history import History, in_use, read_chain
from worker.sandbox.structure.linearization import check_linearization
from worker.sandbox.structure.listed_objects import ListedObjects
from worker.sandbox.structure.object_streams import ObjectStreamReader
from worker.sandbox.structure.objects import ObjectReader
from worker.sandbox.structure.references import references_in
from worker.sandbox.structure.reread import (
    compare_contents,
    compare_places,
    compare_values,
)
from worker.sandbox.structure.sections import Section, SectionReader

STEPS: Final = 1_000_000
"""Budget of one file: about 50,000 objects, or two seconds of processor time."""


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Numbers that one section of the chain lists.

    Args:
        at: offset of the section.
        places: of the used ones, the offset of the object, or of the section if an
            object stream holds it.
        others: the free ones.
    """

    at: int
    places: dict[int, int]
    others: frozenset[int]


@dataclass(frozen=True, slots=True)
class References:
    """Numbers of a file's objects, and those that its last revision refers to.

    Args:
        listed: the greatest number that a section lists, be it free.
        greatest: of those, of the numbers below each `/Size`, and of all referred to.
        dangling: the least number that is referred to and is no object; None if there
            is none.
    """

    listed: int
    greatest: int
    dangling: int | None


@dataclass(frozen=True, slots=True)
class Structure:
    """Result of one reading.

    Args:
        ambiguities: sorted by place, at most 200. Of more than 100 that count
            everywhere, or in what is appended alone, the first and last fifty.
        examined: False if the budget was used up before the end, or a stream could not
            be decoded. The ambiguities found until then are there.
        used_up: the budget was used up.
    """

    ambiguities: tuple[Ambiguity, ...]
    examined: bool
    used_up: bool = False
    references: "References | None" = None
    """Where it was asked for, and nothing kept it from being read."""
    drawn: DrawnStreams | None = None
    """Likewise."""
    _numbers: tuple[_Numbers, ...] = field(default=(), repr=False)

    def is_defined(self, number: int, end: int) -> bool:
        """Return whether a number was an object in the revision that ends at a byte.

        Freed numbers, and entries with the offset 0, are no objects. The cost is
        linear in the number of revisions.

        Args:
            number: of the object.
            end: offset after the revision's last byte.
        """
        for section in self._numbers:
            if section.at >= end:
                continue
            if number in section.places:
                return section.places[number] < end
            if number in section.others:
                return False
        return False


def read_structure(
    pdf: bytes,
    opened: CheckedReader | None = None,
    *,
    steps: int = STEPS,
    appended_from: int = 0,
    follow: Collection[int] | None = None,
) -> Structure:
    """Read the whole file once, in linear time, and find what is ambiguous.

    Args:
        pdf: the whole file.
        opened: the same file, opened with its password; object streams of an encrypted
            file are examined only if it is given.
        appended_from: offset at which the kinds of `APPENDED_ONLY` begin to count;
            objects hidden before it are not searched.
        steps: budget; a token costs about one step, a byte of a stream almost nothing.
        follow: numbers of what pages name as their content, to look at the references
            of a file that is not ambiguous, and at its streams as well; None not to.
    """
    reading = _Reading(pdf, opened, steps, appended_from)
    examined, used_up = True, False
    references = drawn = None
    try:
        reading.run()
        if follow is not None:
            references = reading.references()
        if follow is not None and references is not None:
            drawn = reading.drawn(follow)
    except UsedUpError as exc:
        examined, used_up = False, isinstance(exc, NoStepsError)
    found = tuple(reading.findings.sorted())
    return Structure(found, examined, used_up, references, drawn, reading.numbers())


class _Reading:
    """One reading of one file."""

    def __init__(
        self, pdf: bytes, opened: CheckedReader | None, steps: int, appended_from: int
    ) -> None:
        self._pdf = pdf
        self._appended_from = appended_from
        self._opened = opened
        self._steps = Steps(steps)
        self.findings = Findings()
        self._chain: list[Section] = []
        self._listed: ListedObjects | None = None
        self._streams: ObjectStreamReader | None = None

    def run(self) -> None:
        """Read the file.

        Raises:
            UsedUpError: the budget is used up.
        """
        pdf, findings, steps = self._pdf, self.findings, self._steps
        objects = ObjectReader(pdf, findings, steps)
        sections = SectionReader(pdf, objects, findings, steps)
        end = read_end(pdf, findings)
        if end is None:
            return
        check_linearization(pdf, findings, steps)
        chain = read_chain(pdf, end.value, end.at, sections, findings)
        self._chain = chain
        oldest_first = chain[::-1]
        history = History(oldest_first)
        streams = ObjectStreamReader(pdf, self._opened, findings, steps)
        streams.encrypted = any(one.encryption for one in chain)
        listed = ListedObjects(
            pdf, oldest_first, history, objects, streams, findings, steps
        )
        listed.check()
        self._listed, self._streams = listed, streams
        between = BytesBetween(pdf, oldest_first, listed, sections, findings, steps)
        between.check(end, self._appended_from)
        opened, begin = self._opened, self._appended_from
        if opened is not None:
            compare_places(pdf, opened, history, findings, steps)
            compare_values(opened, oldest_first, begin, findings, steps)
        if all(one.kind in APPENDED_ONLY for one in findings.sorted()):
            if not streams.encrypted:
                opened = None
            elif opened is None:
                raise UsedUpError
            compare_contents(
                pdf, opened, history, listed.content, begin, findings, steps
            )

    def references(self) -> References | None:
        """Look at the references of the last revision; None for an ambiguous file.

        Raises:
            UsedUpError: the budget is used up.
        """
        listed = self._listed
        if listed is None or any(
            one.kind not in APPENDED_ONLY for one in self.findings.sorted()
        ):
            return None
        sizes = [one.size - 1 for one in self._chain if one.size]
        used = {
            number
            for number, listings in listed.history.items()
            if in_use(listings[-1].entry)
        }
        # A cross-reference stream is an object that nothing has to list.
        used |= {one.number for one in self._chain if one.number is not None}
        referred: set[int] = set()
        for data, start, end in listed.values():
            referred.update(references_in(data, start, end, self._steps))
        for one in self._chain[:1]:
            referred.update(
                references_in(self._pdf, one.trailer, one.end, self._steps)
                if one.number is None
                else ()
            )
        most = listed.history.greatest
        return References(
            listed=most,
            greatest=max(most, *sizes, *referred, 0),
            dangling=min(referred - used, default=None),
        )

    def drawn(self, contents: Collection[int]) -> DrawnStreams | None:
        """Look at the streams of the last revision; None for a file without objects.

        Args:
            contents: numbers of what pages name as their content.

        Raises:
            UsedUpError: the budget is used up.
        """
        if self._listed is None or self._streams is None:
            return None
        roots: set[int] = set()
        for one in self._chain[:1]:
            start, end = one.trailer, one.end
            if one.number is not None:
                found = self._listed.objects.read(one.at)
                if found is not None:
                    start, end = found.tokens.at, found.tokens.end
            roots.update(references_in(self._pdf, start, end, self._steps))
        reader = DrawnStreamsReader(
            self._pdf, self._listed, self._streams, self._steps, contents, roots
        )
        return reader.read()

    def numbers(self) -> tuple[_Numbers, ...]:
        """Return the numbers that the sections list, the newest section first."""
        return tuple(
            _Numbers(
                one.at,
                {
                    number: entry.where if entry.kind == 1 else one.at
                    for number, entry in one.entries.items()
                    if entry.kind and entry.where
                },
                frozenset(
                    number
                    for number, entry in one.entries.items()
                    if not (entry.kind and entry.where)
                ),
            )
            for one in self._chain
        )
