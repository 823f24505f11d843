"""A small PKI in software, with a clock: CA, OCSP, CRLs, and a TSA that renews.

pki = LongTermPki(clock)
tsa = pki.tsa()
data = pki.evidence(signer.certificate)
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from asn1crypto import keys
from asn1crypto import x509 as asn1
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509 import ocsp
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID
from pyhanko.sign.timestamps import DummyTimeStamper
from pyhanko_certvalidator.registry import SimpleCertificateStore

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.requests.levels import ValidationData
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.factories.fakes import MovingClock
from tests.support.pki.outside_ca import Form, der, make, named, rsa_key, spki_of, usage
from worker.pades.algorithms import PublicKey

_LIFE = dt.timedelta(days=60 * 366)
_DAY = dt.timedelta(days=1)


@dataclass
class LongTermPki:
    """A root and a CA that outlive the test; what they certify does not."""

    clock: MovingClock
    revoked: set[int] = field(default_factory=set)
    """Serial numbers that the CRLs list and OCSP tells."""

    def __post_init__(self) -> None:
        now = self.clock.now()
        as_ca: dict[str, Any] = {
            "start": now - _DAY,
            "end": now + _LIFE,
            "ca": True,
            "usage": usage("key_cert_sign", "crl_sign"),
            "purposes": None,
        }
        self.root_name, self.ca_name = named("Raíz larga"), named("CA larga")
        self.root_key, self.ca_key = rsa_key("root"), rsa_key("ca")
        self.root = make(
            Form(subject=self.root_name, **as_ca),
            spki_of(self.root_key),
            self.root_name,
            self.root_key,
        )
        self.ca = make(
            Form(subject=self.ca_name, **as_ca),
            spki_of(self.ca_key),
            self.root_name,
            self.root_key,
        )
        self.responder_key = rsa_key("ocsp")

    @property
    def chain(self) -> tuple[bytes, ...]:
        """What stands above everything certified here, the root last."""
        return der(self.ca), der(self.root)

    def signer(self, days: int = 730) -> SoftwareSigner:
        """A person with a certificate of today."""
        key = rsa_key("signer")
        return SoftwareSigner(
            key, self.signer_certificate(key.public_key(), days), self.chain
        )

    def signer_certificate(self, public: PublicKey, days: int = 730) -> bytes:
        """A person's certificate for a key, of today."""
        return self._certify(
            named("Ana Núñez", "CUIL 20267565393"), public, days,
            usage("digital_signature", "content_commitment"), None,
        )  # fmt: skip

    def tsa(self, days: int = 1095) -> "SoftwareTsa":
        """A TSA with a certificate of today."""
        key = rsa_key("tsa")
        made = self.tsa_certificate(key.public_key(), days)
        return SoftwareTsa(self.clock, made, self.chain, key)

    def tsa_certificate(self, public: PublicKey, days: int = 1095) -> bytes:
        """A TSA's certificate for a key, of today."""
        return self._certify(
            named("TSA"), public, days,
            usage("digital_signature"), ExtendedKeyUsageOID.TIME_STAMPING,
        )  # fmt: skip

    def serial(self, certificate: bytes) -> int:
        """A certificate's serial number."""
        return x509.load_der_x509_certificate(certificate).serial_number

    def revoke(self, certificate: bytes) -> None:
        """Revoke one from now on, without a reason."""
        self.revoked.add(self.serial(certificate))

    def evidence(self, certificate: bytes) -> ValidationData:
        """Certificates, an OCSP answer and a CRL of this moment."""
        leaf = x509.load_der_x509_certificate(certificate)
        response, responder = self.answer(leaf)
        return ValidationData(
            certificates=(certificate, *self.chain, responder),
            ocsps=(response,),
            crls=(self.crl(of_root=True),),
        )

    def tsa_evidence(self, certificate: bytes) -> ValidationData:
        """The same of a TSA: by CRLs, whose signer's certificate lasts."""
        return ValidationData(
            certificates=(certificate, *self.chain),
            crls=(self.crl(), self.crl(of_root=True)),
        )

    def answer(self, leaf: x509.Certificate) -> tuple[bytes, bytes]:
        """An OCSP answer, and its responder's certificate."""
        purpose = ExtendedKeyUsageOID.OCSP_SIGNING
        responder = x509.load_der_x509_certificate(
            self._certify(
                named("OCSP"), self.responder_key.public_key(), 30,
                usage("digital_signature"), purpose,
            )
        )  # fmt: skip
        now = self.clock.now().replace(microsecond=0)
        is_revoked = leaf.serial_number in self.revoked
        made = (
            ocsp.OCSPResponseBuilder()
            .add_response(
                cert=leaf,
                issuer=self.ca,
                algorithm=hashes.SHA1(),  # noqa: S303 (RFC 5019, 2.1.1)
                cert_status=ocsp.OCSPCertStatus.REVOKED
                if is_revoked
                else ocsp.OCSPCertStatus.GOOD,
                this_update=now,
                next_update=now + _DAY,
                revocation_time=now if is_revoked else None,
                revocation_reason=None,
            )
            .responder_id(ocsp.OCSPResponderEncoding.HASH, responder)
            .certificates([responder])
            .sign(self.responder_key, hashes.SHA256())
        )
        return made.public_bytes(Encoding.DER), der(responder)

    def crl(self, *, of_root: bool = False) -> bytes:
        """The CRL of this moment."""
        now = self.clock.now().replace(microsecond=0)
        issuer = self.root if of_root else self.ca
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(issuer.subject)
            .last_update(now)
            .next_update(now + 7 * _DAY)
            .add_extension(x509.CRLNumber(int(now.timestamp())), critical=False)
        )
        for serial in () if of_root else sorted(self.revoked):
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder()
                .serial_number(serial)
                .revocation_date(now)
                .build()
            )
        key = self.root_key if of_root else self.ca_key
        return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)

    def _certify(
        self,
        name: x509.Name,
        public: PublicKey,
        days: int,
        bits: x509.KeyUsage,
        purpose: x509.ObjectIdentifier | None,
    ) -> bytes:
        """A certificate of the CA, from yesterday on."""
        now = self.clock.now()
        crl_at = x509.UniformResourceIdentifier("http://ca.invalid/ca.crl")
        ocsp_at = x509.UniformResourceIdentifier("http://ca.invalid/ocsp")
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.ca_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + days * _DAY)
            .add_extension(bits, critical=True)
        )
        if purpose is not None:
            # A TSA's has to be critical (RFC 3161, 2.3).
            is_tsa = purpose == ExtendedKeyUsageOID.TIME_STAMPING
            builder = builder.add_extension(
                x509.ExtendedKeyUsage([purpose]), critical=is_tsa
            )
        if purpose == ExtendedKeyUsageOID.OCSP_SIGNING:
            builder = builder.add_extension(x509.OCSPNoCheck(), critical=False)
        else:
            builder = builder.add_extension(
                x509.CRLDistributionPoints(
                    [x509.DistributionPoint([crl_at], None, None, None)]
                ),
                critical=False,
            ).add_extension(
                x509.AuthorityInformationAccess(
                    [
                        x509.AccessDescription(
                            AuthorityInformationAccessOID.OCSP, ocsp_at
                        )
                    ]
                ),
                critical=False,
            )
        return der(builder.sign(self.ca_key, hashes.SHA256()))


