"""The signing engine by each kind of key, scheme and digest.

Stock pyHanko is the reference; it, poppler and OpenSSL judge what we make.
"""

import io
import re
import ssl
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from asn1crypto import algos, cms
from cryptography.hazmat.primitives.asymmetric import ec
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign.fields import SigSeedSubFilter
from pyhanko.sign.signers import PdfSignatureMetadata, sign_pdf

from appliance.domain.documents.verification import Answer
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.keys.hsm_keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    SignatureScheme,
)
from appliance.domain.vocab import Restriction
from tests.support.documents.pdf_samples import make_pdf, make_plan, sign
from tests.support.documents.software_signer import SoftwareSigner, make_signer
from tests.support.documents.validators import assert_valid, read_pdf
from tests.support.services.sandbox_server import running_sandbox
from worker.pades import (
    SignatureCheckError,
    SignatureMethod,
    check,
    method_for,
    method_of,
    prepare,
)
from worker.pades.appearance.fonts import StampFonts
from worker.pades.cms import longest_signed_data, signer_parts

PKCS1, PSS, ECDSA = SignatureScheme
SHA256, SHA384, SHA512 = DigestAlgorithm

METHODS = [
    (KeyAlgorithm.RSA_2048, PKCS1, SHA256),
    (KeyAlgorithm.RSA_3072, PKCS1, SHA256),
    (KeyAlgorithm.RSA_4096, PKCS1, SHA256),
    (KeyAlgorithm.RSA_2048, PKCS1, SHA384),
    (KeyAlgorithm.RSA_2048, PKCS1, SHA512),
    (KeyAlgorithm.RSA_2048, PSS, SHA256),
    (KeyAlgorithm.RSA_3072, PSS, SHA256),
    (KeyAlgorithm.RSA_4096, PSS, SHA384),
    (KeyAlgorithm.RSA_2048, PSS, SHA512),
    (KeyAlgorithm.EC_P256, ECDSA, SHA256),
    (KeyAlgorithm.EC_P384, ECDSA, SHA384),
    (KeyAlgorithm.EC_P384, ECDSA, SHA512),
]
EVERY = pytest.mark.parametrize(("algorithm", "scheme", "digest"), METHODS)


@cache
def signer_of(algorithm: KeyAlgorithm) -> SoftwareSigner:
    """One signer a kind; large RSA keys take long to make."""
    return make_signer(algorithm)


def content_info(pdf: bytes) -> cms.ContentInfo:
    """The CMS of the one signature."""
    (signature,) = read_pdf(pdf).embedded_signatures
    return cms.ContentInfo.load(signature.pkcs7_content)


@EVERY
def test_signature_is_valid(
    algorithm: KeyAlgorithm,
    scheme: SignatureScheme,
    digest: DigestAlgorithm,
    fonts: StampFonts,
) -> None:
    """For pyHanko and pdfsig, with a restriction, whose values differ in length."""
    signer = signer_of(algorithm)
    method = SignatureMethod(scheme, digest)
    plan = make_plan(signer, None, Restriction.FORM_FILLING, method)

    for _ in range(4):
        assert_valid(sign(make_pdf(), signer, plan, fonts), signer.root)


