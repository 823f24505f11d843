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


@dataclass(frozen=True, slots=True)
class KeyReference:
    """Where a key pair is: a token and a CKA_ID, never a label alone."""

    token: TokenRole
    cka_id: bytes
