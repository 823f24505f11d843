"""The worker roles: `signing` and `chores`."""

import asyncio
import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TextIO

import structlog

from appliance.bootstrap import (
    Core,
    data_sealer,
    document_sealer,
    heartbeat,
    open_auto_renewal,
    open_core,
    open_expiry,
    open_trust,
)
from appliance.documents.garbage_collection import GarbageCollection
from appliance.documents.passing_documents import PassingDocuments
from appliance.domain.clock import SystemClock
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.signing.hsm_tasks import slot_host
from appliance.domain.vocab import Environment
from appliance.identity.signers_for_tests_in_prod import SignersForTestsInProd
from appliance.integrators.key_expiry import KeyExpiry
from appliance.keys.activation_format import PinnedFormat
from appliance.keys.activation_keys import PublishedKeys
from appliance.keys.hsm_tasks import HsmTasks
from appliance.mail.work import MailUpkeep
from appliance.metrics import metrics
from appliance.metrics.metrics_file import handing_over
from appliance.operations.metrics.database_metrics import EVERY_S, RecordMetrics
from appliance.pki.ca_certificates import AuthorityFiles, read_authority
from appliance.pki.csr import CsrWork
from appliance.pki.publication import Publishing
from appliance.pki.renewal import Renewal
from appliance.pki.tsa.authority import TimestampWork
from appliance.pki.validation.pinned_anchors import PinnedAnchors
from appliance.pki.validation.validation_material import ValidationSource
from appliance.requests.inspection import Inspections
from appliance.runtime.hang_watchdog import CallWatch, watch_path
from appliance.runtime.liveness_file import BEAT_S, beat, pulse_path
from appliance.runtime.processes import stop_event
from appliance.runtime.systemd_notify import ServiceManager
from appliance.settings import Settings, SettingsError
from appliance.signing.claims import Claims
from appliance.signing.expiry import ExpiryJob
from appliance.signing.level_maintenance import UpkeepWork
from appliance.signing.outside_material import MaterialDesk
from appliance.signing.reexamination import Reexamination
from appliance.signing.signing_order import SigningOrder
from appliance.system.late_imports import WORKERS, load_late
from hsm_config.profile import load_profile
from worker.batch_preparer import BatchPreparer, batch_preparation
from worker.hsm.generation_check import GenerationCheck
from worker.hsm.session import HsmSession
from worker.hsm.watchdog import calls_guarded
from worker.network.recorded_status import RecordedStatus
from worker.network.role import mail_takers, open_outside
from worker.network.trusted_roots import anchors_of, stampers_of
from worker.network.webhooks_role import open_telling
from worker.pades.appearance.fonts import StampFonts, load_fonts
from worker.pades.reading_limits import read_beside_others
from worker.periodic_jobs import attempt, repeat
from worker.pki.certificate_authority import Authority
from worker.pki.certificate_tasks import CertificateTasks
from worker.pki.csr import CsrTasks
from worker.pki.expiry_notices import Ends
from worker.pki.hsm_tasks import TaskRunner
from worker.pki.new_keys import NewKeys
from worker.pki.publisher import Publisher
from worker.pki.sample_signature import SampleSignatures
from worker.pki.scheduled import AuthorityChores
from worker.pki.tsa import InternalTsa
from worker.pki.tsa_tasks import TimestampTasks
from worker.signing.activation_keys import (
    ActivationFolder,
    ActivationKeys,
    KeySweep,
    open_folder,
)
from worker.signing.aging_seals import SealRenewal
from worker.signing.completion import Completion
from worker.signing.consent_journal import ConsentJournal
from worker.signing.credential_statement import CredentialStatements
from worker.signing.document_signer import DocumentSigner
from worker.signing.level_extension import Levels
from worker.signing.level_maintenance import LevelUpkeep, OverdueUpkeep
from worker.signing.outside_material import MaterialReader
from worker.signing_role import SigningWorker

_log = structlog.get_logger(__name__)
_CHORES_S = 5.0
_SWEEP_S = 3600.0
_UPKEEP_S = 10.0
_TELL_S = 1.0
_SWEEP_KEYS_S = 1.0


def run_signing(settings: Settings, number: int, listener: socket.socket | None) -> int:
    """The `signing` role: the one process kind that signs with users' keys."""
    del listener
    load_late(WORKERS)
    fonts = load_fonts(settings.fonts_dir)
    with _slot(settings, "signing", number) as slot:
        # Only now: the words are those of whoever holds the slot.
        watch = CallWatch(watch_path(settings.run_dir, number))
        watch.begin()
        asyncio.run(_sign(settings, slot, number, watch, fonts))
    return 0


