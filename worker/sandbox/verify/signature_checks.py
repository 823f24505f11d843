"""Checks of one signature by its own bytes: value, ByteRange, CMS, coverage.

Exceptions of libraries are obstacles: they make an answer *unchecked*. A *no* comes
only from a comparison that was made, or from a part that is not there.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from asn1crypto import cms, x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509 import load_der_x509_certificate
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    Reference,
    TextStringObject,
)
from pyhanko.pdf_utils.misc import PdfReadError
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.ades.report import AdESFailure, AdESIndeterminate
from pyhanko.sign.fields import SigSeedSubFilter
from pyhanko.sign.general import extract_signer_info
from pyhanko.sign.validation import EmbeddedPdfSignature, SignatureCoverageLevel
from pyhanko.sign.validation.errors import SignatureValidationError
from pyhanko.sign.validation.generic_cms import (
    extract_certs_for_validation,
    validate_sig_integrity,
    validate_tst_signed_data,
)
from pyhanko.sign.validation.pdf_embedded import extract_contents
from pyhanko_certvalidator import ValidationContext

from appliance.domain.documents.verification import (
    ALTERNATE_CHARS,
    YES,
    Check,
    CheckCode,
    refuted,
    unchecked,
)
from worker.sandbox.inspect.pdf_objects import entry, name, number, raw_items, resolve
from worker.sandbox.verify.certificate_twins import names_one_algorithm
from worker.sandbox.verify.issuers import TooManyIssuersError

_RANGES: Final = 4
"""Numbers of a /ByteRange that leaves out one gap. Source: PAdES, EN 319 142-1, 5.3."""
_STAMP: Final = "/DocTimeStamp"
_STAMPS: Final = frozenset({str(SigSeedSubFilter.ETSI_RFC3161.value)})
_KINDS: Final = {
    False: frozenset(str(kind.value) for kind in SigSeedSubFilter) - _STAMPS,
    True: _STAMPS,
}
_NAMED: Final = frozenset({str(SigSeedSubFilter.PADES.value)})
_UNKNOWN_KIND: Final = unchecked(
    CheckCode.ALGORITHM_UNSUPPORTED,
    "the signature is of a kind that is not checked here (/SubFilter)",
)
BEYOND_THE_END: Final = refuted(
    CheckCode.FORMAT_FAILURE,
    "the signature covers bytes beyond the end of the file (/ByteRange)",
)
_ILL_ENCODED: Final = unchecked(
    CheckCode.FORMAT_FAILURE,
    "the signature's value is not encoded as CMS demands (a certificate)",
)
_UNNAMED: Final = unchecked(
    CheckCode.FORMAT_FAILURE,
    "the signature does not name its certificate (signing-certificate-v2)",
)
_UNREADABLE: Final = unchecked(
    CheckCode.SIGNATURE_UNREADABLE, "a part of the signature cannot be read"
)


@dataclass(frozen=True, slots=True)
class FilledSignature:
    """A signature field with a value."""

    title: str
    """Fully qualified name."""
    is_timestamp: bool
    """A document timestamp."""
    signature: EmbeddedPdfSignature | None
    """None: it cannot be opened, and `integrity` says why."""
    integrity: Check
    end: int
    """Byte at which the signed bytes end; 0: unknown."""
    alternate: str = ""
    """End of the alternate name of its field; empty: it has none."""


def open_signature(
    pdf: bytes, reader: PdfFileReader, title: str, value: object, node: Any
) -> FilledSignature:
    """Open a filled signature field and check the bytes that it signs.

    Args:
        pdf: the whole file.
        reader: of it.
        title: fully qualified name of the field.
        value: raw `/V` of the field.
        node: the field.
    """
    signed = resolve(value)
    is_timestamp = name(signed, "/Type") == _STAMP
    signature = None
    end = 0
    try:
        defect = _range_defect(signed, len(pdf))
        if defect is None:
            defect = _defect(signed, is_timestamp=is_timestamp)
        if defect is None:
            signature = EmbeddedPdfSignature(reader, node, title)
            end = _end(signature.byte_range, len(pdf))
            _settle_revision(signature, end)
            defect = _integrity(signature, is_timestamp=is_timestamp)
    except MemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 (a forged one raises anything)
        defect = obstacle(exc)
        if not isinstance(exc, SignatureValidationError):
            signature = None
    alternate = _alternate(node)
    return FilledSignature(title, is_timestamp, signature, defect, end, alternate)


def _alternate(node: object) -> str:
    """Return the end of a field's alternate name; empty if it cannot be read."""
    try:
        value = entry(resolve(node), "/TU")
    except Exception:  # noqa: BLE001 (a forged one raises anything)
        return ""
    is_text = isinstance(value, TextStringObject)
    return str(value)[-ALTERNATE_CHARS:] if is_text else ""


