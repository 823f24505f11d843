"""A large document on its whole way through an appliance, and what that takes.

    walk = walk_through(appliance, person, pdf)
    assert walk.most("signing") < 3 * len(pdf)

Memory is how much a role's resident pages grew at the worst moment (VmHWM after
it was reset). A sandbox job lives for one document, so those are looked at while
they run.
"""

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from appliance.bootstrap import ServiceRegistry
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import backend_of
from tests.support.patience import CALL_S
from tests.support.processes.plain_http import NO_TLS

ROLES: Final = ("api", "embed", "signing", "chores", "sandbox")
_LOOK_S: Final = 0.005
_KIB: Final = 1024
_PATIENCE_S: Final = 300.0


@dataclass
class Walk:
    """What each step took."""

    size_bytes: int
    seconds: dict[str, float] = field(default_factory=dict)
    grown: dict[str, dict[str, int]] = field(default_factory=dict)
    """Bytes, by step and role."""

    def most(self, role: str) -> int:
        """How much a role grew in its worst step, in bytes."""
        return max(grown.get(role, 0) for grown in self.grown.values())

    @contextmanager
    def step(self, appliance: Appliance, name: str) -> Iterator[None]:
        """Measure what is done within."""
        before = {each.pid: _resident(each.pid, reset=True) for each in _all(appliance)}
        with _jobs_watched(appliance) as jobs:
            begun = time.perf_counter()
            yield
            self.seconds[name] = time.perf_counter() - begun
        grown = dict.fromkeys(ROLES, 0)
        for role in ROLES:
            for each in appliance.children(role):
                most = _resident(each.pid, peak=True) - before.get(each.pid, 0)
                grown[role] = max(grown[role], most)
        grown["sandbox job"] = max(jobs, default=0)
        self.grown[name] = grown


def walk_through(appliance: Appliance, person: TestPerson, pdf: bytes) -> Walk:
    """Bring a document in by the frame, sign it, and fetch it, measuring each step.

    Args:
        appliance: that takes documents of this size.
        person: who signs.
        pdf: the document.
    """
    walk = Walk(len(pdf))
    walk.seconds["hash and copy"] = _hash_and_copy(pdf, appliance.folder)
    bearer = _open_frame(appliance)
    frame = httpx.Client(
        base_url=f"{appliance.iframe_url}/embed/api",
        headers={"Authorization": f"Bearer {bearer}"},
        timeout=_PATIENCE_S,
        verify=NO_TLS,
    )
    with frame:
        headers = {"Content-Type": "application/pdf", "X-File-Name": "grande.pdf"}
        with walk.step(appliance, "frame: upload"):
            answer = frame.post("/document", content=pdf, headers=headers)
        assert answer.status_code == 200, answer.text
        with walk.step(appliance, "frame: see"):
            seen = _fetched(frame, "/document")
        assert seen == hashlib.sha256(pdf).hexdigest()

    request = appliance.new_request(person, pdf)
    with appliance.client(person) as client:
        client.timeout = httpx.Timeout(_PATIENCE_S)
        options = {"solicitudId": request, "password": person.signing_password}
        with walk.step(appliance, "sign"):
            signed = _signed(client, pdf, options)
        with walk.step(appliance, "fetch"):
            fetched = _fetched(client, signed["documentoFirmado"])
    assert fetched == signed["sha256"]
    return walk


def download(appliance: Appliance, person: TestPerson, pdf: bytes) -> Walk:
    """Fetch a document that somebody is to sign, measuring that."""
    walk = Walk(len(pdf))
    request = appliance.new_request(person, pdf)
    with appliance.client(person) as client, walk.step(appliance, "fetch"):
        fetched = _fetched(client, f"/solicitudes/{request}/original")
    assert fetched == hashlib.sha256(pdf).hexdigest()
    return walk


