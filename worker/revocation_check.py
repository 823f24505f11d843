"""Whether an OCSP answer or a CRL from outside is good, and what it says.

Both come from strangers: nothing is believed before all of it was checked.

Source: RFC 6960, 3.2 and 4.2.2; RFC 9654; RFC 5280, 5 and 6.3.3.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID

from appliance.domain.errors import ApplianceError
from appliance.services.certificate_rules import (
    check_algorithm,
    check_dates,
    der_of,
    extension,
    is_signed_by,
)
from worker.status_addresses import points_of

DRIFT: Final = timedelta(minutes=5)
"""How far another's clock may be ahead of ours."""
_AGE_MOST: Final = timedelta(days=1)
"""Oldest OCSP answer that names no nextUpdate."""
_STRONG: Final = (hashes.SHA256, hashes.SHA384, hashes.SHA512)
_STUMBLES: Final = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    OverflowError,
    UnsupportedAlgorithm,
    InvalidSignature,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    ApplianceError,
)
"""What pyca and our own rules raise on what is none, or not good."""


class BadStatusError(Exception):
    """An answer or list that must not be used; the text says why, for operators."""


@dataclass(frozen=True, slots=True)
class CheckedStatus:
    """What an answer or list says of one certificate."""

    is_revoked: bool
    this_update: datetime
    next_update: datetime
    """Until then it may be used again; now, where it names no time."""
    responder: bytes | None = field(default=None, repr=False)
    """Certificate of an OCSP responder that is not the CA itself, DER."""
    revoked_at: datetime | None = None
    reason: str = ""
    """CRLReason by its name in RFC 5280; empty: none is told."""

    @property
    def is_on_hold(self) -> bool:
        """Whether the CA may take its revocation back."""
        return self.reason == x509.ReasonFlags.certificate_hold.value


def checked_answer(
    der: bytes,
    certificate: x509.Certificate,
    issuer: x509.Certificate,
    nonce: bytes | None,
    now: datetime,
) -> CheckedStatus:
    """Check an OCSP answer about one certificate.

    Args:
        der: OCSPResponse, or anything.
        certificate: that it is to be about.
        issuer: of it.
        nonce: that was asked with; many responders give none back. None: one that
            was kept is looked at again.
        now: aware.

    Raises:
        BadStatusError: it is not good, or does not know the certificate.
    """
    try:
        response = ocsp.load_der_ocsp_response(der)
        status = response.response_status
        _refuse_unless(
            status is ocsp.OCSPResponseStatus.SUCCESSFUL, f"it says {status.name}"
        )
        _check_nonce(response, nonce)
        responder = _responder(response, issuer, now)
        single = _about(response, certificate, issuer)
    except _STUMBLES as exc:
        msg = f"it is malformed or not signed well ({type(exc).__name__})"
        raise BadStatusError(msg) from exc
    told = single.certificate_status
    _refuse_unless(
        told is not ocsp.OCSPCertStatus.UNKNOWN, "it does not know the certificate"
    )
    start, end = single.this_update_utc, single.next_update_utc
    if end is None:
        _refuse_unless(now - start <= _AGE_MOST, "it is of an old moment")
    _check_times(start, end, now)
    reason = single.revocation_reason
    return CheckedStatus(
        told is ocsp.OCSPCertStatus.REVOKED,
        start,
        end or now,
        responder,
        single.revocation_time_utc,
        "" if reason is None else reason.value,
    )


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
    except _STUMBLES as exc:
        msg = f"it is malformed ({type(exc).__name__})"
        raise BadStatusError(msg) from exc
    if end is None:
        msg = "it has no nextUpdate"
        raise BadStatusError(msg)
    _check_times(start, end, now)
    return CheckedStatus(
        found is not None,
        start,
        end,
        revoked_at=None if found is None else found.revocation_date_utc,
        reason="" if reason is None else reason.reason.value,
    )


def _refuse_unless(good: object, why: str) -> None:
    """Refuse something in which something is not so.

    Raises:
        BadStatusError: it is not.
    """
    if not good:
        raise BadStatusError(why)


def _check_times(start: datetime, end: datetime | None, now: datetime) -> None:
    _refuse_unless(start <= now + DRIFT, "it is of the future")
    _refuse_unless(end is None or end > now, "its nextUpdate is over")


