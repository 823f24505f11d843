"""Draws one page as a PNG, with or without a stamp; runs in a confined job only.

PDFium finds no font of the host there and falls back to its own, so a page looks
the same on every machine.
"""

import io
from typing import Final

import pypdfium2

from appliance.domain.appearance.details import LogoPicture
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.pades.appearance.fonts import StampFonts
from worker.pades.appearance.form_xobject import draw_on_page

_POINTS_PER_INCH: Final = 72
_SIDE_PX_MAX: Final = 4000
_PNG_LEVEL: Final = 3  # a third of the time of the usual 6 for a tenth more bytes


def render(
    pdf: bytes,
    page: int,
    dpi: int,
    stamp: StampLayout | None,
    fonts: StampFonts,
    picture: LogoPicture | None = None,
) -> bytes:
    """Draw one page as a reader shows it.

    Args:
        pdf: the whole file.
        page: 1-based.
        dpi: dots an inch; less is used where a side would pass 4,000 pixels.
        stamp: laid on the page it names, or None.
        fonts: the stamp's fonts.
        picture: the logo that the stamp names, if it names one.

    Returns:
        A PNG.

    Raises:
        DocumentRefusedError: `PAGE_OUT_OF_RANGE`; `PDF_PASSWORD_NEEDED`;
            `PDF_MALFORMED` where PDFium cannot read the file or the page.
    """
    if stamp is not None:
        pdf = draw_on_page(pdf, stamp, fonts, picture)
    try:
        return _draw(pdf, page, dpi)
    except pypdfium2.PdfiumError as exc:
        needs_password = exc.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD
        code = (
            ErrorCode.PDF_PASSWORD_NEEDED if needs_password else ErrorCode.PDF_MALFORMED
        )
        raise DocumentRefusedError(code, "PDFium cannot read it") from exc


def _draw(pdf: bytes, page: int, dpi: int) -> bytes:
    """Draw with PDFium.

    Raises:
        DocumentRefusedError: there is no such page.
    """
    document = pypdfium2.PdfDocument(pdf)
    if document.get_formtype() != pypdfium2.raw.FORMTYPE_NONE:
        # Before anything else is asked, or the values of fields would be missing.
        document.init_forms()
    pages = len(document)
    if not 1 <= page <= pages:
        raise DocumentRefusedError(
            ErrorCode.PAGE_OUT_OF_RANGE, params={"page": page, "pages": pages}
        )
    opened = document[page - 1]
    longest_pt = max(*opened.get_size(), 1)
    scale = min(dpi / _POINTS_PER_INCH, _SIDE_PX_MAX / longest_pt)
    image = opened.render(scale=scale).to_pil()
    out = io.BytesIO()
    image.convert("RGB").save(out, "PNG", compress_level=_PNG_LEVEL)
    return out.getvalue()
