"""The manual's installation, run line by line on a Debian that has nothing of ours.

It is booted with its own systemd; what an operator fetches lies there beforehand, for
it has no network. The browser libraries are those of this checkout.

Source: docs/installing.md, docs/running.md.
"""

import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx
import pyotp
import pytest

from tests.support.appliance.manual import DOCS, blocks, packages, run_block, script
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig
from tests.support.faces.enrolment_page import opening_of, seed_of
from tests.support.faults.fault_injection import until
from tests.support.hosts.booted_machine import Booted, can_boot
from tests.support.patience import CALL_S
from tests.support.services.wheels import fetch, pip_configuration

_ROOT: Final = Path(__file__).resolve().parents[3]
_HEADING: Final = "First installation, with systemd"
_API: Final = "http://127.0.0.1:8080"
_CUIL: Final = "27314159263"
_LOGIN, _SIGNING = "una clave de ingreso", "una clave de firma"
_ROLES: Final = (
    *("sandbox", "signing@1", "signing@2", "chores"),
    *("api", "embed", "admin", "metrics"),
)
_ALONE: Final = {("1", role) for role in ("api", "embed", "admin", "chores", "sandbox")}
"""Processes of a role that has one, as figures name them."""
_LONGEST_S: Final = 120
_PINS: Final = "stat -c '%a %U %n' /etc/rubrica/hsm /etc/rubrica/hsm/*"
_AS_OF_0_1_0: Final = (
    "rm /etc/systemd/system/rubrica-signing@.service.d/pins.conf;"
    "systemctl daemon-reload; chown -R rubrica-signing: /etc/rubrica/hsm"
)
"""PINs are the workers' user's."""
_STEPS_S: Final = 600
"""All steps together, to a signed document (an operator's Friday)."""
_DATABASE: Final = "postgresql@15-main.service"
_LATE_DATABASE: Final = f"""
echo manual >/etc/postgresql/15/main/start.conf
cat >/etc/systemd/system/late.timer <<'END'
[Timer]
OnBootSec=90
Unit={_DATABASE}
[Install]
WantedBy=timers.target
END
systemctl enable late.timer 2>&1
"""
"""It comes a minute and a half after the boot."""
_WAIT_FOR_TABLES: Final = tuple(
    f"rubrica-{role}.service"
    for role in ("api", "embed", "admin", "chores", "signing@1", "signing@2")
)
_NEED_NO_TABLES: Final = (
    *("rubrica-sandbox.service", "rubrica-metrics.service"),
    *(f"rubrica-{face}.socket" for face in ("api", "embed", "admin", "sandbox")),
)
_WELL_AGAIN_S: Final = 60
_LOOK_AGAIN_S: Final = 0.5
_MANY, _PAUSE_S = 30, 1.0
"""Requests that are signed one after the other, and the time between them."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not can_boot(), reason="it takes root, mmdebstrap and systemd-container"
    ),
]


@pytest.fixture(scope="module")
def lasted_s() -> list[float]:
    """How long the manual's steps took."""
    return []


@pytest.fixture(scope="module")
def machine(
    lasted_s: list[float], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Booted]:
    """A machine on which the manual's five steps were run."""
    folder = tmp_path_factory.mktemp("machine")
    first = script("installing.md", _HEADING, 0)
    with Booted.made(folder, packages(first)) as booted:
        _bring(booted.root)
        settings = next(b.text for b in blocks(_HEADING) if b.language == "toml")
        run = booted.run
        begun = time.monotonic()
        run_block(
            "installing.md",
            "First installation, with systemd",
            0,
            run,
            # Without what was fetched beforehand: the machine has no network.
            without=("python3 -m venv /tmp/npm", "/tmp/npm/"),  # noqa: S108 (the manual's)
        )
        run_block("installing.md", "First installation, with systemd", 1, run)
        (booted.root / "etc/rubrica/settings.toml").write_text(settings)
        (booted.root / "etc/rubrica/settings.toml").chmod(0o644)
        run_block("installing.md", "First installation, with systemd", 2, run)
        run_block("installing.md", "First installation, with systemd", 3, run)
        lasted_s.append(time.monotonic() - begun)
        yield booted


