"""Many documents in one multipart body, over HTTP: each part becomes its document.

Source: docs/integration.md "Ask for many at once".
"""

import hashlib
import json
from typing import Any

import pytest

from tests.support.appliance.appliance import TestPerson
from tests.support.appliance.backends import TestBackend, prepared, ready_batch
from tests.support.documents import pdfs

PATH = "/api/integration/batches"
ONE, TWO, THREE = (pdfs.one_page(f"Recibo {n}") for n in range(3))
Parts = list[tuple[str, tuple[str | None, bytes, str]]]


def part(name: str, pdf: bytes, file_name: str | None = None) -> Parts:
    """A document."""
    return [(name, (file_name, pdf, "application/pdf"))]


def options(
    person: TestPerson, documents: list[dict[str, Any]], **fields: Any
) -> Parts:
    """What is asked for."""
    body = {"firmante": {"cuil": person.cuil}, "documentos": documents, **fields}
    return [("options", (None, json.dumps(body).encode(), "application/json"))]


@pytest.mark.parametrize("is_first", [True, False], ids=["options first", "last"])
def test_each_document_names_its_part(
    backend: TestBackend, people: list[TestPerson], *, is_first: bool
) -> None:
    """In whatever order they come, beside documents that came otherwise."""
    documents = [
        {"archivo": "dos", "referencia": "segundo"},
        {"archivo": "uno", "nombre": "otro.pdf"},
        {"archivo": "dos"},
    ]
    files = [*part("uno", ONE, "uno.pdf"), *part("dos", TWO, "dos.pdf")]
    told = options(people[0], documents)
    body = [*told, *files] if is_first else [*files, *told]
    key = {"Idempotency-Key": f"partes-{is_first}"}

    answer = backend.client.post(PATH, files=body, headers=key)
    again = backend.client.post(PATH, files=body, headers=key)
    other = backend.client.post(
        PATH, files=[*told, *part("dos", ONE), *part("uno", TWO)], headers=key
    )

    members = ready_batch(backend.client, answer)["solicitudes"]
    assert [each["documento"] for each in members] == [
        {"nombre": "dos.pdf", "sha256": hashlib.sha256(TWO).hexdigest()},
        {"nombre": "otro.pdf", "sha256": hashlib.sha256(ONE).hexdigest()},
        {"nombre": "dos.pdf", "sha256": hashlib.sha256(TWO).hexdigest()},
    ]
    assert [each["referencia"] for each in members] == ["segundo", None, None]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json()["loteId"] == answer.json()["loteId"]
    assert other.json()["code"] == "IDEMKEY_CONFLICT"
    original = f"/api/integration/requests/{members[1]['procesoId']}/original"
    assert backend.client.get(original).content == ONE


