"""Proves that a document can be signed, by signing it with a key of nobody's.

The trial goes the whole way of the engine, with the engine's own code: a signature,
the validation data after it, a document timestamp, and data after that, which is as
far as any level goes. What came out is validated as others do it, by pyHanko with its
stock rules: a file whose signature would not hold is known before anybody signs.
"""

import asyncio
import datetime as dt
import io
import secrets
from collections.abc import Sequence
from typing import Final

from asn1crypto import x509
from pyhanko.pdf_utils.crypt import AuthStatus
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.misc import PdfDecodeLimitError
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.fields import enumerate_sig_fields
from pyhanko.sign.validation import (
    EmbeddedPdfSignature,
    PdfSignatureStatus,
    async_validate_pdf_signature,
)
from pyhanko_certvalidator import ValidationContext

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.requests.levels import ValidationData
from appliance.domain.vocab import Restriction
from worker.pades import (
    SignaturePlan,
    Validated,
    add_dss,
    assemble,
    fill_timestamp,
    method_for,
    prepare,
    prepare_timestamp,
)
from worker.pades.incremental_file import GrowingFile
from worker.pades.pdf.document import find_page
from worker.pades.pdf.revision import open_revision
from worker.sandbox.inspect.pages import Page, has_doubtful_box, walk_pages
from worker.sandbox.inspect.pdf_objects import key_of
from worker.sandbox.inspect.trial_signer import trial_signer

MOST_OBJECTS: Final = 8_388_607
"""Indirect objects of a file (ISO 32000-1, annex C.2). Others give up at a table that
says more, and what is appended is numbered from there."""
_STAMP_BYTES: Final = 4096
# What stands in the store is read by nobody here; a revision has to be made of it.
_LATER: Final = b"\x30\x00"


def prove_signable(pdf: bytes, limit: int) -> None:
    """Sign a copy, raise it to the highest level, and validate the result.

    Args:
        pdf: a document that was read already.
        limit: most pages that are taken.

    Raises:
        DocumentRefusedError: it cannot be extended, by a `PDF_*` code;
            `PDF_UNVERIFIABLE`, its signature would not be valid.
    """
    with open_revision(pdf) as revision:
        if revision.last_number > MOST_OBJECTS:
            reason = "objects numbered beyond what programs read"
            raise DocumentRefusedError(ErrorCode.PDF_UNVERIFIABLE, reason)
        pages = walk_pages(revision.root, limit).pages
        _demand_findable(revision, pages)
        if any(has_doubtful_box(page) for page in pages):
            reason = "a page's box is not the same for all programs"
            raise DocumentRefusedError(ErrorCode.PDF_UNVERIFIABLE, reason)
        count = len(pages)
        del pages
    name = f"Trial{secrets.token_hex(8)}"  # no field of the document's own
    signed = _signed(pdf, name)
    _read_back(signed, name, count, limit)


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


def _signed(pdf: bytes, name: str) -> bytes:
    """The document with an invisible trial signature, raised as far as levels go.

    Raises:
        DocumentRefusedError: the engine cannot do it.
    """
    signer = trial_signer()
    method = method_for(signer.certificate)
    plan = SignaturePlan(
        field_name=name,
        layout=None,
        restriction=Restriction.NO_VALUE,
        signed_at=dt.datetime.now(dt.UTC),
        signer_name="Trial",
        certificate=signer.certificate,
        chain=(),
        method=method,
    )
    prepared = prepare(pdf, plan, None)
    increment = assemble(
        prepared.increment,
        contents_at=prepared.contents_at,
        contents_length=prepared.contents_length,
        signed_attributes=prepared.signed_attributes,
        signature=signer.sign(prepared.digest),
        method=method,
        certificate=signer.certificate,
        chain=(),
    )
    start = prepared.contents_at
    contents = bytes.fromhex(
        increment[start : start + prepared.contents_length].decode("ascii")
    )
    file = GrowingFile((pdf,))
    file.append(increment)
    data = ValidationData(certificates=(signer.certificate,))
    file.append(add_dss(file.content, [Validated(contents, data)]))
    stamp = prepare_timestamp(file.content, method.digest, _STAMP_BYTES)
    # Any CMS will do: what counts is which objects a timestamp changes.
    token = contents.rstrip(b"\0")
    file.append(fill_timestamp(stamp, token))
    padded = token + bytes(_STAMP_BYTES - len(token))
    later = ValidationData(certificates=(signer.certificate,), ocsps=(_LATER,))
    file.append(add_dss(file.content, [Validated(padded, later)]))
    return file.content


def _read_back(signed: bytes, name: str, pages: int, limit: int) -> None:
    """Read the signed copy, find its pages, and validate the signature.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`, something is missing;
            `PDF_ENCRYPTED`, its integrity protection no longer holds;
            `PDF_UNVERIFIABLE`.
    """
    reader = PdfFileReader(io.BytesIO(signed), strict=False)
    if reader.encrypted and reader.decrypt("").status is AuthStatus.FAILED:
        raise DocumentRefusedError(ErrorCode.PDF_ENCRYPTED, "protected by a MAC")
    # All of them: a validator walks them all to find ours.
    fields = {title: field for title, _, field in enumerate_sig_fields(reader)}
    if name not in fields or len(walk_pages(reader.root, limit).pages) != pages:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "update not read back")
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
