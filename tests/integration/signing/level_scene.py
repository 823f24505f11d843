"""A record, a PKI and a TSA, for tests of the levels that signatures reach.

scene = await make_scene(core, fonts, a_moment_ago())
pdf, reached = await scene.sign(profile(L.B_LTA, P.PREFERRED))
request = await scene.publish(pdf, reached)
"""

import asyncio
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cryptography import x509

from appliance.documents.document_store import DocumentStore
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.certificates import (
    CertificateRecord,
    Crl,
    OcspAnswer,
    serial_text,
)
from appliance.domain.requests.levels import SignatureProfile, Upkeep
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.signing.activation import SignatureValue
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    SignatureLevel,
    TimestampPolicy,
)
from appliance.pki.ca_certificates import AuthorityFiles
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.publication import Publishing
from appliance.pki.publication_store import PublicationStore
from appliance.pki.validation.validation_material import ValidationSource
from appliance.record.unit_of_work import Transaction
from appliance.signing.level_maintenance import UpkeepWork
from appliance.signing.level_maintenance_store import LevelMaintenanceStore
from hsm_config.provisioning.ca_certificates import key_identifier
from tests.support.documents.pdf_samples import make_pdf, make_plan
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.factories.fakes import FixedDocumentKeys, MovingClock
from tests.support.installation.record import CoreFixture
from tests.support.pki.long_term_pki import LongTermPki, SoftwareTsa
from worker.pades import CheckedSignature, check, prepare
from worker.pades.appearance.fonts import StampFonts
from worker.pades.cms import complete
from worker.signing.level_extension import ExtensionResult, Levels
from worker.signing.level_maintenance import LevelUpkeep

L = SignatureLevel
P = TimestampPolicy
YEAR = dt.timedelta(days=365)
DAY = dt.timedelta(days=1)


