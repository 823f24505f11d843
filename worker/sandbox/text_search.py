"""Finds a text on the pages of a PDF, as PDFium reads them; in a confined job only.

Texts are compared in NFC and case counts. Any run of white space, also a line's end,
is as one space; at the ends of a text there is none.

A document is searched from its first page on, within bounds of pages, characters and
time: what lies beyond them is not said to be absent.
"""

import sys
import time
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pypdfium2

from appliance.domain.documents.inspected import FoundText, Rect, TextSearch
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.sandbox import EDGE_MOST

PAGES_MOST: Final = 500
"""Pages that are searched, unless one is named."""
CHARACTERS_MOST: Final = 1_000_000
"""Of all these pages."""
_CPU_S: Final = 5.0
_COMBINING: Final = ("Mn", "Mc", "Me")
_HIGH: Final = range(0xD800, 0xDC00)
_LOW: Final = range(0xDC00, 0xE000)


@dataclass(slots=True)
class _Bounds:
    """What is left of the characters and the time."""

    characters: int = CHARACTERS_MOST
    until: float = field(default_factory=lambda: time.process_time() + _CPU_S)

    @property
    def are_passed(self) -> bool:
        return self.characters <= 0 or time.process_time() > self.until


def find_text(
    pdf: bytes, text: str, occurrence: int, page: int | None = None
) -> TextSearch:
    """Look for a text.

    Args:
        pdf: the whole file; encrypted with the empty password at the most.
        text: what is looked for.
        occurrence: which of several, from 1; they do not overlap.
        page: the only one that is searched, 1-based; None: the first `PAGES_MOST`.

    Raises:
        DocumentRefusedError: `PAGE_OUT_OF_RANGE`; `PDF_PASSWORD_NEEDED`;
            `PDF_MALFORMED` where PDFium cannot read the file or a page.
    """
    wanted = " ".join(unicodedata.normalize("NFC", text).split())
    if not wanted:
        return TextSearch(None)
    try:
        return _search(pypdfium2.PdfDocument(pdf), wanted, occurrence, page)
    except pypdfium2.PdfiumError as exc:
        needs_password = exc.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD
        code = (
            ErrorCode.PDF_PASSWORD_NEEDED if needs_password else ErrorCode.PDF_MALFORMED
        )
        raise DocumentRefusedError(code, "PDFium cannot read it") from exc


def _search(
    document: pypdfium2.PdfDocument, wanted: str, occurrence: int, page: int | None
) -> TextSearch:
    """Look on each page in turn.

    Raises:
        DocumentRefusedError: `PAGE_OUT_OF_RANGE`.
    """
    pages = len(document)
    if page is not None and page > pages:
        raise DocumentRefusedError(
            ErrorCode.PAGE_OUT_OF_RANGE, params={"page": page, "pages": pages}
        )
    numbers = range(min(pages, PAGES_MOST)) if page is None else [page - 1]
    bounds = _Bounds()
    for number in numbers:
        if bounds.are_passed:
            return TextSearch(None, whole=False)
        opened = document[number]
        content = opened.get_textpage()
        for box in _boxes(content, wanted, bounds):
            occurrence -= 1
            if not occurrence:
                return TextSearch(FoundText(number + 1, box))
        content.close()
        opened.close()
    everything = page is not None or pages <= PAGES_MOST
    return TextSearch(None, whole=everything and bounds.characters >= 0)


def _boxes(
    content: pypdfium2.PdfTextPage, wanted: str, bounds: _Bounds
) -> Iterator[Rect]:
    """Boxes in user space around each place of a text on a page.

    A place where nothing is drawn, such as of characters without an extent, is none.
    """
    text, indexes = _read(content, bounds)
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        box = _around(content, indexes[at:end])
        if box is not None:
            yield box
        at = text.find(wanted, end)


def _read(
    content: pypdfium2.PdfTextPage, bounds: _Bounds
) -> tuple[str, Sequence[tuple[int, int]]]:
    """The text of a page as texts are compared, and where each character is from.

    Returns:
        The text, and for each of its characters the first of PDFium's and the one
        after its last.
    """
    count = content.count_chars()
    read = min(count, max(bounds.characters, 0))
    # Below zero: some of a page was left out.
    bounds.characters -= count
    characters: list[str] = []
    indexes: list[tuple[int, int]] = []
    for cluster, first, after in _clusters(content, read):
        if cluster.isspace():
            if characters and characters[-1] != " ":
                characters.append(" ")
                indexes.append((first, after))
            continue
        composed = unicodedata.normalize("NFC", cluster)
        characters.extend(composed)
        indexes.extend([(first, after)] * len(composed))
    return "".join(characters), indexes


def _clusters(
    content: pypdfium2.PdfTextPage, count: int
) -> Iterator[tuple[str, int, int]]:
    """Characters with the marks that combine with them, and where they are from."""
    cluster, first = "", 0
    high = 0
    for at in range(count):
        code = pypdfium2.raw.FPDFText_GetUnicode(content, at)
        if code in _HIGH:
            high = code
            continue
        if code in _LOW and high:
            code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00)
        high = 0
        if not 0 < code <= sys.maxunicode:
            continue
        character = chr(code)
        if cluster and unicodedata.category(character) in _COMBINING:
            cluster += character
            continue
        if cluster:
            yield cluster, first, at
        cluster, first = character, at
    if cluster:
        yield cluster, first, count


def _around(
    content: pypdfium2.PdfTextPage, indexes: Sequence[tuple[int, int]]
) -> Rect | None:
    """The box around some characters, of those that have an extent."""
    boxes = [content.get_charbox(at) for at in range(indexes[0][0], indexes[-1][1])]
    solid = [box for box in boxes if _is_solid(box)]
    if not solid:
        return None
    lefts, bottoms, rights, tops = zip(*solid, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)


def _is_solid(box: Rect) -> bool:
    """Whether a box has an extent, and lies where a page can be."""
    return (
        box[0] < box[2]
        and box[1] < box[3]
        and all(abs(edge) <= EDGE_MOST for edge in box)
    )
