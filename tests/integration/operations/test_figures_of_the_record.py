"""What really happens moves the figures that the chores read from the record.

Each test has a real end or a real fault come, and sees the very figure that an alert
rule reads go where the rule fires, and back. The table stands in
`tests.integration.operations.test_alert_rules`.
"""

import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from appliance.bootstrap import Core, open_trust
from appliance.bootstrap.certificates import open_expiry
from appliance.database.engines import open_engines
from appliance.domain.clock import SystemClock
from appliance.domain.ids import RequestBatchId, TaskId, new_id
from appliance.domain.pki.certificates import (
    CertificateRecord,
    Crl,
    OcspAnswer,
    serial_text,
)
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.requests.backend_batch import (
    BatchToPrepare,
    DocumentToPrepare,
    RequestBatch,
)
from appliance.domain.requests.process import ProcessNote
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.domain.vocab import (
    BatchState,
    CertificateKind,
    CertificateState,
    TaskKind,
)
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import HsmTasks
from appliance.keys.worker_store import WorkerStore
from appliance.operations.metrics.database_metrics import RecordMetrics
from appliance.operations.metrics.facts import DISK_BYTES
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.publication_store import PublicationStore
from appliance.record.database_clock import database_time
from appliance.record.unit_of_work import Database
from appliance.requests.batch_queue import BatchQueue
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.system.clock_check import ClockCheck
from hsm_config.provisioning.ca_certificates import key_identifier
from tests.integration.operations.metric_values import alert_of_ground, figure
from tests.integration.signing.claims import claim
from tests.integration.signing.level_scene import (
    L,
    P,
    a_moment_ago,
    make_scene,
    profile,
)
from tests.support.factories.fakes import MovingClock
from tests.support.faults.small_disk import fill, small_disk
from tests.support.installation.record import CoreFixture, open_record
from tests.support.installation.settings import settings_in
from tests.support.pki.outside_ca import (
    Form,
    OutsideCa,
    bundle,
    der,
    ec_key,
    make,
    named,
    spki_of,
    usage,
)
from tests.support.services.postgres import PostgresServer, database_name
from worker.pades.appearance.fonts import StampFonts

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NOT_AFTER = "rubrica_certificate_not_after_timestamp_seconds"
CRL_MADE = "rubrica_crl_this_update_timestamp_seconds"
CRL_ENDS = "rubrica_crl_next_update_timestamp_seconds"
OCSP_MADE = "rubrica_ocsp_oldest_this_update_timestamp_seconds"
OCSP_ENDS = "rubrica_ocsp_first_next_update_timestamp_seconds"
BEHIND = "rubrica_documents_behind_oldest_seconds"
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}' "
    "AND pid <> pg_backend_pid()"
)


def told(name: str, **labels: str) -> float | None:
    """A figure, as the chores hand it over."""
    return figure("chores", name, **labels)


async def look(core: CoreFixture, clock_check: ClockCheck | None = None) -> None:
    """Look at the record once, as the chores do every ten seconds."""
    await metrics_of(core, clock_check).look()


def metrics_of(
    core: CoreFixture, clock_check: ClockCheck | None = None
) -> RecordMetrics:
    """What looks at the record."""
    check = clock_check or ClockCheck(core.clock, _no_time, lambda: None)
    expiry = open_expiry(cast("Core", core))
    return RecordMetrics(core.store, core.clock, expiry, check, core.settings)


async def _no_time() -> datetime | None:
    """No database has a clock of its own."""
    return None


def internal_ca(core: CoreFixture) -> OutsideCa:
    """An internal CA, its certificates where `hsm init` would put them."""
    ca = OutsideCa(core.now, "Rúbrica CA interna")
    for file, one in (
        (core.settings.root_file, ca.root),
        (core.settings.ca_file, ca.issuing),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bundle(one))
    return ca


def left(ends: str, made: str, now: datetime, **labels: str) -> float:
    """Which part of its life is left of what is published; below 0.25 it is old."""
    until, since = told(ends, **labels), told(made, **labels)
    assert until is not None
    assert since is not None
    return (until - now.timestamp()) / (until - since)


