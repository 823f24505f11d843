"""Writes a file anew, so that it can be signed; in a confined job only.

qpdf rebuilds what is wrong with a file's structure and copies the content of its
streams as it is. What comes out has one reading: each object once, all of them listed,
none referred to that is not there. No file that holds a signature is touched, and none
that was cut off: what it lacks nobody knows.
"""

import hashlib
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pikepdf
import pypdfium2
from pyhanko.pdf_utils.reader import PdfFileReader

from appliance.domain.documents.inspected import Damage, RepairedCopy
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.sandbox import BINARY_BYTES_MAX
from worker.sandbox.form_repair import FormMender, mend_annotations
from worker.sandbox.inspect.forms import count_signatures, form_fields
from worker.sandbox.inspect.pdf_objects import Budget
from worker.sandbox.inspect.trailer_checks import is_well_ended
from worker.sandbox.metadata_repair import archival_part, mend_metadata
from worker.sandbox.stream_repair import mend_streams
from worker.sandbox.tree_repair import drop_missing_pages, mend_tree

_HEADER: Final = b"%PDF-"
_COPY: Final = b"copy of "
_Streams: Final = pikepdf.ObjectStreamMode
_ID_BYTES: Final = 16
_DICTIONARIES: Final = ("/Extensions", "/StructTreeRoot", "/MarkInfo")
"""Entries of the catalog that validators take for dictionaries."""
_USAGE_RIGHTS: Final = ("/UR", "/UR3")
_FIELDS_MOST: Final = 200_000
_OBJECT: Final = re.compile(rb"\b\d{1,10}\s+\d{1,5}\s+obj\b")
_END: Final = re.compile(rb"startxref|%%EOF")
# At the end of a file, as qpdf writes it whatever it was made of.
_ID_KEY: Final = b"/ID [<"
_IDENTIFIER: Final = re.compile(
    rb"/ID \[<[0-9a-f]*><([0-9a-f]*)>\] /Encrypt \d+ 0 R >>\s+startxref\s"
)
# By qpdf's words, of which each warning is one sentence; some say nothing.
_NO_NEWS: Final = re.compile(r"file is damaged|Resources is missing")
_NO_PAGE: Final = re.compile(r"/Type key should be /Page")
_DAMAGE: Final = (
    (Damage.STREAMS, re.compile(r"stream length|/Length|endstream")),
    (Damage.PAGE_TREE, re.compile(r"\bkid \d|/Pages|page tree")),
    (
        Damage.CROSS_REFERENCES,
        re.compile(r"xref|trailer|cross-reference|number of objects|loop detected"),
    ),
)


