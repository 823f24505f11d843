"""A key for a person, made by a worker on a real SoftHSM.

Source: design §4 "Enrolment"; reliability F16.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import attrgetter
from pathlib import Path
from typing import Any

import pkcs11
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID
from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from appliance.database import tables
from appliance.documents.sandbox_client import SandboxClient
from appliance.domain.clock import SystemClock
from appliance.domain.documents.verification import VerificationReport
from appliance.domain.errors import ApplianceError, ErrorCode, HsmUnavailableError
from appliance.domain.ids import TaskId
from appliance.domain.keys.hsm_keys import (
    KeyMode,
    KeyReference,
    ResidentKey,
    SignatureScheme,
    TokenRole,
)
from appliance.domain.people.identity import Credential
from appliance.domain.pki.timestamps import RevokedTsa
from appliance.domain.ports import PdfInspector
from appliance.domain.signing.activation import ActivationFormat
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import CredentialState, Environment, EventKind, TaskState
from appliance.keys.activation_format import PinnedFormat
from appliance.keys.activation_keys import PublishedKeys
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import ORPHAN_AGE, HsmTasks, issue_binding
from appliance.keys.key_encryption import seal_to, signing_key
from appliance.record.installation_store import RESTORED, InstallationStore
from hsm_config.provisioning.ca_certificates import read_ca, read_root
from tests.integration.keys.locked_key import LockedKeyServices, locked_key_services
from tests.support.factories.fake_sandbox import PlayedSandbox
from tests.support.factories.signing_host import INSTALLATION
from tests.support.hsm.hsm_installation import HsmInstallation, verify
from tests.support.installation.record import PASSWORD, CoreFixture
from tests.support.services.sandbox_server import SandboxServer, running_sandbox
from worker.hsm.generation_check import GenerationCheck
from worker.hsm.session import HsmSession
from worker.leased_worker import Work, hold
from worker.pki import certificate_authority, certificate_profiles, sample_signature
from worker.pki.certificate_authority import Authority
from worker.pki.hsm_tasks import TASK_RENEW_S, TaskRunner
from worker.pki.new_keys import NewKeys
from worker.pki.sample_signature import SampleSignatures
from worker.signing.activation_keys import (
    JOURNAL,
    ActivationKeys,
    KeySweep,
    open_folder,
)
from worker.signing.consent_journal import ConsentJournal

DIGEST = bytes(range(32))
_LOOKS = 60


async def run(runner: TaskRunner, claim: TaskClaim) -> None:
    """Run a task to its end, as a worker does."""
    work = Work(
        "task",
        attrgetter("id"),
        runner.claim_next,
        runner.renew,
        runner.run,
        TASK_RENEW_S,
    )
    await hold(work, claim)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> HsmInstallation:
    """A trial after `hsm init`."""
    return HsmInstallation.ready(tmp_path_factory.mktemp("trial"))


@dataclass
class Bench:
    """A person who waits for a key, and a worker that makes it."""

    services: LockedKeyServices
    session: HsmSession
    installation: HsmInstallation
    keys: ActivationKeys
    journal: ConsentJournal
    sandbox: PdfInspector
    folder: Path

    def runner(self, mode: KeyMode, *, prefer_pss: bool = False) -> TaskRunner:
        """A worker that keeps keys in a mode."""
        core = self.services.core
        settings = self.installation.settings
        tasks = HsmTasks(core.store, core.clock, "signing/h/1", "p")
        served = GenerationCheck(self.session, core.store)
        return TaskRunner(
            tasks,
            Authority(self.session, read_ca(settings), settings),
            self.session,
            self.keys,
            self.journal,
            core.clock,
            mode,
            INSTALLATION,
            certificates=None,  # type: ignore[arg-type]  # there are no such tasks here
            requests=None,  # type: ignore[arg-type]  # nor such
            timestamps=None,  # type: ignore[arg-type]  # nor such
            served=served,
            samples=SampleSignatures(
                tasks,
                self.session,
                self.sandbox,
                read_root(settings).public_bytes(Encoding.DER),
                core.clock,
                served,
                prefer_pss=prefer_pss,
            ),
            new_keys=self.new_keys,
        )

    @property
    def new_keys(self) -> NewKeys:
        """Keys that the host of the worker makes."""
        folder = open_folder(self.folder, Environment.PREPROD)
        return NewKeys(folder, self.services.core.clock)

    async def ask(self) -> TaskId:
        """Take the person's key away and ask for another."""
        async with self.services.core.store.write() as transaction:
            for held in await CredentialStore(transaction).locked(
                self.services.signer.person
            ):
                await CredentialStore(transaction).set_state(
                    held.id, CredentialState.SUPERSEDED
                )
        await self.services.host.beat(self.services.core.store, self.services.core.now)
        return await self.services.issuing.again(
            self.services.signer, PASSWORD.decode()
        )

    async def claimed(self, runner: TaskRunner) -> TaskClaim:
        """Claim the task that is there."""
        for _ in range(_LOOKS):
            # Each waits for a sandbox that is slow to start.
            if (claim := await runner.claim_next()) is not None:
                return claim
        pytest.fail("there is no task to claim")

    async def made(self, mode: KeyMode) -> Credential:
        """Ask for a key, and have it made."""
        await self.ask()
        runner = self.runner(mode)
        await run(runner, await self.claimed(runner))
        return await self.services.credential()

    async def signs(self, credential: Credential) -> None:
        """Have the resident key of a credential sign, as the certified one."""
        key = signing_key(credential, b"")
        value = await self.session.sign(key, DIGEST, SignatureScheme.RSA_PKCS1)
        verify(credential.spki, value, DIGEST)

    async def restored(self) -> None:
        """Have the record be one that was brought back, and took nothing over."""
        async with self.services.core.store.write() as transaction:
            await InstallationStore(transaction).set_generation(RESTORED)

    async def state(self, task: TaskId) -> tuple[TaskState, str]:
        """How a task stands."""
        async with self.services.core.store.read() as transaction:
            status = await HsmTaskStore(transaction).status(task)
        assert status is not None
        return status.state, status.reason

    async def key_ids(self) -> set[bytes]:
        """CKA_IDs of the private keys on the users' token."""
        wanted = {pkcs11.Attribute.CLASS: pkcs11.ObjectClass.PRIVATE_KEY}

        def look(link: Any) -> set[bytes]:
            session = link.session(TokenRole.FIRMA)
            return {key[pkcs11.Attribute.ID] for key in session.get_objects(wanted)}

        return await self.session._call(look)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox for all tests here."""
    with running_sandbox() as server:
        yield server


@pytest.fixture
async def bench(
    sqlite_core: CoreFixture,
    installation: HsmInstallation,
    sandbox: SandboxServer,
    tmp_path: Path,
) -> AsyncIterator[Bench]:
    """With the HSM open, and a host whose activation key is in its folder."""
    # The CA was made now, by the machine's clock.
    sqlite_core.clock.at = SystemClock().now()
    services = await locked_key_services(sqlite_core, cuil="20055361682")
    folder = tmp_path / "activation"
    opened = open_folder(folder, Environment.PREPROD)
    for ahead in range(3):
        file = (
            folder / f"{ActivationFormat.WHOLE.epoch_at(sqlite_core.now) + ahead}.key"
        )
        file.write_bytes(services.host.private_bytes)
    async with installation.session() as session:
        keys = ActivationKeys(
            opened,
            PublishedKeys(sqlite_core.store),
            session,
            sqlite_core.clock,
            services.host.name,
            INSTALLATION,
            PinnedFormat(tmp_path / "activation-format"),
            services.host.key_file,
        )
        journal = ConsentJournal(opened, sqlite_core.clock, timedelta(seconds=60))
        yield Bench(
            services, session, installation, keys, journal, sandbox.client, folder
        )


async def test_wrapped_key_leaves_nothing_on_the_token(bench: Bench) -> None:
    """Made, tested, certified, locked: it opens by the password, and signs."""
    before = await bench.key_ids()

    credential = await bench.made(KeyMode.WRAPPED)

    assert await bench.key_ids() == before
    assert (credential.cka_id, credential.key_mode) == (None, KeyMode.WRAPPED)
    key = signing_key(credential, await bench.services.opened())
    value = await bench.session.sign(key, DIGEST, SignatureScheme.RSA_PKCS1)
    verify(credential.spki, value, DIGEST)


async def test_resident_key_has_a_permit(bench: Bench) -> None:
    """On the token by its CKA_ID; what is locked is nothing but a proof."""
    credential = await bench.made(KeyMode.RESIDENT)

    assert credential.cka_id in await bench.key_ids()
    assert len(await bench.services.opened()) == 32
    key = signing_key(credential, b"")
    assert isinstance(key, ResidentKey)
    value = await bench.session.sign(key, DIGEST, SignatureScheme.RSA_PKCS1)
    verify(credential.spki, value, DIGEST)


@pytest.mark.parametrize("mode", KeyMode)
async def test_altered_order_makes_no_key(bench: Bench, mode: KeyMode) -> None:
    """Another way of vouching, written into the row: nothing is made."""
    task = await bench.ask()
    runner = bench.runner(mode)
    claim = await bench.claimed(runner)
    before = await bench.key_ids()

    await run(runner, replace(claim, input={**claim.input, "vouchedBy": "officer"}))

    assert await bench.state(task) == (TaskState.FAILED, "ACTIVATION_INVALID")
    assert await bench.key_ids() == before


async def test_order_of_a_gone_epoch_fails_with_a_reason(bench: Bench) -> None:
    """And can be asked for again."""
    task = await bench.ask()
    runner = bench.runner(KeyMode.WRAPPED)
    claim = await bench.claimed(runner)
    assert claim.seal is not None

    await run(runner, replace(claim, seal=replace(claim.seal, epoch=1)))

    assert await bench.state(task) == (TaskState.FAILED, "ACTIVATION_EXPIRED")
    assert (await bench.made(KeyMode.WRAPPED)).key_mode is KeyMode.WRAPPED


async def test_key_of_a_killed_try_is_swept_after_an_hour(bench: Bench) -> None:
    """By the host that made it, once, audited; what came to a credential stays."""
    task = await bench.ask()
    runner = bench.runner(KeyMode.RESIDENT)
    orphan = bench.new_keys.begin(await bench.claimed(runner)).reference
    await bench.session.generate(orphan, bench.installation.settings.hsm.key_algorithm)
    bench.services.core.clock.forward(31)
    await run(runner, await bench.claimed(runner))
    credential = await bench.services.credential()

    early = await runner.sweep()
    bench.services.core.clock.forward(3600)
    swept = [await runner.sweep(), await runner.sweep()]

    assert early == 0
    assert swept == [2, 0]
    ids = await bench.key_ids()
    assert orphan.cka_id not in ids
    assert credential.cka_id in ids
    rows = [
        row.event
        for row in await bench.services.core.audit()
        if row.event.event.value == "key.orphan_destroyed"
    ]
    assert [(row.detail["task"], row.detail["objects"]) for row in rows] == [(task, 2)]


async def test_key_that_was_taken_for_left_gets_no_credential(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker stood still for an hour before the commit."""
    task = await bench.ask()
    runner = bench.runner(KeyMode.RESIDENT)
    claim = await bench.claimed(runner)
    prove = SampleSignatures.prove

    async def late(*given: Any) -> None:
        await prove(*given)
        bench.services.core.clock.forward(3601)
        await bench.runner(KeyMode.RESIDENT).sweep()

    monkeypatch.setattr(SampleSignatures, "prove", late)

    await run(runner, claim)

    assert (await bench.state(task))[0] is TaskState.RUNNING
    async with bench.services.core.store.read() as transaction:
        person = bench.services.signer.person
        assert await CredentialStore(transaction).active(person) is None