def obstacle(exc: Exception) -> Check:
    """The answer that an exception of the libraries stands for.

    Its class and its words are left out: they quote the file, and mean nothing to the
    reader of the report.

    Args:
        exc: raised by pyHanko, asn1crypto or cryptography.
    """
    if isinstance(exc, TooManyIssuersError):
        return unchecked(
            CheckCode.NOT_EXAMINED, "the file has too many certificates of equal names"
        )
    if isinstance(exc, UnsupportedAlgorithm | NotImplementedError):
        return unchecked(
            CheckCode.ALGORITHM_UNSUPPORTED, "an algorithm that is not supported here"
        )
    if isinstance(exc, SignatureValidationError):
        cause = exc.ades_subindication
        if cause is AdESFailure.FORMAT_FAILURE:
            return refuted(
                CheckCode.FORMAT_FAILURE, "the signature breaks the rules of its format"
            )
        if cause is AdESIndeterminate.NO_SIGNING_CERTIFICATE_FOUND:
            return unchecked(
                CheckCode.NO_SIGNING_CERTIFICATE_FOUND,
                "the signing certificate is not in the signature",
            )
    return _UNREADABLE


def _defect(signed: Any, *, is_timestamp: bool) -> Check | None:
    """Find a part that is missing or has no valid form.

    Source: ISO 32000-2, 12.8.1 (signature dictionary); RFC 5652, 5.3.
    """
    try:
        # Undecrypted: a signature's value is never encrypted (ISO 32000-2, 7.6.2).
        contents = extract_contents(signed)
    except PdfReadError:
        return _malformed("the signature has no value (/Contents)")
    if not contents.strip(b"\0"):
        return _malformed("the signature's value is empty (/Contents)")
    kind = name(signed, "/SubFilter")
    if kind not in _KINDS[is_timestamp]:
        return _UNKNOWN_KIND
    defect = _cms_defect(contents)
    if defect is None and kind in _NAMED and not _names_certificate(contents):
        return _UNNAMED
    return defect


def _names_certificate(contents: bytes) -> bool:
    """Return whether a signature's value has a signed reference to its certificate.

    Without it, others of the same key may take the certificate's place.

    Source: EN 319 142-1, 6.3 (PAdES signatures have one).
    """
    info = cms.ContentInfo.load(contents)["content"]["signer_infos"][0]
    kinds = {each["type"].native for each in info["signed_attrs"]}
    return not kinds.isdisjoint({"signing_certificate", "signing_certificate_v2"})


def _range_defect(signed: object, size: int) -> Check | None:
    """Find what keeps a /ByteRange from naming bytes of the file."""
    if not isinstance(signed, DictionaryObject):
        return _malformed("the field's value is no signature")
    numbers = [number(raw) for raw in raw_items(entry(signed, "/ByteRange"))]
    if len(numbers) < _RANGES or any(each is None or each < 0 for each in numbers):
        return _malformed("the signature names no bytes that it covers (/ByteRange)")
    if sum(each or 0 for each in numbers[-2:]) > size:
        return BEYOND_THE_END
    return None


