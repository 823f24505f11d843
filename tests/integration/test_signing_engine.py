"""The signing engine with a software key: what it makes, and what it catches."""

import hashlib
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from asn1crypto import cms
from asn1crypto import x509 as asn1_x509
from pyhanko.keys.internal import translate_pyca_cryptography_key_to_asn1
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.pdf_utils.writer import PdfFileWriter, copy_into_new_writer
from pyhanko.sign.fields import SigSeedSubFilter
from pyhanko.sign.signers import PdfSignatureMetadata, SimpleSigner, sign_pdf
from pyhanko.sign.validation import SignatureCoverageLevel
from pyhanko_certvalidator.registry import SimpleCertificateStore

from appliance.domain.command import SignParameters
from appliance.domain.document import PageBox
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.stamp import StampLayout, place, stamp_lines
from appliance.domain.vocab import Restriction
from tests.tools.pdf_samples import (
    A4,
    SIGNED_AT,
    SoftwareSigner,
    make_pdf,
    make_signer,
)
from tests.tools.pdf_validation import (
    assert_valid,
    read_pdf,
    run_pdfsig,
    validate,
)
from worker.pdf import (
    SignatureCheckError,
    SignaturePlan,
    check,
    prepare,
    verify_signature_value,
)
from worker.stamp import StampFonts, load_fonts

LINES = stamp_lines("María José Ñandú", "20267565393", SIGNED_AT, "es")


@pytest.fixture(scope="module")
def fonts() -> StampFonts:
    """Every font, prepared."""
    return load_fonts(Path("/usr/share/fonts/truetype/liberation2"))


@pytest.fixture(scope="module")
def signer() -> SoftwareSigner:
    """An RSA signer."""
    return make_signer()


def make_plan(
    signer: SoftwareSigner,
    layout: StampLayout | None = None,
    restriction: Restriction = Restriction.NO_VALUE,
) -> SignaturePlan:
    """A plan of the test's signer."""
    return SignaturePlan(
        "Firma-7", layout, restriction, SIGNED_AT, "Ana", signer.certificate,
        signer.chain,
    )  # fmt: skip


def sign(
    original: bytes, signer: SoftwareSigner, plan: SignaturePlan, fonts: StampFonts
) -> bytes:
    """The signed file, checked as before a release."""
    prepared = prepare(original, plan, fonts)
    increment = signer.complete(prepared, plan)
    check(original, increment, plan.certificate)
    return original + increment


def increment_of(original: bytes, signer: SoftwareSigner, fonts: StampFonts) -> bytes:
    """A finished increment of an invisible signature."""
    plan = make_plan(signer)
    return signer.complete(prepare(original, plan, fonts), plan)


def sealed(pdf: bytes) -> cms.SignedData:
    """The CMS of the last signature."""
    content = read_pdf(pdf).embedded_signatures[-1].pkcs7_content
    return cms.ContentInfo.load(content)["content"]


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("media", [None, (0.0, 0.0, 600.0, 700.0)])
def test_signature_is_valid_when_visible(
    rotate: int,
    media: tuple[float, float, float, float] | None,
    signer: SoftwareSigner,
    fonts: StampFonts,
    tmp_path: Path,
) -> None:
    """At each rotation, with and without a CropBox."""
    box = PageBox(50, 60, 450, 560, rotate)
    layout = place(SignParameters(x=20, y=30), LINES, [box])

    pdf = sign(make_pdf([box], media=media), signer, make_plan(signer, layout), fonts)

    assert_valid(pdf, signer, tmp_path)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n", b"  "])
def test_signature_is_valid_whatever_ends_the_original(
    end: bytes, signer: SoftwareSigner, fonts: StampFonts, tmp_path: Path
) -> None:
    """The original stays an untouched prefix, and the revision starts a line."""
    original = make_pdf(end=end)

    pdf = sign(original, signer, make_plan(signer), fonts)

    assert pdf.startswith(original)
    assert b"%EOF5 0 obj" not in pdf
    assert_valid(pdf, signer, tmp_path)