async def test_keys_that_are_made_outlive_the_sweep_of_activation_keys(
    bench: Bench,
) -> None:
    """What the host knows of them stands in the same folder."""
    task = await bench.ask()
    key = bench.new_keys.begin(await bench.claimed(bench.runner(KeyMode.RESIDENT)))
    clock = bench.services.core.clock
    clock.forward(3601)
    folder = open_folder(bench.folder, Environment.PREPROD)

    await KeySweep(folder, clock, PinnedFormat(bench.folder / "no-format")).run()

    assert bench.new_keys.left(ORPHAN_AGE) == [key]
    assert key.task == task


async def test_sweep_leaves_strangers_alone(bench: Bench) -> None:
    """A key that no task of this record made may be somebody's after a restore."""
    stranger = KeyReference(TokenRole.FIRMA, b"\x07" * 16)
    algorithm = bench.installation.settings.hsm.key_algorithm
    await bench.session.generate(stranger, algorithm)
    bench.services.core.clock.forward(7200)

    await bench.runner(KeyMode.RESIDENT).sweep()

    assert stranger.cka_id in await bench.key_ids()
    await bench.session.destroy(stranger)


async def test_no_row_has_the_key_of_a_credential_destroyed(bench: Bench) -> None:
    """Its task put back as it was before, an hour later, and its credential renamed."""
    credential = await bench.made(KeyMode.RESIDENT)
    store = bench.services.core.store
    bench.services.core.clock.forward(7200)
    async with store.write() as transaction:
        await transaction.connection.execute(
            update(tables.hsm_task).values(swept=None, state="failed", fence=9)
        )
        await transaction.connection.execute(
            update(tables.credential)
            .where(tables.credential.c.id == credential.id)
            .values(cka_id=b"\x01" * 16)
        )

    await bench.runner(KeyMode.RESIDENT).sweep()

    await bench.signs(credential)


