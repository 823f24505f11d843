"""What pyHanko and OpenSSL say of the evidence that a signed PDF carries."""

import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from asn1crypto import cms, x509
from cryptography import x509 as crypto_x509
from cryptography.hazmat.primitives.serialization import Encoding
from pyhanko.sign.ades.report import AdESPassed
from pyhanko.sign.validation import (
    async_validate_pdf_signature,
)
from pyhanko.sign.validation.ades import ades_lta_validation
from pyhanko.sign.validation.dss import DocumentSecurityStore
from pyhanko.sign.validation.policy_decl import (
    PdfSignatureValidationSpec,
    RevinfoOnlineFetchingRule,
    RevocationInfoGatheringSpec,
    SignatureValidationSpec,
)
from pyhanko_certvalidator.context import CertValidationPolicySpec
from pyhanko_certvalidator.ltv.types import ValidationTimingInfo
from pyhanko_certvalidator.policy_decl import (
    CertRevTrustPolicy,
    RevocationCheckingPolicy,
    RevocationCheckingRule,
)
from pyhanko_certvalidator.registry import SimpleTrustManager

from tests.support.documents.validators import read_pdf
from tests.support.patience import CALL_S
from tests.support.processes.event_loops import run_apart
from worker.pades.timestamp_token import read_token


def lta_failures(pdf: bytes, root: bytes, at: datetime) -> list[str]:
    """What pyHanko's validation with evidence finds wrong, with no network.

    Revocation data has to be there for every certificate but roots: of the newest
    timestamp's still in date, of all others by what stamped it.

    Args:
        pdf: the whole file.
        root: the one trusted certificate, DER.
        at: the time of the check.

    Source: ETSI EN 319 102-1, 5.6.3.
    """
    policy = CertValidationPolicySpec(
        trust_manager=SimpleTrustManager.build([x509.Certificate.load(root)]),
        revinfo_policy=CertRevTrustPolicy(
            RevocationCheckingPolicy(
                RevocationCheckingRule.CRL_OR_OCSP_REQUIRED,
                RevocationCheckingRule.CRL_OR_OCSP_REQUIRED,
            ),
        ),
    )
    spec = PdfSignatureValidationSpec(
        SignatureValidationSpec(
            policy,
            RevocationInfoGatheringSpec(RevinfoOnlineFetchingRule.LOCAL_ONLY),
        )
    )
    failures = []
    for signature in read_pdf(pdf).embedded_regular_signatures:
        result = run_apart(
            ades_lta_validation(
                signature,
                spec,
                timing_info=ValidationTimingInfo(
                    at, at, point_in_time_validation=False
                ),
            )
        )
        if result.ades_subindic is not AdESPassed.OK:
            failures.append(
                f"{signature.field_name}: {result.ades_subindic} {result.failure_msg}"
            )
    return failures


def lt_failures(
    pdf: bytes, root: bytes, at: datetime, *, stamped: bool = True
) -> list[str]:
    """What pyHanko finds wrong by the data that the file carries and no other.

    Args:
        pdf: the whole file, not yet stamped as a whole.
        root: the one trusted certificate, DER.
        at: the time for which it is checked, soon after the signatures.
        stamped: whether each signature has a timestamp of its own.
    """
    reader = read_pdf(pdf)
    context = DocumentSecurityStore.read_dss(reader).as_validation_context(
        {
            "trust_roots": [x509.Certificate.load(root)],
            "allow_fetching": False,
            "revocation_mode": "require",
            "moment": at,
        }
    )
    statuses = [
        run_apart(async_validate_pdf_signature(signature, context, context))
        for signature in reader.embedded_regular_signatures
    ]
    return [
        status.pretty_print_details()
        for status in statuses
        if not status.bottom_line
        or (
            stamped
            and (
                status.timestamp_validity is None
                or not status.timestamp_validity.trusted
            )
        )
    ]


def openssl_accepts(
    pdf: bytes, folder: Path, chain: Sequence[bytes], at: datetime | None = None
) -> list[str]:
    """What `openssl ts -verify` says of each document timestamp, oldest first.

    Args:
        pdf: the whole file.
        folder: for its files.
        chain: the TSA's issuers, the trusted root last, DER.
        at: the time of the check; None: of each timestamp, what it says itself.
    """
    *between, root = (
        crypto_x509.load_der_x509_certificate(each).public_bytes(Encoding.PEM)
        for each in chain
    )
    (folder / "root.pem").write_bytes(root)
    (folder / "between.pem").write_bytes(b"".join(between))
    said = []
    for signature in read_pdf(pdf).embedded_timestamp_signatures:
        start, length, end, rest = signature.byte_range
        (folder / "covered").write_bytes(
            pdf[start : start + length] + pdf[end : end + rest]
        )
        token = cms.ContentInfo.load(signature.pkcs7_content).dump()
        moment = at or read_token(token).at
        (folder / "token").write_bytes(token)
        done = subprocess.run(
            [
                *("openssl", "ts", "-verify", "-data", "covered", "-in", "token"),
                *("-token_in", "-CAfile", "root.pem", "-untrusted", "between.pem"),
                *("-attime", str(int(moment.timestamp()))),
            ],
            check=False, capture_output=True, text=True, cwd=folder, timeout=CALL_S,
        )  # fmt: skip
        said.append(done.stdout.strip() or done.stderr.strip())
    return said
