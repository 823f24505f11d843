"""What every certificate of a chain is held to, and how a refusal is told.

Source: RFC 5280, 4.1 and 4.2.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtensionOID, NameOID

from appliance.domain.errors import ChainRefusedError, ErrorCode
from appliance.domain.pki.certificates import serial_text

CERTIFICATES_AT_MOST: Final = 10
"""Certificates of one chain."""
BYTES_AT_MOST: Final = 262_144
"""Bytes of a file with certificates."""
RSA_BITS: Final = 2048
"""Least modulus that is accepted."""

_HASHES: Final = (hashes.SHA256, hashes.SHA384, hashes.SHA512)
_CURVES: Final = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_UNDERSTOOD: Final = frozenset(
    {
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.KEY_USAGE,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.CERTIFICATE_POLICIES,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
        ExtensionOID.SUBJECT_KEY_IDENTIFIER,
        ExtensionOID.AUTHORITY_KEY_IDENTIFIER,
    }
)
"""Extensions that may be critical: each is checked, or binds nothing here."""

_STUMBLES: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
)
"""What pyca raises on octets that are no certificate, in part only when asked."""
_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


@contextmanager
def reading(most: int = CERTIFICATES_AT_MOST) -> Iterator[None]:
    """Refuse what turns out to be no certificate, however late that shows.

    Args:
        most: certificates that were asked for.

    Raises:
        ChainRefusedError: `CHAIN_MALFORMED`; one of ours passes as it is.
    """
    try:
        yield
    except _STUMBLES as exc:
        raise ChainRefusedError(ErrorCode.CHAIN_MALFORMED, most=most) from exc


def read_pem(pem: bytes) -> list[x509.Certificate]:
    """Read the certificates of a PEM file.

    Raises:
        ChainRefusedError: `CHAIN_MALFORMED`.
    """
    with reading():
        chain = x509.load_pem_x509_certificates(pem[:BYTES_AT_MOST])
    if len(chain) > CERTIFICATES_AT_MOST:
        raise ChainRefusedError(ErrorCode.CHAIN_MALFORMED, most=CERTIFICATES_AT_MOST)
    return chain


def read_one(content: bytes) -> x509.Certificate:
    """Read the only certificate of a file, PEM or DER.

    Raises:
        ChainRefusedError: `CHAIN_MALFORMED`.
    """
    if b"-----BEGIN" not in content[:BYTES_AT_MOST]:
        with reading(most=1):
            content = x509.load_der_x509_certificate(content).public_bytes(Encoding.PEM)
    found = read_pem(content)
    if len(found) != 1:
        raise ChainRefusedError(ErrorCode.CHAIN_MALFORMED, most=1)
    return found[0]


def name_of(whole: x509.Name) -> str:
    """A name for people: its CN, or all of it where it has none.

    Args:
        whole: a subject or issuer.
    """
    found = whole.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else whole.rfc4514_string()


def serial_of(der: bytes) -> str:
    """Read a certificate's serial number, hexadecimal; empty for other bytes.

    Args:
        der: the certificate.
    """
    try:
        with reading(most=1):
            return serial_text(x509.load_der_x509_certificate(der).serial_number)
    except ChainRefusedError:
        return ""


def crl_addresses(der: bytes) -> tuple[str, ...]:
    """List the web addresses of the CRLs that a certificate names.

    Args:
        der: the certificate; one that cannot be read names none.

    Source: RFC 5280, 4.2.1.13.
    """
    try:
        with reading(most=1):
            found = x509.load_der_x509_certificate(der).extensions
            points = found.get_extension_for_class(x509.CRLDistributionPoints).value
    except (ChainRefusedError, x509.ExtensionNotFound):
        return ()
    names = (name for point in points for name in point.full_name or ())
    return tuple(
        name.value
        for name in names
        if isinstance(name, x509.UniformResourceIdentifier)
        and name.value.startswith(("http://", "https://"))
    )


def pem_of(ders: Iterable[bytes]) -> bytes:
    """Write certificates as one PEM file.

    Args:
        ders: each in DER, in the order in which they are written.

    Raises:
        ChainRefusedError: `CHAIN_MALFORMED` for what is no certificate.
    """
    with reading():
        return b"".join(
            x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM)
            for der in ders
        )


def is_signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether a certificate names an issuer and bears its signature.

    Args:
        certificate: to be looked at.
        issuer: who may have signed it.
    """
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return True