async def test_task_put_back_makes_another_key(bench: Bench) -> None:
    """The same id and try: the key that it made before stays as it is."""
    credential = await bench.made(KeyMode.RESIDENT)
    core, task = bench.services.core, TaskId(credential.id)
    core.clock.forward(7200)
    info = issue_binding(
        task, credential.person, credential.vouched_by, credential.algorithm
    ).info()
    for ahead in range(3):
        epoch = ActivationFormat.WHOLE.epoch_at(core.now) + ahead
        bench.folder.joinpath(f"{epoch}.key").write_bytes(
            bench.services.host.private_bytes
        )
    await bench.services.host.beat(core.store, core.now)
    epoch = ActivationFormat.WHOLE.epoch_at(core.now)
    public = (
        X25519PrivateKey.from_private_bytes(bench.services.host.private_bytes)
        .public_key()
        .public_bytes_raw()
    )
    sealed = seal_to(public, b"\x05" * 32, info)
    async with core.store.write() as transaction:
        connection = transaction.connection
        await connection.execute(
            update(tables.hsm_task)
            .where(tables.hsm_task.c.id == task)
            .values(state="waiting", fence=0, lease_until=None, created=core.now)
        )
        await connection.execute(
            insert(tables.task_seal).values(
                task=task, host=bench.services.host.name, epoch=epoch, sealed=sealed
            )
        )
    # Another host, or this one after a reboot, has no journal of it.
    bench.folder.joinpath(JOURNAL).unlink()
    folder = open_folder(bench.folder, Environment.PREPROD)
    bench.journal = ConsentJournal(folder, core.clock, timedelta(seconds=60))
    runner = bench.runner(KeyMode.RESIDENT)

    with contextlib.suppress(IntegrityError):
        # There is such a credential already.
        await run(runner, await bench.claimed(runner))

    await bench.signs(credential)


