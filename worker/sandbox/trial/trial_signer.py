"""The throw-away signer of trial signatures; it proves nothing to anybody.

Its key is made in the template, so that jobs share it and none has to make one.
"""

import datetime as dt
import functools
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

_VALID: Final = dt.timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class TrialSigner:
    """A key, and the certificate that it signed itself."""

    key: ec.EllipticCurvePrivateKey = field(repr=False)
    certificate: bytes = field(repr=False)
    """DER."""

    def sign(self, digest: bytes) -> bytes:
        """An ECDSA value over a SHA-256 digest, as an HSM gives it in the end: DER."""
        return self.key.sign(digest, ec.ECDSA(utils.Prehashed(hashes.SHA256())))


@functools.cache
def trial_signer() -> TrialSigner:
    """The signer of this process and of those that are forked from it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Trial")])
    now = dt.datetime.now(dt.UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=True,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A clock that is set later than this process started costs no document.
        .not_valid_before(now - _VALID)
        .not_valid_after(now + _VALID)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return TrialSigner(key, certificate.public_bytes(Encoding.DER))