def check_dates(certificate: x509.Certificate, place: int, now: datetime) -> None:
    """A certificate must be good now.

    Raises:
        ChainRefusedError: `CERTIFICATE_NOT_YET_VALID`, `CERTIFICATE_EXPIRED`.
    """
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < start:
        code = ErrorCode.CERTIFICATE_NOT_YET_VALID
        raise ChainRefusedError(
            code, place, **names(certificate), date=start.date().isoformat()
        )
    if now >= end:
        code = ErrorCode.CERTIFICATE_EXPIRED
        raise ChainRefusedError(
            code, place, **names(certificate), date=end.date().isoformat()
        )


def check_algorithm(
    certificate: x509.Certificate, place: int, *, anchored: bool
) -> None:
    """Key and signature must be strong enough.

    Args:
        certificate: to be looked at.
        place: of it in the chain.
        anchored: trusted for itself, whatever signed it.

    Raises:
        ChainRefusedError: `CERTIFICATE_WEAK_ALGORITHM`.
    """
    code = ErrorCode.CERTIFICATE_WEAK_ALGORITHM
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        weak = f"RSA {key.key_size}" if key.key_size < RSA_BITS else ""
    elif isinstance(key, ec.EllipticCurvePublicKey):
        weak = "" if isinstance(key.curve, _CURVES) else f"EC {key.curve.name}"
    else:
        weak = type(key).__name__
    if not weak and not anchored:
        try:
            digest = certificate.signature_hash_algorithm
        except UnsupportedAlgorithm:
            digest = None
        if not isinstance(digest, _HASHES):
            oid = certificate.signature_algorithm_oid
            weak = digest.name if digest else oid.dotted_string
    if weak:
        raise ChainRefusedError(code, place, **names(certificate), algorithm=weak)


def check_extensions(certificate: x509.Certificate, place: int) -> None:
    """What must be understood is understood.

    Raises:
        ChainRefusedError: `CERTIFICATE_EXTENSION_UNKNOWN`.

    Source: RFC 5280, 4.2.
    """
    for found in certificate.extensions:
        if found.critical and found.oid not in _UNDERSTOOD:
            code = ErrorCode.CERTIFICATE_EXTENSION_UNKNOWN
            raise ChainRefusedError(
                code, place, **names(certificate), oid=found.oid.dotted_string
            )


def check_is_ca(issuer: x509.Certificate, place: int) -> None:
    """A certificate must be that of a CA.

    Args:
        issuer: to be looked at.
        place: of it in the chain.

    Raises:
        ChainRefusedError: `CHAIN_ISSUER_NOT_CA`.
    """
    constraints = extension(issuer, x509.BasicConstraints)
    usage = extension(issuer, x509.KeyUsage)
    if (
        constraints is None
        or not constraints.ca
        or (usage is not None and not usage.key_cert_sign)
    ):
        raise ChainRefusedError(ErrorCode.CHAIN_ISSUER_NOT_CA, place, **names(issuer))


def extension(
    certificate: x509.Certificate | x509.RevokedCertificate, kind: type[_Extension]
) -> _Extension | None:
    """An extension of a certificate or of an entry of a CRL, or None.

    Args:
        certificate: that may have it.
        kind: of the extension.
    """
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def spki_of(certificate: x509.Certificate, place: int) -> bytes:
    """The key of a certificate, DER.

    Raises:
        ChainRefusedError: `CERTIFICATE_WEAK_ALGORITHM` for a key of an unknown kind.
    """
    try:
        key = certificate.public_key()
    except (UnsupportedAlgorithm, ValueError) as exc:
        oid = certificate.public_key_algorithm_oid.dotted_string
        code = ErrorCode.CERTIFICATE_WEAK_ALGORITHM
        raise ChainRefusedError(
            code, place, **names(certificate), algorithm=oid
        ) from exc
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def der_of(certificate: x509.Certificate) -> bytes:
    """A certificate in DER.

    Args:
        certificate: any.
    """
    return certificate.public_bytes(Encoding.DER)


def names(certificate: x509.Certificate) -> dict[str, str]:
    """Whom a certificate names, for the sentence of a refusal.

    Args:
        certificate: that is at fault.
    """
    return {
        "subject": name_of(certificate.subject),
        "issuer": name_of(certificate.issuer),
    }
