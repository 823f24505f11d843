"""Pages as PDFium draws them, small, to be compared; in confined jobs only."""

import math
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Final, Self

import pypdfium2
from PIL import Image

_CPU_S: Final = 2.0
"""Processor time of one comparison in seconds; no page is begun later."""
_SCALE: Final = 0.5
_SIDE_PX_MOST: Final = 1_000
_MARGIN_PX: Final = 1
"""Anti-aliasing draws edges into the neighbours."""
Rect = tuple[float, float, float, float]


class PageLooks:
    """Pictures of one file's pages.

    Args:
        pdf: the whole file, not encrypted or with the empty password.

    Raises:
        pypdfium2.PdfiumError: PDFium cannot read it.
    """

    def __init__(self, pdf: bytes) -> None:
        self._document = pypdfium2.PdfDocument(pdf)
        if self._document.get_formtype() != pypdfium2.raw.FORMTYPE_NONE:
            # Before anything else is asked, or the values of fields would be missing.
            self._document.init_forms()
        self._kept: dict[int, Image.Image] = {}

    def __len__(self) -> int:
        return len(self._document)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._document.close()

    def size(self, number: int) -> tuple[float, float]:
        """Width and height of a page as it is seen, in points; it is not drawn.

        Args:
            number: 1-based.

        Raises:
            pypdfium2.PdfiumError: PDFium cannot read it.
        """
        width, height = self._document.get_page_size(number - 1)
        return float(width), float(height)

    def picture(self, number: int) -> Image.Image:
        """A page, drawn once.

        Args:
            number: 1-based.

        Raises:
            pypdfium2.PdfiumError: PDFium cannot draw it.
        """
        if number not in self._kept:
            self._kept[number] = self.drawn(number)
        return self._kept[number]

    def drawn(self, number: int) -> Image.Image:
        """The same, not kept.

        Args:
            number: 1-based.

        Raises:
            pypdfium2.PdfiumError: PDFium cannot draw it.
        """
        with closing(self._document[number - 1]) as page:
            longest = max(*page.get_size(), 1)
            scale = min(_SCALE, _SIDE_PX_MOST / longest)
            drawn: Image.Image = page.render(scale=scale).to_pil()
        return drawn

    def without(self, number: int, marks: Sequence[Rect]) -> Image.Image:
        """A copy of a page's picture with boxes painted over.

        Args:
            number: 1-based.
            marks: x0, y0, x1, y1 on the page as seen, from its left and top, in parts
                of its width and height.
        """
        picture = self.picture(number).copy()
        across, down = picture.size
        for x0, y0, x1, y1 in marks:
            box = (
                math.floor(x0 * across) - _MARGIN_PX,
                math.floor(y0 * down) - _MARGIN_PX,
                math.ceil(x1 * across) + _MARGIN_PX,
                math.ceil(y1 * down) + _MARGIN_PX,
            )
            picture.paste(0, box)
        return picture


def are_drawn_alike(pdf: bytes, copy: bytes) -> bool | None:
    """Say whether the pages of a file and of its copy look the same.

    Args:
        pdf: a whole file, perhaps a damaged one.
        copy: another one.

    Returns:
        False also where they have not as many pages. None where no page is known to
        differ and not each one was compared: no time was left, or PDFium cannot draw
        one.
    """
    until = time.process_time() + _CPU_S
    try:
        with closing(PageLooks(pdf)) as before, closing(PageLooks(copy)) as after:
            if len(before) != len(after):
                return False
            for number in range(1, len(after) + 1):
                if time.process_time() > until:
                    return None
                if before.drawn(number) != after.drawn(number):
                    return False
    except pypdfium2.PdfiumError:
        return None
    return True
