"""Bytes between the listed objects: other objects, sections, ends of revisions.

Source: ISO 32000-2, 7.5.4 to 7.5.6.
"""

import re
from collections.abc import Sequence
from typing import Final

from worker.sandbox.structure.ambiguity import (
    AMBIGUITIES_MAX,
    AmbiguityKind,
    Findings,
    Steps,
)
from worker.sandbox.structure.file_end import START, FileEnd
from worker.sandbox.structure.history import is_linearized
from worker.sandbox.structure.listed_objects import ListedObjects
from worker.sandbox.structure.objects import IndirectObject
from worker.sandbox.structure.sections import Section, SectionReader
from worker.sandbox.structure.tokens import BLANK, SPACE

_SPACE: Final = re.compile(SPACE)
_NEXT: Final = re.compile(
    rb"(?<![0-9])\d{1,10}" + BLANK + rb"++\d{1,5}" + BLANK + rb"++obj|xref|startxref"
)
_BYTES_A_STEP: Final = 64
_OBJECT: Final = re.compile(rb"(?<!end)obj|trailer")
_GAP: Final = rb"(?:[\0\t\n\x0b\f\r ]++|%[^\r\n]*+)*+"
"""White space and comments; qpdf takes a vertical tab for white space."""
_TRAILER: Final = re.compile(rb"trailer" + _GAP + rb"<<")
_SPACES: Final = b"\0\t\n\x0b\f\r "
_DIGITS: Final = b"0123456789"
_BEFORE_BYTES: Final = 1_024
_DIGITS_MAX: Final = 10
_BYTES_A_HIDDEN_STEP: Final = 512
_SECTIONS_A_STEP: Final = 16


