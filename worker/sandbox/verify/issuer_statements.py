"""Revocations that the issuer of a certificate told with its own key.

A certificate that this key lists is revoked. It does not matter which of the issuer's
certificates the chain goes through, or for which certificates a CRL is meant: both
matter only where data say that a certificate is *good*. pyHanko accepts the issuer's
certificate of the chain alone, and an issuer may have others of its name and key.

Source: RFC 5280, 5.3; RFC 6960, 4.2.2.2 (an issuer may sign for itself).
"""

import hashlib
from datetime import UTC, datetime
from typing import Final

from asn1crypto import crl, x509
from cryptography.x509 import (
    CertificateRevocationList,
    CRLReason,
    DeltaCRLIndicator,
    IssuingDistributionPoint,
    ReasonFlags,
    RevokedCertificate,
)
from cryptography.x509.extensions import ExtensionNotFound
from pyhanko.sign.validation.status import RevocationDetails
from pyhanko_certvalidator.revinfo.archival import OCSPContainer

_HASHES: Final = {"sha1", "sha256", "sha384", "sha512"}
"""Hashes that the id of a certificate in an OCSP answer is made with."""
_UNSPECIFIED: Final = "unspecified"


def revoked_by_answer(
    answer: OCSPContainer, certificate: x509.Certificate, issuer: x509.Certificate
) -> RevocationDetails | None:
    """Return the revocation in an OCSP answer; None: it tells of another certificate.

    Args:
        answer: it; signed with the issuer's key.
        certificate: that may be revoked.
        issuer: of it.
    """
    told = answer.extract_single_response()
    if told is None or told["cert_status"].name != "revoked":
        return None
    asked = told["cert_id"]
    kind = asked["hash_algorithm"]["algorithm"].native
    if kind not in _HASHES:
        return None
    key = hashlib.new(kind, bytes(issuer.public_key["public_key"])).digest()
    names = {
        hashlib.new(kind, each.dump()).digest()
        for each in (certificate.issuer, issuer.subject)
    }
    if (
        asked["serial_number"].native != certificate.serial_number
        or asked["issuer_key_hash"].native != key
        or asked["issuer_name_hash"].native not in names
    ):
        return None
    revoked = told["cert_status"].chosen
    reason = revoked["revocation_reason"].native or _UNSPECIFIED
    return _details(revoked["revocation_time"].native, reason)


def revoked_by_list(
    listed: CertificateRevocationList, serial: int
) -> RevocationDetails | None:
    """Return the revocation in a CRL; None: it has none, or tells of other issuers.

    Args:
        listed: it; of the issuer's name, and signed with its key.
        serial: number of the certificate.

    Raises:
        ValueError: a part of it cannot be read.
    """
    try:
        scope = listed.extensions.get_extension_for_class(IssuingDistributionPoint)
    except ExtensionNotFound:
        pass
    else:
        if scope.value.indirect_crl or scope.value.only_contains_attribute_certs:
            return None
    entry = listed.get_revoked_certificate_by_serial_number(serial)
    if entry is None:
        return None
    reason = _reason(entry)
    if reason is ReasonFlags.remove_from_crl and _is_delta(listed):
        return None
    return _details(entry.revocation_date_utc, reason.name)


def _is_delta(listed: CertificateRevocationList) -> bool:
    try:
        listed.extensions.get_extension_for_class(DeltaCRLIndicator)
    except ExtensionNotFound:
        return False
    return True


def _reason(entry: RevokedCertificate) -> ReasonFlags:
    """Return the reason of an entry; one that cannot be read revokes as well."""
    try:
        return entry.extensions.get_extension_for_class(CRLReason).value.reason
    except (ExtensionNotFound, ValueError):
        return ReasonFlags.unspecified


def _details(at: datetime, reason: str) -> RevocationDetails:
    return RevocationDetails(
        ca_revoked=False,
        revocation_date=at.astimezone(UTC),
        revocation_reason=crl.CRLReason(reason),
    )
