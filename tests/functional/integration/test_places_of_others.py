"""A signer leaves those who follow the place that is fixed for them.

Source: docs/signing.md "What a document allows".
"""

from typing import Any

import httpx
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import REQUESTS, TestBackend, sign
from tests.support.appliance.http_calls import problem
from tests.support.documents.field_pdfs import Field, with_fields
from tests.support.documents.validators import pdfsig, pyhanko_valid

FIELDS = with_fields(Field("uno"), Field("dos", rects=((100.0, 300.0, 300.0, 380.0),)))
IN_FIELD = {"campo": "dos", "fijo": True}
LOCKING = with_fields(
    Field("uno"),
    Field("dos", rects=((100.0, 300.0, 300.0, 380.0),)),
    Field(
        "tres",
        rects=((100.0, 500.0, 300.0, 580.0),),
        lock={"Action": "/Include", "Fields": ["dos"], "P": 2},
    ),
)
AT_POINT = {"page": 1, "x": 100, "y": 100, "fijo": True}


def call(
    appliance: Appliance, person: TestPerson, request: int, **given: object
) -> httpx.Response:
    """Firmar, however it is answered."""
    body = {"solicitudId": request, "password": person.signing_password, **given}
    with appliance.client(person) as client:
        return client.post("/solicitudes/firmar", json=body)


@pytest.mark.parametrize("turns", [(None, None), (1, 1)])
@pytest.mark.parametrize(
    ("pdf", "place", "wish"),
    [
        (FIELDS, IN_FIELD, {"campo": "dos"}),
        (with_fields(Field("uno")), AT_POINT, {"restriccion": "FORM_FILLING"}),
        (LOCKING, IN_FIELD, {"campo": "tres"}),
        (LOCKING, AT_POINT, {"campo": "tres"}),
    ],
)
def test_place_of_who_follows_is_not_taken(
    appliance: Appliance,
    backend: TestBackend,
    people: list[TestPerson],
    pdf: bytes,
    place: dict[str, Any],
    wish: dict[str, Any],
    turns: tuple[int | None, int | None],
) -> None:
    """Refused before anything is signed; both sign once the first one chooses else."""
    first, second = people
    told = backend.made(
        pdf,
        firmantes=[
            {"cuil": first.cuil, "turno": turns[0]},
            {"cuil": second.cuil, "turno": turns[1], "sello": place},
        ],
    )
    requests = [each["solicitudId"] for each in told["firmantes"]]

    problem(call(appliance, first, requests[0], **wish), 409, "SIGNERS_LOCKED_OUT")

    assert call(appliance, first, requests[0], campo="uno").status_code == 200
    sign(appliance, second, requests[1])
    path = f"{REQUESTS}/{told['procesoId']}/document"
    signed = backend.client.get(path).content
    # Of a field that is still empty pdfsig says that it is not signed.
    assert sum(each.valid for each in pdfsig(signed)) == 2
    assert pyhanko_valid(signed, appliance.roots)


def test_place_that_is_not_fixed_gives_way(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Who follows may choose another one."""
    first, second = people
    told = backend.made(
        FIELDS,
        firmantes=[
            {"cuil": first.cuil},
            {"cuil": second.cuil, "sello": {"campo": "dos"}},
        ],
    )
    requests = [each["solicitudId"] for each in told["firmantes"]]

    assert call(appliance, first, requests[0], campo="dos").status_code == 200
    assert call(appliance, second, requests[1], campo="uno").status_code == 200
