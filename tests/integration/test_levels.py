"""Levels of signatures as the worker reaches and keeps them, with the real record."""

import asyncio
import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TypedDict

import pytest
from cryptography import x509

from appliance.domain.certificates import (
    CertificateRecord,
    Crl,
    OcspAnswer,
    serial_text,
)
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.hsm import DigestAlgorithm, KeyAlgorithm
from appliance.domain.ids import DocumentId, RequestId, new_id
from appliance.domain.levels import (
    ProfileWishes,
    SignatureProfile,
    Upkeep,
    UpkeepCount,
    ValidationData,
)
from appliance.domain.records import Records
from appliance.domain.records.requests import NewRequest, StoredDocument
from appliance.domain.request import SignedDocumentView
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    SignatureLevel,
    TaskKind,
    TimestampPolicy,
)
from appliance.services.authority_files import AuthorityFiles
from appliance.services.publishing import Publishing
from appliance.services.upkeep import UpkeepWork, upkeep_counts
from appliance.services.validation_data import ValidationSource
from appliance.storage.documents import LocalDocuments
from hsm_config.certificates import key_identifier
from tests.core_parts import CoreParts
from tests.fakes import FixedDocumentKeys, MovingClock
from tests.parts.long_term import LongTermPki, SoftwareTsa
from tests.tools.pdf_samples import SoftwareSigner, make_pdf, make_plan, make_signer
from tests.tools.pdf_validation import lt_failures, openssl_accepts
from tests.validators import pyhanko_verdicts
from worker.levels import Levels, Reached
from worker.pdf import CheckedSignature, SignatureMethod, assemble, check, prepare
from worker.pdf.assemble import token_fits
from worker.stamp import StampFonts, load_fonts
from worker.upkeep import LevelUpkeep

L = SignatureLevel
P = TimestampPolicy
YEAR = dt.timedelta(days=365)
DAY = dt.timedelta(days=1)


@pytest.fixture(scope="module")
def fonts() -> StampFonts:
    """Every font, prepared."""
    return load_fonts(Path("/usr/share/fonts/truetype/liberation2"))


class Assembled(TypedDict):
    """What both `assemble` and `token_fits` take."""

    signed_attributes: bytes
    signature: bytes
    method: SignatureMethod
    certificate: bytes
    chain: tuple[bytes, ...]


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

    def carry(self, more: tuple[bytes, ...]) -> None:
        """Have tokens carry further certificates."""
        assert self._now is not None
        self._now = replace(self._now, chain=(*self._now.chain, *more))


def _end(certificate: bytes) -> dt.datetime:
    return x509.load_der_x509_certificate(certificate).not_valid_after_utc


