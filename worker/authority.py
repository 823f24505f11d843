"""The internal certification authority: signers' keys and certificates.

    authority = Authority(session, read_ca(settings))
    issued = await authority.enrol(ref, KeyAlgorithm.RSA_2048, subject, now)

The CA's key never leaves the HSM; `docs/pki.md` describes the certificates.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
    HsmRefusedError,
    HsmUnavailableError,
)
from appliance.domain.hsm import KeyAlgorithm, KeyReference
from appliance.domain.person import parse_cuil
from appliance.domain.vocab import VouchedBy
from hsm_config.certificates import is_demo, key_usage, new_serial
from hsm_config.objects import CA_KEY
from worker.hsm_session import HsmSession

ARC: Final = "2.25.203864791873263086617336735730773149798"
"""Root of the project's object identifiers. Source: ITU-T X.667, 7 (a UUID)."""

POLICIES: Final = {
    VouchedBy.VOUCHED: x509.ObjectIdentifier(f"{ARC}.1.1"),
    VouchedBy.OFFICER: x509.ObjectIdentifier(f"{ARC}.1.2"),
    VouchedBy.EXTERNAL: x509.ObjectIdentifier(f"{ARC}.1.3"),
    VouchedBy.DEMO: x509.ObjectIdentifier(f"{ARC}.1.4"),
}
"""How the person came to be certified, as a certificate policy; never changed
or reused. Source: decisions "who may be certified"."""

DOCUMENT_SIGNING: Final = x509.ObjectIdentifier("1.3.6.1.5.5.7.3.36")
"""id-kp-documentSigning. Source: RFC 9336, 3.1."""

VALIDITY: Final = timedelta(days=2 * 365)
"""How long a signer's certificate is good."""
BACKDATE: Final = timedelta(minutes=5)
"""For readers whose clock is behind."""

_NAME_BYTES: Final = 64
"""Upper bound of a CN. Source: RFC 5280, appendix A.1 (ub-common-name)."""
_CONTROL: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Control and bidirectional characters: a name must read as it is."""


@dataclass(frozen=True, slots=True)
class CertificateSubject:
    """Whom a certificate names."""

    name: str
    """As it shall stand in the certificate, up to 64 bytes of UTF-8."""
    cuil: str
    """Eleven digits."""
    vouched_by: VouchedBy
    """Who answered for the identity."""


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A signer's certificate and what one wants to know of it."""

    certificate: bytes
    """DER."""
    chain: tuple[bytes, ...]
    """DER, issuer first, root last."""
    not_before: datetime
    """Aware, in UTC."""
    not_after: datetime
    """Aware, in UTC."""
    serial: int
    """Positive, up to 128 bits."""


