"""Proves that a document can be signed, by signing it with a key of nobody's.

Two chains of signatures are tried, each as far as any level goes: signers with stamps,
and one who is not seen followed by one in the document's own field. What came out is
validated by pyHanko with its stock rules and by our own verifier, and compared with the
document by readers that are not the engine: a file whose signature would not hold, or
that would show something else, is known before anybody signs.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing

from asn1crypto import x509
from pyhanko.pdf_utils.crypt import AuthStatus
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.misc import PdfDecodeLimitError
from pyhanko.sign.fields import enumerate_sig_fields
from pyhanko.sign.validation import (
    EmbeddedPdfSignature,
    PdfSignatureStatus,
    async_validate_pdf_signature,
)
from pyhanko_certvalidator import ValidationContext

from appliance.domain.documents.inspected import Inspection
from appliance.domain.documents.verification import Answer, Check, CheckCode
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.pades.appearance.fonts import StampFonts
from worker.pades.pdf.document import find_page
from worker.pades.pdf.revision import open_revision
from worker.sandbox.inspect.pages import Page, has_doubtful_box, walk_pages
from worker.sandbox.inspect.pdf_objects import key_of
from worker.sandbox.structure import CheckedReader
from worker.sandbox.trial.second_reader import OriginalDocument
from worker.sandbox.trial.trial_chain import SignedCopy, chains, sign
from worker.sandbox.trial.trial_signer import trial_signer
from worker.sandbox.verify.later_changes import TOO_COMPLEX
from worker.sandbox.verify.verify import weigh


def prove_signable(
    pdf: bytes,
    limit: int,
    described: Inspection,
    fonts: StampFonts | None,
    earlier: Mapping[str, Check],
) -> None:
    """Sign copies, raise them to the highest level, and validate the results.

    Args:
        pdf: a document that was read already.
        limit: most pages that are taken.
        described: it.
        fonts: of the stamps; None: nobody is seen.
        earlier: what our verifier answers for each of its signatures, by field.

    Raises:
        DocumentRefusedError: it cannot be extended, by a `PDF_*` code;
            `PDF_UNVERIFIABLE`, a signature would not be valid, or would change it.
    """
    with open_revision(pdf) as revision:
        pages = walk_pages(revision.root, limit).pages
        _demand_findable(revision, pages)
        if any(has_doubtful_box(page) for page in pages):
            reason = "a page's box is not the same for all programs"
            raise DocumentRefusedError(ErrorCode.PDF_UNVERIFIABLE, reason)
        del pages
    with closing(OriginalDocument(pdf, described)) as original:
        tried = chains(described, fonts)
        for chain in tried:
            # Data after each update, and a renewal's, change the same objects in all
            # of them: one chain proves it.
            renewed = chain is tried[-1]
            signed = sign(pdf, chain, described, fonts, renewed=renewed)
            reader = _read_back(signed, len(described.pages), limit)
            if len(chain) > 1 or earlier:
                _demand_whole(signed, reader, earlier)
            original.demand_kept(signed.pdf, signed.marks)


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


def _read_back(signed: SignedCopy, pages: int, limit: int) -> CheckedReader:
    """Read a signed copy, find its pages, and validate its first signature.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`, something is missing;
            `PDF_ENCRYPTED`, its integrity protection no longer holds;
            `PDF_UNVERIFIABLE`.
    """
    reader = CheckedReader(signed.pdf)
    if reader.encrypted and reader.decrypt("").status is AuthStatus.FAILED:
        raise DocumentRefusedError(ErrorCode.PDF_ENCRYPTED, "protected by a MAC")
    # All of them: a validator walks them all to find ours.
    fields = {title: field for title, _, field in enumerate_sig_fields(reader)}
    is_there = all(name in fields for name in signed.fields)
    if not is_there or len(walk_pages(reader.root, limit).pages) != pages:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "update not read back")
    # Of the chain's first signature: it is the one that all the others follow.
    name = signed.fields[0]
    try:
        status = _status(EmbeddedPdfSignature(reader, fields[name], name))
    except (MemoryError, PdfDecodeLimitError):
        raise
    except RecursionError as exc:
        raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "validating it") from exc
    except Exception as exc:  # stock validation raises errors of every kind
        reason = f"no verdict: {type(exc).__name__}"
        raise DocumentRefusedError(ErrorCode.PDF_UNVERIFIABLE, reason) from exc
    if not status.bottom_line:
        raise DocumentRefusedError(ErrorCode.PDF_UNVERIFIABLE, _why(status))
    return reader


def _demand_whole(
    signed: SignedCopy, reader: CheckedReader, earlier: Mapping[str, Check]
) -> None:
    """Demand that our verifier calls the signatures whole, and earlier ones as before.

    Raises:
        DocumentRefusedError: `PDF_UNVERIFIABLE`.
    """
    # How pages look is compared with the document itself, by `OriginalDocument`.
    found = weigh(signed.pdf, reader, looks=False)
    for name in signed.fields:
        if not _is_whole(found.get(name)):
            reason = "our verifier does not call it whole"
            raise DocumentRefusedError(ErrorCode.PDF_UNVERIFIABLE, reason)
    for name, before in earlier.items():
        if _is_whole(before) and not _is_whole(found.get(name)):
            reason = "an earlier signature would not be whole any more"
            raise DocumentRefusedError(ErrorCode.PDF_UNVERIFIABLE, reason)


def _is_whole(found: Check | None) -> bool:
    """Say whether a signature holds, as far as the document's size lets that be said.

    Where a stamp covers text is said to whoever verifies, and is for whoever places it.
    """
    return found is not None and (
        found.answer is Answer.YES
        or found == TOO_COMPLEX
        or (
            found.answer is Answer.UNCHECKED and found.code is CheckCode.LOOKS_DIFFERENT
        )
    )


def _status(signature: EmbeddedPdfSignature) -> PdfSignatureStatus:
    """What pyHanko says by itself: its own rules for later changes, not ours."""
    root = x509.Certificate.load(trial_signer().certificate)
    context = ValidationContext(trust_roots=[root], allow_fetching=False)
    return asyncio.run(async_validate_pdf_signature(signature, context))


def _why(status: PdfSignatureStatus) -> str:
    """The first thing that is wrong, without what it quotes of the file."""
    for is_right, words in (
        (status.intact, "not intact"),
        (status.valid, "not valid"),
        (status.trusted, "not trusted"),
    ):
        if not is_right:
            return words
    changes = str(status.diff_result)
    return "its own metadata" if "etadata" in changes else "later revisions"
