"""A whole appliance for a test: `rubrica up` in a folder of its own.

    with Appliance.made(folder) as appliance:
        person = appliance.new_person()
        request = appliance.new_request(person, pdf)
        with appliance.client(person) as client:
            client.post("/solicitudes/firmar", json=…)

What an operator would do is done in this process over an open front; what a
client does goes over HTTP.
"""

import asyncio
import itertools
import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
import tomllib
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import pyotp
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from sqlalchemy import update

from appliance.bootstrap import ServiceRegistry
from appliance.database.tables import login_secret, signature_request
from appliance.database.tables import person as person_table
from appliance.domain.clock import Clock
from appliance.domain.ids import PersonId
from appliance.domain.people.identity import Credential
from appliance.domain.requests.levels import NO_WISHES, ProfileWishes
from appliance.domain.signing.activation import IntentRow
from appliance.domain.vocab import PersonState, VouchedBy
from appliance.identity.people import NewPersonOrder
from appliance.keys.credential_store import CredentialStore
from appliance.people.person_store import PersonStore
from appliance.requests.intake import IntakeOrder
from appliance.requests.request_store import RequestStore
from appliance.settings import Settings, load_settings
from appliance.signing.activations.activation_store import ActivationStore
from tests.support.appliance.kept_front import KeptFront, Result, Work, with_front
from tests.support.installation.settings import merged, tables_in, toml
from tests.support.processes.forked_process import Running
from tests.support.processes.plain_http import NO_TLS, answers
from tests.support.processes.rubrica import command_line, run_rubrica, start_rubrica
from tests.support.processes.scratch import free_port
from tests.support.processes.setup_cache import copy_installation, prepared

_INTEGRATOR = "demo"
_READY_S = 300.0
_PROFILE = "softhsm2"
_NAME = "rubrica"
_MIGRATE = ("migrate",)
_HSM_INIT = ("hsm", "init")
_CREATE = ("integrator", "create", _INTEGRATOR, "Integrador de prueba")
MADE: Final = ("host", "hsm", "pki", "secrets")
"""Folders that those commands fill."""
_WEIGHTS = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)

_PATIENT_WEB: Final = {"body_timeout_s": 60}
_PATIENT_SIGNING: Final = {
    "wait_s": 50,
    "claim_s": 300,
    "key_s": 300,
    "slot_wait_s": 50,
}
_PATIENT_SANDBOX: Final = {"wall_s": 250, "render_wall_s": 250}
"""Seconds that a machine which does much else is never slower than; a call waits for
less than the client that makes it. What a job takes of the processor bounds it too."""
_CLIENT_S: Final = 300
_RATES: Final = "commands_per_minute = 1000000\nlists_per_minute = 1000000"
_TABLES: Final = ("web", "auth", "signing", "hsm", "secrets")
"""That a test may have more lines in."""


@dataclass(frozen=True, slots=True)
class TestPerson:
    """Somebody who can sign, and what only they would know."""

    __test__ = False

    id: PersonId
    cuil: str
    name: str
    email: str
    login_password: str
    signing_password: str
    totp: pyotp.TOTP


