"""From release 0.1.0 to what comes next while people sign, and back.

The next version is this checkout with a migration, a secret, a setting and a changed
unit more. Both are built as packages and installed by apt, on a booted Debian with
PostgreSQL, Redis and SoftHSM.

Source: docs/operations.md, "Upgrading from"; docs/database.md, "Who may use which
tables".
"""

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from appliance.storage import table_version
from tests.parts.booted import Booted, can_boot
from tests.parts.next_version import migration
from tests.parts.packaged import bring, built, checkout, debian_with, release
from tests.validators import pdfsig, pyhanko_valid

_API: Final = "http://127.0.0.1:8080"
_PUBLIC: Final = "https://firma.example"
_PARTS: Final = ("postgresql", "redis-server", "softhsm2", "curl", "openssl")
_PER_S: Final = 2
_SECRET: Final = "/etc/rubrica/secrets/next"
_INSTALL: Final = "DEBIAN_FRONTEND=noninteractive apt-get install --yes 2>&1"
_REQUESTS: Final = 600

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not can_boot(), reason="it takes root, mmdebstrap and systemd-container"
    ),
]

_PREPARE: Final = """
import asyncio, json, sys
from pathlib import Path
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
from appliance.commands.as_role import unit_options
command = ["/opt/rubrica/.venv/bin/python", "/srv/prepare.py", *sys.argv[1:]]
options = unit_options("migrate", terminal=False)
os.execvp("systemd-run", ["systemd-run", *options, "--", *command])
"""

_USES: Final = """\
SELECT a.request, count(*) FROM intent i JOIN activation_item a
ON a.activation = i.activation AND a.seq = i.item
WHERE i.state = 'completada' GROUP BY a.request"""


def changed(folder: Path) -> Path:
    """The checkout with what the next release might bring."""
    checkout(folder)
    newest = table_version.newest()
    coming = f"{int(newest) + 1:04d}"
    (folder / f"appliance/storage/migrations/versions/{coming}_more.py").write_text(
        migration(coming, before=newest, oldest="0001")
    )
    _replace(
        folder / "appliance/settings/root.py",
        "    data_dir: Path\n",
        "    data_dir: Path\n    next_name: str\n",
    )
    _replace(
        folder / "systemd/rubrica-api.service",
        "MemoryMax=2G\n",
        f"MemoryMax=3G\nLoadCredential=next:{_SECRET}\n",
    )
    return folder


