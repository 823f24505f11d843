"""Proves that a document can be signed, by signing it with nothing.

The signing engine will hang a signature field on a page in an incremental
update. The same is done here with an empty signature, and what came out is read
again, so that a file which would fail later is refused now.
"""

import io
import secrets
from typing import Final

from pyhanko.pdf_utils.crypt import AuthStatus
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    NullObject,
    PdfObject,
    pdf_name,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.fields import SigSeedSubFilter
from pyhanko.sign.signers.cms_embedder import (
    PdfCMSEmbedder,
    SigIOSetup,
    SigObjSetup,
)
from pyhanko.sign.signers.pdf_byterange import PdfSignedData

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.sandbox.objects import dictionary, entry, raw_items, resolve
from worker.sandbox.pages import Page, PageTree, walk_pages

_RESERVED_BYTES: Final = 64


class WalkingWriter(IncrementalPdfFileWriter):
    """An incremental writer that finds pages by walking, whatever `/Count` says."""

    pages: list[Page]

    def find_page_for_modification(
        self, page_ix: int
    ) -> tuple[PdfObject | None, object]:
        """Return the page's reference and its resources, as pyHanko's own does."""
        page = self.pages[page_ix]
        resources = page.inherited.get("/Resources", DictionaryObject())
        return page.ref, resources


def prove_signable(pdf: bytes, limit: int) -> None:
    """Sign a copy with an empty signature and read the result.

    Args:
        pdf: a document that was read already.
        limit: most pages that are taken.

    Raises:
        DocumentRefusedError: the update cannot be made or does not read back.
    """
    writer = WalkingWriter(io.BytesIO(pdf), strict=False)
    if writer.prev.encrypted:
        writer.encrypt("")
    tree = walk_pages(writer.prev.root, limit)
    _demand_updatable(tree)
    writer.pages = tree.pages
    name = f"Proof{secrets.token_hex(8)}"  # no field of the document's own
    session = PdfCMSEmbedder().write_cms(field_name=name, writer=writer)
    next(session)
    placeholder = PdfSignedData(
        obj_type=pdf_name("/Sig"),
        subfilter=SigSeedSubFilter.PADES,
        bytes_reserved=_RESERVED_BYTES,
    )
    session.send(SigObjSetup(sig_placeholder=placeholder))
    _, output = session.send(SigIOSetup(md_algorithm="sha256"))
    signed = output.getvalue()
    if not signed.startswith(pdf):
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "cannot be extended")
    del writer, output, session
    _read_back(signed, name, len(tree.pages), limit)


def _demand_updatable(tree: PageTree) -> None:
    """Make sure that a stamp could be hung on any page.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`, a page cannot be updated.
    """
    for page in tree.pages:
        if page.ref is None:
            raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "a direct page")
        annotations = page.node.raw_get("/Annots") if "/Annots" in page.node else None
        if annotations is not None and not isinstance(
            annotations.get_object(), ArrayObject | NullObject
        ):
            raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "annotations no array")


def _read_back(signed: bytes, name: str, pages: int, limit: int) -> None:
    """Read the signed copy and find the field and as many pages as before.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`, something is missing;
            `PDF_ENCRYPTED`, its integrity protection no longer holds.
    """
    reader = PdfFileReader(io.BytesIO(signed), strict=False)
    if reader.encrypted and reader.decrypt("").status is AuthStatus.FAILED:
        # ISO/TS 32004: an update would need the file's own MAC renewed.
        raise DocumentRefusedError(ErrorCode.PDF_ENCRYPTED, "protected by a MAC")
    fields = raw_items(entry(dictionary(reader.root, "/AcroForm"), "/Fields"))
    names = {entry(resolve(field), "/T") for field in fields}
    if name not in names or len(walk_pages(reader.root, limit).pages) != pages:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "update not read back")
