"""The CMS SignedData of a PAdES signature, put together from DER.

What a certificate fixes is encoded once; per signature only the message digest,
the order of the attributes and the signature value remain. Building it anew
with asn1crypto costs ten times the rest of a signature; so does reading it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from asn1crypto import cms, x509
from pyhanko.sign.general import as_signing_certificate_v2, simple_cms_attribute

from worker.pades.algorithms import (
    SignatureMethod,
    key_of,
    longest_value,
    methods_of_key,
)
from worker.pades.der import Value, children, encode, read

_SEQUENCE, _SET, _OCTETS, _CONTEXT_0, _CONTEXT_1 = 0x30, 0x31, 0x04, 0xA0, 0xA1
_DATA = cms.ContentType("data").dump()
_SIGNED_DATA = cms.ContentType("signed_data").dump()
_MESSAGE_DIGEST = cms.CMSAttributeType("message_digest").dump()
_TIMESTAMP_TOKEN = cms.CMSAttributeType("signature_time_stamp_token").dump()
_VERSION_1 = bytes.fromhex("020101")


@dataclass(frozen=True, slots=True)
class SignerParts:
    """What a certificate, its chain and a method fix in every CMS of theirs."""

    method: SignatureMethod
    certificates: bytes = field(repr=False)
    """The certificates field, tag and all."""
    signer: bytes = field(repr=False)
    """IssuerAndSerialNumber."""
    attributes: tuple[bytes, ...] = field(repr=False)
    """The signed attributes but for the message digest."""
    digest_algorithm: bytes
    signature_algorithm: bytes
    signature_max_bytes: int
    """The longest signature value that the key makes."""


@lru_cache(maxsize=256)
def signer_parts(
    certificate: bytes,
    chain: tuple[bytes, ...],
    method: SignatureMethod,
    content_type: str = "data",
) -> SignerParts:
    """Encode what stays the same for a certificate and a method.

    Args:
        certificate: the signer's, DER.
        chain: its issuers, DER.
        method: how its key signs.
        content_type: asn1crypto's name of what is signed.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE` for a key that is neither RSA nor
            on P-256 or P-384.

    Source: RFC 5652 5.3, RFC 5035 (signing-certificate-v2); EN 319 142-1 6.3.
    """
    parsed = x509.Certificate.load(certificate)
    reference = simple_cms_attribute(
        "signing_certificate_v2", as_signing_certificate_v2(parsed)
    )
    return SignerParts(
        method=method,
        certificates=encode(_CONTEXT_0, *sorted({certificate, *chain})),
        signer=encode(
            _SEQUENCE,
            parsed.issuer.dump(),
            parsed["tbs_certificate"]["serial_number"].dump(),
        ),
        attributes=(
            simple_cms_attribute("content_type", content_type).dump(),
            reference.dump(),
        ),
        digest_algorithm=method.digest_identifier(),
        signature_algorithm=method.signature_identifier(),
        signature_max_bytes=longest_value(certificate),
    )


def signed_attributes(parts: SignerParts, document_digest: bytes) -> bytes:
    """The attributes as they are hashed for signing: a DER SET OF.

    There is no signing-time among them: PAdES has it in the signature dictionary.

    Args:
        parts: from `signer_parts`.
        document_digest: by the method's digest, over the ByteRange.

    Source: RFC 5652 5.4; EN 319 142-1 6.3.
    """
    value = encode(_SET, encode(_OCTETS, document_digest))
    message_digest = encode(_SEQUENCE, _MESSAGE_DIGEST, value)
    return encode(_SET, *sorted((*parts.attributes, message_digest)))


def signed_data(
    parts: SignerParts, attributes: bytes, signature: bytes, token: bytes | None = None
) -> bytes:
    """The whole CMS.

    Args:
        parts: from `signer_parts`.
        attributes: from `signed_attributes`.
        signature: its value: RSA's octets, or DER of Ecdsa-Sig-Value.
        token: TimeStampToken over the value, DER; the one unsigned attribute.

    Source: RFC 5652 5.1, 5.3; RFC 3161, appendix A (signature-time-stamp).
    """
    content = encode(
        _SEQUENCE,
        _VERSION_1,
        encode(_SET, parts.digest_algorithm),
        encode(_SEQUENCE, _DATA),
        parts.certificates,
        encode(_SET, signer_info(parts, attributes, signature, token)),
    )
    return content_info(content)


def signer_info(
    parts: SignerParts,
    attributes: bytes,
    signature: bytes,
    token: bytes | None = None,
) -> bytes:
    """The SignerInfo, of the same arguments as `signed_data`.

    Source: RFC 5652 5.3.
    """
    unsigned = () if token is None else (_timestamp_attribute(token),)
    return encode(
        _SEQUENCE,
        _VERSION_1,
        parts.signer,
        parts.digest_algorithm,
        # In the structure the set is tagged [0]; hashed, it is tagged SET.
        bytes([_CONTEXT_0]) + attributes[1:],
        parts.signature_algorithm,
        encode(_OCTETS, signature),
        *unsigned,
    )


def content_info(signed: bytes) -> bytes:
    """The ContentInfo around a SignedData. Source: RFC 5652 3."""
    return encode(_SEQUENCE, _SIGNED_DATA, encode(_CONTEXT_0, signed))


def _timestamp_attribute(token: bytes) -> bytes:
    """The unsigned attributes: one, with one token. Source: RFC 5652, 5.3, 11."""
    attribute = encode(_SEQUENCE, _TIMESTAMP_TOKEN, encode(_SET, token))
    return encode(_CONTEXT_1, attribute)


@lru_cache(maxsize=256)
def longest_signed_data(parts: SignerParts, token_bytes: int = 0) -> int:
    """Bytes of the longest CMS that `signed_data` can make with these parts.

    Args:
        parts: from `signer_parts`.
        token_bytes: of the longest token that is to fit; 0: none is to come.
    """
    attributes = signed_attributes(parts, bytes(parts.method.digest.size_bytes))
    value = bytes(parts.signature_max_bytes)
    token = bytes(token_bytes) if token_bytes else None
    return len(signed_data(parts, attributes, value, token))


@dataclass(frozen=True, slots=True)
class ReadSignature:
    """A signature as a CMS carries it, not yet verified."""

    method: SignatureMethod
    attributes: bytes = field(repr=False)
    """The signed attributes, as they are hashed."""
    value: bytes = field(repr=False)
    token: bytes | None = field(repr=False)
    """TimeStampToken, DER, as little verified."""


def read_signature(
    content: bytes, certificate: bytes, document_digest: Callable[[str], bytes]
) -> ReadSignature:
    """Take the signature out of a CMS that says just what it must.

    The certificates, the algorithms, the value and the token are read; with them
    the CMS is made again, and has to be the same to the byte.

    Args:
        content: the CMS, and the zeros that fill its place.
        certificate: the one that must have signed, DER.
        document_digest: what the message digest must be, by the digest's name.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE`, see `signer_parts`.
        ValueError: it is not DER, or not the CMS of this document and certificate.

    Source: RFC 5652 5; EN 319 142-1 6.3.
    """
    whole, padding = read(content)
    _, wrapped = children(whole.body)
    _, _, _, certificates, signers = children(read(wrapped.body)[0].body)
    (signer,) = children(signers.body)
    algorithm, value, token = _with_token(children(signer.body))
    method = _method_named(certificate, algorithm.whole)
    carried = tuple(one.whole for one in children(certificates.body))
    if certificate not in carried:
        msg = "it does not carry the certificate"
        raise ValueError(msg)
    parts = signer_parts(certificate, carried, method)
    attributes = signed_attributes(parts, document_digest(method.digest.value))
    expected = signed_data(parts, attributes, value.body, token)
    if whole.whole != expected or padding.strip(b"\0"):
        msg = "it is not that of this document and certificate"
        raise ValueError(msg)
    return ReadSignature(method, attributes, value.body, token)


def _with_token(fields: list[Value]) -> tuple[Value, Value, bytes | None]:
    """Algorithm, value and token of a SignerInfo.

    Raises:
        ValueError: its unsigned attributes are more than a token.
    """
    token = None
    if fields and fields[-1].tag == _CONTEXT_1:
        *fields, unsigned = fields
        (attribute,) = children(unsigned.body)
        _, tokens = children(attribute.body)
        (value,) = children(tokens.body)
        token = value.whole
    *_, algorithm, signature = fields
    return algorithm, signature, token


def _method_named(certificate: bytes, algorithm: bytes) -> SignatureMethod:
    """The method that a signature's AlgorithmIdentifier names.

    Raises:
        ValueError: none by which the certificate's key signs.
    """
    for method in methods_of_key(key_of(certificate)):
        if method.signature_identifier() == algorithm:
            return method
    msg = "its algorithm is not one of the certificate's key"
    raise ValueError(msg)