def _replace(path: Path, before: str, after: str) -> None:
    text = path.read_text("utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), "utf-8")


@dataclass
class Load:
    """Somebody who signs a document every so often, and keeps each answer."""

    machine: Booted
    told: dict[str, Any]
    answers: "dict[int, Future[tuple[int, bytes]]]" = field(default_factory=dict)

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

    def _sign(self, request: int) -> tuple[int, bytes]:
        """Status and the signed document, or what else the answer was."""
        bearer = {"Authorization": f"Bearer {self.told['bearer']}"}
        body = {"solicitudId": request, "password": self.told["password"]}
        # A connection each: one that is kept may end before the next call on it
        # arrives, which its client asks again (RFC 9112, 9.3.1).
        answer = httpx.post(
            f"{_API}/solicitudes/firmar", headers=bearer, json=body, timeout=60
        )
        if answer.status_code != httpx.codes.OK:
            return answer.status_code, answer.content
        place = answer.json()["documentoFirmado"].removeprefix(_PUBLIC)
        document = httpx.get(_API + place, headers=bearer, timeout=60)
        return document.status_code, document.content


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of release 0.1.0, and of the next version."""
    old, new, folder = (tmp_path_factory.mktemp(n) for n in ("old", "new", "deb"))
    return built(folder, release(old, "0.1.0")), built(folder, changed(new))


@pytest.fixture(scope="module")
def machine(
    packages: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Booted]:
    """A machine with the release, set up, and the next version's package beside."""
    old, new = packages
    folder = tmp_path_factory.mktemp("machine")
    with debian_with(folder, old, _PARTS) as booted:
        bring(booted, new)
        (booted.root / "root/answers.toml").write_text(
            f'environment = "PREPROD"\ninstallation = "ACME"\nbase_url = "{_PUBLIC}"\n'
            'iframe_url = "https://marco.firma.example"\n'
            'admin_url = "https://consola.firma.example"\nproxy = "none"\n'
        )
        (booted.root / "srv/prepare.py").write_text(_PREPARE)
        (booted.root / "srv/as_migrate.py").write_text(_AS_MIGRATE)
        booted.run(f"chmod 644 /srv/*.py; {_INSTALL} /tmp/{old.name}")
        booted.run("cd /root && rubrica setup --answers answers.toml")
        yield booted


def ready(machine: Booted) -> int:
    """Status of `/readyz`."""
    return machine.within(lambda: httpx.get(f"{_API}/readyz")).status_code


def versions(machine: Booted) -> tuple[str, str]:
    """Of the package, and of the tables."""
    query = "SELECT version_num FROM alembic_version"
    return (
        machine.run("dpkg-query -W -f '${Version}' rubrica").stdout,
        machine.run(f"runuser -u postgres -- psql -qAt rubrica -c '{query}'").stdout,
    )


@pytest.mark.parametrize("lacking", ["secret", "setting", "room"])
def test_upgrade_that_lacks_something_changes_nothing(
    machine: Booted, packages: tuple[Path, Path], lacking: str
) -> None:
    """Package, tables, roles and settings as they were; and it says what is missing."""
    before = versions(machine)
    pids = "systemctl show -P MainPID 'rubrica-*.service' | sort"
    running = machine.run(pids).stdout
    make, take, word = {
        "secret": ("true", "true", _SECRET),
        "setting": (f"touch {_SECRET}", f"rm {_SECRET}", "next_name"),
        "room": (
            "mount -t tmpfs -o size=64M none /opt",
            "umount /opt",
            "KiB of room",
        ),
    }[lacking]

    machine.run(make)
    refused = machine.run(f"{_INSTALL} /tmp/{packages[1].name}", check=False)
    machine.run(take)

    assert refused.returncode != 0
    assert word in refused.stdout
    assert "nothing was changed" in refused.stdout
    assert versions(machine) == before
    assert machine.run(pids).stdout == running
    assert ready(machine) == httpx.codes.OK


def test_upgrade_under_load_and_back(
    machine: Booted, packages: tuple[Path, Path]
) -> None:
    """Two signatures a second: none refused, none lost, none twice."""
    old, new = packages
    told = machine.run(
        f"cd / && /opt/rubrica/.venv/bin/python /srv/as_migrate.py {_REQUESTS}"
    ).stdout
    load = Load(machine, json.loads(told.splitlines()[-1]))
    before = versions(machine)

    machine.run(f"install -o rubrica-migrate -m 600 /dev/null {_SECRET}")
    with load.calling():
        machine.run("sed '1i next_name = \"x\"' -i /etc/rubrica/settings.toml")
        upgraded = machine.run(f"{_INSTALL} /tmp/{new.name}").stdout
        after = versions(machine)
        limit = machine.run("systemctl show -P MemoryMax rubrica-api").stdout
        machine.run("sed -i '/^next_name/d' /etc/rubrica/settings.toml")
        machine.run(f"{_INSTALL} --allow-downgrades /tmp/{old.name}")
    back = versions(machine)

    assert (after[0] != before[0], int(after[1]) > int(before[1])) == (True, True)
    assert limit.strip() == str(3 << 30)
    assert "AMISS" not in upgraded
    assert back == (before[0], after[1])
    assert ready(machine) == httpx.codes.OK
    assert_each_signed_once(load)


def assert_each_signed_once(load: Load) -> None:
    """Every call got its document, valid for two validators, by one use of the key."""
    answers = {request: f.result() for request, f in load.answers.items()}
    told = Counter(
        status if status == httpx.codes.OK else f"{status} {content[:300]!r}"
        for status, content in answers.values()
    )
    print(f"{len(answers)} calls: {told}")  # noqa: T201 (the figures that -rP shows)
    assert set(told) == {httpx.codes.OK}
    assert len(answers) > 20 * _PER_S

    pem = load.machine.root / "var/lib/rubrica/pki/root.pem"
    root = subprocess.run(
        ["openssl", "x509", "-in", str(pem), "-outform", "DER"],
        check=True,
        capture_output=True,
    ).stdout
    for _, content in answers.values():
        (signature,) = pdfsig(content)[:1]
        assert signature.valid
        assert pyhanko_valid(content, [root])

    used = load.machine.run(
        f'runuser -u postgres -- psql -qAt rubrica -c "{_USES}"'
    ).stdout.split()
    told_of = {line.partition("|")[0]: line.partition("|")[2] for line in used}
    assert {told_of.get(str(request)) for request in answers} == {"1"}
