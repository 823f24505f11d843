"""Letters of pages, and the texts of the annotations on them, as PDFium reads them.

For confined jobs only.
"""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from ctypes import byref, c_double
from dataclasses import dataclass
from typing import Final

import pypdfium2
from PIL import Image

from worker.sandbox.inspect.hidden_annotations import Rect

_CPU_S: Final = 3.0
"""Processor time for all pages of a file, in seconds."""
_CLOCK_EVERY: Final = 1_000  # letters between two readings of the clock
_TEXT_CHARS: Final = 4_000
"""Longest text of a field that is compared."""
_FILLERS: Final = frozenset("_.-\N{HORIZONTAL ELLIPSIS}\N{MIDDLE DOT}\N{EN DASH}")
"""Signs that in a row draw a line to write on."""
_SIDE_MOST: Final = 2_000  # cells on one side of an area
_RAW: Final = pypdfium2.raw


@dataclass(frozen=True, slots=True)
class PageLetters:
    """Boxes of the letters, digits and signs on one page, in user space."""

    frame: Rect
    """Visible part of the page."""
    content: tuple[Rect, ...]
    """Letters of the page's own content."""
    looks: tuple[Rect, ...]
    """Letters of its annotations."""


class Area:
    """Union of rectangles on a page, in cells of a point or more.

    Asking for a box costs the same for any number of rectangles.

    Args:
        frame: visible part of the page.
        rects: rectangles; nothing counts beyond the frame.
    """

    def __init__(self, frame: Rect, rects: Sequence[Rect]) -> None:
        wide, high = frame[2] - frame[0], frame[3] - frame[1]
        self._scale = min(1.0, _SIDE_MOST / max(wide, high, 1))
        self._left, self._bottom = frame[:2]
        size = (math.ceil(wide * self._scale) + 1, math.ceil(high * self._scale) + 1)
        self._cells = Image.new("L", size)
        for rect in rects:
            if (box := self._box(rect)) is not None:
                self._cells.paste(255, box)

    def touches(self, box: Rect) -> bool:
        """Return whether a box shares a cell with a rectangle."""
        cells = self._box(box)
        return cells is not None and self._cells.crop(cells).getbbox() is not None

    def _box(self, rect: Rect) -> tuple[int, int, int, int] | None:
        wide, high = self._cells.size
        x0 = max(math.floor((rect[0] - self._left) * self._scale), 0)
        y0 = max(math.floor((rect[1] - self._bottom) * self._scale), 0)
        # A point is in one cell.
        x1 = min(max(math.ceil((rect[2] - self._left) * self._scale), x0 + 1), wide)
        y1 = min(max(math.ceil((rect[3] - self._bottom) * self._scale), y0 + 1), high)
        return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


