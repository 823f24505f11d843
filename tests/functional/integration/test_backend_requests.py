"""Signature requests of an integrator's backend, over HTTP."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from appliance.bootstrap import ServiceRegistry
from appliance.domain.integrators.api_keys import ApiKeyScope
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    REQUESTS,
    TestBackend,
    assert_valid,
    backend_of,
    sign,
)
from tests.support.documents import pdfs
from tests.support.patience import CALL_S

PDF = pdfs.one_page()
NOBODY = "20-00000000-1"


def _events(told: dict[str, Any]) -> list[str]:
    return [event["evento"] for event in told["historia"]]


def test_request_is_made_signed_and_fetched(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """A backend asks, the person signs, the backend has the document and its story."""
    answer = backend.ask(
        PDF,
        people[0],
        documento={"nombre": "Recibo de sueldo.pdf"},
        referencia="EXP-2026-17",
        metadatos={"legajo": "4711"},
        mensaje="Firmá antes del viernes.\nGracias.",
        idioma="es",
        nivel="B-LT",
    )

    assert answer.status_code == 201, answer.text
    told = answer.json()
    address = f"{appliance.settings.web.web_url}{REQUESTS}/{told['procesoId']}"
    assert answer.headers["Location"] == address
    assert told["estado"] == "pendiente"
    assert told["referencia"] == "EXP-2026-17"
    assert told["metadatos"] == {"legajo": "4711"}
    assert told["mensaje"] == "Firmá antes del viernes.\nGracias."
    assert told["documento"]["nombre"] == "Recibo de sueldo.pdf"
    assert told["documento"]["paginas"] == 1
    [signer] = told["firmantes"]
    # Who can be asked for is not told by name to whoever asks.
    assert signer["nombre"] is None
    assert _events(told) == ["creada"]
    early = backend.client.get(f"{REQUESTS}/{told['procesoId']}/document")
    assert early.json()["code"] == "NOT_SIGNED_YET"

    signed = sign(appliance, people[0], signer["solicitudId"]).json()

    after = backend.read(told["procesoId"])
    assert after["estado"] == "firmada"
    assert after["firmantes"][0]["nivel"] == "B-LT"
    assert _events(after) == ["creada", "firmada"]
    assert after["historia"][1]["sha256"] == signed["sha256"]
    fetched = backend.client.get(f"{REQUESTS}/{told['procesoId']}/document")
    assert fetched.headers["ETag"] == f'"{signed["sha256"]}"'
    assert fetched.content.startswith(PDF)
    assert_valid(appliance, fetched.content, 1)
    original = backend.client.get(f"{REQUESTS}/{told['procesoId']}/original")
    assert original.content == PDF


def test_document_in_base64(backend: TestBackend, people: list[TestPerson]) -> None:
    """The document may stand in the JSON; so may an e-mail address or an id."""
    for named in ({"email": people[0].email}, {"personaId": people[0].id}):
        answer = backend.client.post(
            REQUESTS,
            json={
                "documento": {"contenido": base64.b64encode(PDF).decode()},
                "firmantes": [named],
            },
        )

        assert answer.status_code == 201, answer.text
        told = answer.json()
        assert told["documento"]["nombre"] == "documento.pdf"
        # Who was not named by CUIL is told by none, nor by name, until they signed.
        assert told["firmantes"][0]["personaId"] == people[0].id
        assert told["firmantes"][0]["cuil"] is None
        assert told["firmantes"][0]["nombre"] is None


def test_document_that_was_uploaded(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Its id names it, in several requests, with its name or another; not elsewhere."""
    uploaded = backend.client.post(
        "/api/integration/documents",
        params={"nombre": "Señal.pdf"},
        content=PDF,
        headers={"Content-Type": "application/pdf"},
    ).json()["documentoId"]
    body = {"firmantes": [{"cuil": people[0].cuil}]}
    document = {"documentoId": uploaded}

    first = backend.client.post(REQUESTS, json={**body, "documento": document})
    named = {**document, "nombre": "Otra.pdf"}
    second = backend.client.post(REQUESTS, json={**body, "documento": named})
    sign(appliance, people[0], first.json()["firmantes"][0]["solicitudId"])

    assert first.json()["documento"]["nombre"] == "Señal.pdf"
    assert second.json()["documento"]["nombre"] == "Otra.pdf"
    signed = backend.client.get(f"{REQUESTS}/{first.json()['procesoId']}/document")
    assert signed.content.startswith(PDF)
    both = {**document, "contenido": base64.b64encode(PDF).decode()}
    wrong = backend.client.post(REQUESTS, json={**body, "documento": both})
    assert wrong.json()["field"] == "documento.contenido"
    with backend_of(appliance) as other:
        absent = other.client.post(REQUESTS, json={**body, "documento": document})
    assert absent.json()["code"] == "DOCUMENT_NOT_FOUND"
    backend.client.delete(f"/api/integration/documents/{uploaded}")
    gone = backend.client.post(REQUESTS, json={**body, "documento": document})
    assert gone.json()["code"] == "DOCUMENT_NOT_FOUND"


