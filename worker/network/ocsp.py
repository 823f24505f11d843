"""Whether an OCSP answer from outside is good, and what it says.

Source: RFC 6960, 3.2 and 4.2.2; RFC 9654.
"""

from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID

from appliance.pki.validation.certificate_rules import (
    check_algorithm,
    check_dates,
    der_of,
    extension,
    is_signed_by,
)
from worker.network.revocation_check import (
    STRONG,
    STUMBLES,
    BadStatusError,
    CheckedStatus,
    check_times,
    refuse_unless,
)

_AGE_MOST: Final = timedelta(days=1)
"""Oldest OCSP answer that names no nextUpdate."""


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
        refuse_unless(
            status is ocsp.OCSPResponseStatus.SUCCESSFUL, f"it says {status.name}"
        )
        _check_nonce(response, nonce)
        responder = _responder(response, issuer, now)
        single = _about(response, certificate, issuer)
    except STUMBLES as exc:
        msg = f"it is malformed or not signed well ({type(exc).__name__})"
        raise BadStatusError(msg) from exc
    told = single.certificate_status
    refuse_unless(
        told is not ocsp.OCSPCertStatus.UNKNOWN, "it does not know the certificate"
    )
    start, end = single.this_update_utc, single.next_update_utc
    if end is None:
        refuse_unless(now - start <= _AGE_MOST, "it is of an old moment")
    check_times(start, end, now)
    reason = single.revocation_reason
    return CheckedStatus(
        told is ocsp.OCSPCertStatus.REVOKED,
        start,
        end or now,
        responder,
        single.revocation_time_utc,
        "" if reason is None else reason.value,
    )


def _check_nonce(response: ocsp.OCSPResponse, nonce: bytes | None) -> None:
    """A nonce that is given back must be ours. Source: RFC 9654, 2.1."""
    if nonce is None:
        return
    try:
        given = response.extensions.get_extension_for_class(x509.OCSPNonce).value.nonce
    except x509.ExtensionNotFound:
        return
    refuse_unless(given == nonce, "it has another nonce")


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
    refuse_unless(isinstance(algorithm, STRONG), "it is signed by a weak algorithm")
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