def repair(pdf: bytes) -> RepairedCopy:
    """Write a file anew, with the same pages.

    Another job compares what both look like: this one has read a file that may have
    taken it over.

    An encrypted file that opens with the empty password stays encrypted, and with AES
    each copy of it is another one; of any other the same bytes give the same copy.
    No two files have the same copy.

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
        file, mended = _opened(pdf)
        with file as opened:
            _demand_unsigned(pdf, opened)
            stated = _stated_pages(opened)
            pages = len(opened.pages)  # which mends the tree
            mended |= _mend(opened)
            # So that each file has a copy of its own: the record knows a document by
            # its bytes.
            name = hashlib.sha256(_COPY + pdf).digest()[:_ID_BYTES]
            if not opened.is_encrypted:
                opened.trailer["/ID"] = pikepdf.Array([pikepdf.String(name)] * 2)
            is_encrypted = opened.is_encrypted
            copy = _written(opened)
            said = [str(each) for each in opened.get_warnings()]
        plain = mend_streams(copy, _save)
        if plain is not None:
            mended.add(Damage.AMBIGUOUS)
            copy = plain
        if is_encrypted:
            copy = _named(copy, name)
    except pikepdf.PasswordError as exc:
        raise DocumentRefusedError(ErrorCode.PDF_PASSWORD_NEEDED) from exc
    except pikepdf.PdfError as exc:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "not repairable") from exc
    if len(copy) > BINARY_BYTES_MAX:
        raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "a large copy")
    made = any(_NO_PAGE.search(each) for each in said)
    if not _demand_same_pages(pdf, copy, pages, None if made else stated):
        mended.add(Damage.PAGES)
    return RepairedCopy(copy, _damage(pdf, said, mended))


def _opened(pdf: bytes) -> tuple[pikepdf.Pdf, set[Damage]]:
    """Open a file; without what stands in a page's place and is nothing.

    qpdf gives up where such a page should inherit something.

    Raises:
        pikepdf.PdfError: it cannot be opened in that way either.
    """
    try:
        return pikepdf.open(io.BytesIO(pdf), suppress_warnings=True), set()
    except pikepdf.PasswordError:
        raise
    except pikepdf.PdfError:
        out = io.BytesIO()
        with pikepdf.open(
            io.BytesIO(pdf), suppress_warnings=True, inherit_page_attributes=False
        ) as opened:
            if not drop_missing_pages(opened):
                raise
            _save(opened, out)
        out.seek(0)
        return pikepdf.open(out, suppress_warnings=True), {Damage.PAGE_TREE}


def _stated_pages(opened: pikepdf.Pdf) -> int:
    """The number of pages that the root of the tree states; 0 where it states none."""
    tree = opened.Root.get("/Pages")
    if not isinstance(tree, pikepdf.Dictionary):
        return 0
    stated: object = tree.get("/Count")
    return stated if type(stated) is int else 0


def _mend(opened: pikepdf.Pdf) -> set[Damage]:
    """Put right what qpdf takes as it is and validators do not; what was wrong."""
    found = mend_tree(opened)
    if mend_metadata(opened):
        found.add(Damage.METADATA)
    # Annotations first: a widget has to have a number before a form can list it.
    if mend_annotations(opened) | FormMender(opened).mend():
        found.add(Damage.FORM_FIELDS)
    for key in _DICTIONARIES:
        entry = opened.Root.get(key)
        if entry is not None and not isinstance(entry, pikepdf.Dictionary):
            found.add(Damage.SYNTAX)
            del opened.Root[key]
    if isinstance(opened.trailer.get("/Info"), pikepdf.Stream):
        found.add(Damage.METADATA)
        del opened.trailer["/Info"]
    # Validation data of signatures, in a file that has none.
    if "/DSS" in opened.Root:
        del opened.Root["/DSS"]
    if "/Perms" in opened.Root:
        rights = opened.Root.get("/Perms")
        if isinstance(rights, pikepdf.Dictionary) and any(
            key in rights for key in _USAGE_RIGHTS
        ):
            found.add(Damage.USAGE_RIGHTS)
        # A certification without a signature is none either.
        del opened.Root["/Perms"]
    return found


def _is_cut_off(pdf: bytes) -> bool:
    """Say whether an object begins after the last end that the file marks."""
    end = max((found.start() for found in _END.finditer(pdf)), default=-1)
    return end < 0 or _OBJECT.search(pdf, end) is not None


def _demand_unsigned(pdf: bytes, opened: pikepdf.Pdf) -> None:
    """Refuse a file in which any of three readers finds a signed field.

    Only the value of a field is a signature: an object that looks like one, and that no
    field has, signs nothing.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`.
    """
    if (
        any(_holds_signature(field) for field in _fields(opened))
        or _signatures_for_pdfium(pdf)
        or _signatures_for_pyhanko(pdf)
    ):
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "damaged and signed")


def _fields(opened: pikepdf.Pdf) -> Iterator[pikepdf.Dictionary]:
    """Yield the nodes of the field tree, as qpdf reads it.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`.
    """
    form = opened.Root.get("/AcroForm")
    todo = [form.get("/Fields")] if isinstance(form, pikepdf.Dictionary) else []
    seen: set[tuple[int, int]] = set()
    left = _FIELDS_MOST
    while todo:
        listed = todo.pop()
        if not isinstance(listed, pikepdf.Array):
            continue
        for field in listed.as_list():
            left -= 1
            if left < 0:
                raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "too many fields")
            if not isinstance(field, pikepdf.Dictionary) or field.objgen in seen:
                continue
            if field.objgen[0]:
                seen.add(field.objgen)
            yield field
            todo.append(field.get("/Kids"))


def _holds_signature(field: pikepdf.Dictionary) -> bool:
    """Say whether a field's own value is a signature dictionary."""
    value = field.get("/V")
    if not isinstance(value, pikepdf.Dictionary):
        return False
    # The type may be inherited, so the value's own look counts as well.
    return field.get("/FT") == "/Sig" or "/ByteRange" in value


