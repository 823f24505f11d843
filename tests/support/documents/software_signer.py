"""A software signer, the stock way: the reference that ours is compared with.

Its keys are made in memory and prove nothing. It also makes the signed and
certified documents that some tests start from.
"""

import datetime as dt
import io
from dataclasses import dataclass
from functools import cache

from asn1crypto import keys, x509
from cryptography import x509 as pyca
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner, SimpleSigner
from pyhanko.sign.fields import MDPPerm, SigSeedSubFilter
from pyhanko_certvalidator.registry import SimpleCertificateStore

from tests.support.processes.event_loops import run_apart

_VALID = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SoftwareSigner:
    """A key with a certificate, and the root that issued it."""

    signer: SimpleSigner
    root: bytes
    """DER of the root certificate."""


@cache
def software_signer(name: str = "Ada Prueba") -> SoftwareSigner:
    """Make a signer under a root of its own; the same name gives the same one."""
    root_key = rsa.generate_private_key(65537, 2048)
    root = _certificate("Test root", root_key, "Test root", root_key, is_ca=True)
    key = rsa.generate_private_key(65537, 2048)
    leaf = _certificate(name, key, "Test root", root_key, is_ca=False)
    # pyHanko's companion leaves this one untyped.
    store = SimpleCertificateStore()  # type: ignore[no-untyped-call]
    store.register(x509.Certificate.load(_der(root)))
    pkcs8 = key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    signer = SimpleSigner(
        signing_cert=x509.Certificate.load(_der(leaf)),
        signing_key=keys.PrivateKeyInfo.load(pkcs8),
        cert_registry=store,
    )
    return SoftwareSigner(signer, _der(root))


def signed(
    pdf: bytes, *, certify: MDPPerm | None = None, field: str = "Firma1"
) -> bytes:
    """Sign or certify a document, PAdES B-B and invisible.

    Args:
        pdf: a document that is not encrypted.
        certify: what may still change, for a certification signature.
        field: name of the signature field that is made.
    """
    metadata = PdfSignatureMetadata(
        field_name=field,
        md_algorithm="sha256",
        subfilter=SigSeedSubFilter.PADES,
        certify=certify is not None,
        docmdp_permissions=certify or MDPPerm.FILL_FORMS,
    )
    writer = IncrementalPdfFileWriter(io.BytesIO(pdf), strict=False)
    signer = PdfSigner(metadata, signer=software_signer().signer)
    out = io.BytesIO()
    run_apart(signer.async_sign_pdf(writer, output=out))
    return out.getvalue()


def _certificate(
    subject: str,
    key: rsa.RSAPrivateKey,
    issuer: str,
    issuer_key: rsa.RSAPrivateKey,
    *,
    is_ca: bool,
) -> pyca.Certificate:
    """Issue a certificate that is valid around now."""
    now = dt.datetime.now(dt.UTC)
    usage = pyca.KeyUsage(
        digital_signature=not is_ca,
        content_commitment=not is_ca,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        pyca.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(pyca.random_serial_number())
        .not_valid_before(now - _VALID)
        .not_valid_after(now + _VALID)
        .add_extension(pyca.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .sign(issuer_key, hashes.SHA256())
    )


def _name(common_name: str) -> pyca.Name:
    return pyca.Name([pyca.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _der(certificate: pyca.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)