async def test_crl_grows_old_and_is_made_anew(core: CoreFixture) -> None:
    """RubricaCrlOld: each CA's own."""
    ca = internal_ca(core)
    issuers = {"issuing": der(ca.issuing), "root": der(ca.root)}

    async def publish(number: int) -> None:
        now = core.now
        for issuer in issuers.values():
            name = key_identifier(x509.load_der_x509_certificate(issuer))
            crl = Crl(name, number, b"crl", now, now + DAY)
            async with core.store.write() as transaction:
                assert await PublicationStore(transaction).put_crl(crl)

    await publish(1)
    for passed, old in ((timedelta(), False), (19 * HOUR, True)):
        core.clock.forward(passed.total_seconds())
        await look(core)
        for name in issuers:
            assert (left(CRL_ENDS, CRL_MADE, core.now, ca=name) < 0.25) is old
    await publish(2)
    await look(core)
    assert left(CRL_ENDS, CRL_MADE, core.now, ca="root") == 1


async def test_ocsp_answer_grows_old_and_is_made_anew(core: CoreFixture) -> None:
    """RubricaOcspOld: the one that ends first counts."""
    ca = internal_ca(core)
    leaves = [ca.certify(spki_of(ec_key()), f"2000000000{n}") for n in range(2)]

    async def answer(leaf: x509.Certificate) -> None:
        now, serial = core.now, serial_text(leaf.serial_number)
        made = OcspAnswer(serial, CertificateState.VALID, b"answer", now, now + DAY)
        async with core.store.write() as transaction:
            assert await PublicationStore(transaction).put_answer(made)

    for leaf in leaves:
        await _record(core, ca, leaf, CertificateKind.SIGNER)
        await answer(leaf)
    await look(core)
    assert left(OCSP_ENDS, OCSP_MADE, core.now) == 1
    core.clock.forward((19 * HOUR).total_seconds())
    await answer(leaves[0])
    await look(core)
    assert left(OCSP_ENDS, OCSP_MADE, core.now) < 0.25
    await answer(leaves[1])
    await look(core)
    assert left(OCSP_ENDS, OCSP_MADE, core.now) == 1


async def _record(
    core: CoreFixture, ca: OutsideCa, leaf: x509.Certificate, kind: CertificateKind
) -> None:
    """Put a certificate of the internal CA on the record."""
    made = CertificateRecord(
        serial_text(leaf.serial_number),
        kind,
        key_identifier(ca.issuing),
        None,
        der(leaf),
        leaf.not_valid_before_utc,
        leaf.not_valid_after_utc,
    )
    async with core.store.write() as transaction:
        await CertificateStore(transaction).add(made)


async def test_certificate_of_each_kind_comes_to_its_end(core: CoreFixture) -> None:
    """RubricaCertificateEnds: the CA's, a responder's, a TSA's and a trusted root."""
    ca = internal_ca(core)
    for kind in (CertificateKind.OCSP, CertificateKind.TSA):
        leaf = ca.certify(spki_of(ec_key()), "20000000001", end=core.now + 90 * DAY)
        await _record(core, ca, leaf, kind)
    trust, root = open_trust(cast("Core", core)), _root(core.now, 60 * DAY)
    fingerprint = root.fingerprint(hashes.SHA256()).hex()
    added = await trust.add("test", bundle(root), AnchorPurpose.SIGNERS, fingerprint)

    for days in (0, 45):
        core.clock.forward((days * DAY).total_seconds())
        await look(core)
        ends = {
            kind: told(NOT_AFTER, kind=kind) for kind in ("ca", "ocsp", "tsa", "anchor")
        }
        days_left = {
            kind: round((end - core.now.timestamp()) / DAY.total_seconds())
            for kind, end in ends.items()
            if end is not None
        }
        assert days_left == {
            "ca": 3650 - days,
            "ocsp": 90 - days,
            "tsa": 90 - days,
            "anchor": 60 - days,
        }
    await trust.remove("test", added.id)
    await look(core)
    assert told(NOT_AFTER, kind="anchor") is None


def _root(now: datetime, life: timedelta) -> x509.Certificate:
    """A root of its own, good from a day ago."""
    key, name = ec_key(), named("AC que termina")
    form = Form(
        subject=name,
        start=now - DAY,
        end=now + life,
        ca=True,
        usage=usage("key_cert_sign", "crl_sign"),
        purposes=None,
    )
    return make(form, spki_of(key), name, key)


