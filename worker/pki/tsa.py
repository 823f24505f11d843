"""The internal timestamping authority: tokens signed by its key in the HSM.

    tsa = InternalTsa(session, authority, publishing, clock, accuracy_s)
    token = await tsa.stamp(imprint, DigestAlgorithm.SHA256)

Source: RFC 3161; RFC 5816; EN 319 422; docs/timestamps.md.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ApplianceError,
    HsmRefusedError,
    KeyNotFoundError,
    TsaUnavailableError,
)
from appliance.domain.keys.hsm_keys import DigestAlgorithm, KeyReference
from appliance.domain.pki.certificates import CertificateRecord
from appliance.domain.pki.timestamps import IssuedTimestamp, TimestampQuestion
from appliance.domain.requests.levels import INTERNAL_TSA
from appliance.domain.vocab import CertificateKind
from appliance.pki.publication import Publishing
from appliance.pki.validation.certificate_rules import der_of
from hsm_config.pkcs11.key_pairs import PublicKey, load_spki, spki
from hsm_config.provisioning.ca_certificates import key_identifier, new_serial
from worker.hsm.session import HsmSession
from worker.network.tsa_metrics import tsa_measured
from worker.pades.algorithms import key_of, method_for
from worker.pades.cms import SignerParts, signed_attributes
from worker.pki.certificate_authority import Authority
from worker.pki.tsp_encoding import token, token_parts, tst_info

TSA_LEAST: Final = timedelta(days=4 * 365)
"""What is left of a certificate that still stamps; then comes another one, unless
the CA's end is what is near."""


@dataclass(frozen=True, slots=True)
class _Stamper:
    """A certificate of the key, ready to stamp by."""

    certificate: bytes
    key: KeyReference
    parts: SignerParts
    not_before: datetime
    not_after: datetime


