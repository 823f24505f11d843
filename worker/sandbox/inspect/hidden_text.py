"""Finds text of the pages that a reader does not show, as PDFium lays it out.

Two kinds are told: text beside what is visible of its page, and text that is seen
without the annotations and not with them. Text that the page's own content covers
or draws in the colour of the paper is not looked for. As each page is opened once,
text in fonts that are not embedded is looked for on the way.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pypdfium2
from PIL import Image, ImageStat

from appliance.domain.documents.inspected import FindingKind
from worker.sandbox.inspect.hidden_annotations import Rect
from worker.sandbox.inspect.unembedded_fonts import UnembeddedText

_CPU_S: Final = 2.0
"""As long as it is looked for; the rest of a longer document is not looked at."""
_COMPARED_MOST: Final = 20
"""Pages that are drawn to be compared."""
_SCALE: Final = 1.5
_SIDE_PX_MOST: Final = 2_000
_COVERED_LEAST: Final = 3  # characters: a border may hide one
_INK: Final = 48  # of 255: what is fainter nobody reads
_KEPT: Final = 0.25  # of the contrast

_Image = Image.Image


def examine_text(
    pdf: bytes, covering: Mapping[int, Sequence[Rect]], *, lacks_programs: bool
) -> set[FindingKind]:
    """Look at the text of every page, for as long as two seconds of CPU.

    Args:
        pdf: the whole file; encrypted with the empty password at the most.
        covering: what annotations may cover, by page, the first being 0.
        lacks_programs: a font may be used that is not embedded.

    Returns:
        `OFF_PAGE_TEXT` and `COVERED_TEXT` where there is such text, nothing of them
        where PDFium cannot read the file; and what is found of the fonts.
    """
    found: set[FindingKind] = set()
    until = time.process_time() + _CPU_S
    compared = 0
    fonts = UnembeddedText(until, is_wanted=lacks_programs)
    try:
        document = _opened(pdf)
        for at in range(len(document)):
            if time.process_time() > until:
                fonts.leave_open()
                break
            page = document[at]
            text = page.get_textpage()
            if _is_beside(page, text):
                found.add(FindingKind.OFF_PAGE_TEXT)
            if at in covering and compared < _COMPARED_MOST:
                compared += 1
                if _is_covered(page, text, covering[at]):
                    found.add(FindingKind.COVERED_TEXT)
            fonts.take(page, text)
            text.close()
            page.close()
    except pypdfium2.PdfiumError:
        fonts.leave_open()
    return found | fonts.found


def _opened(pdf: bytes) -> pypdfium2.PdfDocument:
    """The document, with its fields drawn as they are shown.

    Raises:
        pypdfium2.PdfiumError: PDFium cannot read it.
    """
    document = pypdfium2.PdfDocument(pdf)
    if document.get_formtype() != pypdfium2.raw.FORMTYPE_NONE:
        document.init_forms()
    return document


def _is_beside(page: pypdfium2.PdfPage, text: pypdfium2.PdfTextPage) -> bool:
    """Say whether any letter or digit lies beside what is visible of the page."""
    visible = page.get_bbox()
    lines = (text.get_rect(at) for at in range(text.count_rects()))
    if all(_is_inside(line, visible) for line in lines):
        return False
    return any(_is_apart(box, visible) for box in _letters(text))


def _letters(text: pypdfium2.PdfTextPage) -> Iterator[Rect]:
    """Boxes of all letters and digits, in user space."""
    for at in range(text.count_chars()):
        code = pypdfium2.raw.FPDFText_GetUnicode(text, at)
        if code <= sys.maxunicode and chr(code).isalnum():
            left, bottom, right, top = text.get_charbox(at)
            if left < right and bottom < top:
                yield left, bottom, right, top


def _is_covered(
    page: pypdfium2.PdfPage, text: pypdfium2.PdfTextPage, covering: Sequence[Rect]
) -> bool:
    """Say whether the annotations take text away that is seen without them."""
    below = [
        box for box in _letters(text) if any(_is_inside(box, each) for each in covering)
    ]
    if len(below) < _COVERED_LEAST:
        return False
    scale = min(_SCALE, _SIDE_PX_MOST / max(*page.get_size(), 1))
    bare = page.render(scale=scale, draw_annots=False, may_draw_forms=False)
    shown = page.render(scale=scale)
    position = bare.get_posconv(page)
    before, after = bare.to_pil().convert("L"), shown.to_pil().convert("L")
    covered = 0
    for left, bottom, right, top in below:
        (x0, y0), (x1, y1) = (
            position.to_bitmap(left, bottom),
            position.to_bitmap(right, top),
        )
        (x0, x1), (y0, y1) = sorted((x0, x1)), sorted((y0, y1))
        # Of a letter as large as the sky only what is on the page is cut out.
        box = (
            max(x0, 0),
            max(y0, 0),
            min(x1 + 1, before.width),
            min(y1 + 1, before.height),
        )
        if box[0] < box[2] and box[1] < box[3]:
            covered += _is_gone(before.crop(box), after.crop(box))
        if covered >= _COVERED_LEAST:
            return True
    return False


def _is_gone(before: _Image, after: _Image) -> bool:
    """Say whether what could be read before cannot be read after."""
    levels = [level for level, count in enumerate(before.histogram()) if count]
    if levels[-1] - levels[0] < _INK:
        return False
    middle = (levels[0] + levels[-1]) // 2
    paper = before.point([255 * (level > middle) for level in range(256)])
    ink = before.point([255 * (level <= middle) for level in range(256)])
    was, now = (
        _mean(picture, paper) - _mean(picture, ink) for picture in (before, after)
    )
    return abs(now) < _KEPT * was


def _mean(picture: _Image, of: _Image) -> float:
    """Mean brightness of a part of a picture."""
    return float(ImageStat.Stat(picture, of).mean[0])


def _is_inside(box: Rect, frame: Rect) -> bool:
    """Say whether a box lies within another, to half a point."""
    return (
        box[0] >= frame[0] - 0.5
        and box[1] >= frame[1] - 0.5
        and box[2] <= frame[2] + 0.5
        and box[3] <= frame[3] + 0.5
    )


def _is_apart(box: Rect, frame: Rect) -> bool:
    """Say whether two boxes share nothing."""
    return (
        box[2] <= frame[0]
        or box[0] >= frame[2]
        or box[3] <= frame[1]
        or box[1] >= frame[3]
    )
