"""Where each signature of a backend's request goes, over HTTP."""

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import REQUESTS, TestBackend, assert_valid, sign
from tests.support.documents import pdfs
from tests.support.documents.field_pdfs import Field, with_fields
from tests.support.documents.validators import (
    signature_boxes,
)

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
    free = backend.ask(
        PDF,
        firmantes=[
            {"cuil": people[0].cuil, "sello": {"restriccion": "FORM_FILLING"}},
            {"cuil": people[1].cuil, "sello": {"visible": False}},
        ],
    )
    assert free.status_code == 201, free.text


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
