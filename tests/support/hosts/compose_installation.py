"""An installation of containers that the manual's lines make, lose and bring back.

    made = Installation(host, folder, lines)
    made.run("docker compose up --detach")

Source: docs/installing.md, "Containers"; docs/backup.md, "In containers".
"""

import json
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.support.appliance.manual import blocks
from tests.support.hosts.containers import ROOT, ContainerHost
from tests.support.patience import CALL_S

NEXT_VERSION: Final = "0.2.0.dev1"
"""Of `newer_clone`."""
_MICROSECONDS: Final = len("2026-11-24T09:47:02.435339")
_FETCH: Final = """
import asyncio, sys
from pathlib import Path
from appliance.cli.demo.client import ApiClient
from appliance.cli.fronts import operators_front
from appliance.cli.demo.people import load
from appliance.cli.demo.otp import next_code
from appliance.operations import sample
from appliance.settings import load_settings

async def main():
    settings = load_settings(Path("/etc/rubrica/settings.toml"))
    client = ApiClient("http://127.0.0.1:8080", settings.web.base_url)
    async with operators_front(settings) as front:
        told = load(sample.person_file(settings))
        who = {"usuario": sample._CUIL, "password": told["clave"]}
        challenge = client.post("/auth/login", who)
        code = await next_code(front, sample._CUIL)
        proof = {"loginToken": challenge["loginToken"], "codigo": code}
        client.bearer = client.post("/auth/otp", proof)["access_token"]
    for request in sys.argv[1:]:
        address = f"http://127.0.0.1:8080/solicitudes/{request}/documento"
        Path(f"{request}.pdf").write_bytes(client.fetch(address))

asyncio.run(main())
"""
"""Signed documents of requests, into the folder `work`, as their signer gets them."""


@dataclass
class Installation:
    """What the manual's lines made."""

    host: ContainerHost
    folder: Path
    lines: list[str] = field(default_factory=list)
    told: str = ""
    """What the last of them said."""
    took_s: float = 0.0
    """How long they took, but for the one that signs."""

    def run(self, line: str) -> str:
        """Run a line in the installation's folder."""
        return self.host.run(line, self.folder)

    def sample(self, name: str) -> tuple[bytes, str]:
        """Have a document signed by the manual's line; it, and what was said."""
        line = self.lines[-1].replace("contrato-firmado.pdf", name)
        told = self.run(line)
        return (self.folder / "work" / name).read_bytes(), told

    def signed(self, request: str) -> bytes:
        """The signed document of a request, as its signer gets it."""
        script = self.folder / "work" / "fetch.py"
        script.write_text(_FETCH)
        script.chmod(0o644)
        self.run(
            "docker compose run --rm --entrypoint python operator"
            f" /work/fetch.py {request}"
        )
        return (self.folder / "work" / f"{request}.pdf").read_bytes()

    def version(self, service: str) -> str:
        """Of the Rúbrica that a service's container runs."""
        return self.inside(service, "rubrica --version")[-1]

    def inspect(self, service: str) -> dict[str, Any]:
        """What podman knows of a service's container."""
        told = self.run(f"docker inspect rubrica_{service}_1")
        found: list[dict[str, Any]] = json.loads(_json(told))
        return found[0]

    def inside(self, service: str, script: str) -> list[str]:
        """Words that a script says in a service's container."""
        return self.run(f"docker exec rubrica_{service}_1 sh -c '{script}'").split()

    def start_to_ready_s(self, service: str) -> float:
        """Seconds from a container's last start to its role's word that it works."""
        log = self.run(f"docker logs rubrica_{service}_1")
        said = re.findall(
            r'"event": "(?:\w+\.listening|worker\.started)".*"timestamp": "([^"]+)"',
            log,
        )
        started = self.inspect(service)["State"]["StartedAt"]
        begun, ready = (
            datetime.fromisoformat(each[:_MICROSECONDS]) for each in (started, said[-1])
        )
        return (ready - begun).total_seconds()

    def roots(self) -> list[bytes]:
        """The CA's root, DER."""
        pem = self.run("docker exec rubrica_api_1 cat /var/lib/rubrica/pki/root.pem")
        found = x509.load_pem_x509_certificate(_certificate(pem))
        return [found.public_bytes(Encoding.DER)]


def _json(told: str) -> str:
    """The list, without what podman says on a machine without systemd."""
    return told[told.index("[\n") : told.rindex("]") + 1]


def _certificate(told: str) -> bytes:
    (found,) = re.findall(
        r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", told, re.DOTALL
    )
    return str(found).encode()


def write_backup_config(path: Path, key: Path) -> None:
    """Write `backup.toml` as the manual has it, for a key.

    Args:
        path: of the file.
        key: file of age's private key.
    """
    given = blocks("Every day", "backup.md")
    (text,) = (each.text for each in given if each.language == "toml")
    (public,) = re.findall(r"age1[a-z0-9]+", key.read_text())
    path.write_text(text.replace("age1…", public))
    path.chmod(0o644)


def request_of(told: str) -> str:
    """Number of the request that a sample was.

    Args:
        told: by the line that signed it.
    """
    (found,) = re.findall(r"^solicitud (\d+): ", told, re.MULTILINE)
    return str(found)


def figures(installation: Installation) -> str:
    """What Prometheus is told."""
    address = "http://127.0.0.1:8083/metrics"
    return installation.host.within(lambda: httpx.get(address, timeout=CALL_S)).text


def newer_clone(place: Path) -> Path:
    """A clone of this repository, of a version that comes after it.

    Args:
        place: a folder that is not there.
    """
    subprocess.run(["git", "clone", "--quiet", ROOT, place], check=True)
    libraries = "appliance/web/vendor/files"
    shutil.copytree(ROOT / libraries, place / libraries)
    project = tomllib.loads((place / "pyproject.toml").read_text("utf-8"))["project"]
    for name in ("pyproject.toml", "Containerfile"):
        text = (place / name).read_text("utf-8")
        assert project["version"] in text
        text = text.replace(project["version"], NEXT_VERSION)
        (place / name).write_text(text, "utf-8")
    return place


def run_in(installation: Installation, line: str, clone: Path) -> None:
    """Run a line of the manual.

    Args:
        installation: that it is for.
        line: it.
        clone: that one which builds an image is run in.
    """
    if line.startswith("docker build"):
        installation.host.build(line, clone)
    else:
        installation.run(line)
