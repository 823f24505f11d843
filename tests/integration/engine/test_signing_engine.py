"""The signing engine with a software key: what it makes of a sound file."""

import gc
import sys

import pytest
from asn1crypto import cms

from appliance.domain.appearance.stamp import place, stamp_lines
from appliance.domain.documents.inspected import PageBox
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import Restriction
from tests.support.documents.pdf_samples import A4, SIGNED_AT, make_pdf, make_plan, sign
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.documents.validators import (
    assert_valid,
    pdfsig,
    pyhanko_verdicts,
    read_pdf,
)
from worker.pades import prepare, prepare_timestamp
from worker.pades.appearance.fonts import StampFonts

LINES = stamp_lines("María José Ñandú", "20267565393", SIGNED_AT, "es")


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
) -> None:
    """At each rotation, with and without a CropBox."""
    box = PageBox(50, 60, 450, 560, rotate)
    layout = place(SignParameters(x=20, y=30), LINES, [box])

    pdf = sign(make_pdf([box], media=media), signer, make_plan(signer, layout), fonts)

    assert_valid(pdf, signer.root)


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
    assert_valid(pdf, signer.root)


def test_signature_has_no_docmdp_when_nothing_is_restricted(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """NO_VALUE is an approval signature."""
    reader = read_pdf(sign(make_pdf(), signer, make_plan(signer), fonts))

    assert "/Perms" not in reader.root
    assert "/Reference" not in reader.embedded_signatures[0].sig_object


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
    signer: SoftwareSigner, fonts: StampFonts, *, visible: bool
) -> None:
    """The first keeps its revision and its field; the second covers the file."""
    layout = place(SignParameters(x=20, y=30), LINES, [A4]) if visible else None
    plan = make_plan(signer, layout)
    first = sign(make_pdf(), signer, plan, fonts)

    second = sign(first, signer, plan, fonts)

    assert second.startswith(first)
    statuses = pyhanko_verdicts(second, [signer.root])
    assert [status.good for status in statuses] == [True, True]
    assert statuses[0].coverage == "ENTIRE_REVISION"
    names = [s.field_name for s in read_pdf(second).embedded_signatures]
    assert names == ["Firma-7", "Firma-7-2"]
    assert sum(one.valid for one in pdfsig(second)) == 2
    assert_valid(second, signer.root)


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

    assert [status.good for status in pyhanko_verdicts(second, [signer.root])] == [
        True,
        True,
    ]


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


@pytest.mark.parametrize("act", ["sign", "refuse", "stamp the time"])
def test_file_is_let_go_of_at_once(
    act: str, signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Not by a later search for cycles: a large one could not wait for that."""
    pdf = make_pdf()
    if act == "refuse":
        pdf += sign(pdf, signer, make_plan(signer), fonts)[len(pdf) :]
    before = sys.getrefcount(pdf)

    gc.disable()
    try:
        if act == "sign":
            prepare(pdf, make_plan(signer), fonts)
        elif act == "stamp the time":
            prepare_timestamp(pdf, DigestAlgorithm.SHA256, 8192)
        else:
            plan = make_plan(signer, None, Restriction.NO_CHANGES_ALLOWED)
            with pytest.raises(DocumentRefusedError):
                prepare(pdf, plan, fonts)
        assert sys.getrefcount(pdf) == before
    finally:
        gc.enable()