class InternalTsa:
    """Stamps with the key that the newest certificate on record is of.

    `rubrica hsm init` makes the first one, `rubrica hsm renew-tsa` each next one,
    which is taken up with its certificate, at the next timestamp.

    Args:
        session: the HSM.
        authority: certifies the key.
        publishing: this worker's transactions of the CA's own certificates.
        clock: the time that is stamped.
        accuracy_s: how far from the true time the clock may be, in seconds.
    """

    def __init__(
        self,
        session: HsmSession,
        authority: Authority,
        publishing: Publishing,
        clock: Clock,
        accuracy_s: int,
    ) -> None:
        self._session = session
        self._authority = authority
        self._publishing = publishing
        self._clock = clock
        self._accuracy_s = accuracy_s
        self._ca_id = key_identifier(authority.certificate)
        self._ca_ends = authority.certificate.not_valid_after_utc
        self._stamper: _Stamper | None = None
        self._certifying = asyncio.Lock()

    async def stamp(self, imprint: bytes, digest: DigestAlgorithm) -> bytes:
        """Stamp a digest; see `TimestampAuthority`.

        Raises:
            TsaUnavailableError: HSM or record are away, or the key is missing.
        """
        return (await self.stamp_all((imprint,), digest))[0]

    async def stamp_all(
        self, imprints: Sequence[bytes], digest: DigestAlgorithm
    ) -> list[bytes]:
        """Stamp digests; see `OwnTimestampAuthority`.

        Raises:
            TsaUnavailableError: HSM or record are away, or the key is missing.
        """
        questions = [TimestampQuestion(imprint, digest) for imprint in imprints]
        return [issued.token for issued in await self._answered(questions)]

    async def answer(self, question: TimestampQuestion) -> IssuedTimestamp:
        """Answer a question that was read and found good.

        Args:
            question: what is stamped, and how the token shall be.

        Raises:
            TsaUnavailableError: HSM or record are away, or the key is missing.
        """
        return (await self._answered((question,)))[0]

    async def _answered(
        self, questions: Sequence[TimestampQuestion]
    ) -> list[IssuedTimestamp]:
        """Answer questions, by one call into the HSM.

        Raises:
            TsaUnavailableError: HSM or record are away, or the key is missing.
        """
        try:
            with tsa_measured(INTERNAL_TSA):
                return await self._answer(questions)
        except KeyNotFoundError as exc:
            msg = f"{exc.reason}; `rubrica hsm init` makes the TSA's key"
            raise TsaUnavailableError(msg) from exc
        except ApplianceError as exc:
            reason = getattr(exc, "reason", "") or str(exc)
            raise TsaUnavailableError(reason) from exc

    async def _answer(
        self, questions: Sequence[TimestampQuestion]
    ) -> list[IssuedTimestamp]:
        stamper = await self._ready()
        parts, method = stamper.parts, stamper.parts.method
        now = self._clock.now()
        time = now.replace(microsecond=now.microsecond // 1000 * 1000)
        asked = []
        for question in questions:
            serial = new_serial()
            info = tst_info(question, serial, time, self._accuracy_s)
            asked.append(
                (question, serial, info, signed_attributes(parts, method.hash(info)))
            )
        digests = [method.hash(attributes) for *_, attributes in asked]
        done = await self._session.sign_all(
            stamper.key, digests, method.scheme, method.digest
        )
        if done.failed is not None:
            raise done.failed
        issued = []
        for (question, serial, info, attributes), digest, value in zip(
            asked, digests, done.values, strict=True
        ):
            if not method.verifies(stamper.certificate, digest, value):
                # The key is another one than before: the next try certifies that.
                self._stamper = None
                msg = "the TSA's certificate is not of the TSA's key"
                raise HsmRefusedError(msg)
            certificates = question.certificates
            made = token(parts, info, attributes, value, certificates=certificates)
            issued.append(IssuedTimestamp(made, serial, time))
        return issued

    async def _ready(self) -> _Stamper:
        """The certificate to stamp by; read, or made, when its time has come."""
        held = await self._in_force()
        if held is None:
            async with self._certifying:
                held = await self._in_force()
                if held is None:
                    held = self._stamper = await self._certified()
        return held

    async def _in_force(self) -> _Stamper | None:
        """The certificate stamped by so far, if it still is to be.

        Its time is right, and the record still has no other one: it may be revoked.
        """
        held = self._stamper
        if held is None or not self._is_good(held.not_before, held.not_after):
            return None
        newest = await self._newest()
        is_newest = newest is not None and newest.der == held.certificate
        return held if is_newest else None

    def _is_good(self, not_before: datetime, not_after: datetime) -> bool:
        """Whether a certificate's time is right, and enough of it is left."""
        now = self._clock.now()
        # A new one ends no later than the CA.
        return not_before <= now < not_after and (
            not_after - now > TSA_LEAST or not_after >= self._ca_ends
        )

    async def certify(self) -> tuple[KeyReference, CertificateRecord]:
        """Certify the newest key, and have every worker stamp by it.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: it has no such key.
            HsmRefusedError: the key is compromised, or the CA out of date.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        key = await self._session.tsa_key()
        await self._refuse_compromised(load_spki(await self._session.public_key(key)))
        issued = await self._authority.certify_tsa(self._clock.now(), key)
        held = self._authority.record(issued, CertificateKind.TSA)
        await self._publishing.own_issued(held)
        return key, held

    async def _certified(self) -> _Stamper:
        held = await self._newest()
        key = None
        if held is not None and self._is_good(held.not_before, held.not_after):
            key = await self._key_of(held)
        if held is None or key is None:
            key, held = await self.certify()
        return self._stamper_of(held, key)

    async def _newest(self) -> CertificateRecord | None:
        """The certificate on record that ends last; None: the CA signed none."""
        recorded = await self._publishing.own(CertificateKind.TSA, self._ca_id)
        return self._authority.newest(recorded)

    async def _key_of(self, held: CertificateRecord) -> KeyReference | None:
        """Where a certificate's key is; None when the HSM has it no more."""
        public = key_of(held.der)
        await self._refuse_compromised(public)
        try:
            return await self._session.tsa_key(spki(public))
        except KeyNotFoundError:
            return None

    async def _refuse_compromised(self, public: PublicKey) -> None:
        """Refuse a key that somebody else may have.

        Raises:
            HsmRefusedError: it is one.
        """
        former = await self._publishing.compromised(CertificateKind.TSA)
        if any(key_of(each.der) == public for each in former):
            msg = "the TSA's key is compromised: `rubrica hsm renew-tsa` makes another"
            raise HsmRefusedError(msg)

    def _stamper_of(self, held: CertificateRecord, key: KeyReference) -> _Stamper:
        chain = (der_of(self._authority.certificate),)
        parts = token_parts(held.der, chain, method_for(held.der))
        return _Stamper(held.der, key, parts, held.not_before, held.not_after)
