"""Writes a damaged file anew, so that it can be signed; in a confined job only.

qpdf rebuilds what is wrong with a file's structure and copies the content of its
streams as it is. No file that holds a signature is touched, and none that was cut
off: what it lacks nobody knows.
"""

import hashlib
import io
import re
from typing import Final

import pikepdf
import pypdfium2

from appliance.domain.documents import Damage, RepairedCopy
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.sandbox import BINARY_BYTES_MAX
from worker.sandbox.form_repair import FormMender, mend_annotations
from worker.sandbox.inspect.trailer_checks import is_well_ended
from worker.sandbox.metadata_repair import mend_metadata

_HEADER: Final = b"%PDF-"
_ORIGIN: Final = "/OriginalSha256"
_DICTIONARIES: Final = ("/Extensions", "/StructTreeRoot", "/MarkInfo")
"""Entries of the catalog that validators take for dictionaries."""
_SIGNATURE: Final = b"/ByteRange"
_SIGNATURE_TYPES: Final = {"/Sig", "/DocTimeStamp"}
_OBJECT: Final = re.compile(rb"\b\d{1,10}\s+\d{1,5}\s+obj\b")
_END: Final = re.compile(rb"startxref|%%EOF")
# By qpdf's words, of which each warning is one sentence; some say nothing.
_NO_NEWS: Final = re.compile(r"file is damaged|Resources is missing")
_DAMAGE: Final = (
    (Damage.STREAMS, re.compile(r"stream length|/Length|endstream")),
    (Damage.PAGE_TREE, re.compile(r"\bkid \d|/Pages|page tree")),
    (
        Damage.CROSS_REFERENCES,
        re.compile(r"xref|trailer|cross-reference|number of objects|loop detected"),
    ),
)


def repair(pdf: bytes) -> RepairedCopy:
    """Write a damaged file anew, with the same pages.

    The copy's information dictionary names the SHA-256 of the file that it was
    made of. An encrypted file that opens with the empty password stays encrypted;
    of any other the same bytes give the same copy.

    Args:
        pdf: the whole file.

    Raises:
        DocumentRefusedError: `PDF_PASSWORD_NEEDED`; `PDF_TOO_COMPLEX`, the copy is
            too large; or `PDF_MALFORMED`: it cannot be read, was cut off, holds a
            signature, or would lose a page.

    Source: decisions "PDFs"; ISO 32000-2, 7.5.
    """
    if _is_cut_off(pdf):
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "cut off")
    try:
        with pikepdf.open(io.BytesIO(pdf), suppress_warnings=True) as opened:
            _demand_unsigned(pdf, opened)
            pages = len(opened.pages)  # which mends the tree
            mended = _mend(opened)
            # So that each file has a copy of its own, which names it.
            opened.docinfo[_ORIGIN] = hashlib.sha256(pdf).hexdigest()
            copy = _written(opened)
            warnings = [str(each) for each in opened.get_warnings()]
    except pikepdf.PasswordError as exc:
        raise DocumentRefusedError(ErrorCode.PDF_PASSWORD_NEEDED) from exc
    except pikepdf.PdfError as exc:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "not repairable") from exc
    if len(copy) > BINARY_BYTES_MAX:
        raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "a large copy")
    _demand_same_pages(pdf, copy, pages)
    return RepairedCopy(copy, _damage(pdf, warnings, mended))


def _mend(opened: pikepdf.Pdf) -> set[Damage]:
    """Put right what qpdf takes as it is and validators do not; what was wrong."""
    found = set()
    if mend_metadata(opened):
        found.add(Damage.METADATA)
    if FormMender(opened).mend() | mend_annotations(opened):
        found.add(Damage.FORM_FIELDS)
    for key in _DICTIONARIES:
        entry = opened.Root.get(key)
        if entry is not None and not isinstance(entry, pikepdf.Dictionary):
            found.add(Damage.SYNTAX)
            del opened.Root[key]
    # Validation data of signatures, in a file that has none.
    if "/DSS" in opened.Root:
        del opened.Root["/DSS"]
    return found


def _is_cut_off(pdf: bytes) -> bool:
    """Say whether an object begins after the last end that the file marks."""
    end = max((found.start() for found in _END.finditer(pdf)), default=-1)
    return end < 0 or _OBJECT.search(pdf, end) is not None


def _demand_unsigned(pdf: bytes, opened: pikepdf.Pdf) -> None:
    """Refuse a file with anything that looks like a signature.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`.
    """
    found = _SIGNATURE in pdf or any(
        isinstance(each, pikepdf.Dictionary)
        and ("/ByteRange" in each or str(each.get("/Type")) in _SIGNATURE_TYPES)
        for each in opened.objects
    )
    if found:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "damaged and signed")


def _written(opened: pikepdf.Pdf) -> bytes:
    """The file as qpdf understands it."""
    out = io.BytesIO()
    if opened.is_encrypted:
        opened.save(out, encryption=True)
    else:
        opened.save(
            out,
            deterministic_id=True,
            compress_streams=False,
            stream_decode_level=pikepdf.StreamDecodeLevel.none,
        )
    return out.getvalue()


def _demand_same_pages(pdf: bytes, copy: bytes, pages: int) -> None:
    """Refuse a copy that has not the pages which PDFium sees in the original.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`.
    """
    after = _page_sizes(copy)
    if after is None or len(after) != pages:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "the copy is no better")
    before = _page_sizes(pdf)
    if before is not None and before != after:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "pages would change")


def _page_sizes(pdf: bytes) -> list[tuple[float, float]] | None:
    """Width and height of each page in points, or None where PDFium reads none."""
    try:
        document = pypdfium2.PdfDocument(pdf)
        sizes = [document.get_page_size(at) for at in range(len(document))]
        document.close()
    except pypdfium2.PdfiumError:
        return None
    return sizes


def _damage(pdf: bytes, warnings: list[str], mended: set[Damage]) -> tuple[Damage, ...]:
    """Name what was wrong: what was mended, what qpdf said, the file's two ends."""
    found = mended | {
        next((kind for kind, words in _DAMAGE if words.search(said)), Damage.SYNTAX)
        for said in warnings
        if not _NO_NEWS.search(said)
    }
    if not pdf.startswith(_HEADER) or not is_well_ended(pdf):
        found.add(Damage.SURROUNDINGS)
    return tuple(sorted(found or {Damage.SYNTAX}))
