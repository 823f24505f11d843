"""Signed PDFs whose certificates use what is rare: string types, names, keys.

for name, pdf in with_string_types(): …
"""

import datetime as dt
import io
from collections.abc import Callable, Iterator
from typing import Any, Final

from asn1crypto import core, keys, x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import (
    CertificatePublicKeyTypes,
    PrivateKeyTypes,
)
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pyhanko.keys.internal import translate_pyca_cryptography_key_to_asn1
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner, SimpleSigner
from pyhanko.sign.fields import SigSeedSubFilter
from pyhanko_certvalidator.registry import SimpleCertificateStore

from tests.support.documents.pdfs import one_page
from tests.support.processes.event_loops import run_apart

SIGNER: Final = "Persona de Prueba"
_START: Final = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
_END: Final = dt.datetime(2040, 1, 1, tzinfo=dt.UTC)
_ECDSA: Final = {"algorithm": "sha256_ecdsa"}
_IDN: Final = "ñandú.example"

_ATTRIBUTES: Final[dict[str, tuple[str, core.Asn1Value]]] = {
    "PrintableString": ("common_name", core.PrintableString(SIGNER)),
    "UTF8String": ("common_name", core.UTF8String(SIGNER)),
    "TeletexString": ("common_name", core.TeletexString(SIGNER)),
    "UniversalString": ("common_name", core.UniversalString(SIGNER)),
    "BMPString": ("common_name", core.BMPString(SIGNER)),
    "NumericString": ("2.5.4.1234", core.NumericString("1414")),
    "e-mail": ("email_address", x509.EmailAddress("ana@example.com")),
    "international e-mail": ("email_address", x509.EmailAddress(f"ana@{_IDN}")),
    "Latin-1 e-mail": ("email_address", core.IA5String("ana@example.com")),
    "domain component": ("domain_component", x509.DNSName(_IDN)),
    "GeneralString": ("2.5.4.1234", core.GeneralString("Ñandú")),
    "GraphicString": ("2.5.4.1234", core.GraphicString("Ñandú")),
    "VisibleString": ("2.5.4.1234", core.VisibleString("x")),
}
"""Attributes of a name, by their type (X.520; RFC 5280, appendix A)."""

_PRIVATE_KEYS: Final[dict[str, tuple[Callable[[], Any], str]]] = {
    "RSA": (lambda: rsa.generate_private_key(65537, 2048), "sha384"),
    "P-256": (lambda: ec.generate_private_key(ec.SECP256R1()), "sha256"),
    "P-521": (lambda: ec.generate_private_key(ec.SECP521R1()), "sha512"),
    "brainpool": (lambda: ec.generate_private_key(ec.BrainpoolP256R1()), "sha256"),
    "DSA": (lambda: dsa.generate_private_key(2048), "sha256"),
    "Ed25519": (ed25519.Ed25519PrivateKey.generate, "sha512"),
    "Ed448": (ed448.Ed448PrivateKey.generate, "shake256"),
}
"""Signers' keys and the digest of the document."""


def with_string_types() -> Iterator[tuple[str, bytes]]:
    """Give a signed file for each string type of a name, in subject and issuer."""
    for name, (attribute, value) in _ATTRIBUTES.items():
        odd = _attribute(attribute, value)
        own = [] if attribute == "common_name" else [_common_name(SIGNER)]
        yield name, _signed(_name(*own, odd), _name(_common_name("CA"), odd))


def with_general_names() -> bytes:
    """Give a file whose signer has every kind of alternative name, and constraints."""
    names = [
        x509.GeneralName("dns_name", x509.DNSName(_IDN)),
        x509.GeneralName("rfc822_name", x509.EmailAddress(f"ana@{_IDN}")),
        x509.GeneralName("uniform_resource_identifier", x509.URI(f"https://{_IDN}/ñ")),
        x509.GeneralName("ip_address", x509.IPAddress("192.0.2.1")),
        x509.GeneralName("ip_address", x509.IPAddress("2001:db8::1")),
        x509.GeneralName("directory_name", _name(_common_name(SIGNER))),
        x509.GeneralName("registered_id", "1.2.3"),
    ]
    point = {
        "distribution_point": x509.DistributionPointName("full_name", [names[2]]),
    }
    notice = {
        "policy_qualifier_id": "user_notice",
        "qualifier": {"explicit_text": x509.DisplayText("bmp_string", "Ñandú")},
    }
    policy = {"policy_identifier": "1.2.3", "policy_qualifiers": [notice]}
    more = [
        _extension("subject_alt_name", names),
        _extension("issuer_alt_name", names),
        _extension("crl_distribution_points", [point]),
        _extension("certificate_policies", [policy]),
        _extension(
            "authority_information_access",
            [{"access_method": "ocsp", "access_location": names[2]}],
        ),
    ]
    permitted = [
        {"base": x509.GeneralName("dns_name", x509.DNSName("example"))},
        {"base": x509.GeneralName("rfc822_name", x509.EmailAddress("example"))},
        {"base": x509.GeneralName("uniform_resource_identifier", x509.URI(_IDN))},
        {"base": x509.GeneralName("ip_address", x509.IPAddress("192.0.2.0/24"))},
        {"base": x509.GeneralName("directory_name", _name())},
    ]
    limits = [_extension("name_constraints", {"permitted_subtrees": permitted})]
    subject, issuer = _name(_common_name(SIGNER)), _name(_common_name("CA"))
    return _signed(subject, issuer, more=more, of_ca=limits)


