"""An integrator's backend in tests: its key, and calls with it."""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from appliance.bootstrap import ServiceRegistry
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import NewKey
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import sign_at_last
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.faults.fault_injection import until
from tests.support.patience import CALL_S

REQUESTS = "/api/integration/requests"
DOCUMENTS = "/api/integration/documents"
BATCHES = "/api/integration/batches"
LOTE = "/solicitudes/firmar/lote"


@dataclass(frozen=True)
class TestBackend:
    """The backend of an integrator of its own, and a client that has its key."""

    __test__ = False

    appliance: Appliance
    code: str
    key: NewKey
    client: httpx.Client

    def ask(self, pdf: bytes, *people: TestPerson, **fields: Any) -> httpx.Response:
        """Ask people to sign a document, by multipart."""
        return self.client.post(
            REQUESTS,
            files={
                "file": ("contrato.pdf", pdf, "application/pdf"),
                "options": (
                    None,
                    json.dumps(
                        {"firmantes": [{"cuil": p.cuil} for p in people], **fields}
                    ),
                    "application/json",
                ),
            },
        )

    def made(self, pdf: bytes, *people: TestPerson, **fields: Any) -> dict[str, Any]:
        """The same; the answer's body."""
        answer = self.ask(pdf, *people, **fields)
        assert answer.status_code == 201, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def read(self, process: str) -> dict[str, Any]:
        """How a request stands."""
        answer = self.client.get(f"{REQUESTS}/{process}")
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told


def prepared(client: httpx.Client, answer: httpx.Response) -> dict[str, Any]:
    """A batch that was asked for, once its documents are examined, with all of them.

    Args:
        client: of the backend.
        answer: to the call that asked for it.
    """
    assert answer.status_code == 202, answer.text
    return prepared_batch(client, answer.json()["loteId"])


def prepared_batch(client: httpx.Client, lote: str) -> dict[str, Any]:
    """The same, by its id."""
    path = f"{BATCHES}/{lote}"
    page = client.get(path, params={"limite": 200})

    def is_over() -> bool:
        nonlocal page
        page = client.get(path, params={"limite": 200})
        assert page.status_code == 200, page.text
        return bool(page.json()["estado"] != "en_preparacion")

    until(is_over)
    told: dict[str, Any] = page.json()
    while "next" in page.links:
        page = client.get(page.links["next"]["url"])
        told["solicitudes"] += page.json()["solicitudes"]
    return told


def ready_batch(client: httpx.Client, answer: httpx.Response) -> dict[str, Any]:
    """The same, of a batch that nothing is wrong with."""
    told = prepared(client, answer)
    assert told["estado"] == "listo", told
    return told


@contextmanager
def backend_of(
    appliance: Appliance, *scopes: ApiKeyScope, code: str | None = None
) -> Iterator[TestBackend]:
    """A backend whose key has those scopes; none: all of them.

    Args:
        appliance: that runs.
        scopes: of the key.
        code: of an integrator that is there; None: of a new one.
    """
    wanted = scopes or tuple(ApiKeyScope)
    name = code or f"i-{secrets.token_hex(6)}"

    async def make(front: ServiceRegistry) -> NewKey:
        if code is None:
            await front.integrators.create("operator", name, f"Integrador {name}")
        return await front.integrators.create_key(
            "operator", name, "backend", scopes=wanted
        )

    key = appliance.do(make)
    with httpx.Client(
        base_url=appliance.settings.web.web_url,
        headers={"X-Api-Key": key.secret},
        timeout=CALL_S,
    ) as client:
        yield TestBackend(appliance, name, key, client)


def let_vouch(backend: TestBackend) -> TestBackend:
    """Give an integrator the right."""

    async def change(front: ServiceRegistry) -> None:
        await front.integrators.change("operator", backend.code, may_vouch=True)

    backend.appliance.do(change)
    return backend


def sign(appliance: Appliance, person: TestPerson, request: int) -> httpx.Response:
    """Have somebody sign a request, with no word about how."""
    with appliance.client(person) as client:
        answer = sign_at_last(client, person, request)
    assert answer.status_code == 200, answer.text
    return answer


def upload(backend: TestBackend, pdf: bytes, name: str = "a.pdf") -> str:
    """A document of a backend; its id."""
    answer = backend.client.post(
        DOCUMENTS,
        params={"nombre": name},
        content=pdf,
        headers={"Content-Type": "application/pdf"},
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["documentoId"])


def sign_batch(
    appliance: Appliance, person: TestPerson, lote: str, **fields: Any
) -> dict[str, Any]:
    """Sign a whole batch, to its end."""
    with appliance.client(person) as client:
        body = {"loteId": lote, "password": person.signing_password, **fields}
        answer = client.post(LOTE, json=body)
        assert answer.status_code in {200, 202}, answer.text
        where = answer.headers.get("Location", "")
        while answer.json()["status"] == "en_proceso":
            time.sleep(float(answer.headers["Retry-After"]))
            answer = client.get(where)
        told: dict[str, Any] = answer.json()
        return told


def assert_valid(appliance: Appliance, pdf: bytes, signatures: int) -> None:
    """By pdfsig and by pyHanko."""
    found = pdfsig(pdf)
    assert [signature.valid for signature in found] == [True] * signatures
    assert pyhanko_valid(pdf, appliance.roots)
