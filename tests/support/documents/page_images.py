"""Pages as PDFium draws them, to be compared."""

import hashlib
from typing import Final

import pypdfium2
from PIL import Image, ImageChops

Box = tuple[float, float, float, float]
_LOOSE: Final = 1.5


def pictures(pdf: bytes, scale: float = 1.0) -> list[Image.Image]:
    """Every page as a reader shows it, annotations and fields included.

    Raises:
        pypdfium2.PdfiumError: it cannot be read.
    """
    document = pypdfium2.PdfDocument(pdf)
    if document.get_formtype() != pypdfium2.raw.FORMTYPE_NONE:
        document.init_forms()
    return [_drawn(page, scale) for page in document]


def pictures_or_none(pdf: bytes, scale: float = 1.0) -> list[Image.Image | None]:
    """The same; None in the place of a page that cannot be drawn.

    An empty page, one smaller than a pixel, or one that is broken is no reason to
    look at no other; of a file that PDFium does not open there is no page at all.
    """
    try:
        document = pypdfium2.PdfDocument(pdf)
        if document.get_formtype() != pypdfium2.raw.FORMTYPE_NONE:
            document.init_forms()
        count = len(document)
    except (pypdfium2.PdfiumError, ValueError):
        return []
    return [_drawn_or_none(document, at, scale) for at in range(count)]


def _drawn_or_none(
    document: pypdfium2.PdfDocument, at: int, scale: float
) -> Image.Image | None:
    try:
        return _drawn(document[at], scale)
    except (pypdfium2.PdfiumError, ValueError, MemoryError):
        # "Crop exceeds page dimensions" is a ValueError.
        return None


def _drawn(page: pypdfium2.PdfPage, scale: float) -> Image.Image:
    longest = max(*page.get_size(), 1)
    picture: Image.Image = page.render(scale=min(scale, 2000 / longest)).to_pil()
    return picture.convert("RGB")


def digest(picture: Image.Image) -> str:
    """A picture in short: size and pixels, hashed."""
    return hashlib.sha256(repr(picture.size).encode() + picture.tobytes()).hexdigest()


def difference(before: Image.Image, after: Image.Image) -> Box | None:
    """Where two pictures differ, in parts of width and height, top left first."""
    if before.size != after.size:
        return (0.0, 0.0, 1.0, 1.0)
    box = ImageChops.difference(before, after).getbbox()
    if box is None:
        return None
    width, height = before.size
    return box[0] / width, box[1] / height, box[2] / width, box[3] / height


def is_within(box: Box, size: tuple[float, float], place: Box) -> bool:
    """Whether a difference lies in a place, to a point and a half.

    Pictures have a pixel a point: half a point is what their rows are off.

    Args:
        box: from `difference`.
        size: width and height of the page, in points.
        place: x and y of the top left corner, width and height, in points.
    """
    (width, height), (x, y, wide, high) = size, place
    return (
        box[0] * width >= x - _LOOSE
        and box[1] * height >= y - _LOOSE
        and box[2] * width <= x + wide + _LOOSE
        and box[3] * height <= y + high + _LOOSE
    )
