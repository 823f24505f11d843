"""Puts a signature value or a timestamp, in its CMS, into a prepared increment."""

from appliance.domain.errors import ApplianceError, ErrorCode
from worker.pades.algorithms import SignatureMethod
from worker.pades.cms import signed_data, signer_parts


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


def token_fits(
    contents_length: int,
    *,
    signed_attributes: bytes,
    signature: bytes,
    method: SignatureMethod,
    certificate: bytes,
    chain: tuple[bytes, ...],
    token: bytes,
) -> bool:
    """Whether `assemble` could put a token in, of the same arguments."""
    parts = signer_parts(certificate, chain, method)
    content = signed_data(parts, signed_attributes, signature, token)
    return 2 * len(content) <= contents_length


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
