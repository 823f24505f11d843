"""The internal CA's certificates, as those who have no HSM read them."""

import hashlib
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.settings import Settings
from appliance.settings.certificate_file import read_certificate


@dataclass(frozen=True, slots=True)
class AuthorityFiles:
    """The root and the CA that issues."""

    root: bytes = field(repr=False)
    """DER."""
    ca: bytes = field(repr=False)
    """DER."""
    root_id: str
    """SHA-1 of the root's public key in hex: its name on the record."""
    ca_id: str
    """The same of the CA; OCSP's issuerKeyHash."""
    ca_name_sha1: bytes
    """OCSP's issuerNameHash of the CA. Source: RFC 6960, 4.1.1."""

    @property
    def root_certificate(self) -> x509.Certificate:
        """The root."""
        return x509.load_der_x509_certificate(self.root)

    @property
    def ca_certificate(self) -> x509.Certificate:
        """The CA that issues."""
        return x509.load_der_x509_certificate(self.ca)

    @property
    def issuers(self) -> tuple[str, str]:
        """Names on the record: of the CA that certifies signers, of the root."""
        return self.ca_id, self.root_id


def read_authority(settings: Settings) -> AuthorityFiles:
    """Read both certificates.

    Raises:
        SettingsError: one is missing, cannot be read, or is no certificate.
    """
    root, ca = read_certificate(settings.root_file), read_certificate(settings.ca_file)
    return AuthorityFiles(
        root=root.public_bytes(Encoding.DER),
        ca=ca.public_bytes(Encoding.DER),
        root_id=_key_id(root),
        ca_id=_key_id(ca),
        ca_name_sha1=hashlib.sha1(ca.subject.public_bytes()).digest(),  # noqa: S324 (RFC 5019, 2.1.1)
    )


def _key_id(certificate: x509.Certificate) -> str:
    key = x509.SubjectKeyIdentifier.from_public_key(certificate.public_key())
    return key.digest.hex()
