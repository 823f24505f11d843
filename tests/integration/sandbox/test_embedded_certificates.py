"""Certificates in a signature's value are not signed: they cannot name another signer.

Source: RFC 5652, 5.1 (certificates) and 5.3 (SignerIdentifier).
"""

import pytest
from asn1crypto import cms
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa

from appliance.domain.documents.verification import Answer
from appliance.domain.requests.levels import ValidationData
from tests.support.documents.contract_pdf import contract
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import Makers, makers
from tests.support.pki.outside_ca import der, named, rsa_key, usage
from worker.pades import Validated, add_dss
from worker.sandbox.verify.verify import verify


def namesake(
    do: Makers, *, other_key: bool = False, other_number: bool = False
) -> bytes:
    """A certificate of another person that looks like the signer's to a reader.

    Args:
        do: the signer's.
        other_key: it has another key, and the signer's issuer and serial number.
        other_number: it has another serial number, and the signer's key.
    """
    real = x509.load_der_x509_certificate(do.signer.certificate)
    key = rsa_key("namesake") if other_key else real
    made = (
        x509.CertificateBuilder()
        .subject_name(named("Otra Persona", "CUIL 20111111112"))
        .issuer_name(real.issuer)
        .public_key(key.public_key())
        .serial_number(real.serial_number + other_number)
        .not_valid_before(real.not_valid_before_utc)
        .not_valid_after(real.not_valid_after_utc)
        .add_extension(usage("digital_signature", "content_commitment"), critical=True)
        .sign(_forger(), hashes.SHA256())
    )
    return der(made)


def _forger() -> rsa.RSAPrivateKey:
    return rsa_key("forger")


def with_certificates(pdf: bytes, *certificates: bytes) -> bytes:
    """Write other certificates, in this order, into the first signature's value."""
    contents = SignedFile(pdf).signature_contents()[0]
    value = cms.ContentInfo.load(contents)
    old = value.dump()
    value["content"]["certificates"] = cms.CertificateSet(
        [
            cms.CertificateChoices("certificate", asn1_x509.Certificate.load(each))
            for each in certificates
        ]
    )
    # A SET OF is written sorted by DER, and read in any order.
    in_order = value["content"]["certificates"].contents
    new = value.dump(force=True).replace(in_order, b"".join(certificates))
    padded = (new + bytes(len(contents) - len(new))).hex().encode()
    at = pdf.lower().index(old.hex().encode())
    written: bytes = pdf[:at] + padded + pdf[at + len(padded) :]
    return written


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("other", ["", "key", "number"])
def test_second_certificate_of_a_signer_is_told(other: str, *, first: bool) -> None:
    """Readers like pdfsig and Acrobat name the person of the first that fits."""
    do = makers()
    fake = namesake(do, other_key=other == "key", other_number=other == "number")

    both = (fake, do.signer.certificate)

    report = verify(
        with_certificates(do.signed(contract()), *(both if first else both[::-1])),
        [do.root],
    )

    assert report.verdict is Answer.UNCHECKED
    assert "two certificates" in report.signatures[0].integrity.reason


def test_stamp_of_a_stranger_is_told() -> None:
    """Some readers list it as a further signer, of the name that it has."""
    do = makers()
    pdf = do.timestamped(do.signed(contract()))

    assert verify(pdf, [do.root]).unproven == ()
    report = verify(pdf, [do.root], stamp_roots=[])

    assert report.verdict is Answer.YES
    assert report.unproven == ("TSA",)


def test_certificate_may_stand_twice() -> None:
    """Some signers write the chain after the certificate, with that again."""
    do = makers()
    ours = do.signer.certificate
    pdf = with_certificates(do.signed(contract()), ours, ours)
    value = SignedFile(pdf).signature_contents()[0]
    chain = ValidationData(certificates=do.pki.chain)
    pdf += add_dss(pdf, [Validated(value, chain)])
    assert verify(pdf, [do.root]).verdict is Answer.YES