@dataclass
class Scene:
    """A record, a PKI whose CRLs stand in it, a TSA, and what adds levels."""

    core: CoreParts
    pki: LongTermPki
    tsa: RenewingTsa
    levels: Levels
    documents: LocalDocuments
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
        async with self.core.store.write() as records:
            for issuer, of_root in ((self.pki.ca, False), (self.pki.root, True)):
                crl = self.pki.crl(of_root=of_root)
                new = Crl(key_identifier(issuer), self._number, crl, now, now + 7 * DAY)
                assert await records.publications.put_crl(new)
            for der in (self.signer.certificate, *self.tsa.certificates):
                if _end(der) > now:
                    await self._answer(records, der, now)

    async def _answer(self, records: Records, der: bytes, now: dt.datetime) -> None:
        """Put a certificate on the record, and its OCSP answer of this moment."""
        leaf = x509.load_der_x509_certificate(der)
        serial = serial_text(leaf.serial_number)
        if await records.certificates.get(serial) is None:
            kind = CertificateKind.TSA
            if der == self.signer.certificate:
                kind = CertificateKind.SIGNER
            await records.certificates.add(
                CertificateRecord(
                    serial, kind, key_identifier(self.pki.ca), None, der,
                    leaf.not_valid_before_utc, leaf.not_valid_after_utc,
                )
            )  # fmt: skip
        answer, _ = self.pki.answer(leaf)
        good = CertificateState.VALID
        new = OcspAnswer(serial, good, answer, now, now + DAY)
        assert await records.publications.put_answer(new)

    async def sign(
        self, profile: SignatureProfile, original: bytes | None = None
    ) -> tuple[bytes, Reached]:
        """The file that is signed by a profile, and what came of it."""
        original = original or make_pdf()
        plan = make_plan(self.signer)
        room = await self.levels.token_bytes(profile, plan.method.digest)
        plan = replace(plan, signed_at=self.clock.now(), token_bytes=room)
        prepared = prepare(original, plan, self.fonts)
        value = self.signer.value(prepared.digest, plan.method)
        token = await self.levels.token(value, plan.method.digest, profile)
        made: Assembled = {
            "signed_attributes": prepared.signed_attributes,
            "signature": value,
            "method": plan.method,
            "certificate": plan.certificate,
            "chain": plan.chain,
        }
        length = prepared.contents_length
        if token is not None and not token_fits(length, **made, token=token):
            token = None  # as `worker.finish` does
        increment = assemble(
            prepared.increment,
            contents_at=prepared.contents_at,
            contents_length=length,
            **made,
            token=token,
        )
        checked: CheckedSignature = check(original, increment, plan.certificate)
        reached = await self.levels.complete(
            (original, increment), checked, plan.certificate, plan.chain, profile
        )
        return original + increment + reached.appended, reached

    async def publish(self, pdf: bytes, reached: Reached) -> RequestId:
        """Record a signed document, and what is due of it."""
        signer = await self.core.add_signer()
        request = await self.core.add_request(signer.person)
        view = await self.core.view(request)
        sha256 = await self.documents.put(view.integrator, pdf)
        async with self.core.store.write() as records:
            document = SignedDocumentView(
                request, view.integrator, "a.pdf", sha256, len(pdf), reached.level
            )
            await records.documents.sealed(request, document, self.clock.now())
            if reached.upkeep is not None:
                await records.upkeep.add(
                    request, view.integrator, reached.upkeep, self.clock.now()
                )
        return request

    def upkeep(self, slot: str = "signing/h/1", renew_s: float = 20.0) -> LevelUpkeep:
        """What a worker runs."""
        work = UpkeepWork(self.core.store, self.clock, slot)
        return LevelUpkeep(work, self.documents, self.levels, renew_s)

    async def renewed(self) -> None:
        """Wait until no lease has less than all of its time."""
        for _ in range(3000):
            async with self.core.store.read() as records:
                later = self.clock.now() + dt.timedelta(seconds=100)
                if not await records.upkeep.any_due(later):
                    return
            await asyncio.sleep(0.01)
        raise AssertionError("the lease is not renewed")

    async def newest(self, request: RequestId) -> tuple[SignedDocumentView, bytes]:
        """The newest version, and its bytes."""
        async with self.core.store.read() as records:
            view = await records.documents.signed(request)
        assert view is not None
        return view, await self.documents.get(view.integrator, view.sha256)

    async def due(self, request: RequestId) -> Upkeep | None:
        """What a document still needs."""
        async with self.core.store.read() as records:
            return await records.upkeep.of_request(request)


