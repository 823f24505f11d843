"""Chain of cross-reference sections, and what it says of each number over time.

Source: ISO 32000-2, 7.5.6 and 7.5.8.4.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from worker.sandbox.structure.ambiguity import AmbiguityKind, Findings
from worker.sandbox.structure.sections import Entry, Section, SectionReader

_SECTIONS_MAX: Final = 10_000


class Listing(NamedTuple):
    """One entry of a number.

    Args:
        rank: revision of the entry, counted from 0.
        entry: it.
    """

    rank: int
    entry: Entry


def is_linearized(chain: Sequence[Section]) -> bool:
    """Return whether the two oldest sections are those of a linearized file.

    The first page's section is the first one in the file, and its `/Prev` points
    forward to the main section. `/Linearized` is not asked for: readers find their
    way without it (ISO 32000-2, Annex F).

    Args:
        chain: sections, the oldest first.
    """
    return len(chain) > 1 and chain[1].at < chain[0].at


def read_chain(
    pdf: bytes, start: int, start_at: int, sections: SectionReader, findings: Findings
) -> list[Section]:
    """Follow `/Prev` from the newest section.

    Args:
        pdf: the whole file.
        start: value of the last `startxref`.
        start_at: offset of that keyword.
        sections: reader of the file's sections.
        findings: takes what is wrong with the chain.

    Returns:
        The sections, the newest first.

    Raises:
        UsedUpError: the budget is used up.
    """
    newest = sections.read(start)
    if newest is None:
        words = "startxref does not point at cross-references"
        findings.add(AmbiguityKind.INEXACT_STARTXREF, start_at, None, words)
        return []
    chain = [newest]
    seen = {newest.at}
    while len(chain) < _SECTIONS_MAX:
        section = chain[-1]
        _demand_integers(section, findings)
        if section.hybrid is not None:
            _merge_hybrid(section, sections, findings)
        if section.previous is None:
            break
        previous = None
        if section.previous not in seen:
            previous = sections.read(section.previous)
        if previous is None:
            words = (
                f"/Prev {section.previous} does not point at earlier cross-references"
            )
            findings.add(AmbiguityKind.INEXACT_PREV, section.trailer, None, words)
            break
        # Forward to the oldest section only, and from the first one in the file.
        newer = chain[-2].at if len(chain) > 1 else len(pdf)
        if previous.at > section.at and (
            previous.previous is not None or newer < previous.at
        ):
            words = f"/Prev {section.previous} points forward"
            findings.add(AmbiguityKind.INEXACT_PREV, section.trailer, None, words)
        chain.append(previous)
        seen.add(previous.at)
    return chain


def _demand_integers(section: Section, findings: Findings) -> None:
    for key in section.problems:
        words = f"/{key.decode()} is no direct integer, or too large"
        findings.add(AmbiguityKind.INEXACT_PREV, section.trailer, None, words)


def _merge_hybrid(
    section: Section, sections: SectionReader, findings: Findings
) -> None:
    """Add the entries of the stream that a table names in `/XRefStm`."""
    hidden = sections.read(section.hybrid or 0)
    if hidden is None or hidden.number is None or section.number is not None:
        words = f"/XRefStm {section.hybrid} does not point at a cross-reference stream"
        findings.add(AmbiguityKind.INEXACT_PREV, section.trailer, None, words)
        return
    if hidden.previous not in {None, section.previous}:
        # pdf.js follows it, other readers do not (ISO 32000-2, 7.5.8.4).
        words = f"/Prev {hidden.previous} of the stream at /XRefStm is another one"
        findings.add(AmbiguityKind.INEXACT_PREV, section.trailer, None, words)
    merged = dict(section.entries)
    for number, entry in hidden.entries.items():
        shown = section.entries.get(number)
        if shown is None or (shown.kind == 0 and entry.kind):
            merged[number] = entry
        # pyHanko lets a free entry hide the generation before its own.
        hides = shown is not None and shown.kind == 0 and shown.detail == 1
        if shown is not None and (
            hides or (shown.kind == 1 and shown[:3] != entry[:3])
        ):
            words = f"the table and /XRefStm disagree about object {number}"
            findings.add(AmbiguityKind.HYBRID_CONFLICT, shown.at, number, words)
    section.hidden = hidden
    section.hidden_numbers = frozenset(
        number
        for number, shown in section.entries.items()
        if shown.kind == 0 and merged[number].kind
    )
    section.entries = merged


class History:
    """Entries of every number, the oldest first.

    Args:
        chain: sections, the oldest first.
    """

    def __init__(self, chain: Sequence[Section]) -> None:
        self._listings: dict[int, list[Listing]] = {}
        self.ranks: list[int] = []
        self.ends: list[int] = []
        self.hidden = frozenset[int]().union(*(one.hidden_numbers for one in chain))
        rank = -1
        for position, section in enumerate(chain):
            # The two sections of a linearized file are of one revision.
            if position != 1 or not is_linearized(chain):
                rank += 1
                self.ends.append(section.at)
            self.ranks.append(rank)
            self.ends[rank] = max(self.ends[rank], section.at)
            for number, entry in section.entries.items():
                self._listings.setdefault(number, []).append(Listing(rank, entry))

    def __contains__(self, number: int) -> bool:
        return number in self._listings

    @property
    def greatest(self) -> int:
        """The greatest number that has an entry; 0 if there is none."""
        return max(self._listings, default=0)

    def items(self) -> Iterator[tuple[int, list[Listing]]]:
        """Yield each number with its entries."""
        yield from self._listings.items()

    def of(self, number: int) -> Sequence[Listing]:
        """Return the entries of a number, the oldest first."""
        return self._listings.get(number, ())

    def entry(self, number: int, rank: int | None = None) -> Entry | None:
        """Return the entry that holds in a revision; None if there is none.

        Args:
            number: of the object.
            rank: of the revision; None for the last one.
        """
        listings = self.of(number)
        last = len(listings)
        if rank is not None:
            last = bisect_right(listings, rank, key=attrgetter("rank"))
        return listings[last - 1].entry if last else None

    def is_used(self, number: int) -> bool:
        """Return whether a section lists the number as an object."""
        return any(in_use(one.entry) for one in self.of(number))


def in_use(entry: Entry) -> bool:
    """Return whether an entry is one of an object.

    An offset of 0 is no object's: writers mean a free entry by it.
    """
    return entry.kind == 2 or (entry.kind == 1 and entry.where > 0)  # noqa: PLR2004 (the type)
