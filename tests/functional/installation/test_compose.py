"""The image, and an installation of containers by the manual's own lines.

Podman stands for docker. The machine has no systemd for podman to run checks of health
by: the tests run them. What is fetched (packages of Debian and Python) is fetched while
images are built; nothing that runs has a way out.

Source: docs/installing.md, "Containers"; docs/backup.md, "In containers"; the OCI image
specification, "Annotations".
"""

import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.support.appliance.manual import (
    blocks,
    run_block,
    run_lines,
    script,
    typed_lines,
)
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.faults.fault_injection import until
from tests.support.hosts.compose_installation import (
    NEXT_VERSION,
    Installation,
    figures,
    newer_clone,
    request_of,
    run_in,
    write_backup_config,
)
from tests.support.hosts.containers import ROOT, ContainerHost, lacking
from tests.support.patience import CALL_S

_API: Final = "http://127.0.0.1:8080"
_LARGEST: Final = 350_000_000
"""Bytes of the image's files."""
_LONGEST_S: Final = 600
"""From the clone to a signed document, images and all (an operator's Friday)."""
_FACES: Final = ("api", "embed", "admin", "metrics")
_WORKERS: Final = ("signing-1", "signing-2", "chores", "sandbox")
_OTHERS: Final = ("database", "redis")
_KEYS: Final = {"data-key", "document-key", "lookup-key"}
_SECRETS: Final = {
    "api": {*_KEYS, "pepper", "database", "redis"},
    "embed": {*_KEYS, "pepper", "database", "redis"},
    "admin": {*_KEYS, "database", "redis"},
    "signing-1": {"document-key", "database", "redis"},
    "signing-2": {"document-key", "database", "redis"},
    "chores": {"data-key", "document-key", "mail-password", "database", "redis"},
    "metrics": set[str](),
    "sandbox": set[str](),
}
_LAST_BACKUP: Final = "rubrica_backup_last_success_timestamp_seconds"
_LABEL: Final = "org.opencontainers.image."
_TOOLS: Final = (
    "pip",
    "pip3",
    "cc",
    "gcc",
    "g++",
    "ld",
    "strip",
    "make",
    "npm",
    "node",
)

pytestmark = [
    pytest.mark.long,
    # Three images are made, of which packages of Debian are fetched for each.
    pytest.mark.timeout(3600),
    pytest.mark.skipif(bool(lacking()), reason=f"it lacks {lacking()}"),
]


@pytest.fixture(scope="module")
def host() -> Iterator[ContainerHost]:
    """A machine with podman."""
    with ContainerHost.made() as made:
        yield made


@pytest.fixture(scope="module")
def installation(host: ContainerHost) -> Iterator[Installation]:
    """The first block of the manual, line by line, but for the document."""
    folder = host.folder / "srv"
    place = ("/srv/rubrica", str(folder))
    lines = typed_lines(script("installing.md", "Containers", 0))
    made = Installation(host, folder, [line.replace(*place) for line in lines])

    def run(line: str) -> None:
        if line.startswith("docker build"):
            host.build(line, ROOT)
        elif line.startswith("mkdir"):
            host.run(line)
        else:
            if line.startswith("docker compose up"):
                # Made while packages of Debian can still be fetched.
                host.build("docker compose build", folder)
            made.run(line)

    begun = time.monotonic()
    run_lines(
        "installing.md", "Containers", 0, run, place, without=("docker compose run",)
    )
    made.took_s = time.monotonic() - begun
    yield made
    made.run("docker compose down --volumes")


def test_image_is_small_and_has_what_runs(installation: Installation) -> None:
    """No tool, no module compiled twice; a bill of materials, notices, docs."""
    told = installation.run(
        "place=$(docker image mount rubrica 2>/dev/null);"
        "du -sx --block-size=1 $place; docker image unmount rubrica >/dev/null 2>&1"
    )
    size = int(re.findall(r"^(\d+)\t", told, re.MULTILINE)[0])
    sys.stdout.write(f"image: {size / 1e6:.0f} MB\n")
    assert size <= _LARGEST

    found = installation.inside(
        "api",
        f"for each in {' '.join(_TOOLS)}; do command -v $each; done;"
        " find / -xdev -name pip -o -xdev -name ensurepip -o -xdev -name setuptools"
        ' -o -xdev -name "*.opt-*.pyc" 2>/dev/null; true',
    )
    assert found == []
    kept = installation.inside("api", "ls /opt/rubrica")
    assert {"THIRD-PARTY-NOTICES", "sbom.cdx.json", "docs", "LICENSE"} <= set(kept)
    assert installation.inspect("api")["Config"]["User"] == "10001:10001"


