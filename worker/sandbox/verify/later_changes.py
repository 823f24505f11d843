"""Answer to the question whether anything forbidden follows a signature.

Three examinations of the same bytes: the structure of the whole file, the rules for
each later revision, and the pages as drawn. A *no* of any of them is final, since each
sees what another may miss.
"""

import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice
from typing import Final

from pyhanko.sign.validation import EmbeddedPdfSignature

from appliance.domain.documents.verification import (
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
from worker.sandbox.verify.covered_text import CoveredPages, CoveredText
from worker.sandbox.verify.later_revisions import LaterChanges, LaterRevisions
from worker.sandbox.verify.later_widgets import FieldLook
from worker.sandbox.verify.page_pictures import PagePictures, PictureComparison
from worker.sandbox.verify.page_texts import PageTexts
from worker.sandbox.verify.plain_looks import PlainLook
from worker.sandbox.verify.seen_letters import TextPlace, obscured
from worker.sandbox.verify.shown_values import differs, is_concealed
from worker.sandbox.verify.step_context import title_of

_OBJECT: Final = re.compile(rb"\b(\d{1,10})\s{1,8}\d{1,5}\s{1,8}obj\b")
_OBJECTS_NAMED: Final = 200
_NAME_CHARS: Final = 200
_TEXT_CHARS: Final = 200
_OTHER_TEXT: Final = (
    "shows another text than the value that was filled in, "
    "which may be the value in a format of the form"
)
_LETTERS_CPU_S: Final = 1.0
"""Processor time for the letters of filled fields, in seconds."""
_WHOLE_PAGE: Final = (-1e5, -1e5, 1e5, 1e5)
_SAME_CHARS: Final = 40
"""Characters that are shown before two long values differ."""
_NOT_PLAIN: Final = "is drawn with more than a text that can be compared with its value"
_OBSCURED: Final = "shows letters that are hidden, over each other or out of order"
_OTHER_FONT: Final = "is drawn in a font that was added after it"
_UNPLACED: Final = "is shown in a place on which readers may not agree"
_BLANKS_MAX: Final = 1_000
"""White space after the last marker, as mail gateways add it, that ends no search."""
_END_BYTES: Final = len(b"%%EOF") + _BLANKS_MAX
_LAST_BYTES: Final = re.compile(rb"%%EOF[\0\t\n\f\r ]{0,1000}+\Z")
_APPENDED: Final = refuted(
    CheckCode.APPENDED, "something is appended after the last revision"
)
_UNREAD: Final = unchecked(
    CheckCode.NOT_EXAMINED, "the revisions that follow it cannot be read"
)
TOO_COMPLEX: Final = unchecked(
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
        looks: whether pages are drawn and compared; else somebody else has to.
    """

    def __init__(
        self,
        pdf: bytes,
        reader: CheckedReader,
        beyond: Beyond,
        ends: Collection[int],
        *,
        looks: bool = True,
    ) -> None:
        self._looks = looks
        self._pdf = pdf
        self._beyond = beyond
        is_whole = beyond is Beyond.NOTHING
        signed = [each for each in ends if each > 0]
        self._structure = read_structure(
            pdf, reader if is_whole else None, appended_from=min(signed, default=0)
        )
        self._later = LaterRevisions(reader)
        self._pictures = PagePictures(pdf, reader)
        self._texts = PageTexts(pdf)
        self._covered = CoveredText(self._pictures, self._texts)
        self._compared: dict[int, _Compared] = {}
        self._shown: dict[str, tuple[str, str]] = {}
        """Text that a field shows in place of its value, and a doubt, by its name."""
        self._letters_cpu_s = _LETTERS_CPU_S
        self._font_since: dict[str, int] = {}
        """Last revision that defined a font of a field, by its name."""
        self.ending = self._ending(ends)
        """The last revision ends the file."""
        self.covered_pages: set[int] = set()
        """1-based pages on which a later mark or filled field changes or hides text."""
        self.unread_pages: set[int] = set()
        """1-based pages on which that could not be examined."""

    def close(self) -> None:
        """Close what PDFium has open."""
        self._pictures.close()
        self._texts.close()

    @property
    def pages_compared(self) -> tuple[int, int]:
        """Pages that were compared as pictures, and pages whose objects changed.

        Of the signature with the most pages that were not compared.
        """
        most = max(
            (each.pictures for each in self._compared.values()),
            key=lambda each: (each.wanted - each.compared, each.wanted),
            default=None,
        )
        return (0, 0) if most is None else (most.compared, most.wanted)

    @property
    def text_covered(self) -> Answer:
        """Answer whether a later mark or filled field changes or hides signed text."""
        if self.covered_pages:
            return Answer.YES
        return Answer.UNCHECKED if self.unread_pages else Answer.NO

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

        White space after it is nothing that a reader reads.
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
            return Followed(TOO_COMPLEX)
        later = self._later.changes_after(signature)
        compared = self._compare(signature, end, later)
        different = compared.pictures.different
        if later.answer is Answer.NO:
            return Followed(_changed(later.reason, different))
        if different and (compared.is_masked or later.answer is Answer.YES):
            return Followed(_different(different))
        filled, doubt = self._filled(later, signature.signed_revision)
        check = self._remaining(later, compared.pictures)
        if check.answer is Answer.YES:
            check = _covered(compared.covered) or doubt or check
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
    ) -> "_Compared":
        """Compare what the pages show with what was signed, once a revision."""
        if end not in self._compared:
            revision = signature.signed_revision
            if self._later.is_last(revision) or not self._looks:
                nothing = PictureComparison((), 0, 0, ())
                self._compared[end] = _Compared(nothing, CoveredPages(), is_masked=True)
                return self._compared[end]
            widgets = self._pictures.widgets
            names = {each.name for each in later.filled}
            places = widgets.later(self._pictures.revision_at(end, revision), names)
            masks = places.merged()
            for page in later.annotated:
                masks[page] = [_WHOLE_PAGE]
            if later.answer is Answer.UNCHECKED:
                # Any field may have been filled in.
                for page, rects in widgets.of_form().items():
                    masks.setdefault(page, []).extend(rects)
            pictures = self._pictures.compare(end, revision, masks)
            covered = CoveredPages()
            if later.answer is not Answer.NO and not pictures.different:
                covered = self._covered.after(end, places)
            self.covered_pages.update(covered.by_fields, covered.by_marks)
            self.unread_pages.update(covered.unread)
            self._compared[end] = _Compared(
                pictures, covered, is_masked=widgets.is_read
            )
        return self._compared[end]

    def _filled(
        self, later: LaterChanges, revision: int
    ) -> tuple[tuple[FilledField, ...], Check | None]:
        """The filled fields with the texts that they show, and a doubt; None: none."""
        names = {each.name for each in later.filled}
        self._read_texts(names - self._shown.keys())
        doubt: Check | None = None
        filled: list[FilledField] = []
        for each in later.filled:
            shown, reason = self._shown.get(each.name, ("", ""))
            reason = reason or later.doubts.get(each.name, "")
            if self._font_since.get(each.name, revision) > revision:
                reason = reason or _OTHER_FONT
            if reason and doubt is None:
                words = f'the field "{title_of(each.name)}" {reason}'
                doubt = unchecked(CheckCode.LOOKS_DIFFERENT, words)
            before, after = _parts(each.before, each.after)
            filled.append(
                FilledField(each.name, before, after, shown=shown[:_TEXT_CHARS])
            )
        return tuple(filled), doubt

    def _read_texts(self, names: Collection[str]) -> None:
        """Read the texts that fields show, each field once a file."""
        if not names:
            return
        self._shown.update(dict.fromkeys(names, ("", "")))
        looks = self._pictures.widgets.filled(names)
        on_page: dict[int, list[_Place]] = {}
        for look in looks:
            self._font_since[look.title] = look.font_since
            if look.expected and not look.is_placed:
                self._shown[look.title] = "", _UNPLACED
            places = zip(look.places, look.drawings, strict=True)
            for (page, rect), drawing in places if look.expected else ():
                plain = drawing if drawing and drawing.fits(rect) else None
                on_page.setdefault(page, []).append((look, rect, plain))
        for page, on_it in on_page.items():
            rects = [rect for _, rect, _ in on_it]
            texts, letters = self._texts.looks(page, rects), self._texts.letters(page)
            if texts is None or letters is None:
                unread = f"shows a text on page {page} that could not be read"
                self._shown.update({each.title: ("", unread) for each, *_ in on_it})
                continue
            ink = self._pictures.ink(page) if self._letters_cpu_s > 0 else None
            began = time.process_time()
            unseen = obscured(
                letters.looks,
                [_text_place(rect, plain, letters.frame) for _, rect, plain in on_it],
                frozenset() if ink is None else ink,
            )
            self._letters_cpu_s -= time.process_time() - began
            for (look, _, plain), text, is_obscured in zip(
                on_it, texts, unseen, strict=True
            ):
                if not self._shown[look.title][1]:
                    self._shown[look.title] = _told(
                        look, text, plain, is_obscured=is_obscured
                    )

    def _remaining(self, later: LaterChanges, pictures: PictureComparison) -> Check:
        """The answer where nothing speaks against the signature."""
        if later.answer is Answer.UNCHECKED:
            return unchecked(CheckCode.NOT_EXAMINED, later.reason)
        if not self._structure.examined:
            return TOO_COMPLEX
        if pictures.failed:
            page = pictures.failed[0]
            words = f"page {page} was changed, and cannot be drawn to be compared"
            return unchecked(CheckCode.NOT_EXAMINED, words)
        return YES


_Place = tuple[FieldLook, Rect, PlainLook | None]
"""A field, the rectangle of one of its widgets, and its drawing, if it is plain."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """What the pages of a signed revision show now."""

    pictures: PictureComparison
    covered: CoveredPages
    is_masked: bool
    """False if the places of fields are unknown, and any difference may be a value."""


def _parts(before: str, after: str) -> tuple[str, str]:
    """Return two values, at most 200 characters, from where they begin to differ."""
    if max(len(before), len(after)) <= _TEXT_CHARS:
        return before, after
    pairs = enumerate(zip(before, after, strict=False))
    alike = next((at for at, (one, other) in pairs if one != other), len(before))
    start = max(0, alike - _SAME_CHARS)
    end = start + _TEXT_CHARS - 2
    first, second = (
        ("…" if start else "") + each[start:end] + ("…" if len(each) > end else "")
        for each in (before, after)
    )
    return first, second


def _text_place(rect: Rect, plain: PlainLook | None, frame: Rect) -> TextPlace:
    """Return where a field shows its text; nothing is seen beyond the page."""
    shown = rect if plain is None else plain.shown(rect)
    left, bottom = map(max, shown[:2], frame[:2])
    right, top = map(min, shown[2:], frame[2:])
    seen = left, bottom, right, top
    return TextPlace(rect, seen, 0 if plain is None else plain.turn)


def _told(
    look: FieldLook, text: str, plain: PlainLook | None, *, is_obscured: bool
) -> tuple[str, str]:
    """Return the text that a field shows if it is not its value, and a doubt."""
    is_told = look.is_secret and is_concealed(text)
    if not is_told and all(differs(each, text) for each in look.expected):
        if not text.strip():
            return "", "does not show the value that was filled in"
        return text, _OTHER_TEXT
    if plain is None and any(look.expected):
        return "", _NOT_PLAIN
    return "", _OBSCURED if is_obscured else ""


def _covered(pages: CoveredPages) -> Check | None:
    """Return the doubt that text was covered by a filled field; None: there is none."""
    if pages.by_fields:
        words = f"a filled field changes or hides text of page {pages.by_fields[0]}"
        return unchecked(CheckCode.LOOKS_DIFFERENT, words)
    if pages.unread:
        words = f"page {pages.unread[0]}: the text below later marks or fields could"
        return unchecked(CheckCode.NOT_EXAMINED, f"{words} not be examined")
    return None


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
