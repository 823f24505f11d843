"""What really happens moves the figures that processes measure of themselves.

As `test_figures_of_the_record`, of signing workers, of the chores' questions to others,
and of what every process tells.
"""

import asyncio
import socket
import subprocess
import sys
import time
from datetime import timedelta
from importlib.metadata import distribution, version
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from cryptography import x509
from prometheus_client.parser import text_string_to_metric_families

from appliance.admission.fair_queue import FairLimits, FairQueue
from appliance.admission.work_owner import WorkOwner
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.keys.hsm_keys import DigestAlgorithm, SignatureScheme
from appliance.domain.requests.request import SignOutcome
from appliance.domain.vocab import ActivationState, RequestState
from appliance.metrics import metrics
from appliance.metrics.metrics_file import MetricsFile, handing_over
from appliance.operations.metrics.exposition import exposition
from appliance.operations.metrics.facts import Facts, facts
from appliance.operations.metrics.reading import read_all
from appliance.operations.metrics.verdicts import UNKNOWN
from appliance.runtime.hang_watchdog import CallWatch
from appliance.settings import RevocationSettings, TimestampSettings
from hsm_config.pkcs11.objects import KEEP_ALIVE_KEY
from tests.integration.operations.metric_values import (
    alert_of_token,
    counted,
    figure,
    told_by,
)
from tests.integration.signing.test_signing_worker import PlayedSigner, scene_of
from tests.support.documents import pdfs
from tests.support.hsm.hsm_installation import HsmInstallation, until
from tests.support.hsm.pkcs11_shim import Pkcs11Shim
from tests.support.installation.api import SIGN, ApiServices, Caller
from tests.support.installation.record import CoreFixture
from tests.support.pki.outside_ca import OutsideCa, der, ec_key, spki_of
from tests.support.pki.timestamps import imprint
from tests.support.processes.other_version import other_version
from tests.support.services.fake_ca import FakeCa, Says
from tests.support.services.fake_tsa import ExternalTsa, FakeTsa, Mode
from tests.support.services.sandbox_server import running_sandbox
from worker.hsm.connection import HsmStatus
from worker.hsm.session import HsmSession
from worker.network.guarded_http import GuardedHttp
from worker.network.revocation_status import ExternalStatus
from worker.network.tsa_client import TsaClient

ROOT = Path(__file__).resolve().parents[3]
SHA256 = DigestAlgorithm.SHA256
READY = "rubrica_hsm_ready"
SESSIONS = "rubrica_hsm_sessions"
FAULTS = "rubrica_hsm_faults_total"
LAST = "rubrica_tsa_last_{}_timestamp_seconds"
STATUS = "rubrica_outside_status_requests_total"
SESSION_HANDLE_INVALID, MECHANISM_INVALID = 0xB3, 0x70
PROBE_S = 0.2
AN_HOUR = timedelta(hours=1)


# The HSM


async def sign(session: HsmSession) -> None:
    """Use a key once."""
    await session.sign(KEEP_ALIVE_KEY, bytes(32), SignatureScheme.RSA_PKCS1)


def hsm(name: str, token: str) -> float | None:
    """What a signing worker tells of a token."""
    return figure("signing", name, token=token)


@pytest.fixture
def no_faults_yet() -> None:
    """Nor sessions: figures of a process are those of its earlier tests too."""
    metrics.HSM_FAULTS.clear()
    metrics.HSM_LAST_FAULT.clear()
    metrics.HSM_READY.clear()
    metrics.HSM_SESSIONS.clear()


