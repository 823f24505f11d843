"""Checks every signature of one PDF; runs in a confined job only.

What cannot be checked is invalid, with the reason: no exception passes for a
verdict. Document timestamps are nobody's signatures: broken ones alone are listed.
"""

import asyncio
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from asn1crypto import x509
from pyhanko.pdf_utils.crypt import AuthStatus
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.diff_analysis import DiffResult
from pyhanko.sign.fields import enumerate_sig_fields
from pyhanko.sign.validation import (
    EmbeddedPdfSignature,
    PdfSignatureStatus,
    SignatureCoverageLevel,
    async_validate_pdf_signature,
)
from pyhanko_certvalidator import ValidationContext

from appliance.domain.documents import SignatureReport, VerificationReport
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.timestamps import RevokedTsa
from worker.sandbox.inspect.later_marks import covers_signed_text
from worker.sandbox.inspect.pdf_objects import name, resolve
from worker.sandbox.verify.difference_analysis import POLICY
from worker.sandbox.verify.proof_of_existence import ProofsOfExistence, is_whole_stamp
from worker.sandbox.verify.validation_report import checked, failure, invalid

_SIGNATURES_MAX: Final = 500
_CHECKED_BEFORE: Final = 10
"""Of those that a document bears before it is signed."""
# From the end of the cross-references to the first end marker, and no further.
_END: Final = re.compile(
    rb"\s*(?:(?:trailer\s*)?<<(?:(?!startxref|%%EOF).)*>>|endobj)?"
    rb"\s*startxref\s+\d+\s+%%EOF(?:\r\n|\n|\r)?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Found:
    """A filled signature field, opened where it could be."""

    title: str
    signature: EmbeddedPdfSignature | None
    is_timestamp: bool
    reason: str
    """Why it could not be opened."""


def verify(
    pdf: bytes,
    roots: Sequence[bytes],
    stamp_roots: Sequence[bytes] | None = None,
    revoked: Sequence[RevokedTsa] = (),
) -> VerificationReport:
    """Check every signature of a PDF.

    No network is asked: a certificate without revocation data counts as not
    revoked, and data that the file carries is used.

    Args:
        pdf: the whole file.
        roots: the certificates that are trusted for signers, in DER.
        stamp_roots: those that are trusted for timestamps, in DER; None: the same.
        revoked: TSAs whose certificates are known to be revoked.

    Raises:
        DocumentRefusedError: it has more signatures than are checked, or needs
            a password.

    Source: ISO 32000-2, 12.8; ETSI EN 319 142-1.
    """
    reader = PdfFileReader(io.BytesIO(pdf), strict=False)
    if reader.encrypted and reader.decrypt("").status is AuthStatus.FAILED:
        raise DocumentRefusedError(ErrorCode.PDF_PASSWORD_NEEDED)
    found = _signatures(reader)
    # A document timestamp is told of nowhere, so it may show nothing.
    titles = {each.title for each in found if not each.is_timestamp}
    trusted, of_stamps = (
        [x509.Certificate.load(root) for root in each]
        for each in (roots, roots if stamp_roots is None else stamp_roots)
    )
    stamps = [each.signature for each in found if each.is_timestamp and each.signature]
    proofs = _proofs(reader, stamps, trusted, of_stamps, revoked)
    reports = [
        _report(each, trusted, titles, proofs)
        for each in found
        if not each.is_timestamp
    ]
    reports += [
        invalid(each.title, each.reason or "a document timestamp that is broken")
        for each in found
        if each.is_timestamp and not is_whole_stamp(each.signature)
    ]
    covered = False
    try:
        signers = [each.signature for each in found if not each.is_timestamp]
        covered = covers_signed_text(pdf, reader, [*filter(None, signers)])
    except MemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 (forged pages raise anything)
        # What cannot be looked at is not valid, and whoever asks gets a verdict.
        reports.append(invalid(found[-1].title, failure("marks not checkable", exc)))
    return VerificationReport(
        signatures=tuple(reports),
        ends_at_eof=_ends_at_eof(pdf, reader, found),
        text_covered=covered,
    )


def has_broken(pdf: bytes) -> bool:
    """Whether a signature is not valid, whoever made it, or cannot be checked.

    Of many only the newest are looked at: each is compared with all that follows.

    Args:
        pdf: the whole file.

    Raises:
        DocumentRefusedError: it has more signatures than are checked.
    """
    reader = PdfFileReader(io.BytesIO(pdf), strict=False)
    if reader.encrypted:
        reader.decrypt("")
    found = _signatures(reader)
    signatures = [each for each in found if not each.is_timestamp]
    # Apart: any number of timestamps leaves the signatures looked at.
    stamps = [each for each in found if each.is_timestamp]
    newest = signatures[-_CHECKED_BEFORE:] + stamps[-_CHECKED_BEFORE:]
    return any(_is_broken(each) for each in newest)


def _is_broken(found: _Found) -> bool:
    if found.signature is None:
        return True
    if found.is_timestamp:
        return not is_whole_stamp(found.signature)
    try:
        # Trusted for the moment: whose it is does not matter here.
        status = _status(found.signature, [found.signature.signer_cert])
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (a forged one raises anything)
        return True
    coverage = status.coverage or SignatureCoverageLevel.UNCLEAR
    return not (
        status.intact
        and status.valid
        and coverage >= SignatureCoverageLevel.ENTIRE_REVISION
        and isinstance(status.diff_result, DiffResult)
        and status.docmdp_ok
    )


def _signatures(reader: PdfFileReader) -> list[_Found]:
    """Open every filled signature field, in the order they were signed.

    Raises:
        DocumentRefusedError: there are too many.
    """
    found: list[_Found] = []
    for title, value, field in enumerate_sig_fields(reader, filled_status=True):
        if len(found) >= _SIGNATURES_MAX:
            raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "signatures")
        found.append(_open(reader, str(title), value, field))
    return sorted(
        found, key=lambda each: each.signature.signed_revision if each.signature else 0
    )