@pytest.mark.parametrize("direct", [True, False])
def test_form_that_was_there_is_kept(
    signer: SoftwareSigner, fonts: StampFonts, tmp_path: Path, *, direct: bool
) -> None:
    """Signing adds a field, under a name of its own, and takes none away."""
    with pikepdf.open(io.BytesIO(make_pdf())) as made:
        text = pikepdf.Dictionary(FT=pikepdf.Name.Tx, T="Firma-7", V="kept")
        fields = pikepdf.Array([made.make_indirect(text)])
        form = pikepdf.Dictionary(
            Fields=fields if direct else made.make_indirect(fields), DA="/F1 9 Tf"
        )
        made.Root.AcroForm = form if direct else made.make_indirect(form)
        out = io.BytesIO()
        made.save(out, static_id=True)

    pdf = sign(out.getvalue(), signer, make_plan(signer), fonts)

    with pikepdf.open(io.BytesIO(pdf)) as signed:
        kept = signed.Root.AcroForm
        assert [str(field.T) for field in kept.Fields] == ["Firma-7", "Firma-7-2"]
        assert str(kept.Fields[0].V) == "kept"
        assert str(kept.DA) == "/F1 9 Tf"
    assert_valid(pdf, signer, tmp_path)


@pytest.mark.parametrize(
    ("restriction", "permission"),
    [
        (Restriction.NO_CHANGES_ALLOWED, 1),
        (Restriction.FORM_FILLING, 2),
        (Restriction.FORM_FILLING_AND_ANNOTATIONS, 3),
    ],
)
def test_signature_certifies_with_its_restriction(
    restriction: Restriction,
    permission: int,
    signer: SoftwareSigner,
    fonts: StampFonts,
    tmp_path: Path,
) -> None:
    """DocMDP P is 1, 2 or 3, reached through the catalogue too."""
    plan = make_plan(signer, None, restriction)

    pdf = sign(make_pdf(), signer, plan, fonts)

    reader = read_pdf(pdf)
    (signature,) = reader.embedded_signatures
    assert signature.docmdp_level is not None
    assert signature.docmdp_level.value == permission
    assert (
        reader.root["/Perms"].raw_get("/DocMDP").reference
        == signature.sig_field.raw_get("/V").reference
    )
    assert_valid(pdf, signer, tmp_path)


