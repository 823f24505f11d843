"""What is caught before a signature is released."""

import hashlib
import re
from dataclasses import replace

import pytest
from asn1crypto import cms

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from tests.support.documents.pdf_samples import increment_of, make_pdf, make_plan, sign
from tests.support.documents.software_signer import SoftwareSigner, make_signer
from tests.support.documents.validators import assert_valid, read_pdf
from worker.pades import SignatureCheckError, check, method_for, prepare
from worker.pades.appearance.fonts import StampFonts


def test_prepared_digests_are_what_they_say(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Digest of the attributes, and of all bytes but Contents with its brackets."""
    original = make_pdf()

    prepared = prepare(original, make_plan(signer), fonts)

    at, end = prepared.contents_at, prepared.contents_at + prepared.contents_length
    assert prepared.increment[at:end] == b"0" * prepared.contents_length
    covered = original + prepared.increment[: at - 1] + prepared.increment[end + 1 :]
    assert hashlib.sha256(covered).digest() == prepared.document_digest
    assert hashlib.sha256(prepared.signed_attributes).digest() == prepared.digest


def test_contents_is_reserved_to_the_byte(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """An RSA value fills the place exactly: no guess, no dry run, no padding."""
    pdf = sign(make_pdf(), signer, make_plan(signer), fonts)

    content = read_pdf(pdf).embedded_signatures[0].pkcs7_content
    assert len(cms.ContentInfo.load(content).dump()) == len(content)


def test_assembling_fails_when_the_value_is_too_long(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """A value of a larger key does not fit, and nothing is cut."""
    plan = make_plan(signer)
    prepared = prepare(make_pdf(), plan, fonts)

    with pytest.raises(ApplianceError) as caught:
        signer.complete(
            replace(prepared, contents_length=prepared.contents_length - 2), plan
        )

    assert caught.value.code is ErrorCode.SIGNING_FAILED


def test_check_detects_the_key_of_another(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """PyHanko would make this PDF without a word."""
    plan = make_plan(signer)
    original = make_pdf()
    other = replace(make_signer(), certificate=signer.certificate, chain=signer.chain)

    increment = other.complete(prepare(original, plan, fonts), plan)

    with pytest.raises(SignatureCheckError, match="key"):
        check(original, increment, signer.certificate)


def test_check_detects_the_certificate_of_another(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Right for its own certificate, wrong for the one that was meant."""
    original = make_pdf()
    increment = increment_of(original, make_signer(), fonts)

    with pytest.raises(SignatureCheckError):
        check(original, increment, signer.certificate)


def test_check_detects_any_flipped_byte(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Each byte of the increment, and some of the original, one at a time."""
    original = make_pdf()
    increment = increment_of(original, signer, fonts)

    missed = []
    for at in range(len(increment)):
        changed = bytearray(increment)
        changed[at] ^= 0x01
        try:
            check(original, bytes(changed), signer.certificate)
        except SignatureCheckError:
            continue
        missed.append(at)
    for at in range(0, len(original), 7):
        altered = bytearray(original)
        altered[at] ^= 0x01
        with pytest.raises(SignatureCheckError):
            check(bytes(altered), increment, signer.certificate)

    # The carried issuers are outside what is signed; all else is covered.
    issuer = increment.find(signer.chain[0].hex().encode())
    assert all(issuer <= at < issuer + 2 * len(signer.chain[0]) for at in missed)


@pytest.mark.parametrize(
    "appended", [b"\n", b"%", b"5 0 obj\n<< >>\nendobj\n", b"startxref\n0\n%%EOF\n"]
)
def test_check_detects_bytes_after_the_revision(
    appended: bytes, signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Nothing may follow, not even a blank line."""
    original = make_pdf()
    increment = increment_of(original, signer, fonts)

    with pytest.raises(SignatureCheckError):
        check(original, increment + appended, signer.certificate)


@pytest.mark.parametrize("kept", [0, 1, 100, -1, -2, -7])
def test_check_detects_a_cut_increment(
    kept: int, signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Any part of an increment is no increment."""
    original = make_pdf()
    increment = increment_of(original, signer, fonts)

    with pytest.raises(SignatureCheckError):
        check(original, increment[:kept], signer.certificate)


def test_check_detects_an_unsigned_increment(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """The zeros of a prepared increment are no signature."""
    original = make_pdf()
    prepared = prepare(original, make_plan(signer), fonts)

    with pytest.raises(SignatureCheckError, match="CMS"):
        check(original, prepared.increment, signer.certificate)


def test_check_is_not_misled_by_a_planted_byte_range(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """A page may carry text like a ByteRange into the increment."""
    planted = b"/Type /Page /PieceInfo << /ByteRange [0 1 2 3] >> /Parent"
    original = make_pdf(edit=(b"/Type /Page /Parent", planted))

    pdf = sign(original, signer, make_plan(signer), fonts)

    assert len(re.findall(rb"/ByteRange \[ ?0 1 2 3 ?\]", pdf)) == 2
    assert_valid(pdf, signer.root)


@pytest.mark.parametrize("algorithm", [KeyAlgorithm.RSA_2048, KeyAlgorithm.EC_P256])
def test_value_is_verified_by_kind_of_key(algorithm: KeyAlgorithm) -> None:
    """Right for its digest, wrong for another."""
    signer = make_signer(algorithm)
    method = method_for(signer.certificate)
    digest = hashlib.sha256(b"a").digest()
    value = signer.value(digest)

    assert method.verifies(signer.certificate, digest, value)
    other = hashlib.sha256(b"b").digest()
    assert not method.verifies(signer.certificate, other, value)
    assert not method.verifies(signer.certificate, digest, b"")