@dataclass
class SoftwareTsa:
    """A timestamp authority at our own port."""

    clock: MovingClock
    certificate: bytes
    chain: tuple[bytes, ...]
    key: rsa.RSAPrivateKey
    is_away: bool = False
    calls: int = 0

    async def stamp(self, imprint: bytes, digest: DigestAlgorithm) -> bytes:
        """See `TimestampAuthority`.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE` when it is away.
        """
        self.calls += 1
        if self.is_away:
            raise ApplianceError(ErrorCode.TSA_UNAVAILABLE)
        return self.token(imprint, digest)

    async def stamp_all(
        self, imprints: Sequence[bytes], digest: DigestAlgorithm
    ) -> list[bytes]:
        """See `OwnTimestampAuthority`."""
        return [await self.stamp(imprint, digest) for imprint in imprints]

    def token(self, imprint: bytes, digest: DigestAlgorithm) -> bytes:
        """A token of this moment."""
        key = keys.PrivateKeyInfo.load(
            self.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        )
        # pyHanko's companion leaves this one untyped.
        store = SimpleCertificateStore()  # type: ignore[no-untyped-call]
        for each in self.chain:
            store.register(asn1.Certificate.load(each))
        stamper = DummyTimeStamper(
            asn1.Certificate.load(self.certificate),
            key,
            certs_to_embed=store,
            fixed_dt=self.clock.now(),
        )
        _, request = stamper.request_cms(imprint, digest.value)
        response = stamper.request_tsa_response(request)
        return bytes(response["time_stamp_token"].dump())
