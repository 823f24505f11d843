"""Revisions that define each object of an open file; for confined jobs only."""

import re
from collections.abc import Iterator
from typing import Final

from pyhanko.pdf_utils.generic import Reference
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.pdf_utils.xref import ObjStreamRef, XRefSectionData

Place = int | ObjStreamRef | None
"""Offset in the file, object stream, or None for a free number."""

NEVER: Final = -1
"""Revision of a number that no cross-reference section lists."""

_TAIL_BYTES: Final = 2_048
_STARTXREF: Final = re.compile(rb"startxref\s{1,8}(\d{1,12})")


class ObjectHistory:
    """Revisions that define, change or free each object number.

    The number alone counts, since readers ignore the generation of a reference. An
    entry that repeats the place of the object is no change. An object in an object
    stream changes with that stream too.

    Args:
        reader: the open file.

    Source: ISO 32000-2, 7.5.4 and 7.5.8.
    """

    def __init__(self, reader: PdfFileReader) -> None:
        self._reader = reader
        self._revisions: dict[int, list[int]] = {}
        self._generations: dict[int, int] = {}
        places: dict[int, Place] = {}
        for revision in range(reader.total_revisions):
            section = reader.xrefs.get_xref_data(revision)
            for number, generation, place in _entries(section):
                # To free a number that was never used is no change either.
                if places.get(number) == place:
                    continue
                places[number] = place
                self._generations[number] = generation
                known = self._revisions.setdefault(number, [])
                if not known or known[-1] != revision:
                    known.append(revision)
        self._sections = {
            reader.xrefs.get_startxref_for_revision(revision): revision
            for revision in range(reader.total_revisions)
        }
        self._places = places

    def revision_at(self, pdf: bytes, end: int, revision: int) -> int:
        """Return the index of the newest revision in the beginning of the file.

        A linearized file has two cross-reference sections, and pyHanko takes the older
        one for the revision of a signature in it. The other is signed too, and readers
        use it.

        Args:
            pdf: the whole file.
            end: byte at which the beginning ends.
            revision: returned if no section is where the beginning says.

        Source: ISO 32000-2, 7.5.5 and annex F.
        """
        tail = _STARTXREF.findall(pdf, max(end - _TAIL_BYTES, 0), end)
        return self._sections.get(int(tail[-1]), revision) if tail else revision

    def revisions(self, number: int) -> list[int]:
        """Return the revisions that define, change or free a number, oldest first."""
        return self._revisions.get(number, [])

    def first(self, number: int) -> int:
        """Return the revision that lists a number first, or `NEVER`."""
        return self._revisions.get(number, (NEVER,))[0]

    def newest(self, number: int) -> int:
        """Return the last revision that changed a number, or `NEVER`."""
        own, place = self.last(number), self._places.get(number)
        if isinstance(place, ObjStreamRef):
            return max(own, self.last(place.obj_stream_id))
        return own

    def last(self, number: int) -> int:
        """Return the last revision that lists a number at a new place, or `NEVER`."""
        return self._revisions.get(number, (NEVER,))[-1]

    def place(self, number: int) -> Place:
        """Return the offset of an object or its object stream; None if it is free."""
        return self._places.get(number)

    def newest_redefinition(self, without: set[int]) -> int:
        """Return the last revision that changed an object of an earlier one.

        Args:
            without: numbers that do not count.

        Returns:
            `NEVER` if no object was changed.
        """
        return max(
            (
                newest
                for number, (first, *_) in self._revisions.items()
                if number not in without and (newest := self.newest(number)) > first
            ),
            default=NEVER,
        )

    def reference(self, number: int) -> Reference:
        """Return the reference by which pyHanko finds a number."""
        return Reference(number, self._generations.get(number, 0), self._reader)


def _entries(section: XRefSectionData) -> Iterator[tuple[int, int, Place]]:
    """Yield number, generation and place of each entry, those in use last."""
    if section.hybrid is not None:
        yield from _entries(section.hybrid.xref_data)
    for number in section.freed:
        yield number, 0, None
    for number, place in section.xrefs_in_objstm.items():
        yield number, 0, place
    for number, (generation, offset) in section.standard_xrefs.items():
        yield number, generation, offset
