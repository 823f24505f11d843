"""A CA outside the installation: root, issuing CA, and whatever it certifies.

    ca = OutsideCa(now)
    pem = bundle(ca.certify(spki, CUIL), ca.issuing)

Every field that an import looks at can be made wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_public_key,
)
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
DOCUMENT_SIGNING: Final = x509.ObjectIdentifier("1.3.6.1.5.5.7.3.36")


@cache
def rsa_key(name: str = "a", bits: int = 2048) -> rsa.RSAPrivateKey:
    """An RSA key, the same for the same name: making one is slow."""
    del name
    return rsa.generate_private_key(65537, bits)


def ec_key() -> ec.EllipticCurvePrivateKey:
    """A fresh P-256 key."""
    return ec.generate_private_key(ec.SECP256R1())


def spki_of(key: PrivateKey) -> bytes:
    """SubjectPublicKeyInfo of a key, DER."""
    return key.public_key().public_bytes(
        Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    )


def named(name: str, serial: str | None = None) -> x509.Name:
    """C=AR, CN, and a serialNumber where there is one."""
    parts = [
        x509.NameAttribute(x509.NameOID.COUNTRY_NAME, "AR"),
        x509.NameAttribute(x509.NameOID.COMMON_NAME, name),
    ]
    if serial is not None:
        parts.append(x509.NameAttribute(x509.NameOID.SERIAL_NUMBER, serial))
    return x509.Name(parts)


def usage(*bits: str) -> x509.KeyUsage:
    """A keyUsage extension with these bits set."""
    every = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    )
    return x509.KeyUsage(**{bit: bit in bits for bit in every})


@dataclass(frozen=True)
class Form:
    """What a certificate says; every default is that of a sound one."""

    subject: x509.Name
    start: datetime
    end: datetime
    ca: bool | None = False
    """None: no basicConstraints at all."""
    path_length: int | None = None
    usage: x509.KeyUsage | None = field(
        default_factory=lambda: usage("digital_signature", "content_commitment")
    )
    purposes: Sequence[x509.ObjectIdentifier] | None = (
        DOCUMENT_SIGNING,
        ExtendedKeyUsageOID.EMAIL_PROTECTION,
    )
    purposes_critical: bool = False
    critical: str | None = None
    """OID of one more extension that is critical and known to nobody."""
    digest: hashes.SHA224 | hashes.SHA256 | hashes.SHA384 = field(
        default_factory=hashes.SHA256
    )
    ocsp: str | None = None
    """Where its status is asked for."""
    crl: str | None = None
    """Where the list is that it would stand in."""
    no_check: bool = False


def make(
    form: Form, spki: bytes, issuer: x509.Name, signer: PrivateKey
) -> x509.Certificate:
    """Sign a certificate."""
    public = load_der_public_key(spki)
    assert isinstance(public, rsa.RSAPublicKey | ec.EllipticCurvePublicKey)
    builder = (
        x509.CertificateBuilder()
        .subject_name(form.subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(form.start)
        .not_valid_after(form.end)
    )
    if form.ca is not None:
        basic = x509.BasicConstraints(form.ca, form.path_length)
        builder = builder.add_extension(basic, critical=True)
    if form.usage is not None:
        builder = builder.add_extension(form.usage, critical=True)
    if form.purposes is not None:
        builder = builder.add_extension(
            x509.ExtendedKeyUsage(form.purposes), critical=form.purposes_critical
        )
    if form.ocsp is not None:
        at = x509.UniformResourceIdentifier(form.ocsp)
        access = x509.AccessDescription(AuthorityInformationAccessOID.OCSP, at)
        builder = builder.add_extension(
            x509.AuthorityInformationAccess([access]), critical=False
        )
    if form.crl is not None:
        name = x509.UniformResourceIdentifier(form.crl)
        point = x509.DistributionPoint([name], None, None, None)
        builder = builder.add_extension(
            x509.CRLDistributionPoints([point]), critical=False
        )
    if form.no_check:
        builder = builder.add_extension(x509.OCSPNoCheck(), critical=False)
    if form.critical is not None:
        unknown = x509.UnrecognizedExtension(
            x509.ObjectIdentifier(form.critical), b"\x05\x00"
        )
        builder = builder.add_extension(unknown, critical=True)
    return builder.sign(signer, form.digest)


class OutsideCa:
    """A root and the CA below it that certifies people.

    Args:
        now: aware; both are good from ten days before for ten years.
        name: of the CA.
        site: where it tells of revocations, if it does: `http://host:port`.
        issuing: what the issuing CA's certificate says differently.
    """

    def __init__(
        self,
        now: datetime,
        name: str = "AC de afuera",
        site: str | None = None,
        **issuing: Any,
    ) -> None:
        self.now = now
        self.site = site
        self.root_key, self.key = ec_key(), ec_key()
        start, end = now - timedelta(days=10), now + timedelta(days=3650)
        as_ca: dict[str, Any] = {
            "start": start,
            "end": end,
            "ca": True,
            "usage": usage("key_cert_sign", "crl_sign"),
            "purposes": None,
        }
        self.root_name = named(f"{name} raíz")
        self.name = named(name)
        form = Form(subject=self.root_name, **as_ca)
        self.root = make(form, spki_of(self.root_key), self.root_name, self.root_key)
        told = {} if site is None else {"crl": f"{site}/root.crl"}
        form = Form(subject=self.name, **(as_ca | told | issuing))
        spki = spki_of(self.key)
        self.issuing = make(form, spki, self.root_name, self.root_key)

    def form(self, cuil: str, **changes: Any) -> Form:
        """What a person's certificate says."""
        values: dict[str, Any] = {
            "subject": named("Ana Pérez", f"CUIL {cuil}"),
            "start": self.now - timedelta(days=1),
            "end": self.now + timedelta(days=365),
            **self._told(),
            **changes,
        }
        return Form(**values)

    def _told(self) -> dict[str, str]:
        if self.site is None:
            return {}
        return {"ocsp": f"{self.site}/ocsp", "crl": f"{self.site}/ca.crl"}

    def certify(self, spki: bytes, cuil: str, **changes: Any) -> x509.Certificate:
        """A person's certificate, sound but for `changes`."""
        return make(self.form(cuil, **changes), spki, self.name, self.key)


def bundle(*certificates: x509.Certificate) -> bytes:
    """Certificates in PEM, one after another."""
    return b"".join(one.public_bytes(Encoding.PEM) for one in certificates)


def der(certificate: x509.Certificate) -> bytes:
    """A certificate in DER."""
    return certificate.public_bytes(Encoding.DER)
