"""Checks every signature of one PDF; runs in a confined job only.

Seven questions are asked of each signature
(`appliance.domain.documents.verification`). An obstacle to one leaves the others
answered. Document timestamps are listed if they are broken: they are no signatures of
people.
"""

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

from asn1crypto import x509
from pyhanko.pdf_utils.crypt import AuthStatus
from pyhanko.pdf_utils.xref import XRefSectionType
from pyhanko.sign.fields import enumerate_sig_fields
from pyhanko.sign.validation import EmbeddedPdfSignature

from appliance.domain.documents.verification import (
    Answer,
    Check,
    CheckCode,
    SignatureReport,
    VerificationReport,
    refuted,
    unchecked,
    worst,
)
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.pki.certificates import serial_text
from appliance.domain.pki.timestamps import RevokedTsa
from worker.sandbox.structure import CheckedReader
from worker.sandbox.verify.certificate_twins import fingerprints
from worker.sandbox.verify.later_changes import Beyond, RevisionHistory
from worker.sandbox.verify.proof_of_existence import Checked, ProofsOfExistence
from worker.sandbox.verify.signature_checks import (
    FilledSignature,
    check_coverage,
    obstacle,
    open_signature,
    raw_integrity,
    replacement,
)
from worker.sandbox.verify.signer_certificates import attribute, check_identity
from worker.sandbox.verify.step_context import title_of
from worker.sandbox.verify.trust_checks import (
    check_revocation,
    check_time,
    check_trust,
)

_SIGNATURES_MAX: Final = 500
_EXAMINED_AT_INTAKE: Final = 60
"""Newest signatures, and newest timestamps, that are examined before a document is
signed once more."""
_PREFIXES_TRIED: Final = 20
_NAME_CHARS: Final = 200
_BYTE_RANGE: Final = re.compile(
    rb"/ByteRange\s{0,8}\[\s{0,8}(\d{1,10})\s{1,8}(\d{1,10})\s{1,8}(\d{1,10})\s{1,8}"
    rb"(\d{1,10})\s{0,8}\]"
)
_NOT_INTACT: Final = unchecked(
    CheckCode.NOT_EXAMINED, "not examined, since the signature is not intact"
)
_NOT_READ: Final = unchecked(
    CheckCode.NOT_EXAMINED, "not examined, since the signature cannot be read"
)
_NOT_COVERED: Final = unchecked(
    CheckCode.NOT_EXAMINED, "not examined, since it does not cover its whole revision"
)
_UNREAD: Final = unchecked(
    CheckCode.NOT_EXAMINED, "the file's structure cannot be read here"
)


@dataclass(frozen=True, slots=True)
class _File:
    """A PDF as far as its signatures can be read."""

    pdf: bytes
    """The whole file."""
    reader: CheckedReader
    """Reader of the whole file, or of its longest signed revision that can be read."""
    signatures: tuple[FilledSignature, ...]
    """Document timestamps among them, in the order they were made."""
    history: RevisionHistory

    def of_people(self) -> list[FilledSignature]:
        """All but the document timestamps."""
        return [each for each in self.signatures if not each.is_timestamp]

    def timestamps(self) -> list[FilledSignature]:
        """The document timestamps."""
        return [each for each in self.signatures if each.is_timestamp]


def verify(
    pdf: bytes,
    roots: Sequence[bytes],
    stamp_roots: Sequence[bytes] | None = None,
    revoked: Sequence[RevokedTsa] = (),
) -> VerificationReport:
    """Check every signature of a PDF.

    No network is asked; revocation data that the file carries is used.

    Args:
        pdf: the whole file.
        roots: the certificates that are trusted for signers, in DER.
        stamp_roots: those that are trusted for timestamps, in DER; None: the same.
        revoked: TSAs whose certificates are known to be revoked.

    Raises:
        DocumentRefusedError: it has more signatures than are checked, or needs
            a password.

    Source: ISO 32000-2, 12.8; ETSI EN 319 142-1; ETSI EN 319 102-1.
    """
    try:
        file = _open(pdf)
    except (DocumentRefusedError, MemoryError):
        raise
    except Exception:
        reports = _unreadable(pdf)
        if not reports:
            raise
        return VerificationReport(tuple(reports), ending=_UNREAD)
    with closing(file.history):
        return _verified(file, roots, stamp_roots, revoked)