class PageTexts:
    """Reader of the texts of one file; each page is read once.

    Args:
        pdf: the whole file, not encrypted or with the empty password.
    """

    def __init__(self, pdf: bytes) -> None:
        self._pdf = pdf
        self._document: pypdfium2.PdfDocument | None = None
        self._is_opened = False
        self._letters: dict[int, PageLetters | None] = {}
        self._cpu_s = _CPU_S
        self._until = 0.0

    def close(self) -> None:
        """Close the file."""
        if self._document is not None:
            self._document.close()
            self._document = None

    def of_revision(self, end: int) -> "PageTexts":
        """Return a reader of the first bytes of the file, with the time that is left.

        Args:
            end: of those bytes.
        """
        found = PageTexts(self._pdf[: max(end, 0)])
        found._cpu_s = self._cpu_s
        return found

    def letters(self, page: int) -> PageLetters | None:
        """Return the letters of a page; None if they cannot be read in time.

        Args:
            page: 1-based.
        """
        if page not in self._letters:
            self._letters[page] = None
            with suppress(pypdfium2.PdfiumError, ValueError, MemoryError, TimeoutError):
                self._letters[page] = self._timed(page)
        return self._letters[page]

    def looks(self, page: int, rects: Sequence[Rect]) -> list[str] | None:
        """Return the texts of annotations alone, within rectangles of a page.

        Args:
            page: 1-based.
            rects: in user space.

        Returns:
            A text for each rectangle, at most 4,000 characters; None if they cannot be
            read in time.
        """
        if self.letters(page) is None or self._document is None:
            return None
        began = time.process_time()
        found: list[str] = []
        try:
            with (
                closing(self._document[page - 1]) as opened,
                closing(opened.get_textpage()) as text,
            ):
                for rect in rects:
                    if time.process_time() - began > self._cpu_s:
                        return None
                    found.append(text.get_text_bounded(*rect)[:_TEXT_CHARS])
        except (pypdfium2.PdfiumError, ValueError, MemoryError):
            return None
        finally:
            self._cpu_s -= time.process_time() - began
        return found

    def _timed(self, page: int) -> PageLetters:
        """Read a page within the time that is left.

        Raises:
            TimeoutError: no time is left.
            pypdfium2.PdfiumError: PDFium cannot read it.
            ValueError: it has no such page.
        """
        began = time.process_time()
        self._until = began + self._cpu_s
        try:
            return self._read(self._opened(), page)
        finally:
            self._cpu_s -= time.process_time() - began

    def _opened(self) -> pypdfium2.PdfDocument:
        """Open the file on first use, with values drawn as readers do.

        Raises:
            pypdfium2.PdfiumError: PDFium cannot read it.
        """
        if not self._is_opened:
            self._is_opened = True
            document = pypdfium2.PdfDocument(self._pdf)
            self._document = document
            document.init_forms()
        if self._document is None:
            raise pypdfium2.PdfiumError("PDFium cannot read it")
        return self._document

    def _read(self, document: pypdfium2.PdfDocument, page: int) -> PageLetters:
        """Read the content, put the annotations in its place, and read those.

        Raises:
            TimeoutError: no time is left.
            pypdfium2.PdfiumError: PDFium cannot read it.
            ValueError: it has no such page.
        """
        with closing(document[page - 1]) as opened:
            frame = opened.get_bbox()
            with closing(opened.get_textpage()) as text:
                content = tuple(self._boxes(text))
            for _ in range(_RAW.FPDFPage_CountObjects(opened)):
                self._tick()
                # The first one: PDFium searches from there.
                shown = _RAW.FPDFPage_GetObject(opened, 0)
                if not _RAW.FPDFPage_RemoveObject(opened, shown):
                    raise pypdfium2.PdfiumError("PDFium cannot take an object away")
                _RAW.FPDFPageObj_Destroy(shown)
            _RAW.FPDFPage_GenerateContent(opened)
            _RAW.FPDFPage_Flatten(opened, _RAW.FLAT_NORMALDISPLAY)
        # Flattened content is seen by text pages of a page that is loaded again.
        with (
            closing(document[page - 1]) as opened,
            closing(opened.get_textpage()) as text,
        ):
            return PageLetters(frame, content, tuple(self._boxes(text)))

    def _boxes(self, text: pypdfium2.PdfTextPage) -> Iterator[Rect]:
        """Yield the boxes of letters, digits and signs.

        Raises:
            TimeoutError: no time is left.
        """
        left, right, bottom, top = (c_double() for _ in range(4))
        edges = [byref(each) for each in (left, right, bottom, top)]
        count = text.count_chars()
        codes = [_RAW.FPDFText_GetUnicode(text, at) for at in range(count)]
        for at, code in enumerate(codes):
            if not at % _CLOCK_EVERY:
                self._tick()
            sign = chr(min(code, sys.maxunicode))
            if not code or sign.isspace():
                continue
            beside = codes[at - 1 : at] + codes[at + 1 : at + 2]
            if sign in _FILLERS and code in beside:
                continue
            if _RAW.FPDFText_GetCharBox(text, at, *edges) and (
                left.value < right.value and bottom.value < top.value
            ):
                yield left.value, bottom.value, right.value, top.value

    def _tick(self) -> None:
        """Stop if no time is left.

        Raises:
            TimeoutError: no time is left.
        """
        if time.process_time() > self._until:
            raise TimeoutError
