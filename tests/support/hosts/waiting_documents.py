"""What waits to be signed, and what was signed, by a tree that sees less in a file.

left = leave_documents(backend, receiver_url)
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from tests.support.documents import hostile_pdfs, outside_content_pdfs, pdfs
from tests.support.documents.ambiguous_pdfs import AMBIGUOUS, upon
from tests.support.documents.forgeries import FORGERIES
from tests.support.faults.fault_injection import until
from tests.support.hosts.earlier_tree import TreeInstallation
from tests.support.plugins.documented import OTHER_FACE
from tests.support.processes.plain_http import NO_TLS

API: Final = "/api/integration"
_S: Final = 120
_LEVELS: Final = ("B-B", "B-T", "B-LT", "B-LTA")
_FORGERY: Final = "key twice: page /Contents"
_CURIOUS: Final = "row of 19 bytes"
"""A way to be ambiguous in which no earlier tree saw anything."""

Told = dict[str, Any]


@dataclass
class Backend:
    """An integrator's backend at a trial, and two people of its own."""

    client: httpx.Client
    iframe_url: str
    people: list[Told] = field(default_factory=list)

    @classmethod
    def at(cls, site: TreeInstallation) -> "Backend":
        """With the key that `rubrica demo setup` has made."""
        text = (site.folder / "demo.env").read_text("utf-8")
        given = dict(re.findall(r"^(\w+)='(.*)'$", text, re.MULTILINE))
        client = httpx.Client(
            base_url=given["WEB_URL"],
            headers={"X-Api-Key": given["API_KEY"]},
            timeout=_S,
            verify=NO_TLS,
        )
        return cls(client, site.toml()["web"]["iframe_url"])

    def post(self, path: str, status: int, **body: object) -> Told:
        """Call, and be answered so."""
        answer = self.client.post(f"{API}{path}", json=body)
        assert answer.status_code == status, answer.text
        told: Told = answer.json()
        return told

    def get(self, path: str) -> Told:
        """What is there."""
        answer = self.client.get(f"{API}{path}")
        assert answer.status_code == httpx.codes.OK, answer.text
        told: Told = answer.json()
        return told

    def ask(self, pdf: bytes, *people: Told, **more: object) -> str:
        """Ask people to sign in turn; the process."""
        told = self.post(
            "/requests",
            201,
            firmantes=[{"cuil": person["cuil"]} for person in people],
            documento={"contenido": base64.b64encode(pdf).decode()},
            **more,
        )
        return str(told["procesoId"])

    def sign(self, person: Told, **what: object) -> Told:
        """Have somebody sign, as the tests of an integrator do."""
        return self.post(f"/test/signers/{person['cuil']}/sign", 200, **what)

    def sign_all(self, process: str) -> None:
        """Have those sign who have not, each in turn."""
        for person in self.people:
            signers = self.get(f"/requests/{process}")["firmantes"]
            states = {each["cuil"]: each["estado"] for each in signers}
            if states.get(person["cuil"]) in {"pendiente", "en_espera"}:
                self.sign(person, procesoId=process)

    def signed(self, pdf: bytes, person: Told, **more: object) -> str:
        """Ask somebody, who signs; the process."""
        process = self.ask(pdf, person, **more)
        self.sign(person, procesoId=process)
        return process

    def document(self, process: str) -> bytes:
        """What all have signed."""
        answer = self.client.get(f"{API}/requests/{process}/document")
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.content

    def standing(self, process: str) -> list[tuple[str, str | None]]:
        """State and reason of each signer's request."""
        signers = self.get(f"/requests/{process}")["firmantes"]
        return [(each["estado"], each["motivo"]) for each in signers]

    def number(self, process: str) -> int:
        """The first signer's request."""
        return int(self.get(f"/requests/{process}")["firmantes"][0]["solicitudId"])

    def batch(self, documents: Sequence[bytes], person: Told) -> Told:
        """Ask somebody to sign many, by a tree that makes all requests at once."""
        parts = [{"contenido": base64.b64encode(each).decode()} for each in documents]
        answer = self.client.post(
            f"{API}/batches",
            json={"firmante": {"cuil": person["cuil"]}, "documentos": parts},
            # It is no answer of today.
            extensions={OTHER_FACE: True},
        )
        assert answer.status_code == httpx.codes.CREATED, answer.text
        told: Told = answer.json()
        return told

    def open_frame(self, process: str, person: Told) -> httpx.Client:
        """The frame's page of somebody who has read the document and proven it."""
        token = self.post("/sessions", 201, procesoId=process)["tokenSession"]
        frame = httpx.Client(base_url=self.iframe_url, timeout=_S, verify=NO_TLS)
        page = frame.get(f"/embed/?sessionToken={token}").text
        session = re.search('data-session="([^"]+)"', page)
        assert session is not None, page
        who = {"cuil": person["cuil"], "email": person["email"]}
        init = {"nonce": token, "sessionToken": token, "userData": who}
        opened = _sent(frame, "init", page=session[1], init=init)
        frame.headers["Authorization"] = f"Bearer {opened['bearer']}"
        _sent(frame, "identify", **who)
        code = self.get(f"/test/signers/{person['cuil']}/otp")["otp"]
        _sent(frame, "otp", code=code)
        sha256 = _sent(frame, "state")["document"]["sha256"]
        _sent(frame, "seen", sha256=sha256)
        return frame