def _verified(
    file: _File,
    roots: Sequence[bytes],
    stamp_roots: Sequence[bytes] | None,
    revoked: Sequence[RevokedTsa],
) -> VerificationReport:
    """Answer all questions on an opened file."""
    trusted, of_stamps = (
        [x509.Certificate.load(root) for root in each]
        for each in (roots, roots if stamp_roots is None else stamp_roots)
    )
    answers = [(each, _answer(file, each)) for each in file.timestamps()]
    # A copy of a stamp in a later revision stamps none of what that revision follows.
    stamps = [
        each.signature
        for each, answer in answers
        if each.signature is not None and answer is not Answer.NO
    ]
    proofs = ProofsOfExistence(file.reader, stamps, trusted, of_stamps, revoked)
    reports = [_report(file, each, proofs) for each in file.of_people()]
    reports += [
        _bare_report(file, each) for each, answer in answers if answer is not Answer.YES
    ]
    compared, changed = file.history.pages_compared
    return VerificationReport(
        signatures=tuple(reports),
        ending=file.history.ending,
        text_covered=file.history.text_covered,
        covered_pages=tuple(sorted(file.history.covered_pages)),
        pages_compared=compared,
        pages_changed=changed,
        unproven=proofs.unproven,
    )


def weigh(
    pdf: bytes, opened: CheckedReader | None = None, *, looks: bool = True
) -> dict[str, Check]:
    """Answer, for each signature, whether it is intact, and followed by nothing else.

    Trust does not matter here. Of many signatures the newest are examined.

    Args:
        pdf: the whole file.
        opened: the same, where it was opened already.
        looks: whether pages are drawn and compared.

    Returns:
        The most serious answer for each, by the full name of its field.

    Raises:
        DocumentRefusedError: it has more signatures than are checked.
    """
    file = _open(pdf, opened, looks=looks)
    newest = [
        *file.of_people()[-_EXAMINED_AT_INTAKE:],
        # Apart: any number of timestamps leaves the signatures examined.
        *file.timestamps()[-_EXAMINED_AT_INTAKE:],
    ]
    with closing(file.history):
        return {each.title: _weigh(file, each) for each in newest}


def _answer(file: _File, found: FilledSignature) -> Answer:
    """The answer for a signature without its signer."""
    return _weigh(file, found).answer


def _weigh(file: _File, found: FilledSignature) -> Check:
    """The most serious answer for a signature without its signer."""
    report = _bare_report(file, found)
    questions = [report.integrity, report.coverage]
    if not found.is_timestamp:
        # What follows a timestamp follows the signatures before it, and is weighed
        # for them.
        questions.append(report.changes)
    gravest = worst(each.answer for each in questions)
    return next(each for each in questions if each.answer is gravest)


def _open(
    pdf: bytes, opened: CheckedReader | None = None, *, looks: bool = True
) -> _File:
    """Open a file, or its longest signed revision that can be read and has signatures.

    Raises:
        DocumentRefusedError: it needs a password, or has too many signatures.
        Exception: of any kind, for a file of which no revision can be read.
    """
    try:
        reader = _read(pdf) if opened is None else opened
        file = _opened(pdf, reader, Beyond.NOTHING, looks=looks)
        if file.signatures:
            return file
    except MemoryError:
        raise
    except Exception as exc:
        # Anybody can append a trailer that says /Encrypt.
        if isinstance(exc, DocumentRefusedError) and not _needs_password(exc):
            raise
        if (signed := _signed_revision(pdf, Beyond.UNREADABLE)) is None:
            raise
        return signed
    # A revision may have taken the signatures out of the form.
    return _signed_revision(pdf, Beyond.UNSIGNED) or file


def _signed_revision(pdf: bytes, beyond: Beyond) -> _File | None:
    """Open the longest revision that a signature covers; None if there is none."""
    for end in _signed_ends(pdf):
        try:
            file = _opened(pdf, _read(pdf[:end]), beyond)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001, S112 (the next one may be readable)
            continue
        if file.signatures:
            return file
    return None


def _needs_password(refused: DocumentRefusedError) -> bool:
    return refused.code is ErrorCode.PDF_PASSWORD_NEEDED


def _read(pdf: bytes) -> CheckedReader:
    """Read with tolerance: the structure's own check finds what strictness would.

    Raises:
        DocumentRefusedError: `PDF_PASSWORD_NEEDED`.
    """
    reader = CheckedReader(pdf)
    if reader.encrypted and reader.decrypt("").status is AuthStatus.FAILED:
        raise DocumentRefusedError(ErrorCode.PDF_PASSWORD_NEEDED)
    return reader


def _unreadable(pdf: bytes) -> list[SignatureReport]:
    """Reports on a file that cannot be read, one for each ByteRange in it."""
    found = sorted(
        {tuple(map(int, each.groups())) for each in _BYTE_RANGE.finditer(pdf)}
    )
    return [
        SignatureReport(
            field="",
            integrity=raw_integrity(pdf, ranges),
            identity=_UNREAD,
            trust=_UNREAD,
            revocation=_UNREAD,
            time=_UNREAD,
            coverage=_UNREAD,
            changes=_UNREAD,
        )
        for ranges in found[:_PREFIXES_TRIED]
    ]


