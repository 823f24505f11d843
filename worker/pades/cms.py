"""The CMS SignedData of a PAdES signature: put together from DER, and put in its place.

What a certificate fixes is encoded once; per signature only the message digest,
the order of the attributes and the signature value remain. Building it anew
with asn1crypto costs ten times the rest of a signature; so does reading it.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from asn1crypto import cms, x509
from pyhanko.sign.general import as_signing_certificate_v2, simple_cms_attribute

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.signing.activation import SignatureValue
from worker.pades.algorithms import SignatureMethod, longest_value
from worker.pades.der import encode

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

    Source: RFC 5652 5.3; 11 (unsigned attributes: one, with one token).
    """
    unsigned: tuple[bytes, ...] = ()
    if token is not None:
        attribute = encode(_SEQUENCE, _TIMESTAMP_TOKEN, encode(_SET, token))
        unsigned = (encode(_CONTEXT_1, attribute),)
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


def assemble(
    increment: bytes,
    *,
    contents_at: int,
    contents_length: int,
    signed_attributes: bytes,
    signature: bytes,
    method: SignatureMethod,
    certificate: bytes,
    chain: tuple[bytes, ...],
    token: bytes | None = None,
) -> bytes:
    """Complete an increment; the result has the same length.

    Args:
        increment: of a `PreparedSignature`, like the next three.
        contents_at: where the digits of Contents start.
        contents_length: how many there are.
        signed_attributes: DER of SET OF.
        signature: value over the digest of `signed_attributes`: RSA's octets, or
            DER of Ecdsa-Sig-Value.
        method: how it was made (`method_of` tells).
        certificate: the one that `prepare` was given.
        chain: likewise.
        token: TimeStampToken over `signature`, DER; within the plan's `token_bytes`.

    Raises:
        ApplianceError: `SIGNING_FAILED`: the CMS is longer than its place, or the
            place is not that of an empty Contents.
    """
    parts = signer_parts(certificate, chain, method)
    content = signed_data(parts, signed_attributes, signature, token)
    return fill_contents(increment, contents_at, contents_length, content)


def complete(
    made: SignatureValue,
    method: SignatureMethod,
    certificate: bytes,
    chain: tuple[bytes, ...],
    token: bytes | None,
) -> bytes:
    """Complete the increment of a signature value; the result has the same length.

    Args:
        made: the value, and what it is put into.
        method: how it was made.
        certificate: the signer's, DER.
        chain: its issuers, DER.
        token: TimeStampToken over the value, DER. One that finds no room is left out:
            a document timestamp takes its place.

    Raises:
        ApplianceError: `SIGNING_FAILED`, as `assemble`.
    """
    parts = signer_parts(certificate, chain, method)
    content = signed_data(parts, made.signed_attributes, made.value, token)
    if token is not None and 2 * len(content) > made.contents_length:
        content = signed_data(parts, made.signed_attributes, made.value)
    return fill_contents(
        made.increment, made.contents_at, made.contents_length, content
    )


def fill_contents(
    increment: bytes, contents_at: int, contents_length: int, content: bytes
) -> bytes:
    """Write a CMS into an empty Contents; the result has the same length.

    Args:
        increment: with zeros in Contents.
        contents_at: where its digits start.
        contents_length: how many there are.
        content: DER.

    Raises:
        ApplianceError: `SIGNING_FAILED`, as `assemble`.
    """
    digits = content.hex().encode("ascii")
    end = contents_at + contents_length
    place = increment[contents_at - 1 : end + 1]
    empty = b"<%s>" % (b"0" * contents_length)
    if contents_at < 1 or len(digits) > contents_length or place != empty:
        raise ApplianceError(ErrorCode.SIGNING_FAILED)
    filled = digits.ljust(contents_length, b"0")
    return increment[:contents_at] + filled + increment[end:]