def with_keys() -> Iterator[tuple[str, bytes]]:
    """Give a signed file for each kind of key."""
    subject, issuer = _name(_common_name(SIGNER)), _name(_common_name("CA"))
    for name, (make, digest) in _PRIVATE_KEYS.items():
        yield name, _signed(subject, issuer, key=make(), digest=digest)


def _attribute(name: str, value: core.Asn1Value) -> x509.NameTypeAndValue:
    """One attribute, of a string type that its schema need not allow."""
    # Through DER: asn1crypto reads more than it lets a caller set.
    der = x509.NameType(name).dump() + value.dump()
    sequence = core.Sequence(contents=der).dump()
    parsed: x509.NameTypeAndValue = x509.NameTypeAndValue.load(sequence)
    return parsed


def _common_name(text: str) -> x509.NameTypeAndValue:
    return _attribute("common_name", core.UTF8String(text))


def _name(*attributes: x509.NameTypeAndValue) -> x509.Name:
    parts = [x509.RelativeDistinguishedName([each]) for each in attributes]
    return x509.Name("", x509.RDNSequence(parts))


def _extension(name: str, value: object, *, critical: bool = False) -> dict[str, Any]:
    return {"extn_id": name, "critical": critical, "extn_value": value}


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    *,
    key: PrivateKeyTypes | None = None,
    digest: str = "sha256",
    more: list[dict[str, Any]] | None = None,
    of_ca: list[dict[str, Any]] | None = None,
) -> bytes:
    """One page, signed by stock pyHanko, with the certificate of its CA.

    Args:
        subject: of the signer.
        issuer: of the CA, which is its own.
        key: the signer's; None: one on P-256.
        digest: as pyHanko names it.
        more: extensions of the signer's certificate.
        of_ca: extensions of the CA's.
    """
    ca_key = ec.generate_private_key(ec.SECP256R1())
    key = key or ec.generate_private_key(ec.SECP256R1())
    is_ca = _extension("basic_constraints", {"ca": True}, critical=True)
    signs = _extension("key_usage", {"digital_signature", "non_repudiation"})
    ca = _certificate(
        issuer, issuer, ca_key.public_key(), ca_key, [is_ca, *(of_ca or [])]
    )
    public: Any = key.public_key()
    own = _certificate(subject, issuer, public, ca_key, [signs, *(more or [])])
    # pyHanko's companion leaves this one untyped.
    store = SimpleCertificateStore()  # type: ignore[no-untyped-call]
    store.register(ca)
    signer = SimpleSigner(
        signing_cert=own,
        signing_key=translate_pyca_cryptography_key_to_asn1(key),
        cert_registry=store,
    )
    metadata = PdfSignatureMetadata(
        field_name="Firma1",
        md_algorithm=digest,
        subfilter=SigSeedSubFilter.PADES,
        reason="Ñandú 漢字",
        location="Córdoba",
        name=SIGNER,
    )
    out = io.BytesIO()
    writer = IncrementalPdfFileWriter(io.BytesIO(one_page()))
    run_apart(PdfSigner(metadata, signer=signer).async_sign_pdf(writer, output=out))
    return out.getvalue()


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    public: CertificatePublicKeyTypes,
    ca_key: ec.EllipticCurvePrivateKey,
    extensions: list[dict[str, Any]],
) -> x509.Certificate:
    """A certificate of any subject; pyca/cryptography refuses some string types."""
    spki = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    signed = x509.TbsCertificate(
        {
            "version": "v3",
            "serial_number": 7 + int.from_bytes(spki[-8:]),
            "signature": _ECDSA,
            "issuer": issuer,
            "validity": {
                "not_before": x509.Time("utc_time", _START),
                "not_after": x509.Time("utc_time", _END),
            },
            "subject": subject,
            "subject_public_key_info": keys.PublicKeyInfo.load(spki),
            "extensions": extensions,
        }
    )
    value = ca_key.sign(signed.dump(), ec.ECDSA(hashes.SHA256()))
    made = x509.Certificate(
        {
            "tbs_certificate": signed,
            "signature_algorithm": _ECDSA,
            "signature_value": value,
        }
    )
    parsed: x509.Certificate = x509.Certificate.load(made.dump())
    return parsed