@pytest.mark.usefixtures("no_faults_yet")
async def test_token_that_goes_is_not_ready_until_it_is_back(
    hsm_with_key: HsmInstallation,
) -> None:
    """RubricaHsmUnavailable: that token, and its session with it."""
    async with hsm_with_key.session(probe_s=PROBE_S) as session:
        await until(lambda: hsm(READY, "firma") == 1)
        await until(lambda: hsm(READY, "pki") == 1)
        assert (hsm(SESSIONS, "firma"), hsm(SESSIONS, "pki")) == (1, 1)
        with hsm_with_key.without("firma"):
            with pytest.raises(ApplianceError, match="HSM_UNAVAILABLE"):
                await sign(session)
            await until(lambda: hsm(READY, "firma") == 0)
            assert hsm(SESSIONS, "firma") == 0
            assert alert_of_token("firma") == "RubricaHsmUnavailable"
            assert alert_of_token("pki", later=AN_HOUR) == ""
        await until(lambda: hsm(READY, "firma") == 1)
        assert hsm(SESSIONS, "firma") == 1
        await sign(session)
        # It is well again, and was not a moment ago.
        assert alert_of_token("firma") == "RubricaHsmFaults"
        assert alert_of_token("firma", later=AN_HOUR) == ""


async def test_refused_pin_is_a_fault_of_that_token(
    hsm_with_key: HsmInstallation,
) -> None:
    """RubricaHsmPinRefused: told once, for it is tried once."""
    file = hsm_with_key.settings.hsm.firma.pin_file
    right, before = (
        file.read_text(),
        counted("signing", FAULTS, token="firma", fault="pin"),
    )
    file.write_text("9182736455\n")
    async with hsm_with_key.session(probe_s=PROBE_S) as session:
        assert session.status is HsmStatus.PIN
        await until(lambda: hsm(READY, "firma") == 0)
        assert hsm(READY, "pki") == 1
        assert alert_of_token("firma") == "RubricaHsmPinRefused"
        assert counted("signing", FAULTS, token="firma", fault="pin") == before + 1
    file.write_text(right)
    async with hsm_with_key.session(probe_s=PROBE_S):
        await until(lambda: hsm(READY, "firma") == 1)
    assert counted("signing", FAULTS, token="firma", fault="pin") == before + 1


@pytest.mark.parametrize(
    ("code", "fault", "fails"),
    [(SESSION_HANDLE_INVALID, "session", False), (MECHANISM_INVALID, "refused", True)],
)
async def test_faults_of_calls_are_counted_by_kind(
    hsm_with_key: HsmInstallation,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    fault: str,
    fails: bool,
) -> None:
    """RubricaHsmFaults: each, also of calls that were repeated with success."""
    shim = Pkcs11Shim(hsm_with_key.folder, hsm_with_key.profile.modules[0])
    for name, value in shim.environment.items():
        monkeypatch.setenv(name, value)
    async with hsm_with_key.session(module=shim.path, probe_s=60) as session:
        before = counted("signing", FAULTS, token="firma", fault=fault)
        for _ in range(6):
            with shim.fault("C_Sign", "code", code, at="firma", times=1):
                try:
                    await sign(session)
                except ApplianceError:
                    assert fails
        after = counted("signing", FAULTS, token="firma", fault=fault)
        await until(lambda: hsm(READY, "firma") == 1)
        assert alert_of_token("firma") == "RubricaHsmFaults"
        assert alert_of_token("firma", later=AN_HOUR) == ""
    assert after == before + 6


async def test_call_that_hung_is_counted_by_who_comes_after(
    hsm_with_key: HsmInstallation, tmp_path: Path
) -> None:
    """RubricaHsmFaults: also once it was answered, as a count that never falls."""
    path = tmp_path / "signing-1.call"

    async def told_by_the_next() -> float:
        before = counted("signing", FAULTS, token="firma", fault="hang")
        async with hsm_with_key.session(
            probe_s=PROBE_S, watch=CallWatch(path)
        ) as session:
            await sign(session)
        return counted("signing", FAULTS, token="firma", fault="hang") - before

    found = [await told_by_the_next()]
    for _ in range(2):
        dying = CallWatch(path)
        with dying.calling(0):
            # As who ends it does, before it is killed.
            dying.note_hang()
        # By then it does not rest any more.
        dying.answered(0)
        found.append(await told_by_the_next())
    assert found == [0, 1, 2]


# Who is asked outside


