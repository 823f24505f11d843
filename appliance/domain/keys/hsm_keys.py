"""What the core knows of keys in an HSM: names, algorithms, no handles."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from appliance.domain.ids import CredentialId, PersonId

_OWN: Final = b"rubrica-"
"""Prefix of the CKA_IDs of the installation's own keys. A CKA_ID that a worker makes up
for a user's key is 16 bytes of a hash."""


class TokenRole(StrEnum):
    """The two tokens of an installation (design §4)."""

    FIRMA = "firma"
    """Users' keys."""
    PKI = "pki"
    """CA, OCSP, TSA, audit and seal keys."""


class KeyMode(StrEnum):
    """Where a user's private key is kept between two signatures (design §4)."""

    WRAPPED = "wrapped"
    """In the record, encrypted by the HSM and by the signer's password."""
    RESIDENT = "resident"
    """On the token, by its CKA_ID."""


class KeyAlgorithm(StrEnum):
    """Key kinds that a credential may have."""

    RSA_2048 = "rsa-2048"
    RSA_3072 = "rsa-3072"
    RSA_4096 = "rsa-4096"
    EC_P256 = "ec-p256"
    EC_P384 = "ec-p384"

    @property
    def is_ec(self) -> bool:
        """Whether it is an elliptic-curve kind."""
        return self in {KeyAlgorithm.EC_P256, KeyAlgorithm.EC_P384}


class SignatureScheme(StrEnum):
    """How a digest becomes a signature value."""

    RSA_PKCS1 = "rsa-pkcs1"
    """RSASSA-PKCS1-v1_5. Source: RFC 8017, 8.2."""
    RSA_PSS = "rsa-pss"
    """RSASSA-PSS, MGF1 with the same hash, a salt as long as the digest.
    Source: RFC 8017, 8.1."""
    ECDSA = "ecdsa"
    """Source: FIPS 186-4, 6; the value is RFC 3279's `Ecdsa-Sig-Value`."""


def scheme_for(algorithm: KeyAlgorithm, *, pss: bool = False) -> SignatureScheme:
    """The scheme that keys of a kind sign by.

    Args:
        algorithm: the key's kind.
        pss: whether RSA keys use PSS.
    """
    if algorithm.is_ec:
        return SignatureScheme.ECDSA
    return SignatureScheme.RSA_PSS if pss else SignatureScheme.RSA_PKCS1


class DigestAlgorithm(StrEnum):
    """Hash functions of what is signed. Source: FIPS 180-4."""

    SHA256 = "sha256"
    SHA384 = "sha384"
    SHA512 = "sha512"

    def __init__(self, word: str) -> None:
        self.size_bytes = int(word.removeprefix("sha")) // 8
        """Length of a digest, in bytes."""


class WrapMethod(StrEnum):
    """How a key was wrapped: mechanism and format, stored with each blob.

    A member is never renamed, nor its format changed: blobs in databases depend
    on it. An IV or nonce stands before the ciphertext and belongs to the blob.
    """

    AES_KWP = "aes-kwp"
    """CKM_AES_KEY_WRAP_KWP. Source: RFC 5649."""
    AES_KEY_WRAP_PAD_5649 = "aes-key-wrap-pad-5649"
    """CKM_AES_KEY_WRAP_PAD where the make means RFC 5649 by it."""
    AES_KEY_WRAP_PAD_3394 = "aes-key-wrap-pad-3394"
    """CKM_AES_KEY_WRAP_PAD where the make means RFC 3394 over PKCS#7 padding."""
    AES_GCM = "aes-gcm"
    """CKM_AES_GCM: nonce of 12 bytes, ciphertext, tag of 16 bytes."""
    AES_CBC_PAD = "aes-cbc-pad"
    """CKM_AES_CBC_PAD: IV of 16 random bytes, ciphertext. It notices no
    change by itself; ours is noticed by the AEAD around the blob."""
    AES_KEY_WRAP = "aes-key-wrap"
    """CKM_AES_KEY_WRAP, which pads nothing: for W alone, while keys move to an HSM
    of another make. Source: RFC 3394."""


@dataclass(frozen=True, slots=True)
class KeyReference:
    """Where a key pair is: a token and a CKA_ID, never a label alone."""

    token: TokenRole
    cka_id: bytes

    @property
    def is_own(self) -> bool:
        """True of a key of the installation, made already or to be made.

        Everything on the pki token is the installation's. On the firma token these are
        the keep-alive key, the worker identity, each master key and generation, and
        keys of `rubrica hsm check`.
        """
        return self.token is not TokenRole.FIRMA or self.cka_id.startswith(_OWN)


@dataclass(frozen=True, slots=True)
class ResidentKey:
    """A user's key pair on the firma token: its CKA_ID, and which key that has to be.

    A CKA_ID comes from a row. The public key comes from the owner's certificate, so
    the HSM session uses no other key than the one that was certified.
    """

    cka_id: bytes
    spki: bytes = field(repr=False)
    """The public key, SubjectPublicKeyInfo in DER."""

    @property
    def reference(self) -> KeyReference:
        """Token and CKA_ID."""
        return KeyReference(TokenRole.FIRMA, self.cka_id)


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A key pair that is kept outside the HSM and usable only inside it.

    The private key is wrapped by a key W of its own, and W by a master key (MWK)
    that never leaves the HSM. Source: design §4.
    """

    algorithm: KeyAlgorithm
    spki: bytes
    """The public key, SubjectPublicKeyInfo in DER."""
    master: int
    """Version of the master key that wraps W, from 1 on."""
    blob_w: bytes = field(repr=False)
    """W, wrapped by the master key."""
    method_w: WrapMethod
    """How W was wrapped."""
    blob_k: bytes = field(repr=False)
    """The private key (PKCS#8), wrapped by W."""
    method_k: WrapMethod
    """How the private key was wrapped."""


@dataclass(frozen=True, slots=True)
class MasterWrapped:
    """A credential's W as a master key wraps it."""

    credential: CredentialId
    master: int
    blob_w: bytes = field(repr=False)
    method_w: WrapMethod


@dataclass(frozen=True, slots=True)
class KeyNeeds:
    """What an HSM must be able to do for a credential to sign by it."""

    credential: CredentialId
    person: PersonId
    algorithm: KeyAlgorithm
    method_k: WrapMethod | None
    """How the private key is wrapped; None of a resident one, which stays where it
    is."""

    @property
    def is_resident(self) -> bool:
        """Whether the key is on a token."""
        return self.method_k is None