@EVERY
def test_cms_is_valid_for_openssl(
    algorithm: KeyAlgorithm,
    scheme: SignatureScheme,
    digest: DigestAlgorithm,
    fonts: StampFonts,
    tmp_path: Path,
) -> None:
    """A third reader of the CMS by itself, over the bytes that it covers."""
    signer = signer_of(algorithm)
    plan = make_plan(signer, method=SignatureMethod(scheme, digest))
    pdf = sign(make_pdf(), signer, plan, fonts)
    ranges = re.search(rb"/ByteRange \[0 (\d+) (\d+) \d+ *\]", pdf)
    assert ranges is not None
    covered = pdf[: int(ranges[1])] + pdf[int(ranges[2]) :]
    (tmp_path / "cms").write_bytes(content_info(pdf).dump())
    (tmp_path / "covered").write_bytes(covered)
    (tmp_path / "root").write_text(ssl.DER_cert_to_PEM_cert(signer.chain[-1]))

    done = subprocess.run(
        ["openssl", "cms", "-verify", "-binary", "-inform", "DER", "-in", "cms",
         "-content", "covered", "-CAfile", "root", "-purpose", "any",
         "-out", "/dev/null"],
        cwd=tmp_path, check=False, capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr


@EVERY
def test_signature_is_that_of_the_stock_library(
    algorithm: KeyAlgorithm,
    scheme: SignatureScheme,
    digest: DigestAlgorithm,
    fonts: StampFonts,
) -> None:
    """Same CMS structure as pyHanko's own PAdES signature, part by part."""
    signer, original = signer_of(algorithm), make_pdf()
    method = SignatureMethod(scheme, digest)
    stock = _stock(original, signer, method)

    ours = sign(original, signer, make_plan(signer, method=method), fonts)

    assert _parts(ours) == _parts(stock)
    roots = [read_pdf(pdf).root for pdf in (ours, stock)]
    # The stock library takes a file with an elliptic signature to PDF 2.0, which
    # would cost a PDF/A its conformance; ours stays what it was.
    assert roots[0]["/Extensions"]["/ESIC"] == roots[1]["/Extensions"]["/ESIC"]
    assert set(roots[0]["/Extensions"]) == {"/ESIC"}
    assert "/Version" not in roots[0]
    objects = [read_pdf(pdf).embedded_signatures[0].sig_object for pdf in (ours, stock)]
    for key in ("/Type", "/Filter", "/SubFilter"):
        assert objects[0][key] == objects[1][key]
    assert set(objects[0]) - set(objects[1]) == {"/Name"}
    assert set(objects[1]) <= set(objects[0])


def _stock(original: bytes, signer: SoftwareSigner, method: SignatureMethod) -> bytes:
    """The document signed by pyHanko alone."""
    name = method.digest.value
    mechanism = None
    if method.scheme is PSS:
        # The stock library would take the longest salt that there is room for.
        mask = {"algorithm": "mgf1", "parameters": {"algorithm": name}}
        parameters = {
            "hash_algorithm": {"algorithm": name},
            "mask_gen_algorithm": mask,
            "salt_length": method.digest.size_bytes,
        }
        mechanism = algos.SignedDigestAlgorithm(
            {
                "algorithm": "rsassa_pss",
                "parameters": algos.RSASSAPSSParams(parameters),
            }
        )
    metadata = PdfSignatureMetadata(
        field_name="Firma-7", subfilter=SigSeedSubFilter.PADES, md_algorithm=name
    )
    writer = IncrementalPdfFileWriter(io.BytesIO(original))
    signed: io.BytesIO = sign_pdf(writer, metadata, signer.stock(mechanism))
    return signed.getvalue()


def _parts(pdf: bytes) -> dict[str, Any]:
    """What two CMS of one signer must share."""
    signed = content_info(pdf)["content"]
    signer_info = signed["signer_infos"][0]
    attributes = {
        attribute["type"].native: attribute["values"].dump()
        for attribute in signer_info["signed_attrs"]
        if attribute["type"].native != "message_digest"
    }
    attributes["message_digest"] = b""
    return {
        "versions": (signed["version"].native, signer_info["version"].native),
        # NULL or nothing beside a digest's name is one and the same (RFC 5754, 2).
        "digests": [one["algorithm"].native for one in signed["digest_algorithms"]],
        "digest": signer_info["digest_algorithm"]["algorithm"].native,
        "content": signed["encap_content_info"].dump(),
        "certificates": {choice.dump() for choice in signed["certificates"]},
        "crls": signed["crls"].native,
        "sid": signer_info["sid"].dump(),
        "algorithm": signer_info["signature_algorithm"].dump(),
        "attributes": attributes,
        "unsigned": signer_info["unsigned_attrs"].native,
    }


@pytest.mark.parametrize(
    ("scheme", "digest", "signature_hex", "digest_hex"),
    [
        (PKCS1, SHA256, "300d06092a864886f70d01010b0500", "300b0609608648016503040201"),
        (PKCS1, SHA384, "300d06092a864886f70d01010c0500", "300b0609608648016503040202"),
        (PKCS1, SHA512, "300d06092a864886f70d01010d0500", "300b0609608648016503040203"),
        (ECDSA, SHA256, "300a06082a8648ce3d040302", "300b0609608648016503040201"),
        (ECDSA, SHA384, "300a06082a8648ce3d040303", "300b0609608648016503040202"),
        (
            PSS,
            SHA256,
            (
                "304106092a864886f70d01010a3034"
                "a00f300d06096086480165030402010500"
                "a11c301a06092a864886f70d010108300d06096086480165030402010500"
                "a203020120"
            ),
            "300b0609608648016503040201",
        ),
    ],
)
def test_identifiers_are_those_of_the_rfcs(
    scheme: SignatureScheme,
    digest: DigestAlgorithm,
    signature_hex: str,
    digest_hex: str,
) -> None:
    """RFC 5754, 2, 3.2 and 3.3; RFC 4055, 3.1; written out by hand."""
    method = SignatureMethod(scheme, digest)

    assert method.signature_identifier().hex() == signature_hex
    assert method.digest_identifier().hex() == digest_hex


@pytest.mark.parametrize(
    ("algorithm", "prefer_pss", "scheme", "digest"),
    [
        (KeyAlgorithm.RSA_2048, False, PKCS1, SHA256),
        (KeyAlgorithm.RSA_4096, False, PKCS1, SHA256),
        (KeyAlgorithm.RSA_2048, True, PSS, SHA256),
        (KeyAlgorithm.EC_P256, False, ECDSA, SHA256),
        (KeyAlgorithm.EC_P256, True, ECDSA, SHA256),
        (KeyAlgorithm.EC_P384, False, ECDSA, SHA384),
    ],
)
def test_method_follows_from_the_key(
    algorithm: KeyAlgorithm,
    *,
    prefer_pss: bool,
    scheme: SignatureScheme,
    digest: DigestAlgorithm,
) -> None:
    """And from the preference, where the key leaves a choice."""
    certificate = signer_of(algorithm).certificate

    method = method_for(certificate, prefer_pss=prefer_pss)

    assert method == SignatureMethod(scheme, digest)


def test_other_curves_are_refused() -> None:
    """A key that no credential may have signs nothing."""
    signer = make_signer(key=ec.generate_private_key(ec.SECP521R1()))

    with pytest.raises(ApplianceError) as caught:
        method_for(signer.certificate)

    assert caught.value.code is ErrorCode.CERTIFICATE_NOT_USABLE


@EVERY
def test_place_for_the_cms_is_as_long_as_the_longest(
    algorithm: KeyAlgorithm,
    scheme: SignatureScheme,
    digest: DigestAlgorithm,
    fonts: StampFonts,
) -> None:
    """RSA fills it to the byte; ECDSA's value varies, and never by much."""
    signer = signer_of(algorithm)
    plan = make_plan(signer, method=SignatureMethod(scheme, digest))
    parts = signer_parts(signer.certificate, signer.chain, plan.method)

    prepared = prepare(make_pdf(), plan, fonts)
    made = content_info(make_pdf() + signer.complete(prepared, plan)).dump()

    assert prepared.contents_length == 2 * longest_signed_data(parts)
    slack = prepared.contents_length // 2 - len(made)
    # Two integers that lack a sign octet, and seldom another one.
    assert 0 <= slack <= (8 if scheme is ECDSA else 0)


@EVERY
def test_method_is_told_from_the_value(
    algorithm: KeyAlgorithm, scheme: SignatureScheme, digest: DigestAlgorithm
) -> None:
    """Whatever the setting says by then, a stored value finds its CMS."""
    signer, method = signer_of(algorithm), SignatureMethod(scheme, digest)
    value = signer.value(method.hash(b"attributes"), method)

    assert method_of(signer.certificate, b"attributes", value) == method
    with pytest.raises(SignatureCheckError, match="key"):
        method_of(signer.certificate, b"others", value)


def test_check_detects_an_algorithm_that_does_not_fit(fonts: StampFonts) -> None:
    """A PKCS#1 value in a CMS that says PSS is worthless."""
    signer, original = signer_of(KeyAlgorithm.RSA_2048), make_pdf()
    honest = make_plan(signer, method=SignatureMethod(PKCS1, SHA256))
    lying = replace(honest, method=SignatureMethod(PSS, SHA256))
    prepared = prepare(original, lying, fonts)
    value = signer.value(prepared.digest, honest.method)
    increment = signer.filled(prepared, lying, value)

    with pytest.raises(SignatureCheckError, match="key"):
        check(original, increment, signer.certificate)


async def test_sandbox_verifies_each_method(fonts: StampFonts) -> None:
    """Confined as it is, and as `rubrica verify` and the API show it."""
    with running_sandbox() as sandbox:
        for algorithm, scheme, digest in METHODS:
            signer = signer_of(algorithm)
            plan = make_plan(signer, method=SignatureMethod(scheme, digest))
            pdf = sign(make_pdf(), signer, plan, fonts)

            report = await sandbox.client.verify(pdf, [signer.chain[-1]])

            (one,) = report.signatures
            assert report.valid, one.reason
            assert one.integrity.answer is Answer.YES
            assert one.trust.answer is Answer.YES
