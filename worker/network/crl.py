"""Whether a CRL from outside is good, and what it says.

Source: RFC 5280, 5 and 6.3.3.
"""

from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from appliance.pki.validation.certificate_rules import (
    extension,
)
from worker.network.revocation_check import (
    STRONG,
    STUMBLES,
    BadStatusError,
    CheckedStatus,
    check_times,
    refuse_unless,
)
from worker.network.status_urls import points_of


def checked_list(
    der: bytes, certificate: x509.Certificate, issuer: x509.Certificate, now: datetime
) -> CheckedStatus:
    """Check a CRL, and look a certificate up in it.

    Complete lists of the certificate's own issuer are taken, and no others.

    Args:
        der: CertificateList, or anything.
        certificate: that is looked up.
        issuer: of it.
        now: aware.

    Raises:
        BadStatusError: it is not good, or not about such certificates.
    """
    try:
        crl = x509.load_der_x509_crl(der)
        _check_issuer(crl, issuer)
        _check_scope(crl, certificate)
        start, end = crl.last_update_utc, crl.next_update_utc
        found = crl.get_revoked_certificate_by_serial_number(certificate.serial_number)
        reason = None if found is None else extension(found, x509.CRLReason)
    except STUMBLES as exc:
        msg = f"it is malformed ({type(exc).__name__})"
        raise BadStatusError(msg) from exc
    if end is None:
        msg = "it has no nextUpdate"
        raise BadStatusError(msg)
    check_times(start, end, now)
    return CheckedStatus(
        found is not None,
        start,
        end,
        revoked_at=None if found is None else found.revocation_date_utc,
        reason="" if reason is None else reason.reason.value,
    )


def _check_issuer(
    crl: x509.CertificateRevocationList, issuer: x509.Certificate
) -> None:
    """The certificate's issuer must have signed it, and must be let."""
    usage = extension(issuer, x509.KeyUsage)
    key = issuer.public_key()
    refuse_unless(crl.issuer == issuer.subject, "it is of another CA")
    refuse_unless(usage is None or usage.crl_sign, "its CA may sign none")
    refuse_unless(
        isinstance(crl.signature_hash_algorithm, STRONG),
        "it is signed by a weak algorithm",
    )
    refuse_unless(
        isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey)
        and crl.is_signature_valid(key),
        "its signature is not right",
    )


def _check_scope(
    crl: x509.CertificateRevocationList, certificate: x509.Certificate
) -> None:
    """It must be about such certificates, for all reasons, and understood.

    Source: RFC 5280, 5.2.5 and 6.3.3 b.
    """
    basic = extension(certificate, x509.BasicConstraints)
    is_ca = basic is not None and basic.ca
    for each in crl.extensions:
        scope = each.value
        if not isinstance(scope, x509.IssuingDistributionPoint):
            refuse_unless(not each.critical, "it has an unknown critical extension")
            continue
        refuse_unless(
            not scope.indirect_crl
            and scope.only_some_reasons is None
            and not scope.only_contains_attribute_certs
            and not (scope.only_contains_user_certs and is_ca)
            and not (scope.only_contains_ca_certs and not is_ca),
            "it is about other certificates",
        )
        names, ours = scope.full_name or (), points_of(certificate)
        refuse_unless(
            not names or any(name in ours for name in names),
            "it is of another distribution point",
        )