class Appliance:
    """A running `rubrica up`.

    Args:
        folder: a short, private, empty folder.
        database: `sqlite` or a PostgreSQL URL.
        sections: more lines for the sections `web`, `auth`, `signing`, `hsm`,
            `secrets`, and whole sections as `more`; `base_url`, `iframe_url`
            and `admin_url` where clients reach it through a proxy; `tries`, the
            sign-ins a minute from one address; `rates`, how often signers may call,
            which is as good as ever; `installation`, its name.
        environment: more variables of the process.
        execute: whether Python is started for it in any case, as for measurements of
            its memory; see `tests.support.processes.rubrica`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        database: str = "sqlite",
        environment: dict[str, str] | None = None,
        execute: bool = False,
        **sections: str,
    ) -> None:
        self.folder = folder
        self.settings_file = folder / "settings.toml"
        self.log = folder / "rubrica.log"
        port, embed_port, admin_port = free_port(), free_port(), free_port()
        metrics_port = free_port()
        self.metrics_url = f"http://127.0.0.1:{metrics_port}/metrics"
        self.base_url = f"http://127.0.0.1:{port}"
        self.iframe_url = f"http://localhost:{embed_port}"
        self.admin_url = f"http://127.0.0.1:{admin_port}"
        self._environment = {**os.environ, **(environment or {})}
        self._execute = execute
        self._process: Running | None = None
        self._people = itertools.count(30_000_000)
        self._down_since: float | None = time.monotonic()
        self._down_s = 0.0
        self.secrets: set[str] = set()
        """What must never stand anywhere in clear."""
        names = ("web", "auth", "signing", "hsm", "secrets", "more")
        self._texts = {
            **dict.fromkeys(names, ""),
            "base_url": self.base_url,
            "iframe_url": self.iframe_url,
            "admin_url": self.admin_url,
            "tries": "10000",
            "rates": _RATES,
            "installation": _NAME,
            **sections,
        }
        self._texts |= {
            "run_dir": str(folder / "run"),
            "port": str(port),
            "embed_port": str(embed_port),
            "admin_port": str(admin_port),
            "metrics_port": str(metrics_port),
            "database": database,
        }
        self.configure()
        self._front = KeptFront(self.settings_file, lambda: self.settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @classmethod
    @contextmanager
    def made(cls, folder: Path, **options: Any) -> Iterator["Appliance"]:
        """Set an appliance up, start it, and stop it after."""
        appliance = cls(folder, **options)
        try:
            appliance.set_up()
            appliance.start()
            yield appliance
        finally:
            appliance.close()

    def configure(self, **sections: str) -> dict[str, str]:
        """Write the settings file, some sections other than before.

        Returns:
            Those sections as they were.
        """
        before = {name: self._texts[name] for name in sections}
        self._texts |= sections
        self.settings_file.write_text(toml(self._tables()))
        return before

    def _tables(self) -> dict[str, Any]:
        """What the settings file says."""
        texts = self._texts
        tables: dict[str, Any] = {
            "trial": True,
            "installation": texts["installation"],
            "run_dir": texts["run_dir"],
            "fonts_dir": "/usr/share/fonts/truetype/liberation2",
            "web": {
                "base_url": texts["base_url"],
                "listen_api": f"127.0.0.1:{texts['port']}",
                "iframe_url": texts["iframe_url"],
                "listen_embed": f"127.0.0.1:{texts['embed_port']}",
                "admin_url": texts["admin_url"],
                "listen_admin": f"127.0.0.1:{texts['admin_port']}",
                **_PATIENT_WEB,
            },
            "metrics": {"listen": f"127.0.0.1:{texts['metrics_port']}"},
            "hsm": {"softhsm_conf": "hsm/softhsm2.conf"},
            "auth": {"login_per_minute_address": int(texts["tries"])},
            "sandbox": _PATIENT_SANDBOX,
            "signing": {**tomllib.loads(texts["rates"]), **_PATIENT_SIGNING},
        }
        tables = merged(tables_in(".", "secrets", texts["database"]), tables)
        for name in _TABLES:
            tables = merged(tables, tomllib.loads(f"[{name}]\n{texts[name]}"))
        return merged(tables, tomllib.loads(texts["more"]))

    @property
    def settings(self) -> Settings:
        """The settings file, read."""
        return load_settings(self.settings_file)

    @property
    def command(self) -> list[str]:
        """The command line's `rubrica`, with the settings file."""
        return command_line("--settings", str(self.settings_file))

    def rubrica(
        self, *arguments: str, settings_file: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the command line, by other settings where one says so."""
        return run_rubrica(
            *("--settings", str(settings_file or self.settings_file)),
            *arguments,
            environment=self._environment,
        )

    def set_up(self) -> None:
        """Secrets, tables, tokens, CA, and the integrator.

        An appliance with the usual HSM and name is a copy of the one that a run makes.
        """
        hsm, name = self.settings.hsm, self.settings.installation
        usual = hsm.profile == _PROFILE and not hsm.replicas and name == _NAME
        source = prepared("appliance", _set_up_in) if usual else None
        if source is None:
            self._set_up_alone()
        elif self._texts["database"] == "sqlite":
            names = (*MADE, "documents", "rubrica.db")
            copy_installation(source, self.folder, names)
        else:
            copy_installation(source, self.folder, MADE)
            self._command_all(_MIGRATE, _CREATE)

    def _set_up_alone(self) -> None:
        init = ("init", "--trial", str(self.folder))
        self._command_all(init, _MIGRATE, _HSM_INIT, _CREATE)

    def _command_all(self, *commands: tuple[str, ...]) -> None:
        """Run commands one after the other."""
        for command in commands:
            done = self.rubrica(*command)
            assert done.returncode == 0, done.stderr

    def start(self, *, unready: bool = False) -> None:
        """Start all roles and wait until they are ready.

        Args:
            unready: for what is not yet; `wait_ready` then waits.
        """
        with self.log.open("ab") as log:
            self._process = start_rubrica(
                *("--settings", str(self.settings_file), "up"),
                environment=self._environment,
                stdout=log,
                stderr=log,
                execute=self._execute,
            )
        if not unready:
            self.wait_ready()
        assert self._down_since is not None
        self._down_s, self._down_since = self._down_total(), None

    def clock(self) -> float:
        """Monotonic time in seconds that stands still while a test has it down.

        How long a machine that is busy with other things takes to start all
        roles says nothing of what became of their work.
        """
        return time.monotonic() - self._down_total()

    def _down_total(self) -> float:
        since = self._down_since
        return self._down_s + (0.0 if since is None else time.monotonic() - since)

    def wait_ready(self) -> None:
        """Wait until `/readyz` says yes."""
        deadline = time.monotonic() + _READY_S
        assert self._process is not None
        while self._process.poll() is None:
            if answers(f"{self.base_url}/readyz"):
                return
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        raise AssertionError(self.log.read_text()[-4000:])

    def stop(self) -> int:
        """Stop all roles gracefully; the exit status."""
        assert self._process is not None
        self._run(self._front.close())
        process, self._process = self._process, None
        self._down_since = time.monotonic()
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(60)
        except subprocess.TimeoutExpired:
            # Its children go with it, and the next test gets a fresh start.
            process.kill()
            process.wait()
            raise AssertionError(self.log.read_text()[-4000:]) from None

    def kill(self) -> None:
        """Kill the supervisor as a power cut would; its children notice."""
        assert self._process is not None
        self._down_since = time.monotonic()
        self._process.kill()
        self._process.wait()
        self._process = None

    def close(self) -> None:
        """Stop what still runs, and remove what is kept in memory of it."""
        try:
            self._run(self._front.close())
            if self._process is not None:
                self.stop()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._loop.close()
            # The keys outlive their workers on purpose; a test they need not.
            shutil.rmtree(self.settings.activation_dir, ignore_errors=True)

    @property
    def is_started(self) -> bool:
        """Whether it was started, and neither stopped nor killed."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """Process id of the supervisor."""
        assert self._process is not None
        return self._process.pid

    def children(self, role: str) -> list[psutil.Process]:
        """The living processes of a role (`signing-1`, `api`, `redis`, …)."""
        pids = {}
        for line in self.log.read_text().splitlines():
            if "role.started" in line and f"name={role}" in line:
                name = line.split("name=")[1].split()[0]
                pids[name] = int(line.split("pid=")[1].split()[0])
        return [own for pid in pids.values() if (own := self._child(pid)) is not None]

    def _child(self, pid: int) -> psutil.Process | None:
        """A process of the supervisor's; None once it is gone."""
        try:
            process = psutil.Process(pid)
            return process if process.ppid() == self.pid else None
        except psutil.NoSuchProcess:
            return None

    # -- what an operator does -------------------------------------------------

    def do(
        self,
        work: Work[Result],
        clock: Clock | None = None,
        timeout_s: float = 120,
    ) -> Result:
        """Run a coroutine over an open front of this process.

        Args:
            work: it.
            clock: another than the machine's.
            timeout_s: how long it may take.
        """
        if clock is None:
            return self._run(self._front.run(work), timeout_s)
        return self._run(with_front(self.settings, work, clock), timeout_s)

    def _run(self, work: Coroutine[Any, Any, Result], timeout_s: float = 120) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def next_cuil(self) -> str:
        """A valid CUIL that nobody has."""
        return _next_cuil(self._people)

    def new_person(
        self,
        name: str = "Ana María Núñez",
        *,
        with_key: bool = True,
        number: int | None = None,
    ) -> TestPerson:
        """A person, with key and certificate unless they are not waited for.

        Args:
            name: theirs.
            with_key: whether key and certificate are waited for.
            number: of the national ID, or None for the next one.
        """
        numbers = self._people if number is None else itertools.count(number)
        cuil = _next_cuil(numbers)
        login, signing = secrets.token_urlsafe(9), secrets.token_urlsafe(9)
        email = f"p{cuil}@demo.example"
        order = NewPersonOrder(
            cuil=cuil,
            name=name,
            email=email,
            login_password=login,
            signing_password=signing,
            vouched_by=VouchedBy.DEMO,
        )

        async def create(front: ServiceRegistry) -> tuple[PersonId, str]:
            created = await front.people.create_person(order)
            if with_key:
                await front.tasks.wait(created.task, 60)
            return created.id, created.totp_uri

        person, uri = self.do(create)
        totp = pyotp.parse_uri(uri)
        assert isinstance(totp, pyotp.TOTP)
        self.secrets |= {login, signing, totp.secret}
        return TestPerson(person, cuil, name, email, login, signing, totp)

    def refresh(self, person: TestPerson) -> None:
        """Have a person be as when they were new, but for their requests.

        Enabled, without wrong passwords or a lock, their present code not used.
        """

        async def change(front: ServiceRegistry) -> None:
            async with front.core.store.write() as transaction:
                await PersonStore(transaction).set_counted(person.id, 0, None)
                await transaction.connection.execute(
                    update(person_table)
                    .where(person_table.c.id == person.id)
                    .values(state=PersonState.ACTIVE.value)
                )
                await transaction.connection.execute(
                    update(login_secret)
                    .where(login_secret.c.person == person.id)
                    .values(last_step=0)
                )

        self.do(change)

    def new_request(
        self,
        person: TestPerson,
        pdf: bytes,
        name: str = "contrato.pdf",
        expires: datetime | None = None,
        wishes: ProfileWishes = NO_WISHES,
    ) -> int:
        """A document for somebody to sign; its `solicitudId`."""
        order = replace(intake_order(person, name, expires), wishes=wishes)
        return self.do(lambda front: front.intake.create_request(order, pdf))

    def let_lapse(self, request: int) -> None:
        """Have the time of a request be over, without waiting for its end."""

        async def change(front: ServiceRegistry) -> None:
            async with front.core.store.write() as transaction:
                await transaction.connection.execute(
                    update(signature_request)
                    .where(signature_request.c.id == request)
                    .values(expires=front.clock.now())
                )

        self.do(change)

    def new_process(self, people: Sequence[TestPerson], pdf: bytes) -> list[int]:
        """A document for people to sign in turn; their `solicitudId`s."""
        first, *others = people
        order = replace(
            intake_order(first), then=tuple(person.cuil for person in others)
        )
        requests = self.do(lambda front: front.intake.create_requests(order, pdf))
        return [int(request) for request in requests]

    def new_requests(self, person: TestPerson, pdf: bytes, count: int) -> list[int]:
        """As many requests of one document, examined once, for somebody to sign."""
        order = intake_order(person)

        async def create(front: ServiceRegistry) -> list[int]:
            made = [await front.intake.create_request(order, pdf) for _ in range(count)]
            return [int(request) for request in made]

        return self.do(create)

    def bearer(self, person: TestPerson) -> str:
        """An access token as a sign-in would give it, without a code."""

        async def issue(front: ServiceRegistry) -> str:
            issued = await front.tokens.issue(
                person.id, ("pwd", "otp"), front.clock.now()
            )
            return issued.token

        token = self.do(issue)
        self.secrets.add(token)
        return token

    def credential(self, person: TestPerson) -> Credential:
        """Somebody's key in force, as it stands."""

        async def read(front: ServiceRegistry) -> Credential | None:
            async with front.core.store.read() as transaction:
                return await CredentialStore(transaction).active(person.id)

        found = self.do(read)
        assert found is not None
        return found

    def intents(self, request: int) -> list[IntentRow]:
        """Every intended use of a key for a request's activation."""

        async def read(front: ServiceRegistry) -> list[IntentRow]:
            async with front.core.store.read() as transaction:
                view = await RequestStore(transaction).get(request)  # type: ignore[arg-type]  # an id
                assert view is not None
                return await ActivationStore(transaction).intents(view.activation)  # type: ignore[arg-type]  # same

        return self.do(read)

    @property
    def roots(self) -> list[bytes]:
        """The root's certificate, DER."""
        pem = (self.folder / "pki" / "root.pem").read_bytes()
        return [x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)]

    # -- what a client does ----------------------------------------------------

    def client(self, person: TestPerson | None = None) -> httpx.Client:
        """An HTTP client, signed in when a person is given."""
        headers = (
            {} if person is None else {"Authorization": f"Bearer {self.bearer(person)}"}
        )
        return httpx.Client(
            base_url=self.base_url, headers=headers, timeout=_CLIENT_S, verify=NO_TLS
        )


def _set_up_in(folder: Path) -> None:
    """Set an appliance up in an empty folder, by the commands; it is not started."""
    appliance = Appliance(folder)
    try:
        appliance._set_up_alone()
    finally:
        appliance.close()


def intake_order(
    person: TestPerson,
    name: str = "contrato.pdf",
    expires: datetime | None = None,
) -> IntakeOrder:
    """An order to take a document in for somebody."""
    return IntakeOrder(_INTEGRATOR, person.cuil, name, expires, "operador", "operator")


def _next_cuil(numbers: Iterator[int]) -> str:
    """The next valid CUIL of type 20 (facts: a remainder of 1 has no digit)."""
    for number in numbers:
        digits = f"20{number:08d}"
        total = sum(w * int(d) for w, d in zip(_WEIGHTS, digits, strict=True))
        if total % 11 != 1:
            return f"{digits}{(11 - total % 11) % 11}"
    raise AssertionError
