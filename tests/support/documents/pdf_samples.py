"""Small PDFs made on the spot, and a signer whose key is plain software."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.documents import PageBox
from appliance.domain.keys import DigestAlgorithm, KeyAlgorithm, SignatureScheme
from appliance.domain.vocab import Restriction
from worker.pades import (
    PreparedSignature,
    SignatureMethod,
    SignaturePlan,
    assemble,
    check,
    method_for,
    prepare,
)
from worker.pades.appearance.fonts import StampFonts

SIGNED_AT = dt.datetime(2026, 11, 20, 17, 3, 11, tzinfo=dt.UTC)

_HASHES = {
    DigestAlgorithm.SHA256: hashes.SHA256(),
    DigestAlgorithm.SHA384: hashes.SHA384(),
    DigestAlgorithm.SHA512: hashes.SHA512(),
}

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

A4 = PageBox(0, 0, 595, 842, 0)


def make_pdf(
    pages: Sequence[PageBox] = (A4,),
    *,
    media: tuple[float, float, float, float] | None = None,
    count: int | None = None,
    end: bytes = b"\n",
    edit: tuple[bytes, bytes] = (b"", b""),
) -> bytes:
    """A PDF with a line of text at the middle of each page.

    Args:
        pages: the boxes as shown; written as CropBox where `media` is given.
        media: the MediaBox of all pages, when it is not the visible box.
        count: what `/Count` claims, when it is not the truth.
        end: what follows `%%EOF`.
        edit: what to replace in every object, and by what.
    """
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>"
        % (
            b" ".join(b"%d 0 R" % (4 + 2 * i) for i in range(len(pages))),
            len(pages) if count is None else count,
        ),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, box in enumerate(pages, 1):
        outer = media or (box.x0, box.y0, box.x1, box.y1)
        crop = b"/CropBox [%g %g %g %g]" % (box.x0, box.y0, box.x1, box.y1)
        unit = b"" if box.user_unit == 1 else b"/UserUnit %g " % box.user_unit
        middle = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
        text = b"BT /F1 18 Tf %g %g Td (Page %d) Tj ET" % (*middle, number)
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [%g %g %g %g] %s /Rotate %d %s"
            b"/Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>"
            % (*outer, crop if media else b"", box.rotate, unit, 2 * number + 3),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
        ]
    out, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        edited = body.replace(*edit) if edit[0] else body
        out += b"%d 0 obj\n%s\nendobj\n" % (number, edited)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(objects) + 1)
    return bytes(out + b"startxref\n%d\n%%%%EOF%s" % (start, end))


@dataclass(frozen=True)
class SoftwareSigner:
    """A signer's key and certificate, and the CA that made it."""

    key: PrivateKey
    certificate: bytes
    chain: tuple[bytes, ...]

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
    algorithm: KeyAlgorithm = KeyAlgorithm.RSA_2048, key: PrivateKey | None = None
) -> SoftwareSigner:
    """A signer under a CA of its own, with a key of a kind or the one given."""
    key = key or _key(algorithm)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test CA")])
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "AR"),
            x509.NameAttribute(NameOID.COMMON_NAME, "Ana Núñez"),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, "CUIL 20267565393"),
        ]
    )
    ca = _certificate(ca_name, ca_name, ca_key.public_key(), ca_key, is_ca=True)
    own = _certificate(name, ca_name, key.public_key(), ca_key, is_ca=False)
    return SoftwareSigner(key, own, (ca,))


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


def make_plan(
    signer: SoftwareSigner,
    layout: StampLayout | None = None,
    restriction: Restriction = Restriction.NO_VALUE,
    method: SignatureMethod | None = None,
) -> SignaturePlan:
    """A plan of the test's signer, who signs by the usual method unless told."""
    return SignaturePlan(
        "Firma-7", layout, restriction, SIGNED_AT, "Ana", signer.certificate,
        signer.chain, method or method_for(signer.certificate),
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
