"""Public facts of a signing key, by which the audit names it.

The record says which credential an activation is of; these say which key and which
certificate were used, whatever is written into the record afterwards.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from appliance.domain.pki.certificates import serial_text


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """A key and the certificate that a signature names."""

    spki_sha256: str
    """SHA-256 of the SubjectPublicKeyInfo, hex."""
    serial: str
    """Serial number of the certificate; see `serial_text`."""

    def detail(self) -> dict[str, object]:
        """Return the members of an audit row."""
        return {"spkiSha256": self.spki_sha256, "serial": self.serial}


@lru_cache(maxsize=1024)
def key_facts(spki: bytes, certificate: bytes) -> KeyFacts:
    """Return what the audit says of a key and its certificate.

    Args:
        spki: SubjectPublicKeyInfo, DER.
        certificate: DER.

    Raises:
        ValueError: it is no certificate.
    """
    made = x509.load_der_x509_certificate(certificate)
    return KeyFacts(hashlib.sha256(spki).hexdigest(), serial_text(made.serial_number))


def certified_key_facts(certificate: bytes) -> KeyFacts:
    """Return what the audit says of a certificate and the key that it certifies.

    Args:
        certificate: DER.

    Raises:
        ValueError: it is no certificate.
    """
    public = x509.load_der_x509_certificate(certificate).public_key()
    spki = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return key_facts(spki, certificate)
