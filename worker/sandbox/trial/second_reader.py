"""Comparison of a document with its signed copy, by readers that are not the engine.

qpdf compares the objects that the signatures wrote again, PDFium the pages. A signature
may add a field, a note, data and a stamp; all else has to be as it was.

Source: ISO 32000-2, 12.7 and 12.8; docs/documents.md "The trial signatures".
"""

import io
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final

import pikepdf
import pypdfium2

from appliance.domain.documents.inspected import FindingKind, Inspection, PageBox
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.pades.pdf.fast_reader import Reader
from worker.sandbox.page_looks import PageLooks, Rect

_REFERENCE: Final = object()
_DEEPEST: Final = 100
_HALF_TURN: Final = 180
_SIDE_PT: Final = 1.0
_SIDE_PART: Final = 1e-4
"""What a side may differ by: PDFium has it as a number of 32 bits."""
_ADDED: Final = frozenset(
    {
        # Of the catalog.
        "/AcroForm",
        "/Extensions",
        "/DSS",
        "/Version",
        "/ADBE",
        "/ESIC",
        # Of a page, and of the form.
        "/Annots",
        "/Tabs",
        "/Fields",
        "/SigFlags",
        # Tags of the fields (ISO 32000-2, 14.7).
        "/K",
        "/ParentTree",
        "/ParentTreeNextKey",
        "/Nums",
        # Validation data (ISO 32000-2, 12.8.4.3).
        "/Certs",
        "/OCSPs",
        "/CRLs",
        "/VRI",
    }
)
"""Entries that a signature may add, make longer, or raise."""
_LIMITS: Final = "/Limits"
_OF_SIGNATURE: Final = re.compile(r"/[0-9A-F]{40}")
"""Key of a signature's own validation data."""
_OF_FIELD: Final = frozenset({"/V", "/AP", "/TU", "/F", "/P"})


class OriginalDocument:
    """A document, to be compared with signed copies of it.

    Args:
        pdf: the whole file.
        described: it.

    Raises:
        DocumentRefusedError: `PDF_UNVERIFIABLE`, qpdf or PDFium cannot read it, or not
            the same pages: nobody could be shown what is signed.
    """

    def __init__(self, pdf: bytes, described: Inspection) -> None:
        self._size = len(pdf)
        try:
            self._objects = _opened(pdf)
        except pikepdf.PdfError as exc:
            raise _changed("qpdf cannot read it") from exc
        try:
            self._looks = PageLooks(pdf)
        except pypdfium2.PdfiumError as exc:
            self._objects.close()
            raise _not_shown("PDFium cannot open it") from exc
        try:
            self._demand_pages(described)
        except DocumentRefusedError:
            self.close()
            raise

    def close(self) -> None:
        """Close what qpdf and PDFium have open."""
        self._objects.close()
        self._looks.close()

    def _demand_pages(self, described: Inspection) -> None:
        """Demand that PDFium has each page that a stamp may be put on.

        Raises:
            DocumentRefusedError: `PDF_UNVERIFIABLE`.
        """
        pages, shown = len(described.pages), len(self._looks)
        # Where the tree says more, PDFium believes it.
        may_say_more = FindingKind.COUNT_LIES in described.findings
        if shown < pages or (shown > pages and not may_say_more):
            raise _not_shown("PDFium has other pages")
        try:
            for number, page in enumerate(described.pages, 1):
                size = self._looks.size(number)
                if not _is_size(size, page):
                    raise _not_shown(f"page {number} has another size for PDFium")
        except pypdfium2.PdfiumError as exc:
            raise _not_shown("PDFium has other pages") from exc

    def demand_kept(self, signed: bytes, marks: Mapping[int, Sequence[Rect]]) -> None:
        """Demand that signing has changed nothing but what a signature is.

        Args:
            signed: a signed copy.
            marks: where something is seen in it that was not, as of `SignedCopy`.

        Raises:
            DocumentRefusedError: `PDF_UNVERIFIABLE`.
        """
        written = _written_since(signed, self._size)
        before = self._objects
        try:
            with _opened(signed) as after:
                _demand_same_trailer(before, after)
                for key in written:
                    # A number that nothing had is new.
                    old: object = before.get_object(key)
                    if old is not None and not _is_kept(old, after.get_object(key)):
                        raise _changed(f"object {key[0]} would be another one")
        except pikepdf.PdfError as exc:
            raise _changed("qpdf cannot read it") from exc
        if marks:
            self._demand_same_looks(self._looks, signed, marks)

    def _demand_same_looks(
        self, before: PageLooks, signed: bytes, marks: Mapping[int, Sequence[Rect]]
    ) -> None:
        """Demand that pages with marks look as they did, outside of these.

        Raises:
            DocumentRefusedError: `PDF_UNVERIFIABLE`.
        """
        try:
            with PageLooks(signed) as after:
                if len(before) != len(after):
                    raise _changed("it would have other pages")
                for page, boxes in marks.items():
                    if before.without(page, boxes) != after.without(page, boxes):
                        raise _changed("a page would look different")
        except pypdfium2.PdfiumError as exc:
            raise _changed("PDFium cannot read it") from exc


def _written_since(signed: bytes, size: int) -> list[tuple[int, int]]:
    """Numbers and generations that revisions after an offset list, each once."""
    reader = Reader(io.BytesIO(signed), signed)
    found: dict[tuple[int, int], None] = {}
    for at in range(reader.total_revisions):
        if reader.xrefs.get_startxref_for_revision(at) >= size:
            for each in reader.xrefs.explicit_refs_in_revision(at):
                found[each.idnum, each.generation] = None
    return list(found)


