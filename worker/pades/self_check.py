"""Checks a finished signature before the document is released.

Starts from the final bytes alone: what was meant is not trusted. A key that does
not belong to the certificate makes a PDF that looks fine and is worthless.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from appliance.domain.errors import ApplianceError, ErrorCode
from worker.pades.algorithms import (
    SignatureMethod,
    key_of,
    method_named,
    methods_of_key,
)
from worker.pades.byte_range_digest import FileDigests
from worker.pades.cms import signed_attributes, signed_data, signer_parts
from worker.pades.der import children, read
from worker.pades.timestamp_token import TimestampToken, read_token

_BYTE_RANGE = re.compile(rb"/ByteRange\s*\[\s*0\s+(\d+)\s+(\d+)\s+(\d+)\s*\]")
_END = re.compile(rb"startxref\s+(\d+)\s+%%EOF\s*", re.ASCII)
_TAIL_BYTES = 64
_UNSIGNED_ATTRIBUTES = 0xA1
"""Tag of `unsignedAttrs` in a SignerInfo."""


class SignatureCheckError(ApplianceError):
    """A finished signature that must not be released.

    Args:
        reason: what is wrong, in English, for logs.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.SIGNING_FAILED)
        self.reason = reason

    def __str__(self) -> str:
        """The code and the reason, for logs."""
        return f"{self.code}: {self.reason}"


@dataclass(frozen=True, slots=True)
class CheckedSignature:
    """A signature or document timestamp that is right."""

    contents: bytes = field(repr=False)
    """Its Contents as they stand in the file: DER, and zeros that fill the place."""
    token: TimestampToken | None
    """The timestamp; of a signature, over its value."""


def check(
    original: bytes,
    increment: bytes,
    certificate: bytes,
    digests: FileDigests | None = None,
) -> CheckedSignature:
    """Make sure that `original + increment` carries a right signature.

    The original is a prefix because the two are handed in apart and only ever
    joined. Checked are: the ByteRange covers both wholly but for Contents; the
    message digest is theirs; the attributes name this certificate; the value was
    made by its key; a timestamp is over that value; the last revision ends the file.

    Args:
        original: the PDF as it was.
        increment: from `assemble`.
        certificate: the signer's, DER.
        digests: of `original`, if they were made.

    Raises:
        SignatureCheckError: any of it does not hold.
        ApplianceError: `CERTIFICATE_NOT_USABLE`: no key that signs documents.

    Source: RFC 5652 5.6; ISO 32000-2, 12.8.1; EN 319 142-1 5.3.
    """
    check_end(original, increment)
    start, end = _contents(original, increment)
    covered = partial(
        FileDigests.of(original, digests).covering,
        increment=increment,
        start=start,
        end=end,
    )
    try:
        contents = bytes.fromhex(increment[start + 1 : end - 1].decode("ascii"))
        signature = _read_signature(contents, certificate, covered)
        token = None if signature.token is None else read_token(signature.token)
    except ValueError as exc:
        raise SignatureCheckError(f"the CMS is wrong: {exc}") from exc
    method = signature.method
    hashed = method.hash(signature.attributes)
    if not method.verifies(certificate, hashed, signature.value):
        raise SignatureCheckError("the value was not made by the certificate's key")
    if token is not None and not token.stamps(
        hashlib.new(token.digest.value, signature.value).digest()
    ):
        raise SignatureCheckError("the timestamp is of another signature")
    return CheckedSignature(contents, token)


def check_timestamp(pdf: bytes, increment: bytes) -> CheckedSignature:
    """Make sure that `pdf + increment` ends with a right document timestamp.

    Args:
        pdf: the file that is stamped.
        increment: from `fill_timestamp`.

    Raises:
        SignatureCheckError: its ByteRange does not cover all of it, its token is
            of other bytes, or the last revision does not end the file.

    Source: ISO 32000-2, 12.8.5; EN 319 142-1 5.4.3.
    """
    check_end(pdf, increment)
    start, end = _contents(pdf, increment)
    try:
        contents = bytes.fromhex(increment[start + 1 : end - 1].decode("ascii"))
        token = read_token(contents)
    except ValueError as exc:
        raise SignatureCheckError(f"the timestamp is wrong: {exc}") from exc
    digests = FileDigests(pdf)
    if not token.stamps(digests.covering(token.digest.value, increment, start, end)):
        raise SignatureCheckError("the timestamp is of other bytes")
    return CheckedSignature(contents, token)