def _cms_defect(contents: bytes) -> Check | None:
    """Find what keeps a signature's value from being one of PAdES.

    Source: RFC 5652, 5.1 and 5.3; EN 319 142-1, 5.3.
    """
    try:
        signed = cms.ContentInfo.load(contents)["content"]
        count = len(signed["signer_infos"])
        certificates = signed["certificates"]
    except (ValueError, TypeError, KeyError):
        return unchecked(
            CheckCode.FORMAT_FAILURE, "the signature's value cannot be read as CMS"
        )
    if count != 1:
        return unchecked(
            CheckCode.FORMAT_FAILURE,
            f"the signature's value has {count} signers (SignerInfo); PAdES wants one",
        )
    try:
        # asn1crypto reads encodings that OpenSSL, and so most programs, refuse.
        for each in certificates:
            load_der_x509_certificate(each.dump())
        is_clear = has_one_signer(signed)
        is_encoded = all(names_one_algorithm(each.chosen) for each in certificates)
    except (ValueError, TypeError, KeyError):
        return _ILL_ENCODED
    if not is_encoded:
        return _ILL_ENCODED
    if not is_clear:
        return unchecked(
            CheckCode.FORMAT_FAILURE,
            "the signature has two certificates that fit its signer",
        )
    return None


def has_one_signer(signed: cms.SignedData) -> bool:
    """Return whether one certificate at most fits the signer of a CMS.

    Certificates in a CMS are not signed. Of several that have the signer's issuer and
    serial number, or its key, pyHanko takes the last one, NSS and OpenSSL the first,
    and each names the person whom that one names.

    Source: RFC 5652, 5.1 and 5.3 (SignerIdentifier).

    Raises:
        ValueError, TypeError, KeyError: a part cannot be read.
    """
    certificates = {each.dump(): each.chosen for each in signed["certificates"]}
    signer = signed["signer_infos"][0]["sid"]
    fitting = [each for each in certificates.values() if _fits(each, signer)]
    keys = {each.public_key.dump() for each in fitting}
    return len(fitting) <= 1 and len(fitting) == sum(
        each.public_key.dump() in keys for each in certificates.values()
    )


def _fits(certificate: x509.Certificate, signer: cms.SignerIdentifier) -> bool:
    if signer.name == "subject_key_identifier":
        return bool(certificate.key_identifier == signer.native)
    named = signer.chosen
    return bool(
        certificate.serial_number == named["serial_number"].native
        and certificate.issuer == named["issuer"]
    )


def _malformed(words: str) -> Check:
    return refuted(CheckCode.FORMAT_FAILURE, words)


def _end(ranges: ArrayObject, size: int) -> int:
    """End of the last range; 0 if it does not lie within the file."""
    end = int(ranges[-2]) + int(ranges[-1])
    return end if 0 < end <= size else 0


def _settle_revision(signature: EmbeddedPdfSignature, end: int) -> None:
    """Take the newest revision within the signed bytes for the signed one.

    pyHanko takes the section that lists the signature dictionary. A linearized file
    has two sections, of which the first page's comes last in the chain and first in
    the file: whatever lies within the signed bytes was signed, whichever lists it.

    Source: ISO 32000-2, annex F.
    """
    xrefs, listed = signature.reader.xrefs, signature.signed_revision
    if (
        signature.evaluate_signature_coverage()
        >= SignatureCoverageLevel.ENTIRE_REVISION
    ):
        return
    for revision in range(listed + 1, xrefs.total_revisions):
        if xrefs.get_xref_container_info(revision).end_location > end:
            break
        signature.signed_revision = revision
        covered = signature.evaluate_signature_coverage()
        if covered >= SignatureCoverageLevel.ENTIRE_REVISION:
            return
    signature.signed_revision = listed


def _integrity(signature: EmbeddedPdfSignature, *, is_timestamp: bool) -> Check:
    """Compare digest and signature value; whose certificate it is does not matter.

    Raises:
        Exception: of any kind, for a signature that cannot be read.
    """
    if is_timestamp:
        context = ValidationContext(trust_roots=[], allow_fetching=False)
        found = asyncio.run(
            validate_tst_signed_data(
                signature.signed_data, context, signature.compute_digest
            )
        )
        intact, valid = found["intact"], found["valid"]
    else:
        intact, valid = validate_sig_integrity(
            signature.signer_info,
            signature.signer_cert,
            expected_content_type="data",
            actual_digest=signature.compute_digest(),
        )
    if not intact and is_timestamp:
        words = "it stamps other bytes than those before it"
        return refuted(CheckCode.HASH_FAILURE, words)
    if not intact:
        return refuted(CheckCode.HASH_FAILURE, "the signed bytes were changed")
    if not valid:
        return refuted(CheckCode.SIG_CRYPTO_FAILURE, "the signature value is wrong")
    return YES


