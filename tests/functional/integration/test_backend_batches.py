"""Batches of an integrator's backend, over HTTP: from asking to what was signed."""

import base64
from typing import Any

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    BATCHES,
    REQUESTS,
    TestBackend,
    assert_valid,
    backend_of,
    prepared,
    ready_batch,
    sign_batch,
    upload,
)
from tests.support.documents import pdfs


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
    return ready_batch(backend.client, answer)


def test_batch_is_made_signed_and_followed(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Documents of both kinds, each with its own words; one password signs them."""
    one, two = (pdfs.one_page(text) for text in ("Recibo 1", "Recibo 2"))
    documents: list[dict[str, Any]] = [
        {
            "documentoId": upload(backend, one, "enero.pdf"),
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

    told = sign_batch(appliance, people[0], made["loteId"])

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
        document = {"documentoId": upload(backend, pdfs.one_page())}
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
    """By the call, faults of its form; by the batch later, those of its documents."""
    there = {"documentoId": upload(backend, pdfs.one_page())}
    twice = {**there, "referencia": "R", "referenciaUnica": True}
    taken = {**there, "referencia": "ya", "referenciaUnica": True}
    asked(backend, people[0], [taken])
    broken = {"contenido": base64.b64encode(b"Hola").decode()}
    away = {**there, "sello": {"page": 9}}

    written = backend.client.post(
        BATCHES,
        json={
            "firmante": {"cuil": people[0].cuil, "x": 1},
            "documentos": [
                broken,
                {**there, "nombre": "../a.pdf"},
                {"documentoId": 7, "referencia": "", "y": 1},
                twice,
                {**twice, "sello": {"page": 0}},
                {**there, "sello": {"page": 0}},
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
            "documentos": [there, broken, away, broken, there],
        },
    )
    refused = prepared(backend.client, documents)

    assert (written.status_code, written.json()["field"]) == (400, "nivel")
    assert faults_of(written) == [
        ("FIELD_INVALID", "nivel"),
        ("FIELD_UNKNOWN", "firmante.x"),
        ("FIELD_UNKNOWN", "documentos[2].y"),
        ("FIELD_INVALID", "documentos[2].referencia"),
        ("FIELD_INVALID", "documentos[2].documentoId"),
        ("FIELD_INVALID", "documentos[4].sello.page"),
        ("FIELD_INVALID", "documentos[5].sello.page"),
        ("FIELD_INVALID", "vence"),
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
    assert refused["estado"] == "rechazado"
    assert (refused["solicitudes"], refused["estados"]) == ([], {})
    assert [(each["code"], each["field"]) for each in refused["errors"]] == [
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
