"""The internal certification authority: signers' keys and certificates.

    authority = Authority(session, read_ca(settings), settings)
    issued = await authority.enrol(ref, KeyAlgorithm.RSA_2048, subject, now)

The CA's key never leaves the HSM; `docs/pki.md` describes the certificates.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from appliance.domain.errors import (
    ApplianceError,
    ChainRefusedError,
    ErrorCode,
    HsmRefusedError,
)
from appliance.domain.ids import CredentialId
from appliance.domain.keys.hsm_keys import KeyAlgorithm, KeyReference
from appliance.domain.pki.certificates import CertificateRecord, serial_text
from appliance.domain.vocab import CertificateKind, Environment, VouchedBy
from appliance.pki.validation.certificate_rules import is_signed_by, reading
from appliance.settings import Settings
from hsm_config.pkcs11.objects import OCSP_KEY
from hsm_config.provisioning.ca_certificates import is_demo, key_identifier
from hsm_config.provisioning.ca_hierarchy import authority_name
from worker.hsm.session import HsmSession
from worker.pki.certificate_profiles import (
    Extensions,
    PublicKey,
    responder_extensions,
    signer_extensions,
    signer_key,
    signer_name,
    tsa_extensions,
)
from worker.pki.certificate_signing import IssuedCertificate, certify

VALIDITY: Final = timedelta(days=2 * 365)
"""How long a signer's certificate is good."""
RESPONDER_VALIDITY: Final = timedelta(days=90)
"""How long a certificate of the OCSP responder is good."""
TSA_VALIDITY: Final = timedelta(days=6 * 365)
"""How long a certificate of the timestamping authority is good: its timestamps
are checked for as long, and are renewed by others before."""


@dataclass(frozen=True, slots=True)
class CertificateSubject:
    """Whom a certificate names."""

    name: str
    """As it shall stand in the certificate, up to 64 bytes of UTF-8."""
    cuil: str
    """Eleven digits."""
    vouched_by: VouchedBy
    """Who answered for the identity."""


