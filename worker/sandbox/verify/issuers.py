"""Certificates from which chains are built, as far as they are issuers.

Anybody can append certificates to a file: to its DSS, and to the unsigned part of a
signature. pyHanko tries every certificate of the right name as an issuer, in every
order, and fails on a key of another kind than the signature needs. Here only those
count that signed the certificate below them.

Source: RFC 5280, 6.1 (a chain is one of signatures, names alone make none).
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from asn1crypto import algos, x509
from asn1crypto.keys import PublicKeyInfo
from cryptography.exceptions import InvalidSignature
from cryptography.x509 import load_der_x509_certificate
from pyhanko_certvalidator.authority import TrustAnchor
from pyhanko_certvalidator.registry import CertificateRegistry, TrustManager
from pyhanko_certvalidator.sig_validate import (
    DEFAULT_VALIDATION_CONTEXT,
    DefaultSignatureValidator,
    SignatureValidationContext,
)

CERTIFICATES_MAX: Final = 4_000
"""Most certificates of a DSS; eight for each of 500 signatures."""
_CHECKED_MAX: Final = 10_000
_TRIED_MAX: Final = 10_000
"""Most signatures that are checked, and certificates that are tried, in one file: about
a second each."""


class TooManyIssuersError(Exception):
    """The file has more certificates of the same names than are tried."""


class KeyKindValidator(DefaultSignatureValidator):
    """Validator to which a key of another kind is a wrong key.

    pyHanko's own asserts that the kind is the right one.
    """

    def validate_signature(
        self,
        signature: bytes,
        signed_data: bytes,
        public_key_info: PublicKeyInfo,
        signature_algorithm: algos.SignedDigestAlgorithm,
        context: SignatureValidationContext = DEFAULT_VALIDATION_CONTEXT,
    ) -> None:
        """Validate a signature.

        Raises:
            InvalidSignature: it is wrong, or the key is of another kind.
        """
        try:
            super().validate_signature(
                signature, signed_data, public_key_info, signature_algorithm, context
            )
        except AssertionError as exc:
            raise InvalidSignature from exc


class Issuers(CertificateRegistry):
    """Certificates of one file, for all of its chains."""

    def __init__(self) -> None:
        super().__init__()
        self._signed: dict[tuple[bytes, bytes], bool] = {}
        self._known: set[bytes] = set()
        self._barred: Collection[bytes] = ()
        self._tried = 0

    def register(self, cert: x509.Certificate) -> bool:
        """Register a certificate, and return whether it is a new one.

        One that cannot be read is left out: pyHanko passes over the CRL of an issuer
        if any certificate of the issuer's name is damaged.

        To pyHanko two certificates of equal issuer and serial number are one, so that
        whoever comes first with them keeps a real authority out.
        """
        if cert.sha256 in self._known:
            return False
        self._known.add(cert.sha256)
        if not is_readable(cert):
            return False
        first = self.certs.pop(cert.issuer_serial, None)
        try:
            return bool(super().register(cert))
        finally:
            if first is not None:
                self.certs[cert.issuer_serial] = first

    def find_potential_issuers(
        self, cert: x509.Certificate, trust_manager: TrustManager
    ) -> Iterator[TrustAnchor | x509.Certificate]:
        """Yield the trusted roots and the certificates that may have issued one.

        Raises:
            TooManyIssuersError: too many were tried in this file.
        """
        for issuer in super().find_potential_issuers(cert, trust_manager):
            if isinstance(issuer, x509.Certificate):
                self._tried += 1
                if self._tried > _TRIED_MAX:
                    raise TooManyIssuersError
                if issuer.sha256 in self._barred:
                    continue
                if not self.has_signed(issuer, cert):
                    continue
            yield issuer

    @contextmanager
    def without(self, barred: Collection[bytes]) -> Iterator[None]:
        """Leave issuers out of chains.

        Args:
            barred: their SHA-256.
        """
        self._barred = barred
        try:
            yield
        finally:
            self._barred = ()

    def has_signed(self, issuer: x509.Certificate, cert: x509.Certificate) -> bool:
        """Return whether one certificate's key signed another one, of another key.

        Raises:
            TooManyIssuersError: too many were checked in this file.
        """
        pair = (issuer.sha256, cert.sha256)
        if pair not in self._signed:
            if len(self._signed) >= _CHECKED_MAX:
                raise TooManyIssuersError
            self._signed[pair] = _is_signed_by(cert, issuer)
        return self._signed[pair]


def is_readable(cert: x509.Certificate) -> bool:
    """Return whether all that chains and CRLs are chosen by can be read.

    asn1crypto parses what is asked for alone, and an exception on one chain makes
    pyHanko give all others up.
    """
    try:
        load_der_x509_certificate(cert.dump())
        CertificateRegistry().register(cert)
        signed = cert["tbs_certificate"]
        parts = [
            cert.issuer,
            cert.subject,
            signed["validity"],
            signed["signature"],
            cert["signature_algorithm"],
            cert["signature_value"],
            cert.public_key["algorithm"],
            cert.key_usage_value,
            cert.extended_key_usage_value,
            cert.basic_constraints_value,
            cert.authority_key_identifier_value,
            cert.crl_distribution_points_value,
        ]
        for part in parts:
            if part is not None:
                _ = part.native
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return False
    return True


def _is_signed_by(cert: x509.Certificate, issuer: x509.Certificate) -> bool:
    if cert.public_key.sha256 == issuer.public_key.sha256:
        return False  # makes a chain longer, and leads nowhere else
    try:
        KeyKindValidator().validate_signature(
            cert["signature_value"].native,
            cert["tbs_certificate"].dump(),
            issuer.public_key,
            cert["signature_algorithm"],
        )
    except (InvalidSignature, ValueError):
        return False
    except Exception:  # noqa: BLE001 (of an algorithm that is not supported, pyHanko says so)
        return True
    return True
