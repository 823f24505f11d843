"""`GET /solicitudes` and its detail: what a person is told of their requests."""

import base64

import pytest

from appliance.domain.ids import PersonId
from tests.support.factories.fakes import (
    PDF,
    SHA256,
    SIGNED_PDF,
    SIGNED_SHA256,
    request_view,
)
from tests.support.installation.api import BASE_URL, ApiServices, Caller, code


async def test_list_is_bare_array_of_what_waits(caller: Caller) -> None:
    """What is pending or in progress, newest first, with the spec's fields."""
    response = await caller.get("/solicitudes")

    elements = await response.get_json()
    assert response.headers["Content-Type"] == "application/json"
    assert [element["solicitudId"] for element in elements] == [8, 7]
    assert elements[1] == {
        "solicitudId": 7,
        "documento": "Señal «uno».pdf",
        "estado": "pendiente",
        "paginas": 2,
        "tamano": len(PDF),
        "sha256": SHA256,
        "creada": "2026-05-25T12:00:00Z",
        "vence": None,
        "integrador": "Demo",
        "loteId": None,
    }
    assert "Link" not in response.headers


async def test_list_of_one_state(caller: Caller) -> None:
    """`estado` asks for one state."""
    response = await caller.get("/solicitudes?estado=firmada")

    elements = await response.get_json()
    assert [element["solicitudId"] for element in elements] == [9]


async def test_list_paged_by_link(
    api_services: ApiServices, person: PersonId, caller: Caller
) -> None:
    """Following rel=next visits every request once, newest first."""
    api_services.requests.views = [
        request_view(number, person) for number in range(1, 8)
    ]
    path, seen = "/solicitudes?limite=3&estado=pendiente", []
    while path:
        response = await caller.get(path)
        seen.append([e["solicitudId"] for e in await response.get_json()])
        link = response.headers.get("Link", "")
        assert not link or link.endswith('>; rel="next"')
        path = link.partition(">")[0].removeprefix(f"<{BASE_URL}")

    assert seen == [[7, 6, 5], [4, 3, 2], [1]]


async def test_list_page_that_just_fits_has_no_next(caller: Caller) -> None:
    """A page that holds the rest is the last."""
    response = await caller.get("/solicitudes?limite=2")

    assert "Link" not in response.headers


CURSOR = base64.urlsafe_b64encode(b"s1:7").decode()


@pytest.mark.parametrize(
    "query",
    [
        "limite=0",
        "limite=201",
        "limite=1000000000",
        "limite=-1",
        "limite=1.0",
        "limite=",
        "limite=%D9%A1",
        "limite=5&limite=6",
        "limite=" + "9" * 5000,
        "estado=PENDIENTE",
        "estado=en_espera",
        "estado=",
        f"cursor={CURSOR}",
        "limite=5&cursor=x",
        "limite=5&cursor=%C3%A9",
        "limite=5&cursor=czE6MA==",
        "limite=5&cursor=czE6OTk5OTk5OTk5OTk5OTk5OQ==",
    ],
)
async def test_list_query_refused(caller: Caller, query: str) -> None:
    """Every bad query is a 400 that names the parameter."""
    response = await caller.get(f"/solicitudes?{query}")

    members = await code(response, 400)
    assert members["code"] == "QUERY_INVALID"
    assert members["allowed"]


async def test_detail_tells_pages_and_findings(caller: Caller) -> None:
    """The detail has what a signer needs before signing, and an ETag."""
    response = await caller.get("/solicitudes/7", **{"Accept-Language": "en"})

    members = await response.get_json()
    assert response.headers["ETag"] == f'"{SHA256}"'
    assert members["medidas"] == [
        {"ancho": 595.28, "alto": 841.89},
        {"ancho": 841.89, "alto": 595.28},
    ]
    assert members["avisos"] == [
        {"codigo": "javascript", "texto": "The document contains JavaScript."}
    ]
    assert (members["motivo"], members["firmas"], members["certificacion"]) == (
        None,
        0,
        None,
    )


async def test_detail_tells_level_and_versions_once_signed(caller: Caller) -> None:
    """Oldest first, and the level of the last; nothing of either before."""
    pending = await (await caller.get("/solicitudes/7")).get_json()
    signed = await (await caller.get("/solicitudes/9")).get_json()

    assert (pending["nivel"], pending["versiones"]) == (None, [])
    assert signed["nivel"] == "B-LT"
    assert [each["version"] for each in signed["versiones"]] == [1, 2]
    assert signed["versiones"][0] == {
        "version": 1,
        "nivel": "B-B",
        "sha256": SIGNED_SHA256,
        "tamano": len(SIGNED_PDF),
        "creada": "2026-05-25T12:00:00Z",
    }


ABSENT = ["6", "70", "0", "007", "9007199254740992", "9" * 5000]


@pytest.mark.parametrize("number", ABSENT)
@pytest.mark.parametrize("rest", ["", "/original", "/documento"])
async def test_request_of_others_is_absent(
    caller: Caller, number: str, rest: str
) -> None:
    """Somebody else's request is told like one that does not exist."""
    response = await caller.get(f"/solicitudes/{number}{rest}")

    assert (await code(response, 404))["code"] == "SOLICITUD_NOT_FOUND"
