"""The REST API's routes of batches: what is read, and how it is told."""

import re
from dataclasses import replace

import pytest

from appliance.admission.fair_queue import FairLimits
from appliance.admission.signing_calls import SigningCalls
from appliance.domain.errors import ApplianceError, ErrorCode, PageOutOfRangeError
from appliance.domain.ids import PersonId, RequestId
from appliance.domain.vocab import FontStyle
from tests.support.installation.api import ApiServices, Caller

LOTE = "/solicitudes/firmar/lote"
PASSWORD = "una clave de firma"
BATCH: dict[str, object] = {"solicitudIds": [8, 7, 9], "password": PASSWORD}


@pytest.fixture
async def person(api_services: ApiServices) -> PersonId:
    """A signer with requests."""
    who, _ = await api_services.add_person()
    await api_services.add_requests(who, 9)
    return who


async def test_batch_told_in_order_with_links_that_open(
    api_services: ApiServices, caller: Caller
) -> None:
    """Signed ones as firmar tells them, the bad one by code and in words."""
    refusal = PageOutOfRangeError(page=2, pages=1)
    api_services.batch_signing.refused[RequestId(7)] = refusal

    response = await caller.post(LOTE, BATCH, Accept_Language="es")

    answer = await response.get_json()
    assert response.status_code == 200
    first, bad, last = answer.pop("resultados")
    assert answer == {
        "status": "parcial",
        "total": 3,
        "firmadas": 2,
        "fallidas": 1,
        "enProceso": 0,
    }
    assert bad == {
        "status": "error",
        "solicitudId": 7,
        "code": "PAGE_OUT_OF_RANGE",
        "category": "fix_request",
        "detail": "No hay página 2; la última es la 1.",
        "field": "page",
        "allowed": ["1..1"],
    }
    for number, signed in ((8, first), (9, last)):
        assert signed["status"] == "success"
        assert signed["solicitudId"] == number
        clave = re.search(r"clave=(\S{43})$", signed["documentoFirmado"])
        assert clave is not None
        assert await api_services.links.open(clave[1], RequestId(number))
    assert "Location" not in response.headers


async def test_batch_of_one_takes_a_place_as_a_single_one_does(
    api_services: ApiServices, caller: Caller, person: PersonId
) -> None:
    """Where there is none, it is told when; one of several needs none."""
    del person
    limits = FairLimits(places=1, per_share=1, per_party=1, waiting=0)
    calls = SigningCalls(limits)
    caller = caller.over(replace(api_services, signing_calls=calls))
    one = {**BATCH, "solicitudIds": [8]}
    async with calls.place(RequestId(7)):
        refused = await caller.post(LOTE, one)
        several = await caller.post(LOTE, BATCH)
    served = await caller.post(LOTE, one)

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
    assert (several.status_code, served.status_code) == (200, 200)


async def test_batch_going_on_says_where_to_look(
    api_services: ApiServices, caller: Caller
) -> None:
    """202, and the same at that address until all of it is over."""
    api_services.batch_signing.open.add(RequestId(7))

    response = await caller.post(LOTE, BATCH)
    answer = await response.get_json()
    where = response.headers["Location"]
    going = await caller.get(where)
    api_services.batch_signing.open.clear()
    over = await (await caller.get(where)).get_json()

    assert response.status_code == 202
    assert where == f"/solicitudes/lotes/{answer['loteId']}"
    assert int(response.headers["Retry-After"]) > 0
    assert (answer["status"], answer["firmadas"], answer["enProceso"]) == (
        "en_proceso",
        2,
        1,
    )
    assert answer["resultados"][1] == {"status": "en_proceso", "solicitudId": 7}
    # Whoever looks again and again leaves no links behind.
    assert all("clave=" not in str(each) for each in answer["resultados"])
    assert await going.get_json() == answer
    assert going.status_code == 200
    assert int(going.headers["Retry-After"]) > 0
    assert over["status"] == "success"
    assert all("clave=" in each["documentoFirmado"] for each in over["resultados"])


async def test_whole_batch_in_a_word(api_services: ApiServices, caller: Caller) -> None:
    """All signed, or none."""
    words = []
    for refused in ((), (7, 8, 9)):
        problem = ApplianceError(ErrorCode.STATE, params={"estado": "rechazada"})
        api_services.batch_signing.refused = {
            RequestId(each): problem for each in refused
        }
        words.append((await (await caller.post(LOTE, BATCH)).get_json())["status"])

    assert words == ["success", "error"]