async def make_scene(
    core: CoreParts, fonts: StampFonts, start: dt.datetime, tsa_days: int = 1095
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
    documents = LocalDocuments(core.settings.data_dir / "signed", FixedDocumentKeys())
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


@pytest.mark.parametrize("level", [L.B_T, L.B_LT, L.B_LTA])
async def test_preferred_level_comes_later_while_the_tsa_is_away(
    core: CoreParts, fonts: StampFonts, tmp_path: Path, level: SignatureLevel
) -> None:
    """B-B at once, raised by appended revisions when it is back (F22)."""
    scene = await make_scene(core, fonts, a_moment_ago() - 2 * DAY)
    scene.tsa.is_away = True
    pdf, reached = await scene.sign(profile(level, P.PREFERRED))
    assert reached.level is L.B_B
    request = await scene.publish(pdf, reached)

    scene.clock.forward(60)
    assert await scene.upkeep().run() == 0
    (told,) = await upkeep_counts(scene.core.store, scene.clock)
    assert told == UpkeepCount(level, True, "TSA_UNAVAILABLE", 1, 1, told.oldest)  # noqa: FBT003 (is_below)
    scene.tsa.is_away = False
    scene.clock.forward(120)
    assert [each.overdue for each in await upkeep_counts(core.store, scene.clock)] == [
        1
    ]
    assert await scene.upkeep().run() == 1

    view, raised = await scene.newest(request)
    assert (view.version, view.level) == (2, level)
    assert raised.startswith(pdf)
    async with scene.core.store.read() as records:
        holding = await records.documents.holding(request)
    assert [(each.number, each.level) for each in holding] == [(2, level), (1, L.B_B)]
    assert [each.size_bytes for each in holding] == [len(raised), len(pdf)]
    audited = await scene.core.audited()
    assert audited.count("document.upkeep_failed") == 1
    assert audited.count("document.raised") == 1
    due, chain = await scene.due(request), scene.pki.chain
    assert (due is not None) == (level is L.B_LTA)
    stamps = 2 if level is L.B_LTA else 1
    said = openssl_accepts(raised, tmp_path, chain, scene.clock.now())
    assert said == ["Verification: OK"] * stamps
    if level is L.B_LT:
        assert lt_failures(raised, chain[-1], scene.clock.now(), stamped=False) == []


@pytest.mark.parametrize("level", [L.B_T, L.B_LT, L.B_LTA])
async def test_required_level_is_waited_for(
    sqlite_core: CoreParts, fonts: StampFonts, level: SignatureLevel
) -> None:
    """Nothing is handed out below it (F22)."""
    scene = await make_scene(sqlite_core, fonts, a_moment_ago())
    scene.tsa.is_away = True

    with pytest.raises(ApplianceError) as caught:
        await scene.sign(profile(level, P.REQUIRED))

    assert caught.value.code is ErrorCode.TSA_UNAVAILABLE


@pytest.mark.parametrize("policy", list(P))
async def test_stale_revocation_data_counts_for_nothing(
    sqlite_core: CoreParts, fonts: StampFonts, policy: TimestampPolicy
) -> None:
    """Past nextUpdate: B-T now and B-LT later, or a wait, by policy (F24)."""
    scene = await make_scene(sqlite_core, fonts, a_moment_ago() - 8 * DAY)
    scene.clock.at = a_moment_ago()

    if policy is P.REQUIRED:
        with pytest.raises(ApplianceError) as caught:
            await scene.sign(profile(L.B_LT, policy))
        assert caught.value.code is ErrorCode.REVOCATION_UNAVAILABLE
        return
    pdf, reached = await scene.sign(profile(L.B_LT, policy))
    assert (reached.level, reached.appended) == (L.B_T, b"")
    request = await scene.publish(pdf, reached)
    await scene.publish_crls()
    scene.clock.forward(60)
    assert await scene.upkeep().run() == 1
    view, raised = await scene.newest(request)
    assert view.level == L.B_LT
    assert lt_failures(raised, scene.pki.chain[-1], scene.clock.now()) == []


async def test_missing_answer_is_asked_for_until_it_is_there(
    sqlite_core: CoreParts, fonts: StampFonts
) -> None:
    """A task that ran already may have looked for what is due a moment too early."""
    scene = await make_scene(sqlite_core, fonts, a_moment_ago() - 8 * DAY)
    scene.clock.at = now = a_moment_ago()
    root, ca = scene.pki.chain[0], scene.pki.chain[1]
    names = key_identifier(scene.pki.root), key_identifier(scene.pki.ca)
    files = AuthorityFiles(ca, root, *names, b"")
    store = sqlite_core.store
    publishing = Publishing(store, scene.clock, sqlite_core.settings.pki, "test")
    source = ValidationSource(store, scene.clock, files, publishing, wait_s=20)
    await publishing.submit()
    async with store.write() as records:
        claim = await records.tasks.claim_next("w", "h", now, DAY, 5, list(TaskKind))
    assert claim is not None
    waiting = asyncio.create_task(source.of(scene.signer.certificate))
    await asyncio.sleep(0.3)

    await publishing.done(claim)
    while not waiting.done():
        async with store.read() as records:
            if await records.tasks.any_open(TaskKind.PUBLISH):
                await scene.publish_crls()
                break
        await asyncio.sleep(0.02)

    assert (await waiting).ocsps


async def test_two_workers_raise_a_document_once(
    core: CoreParts, fonts: StampFonts
) -> None:
    """A worker that was frozen publishes nothing when another came since."""
    scene = await make_scene(core, fonts, a_moment_ago())
    scene.tsa.is_away = True
    pdf, reached = await scene.sign(profile(L.B_LT, P.PREFERRED))
    request = await scene.publish(pdf, reached)
    scene.tsa.is_away = False
    scene.clock.forward(60)
    frozen = UpkeepWork(scene.core.store, scene.clock, "signing/h/1")
    claim = await frozen.claim_next()
    assert claim is not None
    before = await frozen.newest(claim)
    assert await scene.upkeep("signing/h/2").run() == 0

    scene.clock.forward(180)
    assert await scene.upkeep("signing/h/2").run() == 1

    assert not await frozen.raised(claim, before, "ab" * 32, 1, L.B_LT, None)
    assert not await frozen.failed(claim, ErrorCode.TSA_UNAVAILABLE, DAY)
    view, _ = await scene.newest(request)
    assert (view.version, view.level) == (2, L.B_LT)


async def test_document_in_hand_is_nobody_elses_however_long_it_takes(
    core: CoreParts, fonts: StampFonts
) -> None:
    """The lease is renewed at work: of two workers one makes the revision."""
    scene = await make_scene(core, fonts, a_moment_ago())
    scene.tsa.is_away = True
    pdf, reached = await scene.sign(profile(L.B_LT, P.PREFERRED))
    request = await scene.publish(pdf, reached)
    scene.tsa.is_away = False
    scene.clock.forward(60)
    scene.tsa.goes_on.clear()

    slow = asyncio.create_task(scene.upkeep("signing/h/1", renew_s=0.01).run())
    await scene.tsa.asked.wait()
    for _ in range(3):
        # Two of these are more than a lease.
        scene.clock.forward(100)
        await scene.renewed()
        assert await scene.upkeep("signing/h/2").run() == 0
    scene.tsa.goes_on.set()

    assert await slow == 1
    view, _ = await scene.newest(request)
    assert (view.version, view.level) == (2, L.B_LT)


async def test_one_document_that_breaks_stops_no_other(
    sqlite_core: CoreParts, fonts: StampFonts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is put off with a reason; what comes after it is raised."""
    scene = await make_scene(sqlite_core, fonts, a_moment_ago())
    scene.tsa.is_away = True
    pdf, reached = await scene.sign(profile(L.B_LT, P.PREFERRED))
    broken = await scene.publish(pdf, reached)
    whole = await scene.publish(pdf, reached)
    scene.tsa.is_away = False
    scene.clock.forward(60)
    keep, seen = scene.levels.keep, []

    async def keep_but_one(
        pdf: bytes, wanted: SignatureLevel, tsa: tuple[str, ...]
    ) -> Reached:
        seen.append(wanted)
        if len(seen) == 1:
            raise ZeroDivisionError
        return await keep(pdf, wanted, tsa)

    monkeypatch.setattr(scene.levels, "keep", keep_but_one)

    assert await scene.upkeep().run() == 1

    assert [(await scene.newest(each))[0].version for each in (broken, whole)] == [1, 2]
    assert (await scene.core.audited()).count("document.upkeep_failed") == 1


async def test_renewal_outlives_the_signers_revocation(
    sqlite_core: CoreParts, fonts: StampFonts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was revoked since leaves an archived document as good as it was."""
    scene = await make_scene(sqlite_core, fonts, a_moment_ago() - 2 * DAY)
    pdf, reached = await scene.sign(profile(L.B_LTA, P.PREFERRED))
    request = await scene.publish(pdf, reached)
    scene.clock.forward(int(DAY.total_seconds()))
    await scene.publish_crls()
    look = ValidationSource.of

    async def of(
        source: ValidationSource,
        certificate: bytes,
        others: Sequence[bytes] = (),
        since: dt.datetime | None = None,
    ) -> ValidationData:
        if certificate == scene.signer.certificate:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        return await look(source, certificate, others, since)

    monkeypatch.setattr(ValidationSource, "of", of)

    assert await scene.upkeep().run() == 1

    view, _ = await scene.newest(request)
    assert (view.version, view.level) == (2, L.B_LTA)


async def test_renewal_that_gains_nothing_is_put_off(
    sqlite_core: CoreParts, fonts: StampFonts
) -> None:
    """As towards a CA's end: not a revision a day by the same certificate."""
    scene = await make_scene(sqlite_core, fonts, a_moment_ago() - 400 * DAY, 200)
    scene.tsa.renews = False
    pdf, reached = await scene.sign(profile(L.B_LTA, P.PREFERRED))
    request = await scene.publish(pdf, reached)
    scene.clock.forward(int(DAY.total_seconds()))
    await scene.publish_crls()
    assert await scene.upkeep().run() == 1
    scene.clock.forward(30 * int(DAY.total_seconds()))
    await scene.publish_crls()

    assert await scene.upkeep().run() == 0

    assert (await scene.newest(request))[0].version == 2
    scene.tsa.renews = True
    scene.clock.forward(60)
    assert await scene.upkeep().run() == 1


def signed_by_a_stranger(fonts: StampFonts) -> bytes:
    """A file with a signature under a CA that nobody here knows."""
    stranger = make_signer(KeyAlgorithm.EC_P256)
    plan = make_plan(stranger)
    original = make_pdf()
    prepared = prepare(original, plan, fonts)
    return original + stranger.complete(prepared, plan)


def with_an_impossible_certificate(pdf: bytes) -> bytes:
    """X.509 of version 8, as pyca takes no certificate."""
    return pdf.replace(b"a003020102", b"a003020107")


def without_a_signature_value(pdf: bytes) -> bytes:
    """Zeros alone in Contents."""
    return re.sub(
        rb"<[0-9a-f]{2000,}>", lambda m: b"<" + b"0" * (len(m[0]) - 2) + b">", pdf
    )


@pytest.mark.parametrize(
    "harm", [bytes, with_an_impossible_certificate, without_a_signature_value]
)
async def test_stranger_in_the_file_keeps_nobody_from_renewing_it(
    sqlite_core: CoreParts, fonts: StampFonts, harm: Callable[[bytes], bytes]
) -> None:
    """A signature that came along, be it of an unknown CA or no signature at all."""
    brought = harm(signed_by_a_stranger(fonts))
    scene = await make_scene(sqlite_core, fonts, a_moment_ago() - 2 * DAY)
    pdf, reached = await scene.sign(profile(L.B_LTA, P.PREFERRED), brought)
    assert reached.level is L.B_LTA
    request = await scene.publish(pdf, reached)

    scene.clock.at = a_moment_ago()
    await scene.publish_crls()
    assert await scene.upkeep().run() == 1

    view, kept = await scene.newest(request)
    assert (view.version, view.level) == (2, L.B_LTA)
    assert kept.startswith(pdf)


@dataclass
class Asked:
    """Notes whose revocation is asked for over the network."""

    certificates: list[bytes] = field(default_factory=list)

    async def of(
        self, certificate: bytes, issuer: bytes, since: dt.datetime | None = None
    ) -> ValidationData:
        """See `StatusAuthority`."""
        del issuer, since
        self.certificates.append(certificate)
        return ValidationData()


async def test_nobody_is_asked_about_a_chain_to_no_trusted_root(
    sqlite_core: CoreParts,
) -> None:
    """Addresses that a document brings along are not called."""
    trusted, stranger = make_signer(), make_signer()
    clock = MovingClock(a_moment_ago())
    pki = LongTermPki(clock)
    files = AuthorityFiles(pki.chain[1], pki.chain[0], "root", "ca", b"")
    publishing = Publishing(sqlite_core.store, clock, sqlite_core.settings.pki, "test")
    asked = Asked()

    async def anchors() -> tuple[bytes, ...]:
        return trusted.chain

    source = ValidationSource(
        sqlite_core.store, clock, files, publishing, outside=asked, anchors=anchors
    )
    await source.of(trusted.certificate)
    with pytest.raises(ApplianceError) as caught:
        await source.of(stranger.certificate, stranger.chain)

    assert caught.value.code is ErrorCode.REVOCATION_UNAVAILABLE
    assert asked.certificates == [trusted.certificate]


async def test_timestamp_of_an_earlier_signature_is_not_ones_own(
    sqlite_core: CoreParts, fonts: StampFonts, tmp_path: Path
) -> None:
    """Whoever signs second while the TSA is away is stamped as well, later."""
    scene = await make_scene(sqlite_core, fonts, a_moment_ago())
    first, _ = await scene.sign(profile(L.B_T, P.PREFERRED))
    scene.tsa.is_away = True
    pdf, reached = await scene.sign(profile(L.B_LT, P.PREFERRED), first)
    assert reached.level is L.B_B
    request = await scene.publish(pdf, reached)
    scene.tsa.is_away = False
    scene.clock.forward(60)

    assert await scene.upkeep().run() == 1

    view, raised = await scene.newest(request)
    assert view.level == L.B_LT
    said = openssl_accepts(raised, tmp_path, scene.pki.chain, scene.clock.now())
    assert said == ["Verification: OK"]


async def test_tokens_that_got_longer_find_room(
    sqlite_core: CoreParts, fonts: StampFonts, tmp_path: Path
) -> None:
    """A TSA with a new, longer certificate stops nobody from signing."""
    scene = await make_scene(sqlite_core, fonts, a_moment_ago())
    known, _ = await scene.sign(profile(L.B_T, P.REQUIRED))
    scene.tsa.carry(make_signer().chain)

    pdf, reached = await scene.sign(profile(L.B_T, P.REQUIRED))
    again, _ = await scene.sign(profile(L.B_T, P.REQUIRED))

    assert reached.level is L.B_T
    for each in (known, pdf, again):
        said = openssl_accepts(each, tmp_path, scene.pki.chain, scene.clock.now())
        assert said in ([], ["Verification: OK"])
    assert b"/DocTimeStamp" in pdf
    assert b"/DocTimeStamp" not in again


async def test_document_is_kept_through_ten_certificates_of_the_tsa(
    sqlite_core: CoreParts, fonts: StampFonts, tmp_path: Path
) -> None:
    """Thirty years of looks: stamped anew in time, every version the next's start."""
    start = SystemClock().now() - 30 * YEAR
    scene = await make_scene(sqlite_core, fonts, start, tsa_days=3 * 365)
    pdf, reached = await scene.sign(profile(L.B_LTA, P.PREFERRED))
    assert reached.level is L.B_LTA
    request = await scene.publish(pdf, reached)

    versions = [pdf]
    while (due := await scene.due(request)) is not None:
        if due.due >= SystemClock().now():
            break
        scene.clock.at = due.due
        await scene.publish_crls()
        assert await scene.upkeep().run() == 1
        versions.append((await scene.newest(request))[1])

    assert len(scene.tsa.certificates) >= 10
    view, newest = await scene.newest(request)
    assert (view.version, view.level) == (len(versions), L.B_LTA)
    assert all(b.startswith(a) for a, b in pairwise(versions))
    said = openssl_accepts(newest, tmp_path, scene.pki.chain, scene.clock.now())
    assert len(said) == len(versions)
    assert said[-1] == "Verification: OK"
    (verdict,) = pyhanko_verdicts(newest, [scene.pki.chain[-1]])
    assert (verdict.intact, verdict.valid) == (True, True)
    assert verdict.changes == "LTA_UPDATES"


async def test_narrower_profile_wins(sqlite_core: CoreParts) -> None:
    """Of the request, else of its integrator, else of the installation."""
    core = sqlite_core
    signer = await core.add_signer()
    request = await core.add_request(signer.person)
    installation = SignatureProfile(L.B_T, P.PREFERRED, DigestAlgorithm.SHA256)
    view = await core.view(request)
    assert installation.narrowed(view.wishes) == installation
    async with core.store.write() as records:
        (integrator,) = [
            each
            for each in await records.integrators.all()
            if each.id == view.integrator
        ]
        changed = replace(integrator, level=L.B_LTA, digest=DigestAlgorithm.SHA512)
        await records.integrators.change(changed)
        document = await records.documents.add(
            StoredDocument(
                DocumentId(new_id()), view.integrator, view.sha256, view.inspection
            ),
            core.now,
        )
        own = await records.requests.add(
            NewRequest(
                signer.person, view.integrator, document.id, "a.pdf", "operador",
                core.now, None, ProfileWishes(L.B_LT, P.REQUIRED),
            )
        )  # fmt: skip

    inherited = installation.narrowed((await core.view(request)).wishes)
    narrowest = installation.narrowed((await core.view(own)).wishes)

    assert inherited == SignatureProfile(L.B_LTA, P.PREFERRED, DigestAlgorithm.SHA512)
    assert narrowest == SignatureProfile(L.B_LT, P.REQUIRED, DigestAlgorithm.SHA512)
