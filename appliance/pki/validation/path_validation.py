"""Whether a chain that an outside CA issued fits a credential.

    checked = check_chain(pem, expected, anchors, now)

Each way of not fitting has a code of its own, so that whoever sent the chain
knows what to ask their CA for. Nothing here reads the record.

Source: RFC 5280, 6.1; design §6.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from appliance.domain.errors import ChainRefusedError, ErrorCode
from appliance.domain.people.identity import cuil_of
from appliance.pki.validation.certificate_rules import (
    check_algorithm,
    check_dates,
    check_extensions,
    check_is_ca,
    der_of,
    extension,
    is_signed_by,
    names,
    read_one,
    read_pem,
    reading,
    spki_of,
)

_DOCUMENT_PURPOSES: Final = frozenset(
    {
        # RFC 9336, 3.1: id-kp-documentSigning.
        "1.3.6.1.5.5.7.3.36",
        ExtendedKeyUsageOID.EMAIL_PROTECTION.dotted_string,
        ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE.dotted_string,
        # What CAs wrote before RFC 9336: Microsoft's and Adobe's own.
        "1.3.6.1.4.1.311.10.3.12",
        "1.2.840.113583.1.1.5",
    }
)


@dataclass(frozen=True, slots=True)
class Expected:
    """What the credential demands of its certificate."""

    spki: bytes = field(repr=False)
    """SubjectPublicKeyInfo of the key, DER."""
    cuil: str
    """Eleven digits of the holder."""


@dataclass(frozen=True, slots=True)
class CheckedChain:
    """A chain that fits."""

    certificate: bytes = field(repr=False)
    """The signer's, DER."""
    issuers: tuple[bytes, ...] = field(repr=False)
    """DER, issuer first, without the root: whoever verifies must have that."""
    root: bytes = field(repr=False)
    """Trusted root at which it ends, DER."""
    not_before: datetime
    """Of the signer's certificate, in UTC."""
    not_after: datetime
    """First moment in which the signer's certificate is no longer good, in UTC."""
    serial: int
    sha256: str
    """Of the signer's certificate, hex."""


def check_chain(
    pem: bytes, expected: Expected, anchors: Sequence[bytes], now: datetime
) -> CheckedChain:
    """Check a chain against a credential and the roots that are trusted.

    Args:
        pem: the signer's certificate first, then each one's issuer; the root
            may be left out.
        expected: of the credential.
        anchors: roots that are trusted, DER.
        now: aware.

    Returns:
        The chain, but for its root.

    Raises:
        ChainRefusedError: one of the `CHAIN_…` and `CERTIFICATE_…` codes, with
            the place in the file (`certificado`, from 0) of what is wrong.

    Source: RFC 5280, 6.1; facts "Argentina".
    """
    path = checked_path(read_pem(pem), expected, anchors, now)
    signer = path[0]
    return CheckedChain(
        certificate=der_of(signer),
        issuers=tuple(map(der_of, path[1:-1])),
        root=der_of(path[-1]),
        not_before=signer.not_valid_before_utc,
        not_after=signer.not_valid_after_utc,
        serial=signer.serial_number,
        sha256=hashlib.sha256(der_of(signer)).hexdigest(),
    )


def checked_path(
    chain: list[x509.Certificate],
    expected: Expected,
    anchors: Sequence[bytes],
    now: datetime | None = None,
) -> list[x509.Certificate]:
    """The chain with its root at the end, each certificate checked.

    Args:
        chain: the signer's certificate first, then each one's issuer.
        expected: of the credential.
        anchors: certificates that are trusted, DER.
        now: at which all of them have to be in date; None: dates are the caller's.

    Raises:
        ChainRefusedError: as `check_chain`.
    """
    with reading():
        _check_key(chain, expected.spki)
        _check_cuil(chain[0], expected.cuil)
        path = _complete(chain, [x509.load_der_x509_certificate(a) for a in anchors])
        for place, certificate in enumerate(path):
            if now is not None:
                check_dates(certificate, place, now)
            check_algorithm(certificate, place, anchored=place == len(path) - 1)
            check_extensions(certificate, place)
        _check_signer(path[0])
        for place, issuer in enumerate(path[1:], start=1):
            check_is_ca(issuer, place)
    return path


def check_root(pem: bytes, now: datetime) -> x509.Certificate:
    """Check one certificate that shall be trusted as a root.

    Args:
        pem: exactly one certificate; DER is taken too.
        now: aware.

    Raises:
        ChainRefusedError: `CHAIN_MALFORMED`, `ANCHOR_NOT_A_ROOT`,
            `CHAIN_ISSUER_NOT_CA`, `CERTIFICATE_NOT_YET_VALID`,
            `CERTIFICATE_EXPIRED`, `CERTIFICATE_WEAK_ALGORITHM`,
            `CERTIFICATE_EXTENSION_UNKNOWN`.
    """
    root = read_one(pem)
    with reading(most=1):
        if root.subject != root.issuer or not is_signed_by(root, root):
            raise ChainRefusedError(ErrorCode.ANCHOR_NOT_A_ROOT, 0, **names(root))
        check_dates(root, 0, now)
        # Nobody relies on a root's own signature: a SHA-1 of 2007 is not its fault.
        check_algorithm(root, 0, anchored=True)
        check_extensions(root, 0)
        check_is_ca(root, 0)
    return root