def test_image_says_what_it_is(installation: Installation) -> None:
    """By the labels that registries and scanners read, as far as they are true."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True
    )
    labels = installation.inspect("api")["Config"]["Labels"]
    told = {
        key.removeprefix(_LABEL): value
        for key, value in labels.items()
        if key.startswith(_LABEL)
    }

    assert told == {
        "title": "Rúbrica",
        "description": project["description"],
        "version": project["version"],
        "revision": head.stdout.decode().strip(),
        "licenses": project["license"],
    }
    assert installation.version("api") == project["version"]


def test_five_commands_to_a_signed_document(installation: Installation) -> None:
    """By the API, on PostgreSQL, Redis and SoftHSM, valid for two validators."""
    begun = time.monotonic()
    told = run_block(
        "installing.md", "Containers", 0, installation.run, only="docker compose run"
    )
    took_s = installation.took_s + time.monotonic() - begun
    sys.stdout.write(f"from the clone to a signed document: {took_s:.0f} s\n")
    signed = (installation.folder / "work/contrato-firmado.pdf").read_bytes()

    assert len(installation.lines) <= 5
    assert took_s <= _LONGEST_S
    assert "signed through the API" in told
    (verdict,) = pdfsig(signed)
    assert verdict.valid
    assert pyhanko_valid(signed, installation.roots())


def test_every_role_is_well(installation: Installation) -> None:
    """By the check that its container has; nothing warns."""
    for service in (*_OTHERS, *_FACES, *_WORKERS):
        installation.host.wait_until_well(f"rubrica_{service}_1")
    for service in (*_FACES, *_WORKERS):
        log = installation.run(f"docker logs rubrica_{service}_1")
        warned = re.findall(
            r'^.*"level": "(?:warning|error|critical)".*$', log, re.MULTILINE
        )
        assert warned == [], service
    for service in ("migrate", "hsm", "operator"):
        assert installation.inspect(service)["State"]["ExitCode"] == 0


def test_every_container_is_confined(installation: Installation) -> None:
    """Read-only, nobody's rights, its own secrets; a network where it needs one."""
    for service in (*_OTHERS, *_FACES, *_WORKERS):
        configured = installation.inspect(service)["HostConfig"]
        assert configured["ReadonlyRootfs"], service
        words = installation.inside(
            service,
            'grep -E "^(CapEff|CapBnd|NoNewPrivs|Uid):" /proc/1/status;'
            " touch /etc/x /opt/x 2>/dev/null && echo writes; true",
        )
        user = "10002" if service == "database" else "10001"
        assert words == [
            *("Uid:", user, user, user, user),
            *("CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"),
        ], service
        links = installation.inside(
            service, 'sed -n "s/^ *\\([a-z0-9]*\\):.*/\\1/p" /proc/net/dev'
        )
        online = service in {*_FACES, "chores"}
        assert (set(links) > {"lo"}) is online, service
    for service, secrets in _SECRETS.items():
        seen = installation.inside(service, "ls /run/secrets 2>/dev/null; true")
        assert set(seen) == secrets, service
        pins = installation.inside(
            service, "ls /etc/rubrica/hsm /var/lib/rubrica/tokens"
        )
        assert bool([each for each in pins if "pin" in each]) is (
            service.startswith("signing")
        ), service


def test_fronts_tell_workers_of_their_calls(installation: Installation) -> None:
    """By one file that all of them have; workers' keys and locks stand elsewhere."""
    seen = {
        service: installation.inside(service, "ls -i /run/rubrica/calls")
        for service in ("api", "embed", "signing-1", "signing-2")
    }

    assert len({tuple(each) for each in seen.values()}) == 1, seen
    assert seen["api"][1:] == ["single-calls"]
    alone = installation.inside("api", "ls /run/rubrica")
    assert "calls" in alone
    assert not [name for name in alone if "activation" in name or "signing" in name]


def test_ports_are_published_on_this_machine_alone(installation: Installation) -> None:
    """Three faces and the figures; the client's address is what a proxy here tells."""
    for service in _FACES:
        bound = installation.inspect(service)["HostConfig"]["PortBindings"]
        hosts = {each["HostIp"] for places in bound.values() for each in places or ()}
        assert hosts == {"127.0.0.1"}, service

    def asked() -> list[int]:
        told = {"X-Forwarded-For": "198.51.100.7"}
        return [
            httpx.get(f"{_API}/readyz", timeout=CALL_S).status_code,
            httpx.get(f"{_API}/solicitudes", headers=told, timeout=CALL_S).status_code,
            httpx.get("http://127.0.0.1:8081/healthz", timeout=CALL_S).status_code,
            httpx.get("http://127.0.0.1:8082/", timeout=CALL_S).status_code,
        ]

    assert installation.host.within(asked) == [200, 401, 200, 302]
    assert '"address": "198.51.100.7"' in installation.run("docker logs rubrica_api_1")
    figures = installation.host.within(
        lambda: httpx.get("http://127.0.0.1:8083/metrics", timeout=CALL_S).text
    )
    for role in ("api", "embed", "admin", "signing", "chores", "sandbox"):
        assert re.search(
            rf'^rubrica_role_up{{.*role="{role}".*}} 1', figures, re.MULTILINE
        ), role