async def test_signers_certificate_comes_to_its_end(core: CoreFixture) -> None:
    """RubricaSignersEnd: until another one is in its place."""
    signer = await core.add_signer(credential=False)
    await core.add_credential(signer.person, not_after=core.now + 10 * DAY)
    for days, ending in ((0, 10), (8, 2)):
        core.clock.forward((days * DAY).total_seconds())
        await look(core)
        end = told(NOT_AFTER, kind="signer")
        assert end == (core.now + ending * DAY).timestamp()
        assert told("rubrica_signer_certificates_ending") == 1
    core.clock.forward((3 * DAY).total_seconds())
    await look(core)
    # What ended signs no more, and is no news for ever.
    assert told(NOT_AFTER, kind="signer") is None


async def test_level_falls_behind_while_the_tsa_is_away(
    core: CoreFixture, fonts: StampFonts
) -> None:
    """RubricaLevelsBehind: by real documents, until they are raised."""
    scene = await make_scene(core, fonts, a_moment_ago() - 2 * DAY)
    core.clock = scene.clock
    scene.tsa.is_away = True
    for _ in range(2):
        await scene.publish(*await scene.sign(profile(L.B_LT, P.PREFERRED)))
    for passed in (MINUTE, HOUR):
        scene.clock.forward(passed.total_seconds())
        assert await scene.upkeep().run() == 0
    await look(core)

    assert told("rubrica_documents_behind", level="B-LT") == 2
    oldest = told(BEHIND, level="B-LT")
    assert oldest is not None
    assert 3600 < oldest <= 3660

    scene.tsa.is_away = False
    scene.clock.forward(HOUR.total_seconds())
    assert await scene.upkeep().run() == 2
    await look(core)
    assert told(BEHIND, level="B-LT") is None


async def test_workers_lose_their_hsm_and_are_gone(core: CoreFixture) -> None:
    """RubricaNoSigningWorker: those that are alive, by the state of their HSM."""
    told_of = []
    for hsm, later_s in (("ready", 0), ("unavailable", 0), ("ready", 0), ("ready", 20)):
        status = WorkerStatus("signing/a/1", "p", core.now, hsm, "")
        async with core.store.write() as transaction:
            await WorkerStore(transaction).beat(status)
        core.clock.forward(later_s)
        await look(core)
        told_of.append(told("rubrica_signing_workers", hsm="ready"))
    assert told_of == [1, 0, 1, 0]


async def test_what_waits_grows_old_until_it_is_taken_up(core: CoreFixture) -> None:
    """RubricaQueueWaits: signatures and HSM tasks that nobody has in hand."""
    await core.add_activation(await core.add_signer(), claim_s=600)
    async with core.store.write() as transaction:
        task = TaskId(new_id())
        await HsmTaskStore(transaction).add(task, TaskKind.PUBLISH, {}, core.now)
    core.clock.forward(61)
    await look(core)
    for queue in ("activations", "hsm_tasks"):
        assert told("rubrica_queue_oldest_seconds", queue=queue) == 61
    assert await claim(core) is not None
    work = HsmTasks(core.store, core.clock, "signing/h/1", "p")
    assert await work.claim_next([TaskKind.PUBLISH]) is not None
    await look(core)
    for queue in ("activations", "hsm_tasks"):
        assert told("rubrica_queue_oldest_seconds", queue=queue) == 0


async def test_batches_that_wait_are_counted(core: CoreFixture) -> None:
    """Since the oldest of them came."""
    whose = await core.add_integrator("acme")
    for _ in range(2):
        batch = RequestBatch(
            RequestBatchId(new_id()),
            whose,
            core.now,
            ProcessNote("k"),
            BatchState.PREPARING,
            total=1,
        )
        document = DocumentToPrepare(
            place=0,
            name="a.pdf",
            field="contenido",
            part=None,
            sha256="ab" * 32,
            size_bytes=9,
            document=None,
            reference=None,
            is_unique=False,
            metadata={},
            wished=None,
        )
        async with core.store.write() as transaction:
            await RequestBatchStore(transaction).add(batch)
            order = BatchToPrepare("integrator:k", None, None, None)
            await BatchQueue(transaction).add(batch, order, [document])
        core.clock.forward(30)
    await look(core)
    assert told("rubrica_queue_length", queue="batches") == 2
    assert told("rubrica_queue_oldest_seconds", queue="batches") == 60