def upload(appliance: Appliance, pdf: bytes) -> Walk:
    """Have a backend upload a document by both forms of any size, and fetch it."""
    walk = Walk(len(pdf))
    path, headers = "/api/integration/documents", {"Content-Type": "application/pdf"}
    with backend_of(appliance) as backend:
        backend.client.timeout = httpx.Timeout(_PATIENCE_S)
        with walk.step(appliance, "backend: upload"):
            as_it_is = backend.client.post(path, content=pdf, headers=headers)
        files = {"file": ("grande.pdf", pdf, "application/pdf")}
        with walk.step(appliance, "backend: upload a part"):
            in_a_part = backend.client.post(path, files=files)
        assert [as_it_is.status_code, in_a_part.status_code] == [201, 201]
        with walk.step(appliance, "fetch"):
            ident = as_it_is.json()["documentoId"]
            fetched = _fetched(backend.client, f"{path}/{ident}/content")
    assert fetched == hashlib.sha256(pdf).hexdigest()
    return walk


def _hash_and_copy(pdf: bytes, folder: Path) -> float:
    """Seconds to do no more with a document than nobody can do without."""
    copy = folder / "copy"
    begun = time.perf_counter()
    hashlib.sha256(pdf).digest()
    with copy.open("wb") as file:
        file.write(pdf)
        file.flush()
        os.fsync(file.fileno())
    took = time.perf_counter() - begun
    copy.unlink()
    return took


def _open_frame(appliance: Appliance) -> str:
    """A bearer of a session of the frame."""

    async def token(front: ServiceRegistry) -> tuple[str, str]:
        made = await front.integrators.create_key("operator", "demo", "large")
        opened = await front.sessions.open("demo", made.secret)
        page = await front.sessions.page(opened.token, None)
        return opened.token, page.session_public_id

    secret, page = appliance.do(token)
    user = {"cuil": "20-26756539-3", "email": "a@b.example", "phone": ""}
    payload = {"nonce": "n", "sessionToken": secret, "userData": user}
    answer = httpx.post(
        f"{appliance.iframe_url}/embed/api/init",
        json={"page": page, "init": payload},
        timeout=CALL_S,
    )
    assert answer.status_code == 200, answer.text
    bearer: str = answer.json()["bearer"]
    return bearer


def _signed(
    client: httpx.Client, pdf: bytes, options: dict[str, object]
) -> dict[str, Any]:
    """Sign, sending the document along; asked for until it is done."""
    files: dict[str, tuple[str | None, bytes | str, str]] = {
        "file": ("grande.pdf", pdf, "application/pdf"),
        "options": (None, json.dumps(options), "application/json"),
    }
    accept = {"Accept": "application/json"}
    answer = client.post("/solicitudes/firmar", files=files, headers=accept)
    while answer.status_code == httpx.codes.ACCEPTED:
        answer = client.post("/solicitudes/firmar", json=options, headers=accept)
    assert answer.status_code == httpx.codes.OK, answer.text
    told: dict[str, Any] = answer.json()
    return told


def _fetched(client: httpx.Client, url: str) -> str:
    """Download; the SHA-256 of what came."""
    digest = hashlib.sha256()
    with client.stream("GET", url) as answer:
        assert answer.status_code == httpx.codes.OK
        for piece in answer.iter_raw():
            digest.update(piece)
    return digest.hexdigest()


def _all(appliance: Appliance) -> list[psutil.Process]:
    return [each for role in ROLES for each in appliance.children(role)]


def _resident(pid: int, *, peak: bool = False, reset: bool = False) -> int:
    """Resident bytes of a process, now or at most since the reset."""
    if reset:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    name = "VmHWM:" if peak else "VmRSS:"
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    (line,) = [line for line in lines if line.startswith(name)]
    return int(line.split()[1]) * _KIB


@contextmanager
def _jobs_watched(appliance: Appliance) -> Iterator[list[int]]:
    """The largest that each look at the sandbox's jobs saw, in bytes of its own."""
    seen: list[int] = []
    done = threading.Event()
    servers = appliance.children("sandbox")

    def watch() -> None:
        while not done.wait(_LOOK_S):
            for job in (
                child for each in servers for child in each.children(recursive=True)
            ):
                try:
                    seen.append(_resident(job.pid, peak=True))
                except (OSError, ValueError):
                    continue  # it has ended

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()