def test_a_role_starts_anew_and_is_soon_well(installation: Installation) -> None:
    """Each one; what waits for it waits, and a document is signed afterwards."""
    for service in (*_FACES, *_WORKERS):
        installation.run(f"docker compose restart {service}")
        well_s = installation.host.wait_until_well(f"rubrica_{service}_1")
        # The sandbox says nothing: it is well when it answers.
        told = service != "sandbox"
        seconds = installation.start_to_ready_s(service) if told else well_s
        sys.stdout.write(f"{service}: ready {seconds:.1f} s after its start\n")
        assert seconds > 0

    signed, _ = installation.sample("otra.pdf")

    assert pdfsig(signed)[0].valid


def test_down_and_up_keeps_everything(installation: Installation) -> None:
    """Keys, people, requests, audit: nobody is certified anew."""
    installation.run("docker compose down")
    installation.run("docker compose up --detach")

    signed, told = installation.sample("despues.pdf")

    assert "certified" not in told
    assert "request 3: " in told
    assert pyhanko_valid(signed, installation.roots())
    audit = installation.run("docker compose run --rm operator audit verify")
    assert "all whole" in audit


def test_setup_again_keeps_all(installation: Installation) -> None:
    """And a key that was lost is not made anew."""
    line = installation.lines[2].removesuffix(" --yes")
    told = installation.run(line)
    assert "made " not in told
    assert "renewed " not in told

    key = installation.folder / "secrets" / "pepper"
    key.rename(key.with_name("lost"))
    refused = installation.run(f"{line} || echo status $?")
    key.with_name("lost").rename(key)

    assert "status 78" in refused
    assert "bring it back from a backup" in refused


def test_doctor_tells_what_is_amiss(installation: Installation) -> None:
    """Though no face stands; mended as it says, it finds nothing any more."""
    password = installation.folder / "secrets" / "database-embed"
    given = password.read_text()
    assert "AMISS" not in look(installation)
    installation.run(
        "docker compose stop api; chmod 644 secrets/pepper; echo >>compose.yaml"
    )
    password.write_text("another\n")

    until(lambda: "api: hands no figures over" in look(installation))
    found = look(installation)

    amiss = [line for line in found.splitlines() if line.startswith("AMISS")]
    for part, told in (
        ("containers", "api: hands no figures over"),
        ("folders", "secrets/pepper is 0644 10001:10001, and not 0600 10001:10001"),
        ("folders", "compose.yaml is not this version's"),
        ("database", 'rubrica-embed: password authentication failed for user "rub'),
    ):
        assert any(line.startswith(f"AMISS  {part}: {told}") for line in amiss), found
    assert "status 1" in found
    assert {line.split()[1].rstrip(":") for line in amiss} <= {
        # A pepper that others may read makes no service ready either.
        *("containers", "folders", "settings", "database", "service"),
    }, found
    assert "-> chown 10001:10001 secrets/pepper; chmod 0600 secrets/pepper" in found
    password.write_text(given)
    installation.run("chown 10001:10001 secrets/pepper; chmod 0600 secrets/pepper")
    installation.run(installation.lines[2].removesuffix(" --yes"))
    installation.run("docker compose up --detach")
    until(lambda: "AMISS" not in look(installation, "--deep"))


def look(installation: Installation, option: str = "") -> str:
    """What the doctor says, and how it ended."""
    return run_block(
        "installing.md",
        "What is amiss",
        0,
        lambda line: installation.run(f"{line} {option} || echo status $?"),
    )