class Ahead:
    """This host's clock, and by how much it is wrong."""

    by_s = 0.0

    def now(self) -> datetime:
        """The time that it shows."""
        return SystemClock().now() + timedelta(seconds=self.by_s)


async def test_clock_goes_wrong(tmp_path: Path, migrated_url: str) -> None:
    """RubricaClockOff: in either direction, against a real PostgreSQL's."""
    settings, clock = settings_in(tmp_path, migrated_url), Ahead()
    engines = open_engines(settings)
    core = CoreFixture(
        settings, cast("MovingClock", clock), Database(engines, clock, "")
    )
    check = ClockCheck(clock, lambda: database_time(engines), lambda: None)
    offs, alerts = [], []
    for clock.by_s in (0.0, 3.0, -3.0, 0.0):
        await look(core, check)
        offs.append(told("rubrica_clock_offset_seconds") or 0.0)
        alerts.append(alert_of_ground("clock"))
    await core.close()

    # Sure is what was between the asking and the answer.
    assert offs[0] == offs[3] == 0
    assert all(2 < off <= 3 for off in offs[1:3]), offs
    assert alerts == ["", "RubricaClockOff", "RubricaClockOff", ""]


async def test_database_goes_away_and_comes_back(
    tmp_path: Path, migrated_url: str, postgres_server: PostgresServer
) -> None:
    """RubricaDatabaseAway: and nothing that it said is told meanwhile."""
    name = database_name(migrated_url)
    away = (f"ALTER DATABASE {name} ALLOW_CONNECTIONS false", CUT.format(name))
    async with open_record(settings_in(tmp_path, migrated_url)) as core:
        ups, known, alerts = [], [], []
        for statements in (
            (),
            away,
            (f"ALTER DATABASE {name} ALLOW_CONNECTIONS true",),
        ):
            for statement in statements:
                postgres_server.execute(statement)
            await look(core)
            ups.append(told("rubrica_record_up"))
            alerts.append(alert_of_ground("database"))
            known.append(told("rubrica_queue_length", queue="activations"))
    assert ups == [1, 0, 1]
    assert alerts == ["", "RubricaDatabaseAway", ""]
    assert known == [0, None, 0]


async def test_documents_disk_fills(sqlite_core: CoreFixture) -> None:
    """RubricaDiskFull: what is left of it, to the byte that others find."""
    folder = sqlite_core.settings.documents_dir
    folder.mkdir(parents=True, exist_ok=True)
    await look(sqlite_core)
    free = told("rubrica_documents_disk_free_bytes")
    assert free is not None
    assert (alert_of_ground("disk") == "") is (free >= DISK_BYTES)
    with small_disk(folder, 8_388_608) as made:
        if not made:
            pytest.skip("mounting a tmpfs needs root")
        await look(sqlite_core)
        before = told("rubrica_documents_disk_free_bytes")
        filler = fill(folder, leave_bytes=65_536)
        await look(sqlite_core)
        after = told("rubrica_documents_disk_free_bytes")
        assert alert_of_ground("disk") == "RubricaDiskFull"
        filler.unlink()
    assert before is not None
    assert after is not None
    assert after <= 131_072 < before <= 8_388_608


async def test_disk_that_does_not_answer_holds_up_no_look(
    sqlite_core: CoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system that hangs: no figure, and one thread that waits for it."""
    answer = threading.Event()
    asked: list[Path] = []

    def hang(folder: Path) -> tuple[int, int, int]:
        asked.append(folder)
        answer.wait()
        return 3, 1, 2

    metrics_module = "appliance.operations.metrics.database_metrics"
    monkeypatch.setattr(f"{metrics_module}.shutil.disk_usage", hang)
    monkeypatch.setattr(f"{metrics_module}._DISK_S", 0.05)
    looked = metrics_of(sqlite_core)
    try:
        await looked.look()
        await looked.look()
    finally:
        answer.set()

    assert told("rubrica_documents_disk_free_bytes") is None
    assert told("rubrica_record_up") == 1
    assert len(asked) == 1
