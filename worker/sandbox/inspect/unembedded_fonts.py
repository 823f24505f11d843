"""Finds text in a font that the file neither holds nor need not hold.

Each program draws such text by a font of its own choice, whose letters may be others
than those of the program that the document was made by. Two readings have to agree:
the dictionaries, by qpdf, say which fonts lack a program; the pages, by PDFium, say
which text is shown in one of them. The standard 14 fonts are left out, since every
program has them, or has likenesses of the same widths.

Source: ISO 32000-2, 9.6.2.2, 9.8 and 9.9.
"""

import ctypes
import time
from collections.abc import Iterator
from typing import Final

import pikepdf
import pypdfium2
from pypdfium2 import raw as pdfium

from appliance.domain.documents.inspected import FindingKind

STANDARD: Final = frozenset(
    f"{family}{style}"
    for family, styles in (
        ("Helvetica", ("", "-Bold", "-Oblique", "-BoldOblique")),
        ("Courier", ("", "-Bold", "-Oblique", "-BoldOblique")),
        ("Times", ("-Roman", "-Bold", "-Italic", "-BoldItalic")),
        ("Symbol", ("",)),
        ("ZapfDingbats", ("",)),
    )
    for style in styles
)
"""Names of the standard 14 fonts. Source: ISO 32000-2, 9.6.2.2."""
_CPU_S: Final = 1.0
"""As long as dictionaries of fonts are looked through."""
_CHECKED_EACH: Final = 256
"""Drawn objects between two looks at the clock."""
_PROGRAMS: Final = ("/FontFile", "/FontFile2", "/FontFile3")
_UNSEEN: Final = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_NAME_BYTES: Final = 256


class _OutOfTimeError(Exception):
    """The time for looking is over."""


def lacks_programs(opened: pikepdf.Pdf) -> bool:
    """Return whether the resources of anything that is drawn have such a font.

    True where that is not known in time.

    Args:
        opened: the file.
    """
    until = time.process_time() + _CPU_S
    seen = pikepdf.ObjectSet()
    for scope in opened.content_scopes():
        if time.process_time() > until:
            return True
        if scope.resources is None or not seen.add(scope.resources):
            continue
        fonts = scope.resources.get("/Font")
        if not isinstance(fonts, pikepdf.Dictionary):
            continue
        for font in fonts.values():
            if not isinstance(font, pikepdf.Dictionary) or not seen.add(font):
                continue
            if _lacks_program(font):
                return True
    return False


def _lacks_program(font: pikepdf.Object) -> bool:
    """Return whether a font is neither embedded, nor standard, nor of Type 3."""
    kind = font.get("/Subtype")
    if kind == pikepdf.Name.Type3:
        return False
    if kind == pikepdf.Name.Type0:
        below = font.get("/DescendantFonts")
        holder = next(iter(below), None) if isinstance(below, pikepdf.Array) else None
    else:
        holder = font
    if not isinstance(holder, pikepdf.Dictionary):
        return True
    descriptor = holder.get("/FontDescriptor")
    if isinstance(descriptor, pikepdf.Dictionary):
        programs = (descriptor.get(key) for key in _PROGRAMS)
        if any(isinstance(each, pikepdf.Stream) for each in programs):
            return False
    return str(font.get("/BaseFont", ""))[1:] not in STANDARD


class UnembeddedText:
    """Search for such text in one page after the other.

    Args:
        until: CPU time of this process at which the search ends.
        is_wanted: False if every font has a program.
    """

    def __init__(self, until: float, *, is_wanted: bool) -> None:
        self.found: set[FindingKind] = set()
        """`UNEMBEDDED_FONTS`, or `UNEXAMINED_PARTS` where it is not known in time."""
        self._is_wanted = is_wanted
        self._until = until
        self._name = ctypes.create_string_buffer(_NAME_BYTES)
        self._count = 0

    def take(self, page: pypdfium2.PdfPage, text: pypdfium2.PdfTextPage) -> None:
        """Look at a page, unless the answer is known.

        Args:
            page: as PDFium draws it.
            text: of the page.
        """
        if not self._is_wanted:
            return
        try:
            for each in self._objects(page):
                if not self._is_shown_in_other(each):
                    continue
                self._demand_time()  # to read one text takes all letters of the page
                if not _is_blank(each, text):
                    self._end(FindingKind.UNEMBEDDED_FONTS)
                    break
        except _OutOfTimeError:
            self.leave_open()

    def leave_open(self) -> None:
        """Give up: what other pages show is not known."""
        if self._is_wanted:
            self._end(FindingKind.UNEXAMINED_PARTS)

    def _end(self, found: FindingKind) -> None:
        self.found.add(found)
        self._is_wanted = False

    def _objects(self, page: pypdfium2.PdfPage) -> Iterator[object]:
        """Texts that a page and its annotations draw.

        Raises:
            _OutOfTimeError: that is not known in time.
        """
        for at in range(pdfium.FPDFPage_CountObjects(page.raw)):
            yield from self._texts(pdfium.FPDFPage_GetObject(page.raw, at))
        for at in range(pdfium.FPDFPage_GetAnnotCount(page.raw)):
            note = pdfium.FPDFPage_GetAnnot(page.raw, at)
            if not note:
                continue
            try:
                if not pdfium.FPDFAnnot_GetFlags(note) & _UNSEEN:
                    for index in range(pdfium.FPDFAnnot_GetObjectCount(note)):
                        yield from self._texts(pdfium.FPDFAnnot_GetObject(note, index))
            finally:
                pdfium.FPDFPage_CloseAnnot(note)

    def _texts(self, drawn: object) -> Iterator[object]:
        """An object itself, or those of a form; PDFium ends forms within forms.

        Raises:
            _OutOfTimeError: that is not known in time.
        """
        self._count += 1
        if self._count % _CHECKED_EACH == 0:
            self._demand_time()
        kind = pdfium.FPDFPageObj_GetType(drawn)
        if kind == pdfium.FPDF_PAGEOBJ_TEXT:
            yield drawn
        elif kind == pdfium.FPDF_PAGEOBJ_FORM:
            for at in range(pdfium.FPDFFormObj_CountObjects(drawn)):
                yield from self._texts(pdfium.FPDFFormObj_GetObject(drawn, at))

    def _demand_time(self) -> None:
        """End the search if its time is over.

        Raises:
            _OutOfTimeError: it is.
        """
        if time.process_time() > self._until:
            raise _OutOfTimeError

    def _is_shown_in_other(self, drawn: object) -> bool:
        """Return whether a text is drawn in a font that PDFium has to choose."""
        font = pdfium.FPDFTextObj_GetFont(drawn)
        if not font or pdfium.FPDFFont_GetIsEmbedded(font):
            return False
        pdfium.FPDFFont_GetBaseFontName(font, self._name, _NAME_BYTES)
        if self._name.value.decode("utf-8", "replace") in STANDARD:
            return False
        mode = pdfium.FPDFTextObj_GetTextRenderMode(drawn)
        return bool(mode != pdfium.FPDF_TEXTRENDERMODE_INVISIBLE)


def _is_blank(drawn: object, text: pypdfium2.PdfTextPage) -> bool:
    """Return whether a text is of spaces alone; one that says nothing is not."""
    size = pdfium.FPDFTextObj_GetText(drawn, text.raw, None, 0)
    buffer = ctypes.create_string_buffer(max(size, 2))
    pointer = ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR))
    pdfium.FPDFTextObj_GetText(drawn, text.raw, pointer, size)
    return buffer.raw.decode("utf-16-le", "replace").rstrip("\0").isspace()
