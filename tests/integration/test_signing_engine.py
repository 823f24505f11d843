"""The signing engine with a software key: what it makes of a sound file."""

import io
from pathlib import Path
from typing import Any

import pytest
from asn1crypto import cms
from asn1crypto import x509 as asn1_x509
from pyhanko.keys.internal import translate_pyca_cryptography_key_to_asn1
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign.fields import SigSeedSubFilter
from pyhanko.sign.signers import PdfSignatureMetadata, SimpleSigner, sign_pdf
from pyhanko.sign.validation import SignatureCoverageLevel
from pyhanko_certvalidator.registry import SimpleCertificateStore

from appliance.domain.command import SignParameters
from appliance.domain.document import PageBox
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.stamp import place, stamp_lines
from appliance.domain.vocab import Restriction
from tests.tools.pdf_samples import (
    A4,
    SIGNED_AT,
    SoftwareSigner,
    make_pdf,
    make_plan,
    make_signer,
    sign,
)
from tests.tools.pdf_validation import (
    assert_valid,
    read_pdf,
    run_pdfsig,
    validate,
)
from worker.pdf import (
    prepare,
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


@pytest.mark.parametrize(
    "restriction", [one for one in Restriction if one is not Restriction.NO_VALUE]
)
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