def _opened(pdf: bytes) -> pikepdf.Pdf:
    return pikepdf.open(
        io.BytesIO(pdf), suppress_warnings=True, inherit_page_attributes=False
    )


def _changed(reason: str) -> DocumentRefusedError:
    return DocumentRefusedError(
        ErrorCode.PDF_UNVERIFIABLE, f"after it is signed, {reason}"
    )


def _not_shown(reason: str) -> DocumentRefusedError:
    return DocumentRefusedError(ErrorCode.PDF_UNVERIFIABLE, reason)


def _is_size(size: tuple[float, float], page: PageBox) -> bool:
    """Say whether a page's width and height as it is seen are those of its box."""
    sides = (page.x1 - page.x0, page.y1 - page.y0)
    if page.rotate % _HALF_TURN:
        sides = (sides[1], sides[0])
    return all(
        abs(seen - side) <= _SIDE_PT + _SIDE_PART * side
        for seen, side in zip(size, sides, strict=True)
    )


def _demand_same_trailer(before: pikepdf.Pdf, after: pikepdf.Pdf) -> None:
    """Demand that the same catalog and information are named.

    Raises:
        DocumentRefusedError: `PDF_UNVERIFIABLE`.
    """
    for key in ("/Root", "/Info"):
        old, new = before.trailer.get(key), after.trailer.get(key)
        if key == "/Info" and isinstance(old, pikepdf.Dictionary):
            # pyHanko makes an object of one within the trailer.
            old = old if old.is_indirect else before.make_indirect(old)
            if _is_kept(old, new):
                continue
        if _told(old) != _told(new):
            raise _changed(f"{key} would be another one")


def _is_kept(old: Any, new: Any) -> bool:
    """Say whether a value that was written again says all that it did.

    References are followed nowhere: each object is compared by itself.
    """
    if isinstance(old, pikepdf.Stream):
        return (
            isinstance(new, pikepdf.Stream)
            and old.stream_dict.unparse() == new.stream_dict.unparse()
            and old.read_raw_bytes() == new.read_raw_bytes()
        )
    if isinstance(old, pikepdf.Dictionary) and isinstance(new, pikepdf.Dictionary):
        return _are_entries_kept(old, new)
    if isinstance(old, pikepdf.Array) and isinstance(new, pikepdf.Array):
        # Of an object of its own: the notes of a page, fields, or tags.
        return _is_longer(old, new)
    return _told(old) == _told(new)


def _are_entries_kept(old: pikepdf.Object, new: pikepdf.Object) -> bool:
    """Say whether a dictionary lacks nothing, and what is new in it may be."""
    may_be_filled = _is_signature_field(new)
    # Not by `get`, which takes no name that is not UTF-8.
    before, after = dict(old.items()), dict(new.items())
    return all(
        _told(before.get(key)) == _told(after.get(key))
        or (may_be_filled and key in _OF_FIELD)
        or (key in _ADDED and _is_grown(before.get(key), after.get(key)))
        or (key == _LIMITS and _is_raised(before.get(key), after.get(key)))
        or (before.get(key) is None and _OF_SIGNATURE.fullmatch(key) is not None)
        for key in before.keys() | after.keys()
    )


def _is_grown(was: Any, has: Any) -> bool:
    """Say whether a value that a signature may change lacks nothing of what it had."""
    if isinstance(has, pikepdf.Array):
        # One element stands by itself.
        listed = was if isinstance(was, pikepdf.Array) else pikepdf.Array([was])
        return was is None or _is_longer(listed, has)
    if isinstance(was, pikepdf.Dictionary):
        # Of its own number it would be compared by itself, and has it still.
        return not was.is_indirect and _is_kept(was, has)
    return was is None or has is not None


def _is_raised(was: Any, has: Any) -> bool:
    """Say whether the limits of a node begin as they did, and end no earlier.

    Source: ISO 32000-2, 7.9.7 (number trees).
    """
    if not isinstance(was, pikepdf.Array) or not isinstance(has, pikepdf.Array):
        return False
    (least, most), (first, last) = was.as_list(), has.as_list()
    return _told(least) == _told(first) and _told(most)[1] <= _told(last)[1]  # type: ignore[operator]


def _is_longer(old: pikepdf.Object, new: pikepdf.Object) -> bool:
    """Say whether an array begins with what it had, whatever follows."""
    kept = [_told(each) for each in old.as_list()]
    return kept == [_told(each) for each in new.as_list()][: len(kept)]


def _is_signature_field(node: pikepdf.Object) -> bool:
    """Say whether a dictionary is a signature field, or a widget of one.

    Source: ISO 32000-2, 12.7.4.1 (`/FT` is inherited).
    """
    at: Any = node
    for _ in range(_DEEPEST):
        if not isinstance(at, pikepdf.Dictionary):
            break
        kind = at.get("/FT")
        if kind is not None:
            return bool(kind == "/Sig")
        at = at.get("/Parent")
    return False


def _told(value: Any, depth: int = 0) -> tuple[object, object]:
    """A value, with references as such, so that it can be compared.

    Numbers count by their value: `.1` is `0.1`.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`.
    """
    if depth > _DEEPEST:
        raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "nested too deeply")
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal, Decimal(value)
    if not isinstance(value, pikepdf.Object):
        return type(value), value
    if value.is_indirect:
        return _REFERENCE, value.objgen
    if isinstance(value, pikepdf.Dictionary):
        items = sorted(value.items(), key=itemgetter(0))
        return dict, [(key, _told(each, depth + 1)) for key, each in items]
    if isinstance(value, pikepdf.Array):
        return list, [_told(each, depth + 1) for each in value.as_list()]
    return bytes, value.unparse()