async def _sign(
    settings: Settings, slot: str, number: int, watch: CallWatch, fonts: StampFonts
) -> None:
    stop = stop_event()
    read_beside_others(settings.run_dir, "signing", number)
    clock = SystemClock()
    limit_s = settings.hsm.call_limit_s
    pulse = pulse_path(settings.run_dir, "signing", number)
    async with (
        handing_over(settings.metrics_dir, "signing", number),
        open_core(settings, clock, slot, document_sealer(settings)) as core,
        calls_guarded(watch, limit_s, ServiceManager(pulse=pulse)),
    ):
        profile = load_profile(settings.hsm.profile)
        is_production = settings.environment is Environment.PROD
        metrics.HSM_SOFTWARE.set(is_production and profile.quirks.software)
        # Before any PIN is tried: files that will not do are an operator's matter, and
        # each new start would use up a try of a PIN that is refused.
        folder = open_folder(settings.activation_dir, settings.environment)
        files = read_authority(settings)
        # Before all else, and by itself: HSM and record may be away for long.
        sweep = KeySweep(folder, clock, PinnedFormat(settings.activation_format_file))
        sweeping = asyncio.create_task(repeat(_SWEEP_KEYS_S, sweep.run))
        session = HsmSession(
            settings.hsm,
            profile,
            watch=watch,
            environment=settings.environment,
            number=number,
        )
        await session.open()
        try:
            worker = _worker(core, session, folder, files, fonts, slot)
            await worker.run(stop)
        finally:
            sweeping.cancel()
            await session.close()


def _worker(
    core: Core,
    session: HsmSession,
    folder: ActivationFolder,
    files: AuthorityFiles,
    fonts: StampFonts,
    slot: str,
) -> SigningWorker:
    settings, clock = core.settings, core.clock
    installation = settings.installation
    keys = ActivationKeys(
        folder,
        PublishedKeys(core.store),
        session,
        clock,
        slot_host(slot),
        installation,
        PinnedFormat(settings.activation_format_file),
        settings.host_key_file,
    )
    journal = ConsentJournal(folder, clock, timedelta(seconds=settings.signing.key_s))
    authority = Authority(session, files.ca_certificate, settings)
    publishing = Publishing(core.store, clock, settings.pki, slot, core.work_notifier)
    claims = Claims(
        core.store,
        core.completion_notifier,
        clock,
        settings.signing,
        slot,
        core.process,
    )
    tsa = InternalTsa(
        session, authority, publishing, clock, settings.timestamps.accuracy_s
    )
    source = ValidationSource(core.store, clock, files, publishing)
    levels = Levels(
        tsa,
        source,
        clock,
        settles=timedelta(seconds=settings.pki.ocsp_validity_s),
        renewal=timedelta(days=settings.profile.renew_days),
    )
    trust = open_trust(core)
    materials = MaterialReader(
        MaterialDesk(core.store, clock, settings.signing),
        settings.timestamps,
        RecordedStatus(core.store, clock),
        tsa,
        stampers_of(trust),
        anchors_of(trust),
    )
    inspections = Inspections(core.store, core.documents, core.inspector, clock)
    turns = SigningOrder(core.store, inspections, clock)
    served = GenerationCheck(session, core.store)
    statements = CredentialStatements(
        (files.root, files.ca),
        PinnedAnchors(settings.outside_anchors_file),
        PinnedFormat(settings.activation_format_file),
        partial(open_trust(core).roots, AnchorPurpose.SIGNERS),
    )
    completion = Completion(
        claims,
        core.documents,
        turns,
        levels,
        settings.signature_profile,
        source.is_internal,
        materials,
    )
    tasks = HsmTasks(core.store, clock, slot, core.process)
    signer = DocumentSigner(
        claims,
        core.documents,
        completion,
        levels,
        session,
        keys,
        fonts,
        clock,
        installation,
        served,
        inspections,
        statements,
        journal,
        prefer_pss=settings.hsm.signature_scheme == "rsa-pss",
        refuses_tests=settings.environment is Environment.PROD,
    )
    return SigningWorker(
        core=core,
        claims=claims,
        signer=signer,
        tasks=TaskRunner(
            tasks,
            authority,
            session,
            keys,
            journal,
            clock,
            settings.hsm.key_mode,
            installation,
            CertificateTasks(
                Publisher(
                    session, authority, files.root_certificate, publishing, clock
                ),
                publishing,
                Renewal(core.store, clock, slot),
                authority,
                clock,
                core.inspector,
                files.root,
                statements,
            ),
            CsrTasks(
                CsrWork(core.store, slot),
                session,
                keys,
                journal,
                installation,
                statements,
            ),
            TimestampTasks(TimestampWork(core.store, clock, slot), tsa),
            served,
            SampleSignatures(
                tasks,
                session,
                core.inspector,
                files.root,
                clock,
                served,
                prefer_pss=settings.hsm.signature_scheme == "rsa-pss",
                digest=settings.signature_profile.digest,
            ),
            NewKeys(folder, clock),
        ),
        keys=keys,
        session=session,
        slot=slot,
        upkeep=LevelUpkeep(
            UpkeepWork(core.store, clock, slot),
            core.documents,
            levels,
            materials,
            core.work_notifier,
        ),
        seals=SealRenewal(
            core.store,
            claims,
            signer,
            keys,
            clock,
            slot_host(slot),
            timedelta(seconds=settings.signing.key_s),
        ),
        served=served,
    )


