"""Answer to the question whether anything forbidden follows a signature.

Three examinations of the same bytes: the structure of the whole file, the rules for
each later revision, and the pages as drawn. A *no* of any of them is final, since each
sees what another may miss.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import islice
from typing import Final

from pyhanko.sign.validation import EmbeddedPdfSignature

from appliance.domain.verification import (
    YES,
    Answer,
    Check,
    CheckCode,
    FilledField,
    refuted,
    unchecked,
)
from worker.sandbox.inspect.hidden_annotations import Rect
from worker.sandbox.structure import (
    APPENDED_ONLY,
    Ambiguity,
    AmbiguityKind,
    CheckedReader,
    read_structure,
)
from worker.sandbox.verify.later_revisions import LaterChanges, LaterRevisions
from worker.sandbox.verify.page_pictures import (
    FilledLooks,
    PagePictures,
    PictureComparison,
)
from worker.sandbox.verify.shown_values import differs
from worker.sandbox.verify.step_context import title_of

_OBJECT: Final = re.compile(rb"\b(\d{1,10})\s{1,8}\d{1,5}\s{1,8}obj\b")
_OBJECTS_NAMED: Final = 200
_NAME_CHARS: Final = 200
_END_BYTES: Final = 7  # the marker and one end of line
_LAST_BYTES: Final = re.compile(rb"%%EOF(?:\r\n|\n|\r)?\Z")
_APPENDED: Final = refuted(
    CheckCode.APPENDED, "something is appended after the last revision"
)
_UNREAD: Final = unchecked(
    CheckCode.NOT_EXAMINED, "the revisions that follow it cannot be read"
)
_UNEXAMINED: Final = unchecked(
    CheckCode.NOT_EXAMINED, "the file is too complex for all of it to be examined"
)


class Beyond(Enum):
    """State of a file after the end of the part that is read."""

    NOTHING = auto()
    """The whole file is read."""
    UNREADABLE = auto()
    """The revisions that follow cannot be read."""
    UNSIGNED = auto()
    """The whole file can be read, and its form has no signature any more."""


@dataclass(frozen=True, slots=True)
class Followed:
    """Outcome for one signature."""

    check: Check
    filled: tuple[FilledField, ...] = ()
    """Form fields that were filled in, as permitted."""


class RevisionHistory:
    """Revisions of one file, examined once for all of its signatures.

    Ask for signatures in the order in which they were made: the cost is then linear.

    Args:
        pdf: the whole file.
        reader: of the whole file, or of its longest signed revision that can be read.
        beyond: state of the file after the reader's end.
        ends: bytes at which signed bytes end.
    """

    def __init__(
        self,
        pdf: bytes,
        reader: CheckedReader,
        beyond: Beyond,
        ends: Collection[int],
    ) -> None:
        self._pdf = pdf
        self._beyond = beyond
        is_whole = beyond is Beyond.NOTHING
        signed = [each for each in ends if each > 0]
        self._structure = read_structure(
            pdf, reader if is_whole else None, appended_from=min(signed, default=0)
        )
        self._later = LaterRevisions(reader)
        self._pictures = PagePictures(pdf, reader)
        self._compared: dict[int, PictureComparison] = {}
        self._looks: dict[frozenset[str], FilledLooks] = {}
        self.ending = self._ending(ends)
        """The last revision ends the file."""
        self.later_places: dict[int, list[Rect]] = {}
        """Places of marks and filled fields, which are left out of the comparison of
        pictures, by 1-based page."""

    def close(self) -> None:
        """Close what PDFium has open."""
        self._pictures.close()

    @property
    def pages_compared(self) -> tuple[int, int]:
        """Pages that were compared as pictures, and pages whose objects changed.

        Of the signature with the most pages that were not compared.
        """
        most = max(
            self._compared.values(),
            key=lambda each: (each.wanted - each.compared, each.wanted),
            default=None,
        )
        return (0, 0) if most is None else (most.compared, most.wanted)

    def doubts_before(self, end: int) -> list[str]:
        """Ambiguities inside the first bytes of the file, in words.

        Args:
            end: of the signed bytes.
        """
        return [
            each.words
            for each in self._structure.ambiguities
            if each.at < end and each.kind not in APPENDED_ONLY
        ]

    def _ending(self, ends: Collection[int]) -> Check:
        """Check that the last revision ends the file.

        White space after a revision counts: a signature that covers the file covers
        it to its last byte.
        """
        kinds = {each.kind for each in self._structure.ambiguities}
        if AmbiguityKind.NOT_AT_END in kinds:
            return _APPENDED
        if self._beyond is Beyond.UNREADABLE:
            return _UNREAD
        is_whole = len(self._pdf) in ends or _LAST_BYTES.search(self._pdf[-_END_BYTES:])
        return YES if is_whole else _APPENDED

    def changes_after(self, signature: EmbeddedPdfSignature, end: int) -> Followed:
        """Examine what follows a signature.

        Args:
            signature: one that is intact.
            end: byte at which its signed bytes end.
        """
        if (obstacle := self._appended(signature, end)) is not None:
            return Followed(obstacle)
        if self._structure.used_up:
            # Neither would the rules end in time.
            return Followed(_UNEXAMINED)
        later = self._later.changes_after(signature)
        pictures = self._compare(signature, end, later)
        if later.answer is Answer.NO:
            return Followed(_changed(later.reason, pictures.different))
        if pictures.different:
            return Followed(_different(pictures.different))
        check, (filled, doubt) = self._remaining(later, pictures), self._filled(later)
        if check.answer is Answer.YES and doubt:
            check = unchecked(CheckCode.LOOKS_DIFFERENT, doubt)
        return Followed(check, filled)

    def _appended(self, signature: EmbeddedPdfSignature, end: int) -> Check | None:
        """The answer of the structure alone; None: the revisions have to be judged."""
        added = [each for each in self._structure.ambiguities if each.at >= end]
        if added:
            return self._ambiguous(added, end)
        if self.ending.answer is Answer.NO:
            return self.ending
        if self._beyond is Beyond.UNREADABLE:
            return _UNREAD
        if self._beyond is Beyond.UNSIGNED:
            name = signature.field_name[:_NAME_CHARS]
            words = f'the field "{name}" lost its signature after it'
            return refuted(CheckCode.CHANGED, words)
        return None

    def _ambiguous(self, added: Sequence[Ambiguity], end: int) -> Check:
        """Refuse an ambiguity that was added, with a page or an object."""
        first = added[0]
        for each in added:
            if each.number is not None and (page := self._later.page_of(each.number)):
                words = f"page {page} was changed after it: {each.words}"
                return refuted(CheckCode.PDF_AMBIGUOUS, words)
        words = f"what was appended after it is ambiguous: {first.words}"
        if first.number is None:
            at_end = first.kind is AmbiguityKind.NOT_AT_END
            words += self._appended_objects(first.at if at_end else end)
        return refuted(CheckCode.PDF_AMBIGUOUS, words)

    def _appended_objects(self, end: int) -> str:
        """Name an object in the bytes after an offset, on a page if there is one."""
        numbers = [
            int(found[1])
            for found in islice(_OBJECT.finditer(self._pdf, end), _OBJECTS_NAMED)
        ]
        if not numbers:
            return ""
        for number in numbers:
            if page := self._later.page_of(number):
                return f" (page {page}, object {number})"
        return f" (object {numbers[0]})"

    def _compare(
        self, signature: EmbeddedPdfSignature, end: int, later: LaterChanges
    ) -> PictureComparison:
        if end not in self._compared:
            revision = signature.signed_revision
            masks = self._pictures.later_widgets(
                end, revision, {each.name for each in later.filled}
            )
            for page, places in masks.items():
                known = self.later_places.setdefault(page, [])
                known += (each for each in places if each not in known)
            self._compared[end] = self._pictures.compare(end, revision, masks)
        return self._compared[end]

    def _filled(self, later: LaterChanges) -> tuple[tuple[FilledField, ...], str]:
        """The filled fields with their looks, and a doubt in words; empty: none."""
        if not later.filled:
            return (), ""
        names = frozenset(each.name for each in later.filled)
        if names not in self._looks:
            self._looks[names] = self._pictures.filled_fields(names)
        looks = self._looks[names]
        filled = tuple(
            replace(each, shown=looks.texts[each.name])
            if differs(each.after, looks.texts.get(each.name, ""))
            else each
            for each in later.filled
        )
        for each in filled:
            if each.shown and each.name in looks.text_fields:
                words = "shows another text than the value that was filled in"
                return filled, f'the field "{title_of(each.name)}" {words}'
        if looks.hide_text:
            return filled, "a field that was filled in hides text of its page"
        return filled, ""

    def _remaining(self, later: LaterChanges, pictures: PictureComparison) -> Check:
        """The answer where nothing speaks against the signature."""
        if later.answer is Answer.UNCHECKED:
            return unchecked(CheckCode.NOT_EXAMINED, later.reason)
        if not self._structure.examined:
            return _UNEXAMINED
        if pictures.failed:
            page = pictures.failed[0]
            words = f"page {page} was changed, and cannot be drawn to be compared"
            return unchecked(CheckCode.NOT_EXAMINED, words)
        return YES


def _changed(reason: str, different: Sequence[int]) -> Check:
    """Refuse a change, with the page that looks different unless it is named."""
    if different and "page" not in reason:
        reason = f"{reason}; page {different[0]} looks different from what was signed"
    return refuted(CheckCode.CHANGED, reason)


def _different(pages: Sequence[int]) -> Check:
    shown = ", ".join(map(str, pages[:5]))
    words = f"page {shown} looks different from what was signed"
    if len(pages) > 1:
        words = f"pages {shown} look different from what was signed"
    return refuted(CheckCode.LOOKS_DIFFERENT, words)
