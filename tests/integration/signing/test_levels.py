"""Levels of signatures as the worker reaches and keeps them, with the real record."""

import asyncio
import datetime as dt
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from appliance.documents.document_store import DocumentStore
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import DocumentId, new_id
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.requests.intake import NewRequest, StoredDocument
from appliance.domain.requests.levels import (
    ProfileWishes,
    SignatureProfile,
    UpkeepCount,
    ValidationData,
)
from appliance.domain.vocab import SignatureLevel, TaskKind, TimestampPolicy
from appliance.integrators.integrator_store import IntegratorStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.pki.ca_certificates import AuthorityFiles
from appliance.pki.publication import Publishing
from appliance.pki.validation.validation_material import ValidationSource
from appliance.requests.request_store import RequestStore
from appliance.signing.level_maintenance import UpkeepWork, upkeep_counts
from hsm_config.provisioning.ca_certificates import key_identifier
from tests.integration.signing.level_scene import (
    DAY,
    L,
    P,
    a_moment_ago,
    make_scene,
    profile,
)
from tests.support.documents.long_term_validators import lt_failures, openssl_accepts
from tests.support.documents.software_signer import make_signer
from tests.support.factories.fakes import MovingClock
from tests.support.installation.record import CoreFixture
from tests.support.pki.long_term_pki import LongTermPki
from worker.pades.appearance.fonts import StampFonts
from worker.signing.level_extension import ExtensionResult


@pytest.mark.parametrize("level", [L.B_T, L.B_LT, L.B_LTA])
async def test_preferred_level_comes_later_while_the_tsa_is_away(
    core: CoreFixture, fonts: StampFonts, tmp_path: Path, level: SignatureLevel
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
    async with scene.core.store.read() as transaction:
        holding = await DocumentStore(transaction).holding(request)
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
    sqlite_core: CoreFixture, fonts: StampFonts, level: SignatureLevel
) -> None:
    """Nothing is handed out below it (F22)."""
    scene = await make_scene(sqlite_core, fonts, a_moment_ago())
    scene.tsa.is_away = True

    with pytest.raises(ApplianceError) as caught:
        await scene.sign(profile(level, P.REQUIRED))

    assert caught.value.code is ErrorCode.TSA_UNAVAILABLE


@pytest.mark.parametrize("policy", list(P))
async def test_stale_revocation_data_counts_for_nothing(
    sqlite_core: CoreFixture, fonts: StampFonts, policy: TimestampPolicy
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
    sqlite_core: CoreFixture, fonts: StampFonts
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
    async with store.write() as transaction:
        claim = await HsmTaskStore(transaction).claim_next(
            "w", "h", now, DAY, 5, list(TaskKind)
        )
    assert claim is not None
    waiting = asyncio.create_task(source.of(scene.signer.certificate))
    await asyncio.sleep(0.3)

    await publishing.done(claim)
    while not waiting.done():
        async with store.read() as transaction:
            if await HsmTaskStore(transaction).any_open(TaskKind.PUBLISH):
                await scene.publish_crls()
                break
        await asyncio.sleep(0.02)

    assert (await waiting).ocsps


async def test_two_workers_raise_a_document_once(
    core: CoreFixture, fonts: StampFonts
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
    core: CoreFixture, fonts: StampFonts
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
    sqlite_core: CoreFixture, fonts: StampFonts, monkeypatch: pytest.MonkeyPatch
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
        pdf: bytes, wanted: SignatureLevel, tsa: tuple[str, ...], *rest: None
    ) -> ExtensionResult:
        seen.append(wanted)
        if len(seen) == 1:
            raise ZeroDivisionError
        return await keep(pdf, wanted, tsa, *rest)

    monkeypatch.setattr(scene.levels, "keep", keep_but_one)

    assert await scene.upkeep().run() == 1

    assert [(await scene.newest(each))[0].version for each in (broken, whole)] == [1, 2]
    assert (await scene.core.audited()).count("document.upkeep_failed") == 1


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
    sqlite_core: CoreFixture,
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
    sqlite_core: CoreFixture, fonts: StampFonts, tmp_path: Path
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
    sqlite_core: CoreFixture, fonts: StampFonts, tmp_path: Path
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


async def test_narrower_profile_wins(sqlite_core: CoreFixture) -> None:
    """Of the request, else of its integrator, else of the installation."""
    core = sqlite_core
    signer = await core.add_signer()
    request = await core.add_request(signer.person)
    installation = SignatureProfile(L.B_T, P.PREFERRED, DigestAlgorithm.SHA256)
    view = await core.view(request)
    assert installation.narrowed(view.wishes) == installation
    async with core.store.write() as transaction:
        (integrator,) = [
            each
            for each in await IntegratorStore(transaction).all()
            if each.id == view.integrator
        ]
        changed = replace(integrator, level=L.B_LTA, digest=DigestAlgorithm.SHA512)
        await IntegratorStore(transaction).change(changed)
        document = await DocumentStore(transaction).add(
            StoredDocument(
                DocumentId(new_id()), view.integrator, view.sha256, view.inspection
            ),
            core.now,
        )
        own = await RequestStore(transaction).add(
            NewRequest(
                signer.person, view.integrator, document.id, "a.pdf", "operador",
                core.now, None, ProfileWishes(L.B_LT, P.REQUIRED),
            )
        )  # fmt: skip

    inherited = installation.narrowed((await core.view(request)).wishes)
    narrowest = installation.narrowed((await core.view(own)).wishes)

    assert inherited == SignatureProfile(L.B_LTA, P.PREFERRED, DigestAlgorithm.SHA512)
    assert narrowest == SignatureProfile(L.B_LT, P.REQUIRED, DigestAlgorithm.SHA512)