async def test_tsa_that_fails_and_answers_again() -> None:
    """RubricaTsaFails: the last answer counts, by the authority's name."""
    clock, name = SystemClock(), "of-a-test"
    now = clock.now().replace(microsecond=0)
    outside = ExternalTsa(now, OutsideCa(now))

    def fails() -> bool:
        failed = figure("chores", LAST.format("failure"), tsa=name) or 0
        return failed > (figure("chores", LAST.format("success"), tsa=name) or 0)

    async def roots() -> list[bytes]:
        return [outside.root]

    (unasked,) = told_by("chores", [name]).tsas
    assert (unasked.host, unasked.verdict) == ("", UNKNOWN)
    found, alerts = [], []
    with FakeTsa(outside, clock) as tsa:
        settings = TimestampSettings.model_validate(
            {"outside": [{"url": tsa.url, "name": name}], "timeout_s": 60}
        )
        async with TsaClient(settings, roots, clock) as client:
            for tsa.mode in (Mode.GOOD, Mode.HTTP_ERROR, Mode.WRONG_NONCE, Mode.GOOD):
                try:
                    await client.stamp(imprint(), SHA256)
                except ApplianceError:
                    assert tsa.mode is not Mode.GOOD
                found.append(fails())
                (asked_one,) = told_by("chores", [name]).tsas
                alerts.append(asked_one.verdict.alert)
    assert found == [False, True, True, False]
    assert alerts == ["", "RubricaTsaFails", "RubricaTsaFails", ""]
    host = socket.gethostname()
    assert (asked_one.host, asked_one.good, asked_one.failed) == (host, 2, 2)
    assert asked_one.last_good is not None
    assert asked_one.last_bad is not None
    assert asked_one.last_bad <= asked_one.last_good
    asked = "rubrica_tsa_requests_total"
    assert counted("chores", asked, tsa=name, outcome="failed") == 2
    assert counted("chores", asked, tsa=name, outcome="granted") == 2


@pytest.mark.parametrize("kind", ["ocsp", "crl"])
async def test_outside_ca_that_fails_and_answers_again(
    sqlite_core: CoreFixture, kind: str
) -> None:
    """RubricaOutsideStatusFails: questions in vain, of each kind, and good ones."""
    told = {"allowed_networks": ["127.0.0.0/8"], "timeout_s": 5, "rest_s": 1}
    settings = RevocationSettings.model_validate(told)
    # An earlier good answer of this process would count for half an hour.
    metrics.STATUS_LAST_GOOD.clear()
    before = [counted("chores", STATUS, kind=kind, outcome=x) for x in OUTCOMES]
    with FakeCa(sqlite_core.clock) as site:
        ca = site.ca = OutsideCa(sqlite_core.now, site=site.url)
        site.ocsp = site.crl = Says.HTTP_ERROR
        failing = [ca.certify(spki_of(ec_key()), CUIL) for _ in range(4)]
        for leaf in failing:
            with pytest.raises(ApplianceError, match="REVOCATION_UNAVAILABLE"):
                await _status(settings, sqlite_core, ca, leaf)
        assert _alert_of(kind) == "RubricaOutsideStatusFails"
        # Nobody asked since: what was a failure then is none of now.
        assert _alert_of(kind, AN_HOUR) == ""
        setattr(site, kind, Says.GOOD)
        await _status(settings, sqlite_core, ca, failing[0])
    after = [counted("chores", STATUS, kind=kind, outcome=x) for x in OUTCOMES]
    grown = [new - old for new, old in zip(after, before, strict=True)]
    assert grown == [4, 1]
    assert _alert_of(kind) == ""


def _alert_of(kind: str, later: timedelta = timedelta()) -> str:
    """What the console says of outside CAs."""
    told = told_by("chores", later=later).outside
    (found,) = [each.verdict.alert for each in told if each.name == kind]
    return found


OUTCOMES = ("failed", "good")
CUIL = "20267565393"


async def _status(
    settings: RevocationSettings,
    core: CoreFixture,
    ca: OutsideCa,
    leaf: x509.Certificate,
) -> None:
    """Ask about a certificate, as a worker that has just started."""
    async with GuardedHttp(settings) as http:
        asks = ExternalStatus(settings, http, core.store, core.clock)
        await asks.of(der(leaf), der(ca.issuing), None)