def test_parts_are_taken_in_order_where_none_is_named(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """Those that came otherwise are left out of it."""
    upload = backend.client.post(
        "/api/integration/documents", files={"file": ("a.pdf", THREE)}
    ).json()
    documents = [
        {"referencia": "a"},
        {"documentoId": upload["documentoId"]},
        {"referencia": "b"},
    ]

    answer = backend.client.post(
        PATH, files=[*part("b", TWO), *options(people[0], documents), *part("a", ONE)]
    )

    members = ready_batch(backend.client, answer)["solicitudes"]
    found = [each["documento"]["sha256"] for each in members]
    assert found == [hashlib.sha256(pdf).hexdigest() for pdf in (TWO, THREE, ONE)]
    assert [each["documento"]["nombre"] for each in members] == [
        "documento.pdf",
        "a.pdf",
        "documento.pdf",
    ]


NAMED = [{"archivo": "uno"}, {"archivo": "dos"}]
WRONG: list[tuple[list[dict[str, Any]], Parts, str, dict[str, Any]]] = [
    (
        NAMED,
        part("uno", ONE),
        "FIELD_MISSING",
        {"field": "documentos[1].archivo", "part": "dos"},
    ),
    ([{}, {}], part("uno", ONE), "FIELD_MISSING", {"field": "documentos[1].contenido"}),
    (
        NAMED,
        [*part("uno", ONE), *part("tres", TWO), *part("dos", TWO)],
        "FIELD_UNKNOWN",
        {"field": "tres"},
    ),
    ([{}], [*part("uno", ONE), *part("dos", TWO)], "FIELD_UNKNOWN", {"field": "dos"}),
    (
        [{"archivo": "uno"}, {}],
        [*part("uno", ONE), *part("dos", TWO)],
        "FIELD_MISSING",
        {"field": "documentos[1].contenido"},
    ),
    (
        NAMED,
        [*part("uno", ONE), *part("dos", TWO), *part("uno", TWO)],
        "FIELD_INVALID",
        {"field": "uno"},
    ),
    (
        NAMED,
        [*part("uno", ONE), *part("dos", b"")],
        "DOCUMENT_EMPTY",
        {"field": "dos"},
    ),
    (
        [{"archivo": "uno"}],
        part("uno", ONE, "uno.doc"),
        "FILENAME",
        {"field": "documentos[0].nombre", "part": "uno"},
    ),
    (
        [{"archivo": "uno", "documentoId": "x"}],
        part("uno", ONE),
        "FIELD_INVALID",
        {"field": "documentos[0].documentoId"},
    ),
    ([{"archivo": "uno"}], part("x" * 65, ONE), "FIELD_INVALID", {"field": "x" * 64}),
]


@pytest.mark.parametrize(
    ("documents", "files", "code", "told"), WRONG, ids=lambda value: str(value)[:40]
)
@pytest.mark.parametrize("is_first", [True, False], ids=["options first", "last"])
def test_what_is_wrong_names_the_part(
    backend: TestBackend,
    people: list[TestPerson],
    documents: list[dict[str, Any]],
    files: Parts,
    code: str,
    told: dict[str, Any],
    *,
    is_first: bool,
) -> None:
    """And nothing is made."""
    before = backend.client.get(PATH).json()
    asked = options(people[0], documents)

    answer = backend.client.post(
        PATH, files=[*asked, *files] if is_first else [*files, *asked]
    )

    assert answer.json()["code"] == code
    assert told.items() <= answer.json().items()
    assert backend.client.get(PATH).json() == before


def test_documents_need_their_description(backend: TestBackend) -> None:
    """Without it, and in another form of body."""
    bare = backend.client.post(PATH, files=part("uno", ONE))
    plain = backend.client.post(
        PATH, content=ONE, headers={"Content-Type": "application/pdf"}
    )
    in_json = backend.client.post(
        PATH,
        json={"firmante": {"cuil": "20267565393"}, "documentos": [{"archivo": "a"}]},
    )

    assert (bare.json()["code"], bare.json()["field"]) == ("FIELD_MISSING", "options")
    assert plain.json()["allowed"] == ["multipart/form-data", "application/json"]
    assert (in_json.json()["code"], in_json.json()["part"]) == ("FIELD_MISSING", "a")


@pytest.mark.parametrize(
    ("documents", "files", "field", "name"),
    [
        (
            NAMED,
            [*part("uno", ONE), *part("dos", b"Hola")],
            "documentos[1].archivo",
            "dos",
        ),
        ([{}], part("uno", b"Hola"), "documentos[0].archivo", "uno"),
    ],
)
def test_document_that_is_at_fault_names_its_part(
    backend: TestBackend,
    people: list[TestPerson],
    documents: list[dict[str, Any]],
    files: Parts,
    field: str,
    name: str,
) -> None:
    """In the batch that is refused for it."""
    answer = backend.client.post(PATH, files=[*options(people[0], documents), *files])

    told = prepared(backend.client, answer)

    assert told["estado"] == "rechazado"
    (fault,) = told["errors"]
    assert (fault["code"], fault["field"], fault["part"]) == (
        "PDF_MALFORMED",
        field,
        name,
    )