async def test_overtaken_try_destroys_its_own_key(bench: Bench) -> None:
    """Frozen while it made one, thawed when another had: one key is left."""
    await bench.ask()
    runner = bench.runner(KeyMode.RESIDENT)
    slow = await bench.claimed(runner)
    bench.services.core.clock.forward(31)
    await run(runner, await bench.claimed(runner))
    credential = await bench.services.credential()
    before = await bench.key_ids()

    await run(runner, slow)

    assert await bench.key_ids() == before
    await bench.signs(credential)
    assert await bench.services.credential() == credential


async def test_record_that_was_left_destroys_no_key_and_makes_none(
    bench: Bench,
) -> None:
    """The HSM serves another restore of it."""
    await bench.ask()
    begun = bench.new_keys.begin(await bench.claimed(bench.runner(KeyMode.RESIDENT)))
    algorithm = bench.installation.settings.hsm.key_algorithm
    await bench.session.generate(begun.reference, algorithm)
    bench.services.core.clock.forward(3601)
    await bench.restored()
    runner = bench.runner(KeyMode.RESIDENT)

    with pytest.raises(HsmUnavailableError):
        await runner.sweep()

    assert begun.cka_id in await bench.key_ids()
    assert await runner.claim_next() is None


async def nothing_is_left(bench: Bench, before: set[bytes]) -> None:
    """No key on the token, no certificate and no credential in use."""
    assert await bench.key_ids() == before
    async with bench.services.core.store.read() as transaction:
        person = bench.services.signer.person
        assert await CredentialStore(transaction).active(person) is None
        rows = await transaction.connection.execute(select(tables.certificate.c.serial))
        assert rows.all() == []