def _check_key(chain: Sequence[x509.Certificate], spki: bytes) -> None:
    """The first certificate must be of the credential's key.

    Raises:
        ChainRefusedError: `CERTIFICATE_KEY_DIFFERS`, or `CHAIN_ORDER` where a
            later one is of that key.
    """
    keys = [spki_of(certificate, place) for place, certificate in enumerate(chain)]
    if keys[0] == spki:
        return
    code = ErrorCode.CERTIFICATE_KEY_DIFFERS
    raise ChainRefusedError(
        ErrorCode.CHAIN_ORDER if spki in keys else code, 0, **names(chain[0])
    )


def _check_cuil(signer: x509.Certificate, cuil: str) -> None:
    """The subject must carry the holder's CUIL.

    Raises:
        ChainRefusedError: `CERTIFICATE_CUIL_MISSING`, `CERTIFICATE_CUIL_DIFFERS`.
    """
    serials = signer.subject.get_attributes_for_oid(NameOID.SERIAL_NUMBER)
    named = {cuil_of(str(serial.value)) for serial in serials} - {None}
    if not named:
        raise ChainRefusedError(ErrorCode.CERTIFICATE_CUIL_MISSING, 0, **names(signer))
    if named != {cuil}:
        raise ChainRefusedError(ErrorCode.CERTIFICATE_CUIL_DIFFERS, 0, **names(signer))


def _complete(
    chain: list[x509.Certificate], anchors: list[x509.Certificate]
) -> list[x509.Certificate]:
    """Follow the chain to a trusted root; the path with that root at its end.

    Raises:
        ChainRefusedError: `CHAIN_ORDER`, `CHAIN_SIGNATURE`, `CHAIN_INCOMPLETE`,
            `CHAIN_ROOT_UNTRUSTED`, `CHAIN_PATH_LENGTH`.
    """
    for place, certificate in enumerate(chain[:-1]):
        issuer = chain[place + 1]
        if certificate.issuer != issuer.subject:
            known = {other.subject for other in (*chain, *anchors)}
            out_of_order = certificate.issuer in known
            code = ErrorCode.CHAIN_ORDER if out_of_order else ErrorCode.CHAIN_INCOMPLETE
            raise ChainRefusedError(code, place, **names(certificate))
        if not is_signed_by(certificate, issuer):
            raise ChainRefusedError(
                ErrorCode.CHAIN_SIGNATURE, place, **names(certificate)
            )
    path = chain if chain[-1] in anchors else [*chain, _anchor(chain, anchors)]
    check_path_lengths(path)
    return path


def _anchor(
    chain: list[x509.Certificate], anchors: list[x509.Certificate]
) -> x509.Certificate:
    """The trusted root that issued the last certificate of the file.

    Raises:
        ChainRefusedError: `CHAIN_SIGNATURE`, `CHAIN_INCOMPLETE`,
            `CHAIN_ROOT_UNTRUSTED`.
    """
    last, place = chain[-1], len(chain) - 1
    if last.subject == last.issuer:
        raise ChainRefusedError(ErrorCode.CHAIN_ROOT_UNTRUSTED, place, **names(last))
    named = [anchor for anchor in anchors if anchor.subject == last.issuer]
    for anchor in named:
        if is_signed_by(last, anchor):
            return anchor
    code = ErrorCode.CHAIN_SIGNATURE if named else ErrorCode.CHAIN_INCOMPLETE
    raise ChainRefusedError(code, place, **names(last))


def check_path_lengths(path: Sequence[x509.Certificate]) -> None:
    """No CA may have more CAs below it than it allows.

    Raises:
        ChainRefusedError: `CHAIN_PATH_LENGTH`.

    Source: RFC 5280, 4.2.1.9 (self-issued certificates do not count).
    """
    below = 0
    for place, issuer in enumerate(path[1:], start=1):
        constraints = extension(issuer, x509.BasicConstraints)
        longest = constraints.path_length if constraints else None
        if longest is not None and below > longest:
            raise ChainRefusedError(ErrorCode.CHAIN_PATH_LENGTH, place, **names(issuer))
        below += issuer.subject != issuer.issuer


def _check_signer(signer: x509.Certificate) -> None:
    """The first certificate must be a person's, for signing documents.

    Raises:
        ChainRefusedError: `CERTIFICATE_IS_CA`, `CERTIFICATE_KEY_USAGE`,
            `CERTIFICATE_EXTENDED_KEY_USAGE`.

    Source: RFC 5280, 4.2.1.3, 4.2.1.9, 4.2.1.12; RFC 9336, 3.1.
    """
    constraints = extension(signer, x509.BasicConstraints)
    usage = extension(signer, x509.KeyUsage)
    if (constraints and constraints.ca) or (usage and usage.key_cert_sign):
        raise ChainRefusedError(ErrorCode.CERTIFICATE_IS_CA, 0, **names(signer))
    if usage is None or not (usage.digital_signature or usage.content_commitment):
        raise ChainRefusedError(ErrorCode.CERTIFICATE_KEY_USAGE, 0, **names(signer))
    purposes = extension(signer, x509.ExtendedKeyUsage)
    if purposes is not None and not _DOCUMENT_PURPOSES.intersection(
        purpose.dotted_string for purpose in purposes
    ):
        raise ChainRefusedError(
            ErrorCode.CERTIFICATE_EXTENDED_KEY_USAGE, 0, **names(signer)
        )