def _bring(root: Path) -> None:
    """Bring this tree and its Python packages to where an operator fetches them."""
    place = root / "opt/rubrica"
    place.mkdir(parents=True)
    kept = subprocess.run(
        ["git", "-C", str(_ROOT), "ls-files", "-z"], check=True, capture_output=True
    ).stdout.decode()
    for name in filter(None, kept.split("\0")):
        if (_ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(_ROOT / name, place / name)
    vendor = "appliance/web/vendor/files"
    shutil.copytree(_ROOT / vendor, place / vendor)
    wheels = root / "srv/wheels"
    fetch(wheels, ("requirements-build.lock", "requirements.lock"))
    (root / "etc/pip.conf").write_text(pip_configuration("/srv/wheels"))
    # What tests make is their own alone; what an operator unpacks is not.
    made = [root / "opt", root / "etc/pip.conf"]
    subprocess.run(["chmod", "-R", "a+rX", *made], check=True)


def test_every_role_runs(machine: Booted) -> None:
    """As its own user, with nothing failed and no warning in the journal."""
    told = machine.run("systemctl show -P ActiveState -P User 'rubrica-*.service'")
    states = told.stdout.split()

    assert states.count("active") == len(_ROLES) + 1
    assert machine.run("systemctl --failed --no-legend").stdout == ""
    warned = machine.run("journalctl -q -p warning -u 'rubrica-*'").stdout
    assert warned == ""
    ready = machine.within(lambda: httpx.get(f"{_API}/readyz", timeout=CALL_S))
    assert ready.json()["checks"] == dict.fromkeys(
        ("database", "documents", "sandbox", "hsm", "clock"), "ok"
    )


def test_every_role_hands_its_figures_over(machine: Booted) -> None:
    """Across users and closed folders; who reads them sees nothing else of ours."""
    up = re.compile(r'^rubrica_role_up\{number="(\d)",role="(\w+)"\} 1', re.MULTILINE)
    wanted = {*_ALONE, ("1", "signing"), ("2", "signing")}

    def told() -> str:
        return machine.within(
            lambda: httpx.get("http://127.0.0.1:8083/metrics", timeout=CALL_S).text
        )

    deadline = time.monotonic() + _LONGEST_S
    while not wanted <= set(up.findall(text := told())):
        assert time.monotonic() < deadline, text
        time.sleep(_PAUSE_S)
    assert "rubrica_metrics_fault{" not in text
    seen = machine.run(
        "pid=$(systemctl show -P MainPID rubrica-metrics.service);"
        "ls /proc/$pid/root/run/rubrica;"
        "ls /proc/$pid/root/var/lib/rubrica/ 2>/dev/null | wc -l"
    )
    assert seen.stdout.split() == ["metrics", "0"]


def test_console_reads_all_figures_and_writes_its_own(machine: Booted) -> None:
    """By the groups that its unit gives it; another role reads its own alone."""
    told = machine.run(
        "pid=$(systemctl show -P MainPID rubrica-admin.service);"
        "groups=$(awk '/^Groups:/ {$1 = \"\"; print}' /proc/$pid/status | xargs);"
        "as() {"
        "  setpriv --reuid=$1 --regid=$1 --groups=$(echo $2 | tr ' ' ,) $3 $4 2>&1; };"
        "cd /run/rubrica/metrics;"
        "for role in api embed admin signing chores sandbox; do"
        '  as rubrica-admin "$groups" cat $role/1.json >/dev/null && echo read $role;'
        '  as rubrica-admin "$groups" touch $role/x >/dev/null && echo wrote $role;'
        "  as rubrica-api rubrica cat $role/1.json >/dev/null && echo api $role;"
        "done; rm -f admin/x"
    )

    roles = ("api", "embed", "admin", "signing", "chores", "sandbox")
    wanted = {*(f"read {role}" for role in roles), "wrote admin", "api api"}
    assert set(told.stdout.splitlines()) == wanted


def test_secrets_are_nobodys_but_their_roles(machine: Booted) -> None:
    """A role reads what it was handed, and no file that it was made from: no PIN."""
    told = machine.run(
        "ls /etc/rubrica/secrets;"
        "for role in api embed admin signing chores sandbox; do"
        "  for name in secrets/data-key hsm/firma.pin; do"
        "    runuser -u rubrica-$role -- cat /etc/rubrica/$name >/dev/null 2>&1"
        "      && echo $role $name;"
        "  done;"
        "done; true"
    )

    assert told.stdout.split() == [
        *("data-key", "document-key", "lookup-key", "pepper"),
    ]
    assert machine.run(_PINS).stdout.splitlines() == [
        "700 root /etc/rubrica/hsm",
        *(
            f"600 root /etc/rubrica/hsm/{name}.pin"
            for name in ("firma-so", "firma", "pki-so", "pki")
        ),
    ]
    handed = machine.run("ls /run/credentials/rubrica-signing@1.service").stdout
    assert handed.split() == ["document-key", "firma.pin", "pki.pin"]


@dataclass
class Signer:
    """Somebody who was invited and has enrolled."""

    machine: Booted
    client: httpx.Client = field(init=False)
    _totp: pyotp.TOTP = field(init=False)

    def enrol(self) -> None:
        """By the operator's link, and sign in."""
        invite = f"person invite --cuil {_CUIL} --name 'Eva Ríos' --email e@b.example"
        told = self.machine.run(f"rubrica {invite}").stdout
        path = re.findall(r"https://firma.example(/alta/\S+)", told)[0]
        self.machine.within(lambda: self._enrol(f"{_API}{path}"))

    def _enrol(self, url: str) -> None:
        page = httpx.get(url, timeout=CALL_S).text
        totp = pyotp.TOTP(seed_of(page))
        form = {
            "login_password": _LOGIN,
            "login_password_again": _LOGIN,
            "signing_password": _SIGNING,
            "signing_password_again": _SIGNING,
            "totp_code": totp.now(),
            "opening": opening_of(page),
        }
        done = httpx.post(url, data=form, timeout=_LONGEST_S)
        assert "ya podés firmar" in done.text
        self._totp = totp
        self._sign_in()

    def sign_in_again(self) -> None:
        """After a boot, which ends every connection."""
        self.client.close()
        self.machine.within(self._sign_in)

    def _sign_in(self) -> None:
        self.client = httpx.Client(base_url=_API, timeout=_LONGEST_S)
        body = {"usuario": _CUIL, "password": _LOGIN}
        token = self.client.post("/auth/login", json=body).json()["loginToken"]
        # A code that was used is used up; the next one is taken early.
        code = self._totp.at(time.time() + self._totp.interval)
        answer = self.client.post(
            "/auth/otp", json={"loginToken": token, "codigo": code}
        )
        bearer = answer.raise_for_status().json()["access_token"]
        self.client.headers["Authorization"] = f"Bearer {bearer}"

    def ask(self, number: int) -> list[int]:
        """Have requests made for them."""
        folder = self.machine.root / "srv"
        (folder / "contrato.pdf").write_bytes(pdfs.one_page())
        (folder / "contrato.pdf").chmod(0o644)
        told = self.machine.run(
            f"cd /srv; for n in $(seq {number}); do"
            f"  rubrica request create --integrator acme --person {_CUIL} contrato.pdf;"
            "done"
        )
        return [
            int(n) for n in re.findall(r"^request (\d+)$", told.stdout, re.MULTILINE)
        ]

    def sign(self, request: int) -> bytes:
        """Sign one; the signed document."""

        def signed() -> bytes:
            body = {"solicitudId": request, "password": _SIGNING}
            answer = self.client.post("/solicitudes/firmar", json=body)
            assert answer.status_code == 200, answer.text
            path = answer.json()["documentoFirmado"].removeprefix(
                "https://firma.example"
            )
            return self.client.get(path).raise_for_status().content

        return self.machine.within(signed)


@pytest.fixture(scope="module")
def signer(machine: Booted) -> Iterator[Signer]:
    """Somebody who can sign there."""
    machine.run("rubrica integrator create acme 'ACME S.A.'")
    signer = Signer(machine)
    signer.enrol()
    yield signer
    signer.client.close()


def test_a_document_is_signed_and_verified(
    machine: Booted, signer: Signer, lasted_s: list[float]
) -> None:
    """By a person whom an operator invited, on PostgreSQL, Redis and SoftHSM."""
    begun = time.monotonic()
    (request,) = signer.ask(1)

    signed = signer.sign(request)

    took_s = sum(lasted_s) + time.monotonic() - begun
    print(f"the manual's steps, to a signed document: {took_s:.0f} s")  # noqa: T201 (the figures that -rP shows)
    assert took_s <= _STEPS_S

    (verdict,) = pdfsig(signed)
    assert verdict.valid
    (machine.root / "srv/firmado.pdf").write_bytes(signed)
    (machine.root / "srv/firmado.pdf").chmod(0o644)
    assert "VALID" in machine.run("cd /srv && rubrica verify firmado.pdf").stdout
    assert "all whole" in machine.run("rubrica audit verify").stdout


def test_roles_restart_while_callers_sign(machine: Booted, signer: Signer) -> None:
    """One after the other, as for an upgrade: nobody is refused, nothing is lost.

    PINs are the workers' user's before it, and root's own after.
    """
    pins = machine.run(_PINS).stdout
    machine.run(_AS_OF_0_1_0)
    assert machine.run(_PINS).stdout != pins
    requests = signer.ask(_MANY)
    signed: list[bytes] = []
    over = threading.Event()

    def go_on() -> None:
        while requests and not over.wait(_PAUSE_S):
            signed.append(signer.sign(requests.pop()))

    at_work = threading.Thread(target=go_on)
    at_work.start()
    try:
        run_block("running.md", "Stop, restart, upgrade", 0, machine.run)
    finally:
        over.set()
        at_work.join()

    # To the end of it, and each of those that were asked for.
    assert machine.run(_PINS).stdout == pins
    assert requests
    assert len(signed) == _MANY - len(requests) > 1
    assert all(pdfsig(document)[0].valid for document in signed)
    assert machine.run("systemctl --failed --no-legend").stdout == ""


_LOOKS: Final = (
    *("systemctl status", "systemctl list-timers", "systemctl --failed"),
    *("journalctl -", "curl ", "ls -l /run", "df", "timedatectl", "rubrica doctor"),
    *("rubrica hsm check", "rubrica timestamps try", "rubrica levels", "rubrica ready"),
    *("rubrica database check", "rubrica documents check", "rubrica request audit"),
)
"""How commands begin by which one looks at what is wrong, and changes nothing."""
_FILLED: Final = {"ROLE": "api", "NUMBER": "1", "audit ID": "audit 1"}
_UNKNOWN: Final = re.compile(
    "could not be found|nrecognized option|nvalid option|not found|usage: rubrica"
)


def test_what_trouble_is_looked_at_with_is_there(machine: Booted) -> None:
    """Each command of the pages for trouble that looks, run as it stands there."""
    pages = [(DOCS / name).read_text("utf-8") for name in ("trouble.md", "alerts.md")]
    named = sorted(
        {
            each
            for each in re.findall("`([^`\n]+)`", "\n".join(pages))
            if each.startswith(_LOOKS)
        }
    )
    assert len(named) > 20

    for line in named:
        for name, value in _FILLED.items():
            line = line.replace(name, value)  # noqa: PLW2901 (as one fills it in)
        done = machine.run(f"SYSTEMD_PAGER= {line} | cat", check=False)

        assert not _UNKNOWN.search(done.stdout + done.stderr), (line, done.stderr)
        assert done.returncode not in {2, 126, 127}, (line, done.stderr)


def test_stop_is_in_order_and_waited_for(machine: Booted) -> None:
    """Workers stop after those who wait for them; then all starts again."""
    (line,) = re.findall(
        r"`(systemctl stop rubrica\.target .*?)`", _section("Stop, restart, upgrade")
    )
    machine.run("journalctl --rotate && journalctl --vacuum-time=1s")
    machine.run(line)

    active = machine.run("systemctl list-units --state=active --no-legend 'rubrica*'")
    assert active.stdout == ""
    journal = machine.run("journalctl -q --no-pager -o cat -u 'rubrica-*'").stdout
    at = {
        word: [
            n for n, told in enumerate(journal.splitlines()) if told.startswith(word)
        ]
        for word in ("Stopped rubrica-api", "Stopping rubrica-signing@1")
    }
    assert at["Stopped rubrica-api"] < at["Stopping rubrica-signing@1"]
    machine.run("systemctl start rubrica.target")
    machine.run(f"curl -sf --retry 60 --retry-all-errors --retry-delay 1 {_API}/readyz")


_KEYS: Final = "/run/rubrica/activation"
_TIMERS: Final = (
    "systemctl list-units --plain --no-legend --type=timer 'run-*' | cut -d ' ' -f 1"
)
"""Those that the stop of a signing worker begins."""


def test_activation_keys_go_six_minutes_after_a_stop(machine: Booted) -> None:
    """Those that are over by then, by a timer that comes early here."""
    machine.run("systemctl stop 'rubrica-signing@*'")
    when = machine.run(
        f"for each in $({_TIMERS}); do systemctl show -P TimersMonotonic $each; done"
    ).stdout
    newest = machine.run(f"cd {_KEYS} && ls *.key | tail -n 1").stdout.strip()
    machine.run(f"cd {_KEYS} && touch -d '-361 seconds' *.key && touch {newest}")

    machine.run(f"systemctl start $({_TIMERS} | sed 's/timer$/service/')")

    kept = {newest, "journal", "lock"}
    until(lambda: set(machine.run(f"ls {_KEYS}").stdout.split()) == kept)
    assert when.count("OnActiveUSec=6min") >= 2
    machine.run("systemctl start rubrica-signing@1 rubrica-signing@2")
    machine.run(f"curl -sf --retry 60 --retry-all-errors --retry-delay 1 {_API}/readyz")


def test_machine_boots_before_its_database(machine: Booted, signer: Signer) -> None:
    """PostgreSQL a minute late: roles wait, none fails, and all is well soon after.

    The last one here: that PostgreSQL stays a late one.
    """
    machine.run(_LATE_DATABASE)
    machine.reboot()
    until(lambda: _listens(machine))
    seen: list[dict[str, Unit]] = []
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(machine.within, _asks_early)
        while (now := units(machine))[_DATABASE].state != "active":
            seen.append(now)
            time.sleep(_LOOK_AGAIN_S)
        begun = now[_DATABASE].active_s
        machine.run("rubrica ready --wait 120")
        well_s = time.monotonic() - begun
        answer = early.result()
    after = units(machine)

    late_s = begun - after["rubrica-sandbox.service"].active_s
    met = {name: sorted({one[name].state for one in seen}) for name in seen[-1]}
    print(f"database {late_s:.0f} s late, well {well_s:.1f} s after it: {met}")  # noqa: T201 (the figures that -rP shows)
    assert late_s >= 60
    assert well_s <= _WELL_AGAIN_S
    assert answer.status_code == httpx.codes.OK
    assert {seen[-1][name].state for name in _WAIT_FOR_TABLES} == {"inactive"}
    assert {seen[-1][name].state for name in _NEED_NO_TABLES} == {"active"}
    assert seen[-1]["rubrica-migrate.service"].state == "activating"
    assert "failed" not in {state for states in met.values() for state in states}
    assert {unit.restarts for unit in after.values()} == {0}
    assert {after[name].state for name in (*_WAIT_FOR_TABLES, *_NEED_NO_TABLES)} == {
        "active"
    }
    assert machine.run("systemctl --failed --no-legend").stdout == ""
    signer.sign_in_again()
    assert pdfsig(signer.sign(*signer.ask(1)))[0].valid
    assert "AMISS" not in machine.run("rubrica doctor --only units").stdout


@dataclass(frozen=True, slots=True)
class Unit:
    """How a unit is."""

    state: str
    """Active, inactive, activating or failed."""
    restarts: int
    """By systemd, of a service that ended."""
    active_s: float
    """When it became active, on the clock of `time.monotonic`; 0 for never."""


def units(machine: Booted) -> dict[str, Unit]:
    """Every unit of ours that is loaded, and PostgreSQL's, by name."""
    wanted = "Id,ActiveState,NRestarts,ActiveEnterTimestampMonotonic"
    names = f"'rubrica-*.service' 'rubrica-*.socket' {_DATABASE}"
    told = machine.run(f"systemctl show --property={wanted} {names}").stdout
    found = {}
    for paragraph in told.strip().split("\n\n"):
        one = dict(line.split("=", 1) for line in paragraph.splitlines())
        found[one["Id"]] = Unit(
            one["ActiveState"],
            int(one.get("NRestarts", 0)),
            int(one["ActiveEnterTimestampMonotonic"]) / 1e6,
        )
    return found


def _listens(machine: Booted) -> bool:
    """Whether the API's socket unit does, which is long before the API is there."""
    found = units(machine).get("rubrica-api.socket")
    return found is not None and found.state == "active"


def _asks_early() -> httpx.Response:
    return httpx.get(f"{_API}/healthz", timeout=300)


def _section(heading: str) -> str:
    manual = (_ROOT / "docs" / "running.md").read_text("utf-8")
    return manual.partition(f"## {heading}\n")[2].partition("\n## ")[0]
