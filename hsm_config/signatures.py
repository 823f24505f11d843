"""Signatures over a digest: made in the HSM, verified outside it.

The HSM is given digests, never documents; padding of PKCS#1 v1.5 is its matter,
the DigestInfo ours, and ECDSA values leave here in DER.
"""

import secrets
from typing import Final

import pkcs11
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from pkcs11 import MGF, Attribute, KeyType, Mechanism
from pkcs11.types import SignMixin

from appliance.domain.errors import ErrorCode, HsmRefusedError
from appliance.domain.hsm import DigestAlgorithm, SignatureScheme, scheme_for
from hsm_config.pairs import EC_PARAMS, PublicKey, algorithm_of

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
_CURVE_BYTES: Final = {
    params: int(kind.rpartition("p")[2]) // 8 for kind, params in EC_PARAMS.items()
}
"""Bytes of a curve's order, by its CKA_EC_PARAMS."""

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
    if len(digest) != digest_algorithm.size_bytes:
        msg = f"that is no {digest_algorithm} digest: {len(digest)} bytes"
        raise HsmRefusedError(msg, ErrorCode.INTERNAL)
    if not isinstance(key, SignMixin):
        msg = f"key {key.label} may not sign"
        raise HsmRefusedError(msg, ErrorCode.SIGNING_FAILED)
    if (key.key_type is KeyType.EC) is not (scheme is SignatureScheme.ECDSA):
        # SoftHSM does not look: it reads the key as another kind, and crashes.
        msg = f"a key of type {key.key_type.name} does not sign by {scheme}"
        raise HsmRefusedError(msg, ErrorCode.SIGNING_FAILED)
    mechanism = MECHANISMS[scheme]
    if scheme is SignatureScheme.RSA_PKCS1:
        data = _DIGEST_INFO[digest_algorithm] + digest
        return bytes(key.sign(data, mechanism=mechanism))
    if scheme is SignatureScheme.RSA_PSS:
        params = (*_PSS_HASHES[digest_algorithm], digest_algorithm.size_bytes)
        return bytes(key.sign(digest, mechanism=mechanism, mechanism_param=params))
    raw = bytes(key.sign(_for_curve(key, digest), mechanism=mechanism))
    half = len(raw) // 2
    return utils.encode_dss_signature(
        int.from_bytes(raw[:half]), int.from_bytes(raw[half:])
    )


def _for_curve(key: pkcs11.PrivateKey, digest: bytes) -> bytes:
    """The leftmost bytes of a digest, as many as the curve's order has.

    Some tokens cut by themselves, others refuse. Source: FIPS 186-4, 6.4.
    """
    if len(digest) == min(_CURVE_BYTES.values()):
        return digest
    return digest[: _CURVE_BYTES.get(key[Attribute.EC_PARAMS], len(digest))]


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
