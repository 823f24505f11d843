"""The installation's own revocations, applied to a verification report.

A file carries the revocation data of the day it was signed. The record knows what was
revoked since, and, of a certificate that it issued, that nothing was.
"""

import hashlib
from dataclasses import replace
from datetime import datetime

from appliance.domain.documents.verification import (
    YES,
    Answer,
    Check,
    CheckCode,
    SignatureReport,
    VerificationReport,
    revoked,
)
from appliance.domain.pki.certificates import CertificateRecord, StatusKind
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.validation.external_status_store import ExternalStatusStore
from appliance.record.unit_of_work import Database, Transaction


class SignerRevocations:
    """Revocations of signers' certificates: own ones, and those known of outside CAs.

    Args:
        store: the record.
    """

    def __init__(self, store: Database) -> None:
        self._store = store

    async def apply(self, report: VerificationReport) -> VerificationReport:
        """Answer the question of revocation again, from the record.

        A revocation counts if it came before the time that is proven for the
        signature; without such a time it leaves the signature undetermined.

        Args:
            report: of the sandbox.
        """
        async with self._store.read() as transaction:
            signatures = [
                await _applied(transaction, each) for each in report.signatures
            ]
        return replace(report, signatures=tuple(signatures))


async def is_ours(transaction: Transaction, report: SignatureReport) -> bool:
    """Return whether the internal CA issued the certificate of a signature.

    Args:
        transaction: of a transaction.
        report: on the signature.
    """
    return await _issued(transaction, report) is not None


async def _issued(
    transaction: Transaction, report: SignatureReport
) -> CertificateRecord | None:
    """The internal CA's record of a signer's certificate; None: it issued another."""
    if not report.certificates:
        return None
    found = await CertificateStore(transaction).get(report.serial)
    if found is None:
        return None
    is_it = hashlib.sha256(found.der).hexdigest() in report.certificates
    return found if is_it else None


async def _applied(
    transaction: Transaction, report: SignatureReport
) -> SignatureReport:
    if not report.certificates or report.revocation.answer is Answer.NO:
        return report
    found = await _issued(transaction, report)
    if found is not None:
        if found.revoked_at is not None:
            reason = "" if found.reason is None else found.reason.value
            return replace(
                report, revocation=_revoked(report, found.revoked_at, reason)
            )
        if report.revocation.code is CheckCode.TRY_LATER:
            return replace(report, revocation=YES)
        return report
    for each in report.certificates:
        outside = await ExternalStatusStore(transaction).get(StatusKind.REVOKED, each)
        if outside is not None:
            at = outside.revoked_at or outside.this_update
            return replace(report, revocation=_revoked(report, at, outside.reason))
    return report


def _revoked(report: SignatureReport, at: datetime, reason: str) -> Check:
    """Weigh a revocation against the times that the report has."""
    proven, claimed = (
        None if each is None else datetime.fromisoformat(each)
        for each in (report.timestamp, report.signed_at)
    )
    return revoked(at=at, proven=proven, claimed=claimed, reason=reason)