def method_of(certificate: bytes, attributes: bytes, value: bytes) -> SignatureMethod:
    """Tell how a value was made, by what verifies it.

    So nothing but the value need be stored between signing and assembling, and a
    setting that changed meanwhile does no harm.

    Args:
        certificate: DER.
        attributes: the signed attributes, as they were hashed.
        value: the signature's.

    Raises:
        SignatureCheckError: the certificate's key did not make it.
        ApplianceError: `CERTIFICATE_NOT_USABLE`: no key that signs documents.
    """
    for method in methods_of_key(key_of(certificate)):
        if method.verifies(certificate, method.hash(attributes), value):
            return method
    raise SignatureCheckError("the value was not made by the certificate's key")


def check_end(original: bytes, increment: bytes) -> None:
    """Make sure that the file ends with the increment's own cross-references.

    Args:
        original: the file that something was appended to.
        increment: what was.

    Raises:
        SignatureCheckError: it does not.
    """
    tail = increment[-_TAIL_BYTES:]
    match = _END.fullmatch(tail, max(tail.rfind(b"startxref"), 0))
    if match is None:
        raise SignatureCheckError("the file does not end with its last revision")
    if not len(original) <= int(match[1]) < len(original) + len(increment):
        raise SignatureCheckError("the last revision is not the signature's")


def _contents(original: bytes, increment: bytes) -> tuple[int, int]:
    """Where Contents stands in the increment, its angle brackets included.

    An original may carry text that looks like a ByteRange into the increment,
    within an object that the signature changes; only one that covers the whole
    file counts.

    Raises:
        SignatureCheckError: no ByteRange covers the whole file, or more than one.
    """
    total = len(original) + len(increment)
    holes = set()
    for match in _BYTE_RANGE.finditer(increment):
        start, end, rest = (int(number) for number in match.groups())
        if len(original) <= start < end and end + rest == total:
            holes.add((start - len(original), end - len(original)))
    if len(holes) != 1:
        raise SignatureCheckError("the ByteRange does not cover the whole file")
    start, end = holes.pop()
    if increment[start : start + 1] != b"<" or increment[end - 1 : end] != b">":
        raise SignatureCheckError("the ByteRange leaves out more than Contents")
    return start, end


@dataclass(frozen=True, slots=True)
class _Carried:
    """What a CMS carries, nothing of it believed yet."""

    whole: bytes
    padding: bytes
    certificates: tuple[bytes, ...]
    algorithm: bytes
    """The signature's AlgorithmIdentifier."""
    value: bytes
    token: bytes | None


@dataclass(frozen=True, slots=True)
class _Signature:
    """A signature as a CMS carries it, not yet verified."""

    method: SignatureMethod
    attributes: bytes
    """The signed attributes, as they are hashed."""
    value: bytes
    token: bytes | None
    """TimeStampToken, DER, as little verified."""


def _read_signature(
    content: bytes, certificate: bytes, document_digest: Callable[[str], bytes]
) -> _Signature:
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
    carried = _taken_apart(content)
    method = method_named(certificate, carried.algorithm)
    if certificate not in carried.certificates:
        msg = "it does not carry the certificate"
        raise ValueError(msg)
    parts = signer_parts(certificate, carried.certificates, method)
    attributes = signed_attributes(parts, document_digest(method.digest.value))
    expected = signed_data(parts, attributes, carried.value, carried.token)
    if carried.whole != expected or carried.padding.strip(b"\0"):
        msg = "it is not that of this document and certificate"
        raise ValueError(msg)
    return _Signature(method, attributes, carried.value, carried.token)


def _taken_apart(content: bytes) -> _Carried:
    """The parts of a CMS with one signer.

    Raises:
        ValueError: it is not DER or not built so; its unsigned attributes are more
            than a token.
    """
    whole, padding = read(content)
    _, wrapped = children(whole.body)
    _, _, _, certificates, signers = children(read(wrapped.body)[0].body)
    (signer,) = children(signers.body)
    fields, token = children(signer.body), None
    if fields and fields[-1].tag == _UNSIGNED_ATTRIBUTES:
        *fields, unsigned = fields
        (attribute,) = children(unsigned.body)
        _, tokens = children(attribute.body)
        (only,) = children(tokens.body)
        token = only.whole
    *_, algorithm, value = fields
    return _Carried(
        whole=whole.whole,
        padding=padding,
        certificates=tuple(one.whole for one in children(certificates.body)),
        algorithm=algorithm.whole,
        value=value.body,
        token=token,
    )
