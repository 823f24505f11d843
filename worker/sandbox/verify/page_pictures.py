"""Compares pages as PDFium draws them before and after later revisions.

The pages whose objects changed are drawn from the signed revision, which is the file
up to its end, and from the whole file. For confined jobs only.
"""

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Self

import pypdfium2
from PIL import Image, ImageChops
from pyhanko.pdf_utils.reader import PdfFileReader

from worker.sandbox.inspect.hidden_annotations import Rect
from worker.sandbox.verify.changed_pages import ChangedPages
from worker.sandbox.verify.later_widgets import LaterWidgets, later_widgets
from worker.sandbox.verify.object_history import ObjectHistory

__all__ = ["PagePictures", "PictureComparison", "later_widgets"]

PAGES_MOST: Final = 40
"""Pages that are drawn for one signature."""
_CPU_S: Final = 3.0
"""Processor time of all comparisons of a file, in seconds; no page is begun later."""
# A digit of 8 points is 8 pixels high then, and any pixel that differs is a difference.
_SCALE: Final = 0.8
_INK: Final = 30
"""Least difference of a letter's pixels, of 255, with thin strokes at this scale."""
_SIDE_PX_MOST: Final = 2_000
_KEPT_PX_MOST: Final = 24_000_000
"""Pixels of the pictures that are kept, at four bytes each."""
_FAR: Final = 10_000  # user space units between the points that a page is measured by

_Image = Image.Image


@dataclass(frozen=True, slots=True)
class PictureComparison:
    """Outcome of comparing a signed revision with the whole file."""

    different: tuple[int, ...]
    """1-based pages that look different outside the masks, or that only one has."""
    compared: int
    """Pages that were drawn from both and compared, or that only one has."""
    wanted: int
    """Pages whose objects changed.

    More than `compared` if there are more than `PAGES_MOST`, if the time is used up or
    if some cannot be drawn.
    """
    failed: tuple[int, ...]
    """1-based pages that PDFium could not draw in one of the two."""


_NOTHING: Final = PictureComparison((), 0, 0, ())
"""Outcome if no page's objects changed."""


@dataclass(frozen=True, slots=True)
class PictureDifference:
    """Pixels of a page that a later revision drew differently."""

    pixels: Image.Image
    """Grey levels; 0: the same."""
    picture: "_Picture"

    def __contains__(self, rect: Rect) -> bool:
        """Return whether any pixel in a rectangle of user space is different."""
        box = self.picture.box(rect, margin=0)
        return box is not None and self.pixels.crop(box).getbbox() is not None


@dataclass(frozen=True, slots=True)
class _Picture:
    """A drawn page, and the matrix from user space to its pixels."""

    image: _Image
    matrix: tuple[float, float, float, float, float, float]

    def box(self, rect: Rect, margin: int = 1) -> tuple[int, int, int, int] | None:
        """Return the pixels that a rectangle may touch; None if all are outside.

        Args:
            rect: in user space.
            margin: further pixels on each side: anti-aliasing draws edges into the
                neighbours.
        """
        a, b, c, d, e, f = self.matrix
        corners = [(x, y) for x in rect[0::2] for y in rect[1::2]]
        xs = [a * x + c * y + e for x, y in corners]
        ys = [b * x + d * y + f for x, y in corners]
        x0, y0 = (max(math.floor(min(each)) - margin, 0) for each in (xs, ys))
        x1 = min(math.ceil(max(xs)) + margin, self.image.width)
        y1 = min(math.ceil(max(ys)) + margin, self.image.height)
        return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


@dataclass(frozen=True, slots=True)
class PageInk:
    """Pixels of a page, by which letters differ from what is below them."""

    picture: _Picture

    def __contains__(self, rect: Rect) -> bool:
        """Return whether a rectangle of user space has dark and bright pixels."""
        box = self.picture.box(rect, margin=0)
        if box is None:
            return False
        bands = self.picture.image.crop(box).convert("RGB").split()
        extremes = (each.histogram() for each in bands)
        return any(_spread(each) >= _INK for each in extremes)


def _spread(histogram: Sequence[int]) -> int:
    """Return the distance between the least and the greatest level of a band."""
    levels = [level for level, count in enumerate(histogram) if count]
    return levels[-1] - levels[0] if levels else 0