def _signed_ends(pdf: bytes) -> list[int]:
    """Ends of what the file's ByteRanges cover, the farthest first."""
    ends = {int(each[3]) + int(each[4]) for each in _BYTE_RANGE.finditer(pdf)}
    return sorted((each for each in ends if each < len(pdf)), reverse=True)[
        :_PREFIXES_TRIED
    ]


def _opened(
    pdf: bytes, reader: CheckedReader, beyond: Beyond, *, looks: bool = True
) -> _File:
    """Open every filled signature field, in the order they were signed.

    Args:
        pdf: the whole file.
        reader: of the part of it that is read.
        beyond: state of the file after that part.
        looks: as of `weigh`.

    Raises:
        DocumentRefusedError: there are too many.
    """
    found: list[FilledSignature] = []
    for title, value, node in enumerate_sig_fields(reader, filled_status=True):
        if len(found) >= _SIGNATURES_MAX:
            raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "signatures")
        found.append(open_signature(reader.content, reader, str(title), value, node))
    found.sort(key=_revision)
    ends = {each.end for each in found}
    history = RevisionHistory(pdf, reader, beyond, ends, looks=looks)
    return _File(pdf, reader, tuple(found), history)


def _revision(found: FilledSignature) -> int:
    return found.signature.signed_revision if found.signature else 0


def _bare_report(file: _File, found: FilledSignature) -> SignatureReport:
    """The answers that need no certificate."""
    signature = found.signature
    is_broken = found.integrity.answer is Answer.NO
    rest = _NOT_INTACT if is_broken else _NOT_READ
    report = SignatureReport(
        field=found.title[:_NAME_CHARS],
        integrity=found.integrity,
        identity=rest,
        trust=rest,
        revocation=rest,
        time=rest,
        coverage=check_coverage(file.pdf, found, file.history.doubts_before(found.end)),
        changes=rest,
        is_timestamp=found.is_timestamp,
        alternate=found.alternate,
    )
    if signature is None or is_broken:
        return report
    if report.coverage.answer is Answer.NO:
        # What follows is counted from the end of the revision that is covered.
        words = replacement(signature)
        changes = refuted(CheckCode.CHANGED, words) if words else _NOT_COVERED
        return replace(report, changes=changes)
    later = file.history.changes_after(signature, found.end)
    return replace(
        report,
        changes=later.check,
        filled=tuple(replace(each, name=title_of(each.name)) for each in later.filled),
        follows=_made_upon(signature),
    )


def _report(
    file: _File, found: FilledSignature, proofs: ProofsOfExistence
) -> SignatureReport:
    """All answers for one signature."""
    report = _bare_report(file, found)
    signature = found.signature
    if signature is None or found.integrity.answer is Answer.NO:
        return report  # what is known of other bytes says nothing of these
    try:
        certificate = signature.signer_cert
    except MemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 (a forged one raises anything)
        return _all_unchecked(report, obstacle(exc))
    report = replace(
        report,
        identity=check_identity(certificate),
        signer=attribute(certificate, "common_name"),
        signer_serial=attribute(certificate, "serial_number"),
        certificates=tuple(fingerprints(certificate)),
        serial=serial_text(certificate.serial_number),
    )
    try:
        checked = proofs.check(signature)
        return _with_trust(report, signature, checked)
    except MemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 (a forged one raises anything)
        return _all_unchecked(report, obstacle(exc), identity=report.identity)


def _all_unchecked(
    report: SignatureReport, why: Check, *, identity: Check | None = None
) -> SignatureReport:
    """A report whose questions on the signer all meet the same obstacle."""
    why = replace(why, answer=Answer.UNCHECKED)
    return replace(
        report, identity=identity or why, trust=why, revocation=why, time=why
    )


def _with_trust(
    report: SignatureReport, signature: EmbeddedPdfSignature, checked: Checked
) -> SignatureReport:
    """The report with what the chain and the timestamps prove."""
    when, docmdp = signature.self_reported_timestamp, signature.docmdp_level
    proof = checked.proof
    return replace(
        report,
        trust=check_trust(checked),
        revocation=check_revocation(checked, when),
        time=check_time(checked),
        signed_at=None if when is None else when.isoformat(),
        docmdp=None if docmdp is None else docmdp.value,
        level=checked.level.value,
        void=checked.void,
        timestamp=None if proof is None else proof.at.isoformat(),
        tsa="" if proof is None else proof.tsa,
    )


def _made_upon(signature: EmbeddedPdfSignature) -> int:
    """Offset of the cross-references of the revision before a signature's; 0: none.

    A hybrid file has two sections a revision, the second of which no startxref names.
    """
    xrefs = signature.reader.xrefs
    for revision in reversed(range(signature.signed_revision)):
        kind = xrefs.get_xref_container_info(revision).xref_section_type
        if kind is not XRefSectionType.HYBRID_STREAM:
            return int(xrefs.get_startxref_for_revision(revision))
    return 0
