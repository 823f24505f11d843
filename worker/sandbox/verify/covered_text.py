"""Finds signed text that later marks and filled fields change or hide.

A mark may stand anywhere, and a field is drawn as whoever fills it in wants. So both
can paint over text that was signed, and what a reader shows is no longer what the
signer saw. For confined jobs only.
"""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

from worker.sandbox.inspect.hidden_annotations import Rect
from worker.sandbox.verify.later_widgets import LaterPlaces
from worker.sandbox.verify.page_pictures import PagePictures
from worker.sandbox.verify.page_texts import Area, PageLetters, PageTexts

_CPU_S: Final = 3.0
"""Processor time for all signatures of a file, in seconds; no page is begun later."""


@dataclass(slots=True)
class CoveredPages:
    """1-based pages on which signed text looks different than it was signed."""

    by_fields: list[int] = field(default_factory=list)
    """Pages on which a filled field does that."""
    by_marks: list[int] = field(default_factory=list)
    """Pages on which the mark of a later signature does that."""
    unread: list[int] = field(default_factory=list)
    """Pages that could not be examined."""


@dataclass(slots=True)
class _Touched:
    """Letters of one page that later widgets touched at an earlier question."""

    later: set[Rect]
    """Those widgets."""
    content: list[Rect]
    """Letters of the page's content, but for those that are seen as signed."""


class CoveredText:
    """Search for covered text, for the signatures of one file.

    Letters count that a later mark or field touches: those of the page's content, and
    those of other annotations. Each is covered if any of its pixels differs from the
    signed revision.

    Ask for signatures in the order in which they were made: fewer widgets follow each,
    so that letters which were not touched or not covered are not looked at again, and
    the cost is linear.

    Args:
        pictures: of the file's pages.
        texts: of the file's pages.
    """

    def __init__(self, pictures: PagePictures, texts: PageTexts) -> None:
        self._pictures = pictures
        self._texts = texts
        self._touched: dict[int, _Touched] = {}
        self._cpu_s = _CPU_S

    def after(self, end: int, places: LaterPlaces) -> CoveredPages:
        """Find the pages on which text that a signature covers looks different.

        Args:
            end: byte at which the signed revision ends.
            places: widgets that later revisions draw.
        """
        found = CoveredPages()
        for page in sorted(places.marks.keys() | places.filled.keys()):
            began = time.process_time()
            marks, filled = places.marks.get(page, []), places.filled.get(page, [])
            if self._cpu_s <= 0 or not self._examine(page, end, marks, filled, found):
                found.unread.append(page)
            self._cpu_s -= time.process_time() - began
        return found

    def _examine(
        self,
        page: int,
        end: int,
        marks: Sequence[Rect],
        filled: Sequence[Rect],
        found: CoveredPages,
    ) -> bool:
        """Examine one page; false if it cannot be."""
        letters = self._texts.letters(page)
        if letters is None:
            return False
        later = [*marks, *filled]
        content = self._content_below(page, letters, later)
        others = self._others_below(page, letters, later, end)
        if others is None:
            return False
        touched = [*content, *others]
        if not touched:
            return True
        difference = self._pictures.difference(end, page)
        if difference is None:
            return False
        self._touched[page].content = [each for each in content if each in difference]
        covered = [each for each in touched if each in difference]
        fields = Area(letters.frame, filled)
        by_field = [fields.touches(each) for each in covered]
        if any(by_field):
            found.by_fields.append(page)
        if not all(by_field):
            found.by_marks.append(page)
        return True

    def _content_below(
        self, page: int, letters: PageLetters, later: Sequence[Rect]
    ) -> list[Rect]:
        """Return the letters of a page's content that later widgets touch."""
        known = self._touched.get(page)
        is_less = known is not None and known.later.issuperset(later)
        candidates = known.content if known and is_less else letters.content
        above = Area(letters.frame, later)
        touched = [each for each in candidates if above.touches(each)]
        self._touched[page] = _Touched({*later}, touched)
        return touched

    def _others_below(
        self, page: int, letters: PageLetters, later: Sequence[Rect], end: int
    ) -> list[Rect] | None:
        """Return the letters of signed annotations that later widgets touch.

        The text of a widget that was drawn differently is another one in the signed
        revision. Letters that are in both are those of the other annotations.

        Returns:
            None if the signed revision cannot be read.
        """
        known = {*later}
        above = Area(letters.frame, later)
        others = (
            each for each in self._pictures.widgets.annotations(page)
            if each not in known
        )  # fmt: skip
        if not letters.looks or not any(above.touches(each) for each in others):
            return []
        with closing(self._texts.of_revision(end)) as revision:
            signed = revision.letters(page)
        if signed is None:
            return None
        kept = {_rounded(each) for each in signed.looks}
        touched = (each for each in letters.looks if above.touches(each))
        return [each for each in touched if _rounded(each) in kept]


def _rounded(box: Rect) -> tuple[float, ...]:
    return tuple(round(edge, 2) for edge in box)