class BytesBetween:
    """The bytes of a file that no section accounts for.

    Args:
        pdf: the whole file.
        chain: sections, the oldest first.
        listed: the listed objects.
        sections: reader of the file's sections.
        findings: takes what is wrong.
        steps: budget of the whole file.
    """

    def __init__(
        self,
        pdf: bytes,
        chain: Sequence[Section],
        listed: ListedObjects,
        sections: SectionReader,
        findings: Findings,
        steps: Steps,
    ) -> None:
        self._pdf = pdf
        self._chain = chain
        self._listed = listed
        self._sections = sections
        self._findings = findings
        self._steps = steps
        self._starts: list[FileEnd] = []
        self._others: list[IndirectObject] = []
        self._skipped: list[Section] = []

    def check(self, end: FileEnd, appended_from: int) -> None:
        """Read what is between the listed objects, and report what is ambiguous.

        Args:
            end: the last `startxref`.
            appended_from: offset at which hidden objects begin to count.

        Raises:
            UsedUpError: the budget is used up.
        """
        position = 0
        for at, stop, introduced in self._intervals():
            if at < position:
                words = f"what is listed at byte {at} begins inside another object"
                self._findings.add(AmbiguityKind.OVERLAP, introduced, None, words)
            else:
                self._read(position, at)
            position = max(position, stop)
        self._read(position, len(self._pdf))
        self._check_skipped(end)
        self._check_others()
        self._check_hidden(appended_from)
        self._check_starts(end)
        self._check_trailers()

    def _intervals(self) -> list[tuple[int, int, int]]:
        """Return where listed objects and sections are: from, to, introduced at."""
        found: dict[int, tuple[int, int, int]] = {}
        for section in self._chain:
            for one in (section, section.hidden):
                if one is not None:
                    found[one.at] = (one.at, one.end, one.at)
        for at, entry_at in self._listed.entries_at.items():
            listed = self._listed.objects.read(at)
            if listed is not None and at not in found:
                found[at] = (at, listed.end, max(at, entry_at))
        return sorted(found.values())

    def _read(self, position: int, end: int) -> None:
        """Read the bytes from one offset to another."""
        pdf = self._pdf
        self._steps.take(1 + (end - position) // _BYTES_A_STEP)
        while True:
            blanks = _SPACE.match(pdf, position, end)
            position = position if blanks is None else blanks.end()
            if position >= end:
                return
            after = self._part(position, end)
            if after is None:
                words = f"the bytes at {position} belong to no object"
                kind = AmbiguityKind.UNKNOWN_BYTES
                self._findings.add(kind, position, None, words)
                following = _NEXT.search(pdf, position + 1, end)
                if following is None:
                    return
                after = following.start()
            self._steps.take(1)
            position = after

    def _check_hidden(self, begin: int) -> None:
        """Report objects and trailers within others: a reader that repairs finds them.

        Streams are searched as they are stored. Honest ones hold whole PDF files, so
        that this counts in what is appended only.
        """
        pdf = self._pdf
        self._steps.take((len(pdf) - begin) // _BYTES_A_HIDDEN_STEP)
        known = {
            pdf.find(b"trailer", one.trailer)
            for one in (*self._chain, *self._skipped)
            if one.number is None
        }
        starts = {at for at, _, _ in self._intervals()}
        starts |= {one.at for one in self._others} | {one.at for one in self._skipped}
        for start in (each for each in starts if each >= begin):
            if (found := self._listed.objects.read(start)) is not None:
                known.add(found.tokens.at - len(b"obj"))
        hidden: list[tuple[int, int | None]] = []
        for match in _OBJECT.finditer(pdf, begin):
            at = match.start()
            if at in known:
                continue
            self._steps.take(1)
            number = _number_before(pdf, at, self._steps)
            if match[0] == b"trailer":
                if _TRAILER.match(pdf, at) is not None:
                    hidden.append((at, None))
            elif number is not None:
                hidden.append((at, number))
        # As many as are kept: an attached file has thousands.
        half = AMBIGUITIES_MAX // 2
        for at, number in {*hidden[:half], *hidden[-half:]}:
            words = "a trailer is not at the end of cross-references"
            if number is not None:
                words = f"an object {number} is hidden within another one"
            self._findings.add(AmbiguityKind.HIDDEN_OBJECT, at, number, words)

    def _part(self, at: int, end: int) -> int | None:
        """Read one part; give the offset after it, or None if it is nothing known."""
        pdf = self._pdf
        start = START.match(pdf, at, end)
        if start is not None:
            self._starts.append(FileEnd(at, int(start[1])))
            return start.end()
        if pdf.startswith(b"xref", at):
            section = self._sections.read(at)
            if section is not None:
                self._skipped.append(section)
                return section.end
            return None
        found = self._listed.objects.read(at) if pdf[at : at + 1].isdigit() else None
        if found is None:
            return None
        section = self._sections.stream(found)
        if section is None:
            self._others.append(found)
        else:
            self._skipped.append(section)
        return max(found.end, at + 1)

    def _check_skipped(self, end: FileEnd) -> None:
        """Report sections that the chain leaves out, where it does so."""
        for skipped in self._skipped:
            self._steps.take(1 + len(self._chain) // _SECTIONS_A_STEP)
            at = max(end.at, skipped.at)
            for section in self._chain:
                previous = -1 if section.previous is None else section.previous
                if previous < skipped.at < section.at:
                    at = section.at
                    break
            words = f"the cross-references at byte {skipped.at} are left out"
            self._findings.add(AmbiguityKind.SKIPPED_SECTION, at, None, words)

    def _check_others(self) -> None:
        """Report objects that no section lists: a reader that repairs finds them."""
        # A section that is left out is reported once, not with each of its objects.
        elsewhere = {
            entry.where
            for section in self._skipped
            for entry in section.entries.values()
            if entry.kind == 1
        }
        for found in self._others:
            number = found.number
            if found.at in elsewhere:
                continue
            if self._listed.history.is_used(number):
                words = f"no section lists a second object {number}"
                kind = AmbiguityKind.UNLISTED_OBJECT
            else:
                words = f"no section lists object {number}"
                kind = AmbiguityKind.HIDDEN_OBJECT
            self._findings.add(kind, found.at, number, words)

    def _check_starts(self, end: FileEnd) -> None:
        """Check that each `startxref` points at a section of its own revision."""
        known = {one.at for one in (*self._chain, *self._skipped)}
        add = self._findings.add
        if end.at not in {one.at for one in self._starts}:
            words = "the last startxref is inside something else"
            add(AmbiguityKind.NOT_AT_END, end.at, None, words)
        main = self._chain[0].at if is_linearized(self._chain) else None
        before = -1
        for index, start in enumerate(self._starts):
            if index == 0 and main is not None and start.at < main:
                # The first one means nothing; the second points at the first section.
                continue
            if start.value not in known:
                words = f"startxref {start.value} does not point at cross-references"
                add(AmbiguityKind.INEXACT_STARTXREF, start.at, None, words)
            elif not before < start.value < start.at:
                words = f"startxref {start.value} points at another revision's section"
                add(AmbiguityKind.INEXACT_STARTXREF, start.at, None, words)
            before = start.at

    def _check_trailers(self) -> None:
        """Check the trailers that revisions end with."""
        values = {one.value for one in self._starts}
        ends = [one for one in self._chain if one.at in values]
        add = self._findings.add
        greatest = -1
        for section in self._chain:
            hidden = () if section.hidden is None else section.hidden.entries
            greatest = max(greatest, *section.entries, *hidden, -1)
            if section.size is not None and section.size <= greatest:
                # MuPDF repairs the file then.
                words = f"/Size {section.size} leaves out object {greatest}"
                add(AmbiguityKind.SMALL_SIZE, section.trailer, None, words)
        for section in ends:
            if not section.has_root:
                words = "a trailer has no indirect /Root"
                add(AmbiguityKind.TRAILER, section.trailer, None, words)
            if section.encryption != ends[0].encryption:
                words = "a trailer names another /Encrypt than the first one"
                add(AmbiguityKind.TRAILER, section.trailer, None, words)


def _number_before(pdf: bytes, at: int, steps: Steps) -> int | None:
    """Return the number of the object whose keyword `obj` is at an offset, or None.

    Any number of digits counts, and comments within the header do: some readers that
    repair a file take what `objects.HEADER` does not.
    """
    piece = pdf[max(at - _BEFORE_BYTES, 0) : at]
    digits = b""
    for _ in range(2):
        before = _without_gap(piece, steps)
        piece = before.rstrip(_DIGITS)
        digits = before[len(piece) :].lstrip(b"0")
        if len(piece) == len(before):
            return None
    return int(digits or b"0") if len(digits) <= _DIGITS_MAX else None


def _without_gap(piece: bytes, steps: Steps) -> bytes:
    """Return bytes without the white space and the comments at their end."""
    while True:
        steps.take(1)
        piece = piece.rstrip(_SPACES)
        line = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        comment = piece.find(b"%", line + 1)
        if comment < 0:
            return piece
        piece = piece[:comment]