def run_chores(settings: Settings, number: int, listener: socket.socket | None) -> int:
    """The `chores` role: what is due by itself; it never opens the HSM."""
    del listener
    load_late(WORKERS)
    with _slot(settings, "chores", number) as slot:
        asyncio.run(_do_chores(settings, slot, number))
    return 0


async def _do_chores(settings: Settings, slot: str, number: int) -> None:
    stop = stop_event()
    read_beside_others(settings.run_dir, "chores", number)
    sealer = document_sealer(settings)
    async with (
        handing_over(settings.metrics_dir, "chores", number),
        open_core(settings, SystemClock(), slot, sealer) as core,
        open_outside(core, slot) as outside,
        open_telling(core, slot, data_sealer(settings), mail_takers(core)) as telling,
        heartbeat(core, "chores", number),
    ):
        documents = GarbageCollection(
            core.store, core.documents, core.clock, settings.documents
        )
        passing = PassingDocuments(core.store, core.documents, core.clock)
        kept = timedelta(days=settings.signing.idempotency_days)
        known = timedelta(days=settings.auth.known_address_days)
        sweeping = ExpiryJob(
            core.store, core.completion_notifier, core.clock, kept, known
        )
        overdue = OverdueUpkeep(core.store, core.clock)
        ends = Ends(open_expiry(core), open_auto_renewal(core), core.clock)
        authority = AuthorityChores(core, slot)
        figures = RecordMetrics(
            core.store, core.clock, open_expiry(core), core.clock_check, settings
        )
        inspections = Inspections(
            core.store, core.documents, core.inspector, core.clock
        )
        reexamination = Reexamination(core.store, inspections)
        turns = SigningOrder(core.store, inspections, core.clock)
        keys = KeyExpiry(core.store, core.clock)
        preparation = batch_preparation(core, slot)
        mails = MailUpkeep(core.store, core.clock, is_on=settings.mail.is_on)
        _log.info("worker.started", slot=slot)
        # What looks at documents takes its time; nothing else waits for it.
        beside = [
            asyncio.create_task(_beat(pulse_path(settings.run_dir, "chores", number))),
            asyncio.create_task(attempt(partial(_renew, reexamination))),
            asyncio.create_task(repeat(_SWEEP_S, documents.run)),
            asyncio.create_task(repeat(_UPKEEP_S, documents.after_sessions)),
            asyncio.create_task(repeat(_UPKEEP_S, passing.sweep)),
            asyncio.create_task(repeat(_UPKEEP_S, outside.materials.forget)),
            asyncio.create_task(repeat(_CHORES_S, turns.give_on)),
            asyncio.create_task(repeat(EVERY_S, figures.look)),
            asyncio.create_task(repeat(_TELL_S, telling.hand_on)),
            asyncio.create_task(repeat(_SWEEP_S, telling.delivery.forget)),
            asyncio.create_task(repeat(_SWEEP_S, preparation.forget)),
            asyncio.create_task(repeat(_SWEEP_S, keys.warn)),
            asyncio.create_task(repeat(_UPKEEP_S, mails.run)),
        ]
        no_tests = SignersForTestsInProd(core.store, settings.environment)
        others = (
            no_tests.disable,
            sweeping.expire_activations,
            sweeping.expire_requests,
            sweeping.expire_sessions,
            sweeping.fail_tasks,
            sweeping.forget,
            ends.run,
            overdue.run,
            authority.run,
            telling.delivery.withdraw,
        )
        outward = [
            asyncio.create_task(outside.fetcher.run(stop)),
            asyncio.create_task(telling.run(stop)),
            asyncio.create_task(
                BatchPreparer(preparation, core.work_channel).run(stop)
            ),
        ]
        if outside.mails is not None:
            outward.append(asyncio.create_task(outside.mails.run(stop)))
        while not stop.is_set():
            for task in outward:
                if task.done():
                    # Without it what it has in hand does not get on.
                    task.result()
            for chore in others:
                await attempt(chore)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CHORES_S):
                    await stop.wait()
        await asyncio.gather(*outward)
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)


async def _beat(pulse: Path) -> None:
    """Say for ever that the process gets on."""
    while True:
        beat(pulse)
        await asyncio.sleep(BEAT_S)


async def _renew(reexamination: Reexamination) -> None:
    """Bring inspections up to date, once: another version comes with a new start."""
    renewed = await reexamination.renew()
    _log.info("inspections.renewed", count=renewed)


@contextmanager
def _slot(settings: Settings, kind: str, number: int) -> Iterator[str]:
    """Hold a slot of this host: its name, while no other process has it.

    Raises:
        SettingsError: another living process has that number, or `run_dir` is not
            there, or not this user's to write.
    """
    path = pulse_path(settings.run_dir, kind, number)
    with _opened(path) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            msg = f"{path}: another {kind} worker with number {number} is running"
            raise SettingsError(msg) from exc
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield f"{kind}/{socket.gethostname()}/{number}"


def _opened(path: Path) -> TextIO:
    try:
        return path.open("w", encoding="utf-8")
    except OSError as exc:
        msg = f"{path}: cannot be written ({exc.strerror}); is run_dir as it should be?"
        raise SettingsError(msg) from exc
