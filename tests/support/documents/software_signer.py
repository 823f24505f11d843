"""A signer whose key is plain software: for our engine, and the stock way.

Its keys are made in memory and prove nothing. The stock way is the reference that
ours is compared with; it also makes the signed and certified documents that some
tests start from.
"""

import datetime as dt
import io
from dataclasses import dataclass
from functools import cache

from asn1crypto.algos import SignedDigestAlgorithm
from asn1crypto.x509 import Certificate
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from pyhanko.keys.internal import translate_pyca_cryptography_key_to_asn1
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner, SimpleSigner
from pyhanko.sign.fields import MDPPerm, SigSeedSubFilter
from pyhanko_certvalidator.registry import SimpleCertificateStore

from appliance.domain.keys.hsm_keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    SignatureScheme,
)
from tests.support.processes.event_loops import run_apart
from worker.pades import (
    PreparedSignature,
    SignatureMethod,
    SignaturePlan,
    assemble,
    method_for,
)

_HASHES = {
    DigestAlgorithm.SHA256: hashes.SHA256(),
    DigestAlgorithm.SHA384: hashes.SHA384(),
    DigestAlgorithm.SHA512: hashes.SHA512(),
}

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class SoftwareSigner:
    """A signer's key and certificate, and the CA that made it.

    Args:
        key: of the signer.
        certificate: of that key, DER.
        chain: of the CAs above, the root last, DER.
    """

    key: PrivateKey
    certificate: bytes
    chain: tuple[bytes, ...]

    @property
    def root(self) -> bytes:
        """The root certificate, DER."""
        return self.chain[-1]

    def stock(self, mechanism: SignedDigestAlgorithm | None = None) -> SimpleSigner:
        """The same signer for pyHanko, by its usual mechanism unless told."""
        # pyHanko's companion leaves this one untyped.
        store = SimpleCertificateStore()  # type: ignore[no-untyped-call]
        store.register_multiple(Certificate.load(one) for one in self.chain)
        return SimpleSigner(
            signing_cert=Certificate.load(self.certificate),
            signing_key=translate_pyca_cryptography_key_to_asn1(self.key),
            cert_registry=store,
            signature_mechanism=mechanism,
        )

    def value(self, digest: bytes, method: SignatureMethod | None = None) -> bytes:
        """Sign a digest as the HSM would, by the usual method unless told."""
        method = method or method_for(self.certificate)
        algorithm = _HASHES[method.digest]
        prehashed = utils.Prehashed(algorithm)
        if not isinstance(self.key, rsa.RSAPrivateKey):
            return self.key.sign(digest, ec.ECDSA(prehashed))
        if method.scheme is SignatureScheme.RSA_PSS:
            pss = padding.PSS(padding.MGF1(algorithm), algorithm.digest_size)
            return self.key.sign(digest, pss, prehashed)
        return self.key.sign(digest, padding.PKCS1v15(), prehashed)

    def complete(self, prepared: PreparedSignature, plan: SignaturePlan) -> bytes:
        """The increment with this signer's value in it."""
        return self.filled(prepared, plan, self.value(prepared.digest, plan.method))

    def filled(
        self,
        prepared: PreparedSignature,
        plan: SignaturePlan,
        value: bytes,
        token: bytes | None = None,
    ) -> bytes:
        """The increment with a value in it, and a timestamp's token."""
        return assemble(
            prepared.increment,
            contents_at=prepared.contents_at,
            contents_length=prepared.contents_length,
            signed_attributes=prepared.signed_attributes,
            signature=value,
            method=plan.method,
            certificate=plan.certificate,
            chain=plan.chain,
            token=token,
        )


def make_signer(
    algorithm: KeyAlgorithm = KeyAlgorithm.RSA_2048,
    key: PrivateKey | None = None,
    name: str = "Ana Núñez",
) -> SoftwareSigner:
    """A signer under a CA of its own, with a key of a kind or the one given."""
    key = key or _key(algorithm)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test root")])
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "AR"),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, "CUIL 20267565393"),
        ]
    )
    ca = _certificate(ca_name, ca_name, ca_key.public_key(), ca_key, is_ca=True)
    own = _certificate(subject, ca_name, key.public_key(), ca_key, is_ca=False)
    return SoftwareSigner(key, own, (ca,))


@cache
def software_signer(name: str = "Ada Prueba") -> SoftwareSigner:
    """A signer under a root of its own; the same name gives the same one."""
    return make_signer(name=name)


def signed(
    pdf: bytes,
    *,
    certify: MDPPerm | None = None,
    field: str = "Firma1",
    by: SoftwareSigner | None = None,
) -> bytes:
    """Sign or certify a document, PAdES B-B and invisible.

    Args:
        pdf: a document that is not encrypted.
        certify: what may still change, for a certification signature.
        field: name of the signature field that is made.
        by: the signer; None: the usual one.
    """
    metadata = PdfSignatureMetadata(
        field_name=field,
        md_algorithm="sha256",
        subfilter=SigSeedSubFilter.PADES,
        certify=certify is not None,
        docmdp_permissions=certify or MDPPerm.FILL_FORMS,
    )
    writer = IncrementalPdfFileWriter(io.BytesIO(pdf), strict=False)
    signer = PdfSigner(metadata, signer=(by or software_signer()).stock())
    out = io.BytesIO()
    run_apart(signer.async_sign_pdf(writer, output=out))
    return out.getvalue()


def _key(algorithm: KeyAlgorithm) -> PrivateKey:
    curves = {
        KeyAlgorithm.EC_P256: ec.SECP256R1(),
        KeyAlgorithm.EC_P384: ec.SECP384R1(),
    }
    if algorithm in curves:
        return ec.generate_private_key(curves[algorithm])
    return rsa.generate_private_key(65537, int(algorithm.removeprefix("rsa-")))


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey,
    ca_key: ec.EllipticCurvePrivateKey,
    *,
    is_ca: bool,
) -> bytes:
    """One certificate, valid in the years around the tests' time."""
    usage = x509.KeyUsage(
        digital_signature=not is_ca,
        content_commitment=not is_ca,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(dt.datetime(2040, 1, 1, tzinfo=dt.UTC))
        .add_extension(x509.BasicConstraints(is_ca, None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
            critical=False,
        )
        .sign(ca_key, hashes.SHA256())
    )
    return built.public_bytes(Encoding.DER)
