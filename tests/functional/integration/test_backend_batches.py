"""Batches of an integrator's backend, over HTTP: from asking to what was signed."""

import base64
import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import TestBackend, assert_valid, backend_of
from tests.support.documents import pdfs

BATCHES = "/api/integration/batches"
DOCUMENTS = "/api/integration/documents"
REQUESTS = "/api/integration/requests"
LOTE = "/solicitudes/firmar/lote"


def uploaded(backend: TestBackend, pdf: bytes, name: str = "a.pdf") -> str:
    """A document of a backend; its id."""
    answer = backend.client.post(
        DOCUMENTS,
        params={"nombre": name},
        content=pdf,
        headers={"Content-Type": "application/pdf"},
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["documentoId"])


def asked(
    backend: TestBackend,
    person: TestPerson,
    documents: list[dict[str, Any]],
    **fields: Any,
) -> dict[str, Any]:
    """A batch that was made."""
    answer = backend.client.post(
        BATCHES,
        json={"firmante": {"cuil": person.cuil}, "documentos": documents, **fields},
    )
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    return told


def signed(
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


def test_batch_is_made_signed_and_followed(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Documents of both kinds, each with its own words; one password signs them."""
    one, two = (pdfs.one_page(text) for text in ("Recibo 1", "Recibo 2"))
    documents: list[dict[str, Any]] = [
        {
            "documentoId": uploaded(backend, one, "enero.pdf"),
            "referencia": "enero",
            "metadatos": {"mes": "1"},
        },
        {
            "contenido": base64.b64encode(two).decode(),
            "nombre": "febrero.pdf",
            "sello": {"visible": False},
        },
    ]

    made = asked(
        backend,
        people[0],
        documents,
        referencia="recibos",
        mensaje="Tus recibos",
        metadatos={"legajo": "4711"},
    )

    members = made["solicitudes"]
    assert (made["total"], made["estados"]) == (2, {"pendiente": 2})
    assert made["metadatos"] == {"legajo": "4711"}
    assert [each["documento"]["nombre"] for each in members] == [
        "enero.pdf",
        "febrero.pdf",
    ]
    numbers = [each["solicitudId"] for each in members]
    request = backend.read(members[0]["procesoId"])
    assert (request["loteId"], request["referencia"]) == (made["loteId"], "enero")
    assert (request["mensaje"], request["metadatos"]) == ("Tus recibos", {"mes": "1"})
    assert request["historia"][0]["loteId"] == made["loteId"]
    with appliance.client(people[0]) as client:
        listed = {
            each["solicitudId"]: each["loteId"]
            for each in client.get("/solicitudes").json()
        }
        shown = client.get(f"/solicitudes/{numbers[0]}").json()
    assert [listed[number] for number in numbers] == [made["loteId"]] * 2
    assert shown["loteId"] == made["loteId"]

    told = signed(appliance, people[0], made["loteId"])

    assert told["status"] == "success"
    assert [each["solicitudId"] for each in told["resultados"]] == numbers
    after = backend.client.get(f"{BATCHES}/{made['loteId']}").json()
    assert after["estados"] == {"firmada": 2}
    for member, original in zip(members, (one, two), strict=True):
        path = f"{REQUESTS}/{member['procesoId']}/document"
        pdf = backend.client.get(path).content
        assert pdf.startswith(original)
        assert_valid(appliance, pdf, 1)
    found = backend.client.get(REQUESTS, params={"loteId": made["loteId"]}).json()
    assert {each["procesoId"] for each in found} == {m["procesoId"] for m in members}


def test_batch_is_found_and_taken_back(
    appliance: Appliance, people: list[TestPerson]
) -> None:
    """By its reference, page by page; nobody else sees it."""
    with backend_of(appliance) as backend, backend_of(appliance) as other:
        document = {"documentoId": uploaded(backend, pdfs.one_page())}
        made = [
            asked(backend, people[0], [document] * 3, referencia=f"l{n}")
            for n in range(3)
        ]
        path = f"{BATCHES}/{made[0]['loteId']}"

        answer = backend.client.get(BATCHES, params={"limite": 2})
        rest = backend.client.get(answer.links["next"]["url"])
        page = backend.client.get(path, params={"limite": 2})
        last = backend.client.get(page.links["next"]["url"])
        found = backend.client.get(BATCHES, params={"referencia": "l1"}).json()
        ended = backend.client.post(f"{path}/cancel", json={"motivo": "Era otro"})
        again = backend.client.post(f"{path}/cancel")
        strange = [
            other.client.get(path),
            other.client.post(f"{path}/cancel"),
            backend.client.get(f"{BATCHES}/x"),
        ]

    ids = [each["loteId"] for each in (*answer.json(), *rest.json())]
    assert ids == [each["loteId"] for each in reversed(made)]
    assert "solicitudes" not in answer.json()[0]
    members = [*page.json()["solicitudes"], *last.json()["solicitudes"]]
    assert members == made[0]["solicitudes"]
    assert [each["referencia"] for each in found] == ["l1"]
    assert ended.json()["estados"] == {"cancelada": 3}
    assert again.json()["code"] == "STATE"
    assert {each.json()["code"] for each in strange} == {"LOTE_NOT_FOUND"}
    assert {each.status_code for each in strange} == {404}


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"documentos": []}, "FIELD_INVALID", "documentos"),
    ({"documentos": [{}] * 1001}, "FIELD_INVALID", "documentos"),
    ({"documentos": [{}]}, "FIELD_MISSING", "documentos[0].contenido"),
    ({"documentos": None}, "FIELD_MISSING", "documentos"),
    ({"documentos": [{"x": 1}]}, "FIELD_UNKNOWN", "documentos[0].x"),
    (
        {"documentos": [{"documentoId": "x", "contenido": "aG9sYQ=="}]},
        "FIELD_INVALID",
        "documentos[0].contenido",
    ),
    (
        {"documentos": [{"documentoId": "x", "referenciaUnica": True}]},
        "FIELD_MISSING",
        "documentos[0].referencia",
    ),
    (
        {"documentos": [{"documentoId": "x", "sello": {"page": 0}}]},
        "FIELD_INVALID",
        "documentos[0].sello.page",
    ),
    ({"documentos": [{"documentoId": "x"}]}, "DOCUMENT_NOT_FOUND", "documentoId"),
    (
        {"documentos": [{"contenido": "aG9sYQ=="}]},
        "PDF_MALFORMED",
        "documentos[0].contenido",
    ),
    ({"firmante": {}}, "FIELD_INVALID", "firmante"),
    ({"firmante": None}, "FIELD_MISSING", "firmante"),
    ({"referenciaUnica": True}, "FIELD_MISSING", "referencia"),
    ({"firmantes": []}, "FIELD_UNKNOWN", "firmantes"),
]


@pytest.mark.parametrize(
    ("changes", "code", "field"), WRONG, ids=lambda value: str(value)[:40]
)
def test_what_is_wrong_is_told_by_its_place(
    backend: TestBackend,
    people: list[TestPerson],
    changes: dict[str, Any],
    code: str,
    field: str,
) -> None:
    """As of one request, with the place of the document."""
    body = {
        "firmante": {"cuil": people[0].cuil},
        "documentos": [{"documentoId": "x"}],
        **changes,
    }

    answer = backend.client.post(BATCHES, json=body)

    assert answer.json()["code"] == code
    assert answer.json()["field"].endswith(field)


def faults_of(answer: Any) -> list[tuple[str, str]]:
    """Code and field of each."""
    return [(each["code"], each["field"]) for each in answer.json()["errors"]]


def test_all_that_is_wrong_is_told_at_once(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """How it is written first, before any document is examined; then the documents."""
    upload = {"documentoId": uploaded(backend, pdfs.one_page())}
    twice = {**upload, "referencia": "R", "referenciaUnica": True}
    taken = {**upload, "referencia": "ya", "referenciaUnica": True}
    asked(backend, people[0], [taken])
    broken = {"contenido": base64.b64encode(b"Hola").decode()}
    away = {**upload, "sello": {"page": 9}}

    written = backend.client.post(
        BATCHES,
        json={
            "firmante": {"cuil": people[0].cuil, "x": 1},
            "documentos": [
                broken,
                {**upload, "nombre": "../a.pdf"},
                {"documentoId": 7, "referencia": "", "y": 1},
                twice,
                {**twice, "sello": {"page": 0}},
                {**upload, "sello": {"page": 0}},
                {"documentoId": "x"},
                twice,
                taken,
            ],
            "vence": "2001-01-01T00:00:00Z",
            "nivel": "B-X",
        },
    )
    nobody = backend.client.post(
        BATCHES,
        json={
            "firmante": {"email": "nadie@demo.example"},
            "documentos": [broken],
            "vence": "2001-01-01T00:00:00Z",
        },
    )
    documents = backend.client.post(
        BATCHES,
        json={
            "firmante": {"cuil": people[0].cuil},
            "documentos": [upload, broken, away, broken, upload],
        },
    )

    assert (written.status_code, written.json()["field"]) == (400, "nivel")
    assert faults_of(written) == [
        ("FIELD_INVALID", "nivel"),
        ("FIELD_UNKNOWN", "firmante.x"),
        ("FIELD_UNKNOWN", "documentos[2].y"),
        ("FIELD_INVALID", "documentos[2].referencia"),
        ("FIELD_INVALID", "documentos[2].documentoId"),
        ("FIELD_INVALID", "documentos[4].sello.page"),
        ("FIELD_INVALID", "documentos[5].sello.page"),
        ("FILENAME", "documentos[1].nombre"),
        ("FIELD_INVALID", "documentos[7].referencia"),
        ("DOCUMENT_NOT_FOUND", "documentos[6].documentoId"),
        ("REFERENCE_IN_USE", "documentos[8].referencia"),
    ]
    assert written.json()["errors"][-1]["procesoId"]
    assert {each["category"] for each in written.json()["errors"]} == {
        "fix_request",
        "terminal",
    }
    assert faults_of(nobody) == [
        ("FIELD_INVALID", "vence"),
        ("PERSON_NOT_FOUND", "firmante"),
    ]
    assert documents.status_code == 422
    assert faults_of(documents) == [
        ("PDF_MALFORMED", "documentos[1].contenido"),
        ("PAGE_OUT_OF_RANGE", "documentos[2].sello.page"),
        ("PDF_MALFORMED", "documentos[3].contenido"),
    ]


def test_so_many_faults_are_told_and_no_more(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """Of a thousand."""
    body = {"firmante": {"cuil": people[0].cuil}, "documentos": [{}] * 1_000}

    answer = backend.client.post(BATCHES, json=body)

    assert faults_of(answer) == [
        ("FIELD_MISSING", f"documentos[{n}].contenido") for n in range(50)
    ]


@pytest.mark.alone
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("database", ["appliance", "postgres_appliance"])
def test_a_thousand_are_asked_for_and_signed_at_once(
    request: pytest.FixtureRequest, database: str
) -> None:
    """One call makes them, one signs them; the same call again makes nothing new."""
    appliance: Appliance = request.getfixturevalue(database)
    person = appliance.new_person()
    originals = [pdfs.one_page(f"Recibo {n}") for n in range(1_000)]
    with backend_of(appliance) as backend, ThreadPoolExecutor(2) as pool:
        uploads = list(pool.map(lambda pdf: uploaded(backend, pdf), originals))
        body = {
            "firmante": {"cuil": person.cuil, "sello": {"page": "ultima"}},
            "documentos": [
                {"documentoId": each, "referencia": f"recibo-{n}"}
                for n, each in enumerate(uploads)
            ],
            "referencia": "recibos-2026-11",
        }
        key = {"Idempotency-Key": "recibos-2026-11"}
        begun = time.perf_counter()
        answer = backend.client.post(BATCHES, json=body, headers=key)
        made_s = time.perf_counter() - begun
        assert answer.status_code == 201, answer.text
        made = answer.json()

        begun = time.perf_counter()
        told = signed(appliance, person, made["loteId"])
        signed_s = time.perf_counter() - begun
        again = backend.client.post(BATCHES, json=body, headers=key)
        listed = backend.client.get(BATCHES).json()

        members = made["solicitudes"]
        numbers = [each["solicitudId"] for each in members]
        assert [each["solicitudId"] for each in told["resultados"]] == numbers
        assert (told["status"], told["firmadas"]) == ("success", 1_000)
        assert again.headers["Idempotent-Replayed"] == "true"
        assert [each["solicitudId"] for each in again.json()["solicitudes"]] == numbers
        assert [each["estados"] for each in listed] == [{"firmada": 1_000}]
        paths = [f"{REQUESTS}/{each['procesoId']}/document" for each in members]
        fetched = pool.map(lambda path: backend.client.get(path).content, paths)
        for place, pdf in enumerate(fetched):
            assert pdf.startswith(originals[place])
            digest = hashlib.sha256(pdf).hexdigest()
            assert digest == told["resultados"][place]["sha256"]
            if place % 50 == 0:
                assert_valid(appliance, pdf, 1)
    assert made_s < 30
    assert signed_s < 240