class Authority:
    """Issues certificates with the CA's key in the HSM.

    Args:
        session: the HSM.
        ca_certificate: of the CA's key.
        settings: of the installation: its public address stands in certificates.
    """

    def __init__(
        self, session: HsmSession, ca_certificate: x509.Certificate, settings: Settings
    ) -> None:
        self._session = session
        self._ca = ca_certificate
        self._settings = settings

    @property
    def certificate(self) -> x509.Certificate:
        """The CA's own."""
        return self._ca

    async def enrol(
        self,
        ref: KeyReference,
        algorithm: KeyAlgorithm,
        subject: CertificateSubject,
        now: datetime,
    ) -> IssuedCertificate:
        """Make a person's key and have it certified.

        The caller commits the result; until then nothing can be signed with the key.

        Args:
            ref: under which nothing is on the token.
            algorithm: an RSA kind.
            subject: whom to name.
            now: aware.

        Returns:
            The certificate.

        Raises:
            FieldInvalidError: name or CUIL cannot stand in a certificate.
            HsmUnavailableError: the HSM cannot be used now; it may have the key.
            HsmRefusedError: there is something under this id, which stays as it is.
            ApplianceError: see `issue`; no key is left.
        """
        # Refused before a key is made, where the reason is known by then.
        self._refuse(subject, now)
        signer_name(subject.name, subject.cuil)
        spki = await self._session.generate(ref, algorithm)
        try:
            await self._session.self_test(ref)
            return await self.issue(subject, spki, now)
        except ApplianceError:
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
            HsmRefusedError: a key of another kind, the CA is out of date, or its
                certificate is not of its key.
            ApplianceError: `NOT_A_TRIAL` for a demo person under a real CA.

        Source: design §6; RFC 5280, 4.2; RFC 9336.
        """
        self._refuse(subject, now)
        name = signer_name(subject.name, subject.cuil)
        public = signer_key(spki_der)
        extensions = signer_extensions(
            self._settings, self._ca, public, subject.vouched_by
        )
        return await self._certify(name, public, VALIDITY, extensions, now)

    async def certify_responder(self, now: datetime) -> IssuedCertificate:
        """Certify the OCSP responder's key, anew each time.

        Args:
            now: aware.

        Returns:
            A certificate for 90 days, or until the CA's end if that is nearer.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: the responder has no key; `rubrica hsm init` makes it.
            HsmRefusedError: as `issue`.

        Source: RFC 6960, 4.2.2.2.
        """
        self._refuse_outdated(now)
        public = signer_key(await self._session.public_key(OCSP_KEY))
        return await self._certify(
            authority_name(self._settings, "OCSP"),
            public,
            RESPONDER_VALIDITY,
            responder_extensions(self._ca, public),
            now,
        )

    async def certify_tsa(self, now: datetime, key: KeyReference) -> IssuedCertificate:
        """Certify a key of the timestamping authority, anew each time.

        Args:
            now: aware.
            key: which.

        Returns:
            A certificate for six years, or until the CA's end if that is nearer.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: it has no such key; `rubrica hsm init` makes it.
            HsmRefusedError: as `issue`.

        Source: RFC 3161, 2.3.
        """
        self._refuse_outdated(now)
        public = signer_key(await self._session.public_key(key))
        return await self._certify(
            authority_name(self._settings, "TSA"),
            public,
            TSA_VALIDITY,
            tsa_extensions(self._settings, self._ca, public),
            now,
        )

    def record(
        self,
        issued: IssuedCertificate,
        kind: CertificateKind,
        credential: CredentialId | None = None,
    ) -> CertificateRecord:
        """What the record keeps of a certificate that was just issued.

        Args:
            issued: by this CA.
            kind: what it is for.
            credential: whose key it certifies; None for one of the appliance's own.
        """
        return CertificateRecord(
            serial=serial_text(issued.serial),
            kind=kind,
            issuer=key_identifier(self._ca),
            credential=credential,
            der=issued.certificate,
            not_before=issued.not_before,
            not_after=issued.not_after,
        )

    def newest(self, recorded: Iterable[CertificateRecord]) -> CertificateRecord | None:
        """The first of certificates on record that this CA signed; None: there is none.

        A row counts if the CA signed what it has, and both say the same dates.

        Args:
            recorded: of the appliance's own keys.
        """
        return next(filter(self._signed, recorded), None)

    def _signed(self, held: CertificateRecord) -> bool:
        try:
            with reading():
                made = x509.load_der_x509_certificate(held.der)
                dates = made.not_valid_before_utc, made.not_valid_after_utc
                is_ours = is_signed_by(made, self._ca)
        except ChainRefusedError:
            return False
        return is_ours and dates == (held.not_before, held.not_after)

    async def _certify(
        self,
        name: x509.Name,
        public: PublicKey,
        validity: timedelta,
        extensions: Extensions,
        now: datetime,
    ) -> IssuedCertificate:
        return await certify(
            self._session, self._ca, name, public, validity, extensions, now
        )

    def _refuse(self, subject: CertificateSubject, now: datetime) -> None:
        """Refuse what this CA must not certify now.

        Raises:
            HsmRefusedError: the CA is out of date.
            ApplianceError: `NOT_A_TRIAL`; `CERTIFICATE_NOT_USABLE` for somebody made
                up, in PROD.
        """
        if subject.vouched_by is VouchedBy.DEMO and not is_demo(self._ca):
            raise ApplianceError(ErrorCode.NOT_A_TRIAL)
        if (
            subject.vouched_by is VouchedBy.TEST
            and self._settings.environment is Environment.PROD
        ):
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        self._refuse_outdated(now)

    def _refuse_outdated(self, now: datetime) -> None:
        """Refuse a CA whose time is over.

        Raises:
            HsmRefusedError: it is.
        """
        if not self._ca.not_valid_before_utc <= now < self._ca.not_valid_after_utc:
            msg = "the CA certificate is not valid now"
            raise HsmRefusedError(msg)