def test_lost_installation_comes_back(installation: Installation) -> None:
    """Folder and volumes are lost; what is left is two files elsewhere and a key."""
    host, folder = installation.host, installation.folder
    given = blocks("In containers", "backup.md")
    (override,) = (b.text for b in given if b.language == "yaml")
    places = {
        "/backup/record": host.folder / "record",
        "/elsewhere/secrets": host.folder / "secrets",
    }
    run_block(
        "backup.md",
        "In containers",
        0,
        host.run,
        *((name, str(path)) for name, path in places.items()),
    )
    for name, path in places.items():
        override = override.replace(f"- {name}:", f"- {path}:")
    (folder / "compose.override.yaml").write_text(override)
    key = host.folder / "rubrica-backup.key"
    host.run(
        "docker run --rm --network none --entrypoint age-keygen rubrica"
        f" >{key} 2>/dev/null; chmod 600 {key}"
    )
    write_backup_config(folder / "backup.toml", key)
    before, told = installation.sample("antes.pdf")
    request, roots = request_of(told), installation.roots()

    told = run_block("backup.md", "In containers", 1, installation.run)

    files = [next(path.glob("*.tar.age")) for path in places.values()]
    assert all(each.stat().st_mode & 0o077 == 0 for each in files)
    assert "files" in told
    until(lambda: _LAST_BACKUP in figures(installation))
    installation.run("docker compose down --volumes")
    shutil.rmtree(folder)
    carried = host.folder / "carried"
    carried.mkdir()
    for each in (*files, key):
        shutil.copy(each, carried)

    named = _named(files, folder)
    run_block(
        "backup.md", "In containers", 2, lambda text: host.run(text, carried), *named
    )
    said = run_lines("backup.md", "In containers", 3, installation.run, *named)
    again = next(line for line in said if " recovery restore " in line)
    key_again = f"cp {carried}/* work; chown 10001:10001 work/*"
    refused = installation.run(f"{key_again}; {again} || echo status $?")

    for line, told in said.items():
        sys.stdout.write(f"{line.split(' --backup')[0]}\n  {told.splitlines()[-1:]}\n")
        assert "MISSING" not in told, line
    assert "status 78" in refused
    assert "has tables already" in refused
    assert installation.roots() == roots
    after, told = installation.sample("despues.pdf")
    assert "certified" not in told
    assert installation.signed(request) == before
    for document in (before, after):
        assert pdfsig(document)[0].valid
        assert pyhanko_valid(document, roots)


def _named(files: list[Path], folder: Path) -> list[tuple[str, str]]:
    """What stands in the manual for two backups' names and the folder."""
    samples = ("rubrica-ID-TIME.tar.age", "rubrica-secrets-ID-TIME.tar.age")
    names = [file.name for file in files]
    return [*zip(samples, names, strict=True), ("/srv/rubrica", str(folder))]


def test_upgrade_and_the_way_back(installation: Installation) -> None:
    """An image of a newer version takes over, and the one of before again."""
    place = ("/srv/rubrica", str(installation.folder))
    newer = newer_clone(installation.host.folder / "newer")
    first, said = installation.sample("con-la-de-antes.pdf")
    request, old = request_of(said), installation.version("api")

    def run(line: str) -> None:
        run_in(installation, line, newer)

    run_lines("installing.md", "Stop, upgrade, back up", 0, run, place)
    assert installation.version("api") == NEXT_VERSION != old
    second, said = installation.sample("con-la-nueva.pdf")
    assert "certified" not in said
    assert installation.signed(request) == first
    request = request_of(said)

    run_lines("installing.md", "Stop, upgrade, back up", 1, run, place)
    for service in (*_FACES, *_WORKERS):
        installation.host.wait_until_well(f"rubrica_{service}_1")
        assert installation.version(service) == old, service
    third, said = installation.sample("con-la-de-antes-otra-vez.pdf")
    assert "certified" not in said
    assert installation.signed(request) == second
    for each in (first, second, third):
        assert pdfsig(each)[0].valid
        assert pyhanko_valid(each, installation.roots())
    (installation.folder / ".env").unlink()


def test_trial_in_one_container(installation: Installation) -> None:
    """All roles, SQLite and a demo CA, by the manual's lines, on the same ports."""
    installation.run("docker compose down")

    told = run_lines(
        "installing.md",
        "A look at it, in one container",
        0,
        lambda line: installation.host.run(line, ROOT),
    )
    assert len(told) <= 5

    trial = "rubrica-trial_trial_1"
    first, *_, last = told
    assert "demo" in told[last]
    assert installation.host.is_well(trial)
    out = installation.folder / "prueba.pdf"
    installation.run(
        f"docker cp {trial}:/var/lib/rubrica/contrato-firmado.pdf {out};"
        f"docker cp {trial}:/var/lib/rubrica/pki/root.pem {out}.pem"
    )
    root = x509.load_pem_x509_certificate(Path(f"{out}.pem").read_bytes())
    assert pdfsig(out)[0].valid
    assert pyhanko_valid(out.read_bytes(), [root.public_bytes(Encoding.DER)])
    status = installation.host.within(
        lambda: httpx.get(f"{_API}/readyz", timeout=CALL_S).status_code
    )
    assert status == 200
    first = first.removesuffix("up --detach")
    installation.host.run(f"{first}down --volumes", ROOT)