@pytest.mark.parametrize("mode", KeyMode)
async def test_new_key_signs_a_sample_whose_digest_is_audited_first(
    bench: Bench, mode: KeyMode
) -> None:
    """Once, between the order and the credential."""
    credential = await bench.made(mode)

    rows = [row.event for row in await bench.services.core.audit()]
    kinds = [row.event for row in rows]
    assert kinds[-3:] == [
        EventKind.TASK_CREATED,
        EventKind.SAMPLE_INTENDED,
        EventKind.CREDENTIAL_ISSUED,
    ]
    detail = rows[-2].detail
    assert detail["credential"] == credential.id
    assert len(bytes.fromhex(str(detail["digest"]))) == 32


async def test_sample_is_signed_as_documents_are(bench: Bench) -> None:
    """By PSS, where RSA keys of the installation sign so."""
    await bench.ask()
    runner = bench.runner(KeyMode.WRAPPED, prefer_pss=True)

    await run(runner, await bench.claimed(runner))

    assert (await bench.services.credential()).key_mode is KeyMode.WRAPPED


@pytest.mark.parametrize("mode", KeyMode)
async def test_name_that_the_verifier_cannot_compare_is_not_certified(
    bench: Bench, mode: KeyMode
) -> None:
    """Though it is in the database, as it may be from before it was refused."""
    before = await bench.key_ids()
    task = await bench.ask()
    async with bench.services.core.store.write() as transaction:
        await transaction.connection.execute(
            update(tables.person)
            .where(tables.person.c.id == bench.services.signer.person)
            .values(name="Ana \N{SLIGHTLY SMILING FACE}")
        )
    runner = bench.runner(mode)

    await run(runner, await bench.claimed(runner))

    assert await bench.state(task) == (TaskState.FAILED, "CERTIFICATE_UNVERIFIABLE")
    await nothing_is_left(bench, before)


