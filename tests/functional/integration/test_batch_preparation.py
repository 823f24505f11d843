"""Batches of a backend between the call and their requests, over HTTP."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    BATCHES,
    LOTE,
    TestBackend,
    backend_of,
    prepared,
    prepared_batch,
    ready_batch,
    sign_batch,
    upload,
)
from tests.support.appliance.http_calls import problem
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import held, until

SESSIONS: Final = "/api/integration/sessions"
BROKEN: Final = base64.b64encode(b"Hola").decode()


def content(text: str) -> str:
    """A PDF in Base64."""
    return base64.b64encode(pdfs.one_page(text)).decode()


def order(
    person: TestPerson, documents: list[dict[str, Any]], **fields: Any
) -> dict[str, Any]:
    """The body of a call that asks for a batch."""
    return {"firmante": {"cuil": person.cuil}, "documentos": documents, **fields}


@pytest.fixture
def waiting(appliance: Appliance) -> Iterator[None]:
    """Nobody prepares batches."""
    with held(appliance, "chores"):
        yield


@pytest.mark.usefixtures("waiting")
def test_call_is_answered_at_once(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """202 with the state, where to read it, and when to look again."""
    documents = [{"contenido": content("a"), "nombre": "a.pdf"}, {"contenido": BROKEN}]
    key = {"Idempotency-Key": "preparacion-1"}
    body = order(people[0], documents, referencia="recibos")

    answer = backend.client.post(BATCHES, json=body, headers=key)
    again = backend.client.post(BATCHES, json=body, headers=key)

    told = answer.json()
    assert answer.status_code == 202
    assert answer.headers["Location"].endswith(f"{BATCHES}/{told['loteId']}")
    assert answer.headers["Retry-After"] == "2"
    assert told["estado"] == "en_preparacion"
    assert told["progreso"] == {"documentos": 2, "examinados": 0}
    assert (told["total"], told["estados"], told["solicitudes"]) == (2, {}, [])
    assert told["firmante"]["cuil"].replace("-", "") == people[0].cuil
    assert "errors" not in told
    assert (again.status_code, again.json()) == (202, told)
    assert again.headers["Idempotent-Replayed"] == "true"
    shown = backend.client.get(f"{BATCHES}/{told['loteId']}")
    assert (shown.status_code, shown.json()) == (200, told)
    (listed,) = backend.client.get(BATCHES, params={"referencia": "recibos"}).json()
    assert listed == {name: told[name] for name in told if name != "solicitudes"}


def test_batch_that_is_not_ready_is_signed_by_nobody(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Its state is told, and its signer has nothing of it in their list."""
    with held(appliance, "chores"), appliance.client(people[0]) as client:
        before = client.get("/solicitudes").json()
        body = order(people[0], [{"contenido": content("b")}])
        lote = backend.client.post(BATCHES, json=body).json()["loteId"]
        opened = backend.client.post(SESSIONS, json={"loteId": lote})
        password = {"loteId": lote, "password": people[0].signing_password}
        signed = client.post(LOTE, json=password)
        assert client.get("/solicitudes").json() == before

    for answer in (opened, signed):
        told = problem(answer, 409, "STATE")
        assert told["category"] == "retry"
        assert "en preparación" in told["detail"]
    with appliance.client(people[1]) as stranger:
        problem(stranger.post(LOTE, json=password), 404, "LOTE_NOT_FOUND")
    assert prepared_batch(backend.client, lote)["estado"] == "listo"
    assert sign_batch(appliance, people[0], lote)["firmadas"] == 1


def test_refused_batch_says_all_that_is_wrong(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """In the language of who asks; it is over, and its key is free again."""
    key = {"Idempotency-Key": "preparacion-2"}
    documents: list[dict[str, Any]] = [
        {"contenido": content("c")},
        {"contenido": BROKEN, "nombre": "b.pdf"},
        {"documentoId": upload(backend, pdfs.one_page()), "sello": {"page": 9}},
    ]
    body = order(people[0], documents, referencia="R", referenciaUnica=True)
    answer = backend.client.post(BATCHES, json=body, headers=key)

    told = prepared(backend.client, answer)

    assert (told["estado"], told["solicitudes"]) == ("rechazado", [])
    assert told["progreso"] == {"documentos": 3, "examinados": 3}
    assert [
        (each["code"], each["category"], each["field"]) for each in told["errors"]
    ] == [
        ("PDF_MALFORMED", "fix_request", "documentos[1].contenido"),
        ("PAGE_OUT_OF_RANGE", "fix_request", "documentos[2].sello.page"),
    ]
    assert [each["documento"] for each in told["errors"]] == ["b.pdf", "a.pdf"]
    path = f"{BATCHES}/{told['loteId']}"
    english = backend.client.get(path, headers={"Accept-Language": "en"}).json()
    assert [each["detail"] for each in english["errors"]] != [
        each["detail"] for each in told["errors"]
    ]
    for refused in (
        backend.client.post(f"{path}/cancel"),
        backend.client.post(SESSIONS, json={"loteId": told["loteId"]}),
    ):
        assert "rechazado" in problem(refused, 409, "STATE")["detail"]
    mended = {**body, "documentos": documents[:1]}
    again = backend.client.post(BATCHES, json=mended, headers=key)
    assert ready_batch(backend.client, again)["loteId"] != told["loteId"]


def test_batch_is_taken_back_while_it_is_prepared(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Nobody is asked to sign, and its files go."""
    pdf = pdfs.one_page("Solo de este lote")
    with held(appliance, "chores"):
        document = {"contenido": base64.b64encode(pdf).decode()}
        body = order(people[0], [document])
        lote = backend.client.post(BATCHES, json=body).json()["loteId"]
        ended = backend.client.post(
            f"{BATCHES}/{lote}/cancel", json={"motivo": "Era otra"}
        )
        assert is_stored(appliance, pdf)

    assert (ended.status_code, ended.json()["estado"]) == (200, "cancelado")
    problem(backend.client.post(f"{BATCHES}/{lote}/cancel"), 409, "STATE")
    until(lambda: not is_stored(appliance, pdf))
    shown = backend.client.get(f"{BATCHES}/{lote}").json()
    assert (shown["estado"], shown["estados"]) == ("cancelado", {})


def test_damaged_documents_of_a_batch_are_repaired(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """By the sandbox of workers, as those of one request are."""
    damaged = base64.b64encode(pdfs.wrong_startxref()).decode()
    body = order(people[0], [{"contenido": damaged}])
    made = ready_batch(backend.client, backend.client.post(BATCHES, json=body))
    request = backend.read(made["solicitudes"][0]["procesoId"])
    assert request["documento"]["reparacion"]


def test_other_integrators_do_not_wait(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """For a large batch that came before theirs: their requests are made first."""
    large = [{"contenido": content(f"largo {n}")} for n in range(200)]
    body = order(people[1], [{"contenido": content("corto")}])
    with backend_of(appliance) as other:
        with held(appliance, "chores"):
            first = backend.client.post(BATCHES, json=order(people[0], large))
            second = other.client.post(BATCHES, json=body)
        small = ready_batch(other.client, second)["solicitudes"]
        others = ready_batch(backend.client, first)["solicitudes"]
    assert len(others) == 200
    assert small[0]["solicitudId"] < others[0]["solicitudId"]


def is_stored(appliance: Appliance, pdf: bytes) -> bool:
    """Return whether a document is kept."""
    name = f"{hashlib.sha256(pdf).hexdigest()}.pdf"
    return any(appliance.settings.documents_dir.rglob(name))
