"""TSTInfo and TimeStampToken, put together from DER like a signature's CMS.

What a certificate fixes is encoded once (`worker.pades.cms.signer_parts`); a token
costs one signature and some concatenation.

Source: RFC 3161, 2.4.2; RFC 5816; RFC 5652.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from asn1crypto import algos, core

from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.timestamps import TIMESTAMP_POLICY, TimestampQuestion
from worker.pades.algorithms import SignatureMethod
from worker.pades.cms import SignerParts, content_info, signer_info, signer_parts
from worker.pades.der import encode

TST_INFO: Final = "tst_info"
"""asn1crypto's name of id-ct-TSTInfo."""
_INTEGER, _OCTETS, _NULL = 0x02, 0x04, b"\x05\x00"
_GENERALIZED_TIME, _SEQUENCE, _SET, _CONTEXT_0 = 0x18, 0x30, 0x31, 0xA0
_VERSION_1, _VERSION_3 = bytes.fromhex("020101"), bytes.fromhex("020103")
_POLICY: Final = core.ObjectIdentifier(TIMESTAMP_POLICY).dump()
_TST_INFO: Final = core.ObjectIdentifier("1.2.840.113549.1.9.16.1.4").dump()


def token_parts(
    certificate: bytes, chain: tuple[bytes, ...], method: SignatureMethod
) -> SignerParts:
    """Encode what stays the same in every token of a certificate.

    ESSCertIDv2 by SHA-256 binds the certificate, as RFC 5816 has it.

    Args:
        certificate: the authority's, DER.
        chain: its issuers, DER, without the root.
        method: how its key signs.
    """
    return signer_parts(certificate, chain, method, TST_INFO)


def tst_info(
    question: TimestampQuestion, serial: int, time: datetime, accuracy_s: int
) -> bytes:
    """What is signed.

    Args:
        question: what is stamped; its nonce stands in it.
        serial: positive.
        time: aware; digits below a millisecond are left out.
        accuracy_s: how far from the true time it may be, in seconds, from 1.

    Source: RFC 3161, 2.4.2 (TSTInfo).
    """
    parameters = _NULL if question.null_parameters else b""
    imprint = encode(
        _SEQUENCE,
        encode(_SEQUENCE, _digest_oid(question.digest), parameters),
        encode(_OCTETS, question.imprint),
    )
    optional = () if question.nonce is None else (_integer(question.nonce),)
    at = time.astimezone(UTC)
    # No zero ends the fraction of a GeneralizedTime. Source: X.690, 11.7.
    fraction = f".{at.microsecond // 1000:03}".rstrip("0").rstrip(".")
    return encode(
        _SEQUENCE,
        _VERSION_1,
        _POLICY,
        imprint,
        _integer(serial),
        encode(_GENERALIZED_TIME, f"{at:%Y%m%d%H%M%S}{fraction}Z".encode("ascii")),
        encode(_SEQUENCE, _integer(accuracy_s)),
        *optional,
    )


def token(
    parts: SignerParts,
    info: bytes,
    attributes: bytes,
    signature: bytes,
    *,
    certificates: bool,
) -> bytes:
    """The TimeStampToken.

    Args:
        parts: from `token_parts`.
        info: from `tst_info`.
        attributes: from `worker.pades.cms.signed_attributes`, over `info`.
        signature: its value.
        certificates: whether it carries them.

    Source: RFC 3161, 2.4.1 (certReq) and 2.4.2; RFC 5652, 5.1 (version 3).
    """
    carried = (parts.certificates,) if certificates else ()
    content = encode(
        _SEQUENCE,
        _VERSION_3,
        encode(_SET, parts.digest_algorithm),
        encode(_SEQUENCE, _TST_INFO, encode(_CONTEXT_0, encode(_OCTETS, info))),
        *carried,
        encode(_SET, signer_info(parts, attributes, signature)),
    )
    return content_info(content)


@lru_cache
def _digest_oid(digest: DigestAlgorithm) -> bytes:
    return bytes(algos.DigestAlgorithmId(digest.value).dump())


def _integer(number: int) -> bytes:
    """An INTEGER in the fewest octets. Source: X.690, 8.3."""
    size = (number + (number < 0)).bit_length() // 8 + 1
    return encode(_INTEGER, number.to_bytes(size, "big", signed=True))