@pytest.mark.parametrize("mode", KeyMode)
@pytest.mark.parametrize("extension", ["critical", "purpose"])
async def test_extension_that_the_verifier_refuses_is_not_certified(
    bench: Bench, mode: KeyMode, extension: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown critical one, and a purpose that is not for documents."""
    odd: tuple[x509.ExtensionType, bool] = {
        "critical": (
            x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\5\0"),
            True,
        ),
        "purpose": (
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
            False,
        ),
    }[extension]
    sound = certificate_profiles.signer_extensions

    def with_odd(*args: Any) -> tuple[tuple[x509.ExtensionType, bool], ...]:
        kept = [each for each in sound(*args) if each[0].oid != odd[0].oid]
        return (*kept, odd)

    before = await bench.key_ids()
    task = await bench.ask()
    runner = bench.runner(mode)
    with monkeypatch.context() as patched:
        patched.setattr(certificate_authority, "signer_extensions", with_odd)
        await run(runner, await bench.claimed(runner))

    assert await bench.state(task) == (TaskState.FAILED, "CERTIFICATE_UNVERIFIABLE")
    await nothing_is_left(bench, before)
    assert (await bench.made(mode)).key_mode is mode


@pytest.mark.parametrize("mode", KeyMode)
async def test_task_waits_for_the_sandbox_and_is_not_refused(
    bench: Bench, mode: KeyMode, tmp_path: Path
) -> None:
    """What cannot be verified now is tried again: one attempt is used up, no more."""
    before, there = await bench.key_ids(), bench.sandbox
    task = await bench.ask()
    away = bench.runner(mode)
    claim = await bench.claimed(away)
    bench.sandbox = SandboxClient(tmp_path / "nobody.sock", timeout_s=5)
    away = bench.runner(mode)

    await run(away, claim)
    bench.services.core.clock.forward(31)
    unclaimed = [await away.claim_next() for _ in range(10)]

    assert unclaimed == [None] * 10
    assert await bench.state(task) == (TaskState.RUNNING, "")
    await nothing_is_left(bench, before)
    bench.sandbox = there
    runner = bench.runner(mode)
    again = await bench.claimed(runner)
    await run(runner, again)
    assert again.fence == claim.fence + 1
    assert await bench.state(task) == (TaskState.DONE, "")


async def test_overtaken_try_does_not_use_its_key(bench: Bench) -> None:
    """Another claim came before the sample: nothing is audited, and nothing signed."""
    await bench.ask()
    runner = bench.runner(KeyMode.WRAPPED)
    slow = await bench.claimed(runner)
    bench.services.core.clock.forward(31)
    await run(runner, await bench.claimed(runner))
    audited = await bench.services.core.audited()

    await run(runner, slow)

    assert await bench.services.core.audited() == audited


class SlowToAnswer(PlayedSandbox):
    """A sandbox whose answer to a ping waits for the test."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.asked = 0

    async def ping(self) -> None:
        """Answer when told to."""
        self.asked += 1
        await self.answers.wait()


async def test_slow_sandbox_keeps_no_task_waiting_for_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that comes after the look counts at the next one, asked for once."""
    monkeypatch.setattr(sample_signature, "_PING_S", 0.0)
    await bench.ask()
    slow = SlowToAnswer()
    bench.sandbox = slow
    runner = bench.runner(KeyMode.WRAPPED)

    unclaimed = [await runner.claim_next() for _ in range(3)]
    slow.answers.set()
    claim = await bench.claimed(runner)

    assert unclaimed == [None] * 3
    assert slow.asked == 1
    assert claim.fence == 1


class CountedJobs(PlayedSandbox):
    """A sandbox that counts what it is asked.

    Args:
        inspector: the real one.
    """

    def __init__(self, inspector: PdfInspector) -> None:
        self._inspector = inspector
        self.pings = self.verified = 0

    async def ping(self) -> None:
        """See `PdfInspector`."""
        self.pings += 1
        await self._inspector.ping()

    async def verify(
        self,
        pdf: bytes,
        roots: Sequence[bytes],
        stamp_roots: Sequence[bytes] | None = None,
        revoked: Sequence[RevokedTsa] = (),
    ) -> VerificationReport:
        """See `PdfInspector`."""
        self.verified += 1
        return await self._inspector.verify(pdf, roots, stamp_roots, revoked)


async def test_enrolments_in_a_row_cost_one_job_each(bench: Bench) -> None:
    """And one question, whether the sandbox answers, for all of them."""
    bench.sandbox = counted = CountedJobs(bench.sandbox)
    runner = bench.runner(KeyMode.WRAPPED)

    for _ in range(3):
        await bench.ask()
        await run(runner, await bench.claimed(runner))

    assert (counted.verified, counted.pings) == (3, 1)


async def test_sandbox_that_went_away_is_asked_before_it_is_used(bench: Bench) -> None:
    """What was believed of it is over with the first task that it failed."""
    bench.sandbox = CountedJobs(bench.sandbox)
    runner = bench.runner(KeyMode.WRAPPED)
    await bench.ask()
    await run(runner, await bench.claimed(runner))
    await bench.ask()
    claim = await bench.claimed(runner)

    runner.samples.inspector = PlayedAway()
    await run(runner, claim)
    bench.services.core.clock.forward(31)

    assert [await runner.claim_next() for _ in range(3)] == [None] * 3


class PlayedAway(PlayedSandbox):
    """A sandbox that nobody can reach."""

    async def ping(self) -> None:
        """Be away."""
        raise ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)

    async def verify(
        self,
        pdf: bytes,
        roots: Sequence[bytes],
        stamp_roots: Sequence[bytes] | None = None,
        revoked: Sequence[RevokedTsa] = (),
    ) -> VerificationReport:
        """Be away."""
        del pdf, roots, stamp_roots, revoked
        raise ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)
