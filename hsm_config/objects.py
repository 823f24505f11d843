"""Key objects of a token: find, generate, destroy, sign, test.

Works on a session that is logged in, in the thread that owns it. A search is
always read to its end: the binding closes a half-read one whenever Python
frees it, in whatever thread that happens.
"""

import hashlib
import secrets
from typing import Final, TypeVar

import pkcs11
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa, utils
from pkcs11 import Attribute, KeyType, Mechanism, MechanismFlag
from pkcs11.types import SignMixin

from appliance.domain.errors import ErrorCode, HsmRefusedError, KeyNotFoundError
from appliance.domain.hsm import KeyAlgorithm, KeyReference, TokenRole

CA_KEY: Final = KeyReference(TokenRole.PKI, b"rubrica-ca-1")
"""The internal CA's key pair."""
CA_LABEL: Final = "rubrica-ca"
KEEP_ALIVE_KEY: Final = KeyReference(TokenRole.FIRMA, b"rubrica-keep-alive")
"""A key that certifies nothing and nobody, for test signatures."""
KEEP_ALIVE_LABEL: Final = "rubrica-keep-alive"

RSA_BITS: Final = {
    KeyAlgorithm.RSA_2048: 2048,
    KeyAlgorithm.RSA_3072: 3072,
    KeyAlgorithm.RSA_4096: 4096,
}

_K = TypeVar("_K", pkcs11.PrivateKey, pkcs11.PublicKey)

_DIGEST_INFO_SHA256: Final = bytes.fromhex("3031300d060960864801650304020105000420")
"""DER of DigestInfo before a SHA-256 digest. Source: RFC 8017, 9.2, note 1."""

_PRIVATE_TEMPLATE: Final = {
    Attribute.SENSITIVE: True,
    Attribute.EXTRACTABLE: False,
    Attribute.SIGN: True,
    Attribute.DECRYPT: False,
    Attribute.UNWRAP: False,
}


def find(session: pkcs11.Session, cka_id: bytes) -> list[pkcs11.Object]:
    """All objects with that CKA_ID.

    Raises:
        HsmRefusedError: the id is empty, which would match anything.
        PKCS11Error: the search failed.
    """
    if not cka_id:
        msg = "an empty CKA_ID names no key"
        raise HsmRefusedError(msg, ErrorCode.INTERNAL)
    return _search(session, {Attribute.ID: cka_id})


def find_label(session: pkcs11.Session, label: str) -> list[pkcs11.Object]:
    """All objects with that label, a pair's two halves among them."""
    return _search(session, {Attribute.LABEL: label})


def _search(
    session: pkcs11.Session, wanted: dict[Attribute, bytes | str]
) -> list[pkcs11.Object]:
    """Search to the end, on a session that answers.

    The binding closes a search even where opening it failed, and complains of
    that on stderr; asking for a random byte first fails properly.
    """
    session.generate_random(8)
    return list(session.get_objects(wanted))


def private_key(session: pkcs11.Session, cka_id: bytes) -> pkcs11.PrivateKey:
    """The one private key with that CKA_ID.

    Raises:
        KeyNotFoundError: this session shows none.
        HsmRefusedError: it shows more than one.
        PKCS11Error: the search failed.
    """
    return _one(pkcs11.PrivateKey, session, cka_id)


def public_key(session: pkcs11.Session, cka_id: bytes) -> rsa.RSAPublicKey:
    """The one public key with that CKA_ID.

    Raises:
        KeyNotFoundError: this session shows none.
        HsmRefusedError: it shows more than one.
        PKCS11Error: the search failed.
    """
    return _numbers(_one(pkcs11.PublicKey, session, cka_id))


def _numbers(key: pkcs11.PublicKey) -> rsa.RSAPublicKey:
    return rsa.RSAPublicNumbers(
        e=int.from_bytes(key[Attribute.PUBLIC_EXPONENT]),
        n=int.from_bytes(key[Attribute.MODULUS]),
    ).public_key()