@dataclass(slots=True)
class _Counts:
    """Pages of one comparison."""

    different: set[int] = field(default_factory=set)
    compared: int = 0
    failed: list[int] = field(default_factory=list)


class PagePictures:
    """Pictures of one file, kept so that each revision and page is drawn once.

    PDFium reads the bytes of the file until `close`.

    Args:
        pdf: the whole file, not encrypted or with the empty password.
        reader: the same, open.
    """

    def __init__(self, pdf: bytes, reader: PdfFileReader) -> None:
        self._pdf = pdf
        self._reader = reader
        self._whole: pypdfium2.PdfDocument | None = None
        self._is_opened = False
        self._kept: dict[tuple[int, bool], _Picture | None] = {}
        self._kept_px = 0
        self._cpu_s = _CPU_S
        self.draws = 0
        """Pages that PDFium has drawn so far, of all revisions."""

    @cached_property
    def _history(self) -> ObjectHistory:
        """Revisions of the file's objects, read on first use."""
        return ObjectHistory(self._reader)

    @cached_property
    def _changed(self) -> ChangedPages:
        """Pages that later revisions changed, found on first use."""
        return ChangedPages(self._reader, self._history)

    def close(self) -> None:
        """Close the file and drop its pictures."""
        self._kept.clear()
        self._kept_px = 0
        if self._whole is not None:
            self._whole.close()
            self._whole = None
        self._is_opened = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def later_widgets(
        self, end: int, revision: int, filled: Collection[str] = ()
    ) -> dict[int, list[Rect]]:
        """Find the widgets that may be drawn differently since a signed revision.

        Args:
            end: byte at which the signed revision ends.
            revision: pyHanko's index of that revision.
            filled: full names of the fields that were filled in later.

        Returns:
            Masks for `compare`; see `LaterWidgets.after`.
        """
        if revision >= self._reader.total_revisions - 1:
            return {}
        return self.widgets.after(self.revision_at(end, revision), filled)

    @cached_property
    def widgets(self) -> LaterWidgets:
        """Widgets of the file's form, read on first use for all signatures."""
        return LaterWidgets(self._reader, self._history)

    def revision_at(self, end: int, revision: int) -> int:
        """Return the revision whose pages a signature covers.

        Args:
            end: byte at which the signed revision ends.
            revision: pyHanko's index of that revision.
        """
        return self._history.revision_at(self._pdf, self._clipped(end), revision)

    def _clipped(self, end: int) -> int:
        # Forged byte ranges name any number.
        return max(0, min(end, len(self._pdf)))

    def difference(self, end: int, page: int) -> PictureDifference | None:
        """Compare one page of a signed revision with the whole file's.

        Args:
            end: byte at which the signed revision ends.
            page: 1-based.

        Returns:
            None if the page cannot be drawn from both, or the time is used up.
        """
        if self._cpu_s <= 0:
            return None
        began = time.process_time()
        try:
            with _opened(self._pdf, self._clipped(end)) as before:
                if before is None or not 1 <= page <= len(before):
                    return None
                found = self._difference(before, page)
                if found is not None and found.pixels.getbbox() is not None:
                    # As in `compare`: fonts that are not embedded.
                    self._reopen(page, is_bare=False)
                    found = self._difference(before, page)
                return found
        except MemoryError:
            return None
        finally:
            self._cpu_s -= time.process_time() - began

    def _difference(
        self, before: pypdfium2.PdfDocument, page: int
    ) -> PictureDifference | None:
        """Draw a page of both, and subtract the pictures."""
        now = self._of_whole(page, is_bare=False)
        then = None if now is None else self._draw(before, page, is_bare=False)
        if now is None or then is None or then.image.size != now.image.size:
            return None
        difference = ImageChops.difference(then.image, now.image)
        # The largest of the channels: a sum of grey levels would round down to 0.
        bands = difference.split()
        pixels = bands[0]
        for each in bands[1:]:
            pixels = ImageChops.lighter(pixels, each)
        return PictureDifference(pixels, now)

    def ink(self, page: int) -> PageInk | None:
        """Return where a page of the whole file has dark and bright pixels.

        Args:
            page: 1-based.

        Returns:
            None if it cannot be drawn, or the time is used up.
        """
        if self._cpu_s <= 0:
            return None
        began = time.process_time()
        try:
            picture = self._of_whole(page, is_bare=False)
        except MemoryError:
            return None
        finally:
            self._cpu_s -= time.process_time() - began
        return None if picture is None else PageInk(picture)

    def compare(
        self, end: int, revision: int, masks: Mapping[int, Sequence[Rect]]
    ) -> PictureComparison:
        """Compare a signed revision with the whole file, page by page.

        The content of a page is compared without its annotations too, if it may have
        changed: masks cover annotations, not what lies below them. Never raises for
        what the file holds: pages that cannot be drawn are in `failed`.

        Args:
            end: byte at which the signed revision ends.
            revision: pyHanko's index of that revision.
            masks: rectangles x0 < x1, y0 < y1 of finite numbers in unrotated user space
                that are left out, by 1-based page: widgets that later revisions may
                draw.
        """
        if revision >= self._reader.total_revisions - 1:
            return _NOTHING
        began = time.process_time()
        revision = self.revision_at(end, revision)
        end = self._clipped(end)
        try:
            pages = self._changed.after(revision)
            if pages == ():
                return _NOTHING
            return self._compare(end, revision, pages, masks)
        finally:
            self._cpu_s -= time.process_time() - began

    def _compare(
        self,
        end: int,
        revision: int,
        pages: Sequence[int] | None,
        masks: Mapping[int, Sequence[Rect]],
    ) -> PictureComparison:
        """Open both files, and compare these pages or all of them."""
        until = time.process_time() + self._cpu_s
        known = pages or range(1, (self._changed.count or 1) + 1)
        if self._cpu_s <= 0:
            return PictureComparison((), 0, len(known), ())
        with _opened(self._pdf, end) as before:
            after = self._opened_whole()
            counts = [0 if each is None else len(each) for each in (before, after)]
            if before is None or after is None or not max(counts):
                failed = tuple(known[:PAGES_MOST])
                return PictureComparison((), 0, len(known), failed)
            # A tree that PDFium reads in another way names other pages.
            if pages is None or {*counts} != {self._changed.count}:
                pages = range(1, max(counts) + 1)
            shared = [page for page in pages[:PAGES_MOST] if page <= min(counts)]
            found = _Counts()
            # Pages that only one of the two has: there is nothing to draw.
            only_one = pages[-1] - min(counts) if pages[-1] > min(counts) else 0
            found.compared += only_one
            first = min(counts) + 1
            found.different.update(range(first, first + min(only_one, PAGES_MOST)))
            for page in shared:
                if time.process_time() > until:
                    break
                self._compare_page(before, page, revision, masks.get(page, ()), found)
        different = tuple(sorted(found.different))
        return PictureComparison(
            different, found.compared, len(pages), tuple(found.failed)
        )

    def _compare_page(
        self,
        before: pypdfium2.PdfDocument,
        page: int,
        revision: int,
        masks: Sequence[Rect],
        found: _Counts,
    ) -> None:
        """Compare one page, and its content alone if masks might cover a change."""
        bare = bool(masks) and self._changed.may_change_content(page, revision)
        for is_bare in (False, True)[: 1 + bare]:
            shown = () if is_bare else masks
            differ = self._looks_different(before, page, shown, is_bare=is_bare)
            if differ:
                # The first document of a process that uses a font which is not
                # embedded gets another one for it than all later documents.
                self._reopen(page, is_bare=is_bare)
                differ = self._looks_different(before, page, shown, is_bare=is_bare)
            if differ is None:
                found.failed.append(page)
                return
            if differ:
                found.different.add(page)
                break
        found.compared += 1

    def _looks_different(
        self,
        before: pypdfium2.PdfDocument,
        page: int,
        masks: Sequence[Rect],
        *,
        is_bare: bool,
    ) -> bool | None:
        """Draw a page of both and compare; None if one of the two cannot be drawn."""
        now = self._of_whole(page, is_bare=is_bare)
        then = None if now is None else self._draw(before, page, is_bare=is_bare)
        if now is None or then is None:
            return None
        try:
            return _differ(then, now, masks)
        except MemoryError:
            return None

    def _reopen(self, page: int, *, is_bare: bool) -> None:
        """Open the whole file again, so that a page of it is drawn again."""
        picture = self._kept.pop((page, is_bare), None)
        self._kept_px -= 0 if picture is None else math.prod(picture.image.size)
        if self._whole is not None:
            self._whole.close()
            self._whole = None
        self._is_opened = False

    def _opened_whole(self) -> pypdfium2.PdfDocument | None:
        """Open the whole file on first use; None if PDFium cannot."""
        if not self._is_opened:
            self._is_opened = True
            with suppress(pypdfium2.PdfiumError, MemoryError):
                self._whole = _open(self._pdf, len(self._pdf))
        return self._whole

    def _of_whole(self, page: int, *, is_bare: bool) -> _Picture | None:
        """Return a page of the whole file, drawn once unless too many are kept."""
        key = page, is_bare
        if key in self._kept:
            return self._kept[key]
        whole = self._opened_whole()
        picture = None if whole is None else self._draw(whole, page, is_bare=is_bare)
        size = 0 if picture is None else math.prod(picture.image.size)
        if self._kept_px + size <= _KEPT_PX_MOST:
            self._kept[key] = picture
            self._kept_px += size
        return picture

    def _draw(
        self, document: pypdfium2.PdfDocument, page: int, *, is_bare: bool
    ) -> _Picture | None:
        """Draw a page; None if PDFium cannot."""
        self.draws += 1
        try:
            return _draw(document, page, is_bare=is_bare)
        # Sizes that are no numbers, or below a pixel, raise the middle two.
        except (pypdfium2.PdfiumError, ValueError, OverflowError, MemoryError):
            return None