def _open(reader: PdfFileReader, title: str, value: Any, field: Any) -> _Found:
    """Open one signature; what makes that fail is its report's reason."""
    is_timestamp = name(resolve(value), "/Type") == "/DocTimeStamp"
    try:
        signature = EmbeddedPdfSignature(reader, field, title)
    except MemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 (a forged one raises anything)
        return _Found(title, None, is_timestamp, failure("unreadable", exc))
    return _Found(title, signature, is_timestamp, "")


def _proofs(
    reader: PdfFileReader,
    stamps: list[EmbeddedPdfSignature],
    roots: list[x509.Certificate],
    stamp_roots: list[x509.Certificate],
    revoked: Sequence[RevokedTsa],
) -> ProofsOfExistence | None:
    """What the timestamps prove; nothing where one cannot be read at all."""
    try:
        return ProofsOfExistence(reader, stamps, roots, stamp_roots, revoked)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (a forged one raises anything)
        return None


def _report(
    found: _Found,
    roots: list[x509.Certificate],
    titles: set[str],
    proofs: ProofsOfExistence | None,
) -> SignatureReport:
    """Check one signature."""
    signature = found.signature
    if signature is None:
        return invalid(found.title, found.reason)
    try:
        if proofs is None:
            status = _status(signature, roots)
            return checked(found.title, signature, status, titles)
        judged = proofs.check(signature)
        proof = judged.proof
        report = checked(found.title, signature, judged.status, titles)
        if not report.intact:
            return report  # what is known of other bytes says nothing of these
        return replace(
            report,
            level=judged.level.value,
            void=judged.void,
            timestamp=None if proof is None else proof.at.isoformat(),
            tsa="" if proof is None else proof.tsa,
        )
    except MemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 (a forged one raises anything)
        return invalid(found.title, failure("not checkable", exc))


def _status(
    signature: EmbeddedPdfSignature, roots: list[x509.Certificate]
) -> PdfSignatureStatus:
    """What pyHanko finds, with nothing fetched."""
    context = ValidationContext(
        trust_roots=roots, allow_fetching=False, revocation_mode="soft-fail"
    )
    return asyncio.run(
        async_validate_pdf_signature(signature, context, diff_policy=POLICY)
    )


def _ends_at_eof(pdf: bytes, reader: PdfFileReader, found: Iterable[_Found]) -> bool:
    """Say whether nothing stands after the last revision.

    Either a signature covers the file to its last byte, or the last revision's
    cross-references are followed by its trailer and the end marker alone.
    """
    for each in found:
        try:
            if each.signature is not None and (
                each.signature.evaluate_signature_coverage()
                is SignatureCoverageLevel.ENTIRE_FILE
            ):
                return True
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001, S112 (a forged one covers nothing)
            continue
    last = reader.xrefs.get_xref_container_info(reader.total_revisions - 1)
    return _END.fullmatch(pdf, last.end_location) is not None
