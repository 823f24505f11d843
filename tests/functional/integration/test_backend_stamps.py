"""Where each signature of a backend's request goes, over HTTP."""

import base64
import io
from typing import Any

import httpx
import pikepdf
import pytest
from sqlalchemy import update

from appliance.bootstrap import ServiceRegistry
from appliance.database.tables import signature_request
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import REQUESTS, TestBackend, assert_valid, sign
from tests.support.documents import pdfs
from tests.support.documents.field_pdfs import Field, with_fields
from tests.support.documents.validators import (
    signature_boxes,
)
from tests.support.patience import CALL_S

PDF = pdfs.one_page()
NOBODY = "20-00000000-1"


def test_look_and_place_are_the_requests(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Each signer's is where it was asked for, and no other where that is fixed."""
    stamps = (
        {"ancla": {"texto": "Page 1", "dy": 10}, "fijo": True},
        {"page": "ultima", "x": 300, "y": 500, "fontColor": "BLUE"},
    )
    named = [
        {"cuil": person.cuil, "sello": stamp}
        for person, stamp in zip(people, stamps, strict=True)
    ]

    told = backend.made(pdfs.pages(2), firmantes=named)
    numbers = [signer["solicitudId"] for signer in told["firmantes"]]
    with appliance.client(people[0]) as client:
        moved = client.post(
            "/solicitudes/firmar",
            json={
                "solicitudId": numbers[0],
                "password": people[0].signing_password,
                "x": 1,
                "y": 1,
            },
        )
    for person, number in zip(people, numbers, strict=True):
        sign(appliance, person, number)

    first, second = (signer["sello"] for signer in told["firmantes"])
    assert (first["page"], first["fijo"]) == (1, True)
    assert (second["page"], second["x"], second["y"]) == (2, 300, 500)
    assert (moved.status_code, moved.json()["code"]) == (409, "PRESET_FIXED")
    signed = backend.client.get(f"{REQUESTS}/{told['procesoId']}/document").content
    assert_valid(appliance, signed, 2)
    boxes = signature_boxes(signed)
    assert [page for page, *_ in boxes] == [1, 2]


def test_places_that_shut_each_other_out_are_refused(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """Two in one field, or a new stamp after a certification: nobody signs in vain."""
    fields = with_fields(Field("Firma", ((60, 60, 260, 140),)))
    cases = (
        (fields, {"campo": "Firma"}, {"campo": "Firma"}, "SIGNATURE_FIELD_FILLED"),
        (PDF, {"restriccion": "FORM_FILLING"}, {"x": 10, "y": 10}, "PDF_CERTIFIED"),
    )

    for pdf, first, second, code in cases:
        named = [
            {"cuil": people[0].cuil, "sello": first, "email": None},
            {"cuil": people[1].cuil, "sello": second},
        ]
        answer = backend.ask(pdf, firmantes=named)
        assert answer.json()["code"] == code, answer.text
        assert answer.json()["field"].startswith("firmantes[1].sello")
    fixed = backend.ask(
        PDF,
        firmantes=[
            {"cuil": people[0].cuil, "sello": {"restriccion": "FORM_FILLING"}},
            {"cuil": people[1].cuil, "sello": {"x": 10, "y": 10, "fijo": True}},
        ],
    )
    assert (fixed.status_code, fixed.json()["code"]) == (409, "SIGNERS_LOCKED_OUT")
    assert fixed.json()["field"] == "firmantes[0].sello.restriccion"
    free = backend.ask(
        PDF,
        firmantes=[
            {"cuil": people[0].cuil, "sello": {"restriccion": "FORM_FILLING"}},
            {"cuil": people[1].cuil, "sello": {"visible": False}},
        ],
    )
    assert free.status_code == 201, free.text


HIDDEN = {
    "visible": False,
    "motivo": "Acepto deber 900.000 pesos",
    "lugar": "Montevideo",
    "restriccion": "NO_CHANGES_ALLOWED",
    "fijo": True,
}
"""Terms of a signature that no page shows."""
CLOSED = "no se puede cambiar nada del documento, y nadie más lo puede firmar"
FORMS = "solo se pueden completar sus formularios, y otros lo pueden firmar"
LOCKED = "se bloquean campos del formulario, que ya nadie puede completar"
UNSEEN = "Tu marca: no se va a ver en ninguna página"


def asked_of(backend: TestBackend, person: TestPerson, stamp: dict[str, Any]) -> int:
    """The number of a request with such a stamp."""
    told = backend.made(PDF, firmantes=[{"cuil": person.cuil, "sello": stamp}])
    return int(told["firmantes"][0]["solicitudId"])


def said_in(answer: httpx.Response) -> dict[str, object]:
    """What the signature that was made says, and whether it certifies."""
    pdf = httpx.get(answer.json()["documentoFirmado"], timeout=CALL_S).content
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        signature = opened.Root.AcroForm.Fields[0].V
        return {
            "Reason": str(signature.get("/Reason")),
            "Location": str(signature.get("/Location")),
            "certifies": "/Perms" in opened.Root,
        }


def test_signer_is_told_what_no_page_shows(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Reason, place, what is permitted afterwards, no mark: before the password."""
    request = asked_of(backend, people[0], HIDDEN)
    path = f"/solicitudes/{request}"

    with appliance.client(people[0]) as client:
        told = client.get(path).json()["sello"]
        english = client.get(path, headers={"Accept-Language": "en"}).json()["sello"]
        preview = client.post(f"{path}/vista-previa", json={}).json()
    signed = sign(appliance, people[0], request)

    assert told == {
        **HIDDEN,
        "campo": None,
        "texto": [
            "Motivo de la firma: Acepto deber 900.000 pesos",
            "Lugar de la firma: Montevideo",
            f"Después de tu firma: {CLOSED}",
            UNSEEN,
        ],
    }
    assert english["texto"][2] == (
        "After your signature: nothing in the document may be changed, and nobody else "
        "may sign it"
    )
    assert preview["sello"] is None
    assert preview["firma"] == {k: v for k, v in told.items() if k != "fijo"}
    assert said_in(signed) == {
        "Reason": HIDDEN["motivo"],
        "Location": HIDDEN["lugar"],
        "certifies": True,
    }


def test_preview_tells_the_terms_of_that_very_call(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """The request's, and what the call has in their place; a plain one has no words."""
    fields = with_fields(
        Field("Firma", ((60, 60, 260, 140),)),
        Field("Sin lugar", ((0, 0, 0, 0),)),
        Field("Cierra", ((60, 200, 260, 280),), lock={"Action": "/All", "P": 1}),
    )
    named = [{"cuil": people[0].cuil, "sello": {"motivo": "Alta"}}]
    told = backend.made(fields, firmantes=named)
    path = f"/solicitudes/{told['firmantes'][0]['solicitudId']}/vista-previa"
    calls: dict[str, tuple[dict[str, Any], list[str]]] = {
        "the request's": ({}, ["Motivo de la firma: Alta"]),
        "another reason": ({"motivo": "Baja"}, ["Motivo de la firma: Baja"]),
        "a field": (
            {"campo": "Firma"},
            ["Motivo de la firma: Alta", "Campo del documento: Firma"],
        ),
        "a field that locks": (
            {"campo": "Cierra"},
            [
                "Motivo de la firma: Alta",
                f"Después de tu firma: {CLOSED}",
                "Campo del documento: Cierra",
                f"Al firmar ese campo: {LOCKED}",
            ],
        ),
        "a field without a place": (
            {"campo": "Sin lugar", "restriccion": "FORM_FILLING"},
            [
                "Motivo de la firma: Alta",
                f"Después de tu firma: {FORMS}",
                UNSEEN,
                "Campo del documento: Sin lugar",
            ],
        ),
    }

    with appliance.client(people[0]) as client:
        said = {
            name: client.post(path, json=call).json()["firma"]
            for name, (call, _) in calls.items()
        }
        plain = client.get(f"/solicitudes/{appliance.new_request(people[0], PDF)}")

    assert {name: each["texto"] for name, each in said.items()} == {
        name: texts for name, (_, texts) in calls.items()
    }
    assert said["a field without a place"]["visible"] is False
    assert plain.json()["sello"] == {
        "motivo": None,
        "lugar": None,
        "restriccion": "NO_VALUE",
        "visible": True,
        "campo": None,
        "texto": [],
        "fijo": False,
    }


def test_reason_of_before_is_signed_as_the_stamp_shows_it(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """A request that came before such texts were refused can still be signed."""
    request = asked_of(backend, people[0], {"motivo": "Visto"})
    hidden = {"motivo": "N\u0338o acepto\u200b 合", "lugar": "Salta\U000e0061"}

    async def change(front: ServiceRegistry) -> None:
        async with front.core.store.write() as transaction:
            await transaction.connection.execute(
                update(signature_request)
                .where(signature_request.c.id == request)
                .values(preset=hidden)
            )

    appliance.do(change)
    with appliance.client(people[0]) as client:
        told = client.get(f"/solicitudes/{request}").json()["sello"]
        preview = client.post(f"/solicitudes/{request}/vista-previa", json={}).json()
    signed = sign(appliance, people[0], request)

    assert (told["motivo"], told["lugar"]) == ("No acepto ?", "Salta")
    assert preview["sello"]["texto"][3:5] == ["Motivo: No acepto ?", "Lugar: Salta"]
    assert said_in(signed) == {
        "Reason": "No acepto ?",
        "Location": "Salta",
        "certifies": False,
    }


@pytest.mark.parametrize("text", ["我同意", "No\u200b acepto", "N\u0338o acepto"])
def test_text_that_no_stamp_shows_is_refused_wherever_it_comes_in(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson], text: str
) -> None:
    """By whoever asks, for one and for many, and by the signer."""
    request = appliance.new_request(people[0], PDF)
    given = {"motivo": text, "visible": False}
    signer = {"cuil": people[0].cuil, "sello": given}
    document = {"contenido": base64.b64encode(PDF).decode(), "sello": given}
    batch = {"firmante": {"cuil": people[0].cuil}, "documentos": [document]}
    command = {"password": people[0].signing_password, **given}

    with appliance.client(people[0]) as client:
        answers = {
            "request": backend.ask(PDF, firmantes=[signer]),
            "batch": backend.client.post("/api/integration/batches", json=batch),
            "preview": client.post(f"/solicitudes/{request}/vista-previa", json=given),
            "firmar": client.post(
                "/solicitudes/firmar", json={"solicitudId": request, **command}
            ),
            "lote": client.post(
                "/solicitudes/firmar/lote", json={"solicitudIds": [request], **command}
            ),
        }

    for name, answer in answers.items():
        told = answer.json()
        assert (answer.status_code, told["code"]) == (400, "FIELD_INVALID"), name
        assert told["field"].endswith("motivo"), name
        assert "El sello no puede mostrar" in told["detail"], name


@pytest.mark.parametrize(
    ("stamp", "status", "field"),
    [
        ({"page": 3}, 422, "firmantes[0].sello.page"),
        ({"x": 1}, 400, "firmantes[0].sello.y"),
        ({"ancla": {"texto": "no está"}}, 422, "firmantes[0].sello.ancla"),
        ({"ancla": {}}, 400, "firmantes[0].sello.ancla.texto"),
        ({"campo": "no"}, 422, "firmantes[0].sello.campo"),
        ({"x": 5000, "y": 1}, 422, "firmantes[0].sello"),
        ({"otro": 1}, 400, "firmantes[0].sello.otro"),
        (1, 400, "firmantes[0].sello"),
    ],
)
def test_impossible_place_is_refused_at_once(
    backend: TestBackend,
    people: list[TestPerson],
    stamp: object,
    status: int,
    field: str,
) -> None:
    """With the signer and the field that it is about."""
    named = [{"cuil": people[0].cuil, "sello": stamp}]

    answer = backend.ask(PDF, firmantes=named)

    assert answer.status_code == status, answer.text
    assert answer.json()["field"].startswith(field)