def _sent(frame: httpx.Client, step: str, **body: object) -> Told:
    address = f"/embed/api/{step}"
    answer = frame.post(address, json=body) if body else frame.get(address)
    assert answer.status_code == httpx.codes.OK, answer.text
    told: Told = answer.json()
    return told


@dataclass(frozen=True)
class LeftDocuments:
    """By name: processes, batches and uploads."""

    backend: Backend
    frame: httpx.Client
    """Waiting documents that their signer has read, and that are refused now."""
    refused: dict[str, tuple[str, str]]
    """What waits and is refused now: the process, and the code."""
    waiting: dict[str, str]
    """What else waits."""
    whole: dict[str, str]
    forged: dict[str, str]
    """What was signed and is not whole, with what `recheck` says of it."""
    batches: dict[str, str]
    uploads: dict[str, str]


def leave_documents(backend: Backend, receiver_url: str) -> LeftDocuments:
    """Have people do something while an earlier tree serves an installation.

    Args:
        backend: of its integrator.
        receiver_url: of the integrator's webhook.
    """
    backend.post("/webhooks", 201, url=receiver_url)
    for name in ("Ana Ruiz", "Bruno Paz"):
        made = backend.post("/test/signers", 201, nombre=name)
        until(lambda cuil=made["cuil"]: backend.get(f"/signers/{cuil}")["puedeFirmar"])  # type: ignore[misc]  # bound now
        backend.people.append(made)
    ana, bruno = backend.people
    plain, two_pages = pdfs.one_page("Contrato"), pdfs.pages(2)
    with upon(hostile_pdfs.plain()):
        curious = AMBIGUOUS[_CURIOUS][0]()
    of_others = AMBIGUOUS["page with two contents"][0]()
    outside = outside_content_pdfs.drawing(
        b"/XObject<</X 5 0 R>>",
        o5=outside_content_pdfs.stream(
            b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/F(other.bin)"
        ),
    )
    refused = {
        "ambiguous": (backend.ask(curious, ana), "PDF_AMBIGUOUS"),
        "ambiguous and signed": (backend.ask(of_others, ana), "PDF_AMBIGUOUS"),
        "content elsewhere": (backend.ask(outside, ana), "PDF_EXTERNAL_CONTENT"),
        "of two": (backend.ask(curious, ana, bruno), "PDF_AMBIGUOUS"),
        "in the frame": (backend.ask(outside, bruno), "PDF_EXTERNAL_CONTENT"),
    }
    turns = backend.ask(two_pages, ana, bruno)
    backend.sign(ana, procesoId=turns)
    both = backend.signed(two_pages, ana)
    forged = FORGERIES[_FORGERY](backend.document(both))
    sheets = [pdfs.one_page(f"Recibo {number}") for number in range(4)]
    batches = {
        "whole": backend.batch(sheets, ana),
        "half": backend.batch(sheets, bruno),
        "one refused": backend.batch([*sheets, outside], bruno),
    }
    for each in batches["half"]["solicitudes"][:2]:
        backend.sign(bruno, solicitudId=each["solicitudId"])
    uploads = {}
    for name, pdf in {"plain": pdfs.one_page("Subido"), "outside": outside}.items():
        header = {"Content-Type": "application/pdf"}
        came = backend.client.post(f"{API}/documents", content=pdf, headers=header)
        assert came.status_code == httpx.codes.CREATED, came.text
        uploads[name] = str(came.json()["documentoId"])
    return LeftDocuments(
        backend=backend,
        frame=backend.open_frame(refused["in the frame"][0], bruno),
        refused=refused,
        waiting={
            "plain": backend.ask(plain, ana),
            "second turn": turns,
            "both turns": backend.ask(two_pages, ana, bruno),
            "what was signed here": backend.ask(backend.document(both), bruno),
        },
        whole={
            **{level: backend.signed(plain, ana, nivel=level) for level in _LEVELS},
            "came back": backend.signed(backend.document(both), bruno),
            "content elsewhere": backend.signed(outside, ana),
        },
        forged={
            backend.signed(forged, bruno): "broken",
            backend.signed(curious, ana): "unchecked",
        },
        batches={name: each["loteId"] for name, each in batches.items()},
        uploads=uploads,
    )
