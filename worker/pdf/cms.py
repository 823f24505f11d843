"""The CMS SignedData of a PAdES B-B signature, put together from DER.

What a certificate fixes is encoded once; per signature only the message digest,
the order of the attributes and the signature value remain. Building it anew
with asn1crypto costs ten times the rest of a signature; so does reading it.
"""

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from asn1crypto import algos, cms, x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509 import load_der_x509_certificate
from pyhanko.sign.general import as_signing_certificate_v2, simple_cms_attribute

from appliance.domain.errors import ApplianceError, ErrorCode
from worker.pdf.der import children, encode, read

DIGEST: Final = "sha256"
"""The one digest: of the document, of the attributes, and in the signature."""

_SEQUENCE, _SET, _OCTETS, _CONTEXT_0 = 0x30, 0x31, 0x04, 0xA0
_DATA = cms.ContentType("data").dump()
_SIGNED_DATA = cms.ContentType("signed_data").dump()
_MESSAGE_DIGEST = cms.CMSAttributeType("message_digest").dump()
_DIGEST_ALGORITHM = algos.DigestAlgorithm({"algorithm": DIGEST}).dump()
_VERSION_1 = bytes.fromhex("020101")


@dataclass(frozen=True, slots=True)
class SignerParts:
    """What a certificate and its chain fix in every CMS made with them."""

    certificates: bytes = field(repr=False)
    """The certificates field, tag and all."""
    signer: bytes = field(repr=False)
    """IssuerAndSerialNumber."""
    attributes: tuple[bytes, ...] = field(repr=False)
    """The signed attributes but for the message digest."""
    signature_algorithm: bytes
    signature_max_bytes: int
    """The longest signature value that the key makes."""


@lru_cache(maxsize=256)
def signer_parts(certificate: bytes, chain: tuple[bytes, ...]) -> SignerParts:
    """Encode what stays the same for a certificate.

    Args:
        certificate: the signer's, DER.
        chain: its issuers, DER.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE` for a key that is neither RSA nor
            elliptic.

    Source: RFC 5652 5.3, RFC 5035 (signing-certificate-v2); EN 319 142-1 6.3.
    """
    parsed = x509.Certificate.load(certificate)
    algorithm, longest = _signature_kind(certificate)
    reference = simple_cms_attribute(
        "signing_certificate_v2", as_signing_certificate_v2(parsed)
    )
    return SignerParts(
        certificates=encode(_CONTEXT_0, *sorted({certificate, *chain})),
        signer=encode(
            _SEQUENCE,
            parsed.issuer.dump(),
            parsed["tbs_certificate"]["serial_number"].dump(),
        ),
        attributes=(
            simple_cms_attribute("content_type", "data").dump(),
            reference.dump(),
        ),
        signature_algorithm=algos.SignedDigestAlgorithm(
            {"algorithm": algorithm}
        ).dump(),
        signature_max_bytes=longest,
    )


def _signature_kind(certificate: bytes) -> tuple[str, int]:
    """The signature algorithm of a certificate's key and its longest value.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE`.
    """
    key = load_der_x509_certificate(certificate).public_key()
    if isinstance(key, rsa.RSAPublicKey):
        return f"{DIGEST}_rsa", key.key_size // 8
    if isinstance(key, ec.EllipticCurvePublicKey):
        # Two integers, each with a sign octet, in a sequence (RFC 3279 2.2.3).
        number = encode(0x02, bytes(key.curve.key_size // 8 + 1))
        return f"{DIGEST}_ecdsa", len(encode(_SEQUENCE, number, number)) + 2
    raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)


def signed_attributes(parts: SignerParts, document_digest: bytes) -> bytes:
    """The attributes as they are hashed for signing: a DER SET OF.

    There is no signing-time among them: PAdES has it in the signature dictionary.

    Args:
        parts: from `signer_parts`.
        document_digest: SHA-256 over the ByteRange.

    Source: RFC 5652 5.4; EN 319 142-1 6.3.
    """
    value = encode(_SET, encode(_OCTETS, document_digest))
    message_digest = encode(_SEQUENCE, _MESSAGE_DIGEST, value)
    return encode(_SET, *sorted((*parts.attributes, message_digest)))


def signed_data(parts: SignerParts, attributes: bytes, signature: bytes) -> bytes:
    """The whole CMS.

    Args:
        parts: from `signer_parts`.
        attributes: from `signed_attributes`.
        signature: its value: PKCS#1 v1.5 for RSA, DER of ECDSA-Sig-Value for EC.

    Source: RFC 5652 5.1, 5.3.
    """
    signer_info = encode(
        _SEQUENCE,
        _VERSION_1,
        parts.signer,
        _DIGEST_ALGORITHM,
        # In the structure the set is tagged [0]; hashed, it is tagged SET.
        bytes([_CONTEXT_0]) + attributes[1:],
        parts.signature_algorithm,
        encode(_OCTETS, signature),
    )
    content = encode(
        _SEQUENCE,
        _VERSION_1,
        encode(_SET, _DIGEST_ALGORITHM),
        encode(_SEQUENCE, _DATA),
        parts.certificates,
        encode(_SET, signer_info),
    )
    return encode(_SEQUENCE, _SIGNED_DATA, encode(_CONTEXT_0, content))


def longest_signed_data(parts: SignerParts) -> int:
    """Bytes of the longest CMS that `signed_data` can make with these parts."""
    attributes = signed_attributes(parts, bytes(hashlib.sha256().digest_size))
    return len(signed_data(parts, attributes, bytes(parts.signature_max_bytes)))


def read_signature(content: bytes, certificate: bytes, document_digest: bytes) -> bytes:
    """Take the signature value out of a CMS that says just what it must.

    The certificates and the value are read; with them the CMS is made again, and
    has to be the same to the byte.

    Args:
        content: the CMS, and the zeros that fill its place.
        certificate: the one that must have signed, DER.
        document_digest: what the message digest must be.

    Returns:
        The signature value, not yet verified.

    Raises:
        ValueError: it is not DER, or not the CMS of this document and certificate.

    Source: RFC 5652 5; EN 319 142-1 6.3.
    """
    whole, padding = read(content)
    _, wrapped = children(whole.body)
    _, _, _, certificates, signers = children(read(wrapped.body)[0].body)
    (signer,) = children(signers.body)
    value = children(signer.body)[-1].body
    carried = tuple(one.whole for one in children(certificates.body))
    if certificate not in carried:
        msg = "it does not carry the certificate"
        raise ValueError(msg)
    parts = signer_parts(certificate, carried)
    expected = signed_data(parts, signed_attributes(parts, document_digest), value)
    if whole.whole != expected or padding.strip(b"\0"):
        msg = "it is not that of this document and certificate"
        raise ValueError(msg)
    return value