async def test_pool_that_turned_somebody_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RubricaPoolFull: while it is full, and for some minutes after it refused."""
    # Pools of one name are added up, and an appliance of other tests may have one here.
    monkeypatch.setattr(metrics, "_pools", WeakKeyDictionary())
    limits = FairLimits(places=1, per_share=1, per_party=1, waiting=1)
    queue, file = FairQueue(limits, "pictures"), MetricsFile(tmp_path, "api", 1)
    one, two, three = (WorkOwner(name, name) for name in "abc")

    def alert(later: timedelta = timedelta()) -> str:
        file.write()
        told = facts(read_all(tmp_path), "h", SystemClock().now() + later).pools
        (found,) = [each.verdict.alert for each in told if each.name == "pictures"]
        return found

    found = [alert(later=AN_HOUR)]
    held = await queue.acquire(one)
    waiter = asyncio.create_task(queue.acquire(two))
    await asyncio.sleep(0)
    found.append(alert(later=AN_HOUR))
    with pytest.raises(ApplianceError, match="OVERLOADED"):
        await queue.acquire(three)
    held.release()
    (await waiter).release()
    assert [*found, alert(), alert(later=AN_HOUR)] == ["", FULL, FULL, ""]


FULL = "RubricaPoolFull"


# Signatures, calls and jobs


async def test_signatures_that_fail_are_counted_by_their_code(
    sqlite_core: CoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RubricaSignaturesFail: each document of an activation, by a worker."""
    name, code = "rubrica_signatures_total", ErrorCode.SIGNING_FAILED

    async def refuse(*_: object) -> bool:
        raise ApplianceError(code)

    monkeypatch.setattr(PlayedSigner, "sign", refuse)
    before = counted("signing", name, outcome=code.value)
    scene = await scene_of(sqlite_core, hands=1)
    activation, requests = await scene.activation(3)
    async with scene.working():
        await scene.until(activation, ActivationState.FAILED)
    assert await scene.states(requests) == [RequestState.FAILED] * 3
    assert counted("signing", name, outcome=code.value) == before + 3


async def test_calls_are_counted_by_their_end_and_time(
    api_services: ApiServices, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RubricaServerErrors: and RubricaSigningSlow: the calls of firmar."""
    now = 0.0
    clock = SimpleNamespace(perf_counter=lambda: now)
    monkeypatch.setattr("appliance.web.app.time", clock)
    firmar = {"route": "/solicitudes/firmar"}
    ends = {**firmar, "method": "POST"}
    took = "rubrica_http_request_seconds"

    def told() -> list[float]:
        return [
            counted("api", "rubrica_http_requests_total", **ends, status="5xx"),
            counted("api", f"{took}_bucket", **firmar, le="1.0"),
            counted("api", f"{took}_count", **firmar),
        ]

    async def answered(failure: ApplianceError | None) -> list[float]:
        before = told()
        api_services.signing.failure = failure
        await caller.post("/solicitudes/firmar", {**SIGN, "solicitudId": 9})
        return [new - old for new, old in zip(told(), before, strict=True)]

    assert await answered(None) == [0, 1, 1]
    assert await answered(ApplianceError(ErrorCode.STORE_UNAVAILABLE)) == [1, 1, 1]
    sign_now = api_services.signing.sign

    async def sign_late(*given: Any) -> SignOutcome:
        nonlocal now
        now += 1.1
        return await sign_now(*given)

    monkeypatch.setattr(api_services.signing, "sign", sign_late)
    assert await answered(None) == [0, 0, 1]


async def test_jobs_of_the_sandbox_are_counted_by_their_end(tmp_path: Path) -> None:
    """RubricaSandboxCuts: what takes too much, and what a library dies of."""
    figures = tmp_path / "figures"
    figures.mkdir()

    def jobs() -> dict[str, float]:
        told = told_of(figures, "rubrica_sandbox_jobs_total", "sandbox")
        return {labels["outcome"]: value for labels, value in told}

    with running_sandbox(figures, cpu_s=1) as server:
        await server.client.inspect(pdfs.one_page())
        for probe in ("cpu", "crash", "crash"):
            with pytest.raises(DocumentRefusedError):
                await asyncio.to_thread(server.probe, probe)
        await until(lambda: jobs().get("died") == 2)
    assert jobs() == {"answered": 1, "cut": 1, "died": 2, "left": 0}


# What every process tells


def told_of(folder: Path, name: str, role: str) -> list[tuple[dict[str, str], float]]:
    """Labels and value of a role's figure, as it is scraped."""
    text = exposition(read_all(folder)).decode()
    return [
        (one.labels, one.value)
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.name == name and one.labels["role"] == role
    ]


def process(folder: Path, role: str, *first: str, path: Path | None = None) -> None:
    """A process that hands its figures over once, and ends.

    Args:
        folder: of all roles.
        role: that it is.
        first: what it does before.
        path: of packages that come before ours.
    """
    lines = (
        "from pathlib import Path",
        "from appliance.metrics.metrics_file import MetricsFile",
        *first,
        f"MetricsFile(Path({str(folder)!r}), {role!r}, 1).write()",
    )
    paths = [*([str(path)] if path else []), str(ROOT)]
    subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env={"PYTHONPATH": ":".join(paths), "PATH": "/usr/bin:/bin"},
        check=True,
    )


