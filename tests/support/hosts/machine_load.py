"""People who sign on a booted machine with the package, two documents a second.

load = prepared(machine, 600)
with load.calling():
    …
assert_each_signed_once(load, 40)
"""

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.hosts.booted_machine import Booted
from tests.support.patience import CALL_S

API: Final = "http://127.0.0.1:8080"
PUBLIC: Final = "https://firma.example"
ANSWERS: Final = f"""\
environment = "PREPROD"
installation = "ACME"
base_url = "{PUBLIC}"
iframe_url = "https://marco.firma.example"
admin_url = "https://consola.firma.example"
proxy = "none"
"""
"""For `rubrica setup --answers`."""
PARTS: Final = ("postgresql", "redis-server", "softhsm2", "curl", "openssl")
"""Of Debian, beside the package."""
_PER_S: Final = 2
_PREPARE: Final = """
import asyncio, json, sys
from pathlib import Path
try:
    from appliance.cli.demo.client import ApiClient
    from appliance.cli.fronts import operators_front
    from appliance.cli.demo.people import ensure_person, load
    from appliance.cli.demo.otp import next_code
except ModuleNotFoundError:  # as 0.1.0 has them
    from appliance.commands.demo_client import ApiClient
    from appliance.commands.fronts import operators_front
    from appliance.commands.kept_people import ensure_person, load
    from appliance.commands.otp import next_code
from appliance.domain.vocab import VouchedBy
from appliance.operations import sample
from appliance.settings import load_settings

# The same on each machine: what one had, another may have to go on with.
OTHER = {"nombre": "Otra persona", "email": "otra@localhost.invalid",
         "clave": "la clave de otra", "claveDeFirma": "la firma de otra"}

async def signer(front, cuil, told, requests):
    sample._CUIL = cuil
    requests = [await sample._request(front) for _ in range(requests)]
    client = ApiClient("http://127.0.0.1:8080", front.settings.web.base_url)
    who = {"usuario": cuil, "password": told["clave"]}
    challenge = client.post("/auth/login", who)
    code = await next_code(front, cuil)
    proof = {"loginToken": challenge["loginToken"], "codigo": code}
    bearer = client.post("/auth/otp", proof)["access_token"]
    return {"bearer": bearer, "requests": requests, "password": told["claveDeFirma"]}

async def main():
    settings = load_settings(Path("/etc/rubrica/settings.toml"))
    each = int(sys.argv[1]) // 2
    async with operators_front(settings) as front:
        told = load(settings.document_key_file.with_name("sample-person.json"))
        await ensure_person(front, "20000000036", OTHER, VouchedBy.OFFICER)
        signers = [await signer(front, sample._CUIL, told, each),
                   await signer(front, "20000000036", OTHER, each)]
    print(json.dumps(signers))

asyncio.run(main())
"""
"""Requests of two people, so that none signs more often than they may, and what they
sign with: as the release's own code makes them."""

_AS_MIGRATE: Final = """
import os, sys
try:
    from appliance.cli.as_role import unit_options
except ModuleNotFoundError:  # as 0.1.0 has it
    from appliance.commands.as_role import unit_options
command = ["/opt/rubrica/.venv/bin/python", "/srv/prepare.py", *sys.argv[1:]]
options = unit_options("migrate", terminal=False)
os.execvp("systemd-run", ["systemd-run", *options, "--", *command])
"""

_USES: Final = """\
SELECT a.request, count(*) FROM intent i JOIN activation_item a
ON a.activation = i.activation AND a.seq = i.item
WHERE i.state = 'completada' GROUP BY a.request"""