def _signatures_for_pdfium(pdf: bytes) -> int:
    """Count the signed fields that PDFium finds; 0 where it reads nothing."""
    try:
        document = pypdfium2.PdfDocument(pdf)
    except pypdfium2.PdfiumError:
        return 0
    raw = pypdfium2.raw
    with closing(document):
        # Empty fields count among them.
        fields = range(max(raw.FPDF_GetSignatureCount(document), 0))
        found = (raw.FPDF_GetSignatureObject(document, at) for at in fields)
        return sum(raw.FPDFSignatureObj_GetContents(one, None, 0) > 0 for one in found)


def _signatures_for_pyhanko(pdf: bytes) -> int:
    """Count the signed fields that pyHanko finds; 0 where it reads nothing."""
    try:
        reader = PdfFileReader(io.BytesIO(pdf), strict=False)
        if reader.encrypted:
            reader.decrypt("")
        return count_signatures(form_fields(reader.root, Budget(_FIELDS_MOST)))
    except (DocumentRefusedError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 (broken files raise anything)
        return 0


def _written(opened: pikepdf.Pdf) -> bytes:
    """The file as qpdf understands it."""
    out = io.BytesIO()
    if "/Size" not in opened.trailer:
        # qpdf writes the right number where there is one.
        opened.trailer["/Size"] = 1
    with warnings.catch_warnings():
        # Of fields that the form does not list: they are as they were.
        warnings.simplefilter("ignore", pikepdf.PageCopyWarning)
        _save(opened, out)
    return out.getvalue()


def _named(copy: bytes, name: bytes) -> bytes:
    """Set the second part of an encrypted copy's identifier.

    Keys are made of the first part, so that stays. qpdf makes the second of the time
    in seconds, and RC4 has nothing else that differs from copy to copy.

    Args:
        copy: as qpdf wrote it, with a trailer of its own at its end.
        name: to be the second part; as long as qpdf makes it.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`: the identifier is not where qpdf
            writes it.

    Source: ISO 32000-2, 7.6.4.3 and 14.4.
    """
    start = copy.rfind(_ID_KEY)
    found = _IDENTIFIER.match(copy, start) if start >= 0 else None
    if found is None or len(found[1]) != 2 * len(name):
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "no identifier")
    return copy[: found.start(1)] + name.hex().encode() + copy[found.end(1) :]


def _save(opened: pikepdf.Pdf, out: io.BytesIO) -> None:
    if opened.is_encrypted:
        # pyHanko compares the objects of encrypted object streams wrongly, so that any
        # later revision would make a signature invalid for it.
        opened.save(
            out,
            encryption=True,
            fix_metadata_version=False,
            object_stream_mode=_Streams.disable,
        )
    else:
        # PDF/A-1 knows no object streams, and may have them by what is ambiguous alone.
        is_first = archival_part(opened) == "1"
        opened.save(
            out,
            deterministic_id=True,
            compress_streams=False,
            # pikepdf would write metadata anew for it, and leave out what it takes for
            # of no account.
            fix_metadata_version=False,
            stream_decode_level=pikepdf.StreamDecodeLevel.none,
            object_stream_mode=_Streams.disable if is_first else _Streams.preserve,
        )


def _demand_same_pages(pdf: bytes, copy: bytes, pages: int, stated: int | None) -> bool:
    """Refuse a copy that lacks pages which PDFium sees in the original, or adds others.

    Args:
        pdf: the original.
        copy: of it.
        pages: that qpdf found.
        stated: the number of pages that the original states; None where qpdf made
            pages of what was none.

    Returns:
        False where PDFium sees the first of its pages alone, as the original states
        fewer than it has: other programs show them all.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`.
    """
    after = _page_sizes(copy)
    if after is None or len(after) != pages:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "the copy is no better")
    before = _page_sizes(pdf)
    if before == after or (before is None and stated is not None):
        return True
    if before is None:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "pages of something else")
    if before != after[: len(before)] or len(before) != stated:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "pages would change")
    return False


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
    return tuple(sorted(found))
