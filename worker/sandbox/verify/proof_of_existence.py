"""What a file's timestamps prove, by trusted roots and the file's own data alone.

Each is checked for its own time, and its TSA's certificate must last to the time at
which it is known to have existed: of the newest that is now, of the one before it
the time that the newest proves, and so on back. Runs in a confined job only.

Source: ETSI EN 319 102-1, 5.6.3.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from asn1crypto import cms, x509
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.validation import (
    DocumentTimestampStatus,
    EmbeddedPdfSignature,
    PdfSignatureStatus,
    SignatureCoverageLevel,
    async_validate_pdf_signature,
    async_validate_pdf_timestamp,
)
from pyhanko.sign.validation.dss import DocumentSecurityStore
from pyhanko.sign.validation.generic_cms import extract_tst_data_iter
from pyhanko.sign.validation.status import TimestampSignatureStatus
from pyhanko_certvalidator import ValidationContext
from pyhanko_certvalidator.policy_decl import (
    CertRevTrustPolicy,
    FreshnessReqType,
    RevocationCheckingPolicy,
    RevocationCheckingRule,
)

from appliance.domain.clock import SystemClock
from appliance.domain.timestamps import RevokedTsa
from appliance.domain.vocab import SignatureLevel
from worker.sandbox.verify.difference_analysis import POLICY
from worker.sandbox.verify.revoked_timestamps import RevokedTsas
from worker.sandbox.verify.validation_report import text

_TEXT_CHARS: Final = 200
_ANY_AGE: Final = timedelta(days=200 * 365)
_RULES: Final = {
    "soft-fail": RevocationCheckingRule.CHECK_IF_DECLARED_SOFT,
    "require": RevocationCheckingRule.CRL_OR_OCSP_REQUIRED,
}


@dataclass(frozen=True, slots=True)
class ProofOfExistence:
    """A trusted timestamp."""

    at: datetime
    tsa: str
    """Subject of its certificate, for people."""
    revision: int
    """Of the document timestamp, or of the signature that carries it."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What is found of one signature."""

    status: PdfSignatureStatus
    proof: ProofOfExistence | None
    level: SignatureLevel
    void: str
    """Why a timestamp of it does not count, though it is right; empty: none."""


