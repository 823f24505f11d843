"""What the core knows of keys in an HSM: names, algorithms, no handles."""

from dataclasses import dataclass
from enum import StrEnum


class TokenRole(StrEnum):
    """The two tokens of an installation (design §4)."""

    FIRMA = "firma"
    """Users' keys."""
    PKI = "pki"
    """CA, OCSP, TSA, audit and seal keys."""


class KeyAlgorithm(StrEnum):
    """Key kinds that a credential may have."""

    RSA_2048 = "rsa-2048"
    RSA_3072 = "rsa-3072"
    RSA_4096 = "rsa-4096"
    EC_P256 = "ec-p256"
    EC_P384 = "ec-p384"


class SignatureScheme(StrEnum):
    """How a digest becomes a signature value."""

    RSA_PKCS1 = "rsa-pkcs1"
    """RSASSA-PKCS1-v1_5. Source: RFC 8017, 8.2."""
    RSA_PSS = "rsa-pss"
    """RSASSA-PSS, MGF1 with the same hash, a salt as long as the digest.
    Source: RFC 8017, 8.1."""
    ECDSA = "ecdsa"
    """Source: FIPS 186-4, 6; the value is RFC 3279's `Ecdsa-Sig-Value`."""


class DigestAlgorithm(StrEnum):
    """Hash functions of what is signed. Source: FIPS 180-4."""

    SHA256 = "sha256"
    SHA384 = "sha384"
    SHA512 = "sha512"

    @property
    def size_bytes(self) -> int:
        """Length of a digest, in bytes."""
        return int(self.removeprefix("sha")) // 8


@dataclass(frozen=True, slots=True)
class KeyReference:
    """Where a key pair is: a token and a CKA_ID, never a label alone."""

    token: TokenRole
    cka_id: bytes
