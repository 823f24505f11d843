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
    from appliance.cli.demo.people import load
    from appliance.cli.demo.otp import next_code
except ModuleNotFoundError:  # as 0.1.0 has them
    from appliance.commands.demo_client import ApiClient
    from appliance.commands.fronts import operators_front
    from appliance.commands.kept_people import load
    from appliance.commands.otp import next_code
from appliance.operations import sample
from appliance.settings import load_settings

async def main():
    settings = load_settings(Path("/etc/rubrica/settings.toml"))
    async with operators_front(settings) as front:
        told = load(settings.document_key_file.with_name("sample-person.json"))
        requests = [await sample._request(front) for _ in range(int(sys.argv[1]))]
        client = ApiClient("http://127.0.0.1:8080", settings.web.base_url)
        who = {"usuario": sample._CUIL, "password": told["clave"]}
        challenge = client.post("/auth/login", who)
        code = await next_code(front, sample._CUIL)
        proof = {"loginToken": challenge["loginToken"], "codigo": code}
        bearer = client.post("/auth/otp", proof)["access_token"]
    print(json.dumps({"bearer": bearer, "requests": requests,
                      "password": told["claveDeFirma"]}))

asyncio.run(main())
"""
"""Requests, and the bearer of who signs them: as the release's own code makes them."""

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
    """Somebody who signs a document every so often, and keeps each answer."""

    machine: Booted
    told: dict[str, Any]
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
                due = time.monotonic()
                while not over.wait(max(due - time.monotonic(), 0)):
                    request = self.told["requests"][len(self.answers)]
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
        """The signed documents of some of this signer's requests.

        Args:
            requests: that are signed, by whatever load.
        """

        def fetch_all() -> dict[int, bytes]:
            return {request: self._fetch(request) for request in requests}

        return self.machine.within(fetch_all)

    def _fetch(self, request: int) -> bytes:
        url = f"{API}/solicitudes/{request}/documento"
        answer = httpx.get(url, headers=self._bearer(), timeout=60)
        assert answer.status_code == httpx.codes.OK, (request, answer.text)
        return answer.content

    def sign_again(self, requests: Iterable[int]) -> dict[int, tuple[int, bytes]]:
        """Sign requests that are signed already: status and body of each answer."""

        def ask_all() -> dict[int, tuple[int, bytes]]:
            return {request: self._sign(request) for request in requests}

        return self.machine.within(ask_all)

    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.told['bearer']}"}

    def _sign(self, request: int) -> tuple[int, bytes]:
        """Status and the signed document, or what else the answer was."""
        bearer = self._bearer()
        body = {"solicitudId": request, "password": self.told["password"]}
        # A connection each: one that is kept may end before the next call on it
        # arrives, which its client asks again (RFC 9112, 9.3.1).
        answer = httpx.post(
            f"{API}/solicitudes/firmar", headers=bearer, json=body, timeout=60
        )
        self.headers[request] = answer.headers
        if answer.status_code != httpx.codes.OK:
            return answer.status_code, answer.content
        place = answer.json()["documentoFirmado"].removeprefix(PUBLIC)
        document = httpx.get(API + place, headers=bearer, timeout=60)
        return document.status_code, document.content


def prepared(machine: Booted, requests: int) -> Load:
    """Somebody with so many requests to sign.

    Args:
        machine: set up, in PREPROD.
        requests: how many.
    """
    (machine.root / "srv/prepare.py").write_text(_PREPARE)
    (machine.root / "srv/as_migrate.py").write_text(_AS_MIGRATE)
    machine.run("chmod 644 /srv/*.py")
    python = "/opt/rubrica/.venv/bin/python"
    told = machine.run(f"cd / && {python} /srv/as_migrate.py {requests}").stdout
    return Load(machine, json.loads(told.splitlines()[-1]))


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