def _check_nonce(response: ocsp.OCSPResponse, nonce: bytes | None) -> None:
    """A nonce that is given back must be ours. Source: RFC 9654, 2.1."""
    if nonce is None:
        return
    try:
        given = response.extensions.get_extension_for_class(x509.OCSPNonce).value.nonce
    except x509.ExtensionNotFound:
        return
    _refuse_unless(given == nonce, "it has another nonce")


def _responder(
    response: ocsp.OCSPResponse, issuer: x509.Certificate, now: datetime
) -> bytes | None:
    """Who signed an answer: the CA (None), or whom it let, whose signature it is.

    Raises:
        BadStatusError: nobody who may.

    Source: RFC 6960, 4.2.2.2.
    """
    for each in (issuer, *response.certificates):
        if not _is_named(response, each):
            continue
        if each == issuer:
            _check_signature(response, each)
            return None
        purposes = extension(each, x509.ExtendedKeyUsage)
        if (
            purposes is not None
            and ExtendedKeyUsageOID.OCSP_SIGNING in purposes
            and is_signed_by(each, issuer)
        ):
            check_dates(each, 0, now)
            check_algorithm(each, 0, anchored=False)
            _check_signature(response, each)
            return der_of(each)
    msg = "nobody signed it whom the CA lets"
    raise BadStatusError(msg)


def _is_named(response: ocsp.OCSPResponse, certificate: x509.Certificate) -> bool:
    """Whether a ResponderID is that of a certificate. Source: RFC 6960, 4.2.1."""
    if response.responder_name is not None:
        return certificate.subject == response.responder_name
    key = x509.SubjectKeyIdentifier.from_public_key(certificate.public_key())
    return key.digest == response.responder_key_hash


def _check_signature(response: ocsp.OCSPResponse, signer: x509.Certificate) -> None:
    """Check that a certificate's key signed an answer.

    Raises:
        InvalidSignature: it did not.
        BadStatusError: by an algorithm that is not sound.
    """
    algorithm, key = response.signature_hash_algorithm, signer.public_key()
    _refuse_unless(isinstance(algorithm, _STRONG), "it is signed by a weak algorithm")
    value, over = response.signature, response.tbs_response_bytes
    if algorithm is None:
        return
    if isinstance(key, rsa.RSAPublicKey):
        key.verify(value, over, padding.PKCS1v15(), algorithm)
    elif isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(value, over, ec.ECDSA(algorithm))
    else:
        msg = "it is signed by an unknown kind of key"
        raise BadStatusError(msg)


def _about(
    response: ocsp.OCSPResponse,
    certificate: x509.Certificate,
    issuer: x509.Certificate,
) -> ocsp.OCSPSingleResponse:
    """What an answer says of a certificate.

    Raises:
        BadStatusError: nothing.
    """
    for each in response.responses:
        if each.serial_number != certificate.serial_number:
            continue
        # As an own question names it, by the digest of this answer.
        asked = (
            ocsp.OCSPRequestBuilder()
            .add_certificate(certificate, issuer, each.hash_algorithm)
            .build()
        )
        if (asked.issuer_key_hash, asked.issuer_name_hash) == (
            each.issuer_key_hash,
            each.issuer_name_hash,
        ):
            return each
    msg = "it is about another certificate"
    raise BadStatusError(msg)


def _check_issuer(
    crl: x509.CertificateRevocationList, issuer: x509.Certificate
) -> None:
    """The certificate's issuer must have signed it, and must be let."""
    usage = extension(issuer, x509.KeyUsage)
    key = issuer.public_key()
    _refuse_unless(crl.issuer == issuer.subject, "it is of another CA")
    _refuse_unless(usage is None or usage.crl_sign, "its CA may sign none")
    _refuse_unless(
        isinstance(crl.signature_hash_algorithm, _STRONG),
        "it is signed by a weak algorithm",
    )
    _refuse_unless(
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
            _refuse_unless(not each.critical, "it has an unknown critical extension")
            continue
        _refuse_unless(
            not scope.indirect_crl
            and scope.only_some_reasons is None
            and not scope.only_contains_attribute_certs
            and not (scope.only_contains_user_certs and is_ca)
            and not (scope.only_contains_ca_certs and not is_ca),
            "it is about other certificates",
        )
        names, ours = scope.full_name or (), points_of(certificate)
        _refuse_unless(
            not names or any(name in ours for name in names),
            "it is of another distribution point",
        )