def test_signature_has_no_docmdp_when_nothing_is_restricted(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """NO_VALUE is an approval signature."""
    reader = read_pdf(sign(make_pdf(), signer, make_plan(signer), fonts))

    assert "/Perms" not in reader.root
    assert "/Reference" not in reader.embedded_signatures[0].sig_object


def test_signature_is_valid_with_an_elliptic_key(
    fonts: StampFonts, tmp_path: Path
) -> None:
    """ECDSA over P-256, whose values differ in length."""
    signer = make_signer(elliptic=True)

    for _ in range(8):
        assert_valid(
            sign(make_pdf(), signer, make_plan(signer), fonts), signer, tmp_path
        )


def test_signature_is_that_of_the_stock_library(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Same CMS structure as pyHanko's own PAdES signature, part by part."""
    original = make_pdf()
    store = SimpleCertificateStore()  # type: ignore[no-untyped-call]  # not typed
    store.register_multiple(asn1_x509.Certificate.load(one) for one in signer.chain)
    stock_signer = SimpleSigner(
        signing_cert=asn1_x509.Certificate.load(signer.certificate),
        signing_key=translate_pyca_cryptography_key_to_asn1(signer.key),
        cert_registry=store,
    )
    metadata = PdfSignatureMetadata(
        field_name="Firma-7", subfilter=SigSeedSubFilter.PADES, md_algorithm="sha256"
    )
    stock = sign_pdf(
        IncrementalPdfFileWriter(io.BytesIO(original)), metadata, stock_signer
    ).getvalue()

    ours = sign(original, signer, make_plan(signer), fonts)

    assert _parts(sealed(ours)) == _parts(sealed(stock))
    roots = [read_pdf(pdf).root for pdf in (ours, stock)]
    assert roots[0]["/Extensions"] == roots[1]["/Extensions"]
    objects = [read_pdf(pdf).embedded_signatures[0].sig_object for pdf in (ours, stock)]
    for key in ("/Type", "/Filter", "/SubFilter"):
        assert objects[0][key] == objects[1][key]
    assert set(objects[0]) - set(objects[1]) == {"/Name"}
    assert set(objects[1]) <= set(objects[0])


def _parts(signed: cms.SignedData) -> dict[str, Any]:
    """What two CMS of one signer must share, in DER."""
    signer_info = signed["signer_infos"][0]
    attributes = {
        attribute["type"].native: attribute["values"].dump()
        for attribute in signer_info["signed_attrs"]
        if attribute["type"].native != "message_digest"
    }
    attributes["message_digest"] = b""
    return {
        "versions": (signed["version"].native, signer_info["version"].native),
        "digests": signed["digest_algorithms"].dump(),
        "content": signed["encap_content_info"].dump(),
        "certificates": {choice.dump() for choice in signed["certificates"]},
        "crls": signed["crls"].native,
        "sid": signer_info["sid"].dump(),
        "digest": signer_info["digest_algorithm"].dump(),
        "algorithm": signer_info["signature_algorithm"].dump(),
        "attributes": attributes,
        "unsigned": signer_info["unsigned_attrs"].native,
    }


def test_signing_time_stands_in_the_dictionary_alone(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """PAdES: /M, and no signing-time among the signed attributes."""
    pdf = sign(make_pdf(), signer, make_plan(signer), fonts)

    attributes = sealed(pdf)["signer_infos"][0]["signed_attrs"]
    names = {attribute["type"].native for attribute in attributes}
    assert names == {"content_type", "message_digest", "signing_certificate_v2"}
    assert read_pdf(pdf).embedded_signatures[0].sig_object["/M"] == "D:20261120170311Z"


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
    signer: SoftwareSigner, fonts: StampFonts, tmp_path: Path
) -> None:
    """A page may carry text like a ByteRange into the increment."""
    planted = b"/Type /Page /PieceInfo << /ByteRange [0 1 2 3] >> /Parent"
    original = make_pdf(edit=(b"/Type /Page /Parent", planted))

    pdf = sign(original, signer, make_plan(signer), fonts)

    assert len(re.findall(rb"/ByteRange \[ ?0 1 2 3 ?\]", pdf)) == 2
    assert_valid(pdf, signer, tmp_path)


@pytest.mark.parametrize("elliptic", [False, True])
def test_value_is_verified_by_kind_of_key(*, elliptic: bool) -> None:
    """Right for its digest, wrong for another."""
    signer = make_signer(elliptic=elliptic)
    digest = hashlib.sha256(b"a").digest()
    value = signer.value(digest)

    assert verify_signature_value(signer.certificate, digest, value)
    other = hashlib.sha256(b"b").digest()
    assert not verify_signature_value(signer.certificate, other, value)
    assert not verify_signature_value(signer.certificate, digest, b"")


@pytest.mark.parametrize("visible", [False, True])
def test_second_signature_leaves_both_valid(
    signer: SoftwareSigner, fonts: StampFonts, tmp_path: Path, *, visible: bool
) -> None:
    """The first keeps its revision and its field; the second covers the file."""
    layout = place(SignParameters(x=20, y=30), LINES, [A4]) if visible else None
    plan = make_plan(signer, layout)
    first = sign(make_pdf(), signer, plan, fonts)

    second = sign(first, signer, plan, fonts)

    assert second.startswith(first)
    statuses = validate(second, signer)
    assert [status.bottom_line for status in statuses] == [True, True]
    assert statuses[0].coverage is SignatureCoverageLevel.ENTIRE_REVISION
    names = [s.field_name for s in read_pdf(second).embedded_signatures]
    assert names == ["Firma-7", "Firma-7-2"]
    assert run_pdfsig(second, tmp_path).count("Signature is Valid.") == 2
    assert_valid(second, signer, tmp_path)


@pytest.mark.parametrize(
    "restriction",
    [Restriction.FORM_FILLING, Restriction.FORM_FILLING_AND_ANNOTATIONS],
)
def test_approval_after_certification_leaves_both_valid(
    restriction: Restriction, signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """P = 2 and 3 allow another signature."""
    first = sign(make_pdf(), signer, make_plan(signer, None, restriction), fonts)

    second = sign(first, signer, make_plan(signer), fonts)

    assert [status.bottom_line for status in validate(second, signer)] == [True, True]


@pytest.mark.parametrize("restriction", set(Restriction) - {Restriction.NO_VALUE})
def test_certification_is_refused_when_signed(
    restriction: Restriction, signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Only a first signature certifies."""
    signed = sign(make_pdf(), signer, make_plan(signer), fonts)

    with pytest.raises(DocumentRefusedError) as caught:
        prepare(signed, make_plan(signer, None, restriction), fonts)

    assert caught.value.code is ErrorCode.PDF_ALREADY_SIGNED


def test_signature_is_refused_when_certified_against_changes(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """P = 1 locks the file."""
    plan = make_plan(signer, None, Restriction.NO_CHANGES_ALLOWED)
    locked = sign(make_pdf(), signer, plan, fonts)

    with pytest.raises(DocumentRefusedError) as caught:
        prepare(locked, make_plan(signer), fonts)

    assert caught.value.code is ErrorCode.PDF_LOCKED


@pytest.mark.long
def test_signature_is_valid_over_100_million_bytes(
    signer: SoftwareSigner, fonts: StampFonts, tmp_path: Path
) -> None:
    """Where the offsets get a ninth digit."""
    stream = b"<< /Length 100000000 >>\nstream\n" + b"x" * 10**8 + b"\nendstream"
    catalogue = b"<< /Type /Catalog /Pages 2 0 R >>"
    planted = catalogue + b"\nendobj\n9 0 obj\n" + stream
    layout = place(SignParameters(), LINES, [A4])

    pdf = sign(
        make_pdf(edit=(catalogue, planted)), signer, make_plan(signer, layout), fonts
    )

    assert len(pdf) > 10**8
    assert_valid(pdf, signer, tmp_path)


@pytest.mark.parametrize("count", [0, 1, 7, -3])
def test_page_is_found_whatever_count_claims(
    count: int, signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Pages are found by walking."""
    pages = [A4, A4, A4]
    layout = place(SignParameters(page=2, x=1, y=1), LINES, pages)

    pdf = sign(make_pdf(pages, count=count), signer, make_plan(signer, layout), fonts)

    field = read_pdf(pdf).embedded_signatures[0].sig_field
    assert field.raw_get("/P").idnum == 6  # object of the second page


def _encrypted(password: str, *, mac: bool) -> bytes:
    """A PDF under AES-256."""
    writer: PdfFileWriter = copy_into_new_writer(PdfFileReader(io.BytesIO(make_pdf())))
    writer.encrypt(owner_pass="owner", user_pass=password, pdf_mac=mac)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize("visible", [False, True])
def test_signature_is_valid_when_encrypted_with_empty_password(
    signer: SoftwareSigner, fonts: StampFonts, tmp_path: Path, *, visible: bool
) -> None:
    """The revision is encrypted alike, but for Contents."""
    layout = place(SignParameters(), LINES, [A4]) if visible else None

    pdf = sign(_encrypted("", mac=False), signer, make_plan(signer, layout), fonts)

    assert_valid(pdf, signer, tmp_path)


@pytest.mark.parametrize(
    ("password", "mac", "code"),
    [
        ("secret", False, ErrorCode.PDF_PASSWORD_NEEDED),
        ("", True, ErrorCode.PDF_ENCRYPTED),
    ],
)
def test_encrypted_file_is_refused_by_name(
    password: str,
    code: ErrorCode,
    signer: SoftwareSigner,
    fonts: StampFonts,
    *,
    mac: bool,
) -> None:
    """A password that is not empty; an encryption that cannot be extended."""
    with pytest.raises(DocumentRefusedError) as caught:
        prepare(_encrypted(password, mac=mac), make_plan(signer), fonts)

    assert caught.value.code is code


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", ErrorCode.PDF_MALFORMED),
        (b"%PDF-1.7\n%%EOF\n", ErrorCode.PDF_MALFORMED),
        (make_pdf()[:300], ErrorCode.PDF_MALFORMED),
        (make_pdf([]), ErrorCode.PDF_NO_PAGES),
    ],
)
def test_broken_file_is_refused_by_name(
    content: bytes, code: ErrorCode, signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Never an error of the library."""
    with pytest.raises(DocumentRefusedError) as caught:
        prepare(content, make_plan(signer), fonts)

    assert caught.value.code is code


@pytest.mark.parametrize(
    "planted",
    [
        (b"/Type /Catalog", b"/Type /Catalog /AcroForm null"),
        (b"/Type /Catalog", b"/Type /Catalog /AcroForm << /Fields null >>"),
        (b"/Type /Catalog", b"/Type /Catalog /AcroForm << /Fields [null 9 99 0 R] >>"),
        (b"/Type /Catalog", b"/Type /Catalog /Perms null"),
        (b"/Type /Catalog", b"/Type /Catalog /Extensions null"),
        (b"/Type /Catalog", b"/Type /Catalog /Extensions << /ESIC (odd) >>"),
        (b"/Type /Page ", b"/Type /Page /Annots null "),
        (b"/Type /Page ", b"/Type /Page /Annots 99 0 R "),
        (b"/Type /Page ", b"/Type /Page /Annots [] "),
        (b"/Type /Page ", b""),
        (b"/Kids [", b"/Kids [null 99 0 R 2 0 R "),
    ],
)
def test_odd_structure_is_signed_all_the_same(
    planted: tuple[bytes, bytes],
    signer: SoftwareSigner,
    fonts: StampFonts,
    tmp_path: Path,
) -> None:
    """Null and dangling entries, and a page tree with a loop, do no harm."""
    original = make_pdf(edit=planted)

    pdf = sign(original, signer, make_plan(signer), fonts)

    words = run_pdfsig(pdf, tmp_path)
    assert "Signature is Valid." in words
    assert "Total document signed" in words