@dataclass
class Load:
    """People who sign a document every so often, and each answer."""

    machine: Booted
    signers: list[dict[str, Any]]
    """Two, the first of whom signs what setup signs."""
    turns: dict[int, int]
    """Which of them signs which request, in the order in which they are signed."""
    answers: "dict[int, Future[tuple[int, bytes]]]" = field(default_factory=dict)
    """By request, in the order of the calls."""
    headers: dict[int, httpx.Headers] = field(default_factory=dict)
    """Of the answers that are there, by request."""

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Sign two a second meanwhile; all answers are there afterwards."""
        over = threading.Event()

        def call_all() -> None:
            with ThreadPoolExecutor(16, initializer=self.machine.enter_network) as pool:
                due, requests = time.monotonic(), iter(tuple(self.turns))
                while not over.wait(max(due - time.monotonic(), 0)):
                    request = next(requests)
                    self.answers[request] = pool.submit(self._sign, request)
                    due += 1 / _PER_S

        thread = threading.Thread(target=call_all)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def fetch(self, requests: Iterable[int]) -> dict[int, bytes]:
        """The signed documents of some of the requests.

        Args:
            requests: that are signed: of this load, of setup, or of a load whose turns
            were added to those of this one.
        """

        def fetch_all() -> dict[int, bytes]:
            return {request: self._fetch(request) for request in requests}

        return self.machine.within(fetch_all)

    def _fetch(self, request: int) -> bytes:
        url = f"{API}/solicitudes/{request}/documento"
        answer = httpx.get(url, headers=self._bearer(request), timeout=CALL_S)
        assert answer.status_code == httpx.codes.OK, (request, answer.text)
        return answer.content

    def sign_again(self, requests: Iterable[int]) -> dict[int, tuple[int, bytes]]:
        """Sign requests that are signed already: status and body of each answer."""

        def ask_all() -> dict[int, tuple[int, bytes]]:
            return {request: self._sign(request) for request in requests}

        return self.machine.within(ask_all)

    def _bearer(self, request: int) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._signer(request)['bearer']}"}

    def _signer(self, request: int) -> dict[str, Any]:
        return self.signers[self.turns.get(request, 0)]

    def _sign(self, request: int) -> tuple[int, bytes]:
        """Status and the signed document, or what else the answer was."""
        bearer = self._bearer(request)
        password = self._signer(request)["password"]
        body = {"solicitudId": request, "password": password}
        # A connection each: one that is kept may end before the next call on it
        # arrives, which its client asks again (RFC 9112, 9.3.1).
        answer = httpx.post(
            f"{API}/solicitudes/firmar", headers=bearer, json=body, timeout=CALL_S
        )
        self.headers[request] = answer.headers
        if answer.status_code != httpx.codes.OK:
            return answer.status_code, answer.content
        place = answer.json()["documentoFirmado"].removeprefix(PUBLIC)
        document = httpx.get(API + place, headers=bearer, timeout=CALL_S)
        return document.status_code, document.content


def prepared(machine: Booted, requests: int) -> Load:
    """Two people with so many requests to sign, by turns.

    Args:
        machine: set up, in PREPROD.
        requests: how many.
    """
    (machine.root / "srv/prepare.py").write_text(_PREPARE)
    (machine.root / "srv/as_migrate.py").write_text(_AS_MIGRATE)
    machine.run("chmod 644 /srv/*.py")
    python = "/opt/rubrica/.venv/bin/python"
    told = machine.run(f"cd / && {python} /srv/as_migrate.py {requests}").stdout
    signers = json.loads(told.splitlines()[-1])
    by_turns = zip(*(each["requests"] for each in signers), strict=True)
    return Load(
        machine,
        signers,
        {request: turn for pair in by_turns for turn, request in enumerate(pair)},
    )


def assert_each_signed_once(load: Load, least: int) -> None:
    """Every call got its document, valid for two validators, by one use of the key.

    Args:
        load: that is over.
        least: how many calls there must have been.
    """
    answers = {request: f.result() for request, f in load.answers.items()}
    told = Counter(
        status if status == httpx.codes.OK else f"{status} {content[:300]!r}"
        for status, content in answers.values()
    )
    print(f"{len(answers)} calls: {told}")  # noqa: T201 (the figures that -rP shows)
    assert set(told) == {httpx.codes.OK}, _logged(load)
    assert len(answers) >= least

    root = root_of(load.machine)
    for _, content in answers.values():
        (signature,) = pdfsig(content)[:1]
        assert signature.valid
        assert pyhanko_valid(content, [root])

    uses = key_uses(load.machine)
    assert {uses.get(request) for request in answers} == {1}


def _logged(load: Load) -> str:
    """What the machine's journal has of each call that was refused."""
    refused = [
        load.headers[request]["X-Request-Id"]
        for request, answer in load.answers.items()
        if answer.result()[0] != httpx.codes.OK
    ]
    wanted = " ".join(f"-e {each}" for each in refused)
    journal = f"journalctl --no-pager --output=cat | grep -F {wanted}"
    return load.machine.run(journal, check=False).stdout


def root_of(machine: Booted) -> bytes:
    """The certificate of a machine's internal root, in DER."""
    pem = machine.root / "var/lib/rubrica/pki/root.pem"
    return subprocess.run(
        ["openssl", "x509", "-in", str(pem), "-outform", "DER"],
        check=True,
        capture_output=True,
    ).stdout


def key_uses(machine: Booted) -> dict[int, int]:
    """How often a key was used for each request, as the record has it."""
    told = machine.run(f'runuser -u postgres -- psql -qAt rubrica -c "{_USES}"').stdout
    lines = [line.split("|") for line in told.split()]
    return {int(request): int(times) for request, times in lines}