def check_coverage(pdf: bytes, found: FilledSignature, doubts: Sequence[str]) -> Check:
    """Check that a signature covers its revision whole, and that this has one reading.

    Args:
        pdf: the whole file.
        found: an opened signature.
        doubts: ambiguities inside the signed bytes, in words.

    Source: ISO 32000-2, 12.8.1 (ByteRange); EN 319 142-1, 5.3.
    """
    signature = found.signature
    if signature is None:
        return found.integrity  # without a value, or a ByteRange, nothing is covered
    try:
        covers = _leaves_out_its_value_alone(pdf, signature) and (
            signature.evaluate_signature_coverage()
            >= SignatureCoverageLevel.ENTIRE_REVISION
        )
    except MemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 (a forged one raises anything)
        return obstacle(exc)
    if not covers:
        words = "it does not cover its whole revision (/ByteRange)"
        return refuted(CheckCode.COVERAGE, replacement(signature) or words)
    if doubts:
        return unchecked(
            CheckCode.PDF_AMBIGUOUS,
            f"programs may read what was signed in different ways: {doubts[0]}",
        )
    return YES


def replacement(signature: EmbeddedPdfSignature) -> str:
    """Describe a signature dictionary that a later revision wrote again; or empty."""
    reference = signature.sig_object.container_ref
    if not isinstance(reference, Reference):
        return ""
    xrefs = signature.reader.xrefs
    if xrefs.get_introducing_revision(reference) == xrefs.get_last_change(reference):
        return ""
    return f"the signature itself was replaced (object {reference.idnum})"


def _leaves_out_its_value_alone(pdf: bytes, signature: EmbeddedPdfSignature) -> bool:
    """Return whether the gap in the ByteRange is the signature's own /Contents.

    pyHanko compares lengths only, so that a gap of the right length elsewhere, with
    the value moved out of it, would pass.
    """
    ranges = [int(each) for each in signature.byte_range]
    if len(ranges) != _RANGES or ranges[0] != 0:
        return False
    gap = pdf[ranges[1] : ranges[2]]
    if not (gap.startswith(b"<") and gap.endswith(b">")):
        return False
    try:
        value = bytes.fromhex(gap[1:-1].decode("ascii"))
    except ValueError:
        return False
    return value == signature.pkcs7_content


def raw_integrity(pdf: bytes, ranges: Sequence[int]) -> Check:
    """Compare digest and value of a signature in a file that cannot be read.

    Args:
        pdf: the whole file.
        ranges: the four numbers of a /ByteRange in it.
    """
    if ranges[2] + ranges[3] > len(pdf):
        return BEYOND_THE_END
    gap = pdf[ranges[0] + ranges[1] : ranges[2]]
    try:
        contents = bytes.fromhex(gap.strip(b"<>").decode("ascii"))
        if (defect := _cms_defect(contents)) is not None:
            return defect
        signed = cms.ContentInfo.load(contents)["content"]
        info = extract_signer_info(signed)
        digest = hashlib.new(info["digest_algorithm"]["algorithm"].native)
        for start, length in (ranges[:2], ranges[2:]):
            digest.update(pdf[start : start + length])
        intact, valid = validate_sig_integrity(
            info,
            extract_certs_for_validation(signed).signer_cert,
            expected_content_type="data",
            actual_digest=digest.digest(),
        )
    except MemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 (a forged one raises anything)
        return obstacle(exc)
    if not intact:
        return refuted(CheckCode.HASH_FAILURE, "the signed bytes were changed")
    if not valid:
        return refuted(CheckCode.SIG_CRYPTO_FAILURE, "the signature value is wrong")
    return YES
