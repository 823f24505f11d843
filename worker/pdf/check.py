"""Checks a finished signature before the document is released.

Starts from the final bytes alone: what was meant is not trusted. A key that does
not belong to the certificate makes a PDF that looks fine and is worthless.
"""

import hashlib
import re

from appliance.domain.errors import ApplianceError, ErrorCode
from worker.pdf.cms import read_signature
from worker.pdf.method import SignatureMethod, key_of, methods_of_key

_BYTE_RANGE = re.compile(rb"/ByteRange\s*\[\s*0\s+(\d+)\s+(\d+)\s+(\d+)\s*\]")
_END = re.compile(rb"startxref\s+(\d+)\s+%%EOF\s*", re.ASCII)
_TAIL_BYTES = 64


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


def check(original: bytes, increment: bytes, certificate: bytes) -> None:
    """Make sure that `original + increment` carries a right signature.

    The original is a prefix because the two are handed in apart and only ever
    joined. Checked are: the ByteRange covers both wholly but for Contents; the
    message digest is theirs; the attributes name this certificate; the value was
    made by its key; the last revision ends the file.

    Args:
        original: the PDF as it was.
        increment: from `assemble`.
        certificate: the signer's, DER.

    Raises:
        SignatureCheckError: any of it does not hold.
        ApplianceError: `CERTIFICATE_NOT_USABLE`: no key that signs documents.

    Source: RFC 5652 5.6; ISO 32000-2, 12.8.1; EN 319 142-1 5.3.
    """
    _check_end(original, increment)
    start, end = _contents(original, increment)

    def covered(algorithm: str) -> bytes:
        digest = hashlib.new(algorithm, original)
        digest.update(increment[:start])
        digest.update(increment[end:])
        return digest.digest()

    try:
        content = bytes.fromhex(increment[start + 1 : end - 1].decode("ascii"))
        signature = read_signature(content, certificate, covered)
    except ValueError as exc:
        raise SignatureCheckError(f"the CMS is wrong: {exc}") from exc
    method = signature.method
    hashed = method.hash(signature.attributes)
    if not method.verifies(certificate, hashed, signature.value):
        raise SignatureCheckError("the value was not made by the certificate's key")


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


def _check_end(original: bytes, increment: bytes) -> None:
    """Make sure that the file ends with the increment's own cross-references.

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
