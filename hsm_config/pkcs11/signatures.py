"""Signatures over a digest: made in the HSM, verified outside it.

The HSM is given digests, never documents; padding of PKCS#1 v1.5 is its matter,
the DigestInfo ours, and ECDSA values leave here in DER.
"""

import secrets
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

import pkcs11
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from pkcs11 import MGF, Attribute, KeyType, Mechanism
from pkcs11.types import SignMixin

from appliance.domain.errors import ErrorCode, HsmRefusedError
from appliance.domain.keys.hsm_keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    SignatureScheme,
    scheme_for,
)
from hsm_config.pkcs11.key_pairs import EC_PARAMS, PublicKey, algorithm_of

_DIGEST_INFO: Final = {
    DigestAlgorithm.SHA256: bytes.fromhex("3031300d060960864801650304020105000420"),
    DigestAlgorithm.SHA384: bytes.fromhex("3041300d060960864801650304020205000430"),
    DigestAlgorithm.SHA512: bytes.fromhex("3051300d060960864801650304020305000440"),
}
"""DER of DigestInfo before a digest. Source: RFC 8017, 9.2, note 1."""
_PSS_HASHES: Final = {
    DigestAlgorithm.SHA256: (Mechanism.SHA256, MGF.SHA256),
    DigestAlgorithm.SHA384: (Mechanism.SHA384, MGF.SHA384),
    DigestAlgorithm.SHA512: (Mechanism.SHA512, MGF.SHA512),
}
_HASHES: Final[dict[DigestAlgorithm, hashes.HashAlgorithm]] = {
    DigestAlgorithm.SHA256: hashes.SHA256(),
    DigestAlgorithm.SHA384: hashes.SHA384(),
    DigestAlgorithm.SHA512: hashes.SHA512(),
}
_ORDER_BYTES: Final = {kind: int(kind.rpartition("p")[2]) // 8 for kind in EC_PARAMS}
"""Bytes of a curve's order."""
_CURVE_BYTES: Final = {params: _ORDER_BYTES[kind] for kind, params in EC_PARAMS.items()}
"""The same, by its CKA_EC_PARAMS."""

MECHANISMS: Final = {
    SignatureScheme.RSA_PKCS1: Mechanism.RSA_PKCS,
    SignatureScheme.RSA_PSS: Mechanism.RSA_PKCS_PSS,
    SignatureScheme.ECDSA: Mechanism.ECDSA,
}
"""What the token must be able to do for each scheme."""


def sign(
    key: pkcs11.PrivateKey,
    digest: bytes,
    scheme: SignatureScheme,
    digest_algorithm: DigestAlgorithm = DigestAlgorithm.SHA256,
) -> bytes:
    """Sign a digest in the HSM.

    Args:
        key: of the kind that the scheme is for.
        digest: as long as its algorithm says.
        scheme: how.
        digest_algorithm: what made the digest.

    Returns:
        RSA: the value, as long as the modulus. ECDSA: DER `Ecdsa-Sig-Value`.

    Raises:
        HsmRefusedError: a digest of another length, a key that may not sign, or
            not by this scheme.
        PKCS11Error: the token failed.
    """
    if not isinstance(key, SignMixin):
        msg = f"key {key.label} may not sign"
        raise HsmRefusedError(msg, ErrorCode.SIGNING_FAILED)
    asked = order(
        digest,
        scheme,
        digest_algorithm,
        is_ec=key.key_type is KeyType.EC,
        order_bytes=lambda: _CURVE_BYTES.get(key[Attribute.EC_PARAMS], len(digest)),
    )
    value = key.sign(
        asked.data, mechanism=asked.mechanism, mechanism_param=asked.parameter
    )
    return ecdsa_value(value) if scheme is SignatureScheme.ECDSA else bytes(value)


class Order(NamedTuple):
    """What a token is asked for, to have a digest signed."""

    mechanism: Mechanism
    parameter: bytes | None
    """Of the mechanism, as it lies in memory."""
    data: bytes


def order(
    digest: bytes,
    scheme: SignatureScheme,
    digest_algorithm: DigestAlgorithm,
    *,
    is_ec: bool,
    order_bytes: Callable[[], int],
) -> Order:
    """Put a digest as the mechanism wants it.

    Args:
        digest: as long as its algorithm says.
        scheme: how it shall be signed.
        digest_algorithm: what made it.
        is_ec: whether the key is an elliptic-curve one.
        order_bytes: of the curve's order; asked where it matters.

    Raises:
        HsmRefusedError: a digest of another length, or a scheme of other keys.
    """
    if len(digest) != _HASHES[digest_algorithm].digest_size:
        msg = f"that is no {digest_algorithm} digest: {len(digest)} bytes"
        raise HsmRefusedError(msg, ErrorCode.INTERNAL)
    if is_ec is not (scheme is SignatureScheme.ECDSA):
        # SoftHSM does not look: it reads the key as another kind, and crashes.
        kind = KeyType.EC if is_ec else KeyType.RSA
        msg = f"a key of type {kind.name} does not sign by {scheme}"
        raise HsmRefusedError(msg, ErrorCode.SIGNING_FAILED)
    mechanism = MECHANISMS[scheme]
    if scheme is SignatureScheme.RSA_PKCS1:
        return Order(mechanism, None, _DIGEST_INFO[digest_algorithm] + digest)
    if scheme is SignatureScheme.RSA_PSS:
        # CK_RSA_PKCS_PSS_PARAMS. Source: PKCS#11 v2.40 current mechanisms, 2.1.8.
        params = (*_PSS_HASHES[digest_algorithm], len(digest))
        return Order(mechanism, struct.pack("@3L", *params), digest)
    if len(digest) != min(_ORDER_BYTES.values()):
        # The leftmost bytes, as many as the order has: some tokens cut by
        # themselves, others refuse. Source: FIPS 186-4, 6.4.
        digest = digest[: order_bytes()]
    return Order(mechanism, None, digest)


def order_for(
    algorithm: KeyAlgorithm,
    digest: bytes,
    scheme: SignatureScheme,
    digest_algorithm: DigestAlgorithm,
) -> Order:
    """The same for a key of a known kind.

    Raises:
        HsmRefusedError: as `order`.
    """
    return order(
        digest,
        scheme,
        digest_algorithm,
        is_ec=algorithm in EC_PARAMS,
        order_bytes=lambda: _ORDER_BYTES[algorithm],
    )


def ecdsa_value(raw: bytes) -> bytes:
    """An ECDSA value as CMS has it: DER of Ecdsa-Sig-Value. Source: RFC 3279, 2.2.3.

    Args:
        raw: from the token: r and s, each as long as the curve's order.
    """
    half = len(raw) // 2
    return utils.encode_dss_signature(
        int.from_bytes(raw[:half]), int.from_bytes(raw[half:])
    )


def verify(
    public: PublicKey,
    signature: bytes,
    digest: bytes,
    scheme: SignatureScheme,
    digest_algorithm: DigestAlgorithm = DigestAlgorithm.SHA256,
) -> None:
    """Verify a signature over a digest, outside the HSM.

    Raises:
        InvalidSignature: it does not verify, or is of another kind of key.
    """
    made = _HASHES[digest_algorithm]
    prehashed = utils.Prehashed(made)
    if isinstance(public, ec.EllipticCurvePublicKey):
        if scheme is not SignatureScheme.ECDSA:
            raise InvalidSignature
        public.verify(signature, digest, ec.ECDSA(prehashed))
        return
    _verify_rsa(public, signature, digest, scheme, prehashed, made)


def _verify_rsa(
    public: rsa.RSAPublicKey,
    signature: bytes,
    digest: bytes,
    scheme: SignatureScheme,
    prehashed: utils.Prehashed,
    made: hashes.HashAlgorithm,
) -> None:
    if scheme is SignatureScheme.RSA_PSS:
        pss = padding.PSS(padding.MGF1(made), made.digest_size)
        public.verify(signature, digest, pss, prehashed)
    elif scheme is SignatureScheme.RSA_PKCS1:
        public.verify(signature, digest, padding.PKCS1v15(), prehashed)
    else:
        raise InvalidSignature


def self_test(key: pkcs11.PrivateKey, public: PublicKey) -> None:
    """Sign a random digest and verify it with the public key.

    Raises:
        HsmRefusedError: the two do not fit together.
        PKCS11Error: the token failed.
    """
    digest = secrets.token_bytes(DigestAlgorithm.SHA256.size_bytes)
    scheme = scheme_for(algorithm_of(public))
    try:
        verify(public, sign(key, digest, scheme), digest, scheme)
    except InvalidSignature:
        msg = "a key signs, but its public key does not verify that"
        raise HsmRefusedError(msg) from None