class ProofsOfExistence:
    """What is known of times in one file.

    Args:
        reader: the open file.
        stamps: its document timestamps, oldest first.
        roots: trusted for signers.
        stamp_roots: trusted for timestamps.
        revoked: TSAs whose certificates are known to be revoked.
    """

    def __init__(
        self,
        reader: PdfFileReader,
        stamps: Sequence[EmbeddedPdfSignature],
        roots: list[x509.Certificate],
        stamp_roots: list[x509.Certificate],
        revoked: Sequence[RevokedTsa] = (),
    ) -> None:
        self._revoked = RevokedTsas(revoked)
        self._void: list[tuple[int, str]] = []
        self._roots = roots
        self._stamp_roots = stamp_roots
        self._store = _store_of(reader)
        self._stamps: list[ProofOfExistence] = []
        for stamp in reversed(stamps):
            proof = self._of_stamp(stamp, self._known_at(stamp.signed_revision))
            if proof is not None:
                self._stamps.insert(0, proof)

    def check(self, signature: EmbeddedPdfSignature) -> Checked:
        """A signature's status at the time that is proven for it, and its level.

        Args:
            signature: any of the file.
        """
        proof = self._of_signature(signature)
        status, level = self._level(signature, proof)
        void = [
            words for revision, words in self._void
            if revision >= signature.signed_revision
        ]  # fmt: skip
        return Checked(status, proof, level, void[0] if void else "")

    def _level(
        self, signature: EmbeddedPdfSignature, proof: ProofOfExistence | None
    ) -> tuple[PdfSignatureStatus, SignatureLevel]:
        """Its status, and the level that it proves."""
        moment = None if proof is None else proof.at
        status = self._status(signature, moment, "soft-fail")
        if proof is None:
            return status, SignatureLevel.B_B
        if self._store is None or not (
            self._status(signature, moment, "require").trusted
        ):
            return status, SignatureLevel.B_T
        later = [
            each for each in self._stamps if each.revision > signature.signed_revision
        ]
        # A stamp that stands for the signature's own is not one over its data.
        own = sum(each.at == proof.at for each in later)
        level = SignatureLevel.B_LTA if len(later) > own else SignatureLevel.B_LT
        return status, level

    def _known_at(self, revision: int) -> datetime | None:
        """The oldest proof of a revision; None when there is none: it is known now."""
        return next((p.at for p in self._stamps if p.revision > revision), None)

    def _of_stamp(
        self, stamp: EmbeddedPdfSignature, moment: datetime | None
    ) -> ProofOfExistence | None:
        at = _time_of(stamp.signed_data)
        status = self._stamp_status(stamp, at)
        if not (status.intact and status.valid):
            return None
        later = self._stamp_status(stamp, moment) if self._store else status
        if self._is_void(status, moment, later, stamp.signed_revision):
            return None
        if not status.trusted or _has_ended(status.signing_cert, moment):
            return None
        tsa = _name(status.signing_cert)
        return ProofOfExistence(status.timestamp, tsa, stamp.signed_revision)

    def _of_signature(self, signature: EmbeddedPdfSignature) -> ProofOfExistence | None:
        """The oldest that is trusted: its own timestamp, or a document's after it."""
        known = self._known_at(signature.signed_revision)
        token = next(extract_tst_data_iter(signature.signer_info, signed=False), None)
        moment = None if token is None else _time_of(token)
        own = self._status(signature, moment, "soft-fail").timestamp_validity
        if (
            own is not None
            and (own.intact and own.valid)
            and not self._is_void_own(signature, own, known)
            and own.trusted
            and not _has_ended(own.signing_cert, known)
        ):
            tsa = _name(own.signing_cert)
            return ProofOfExistence(own.timestamp, tsa, signature.signed_revision)
        return next(
            (p for p in self._stamps if p.revision > signature.signed_revision), None
        )

    def _is_void_own(
        self,
        signature: EmbeddedPdfSignature,
        own: TimestampSignatureStatus,
        known: datetime | None,
    ) -> bool:
        """As `_is_void`, of the timestamp that a signature carries."""
        later = None
        if self._store is not None:
            later = self._status(signature, known, "soft-fail").timestamp_validity
        return self._is_void(own, known, later or own, signature.signed_revision)

    def _is_void(
        self,
        status: TimestampSignatureStatus,
        known: datetime | None,
        later: TimestampSignatureStatus,
        revision: int,
    ) -> bool:
        """Whether a revocation voids a timestamp; noted in words.

        Args:
            status: at its own time.
            known: when it is known to have existed; None: now.
            later: its status at that time, by the file's own data.
            revision: where it stands.
        """
        # One that pyHanko itself takes for revoked at its time says so there.
        told = status.revocation_details or later.revocation_details
        why = self._revoked.why_void(status.signing_cert, status.timestamp, known, told)
        if why:
            at, tsa = status.timestamp, _name(status.signing_cert)
            self._void.append((revision, f"{tsa}, {at:%Y-%m-%d %H:%M:%S} UTC: {why}"))
        return bool(why)

    def _stamp_status(
        self, stamp: EmbeddedPdfSignature, moment: datetime | None
    ) -> DocumentTimestampStatus:
        context = self._context(self._stamp_roots, moment, "soft-fail")
        return asyncio.run(async_validate_pdf_timestamp(stamp, context, skip_diff=True))

    def _status(
        self, signature: EmbeddedPdfSignature, moment: datetime | None, mode: str
    ) -> PdfSignatureStatus:
        context = self._context(self._roots, moment, mode)
        of_stamps = self._context(self._stamp_roots, moment, mode)
        return asyncio.run(
            async_validate_pdf_signature(
                signature, context, of_stamps, diff_policy=POLICY
            )
        )

    def _context(
        self, roots: list[x509.Certificate], moment: datetime | None, mode: str
    ) -> ValidationContext:
        """Roots, the file's own data, and nothing fetched."""
        rule = _RULES[mode]
        options: dict[str, Any] = {
            "trust_roots": roots,
            "allow_fetching": False,
            "moment": moment,
            # The file's own data is the youngest there is, however old it has become.
            "revinfo_policy": CertRevTrustPolicy(
                RevocationCheckingPolicy(rule, rule),
                freshness=_ANY_AGE,
                freshness_req_type=FreshnessReqType.MAX_DIFF_REVOCATION_VALIDATION,
            ),
        }
        if self._store is None:
            return ValidationContext(**options)
        return self._store.as_validation_context(options)


def is_whole_stamp(stamp: EmbeddedPdfSignature | None) -> bool:
    """Whether a document timestamp stamps the whole revision that it stands in.

    Whose it is does not matter here.

    Args:
        stamp: itself; None where it cannot be read.
    """
    if stamp is None:
        return False
    try:
        context = ValidationContext(
            trust_roots=[stamp.signer_cert], allow_fetching=False
        )
        status = asyncio.run(
            async_validate_pdf_timestamp(stamp, context, skip_diff=True)
        )
        covers = stamp.evaluate_signature_coverage()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (a forged one raises anything)
        return False
    return (
        status.intact
        and status.valid
        and covers >= SignatureCoverageLevel.ENTIRE_REVISION
    )


def _store_of(reader: PdfFileReader) -> DocumentSecurityStore | None:
    try:
        return DocumentSecurityStore.read_dss(reader)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (none, or a forged one: nothing is gained by it)
        return None


def _time_of(token: cms.SignedData) -> datetime:
    """What a timestamp says, as yet unchecked. Source: RFC 3161, 2.4.2."""
    info = token["encap_content_info"]["content"].parsed
    at: datetime = info["gen_time"].native
    return at


def _has_ended(certificate: x509.Certificate, known: datetime | None) -> bool:
    """Whether a TSA's time was over when its timestamp is known to have existed."""
    return bool(certificate.not_valid_after < (known or SystemClock().now()))


def _name(certificate: x509.Certificate) -> str:
    """What people call a subject: its common name, and its organization."""
    subject = certificate.subject
    known = (
        text(subject.native.get(each)) for each in ("common_name", "organization_name")
    )
    return (", ".join(filter(None, known)) or subject.human_friendly)[:_TEXT_CHARS]
