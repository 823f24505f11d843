"""Verdict on a sample that was signed to try a certificate."""

from collections.abc import Iterator
from contextlib import contextmanager

from appliance.domain.documents.verification import Answer, VerificationReport
from appliance.domain.errors import (
    ApplianceError,
    CertificateUnverifiableError,
    DocumentRefusedError,
    ErrorCode,
)
from appliance.domain.sandbox import says_nothing


@contextmanager
def judging() -> Iterator[None]:
    """Tell a sandbox that said nothing of a certificate from one that refuses it.

    Raises:
        CertificateUnverifiableError: the verifier cannot read what is signed with it.
        ApplianceError: `SANDBOX_UNAVAILABLE`: the job broke down or ran out of
            resources, which is to be tried again.
    """
    try:
        yield
    except DocumentRefusedError as exc:
        if says_nothing(exc):
            raise ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE) from exc
        raise CertificateUnverifiableError(exc.code.value) from exc


def demand_valid(report: VerificationReport) -> None:
    """Refuse a certificate whose sample the verifier does not call valid.

    *Could not be checked* refuses as well. A sample has nothing that is hard to read:
    the verifier would give that answer for every document of this signer.

    Args:
        report: on the sample.

    Raises:
        CertificateUnverifiableError: an answer that counts is not *yes*, or the
            sample does not have exactly one signature.
    """
    if report.verdict is Answer.YES and len(report.signatures) == 1:
        return
    faults = (each.reason for each in report.signatures if not each.valid)
    raise CertificateUnverifiableError(next(faults, "") or report.ending.reason)