@dataclass
class RenewingTsa:
    """A TSA whose key is certified anew when half a year of its certificate is left."""

    pki: LongTermPki
    days: int
    is_away: bool = False
    renews: bool = True
    certificates: list[bytes] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared, it takes its time."""
    _now: SoftwareTsa | None = None

    def __post_init__(self) -> None:
        self.goes_on.set()

    async def stamp(self, imprint: bytes, digest: DigestAlgorithm) -> bytes:
        """See `TimestampAuthority`.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE` when it is away.
        """
        if self.is_away:
            raise ApplianceError(ErrorCode.TSA_UNAVAILABLE)
        self.asked.set()
        await self.goes_on.wait()
        at = self.pki.clock.now()
        if self._now is None or (
            self.renews and _end(self._now.certificate) - at <= DAY * 180
        ):
            self._now = self.pki.tsa(days=self.days)
            self.certificates.append(self._now.certificate)
        return self._now.token(imprint, digest)

    async def stamp_all(
        self, imprints: Sequence[bytes], digest: DigestAlgorithm
    ) -> list[bytes]:
        """See `OwnTimestampAuthority`."""
        return [await self.stamp(imprint, digest) for imprint in imprints]

    def carry(self, more: tuple[bytes, ...]) -> None:
        """Have tokens carry further certificates."""
        assert self._now is not None
        self._now = replace(self._now, chain=(*self._now.chain, *more))


def _end(certificate: bytes) -> dt.datetime:
    return x509.load_der_x509_certificate(certificate).not_valid_after_utc


@dataclass
class Scene:
    """A record, a PKI whose CRLs stand in it, a TSA, and what adds levels."""

    core: CoreFixture
    pki: LongTermPki
    tsa: RenewingTsa
    levels: Levels
    documents: LocalBlobStore
    signer: SoftwareSigner
    fonts: StampFonts
    _number: int = 0

    @property
    def clock(self) -> MovingClock:
        """What the test moves."""
        return self.pki.clock

    async def publish_crls(self) -> None:
        """Put the CRLs of this moment on the record, as the CA does by itself."""
        self._number += 1
        now = self.clock.now().replace(microsecond=0)
        async with self.core.store.write() as transaction:
            for issuer, of_root in ((self.pki.ca, False), (self.pki.root, True)):
                crl = self.pki.crl(of_root=of_root)
                new = Crl(key_identifier(issuer), self._number, crl, now, now + 7 * DAY)
                assert await PublicationStore(transaction).put_crl(new)
            for der in (self.signer.certificate, *self.tsa.certificates):
                if _end(der) > now:
                    await self._answer(transaction, der, now)

    async def _answer(
        self, transaction: Transaction, der: bytes, now: dt.datetime
    ) -> None:
        """Put a certificate on the record, and its OCSP answer of this moment."""
        leaf = x509.load_der_x509_certificate(der)
        serial = serial_text(leaf.serial_number)
        if await CertificateStore(transaction).get(serial) is None:
            kind = CertificateKind.TSA
            if der == self.signer.certificate:
                kind = CertificateKind.SIGNER
            await CertificateStore(transaction).add(
                CertificateRecord(
                    serial, kind, key_identifier(self.pki.ca), None, der,
                    leaf.not_valid_before_utc, leaf.not_valid_after_utc,
                )
            )  # fmt: skip
        answer, _ = self.pki.answer(leaf)
        good = CertificateState.VALID
        new = OcspAnswer(serial, good, answer, now, now + DAY)
        assert await PublicationStore(transaction).put_answer(new)

    async def sign(
        self, profile: SignatureProfile, original: bytes | None = None
    ) -> tuple[bytes, ExtensionResult]:
        """The file that is signed by a profile, and what came of it."""
        original = original or make_pdf()
        plan = make_plan(self.signer)
        room = await self.levels.token_bytes(profile, plan.method.digest)
        plan = replace(plan, signed_at=self.clock.now(), token_bytes=room)
        prepared = prepare(original, plan, self.fonts)
        value = self.signer.value(prepared.digest, plan.method)
        token = await self.levels.token(value, plan.method.digest, profile)
        made = SignatureValue(
            prepared.increment,
            prepared.contents_at,
            prepared.contents_length,
            prepared.signed_attributes,
            value,
        )
        increment = complete(made, plan.method, plan.certificate, plan.chain, token)
        checked: CheckedSignature = check(original, increment, plan.certificate)
        reached = await self.levels.complete(
            (original, increment), checked, plan.certificate, plan.chain, profile
        )
        return original + increment + reached.appended, reached

    async def publish(self, pdf: bytes, reached: ExtensionResult) -> RequestId:
        """Record a signed document, and what is due of it."""
        signer = await self.core.add_signer()
        request = await self.core.add_request(signer.person)
        view = await self.core.view(request)
        sha256 = await self.documents.put(view.integrator, pdf)
        async with self.core.store.write() as transaction:
            document = SignedDocumentView(
                request, view.integrator, "a.pdf", sha256, len(pdf), reached.level
            )
            await DocumentStore(transaction).sealed(request, document, self.clock.now())
            if reached.upkeep is not None:
                await LevelMaintenanceStore(transaction).add(
                    request, view.integrator, reached.upkeep, self.clock.now()
                )
        return request

    def upkeep(self, slot: str = "signing/h/1", renew_s: float = 20.0) -> LevelUpkeep:
        """What a worker runs."""
        work = UpkeepWork(self.core.store, self.clock, slot)
        nothing: Any = None  # nothing is fetched of servers outside
        return LevelUpkeep(work, self.documents, self.levels, nothing, nothing, renew_s)

    async def renewed(self) -> None:
        """Wait until no lease has less than all of its time."""
        async with asyncio.timeout(60):
            while await self._is_due_in(100):  # noqa: ASYNC110 (the record tells nobody)
                await asyncio.sleep(0.01)

    async def _is_due_in(self, seconds: float) -> bool:
        async with self.core.store.read() as transaction:
            later = self.clock.now() + dt.timedelta(seconds=seconds)
            return await LevelMaintenanceStore(transaction).any_due(later)

    async def newest(self, request: RequestId) -> tuple[SignedDocumentView, bytes]:
        """The newest version, and its bytes."""
        async with self.core.store.read() as transaction:
            view = await DocumentStore(transaction).signed(request)
        assert view is not None
        return view, await self.documents.get(view.integrator, view.sha256)

    async def due(self, request: RequestId) -> Upkeep | None:
        """What a document still needs."""
        async with self.core.store.read() as transaction:
            return await LevelMaintenanceStore(transaction).of_request(request)


async def make_scene(
    core: CoreFixture, fonts: StampFonts, start: dt.datetime, tsa_days: int = 1095
) -> Scene:
    """A scene at a time, its CRLs published."""
    clock = MovingClock(start.replace(microsecond=0))
    pki = LongTermPki(clock)
    files = AuthorityFiles(
        pki.chain[1],
        pki.chain[0],
        key_identifier(pki.root),
        key_identifier(pki.ca),
        b"",
    )
    publishing = Publishing(core.store, clock, core.settings.pki, "test")
    source = ValidationSource(core.store, clock, files, publishing, wait_s=0.2)
    tsa = RenewingTsa(pki, tsa_days)
    documents = LocalBlobStore(core.settings.data_dir / "signed", FixedDocumentKeys())
    levels = Levels(tsa, source, clock, settles=DAY, renewal=DAY * 180)
    scene = Scene(core, pki, tsa, levels, documents, pki.signer(), fonts)
    await scene.publish_crls()
    return scene


def profile(level: SignatureLevel, policy: TimestampPolicy) -> SignatureProfile:
    """With SHA-256."""
    return SignatureProfile(level, policy, DigestAlgorithm.SHA256)


def a_moment_ago() -> dt.datetime:
    """Pyhanko compares with the machine's time."""
    return SystemClock().now() - dt.timedelta(minutes=30)