async def test_batch_hands_the_command_on(
    api_services: ApiServices, caller: Caller
) -> None:
    """All fields of firmar, once for all of them."""
    body = {**BATCH, "page": 2, "fontStyle": "BOLD"}

    await caller.post(LOTE, body, Idempotency_Key="clave-1")

    (batch,) = api_services.batch_signing.batches
    assert batch.requests == (8, 7, 9)
    assert (batch.given.params.page, batch.given.params.font_style) == (
        2,
        FontStyle.BOLD,
    )
    assert batch.password == PASSWORD.encode()
    assert batch.idempotency_key == "clave-1"
    assert PASSWORD not in repr(batch)


async def test_whole_batch_is_named_in_their_place(
    api_services: ApiServices, caller: Caller
) -> None:
    """By the id that an integrator's batch has."""
    lote = "0196f1aa-1111-7222-8333-444455556666"

    await caller.post(LOTE, {"loteId": lote, "password": PASSWORD, "page": 2})

    (batch,) = api_services.batch_signing.batches
    assert (batch.whole, batch.requests) == (lote, ())
    assert batch.given.params.page == 2


async def test_what_can_be_no_batch_is_not_there(caller: Caller) -> None:
    """As one that somebody else has."""
    response = await caller.post(LOTE, {"loteId": "x", "password": PASSWORD})

    assert response.status_code == 404
    assert (await response.get_json())["code"] == "LOTE_NOT_FOUND"


NO_IDS: list[object] = [
    None,
    7,
    "7",
    {},
    [],
    [7.0],
    ["7"],
    [True],
    [None],
    [[7]],
    [0],
    [-1],
    [2**53],
    [10**30],
    list(range(1, 202)),
]
BAD: list[tuple[object, str]] = [
    ([], "BODY_NOT_OBJECT"),
    ({"password": PASSWORD}, "FIELD_MISSING"),
    *(({**BATCH, "solicitudIds": value}, "FIELD_INVALID") for value in NO_IDS),
    ({**BATCH, "solicitudId": 7}, "FIELD_UNKNOWN"),
    ({**BATCH, "page": 0}, "FIELD_INVALID"),
    ({**BATCH, "loteId": "x"}, "FIELD_INVALID"),
    ({"loteId": 7, "password": PASSWORD}, "FIELD_INVALID"),
    ({"loteId": None, "password": PASSWORD}, "FIELD_INVALID"),
    ({"loteId": "x"}, "FIELD_MISSING"),
    ({"loteId": "x", "password": PASSWORD, "solicitudId": 7}, "FIELD_UNKNOWN"),
    ({"solicitudIds": [7]}, "FIELD_MISSING"),
]


@pytest.mark.parametrize(("body", "code"), BAD, ids=lambda value: str(value)[:40])
async def test_batch_that_cannot_be_read_is_refused(
    api_services: ApiServices, caller: Caller, body: object, code: str
) -> None:
    """400, and nothing is begun."""
    response = await caller.post(LOTE, body)

    assert response.status_code == 400
    assert (await response.get_json())["code"] == code
    assert api_services.batch_signing.batches == []


@pytest.mark.parametrize("tag", ['"00"', "*", "x"])
async def test_batch_takes_no_condition_on_one_document(
    caller: Caller, tag: str
) -> None:
    """If-Match can only mean one of them."""
    response = await caller.post(LOTE, BATCH, If_Match=tag)

    told = await response.get_json()
    assert (told["code"], told["field"]) == ("BAD_HEADER", "If-Match")
    assert told["detail"] == "Acá no se admite el encabezado If-Match."


async def test_batch_needs_young_factor(
    api_services: ApiServices, person: PersonId, caller: Caller
) -> None:
    """As one signature does."""
    caller.headers = await api_services.bearer(person, age_s=28_800)

    response = await caller.post(LOTE, BATCH)

    assert response.status_code == 403
    assert (await response.get_json())["code"] == "STEP_UP"


@pytest.mark.parametrize("lote", ["7", "0" * 32, "0" * 31 + "G", "a" * 500])
async def test_batch_that_is_not_there(caller: Caller, lote: str) -> None:
    """Whatever stands in the address."""
    response = await caller.get(f"/solicitudes/lotes/{lote}")

    assert response.status_code == 404
    assert (await response.get_json())["code"] == "LOTE_NOT_FOUND"