def test_several_sign_in_turn(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """The second one's turn comes once the first has signed; both are in the story."""
    told = backend.made(PDF, *people)
    first, second = told["firmantes"]
    assert (first["estado"], second["estado"]) == ("pendiente", "en_espera")

    sign(appliance, people[0], first["solicitudId"])
    between = backend.read(told["procesoId"])
    partial = between["firmantes"][0]["versiones"][-1]["sha256"]
    sign(appliance, people[1], second["solicitudId"])

    assert between["estado"] == "pendiente"
    after = backend.read(told["procesoId"])
    assert after["estado"] == "firmada"
    assert _events(after) == ["creada", "creada", "firmada", "turno", "firmada"]
    path = f"{REQUESTS}/{told['procesoId']}/document"
    whole = backend.client.get(path).content
    part = backend.client.get(path, params={"sha256": partial}).content
    assert whole.startswith(part)
    assert_valid(appliance, whole, 2)
    gone = backend.client.get(path, params={"sha256": "0" * 64})
    assert gone.json()["code"] == "NOT_FOUND"


def test_somebody_elses_is_absent(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Another integrator's request is not there, whatever is asked of it."""
    told = backend.made(PDF, people[0])
    path = f"{REQUESTS}/{told['procesoId']}"
    with backend_of(appliance) as other:
        for answer in (
            other.client.get(path),
            other.client.patch(path, json={"mensaje": "x"}),
            other.client.post(f"{path}/cancel", json={}),
            other.client.get(f"{path}/original"),
            other.client.get(f"{path}/document"),
            other.client.get(f"{REQUESTS}/x"),
        ):
            assert answer.status_code == 404
            assert answer.json()["code"] == "SOLICITUD_NOT_FOUND"
        assert other.client.get(REQUESTS).json() == []


def test_list_has_filters_and_pages(
    appliance: Appliance, people: list[TestPerson]
) -> None:
    """By state, reference, signer and time; newest first, page by page."""
    with backend_of(appliance) as backend:
        made = [
            backend.made(PDF, people[n % 2], referencia=f"r{n // 2}") for n in range(5)
        ]
        sign(appliance, people[0], made[0]["firmantes"][0]["solicitudId"])
        ids = [each["procesoId"] for each in reversed(made)]

        def listed(**params: Any) -> list[str]:
            answer = backend.client.get(REQUESTS, params=params)
            assert answer.status_code == 200, answer.text
            return [each["procesoId"] for each in answer.json()]

        assert listed() == ids
        assert listed(estado="firmada") == ids[-1:]
        assert listed(estado="pendiente") == ids[:-1]
        assert listed(referencia="r1") == [ids[1], ids[2]]
        assert listed(cuil=people[1].cuil) == [ids[1], ids[3]]
        assert listed(cuil=people[1].cuil, estado="firmada") == []
        later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        assert listed(desde=later) == []
        assert listed(hasta=later) == ids
        pages, url = [], f"{REQUESTS}?limite=2"
        while url:
            answer = backend.client.get(url)
            pages.append([each["procesoId"] for each in answer.json()])
            url = answer.links.get("next", {}).get("url", "")
        assert pages == [ids[:2], ids[2:4], ids[4:]]
        for name, value in (("estado", "x"), ("limite", "0"), ("desde", "ayer")):
            refused = backend.client.get(REQUESTS, params={name: value})
            assert refused.json()["field"] == name
        unknown = backend.client.get(REQUESTS, params={"x": "1"})
        assert unknown.json()["code"] == "QUERY_UNKNOWN"


def test_change_and_cancel(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Words and time may change until it is over; then it is taken back for good."""
    told = backend.made(PDF, *people, referencia="a", metadatos={"k": "v"})
    path = f"{REQUESTS}/{told['procesoId']}"
    until = (datetime.now(UTC) + timedelta(days=3)).replace(microsecond=0)

    changed = backend.client.patch(
        path,
        json={"vence": until.isoformat(), "mensaje": "Nuevo", "referencia": None},
    ).json()

    assert datetime.fromisoformat(changed["vence"]) == until
    assert (changed["mensaje"], changed["referencia"]) == ("Nuevo", None)
    assert changed["metadatos"] == {"k": "v"}
    assert changed["historia"][-1]["campos"] == ["vence", "mensaje", "referencia"]
    ended = backend.client.post(f"{path}/cancel", json={"motivo": "Era otro"})
    assert ended.status_code == 200, ended.text
    states = [signer["estado"] for signer in ended.json()["firmantes"]]
    assert states == ["cancelada", "cancelada"]
    assert ended.json()["firmantes"][0]["motivo"] == "Era otro"
    again = backend.client.post(f"{path}/cancel", json={})
    assert again.json()["code"] == "STATE"
    late = backend.client.patch(path, json={"mensaje": "x"})
    assert late.json()["code"] == "STATE"
    kept = backend.client.patch(path, json={"metadatos": {"k": "w"}}).json()
    assert kept["metadatos"] == {"k": "w"}
    with appliance.client(people[0]) as signer:
        refused = signer.post(
            "/solicitudes/firmar",
            json={
                "solicitudId": told["firmantes"][0]["solicitudId"],
                "password": people[0].signing_password,
            },
        )
    assert refused.json()["code"] == "STATE"


def test_reference_is_unique_where_wished(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """A second request with a reference of one that has it for itself is refused."""
    first = backend.made(PDF, people[0], referencia="U-1", referenciaUnica=True)
    free = backend.made(PDF, people[0], referencia="U-1")

    again = backend.ask(PDF, people[0], referencia="U-1", referenciaUnica=True)
    moved = backend.client.patch(
        f"{REQUESTS}/{free['procesoId']}", json={"referenciaUnica": True}
    )

    assert first["referenciaUnica"] is True
    for refused in (again, moved):
        assert refused.status_code == 409
        assert refused.json()["code"] == "REFERENCE_IN_USE"
        assert refused.json()["procesoId"] == first["procesoId"]


def test_repeat_with_a_key_makes_nothing_new(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """Ten equal calls at once with one Idempotency-Key are one request."""
    body = {
        "documento": {"contenido": base64.b64encode(PDF).decode()},
        "firmantes": [{"cuil": people[0].cuil}],
        "referencia": "once",
    }

    def call(reference: str = "once") -> httpx.Response:
        return httpx.post(
            f"{backend.client.base_url}{REQUESTS}".replace("//api", "/api"),
            headers={"X-Api-Key": backend.key.secret, "Idempotency-Key": "k-1"},
            json={**body, "referencia": reference},
            timeout=CALL_S,
        )

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: call(), range(10)))

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["procesoId"] for answer in answers}) == 1
    replayed = [a.headers.get("Idempotent-Replayed") for a in answers]
    assert replayed.count(None) == 1
    other = call("twice")
    assert other.json()["code"] == "IDEMKEY_CONFLICT"
    found = backend.client.get(REQUESTS, params={"referencia": "once"}).json()
    assert len(found) == 1


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"firmantes": []}, "firmantes"),
        ({"firmantes": [1]}, "firmantes"),
        ({"firmantes": {}}, "firmantes"),
        ({"firmantes": [{}]}, "firmantes[0]"),
        ({"firmantes": [{"cuil": "20-1"}]}, "firmantes[0].cuil"),
        ({"firmantes": [{"cuil": 1}]}, "firmantes[0].cuil"),
        ({"firmantes": [{"nombre": "x"}]}, "firmantes[0].nombre"),
        ({"firmantes": [{"personaId": "\u0001"}]}, "firmantes[0].personaId"),
        ({"firmantes": [{"personaId": "nadie"}]}, "firmantes[0]"),
        ({"vence": "2020-01-01T00:00:00Z"}, "vence"),
        ({"vence": "mañana"}, "vence"),
        ({"vence": "2030-01-01T00:00:00"}, "vence"),
        ({"vence": "2027-W48-5T00:00:00Z"}, "vence"),
        ({"vence": "20271231T000000Z"}, "vence"),
        ({"vence": 5}, "vence"),
        ({"referencia": "\u200b"}, "referencia"),
        ({"mensaje": "a\u202eb"}, "mensaje"),
        ({"referencia": ""}, "referencia"),
        ({"referencia": "x" * 129}, "referencia"),
        ({"referenciaUnica": True}, "referencia"),
        ({"metadatos": {"a": 1}}, "metadatos"),
        ({"metadatos": {"": "x"}}, "metadatos"),
        ({"metadatos": {str(n): "x" for n in range(21)}}, "metadatos"),
        ({"idioma": "fr"}, "idioma"),
        ({"mensaje": "\u202e\u0007"}, "mensaje"),
        ({"nivel": "B-X"}, "nivel"),
        ({"documento": {"contenido": "AAAA"}}, "documento.contenido"),
        ({"documento": {"x": 1}}, "documento.x"),
        ({"otro": 1}, "otro"),
    ],
)
def test_bad_order_names_the_field(
    backend: TestBackend,
    people: list[TestPerson],
    fields: dict[str, Any],
    field: str,
) -> None:
    """What cannot be understood is refused with the field's name."""
    answer = backend.ask(PDF, people[0], **fields)

    assert answer.status_code in {400, 404}, answer.text
    assert answer.json()["field"] == field


def test_bad_document_leaves_nothing(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """A document that cannot be signed is refused, and no request is made."""
    before = backend.client.get(REQUESTS).json()

    for bad, code in (
        (b"not a PDF", "PDF_MALFORMED"),
        (b"", "DOCUMENT_EMPTY"),
    ):
        answer = backend.ask(bad, people[0])
        assert answer.json()["code"] == code
    unnamed = backend.ask(PDF, people[0], documento={"nombre": "../a.pdf"})
    assert unnamed.json()["code"] == "FILENAME"
    missing = backend.client.post(
        REQUESTS, json={"firmantes": [{"cuil": people[0].cuil}]}
    )
    assert missing.json()["field"] == "documento.contenido"
    assert backend.client.get(REQUESTS).json() == before


def test_key_needs_its_scope(appliance: Appliance, people: list[TestPerson]) -> None:
    """A key that may read makes no request; one for sessions may not even read."""
    with backend_of(appliance, ApiKeyScope.REQUESTS_READ) as reader:
        refused = reader.ask(PDF, people[0])
        assert refused.json()["code"] == "API_KEY_SCOPE"
        assert "requests:write" in refused.json()["detail"]
        assert reader.client.get(REQUESTS).status_code == 200
    with backend_of(appliance, ApiKeyScope.SESSIONS_WRITE) as opener:
        assert opener.client.get(REQUESTS).json()["code"] == "API_KEY_SCOPE"
    nobody = httpx.get(f"{appliance.settings.web.web_url}{REQUESTS}", timeout=CALL_S)
    assert nobody.json()["code"] == "API_KEY_MISSING"


def test_history_agrees_with_the_audit(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Each event of a request stands in the audit too, at the same time."""
    told = backend.made(PDF, *people)
    numbers = [signer["solicitudId"] for signer in told["firmantes"]]
    with appliance.client(people[0]) as signer:
        assert signer.get(f"/solicitudes/{numbers[0]}/original").status_code == 200
    sign(appliance, people[0], numbers[0])
    with appliance.client(people[1]) as signer:
        signer.post(f"/solicitudes/{numbers[1]}/rechazar", json={"motivo": "No"})

    async def audited(front: ServiceRegistry) -> list[tuple[str, str, int]]:
        async with front.core.store.read() as transaction:
            rows = [
                row
                for number in numbers
                for row in await transaction.audit.of_request(number)
            ]
        at = "%Y-%m-%dT%H:%M:%SZ"
        return sorted(
            (row.at.astimezone(UTC).strftime(at), row.event.event.value, number)
            for row in rows
            if (number := row.event.request) is not None
            and row.event.event.value.startswith("request.")
        )

    after = backend.read(told["procesoId"])
    assert after["estado"] == "rechazada"
    words = {
        "creada": "request.created",
        "vista": "request.viewed",
        "firmada": "request.signed",
        "turno": "request.turn",
        "rechazada": "request.rejected",
    }
    assert appliance.do(audited) == sorted(
        (event["cuando"], words[event["evento"]], event["solicitudId"])
        for event in after["historia"]
    )
    assert json.dumps(after)


def test_body_of_many_brackets_is_refused_unread(backend: TestBackend) -> None:
    """A document in Base64 may be large; what takes JSON its time may not be much."""
    brackets = b'{"x":[' + b"[]," * 100_000 + b"[]]}"

    answer = backend.client.post(
        REQUESTS, content=brackets, headers={"Content-Type": "application/json"}
    )

    assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")


def test_changes_at_once_are_all_there(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """Each of four fields that are written at once stays; nothing new is no change."""
    made = backend.made(PDF, people[0])
    path = f"{REQUESTS}/{made['procesoId']}"
    changes = (
        {"mensaje": "uno"},
        {"referencia": "dos"},
        {"metadatos": {"tres": "3"}},
        {"idioma": "en"},
    )

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda each: _patch(backend, path, each), changes))
    again = _patch(backend, path, changes[0])

    assert {answer.status_code for answer in answers} == {200}
    told = again.json()
    for each in changes:
        assert all(told[name] == value for name, value in each.items())
    assert _events(told) == ["creada", *["modificada"] * 4]
    unnamed = _patch(backend, path, {"referencia": None})
    assert unnamed.json()["referencia"] is None
    refused = _patch(backend, path, {"referenciaUnica": True})
    assert refused.json()["field"] == "referencia"


def _patch(backend: TestBackend, path: str, change: dict[str, Any]) -> httpx.Response:
    return httpx.patch(
        f"{str(backend.client.base_url).rstrip('/')}{path}",
        headers={"X-Api-Key": backend.key.secret},
        json=change,
        timeout=CALL_S,
    )


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("loteId", "zz", "como lo dio una respuesta"),
        ("cuil", "20-26756539-4", "XX-XXXXXXXX-X"),
        ("cuil", "nobody", "XX-XXXXXXXX-X"),
    ],
)
def test_wrong_filter_is_told_in_spanish(
    backend: TestBackend, name: str, value: str, allowed: str
) -> None:
    """Every parameter by the same code, with what it may be."""
    told = backend.client.get(REQUESTS, params={name: value}).json()

    assert (told["code"], told["field"]) == ("QUERY_INVALID", name)
    assert told["allowed"] == [allowed]


def test_no_cuil_is_found_out_by_an_address(
    appliance: Appliance, people: list[TestPerson]
) -> None:
    """Who was named by e-mail is not found by CUIL until they have signed."""
    with backend_of(appliance) as backend:
        made = backend.made(PDF, firmantes=[{"email": people[0].email}])
        cuil = {"cuil": people[0].cuil}

        before = backend.client.get(REQUESTS, params=cuil).json()
        sign(appliance, people[0], made["firmantes"][0]["solicitudId"])
        after = backend.client.get(REQUESTS, params=cuil).json()

    assert before == []
    assert [each["procesoId"] for each in after] == [made["procesoId"]]


def test_nobody_is_told_of_without_a_document(backend: TestBackend) -> None:
    """Whether somebody is known is told to who has something to be signed."""
    nobody = {"firmantes": [{"email": "nadie@demo.example"}]}

    assert backend.ask(b"x", **nobody).json()["code"] == "PDF_MALFORMED"
    assert backend.ask(PDF, **nobody).json()["code"] == "PERSON_NOT_FOUND"


def _faults(answer: httpx.Response) -> list[tuple[str, str | None]]:
    """Code and field of each, in order; the first is what is answered."""
    told = answer.json()
    each = [(one["code"], one.get("field")) for one in told["errors"]]
    assert each[0] == (told["code"], told.get("field"))
    return each


def test_all_that_is_wrong_is_told_at_once(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """How it is written, what stands there, document and people; then all places."""
    backend.made(PDF, people[0], referencia="R-1", referenciaUnica=True)
    cuils = [{"cuil": each.cuil} for each in people[:2]]
    unknown = [{"email": f"{name}@demo.example"} for name in ("nadie", "ninguno")]
    stamps = ({"page": 99}, {"ancla": {"texto": "No such text"}})

    asked = backend.ask(
        PDF,
        vence="2001-01-01T00:00:00Z",
        idioma="fr",
        documento={"nombre": "a.txt"},
        referencia="R-1",
        referenciaUnica=True,
        firmantes=[cuils[0], {"x": 1}, *unknown, cuils[0]],
    )
    damaged = backend.ask(b"x", documento={"nombre": "a.txt"}, firmantes=unknown)
    places = backend.ask(
        PDF,
        firmantes=[
            {**cuil, "sello": stamp} for cuil, stamp in zip(cuils, stamps, strict=True)
        ],
    )

    assert _faults(asked) == [
        ("FIELD_INVALID", "idioma"),
        ("FIELD_UNKNOWN", "firmantes[1].x"),
        ("FIELD_INVALID", "vence"),
        ("FILENAME", "documento.nombre"),
        ("REFERENCE_IN_USE", "referencia"),
        ("PERSON_NOT_FOUND", "firmantes[2]"),
        ("PERSON_NOT_FOUND", "firmantes[3]"),
        ("FIELD_INVALID", "firmantes[4]"),
    ]
    assert _faults(damaged) == [
        ("FILENAME", "documento.nombre"),
        ("PDF_MALFORMED", None),
    ]
    assert _faults(places) == [
        ("PAGE_OUT_OF_RANGE", "firmantes[0].sello.page"),
        ("STAMP_ANCHOR_NOT_FOUND", "firmantes[1].sello.ancla"),
    ]


def test_cancel_needs_no_body(backend: TestBackend, people: list[TestPerson]) -> None:
    """Nor a reason; null in what is asked for is as if it were not there."""
    made = backend.made(PDF, people[0], mensaje=None, vence=None)

    answer = backend.client.post(f"{REQUESTS}/{made['procesoId']}/cancel")

    assert answer.status_code == 200, answer.text
    assert answer.json()["estado"] == "cancelada"