@contextmanager
def _opened(pdf: bytes, end: int) -> Iterator[pypdfium2.PdfDocument | None]:
    """Open a revision and close it at the end; None if PDFium cannot open it."""
    document = None
    with suppress(pypdfium2.PdfiumError, MemoryError):
        document = _open(pdf, end)
    try:
        yield document
    finally:
        if document is not None:
            document.close()


def _open(pdf: bytes, end: int) -> pypdfium2.PdfDocument:
    """Open a file up to a byte, with its fields drawn as readers show them.

    The bytes are not copied, so the caller keeps them until the document is closed.

    Raises:
        pypdfium2.PdfiumError: PDFium cannot read it.
    """
    # Through the raw call, because a slice would copy the file for every signature.
    handle = pypdfium2.raw.FPDF_LoadMemDocument64(pdf, end, None)
    if not handle:
        raise pypdfium2.PdfiumError("PDFium cannot read it")
    document = pypdfium2.PdfDocument(handle)
    try:
        # Before the pages are counted, or the values of fields would be missing.
        document.init_forms()
    except pypdfium2.PdfiumError:
        document.close()
        raise
    return document


def _draw(document: pypdfium2.PdfDocument, page: int, *, is_bare: bool) -> _Picture:
    """Draw a page, bare of annotations and fields or as readers show it.

    Raises:
        pypdfium2.PdfiumError: PDFium cannot draw it.
        ValueError: it is smaller than a pixel, or its size is no number.
        OverflowError: its size is infinite.
    """
    opened = document[page - 1]
    try:
        scale = min(_SCALE, _SIDE_PX_MOST / max(*opened.get_size(), 1))
        bitmap = opened.render(
            scale=scale, draw_annots=not is_bare, may_draw_forms=not is_bare
        )
        try:
            # Pillow copies the pixels, since PDFium's are in another order.
            image = bitmap.to_pil()
            points = ((0, 0), (_FAR, 0), (0, _FAR))
            position = bitmap.get_posconv(opened)
            (e, f), (ax, ay), (cx, cy) = (position.to_bitmap(*at) for at in points)
        finally:
            bitmap.close()
    finally:
        opened.close()
    matrix = ((ax - e) / _FAR, (ay - f) / _FAR, (cx - e) / _FAR, (cy - f) / _FAR, e, f)
    return _Picture(image, matrix)


def _differ(then: _Picture, now: _Picture, masks: Sequence[Rect]) -> bool:
    """Return whether two pictures differ in any pixel outside the masks.

    One renderer draws both, so there is no tolerance.
    """
    if then.image.size != now.image.size:
        return True
    difference = ImageChops.difference(then.image, now.image)
    if difference.getbbox() is None:
        return False
    for rect in masks:
        if (box := now.box(rect)) is not None:
            difference.paste((0, 0, 0), box)
    return difference.getbbox() is not None