class Authority:
    """Issues signers' certificates with the CA's key in the HSM.

    Args:
        session: the HSM.
        ca_certificate: of the CA's key.
    """

    def __init__(self, session: HsmSession, ca_certificate: x509.Certificate) -> None:
        self._session = session
        self._ca = ca_certificate

    async def enrol(
        self,
        ref: KeyReference,
        algorithm: KeyAlgorithm,
        subject: CertificateSubject,
        now: datetime,
    ) -> IssuedCertificate:
        """Make a person's key and have it certified.

        May be repeated after a kill: what an earlier try left under this id is
        destroyed first. The caller commits the result; until then nothing can
        be signed with the key.

        Args:
            ref: the credential's key, which no credential in use has.
            algorithm: an RSA kind.
            subject: whom to name.
            now: aware.

        Returns:
            The certificate.

        Raises:
            FieldInvalidError: name or CUIL cannot stand in a certificate.
            HsmUnavailableError: the HSM cannot be used now.
            ApplianceError: see `issue`; no key is left.
        """
        # Refused before a key is made, where the reason is known by then.
        self._refuse(subject, now)
        _distinguished_name(subject)
        await self._session.destroy(ref)
        try:
            spki = await self._session.generate(ref, algorithm)
            await self._session.self_test(ref)
            return await self.issue(subject, spki, now)
        except ApplianceError:
            # An HSM that is away keeps it, until the next try or the sweep.
            with suppress(HsmUnavailableError):
                await self._session.destroy(ref)
            raise

    async def issue(
        self, subject: CertificateSubject, spki_der: bytes, now: datetime
    ) -> IssuedCertificate:
        """Certify a public key for a person.

        Args:
            subject: whom to name.
            spki_der: SubjectPublicKeyInfo of a key made in the HSM.
            now: aware.

        Returns:
            A certificate for two years, or until the CA's end if that is nearer.

        Raises:
            FieldInvalidError: name or CUIL cannot stand in a certificate.
            HsmUnavailableError: the HSM cannot be used now.
            HsmRefusedError: not an RSA key, the CA is out of date, or its
                certificate is not of its key.
            ApplianceError: `NOT_A_TRIAL` for a demo person under a real CA.

        Source: design §6; RFC 5280, 4.2; RFC 9336.
        """
        builder, end = self._builder(subject, spki_der, now)
        certificate = await self._session.with_private_key(
            CA_KEY, lambda key: builder.sign(key, hashes.SHA256())
        )
        try:
            certificate.verify_directly_issued_by(self._ca)
        except (InvalidSignature, ValueError, TypeError) as exc:
            msg = "the CA certificate is not of the CA's key"
            raise HsmRefusedError(msg) from exc
        return IssuedCertificate(
            certificate=certificate.public_bytes(serialization.Encoding.DER),
            chain=(self._ca.public_bytes(serialization.Encoding.DER),),
            not_before=certificate.not_valid_before_utc,
            not_after=end,
            serial=certificate.serial_number,
        )

    def _builder(
        self, subject: CertificateSubject, spki_der: bytes, now: datetime
    ) -> tuple[x509.CertificateBuilder, datetime]:
        """Everything of the certificate but its signature, and its end."""
        self._refuse(subject, now)
        public = _rsa_key(spki_der)
        start = now.replace(microsecond=0) - BACKDATE
        end = min(start + VALIDITY, self._ca.not_valid_after_utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_distinguished_name(subject))
            .issuer_name(self._ca.subject)
            .public_key(public)
            .serial_number(new_serial())
            .not_valid_before(max(start, self._ca.not_valid_before_utc))
            .not_valid_after(end)
        )
        for extension, critical in self._extensions(public, subject.vouched_by):
            builder = builder.add_extension(extension, critical=critical)
        return builder, end

    def _refuse(self, subject: CertificateSubject, now: datetime) -> None:
        """Refuse what this CA must not certify now.

        Raises:
            HsmRefusedError: the CA is out of date.
            ApplianceError: `NOT_A_TRIAL`.
        """
        if subject.vouched_by is VouchedBy.DEMO and not is_demo(self._ca):
            raise ApplianceError(ErrorCode.NOT_A_TRIAL)
        if not self._ca.not_valid_before_utc <= now < self._ca.not_valid_after_utc:
            msg = "the CA certificate is not valid now"
            raise HsmRefusedError(msg)

    def _extensions(
        self, public: rsa.RSAPublicKey, vouched_by: VouchedBy
    ) -> tuple[tuple[x509.ExtensionType, bool], ...]:
        """The extensions, each with whether a reader must understand it."""
        issuer = self._ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        return (
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (key_usage(digital_signature=True, content_commitment=True), True),
            # emailProtection besides, for readers older than RFC 9336.
            (
                x509.ExtendedKeyUsage(
                    [DOCUMENT_SIGNING, ExtendedKeyUsageOID.EMAIL_PROTECTION]
                ),
                False,
            ),
            (x509.SubjectKeyIdentifier.from_public_key(public), False),
            (
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
                    issuer.value
                ),
                False,
            ),
            (
                x509.CertificatePolicies(
                    [x509.PolicyInformation(POLICIES[vouched_by], None)]
                ),
                False,
            ),
        )


def _distinguished_name(subject: CertificateSubject) -> x509.Name:
    """C=AR, CN=name, serialNumber=`CUIL …`. Source: facts "Argentina".

    Raises:
        FieldInvalidError: name or CUIL cannot stand there.
    """
    name = subject.name.strip()
    if not name or len(name.encode()) > _NAME_BYTES or _CONTROL.search(name):
        raise FieldInvalidError("nombre", f"1 to {_NAME_BYTES} bytes of printable text")
    cuil = parse_cuil(subject.cuil)
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "AR"),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
            # pyca writes this attribute as a PrintableString.
            x509.NameAttribute(NameOID.SERIAL_NUMBER, f"CUIL {cuil}"),
        ]
    )


def _rsa_key(spki_der: bytes) -> rsa.RSAPublicKey:
    """Read the public key to certify.

    Raises:
        HsmRefusedError: it is none, or not RSA.
    """
    try:
        public = serialization.load_der_public_key(spki_der)
    except (ValueError, TypeError) as exc:
        msg = "that is no public key"
        raise HsmRefusedError(msg) from exc
    if not isinstance(public, rsa.RSAPublicKey):
        msg = "only RSA keys are certified"
        raise HsmRefusedError(msg)
    return public
