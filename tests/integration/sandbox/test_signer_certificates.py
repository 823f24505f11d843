"""Certificates that are unsuited, out of their time, or issued by no authority.

Source: RFC 5280, 4.2.1 and 6.1; RFC 3161, 2.3; ETSI EN 319 102-1, 5.1.3.
"""

import datetime as dt
import io
from typing import Any, Final

import pytest
from asn1crypto import x509 as asn1
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier
from pyhanko.keys.internal import translate_pyca_cryptography_key_to_asn1
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner
from pyhanko.sign.fields import SigSeedSubFilter
from pyhanko.sign.timestamps import DummyTimeStamper
from pyhanko_certvalidator.registry import SimpleCertificateStore

from appliance.domain.clock import SystemClock
from appliance.domain.documents.verification import Answer, SignatureReport
from tests.support.documents.pdfs import one_page
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.processes.event_loops import run_apart
from worker.sandbox.verify.verify import verify

_DAY: Final = dt.timedelta(days=1)
_NOW: Final = SystemClock().now().replace(microsecond=0)
_KEYS: Final = {
    name: ec.generate_private_key(ec.SECP256R1()) for name in ("Root", "Inter", "Ana")
}
# pyHanko's timestamp authority for tests has RSA keys alone.
_TSA_KEY: Final = rsa.generate_private_key(65537, 2048)
_AS_CA: Final = {"ca": True, "usage": {"key_cert_sign"}}
_BITS: Final = (
    "digital_signature", "content_commitment", "key_encipherment",
    "data_encipherment", "key_agreement", "key_cert_sign", "crl_sign",
    "encipher_only", "decipher_only",
)  # fmt: skip


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _made(subject: str, issuer: str, **form: Any) -> bytes:
    """Make a certificate, DER.

    Args:
        subject: also of its key.
        issuer: the same.
        form: `ca`, `usage`, `purposes`, `start` and `end` in days from now.
    """
    built = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(_KEYS.get(subject, _TSA_KEY).public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOW + form.get("start", -900) * _DAY)
        .not_valid_after(_NOW + form.get("end", 900) * _DAY)
    )
    ca, usage, purposes = (form.get(key) for key in ("ca", "usage", "purposes"))
    if ca is not None:
        built = built.add_extension(x509.BasicConstraints(ca, None), critical=True)
    if usage is not None:
        bits = x509.KeyUsage(**{bit: bit in usage for bit in _BITS})
        built = built.add_extension(bits, critical=True)
    if purposes is not None:
        extended = x509.ExtendedKeyUsage([ObjectIdentifier(p) for p in purposes])
        built = built.add_extension(extended, critical=True)
    made = built.sign(_KEYS[issuer], hashes.SHA256())
    return made.public_bytes(Encoding.DER)


_ROOT: Final = _made("Root", "Root", **_AS_CA)


def _checked(
    signer: dict[str, Any] | None = None,
    inter: dict[str, Any] | None = None,
    stamped: int | None = None,
) -> SignatureReport:
    """Verify a signature by a chain of two certificates below the root.

    Args:
        signer: form of the signer's certificate.
        inter: form of the one above it.
        stamped: day of the timestamp, from now; None: none.
    """
    own = _made("Ana", "Inter", **(signer or {}))
    above = _made("Inter", "Root", **{**_AS_CA, **(inter or {})})
    tsa = None
    if stamped is not None:
        purpose = ExtendedKeyUsageOID.TIME_STAMPING.dotted_string
        # pyHanko's companion leaves this one untyped.
        store = SimpleCertificateStore()  # type: ignore[no-untyped-call]
        tsa = DummyTimeStamper(
            tsa_cert=asn1.Certificate.load(_made("TSA", "Root", purposes=[purpose])),
            tsa_key=translate_pyca_cryptography_key_to_asn1(_TSA_KEY),
            certs_to_embed=store,
            fixed_dt=_NOW + stamped * _DAY,
        )
    return _signed(SoftwareSigner(_KEYS["Ana"], own, (above, _ROOT)), [_ROOT], tsa)


def _signed(
    made: SoftwareSigner, roots: list[bytes], tsa: DummyTimeStamper | None = None
) -> SignatureReport:
    """Sign a page and verify it by these roots."""
    metadata = PdfSignatureMetadata(
        field_name="Firma", md_algorithm="sha256", subfilter=SigSeedSubFilter.PADES
    )
    out = io.BytesIO()
    writer = IncrementalPdfFileWriter(io.BytesIO(one_page()))
    work = PdfSigner(metadata, signer=made.stock(), timestamper=tsa)
    run_apart(work.async_sign_pdf(writer, output=out))
    return verify(out.getvalue(), roots).signatures[0]