def _one(kind: type[_K], session: pkcs11.Session, cka_id: bytes) -> _K:
    found = [key for key in find(session, cka_id) if isinstance(key, kind)]
    if not found:
        raise KeyNotFoundError(f"no {kind.__name__} with CKA_ID {cka_id.hex()}")
    if len(found) > 1:
        msg = f"{len(found)} keys share CKA_ID {cka_id.hex()}; destroy the wrong one"
        raise HsmRefusedError(msg, ErrorCode.SIGNING_FAILED)
    return found[0]


def refuse_taken(session: pkcs11.Session, cka_id: bytes) -> None:
    """Refuse a CKA_ID that anything on the token has.

    Raises:
        HsmRefusedError: it is taken.
        PKCS11Error: the search failed.
    """
    if find(session, cka_id):
        msg = f"CKA_ID {cka_id.hex()} is taken"
        raise HsmRefusedError(msg, ErrorCode.ALREADY_EXISTS)


def generate(
    session: pkcs11.Session, cka_id: bytes, label: str, algorithm: KeyAlgorithm
) -> bytes:
    """Generate a key pair that stays in the token and can only sign.

    Args:
        session: logged in, read-write.
        cka_id: its CKA_ID; the caller has made sure that it is free.
        label: its label, for people.
        algorithm: an RSA kind.

    Returns:
        The public key, SubjectPublicKeyInfo in DER.

    Raises:
        HsmRefusedError: the kind is not RSA.
        PKCS11Error: the token failed.
    """
    bits = RSA_BITS.get(algorithm)
    if bits is None:
        msg = f"keys of kind {algorithm} are not made here; RSA ones are"
        raise HsmRefusedError(msg)
    public, _ = session.generate_keypair(
        KeyType.RSA,
        bits,
        id=cka_id,
        label=label,
        store=True,
        capabilities=MechanismFlag.SIGN | MechanismFlag.VERIFY,
        private_template=_PRIVATE_TEMPLATE,
    )
    return spki(_numbers(public))


def destroy(session: pkcs11.Session, cka_id: bytes) -> int:
    """Destroy all that has that CKA_ID, private keys first.

    Returns:
        How many objects there were.

    Raises:
        PKCS11Error: the token failed; what is left is destroyed the next time.
    """
    found = find(session, cka_id)
    for item in sorted(found, key=lambda one: not isinstance(one, pkcs11.PrivateKey)):
        item.destroy()
    return len(found)


def sign_digest(key: pkcs11.PrivateKey, digest: bytes) -> bytes:
    """RSASSA-PKCS1-v1_5 over a SHA-256 digest.

    Raises:
        HsmRefusedError: not 32 bytes, or a key that may not sign.
        PKCS11Error: the token failed.

    Source: RFC 8017, 8.2; CKM_RSA_PKCS pads, the DigestInfo is ours.
    """
    if len(digest) != hashlib.sha256().digest_size:
        msg = f"a SHA-256 digest has 32 bytes, not {len(digest)}"
        raise HsmRefusedError(msg, ErrorCode.INTERNAL)
    if not isinstance(key, SignMixin):
        msg = f"key {key.label} may not sign"
        raise HsmRefusedError(msg, ErrorCode.SIGNING_FAILED)
    signature = key.sign(_DIGEST_INFO_SHA256 + digest, mechanism=Mechanism.RSA_PKCS)
    return bytes(signature)


def self_test(session: pkcs11.Session, cka_id: bytes) -> None:
    """Sign a random digest and verify it with the public key, outside the HSM.

    Raises:
        KeyNotFoundError: half of the pair, or all of it, is missing.
        HsmRefusedError: there are twins, or the pair does not fit together.
        PKCS11Error: the token failed.
    """
    digest = secrets.token_bytes(32)
    public = public_key(session, cka_id)
    signature = sign_digest(private_key(session, cka_id), digest)
    try:
        public.verify(
            signature, digest, padding.PKCS1v15(), utils.Prehashed(hashes.SHA256())
        )
    except InvalidSignature:
        msg = f"key {cka_id.hex()} signs, but its public key does not verify that"
        raise HsmRefusedError(msg) from None


def spki(public: rsa.RSAPublicKey) -> bytes:
    """SubjectPublicKeyInfo in DER."""
    return public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