def test_process_that_starts_again_says_since_when(tmp_path: Path) -> None:
    """RubricaRoleRestarts: each start is another one."""
    starts = []
    for _ in range(3):
        began = time.time()
        process(tmp_path, "api")
        ((_, start),) = told_of(tmp_path, "rubrica_process_start_time_seconds", "api")
        assert began <= start <= time.time()
        starts.append(start)
    assert len(set(starts)) == 3


def test_process_of_another_version_says_so(tmp_path: Path) -> None:
    """RubricaVersionsDiffer: as of a role that an upgrade did not start anew."""
    process(tmp_path, "api")
    process(tmp_path, "embed", path=other_version(tmp_path / "older", "0.0.7"))
    found = {
        labels["version"]
        for role in ("api", "embed")
        for labels, _ in told_of(tmp_path, "rubrica_build_info", role)
    }
    assert found == {version("rubrica"), "0.0.7"}
    assert seen(tmp_path).versions == tuple(sorted(found))
    assert distribution("rubrica").version != "0.0.7"


def test_process_with_many_files_open_says_so(tmp_path: Path) -> None:
    """RubricaDescriptorsRunOut: over four fifths of what it may have."""
    parts: list[float] = []
    alerts: list[str] = []
    for files in (10, 90):
        process(
            tmp_path,
            "api",
            "import resource",
            "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))",
            f"kept = [open('/dev/null') for _ in range({files})]",
        )
        ((_, open_ones),) = told_of(tmp_path, "rubrica_process_open_fds", "api")
        ((_, most),) = told_of(tmp_path, "rubrica_process_max_fds", "api")
        parts.append(open_ones / most)
        alerts += [each.verdict.alert for each in seen(tmp_path).processes]
    assert parts[0] < 0.8 < parts[1] <= 1
    assert alerts == ["", "RubricaDescriptorsRunOut"]


async def test_event_loop_that_is_held_up_says_how_late_it_was(tmp_path: Path) -> None:
    """RubricaEventLoopLags: more than a second, and less once it gets on."""
    lags: list[float] = []
    alerts: list[str] = []
    async with handing_over(tmp_path, "api", 1, every_s=0.05):
        # It writes as soon as it has its turn.
        await asyncio.sleep(0)
        # What holds it up.
        time.sleep(1.2)  # noqa: ASYNC251
        for most in (100.0, 1.0):
            deadline = time.monotonic() + 60
            while not (lag := _lag(tmp_path)) or lag >= most:
                assert time.monotonic() < deadline
                await asyncio.sleep(0)
            lags.append(lag)
            alerts += [each.verdict.alert for each in seen(tmp_path).processes]
    assert lags[0] > 1 > lags[1], lags
    assert alerts == ["RubricaEventLoopLags", ""]


def seen(folder: Path) -> Facts:
    """What the console makes of a folder of figures."""
    return facts(read_all(folder), "h", SystemClock().now())


def _lag(folder: Path) -> float:
    """What it last said; 0 before it said anything."""
    found = told_of(folder, "rubrica_event_loop_lag_seconds", "api")
    return found[0][1] if found else 0.0