@pytest.mark.parametrize(
    ("purposes", "answer"),
    [
        (["1.2.840.113583.1.1.5"], Answer.YES),  # Adobe
        (["1.3.6.1.5.5.7.3.36"], Answer.YES),  # RFC 9336
        (["1.3.6.1.4.1.311.10.3.12"], Answer.YES),  # Microsoft
        (["1.3.6.1.5.5.7.3.4"], Answer.YES),  # e-mail
        (["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"], Answer.NO),  # TLS
        (["1.3.6.1.5.5.7.3.9"], Answer.NO),  # OCSP
        (["1.3.6.1.5.5.7.3.8"], Answer.NO),  # timestamps
        (["1.2.3.4"], Answer.UNCHECKED),
        (["1.3.6.1.5.5.7.3.1", "1.2.3.4"], Answer.UNCHECKED),
    ],
)
def test_extended_usage_decides_the_identity(
    purposes: list[str], answer: Answer
) -> None:
    """Unknown purposes prove nothing against a certificate."""
    found = _checked({"purposes": purposes})
    assert found.identity.answer is answer
    assert found.trust.answer is Answer.YES


def test_usage_that_is_not_there_restricts_nothing() -> None:
    """Old certificates have neither key usage nor the CA flag."""
    found = _checked({})
    assert {found.identity.answer, found.trust.answer} == {Answer.YES}


def test_other_usage_is_no_matter_of_trust() -> None:
    """The chain is right, whatever the certificate is for."""
    found = _checked({"ca": False, "usage": {"key_encipherment"}})
    assert found.identity.answer is Answer.NO
    assert found.trust.answer is Answer.YES


_OF_AN_AUTHORITY: Final[dict[str, dict[str, Any]]] = {
    "a root": {**_AS_CA},
    "a CA without key usage": {"ca": True},
    "a CA that may sign everything": {
        "ca": True,
        "usage": {"key_cert_sign", "digital_signature", "content_commitment"},
    },
    "a key for certificates alone": {"usage": {"key_cert_sign", "crl_sign"}},
    "a TSA": {
        "ca": False,
        "usage": {"digital_signature"},
        "purposes": [ExtendedKeyUsageOID.TIME_STAMPING.dotted_string],
    },
    "an OCSP responder": {
        "ca": False,
        "usage": {"digital_signature"},
        "purposes": [ExtendedKeyUsageOID.OCSP_SIGNING.dotted_string],
    },
}


@pytest.mark.parametrize("whose", _OF_AN_AUTHORITY)
@pytest.mark.parametrize("place", ["anchor", "below a root", "below a CA"])
def test_key_of_an_authority_signs_no_valid_document(whose: str, place: str) -> None:
    """Not even where its certificate itself is what the verifier trusts."""
    form = _OF_AN_AUTHORITY[whose]
    if place == "below a CA":
        found = _checked(form)
    elif place == "below a root":
        own = _made("Ana", "Root", **form)
        found = _signed(SoftwareSigner(_KEYS["Ana"], own, (_ROOT,)), [_ROOT])
    else:
        own = _made("Ana", "Ana", **form)
        found = _signed(SoftwareSigner(_KEYS["Ana"], own, ()), [_ROOT, own])
    assert found.integrity.answer is Answer.YES
    assert found.identity.answer is Answer.NO
    assert not found.valid


@pytest.mark.parametrize(
    ("signer", "stamped", "answer"),
    [
        ({"end": -1}, None, Answer.UNCHECKED),
        ({"end": -1}, -5, Answer.YES),
        ({"end": -5}, -1, Answer.UNCHECKED),
        ({"start": 1}, None, Answer.NO),
        ({"start": 1}, -1, Answer.NO),
        ({"start": -1}, -5, Answer.NO),
    ],
)
def test_validity_counts_at_the_proven_time(
    signer: dict[str, Any], stamped: int | None, answer: Answer
) -> None:
    """Without a timestamp an expired certificate may have been valid."""
    assert _checked(signer, stamped=stamped).trust.answer is answer


@pytest.mark.parametrize(
    ("inter", "stamped", "answer"),
    [
        ({"end": -1}, None, Answer.UNCHECKED),
        ({"end": -1}, -5, Answer.YES),
        ({"end": -5}, -1, Answer.UNCHECKED),
        ({"ca": False}, None, Answer.NO),
        ({"ca": None}, None, Answer.NO),
        ({"usage": {"digital_signature"}}, None, Answer.NO),
    ],
)
def test_every_certificate_of_the_chain_counts(
    inter: dict[str, Any], stamped: int | None, answer: Answer
) -> None:
    """An authority needs the CA flag, key usage and validity."""
    found = _checked({}, inter, stamped)
    assert found.trust.answer is answer
    assert found.identity.answer is Answer.YES
    if answer is not Answer.YES:
        assert "of the chain" in found.trust.reason


def test_timestamp_of_the_future_proves_nothing() -> None:
    """A TSA whose clock is wrong proves no time."""
    assert _checked({}, stamped=0).time.answer is Answer.YES
    assert _checked({}, stamped=2).time.answer is Answer.UNCHECKED
