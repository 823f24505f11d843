"""How a signature is made: a scheme and a digest, by the certificate's key.

method = method_for(certificate)
digest = method.hash(signed_attributes)
value = …  # the key signs the digest by `method.scheme`
method.verifies(certificate, digest, value)
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from asn1crypto import algos
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.x509 import load_der_x509_certificate

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.keys.hsm_keys import DigestAlgorithm, SignatureScheme
from worker.pades.der import encode

_SEQUENCE, _INTEGER = 0x30, 0x02
_HASHES: Final = {
    DigestAlgorithm.SHA256: hashes.SHA256(),
    DigestAlgorithm.SHA384: hashes.SHA384(),
    DigestAlgorithm.SHA512: hashes.SHA512(),
}
_CURVES: Final = {
    ec.SECP256R1.name: DigestAlgorithm.SHA256,
    # A shorter digest would be the weaker half. Source: FIPS 186-5, 6.1.1.
    ec.SECP384R1.name: DigestAlgorithm.SHA384,
}

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
"""What a signer's certificate may hold."""


@dataclass(frozen=True, slots=True)
class SignatureMethod:
    """A scheme and its digest, which is the document's and the attributes' too."""

    scheme: SignatureScheme
    digest: DigestAlgorithm

    def hash(self, *parts: bytes) -> bytes:
        """The digest of some bytes, given in parts."""
        running = hashlib.new(self.digest.value)
        for part in parts:
            running.update(part)
        return running.digest()

    def digest_identifier(self) -> bytes:
        """AlgorithmIdentifier of the digest, DER, without parameters.

        Source: RFC 5754, 2 (absent where we write, absent or NULL where we read).
        """
        return encode(_SEQUENCE, algos.DigestAlgorithmId(self.digest.value).dump())

    # asn1crypto is slow at it.
    @lru_cache  # noqa: B019 (of plain values, and few)
    def signature_identifier(self) -> bytes:
        """AlgorithmIdentifier of the signature, DER.

        Source: RFC 5754, 3.2 (RSA: NULL) and 3.3 (ECDSA: absent); RFC 4056, 3 and
        RFC 4055, 3.1 (PSS: all explicit but the one trailer field that there is).
        """
        digest = self.digest.value
        fields: dict[str, object]
        if self.scheme is SignatureScheme.RSA_PSS:
            # asn1crypto writes NULL with a digest, as RFC 4055, 2.1, has it in here.
            named = {"algorithm": digest}
            parameters = {
                "hash_algorithm": named,
                "mask_gen_algorithm": {"algorithm": "mgf1", "parameters": named},
                "salt_length": self.digest.size_bytes,
            }
            fields = {
                "algorithm": "rsassa_pss",
                "parameters": algos.RSASSAPSSParams(parameters),
            }
        else:
            kind = "ecdsa" if self.scheme is SignatureScheme.ECDSA else "rsa"
            fields = {"algorithm": f"{digest}_{kind}"}
        return bytes(algos.SignedDigestAlgorithm(fields).dump())

    # Whoever tells a method by its value checks that value again in the finished file.
    @lru_cache(maxsize=64)  # noqa: B019 (of plain values, and few)
    def verifies(self, certificate: bytes, digest: bytes, value: bytes) -> bool:
        """Tell whether a value signs a digest with a certificate's key.

        Args:
            certificate: DER.
            digest: by `digest`.
            value: RSA's octets, or DER of Ecdsa-Sig-Value.

        Raises:
            ApplianceError: `CERTIFICATE_NOT_USABLE`, see `key_of`.
        """
        key, hashing = key_of(certificate), _HASHES[self.digest]
        hashed = utils.Prehashed(hashing)
        try:
            if isinstance(key, ec.EllipticCurvePublicKey):
                if self.scheme is not SignatureScheme.ECDSA:
                    return False
                key.verify(value, digest, ec.ECDSA(hashed))
            elif self.scheme is SignatureScheme.RSA_PKCS1:
                key.verify(value, digest, padding.PKCS1v15(), hashed)
            elif self.scheme is SignatureScheme.RSA_PSS:
                pss = padding.PSS(padding.MGF1(hashing), hashing.digest_size)
                key.verify(value, digest, pss, hashed)
            else:
                return False
        except InvalidSignature:
            return False
        return True


def _by(*schemes: SignatureScheme) -> tuple[SignatureMethod, ...]:
    """Each scheme with each digest."""
    return tuple(
        SignatureMethod(scheme, digest)
        for scheme in schemes
        for digest in DigestAlgorithm
    )


_RSA_METHODS: Final = _by(SignatureScheme.RSA_PKCS1, SignatureScheme.RSA_PSS)
_EC_METHODS: Final = _by(SignatureScheme.ECDSA)


@lru_cache(maxsize=256)
def key_of(certificate: bytes) -> PublicKey:
    """The public key of a signer's certificate.

    Args:
        certificate: DER.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE`: neither RSA nor on P-256 or P-384.
    """
    key = load_der_x509_certificate(certificate).public_key()
    if isinstance(key, rsa.RSAPublicKey):
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return key
    raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)


def method_for(
    certificate: bytes,
    *,
    prefer_pss: bool = False,
    digest: DigestAlgorithm = DigestAlgorithm.SHA256,
) -> SignatureMethod:
    """How a certificate's key is to sign.

    Args:
        certificate: DER.
        prefer_pss: an RSA key signs by PSS instead of PKCS#1 v1.5.
        digest: of an RSA key; a curve has its own: SHA-256 for P-256, SHA-384
            for P-384.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE`, see `key_of`.
    """
    key = key_of(certificate)
    if isinstance(key, ec.EllipticCurvePublicKey):
        return SignatureMethod(SignatureScheme.ECDSA, _CURVES[key.curve.name])
    scheme = SignatureScheme.RSA_PSS if prefer_pss else SignatureScheme.RSA_PKCS1
    return SignatureMethod(scheme, digest)


def methods_of_key(key: PublicKey) -> tuple[SignatureMethod, ...]:
    """All that a key may sign by."""
    return _RSA_METHODS if isinstance(key, rsa.RSAPublicKey) else _EC_METHODS


def method_named(certificate: bytes, algorithm: bytes) -> SignatureMethod:
    """The method that a signature's AlgorithmIdentifier names.

    Args:
        certificate: DER.
        algorithm: the AlgorithmIdentifier, DER.

    Raises:
        ValueError: none by which the certificate's key signs.
        ApplianceError: `CERTIFICATE_NOT_USABLE`, see `key_of`.
    """
    for method in methods_of_key(key_of(certificate)):
        if method.signature_identifier() == algorithm:
            return method
    msg = "its algorithm is not one of the certificate's key"
    raise ValueError(msg)


def longest_value(certificate: bytes) -> int:
    """Bytes of the longest signature value that a certificate's key makes.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE`, see `key_of`.
    """
    key = key_of(certificate)
    if isinstance(key, rsa.RSAPublicKey):
        return (key.key_size + 7) // 8
    # Two integers, each with a sign octet, in a sequence (RFC 3279, 2.2.3).
    number = encode(_INTEGER, bytes(key.curve.key_size // 8 + 1))
    return len(encode(_SEQUENCE, number, number))
