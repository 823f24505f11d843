"""Proves that a document can be signed, by signing it with nothing.

The signing engine will append a revision that hangs a signature field on a page.
The same is done here, with the engine's own way to open the file and to find the
page, and what came out is read again: a file that would fail then is refused now.
"""

import io
import secrets
from collections.abc import Sequence

from pyhanko.pdf_utils.crypt import AuthStatus
from pyhanko.pdf_utils.generic import ArrayObject, DictionaryObject, pdf_name
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.fields import (
    SignatureFormField,
    ensure_sig_flags,
    enumerate_sig_fields,
)

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.sandbox.objects import dictionary, entry, key_of
from worker.sandbox.pages import Page, walk_pages
from worker.stamp import add_annotation, find_page, open_revision


def prove_signable(pdf: bytes, limit: int) -> None:
    """Sign a copy with an empty signature and read the result.

    Args:
        pdf: a document that was read already.
        limit: most pages that are taken.

    Raises:
        DocumentRefusedError: the update cannot be made or does not read back.
    """
    name = f"Proof{secrets.token_hex(8)}"  # no field of the document's own
    with open_revision(pdf) as revision:
        pages = walk_pages(revision.root, limit).pages
        _demand_findable(revision, pages)
        _add_field(revision, name)
        output = io.BytesIO()
        revision.write(output)
    signed = output.getvalue()
    if not signed.startswith(pdf):
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "cannot be extended")
    del output  # a large file is held often enough
    _read_back(signed, name, len(pages), limit)


def _demand_findable(revision: IncrementalPdfFileWriter, pages: Sequence[Page]) -> None:
    """Make sure that a stamp would be hung on the very page that was counted.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`, a page has no number to update it
            by, or stands in the tree more than once.
    """
    keys = {key_of(page.ref) for page in pages}
    if None in keys or len(keys) != len(pages):
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "pages shared or direct")
    last = find_page(revision, len(pages))
    if key_of(last) != key_of(pages[-1].ref):
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "pages not to be counted")


def _add_field(revision: IncrementalPdfFileWriter, name: str) -> None:
    """Add a signature field without a place and fill it with nothing."""
    root = revision.root
    form = dictionary(root, "/AcroForm")
    if form is None:
        form = DictionaryObject()
        root[pdf_name("/AcroForm")] = revision.add_object(form)
        revision.update_root()
    fields = entry(form, "/Fields")
    if not isinstance(fields, ArrayObject):
        fields = form[pdf_name("/Fields")] = ArrayObject()
        revision.update_container(form)
    page = find_page(revision, 1)
    widget = SignatureFormField(name, include_on_page=page)
    value = DictionaryObject({pdf_name("/Type"): pdf_name("/Sig")})
    widget[pdf_name("/V")] = revision.add_object(value)
    reference = revision.add_object(widget)
    fields.append(reference)
    revision.update_container(fields)
    add_annotation(revision, page, reference)
    ensure_sig_flags(revision)


def _read_back(signed: bytes, name: str, pages: int, limit: int) -> None:
    """Read the signed copy and find the field and as many pages as before.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`, something is missing;
            `PDF_ENCRYPTED`, its integrity protection no longer holds.
    """
    reader = PdfFileReader(io.BytesIO(signed), strict=False)
    if reader.encrypted and reader.decrypt("").status is AuthStatus.FAILED:
        raise DocumentRefusedError(ErrorCode.PDF_ENCRYPTED, "protected by a MAC")
    # All of them: a validator walks them all to find ours.
    names = {field for field, _, _ in enumerate_sig_fields(reader)}
    if name not in names or len(walk_pages(reader.root, limit).pages) != pages:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "update not read back")
