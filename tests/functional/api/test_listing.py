"""`GET /solicitudes`: what a signer sees of their requests."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import command, problem, sign
from tests.support.documents import pdfs


@pytest.fixture(scope="module")
def lister(appliance: Appliance) -> TestPerson:
    """Somebody whose requests are only those of this module."""
    return appliance.new_person("Lía Listado")


@pytest.fixture(scope="module")
def mine(appliance: Appliance, lister: TestPerson) -> list[int]:
    """Their requests, oldest first."""
    return [
        appliance.new_request(lister, pdfs.pages(n), f"acta {n} ñ.pdf")
        for n in range(1, 6)
    ]


@pytest.fixture(scope="module")
def reader(
    appliance: Appliance, lister: TestPerson, mine: list[int]
) -> Iterator[httpx.Client]:
    """Their client."""
    assert mine
    with appliance.client(lister) as opened:
        yield opened


@pytest.mark.parametrize("field", ["solicitudId", "documento", "estado"])
def test_list_field(reader: httpx.Client, mine: list[int], field: str) -> None:
    """Each field of the spec, of its type and with its meaning.

    Source: spec "Signature request".
    """
    elements = {each["solicitudId"]: each for each in reader.get("/solicitudes").json()}
    value = elements[mine[1]][field]

    assert type(value) is (int if field == "solicitudId" else str)
    assert (
        value
        == {
            "solicitudId": mine[1],
            "documento": "acta 2 ñ.pdf",
            "estado": "pendiente",
        }[field]
    )


def test_list_is_bare_array(reader: httpx.Client) -> None:
    """The answer is the array itself, as JSON in UTF-8."""
    answer = reader.get("/solicitudes")

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert isinstance(answer.json(), list)
    assert "ñ".encode() in answer.content


def test_list_needs_no_body(reader: httpx.Client) -> None:
    """Without a body, and with one that nobody asked for, the list is the same."""
    without = reader.get("/solicitudes")
    with_body = reader.request("GET", "/solicitudes", json={"estado": "firmada"})

    assert without.status_code == with_body.status_code == 200
    assert without.json() == with_body.json()


def test_list_shows_only_own_requests(
    appliance: Appliance,
    reader: httpx.Client,
    other_signer: TestPerson,
    mine: list[int],
) -> None:
    """Another person's request is in their list and in nobody else's."""
    theirs = appliance.new_request(other_signer, pdfs.one_page())

    with appliance.client(other_signer) as client:
        others = [each["solicitudId"] for each in client.get("/solicitudes").json()]
    own = [each["solicitudId"] for each in reader.get("/solicitudes").json()]

    assert theirs in others
    assert sorted(own) == mine
    assert not set(own) & set(others)


def test_list_is_newest_first(reader: httpx.Client, mine: list[int]) -> None:
    """The newest request comes first."""
    listed = [each["solicitudId"] for each in reader.get("/solicitudes").json()]

    assert listed == mine[::-1]


def test_list_filters_by_estado(appliance: Appliance, other_signer: TestPerson) -> None:
    """`estado` picks one state, also one that is not listed by itself."""
    request = appliance.new_request(other_signer, pdfs.one_page())
    with appliance.client(other_signer) as client:
        assert sign(client, other_signer, request).status_code == 200

        signed = client.get("/solicitudes", params={"estado": "firmada"}).json()
        pending = client.get("/solicitudes", params={"estado": "pendiente"}).json()
        listed = client.get("/solicitudes").json()
        refused = client.get("/solicitudes", params={"estado": "nada"})

    assert request in [each["solicitudId"] for each in signed]
    assert {each["estado"] for each in signed} == {"firmada"}
    assert {each["estado"] for each in pending} <= {"pendiente"}
    assert request not in [each["solicitudId"] for each in listed + pending]
    assert "firmada" in problem(refused, 400, "QUERY_INVALID")["allowed"]


def test_list_pages_only_when_limite_is_sent(
    reader: httpx.Client, mine: list[int]
) -> None:
    """All of it without `limite`; with it pages that `Link` strings together."""
    whole = reader.get("/solicitudes")
    assert len(whole.json()) == len(mine)
    assert "Link" not in whole.headers

    page = reader.get("/solicitudes", params={"limite": 2})
    sizes, seen = [len(page.json())], page.json()
    while "next" in page.links:
        page = reader.get(page.links["next"]["url"])
        sizes.append(len(page.json()))
        seen += page.json()

    assert sizes == [2, 2, 1]
    assert seen == whole.json()


@pytest.mark.parametrize(
    "query",
    [
        "limite=0",
        "limite=201",
        "limite=1e9",
        "limite=-1",
        "limite=1&limite=2",
        "limite=2&cursor=!!",
        "limite=2&cursor=czE6MA==",
        "cursor=czE6NQ==",
        "estado=pendiente'--",
        "estado=en_espera",
    ],
)
def test_list_query_refused(reader: httpx.Client, query: str) -> None:
    """A query that means nothing is refused, not guessed at."""
    members = problem(reader.get(f"/solicitudes?{query}"), 400, "QUERY_INVALID")

    assert members["field"] in {"limite", "cursor", "estado"}
    assert isinstance(members["allowed"], list)


@pytest.mark.parametrize("name", ["orden", "Estado", "limit", "x" * 500])
def test_unknown_query_parameter_is_named(reader: httpx.Client, name: str) -> None:
    """A parameter that there is not is said to be none, with those that there are."""
    answer = reader.get("/solicitudes", params={name: "id;DROP TABLE request"})

    members = problem(answer, 400, "QUERY_UNKNOWN")
    assert members["field"] == name[:64]
    assert members["allowed"] == ["estado", "limite", "cursor"]


def test_detail_tells_what_will_be_signed(
    appliance: Appliance, other_signer: TestPerson
) -> None:
    """Pages, sizes, digest and what the inspection found, in words."""
    request = appliance.new_request(other_signer, pdfs.javascript(), "con programa.pdf")

    with appliance.client(other_signer) as client:
        answer = client.get(f"/solicitudes/{request}")
        english = client.get(
            f"/solicitudes/{request}", headers={"Accept-Language": "en"}
        )

    shown = answer.json()
    assert answer.headers["ETag"] == f'"{shown["sha256"]}"'
    assert shown["documento"] == "con programa.pdf"
    assert shown["tamano"] == len(pdfs.javascript())
    assert shown["medidas"] == [{"ancho": 595, "alto": 842}]
    (finding,) = shown["avisos"]
    assert finding["codigo"] == "javascript"
    assert finding["texto"] != english.json()["avisos"][0]["texto"]


def test_request_of_others_is_as_absent(
    appliance: Appliance,
    reader: httpx.Client,
    lister: TestPerson,
    other_signer: TestPerson,
) -> None:
    """Every address of another person's request answers as for no request."""
    theirs = appliance.new_request(other_signer, pdfs.one_page())

    for wanted in (theirs, 999_999_999):
        body = command(lister, wanted)
        answers = [
            reader.get(f"/solicitudes/{wanted}"),
            reader.get(f"/solicitudes/{wanted}/original"),
            reader.get(f"/solicitudes/{wanted}/documento"),
            reader.post(f"/solicitudes/{wanted}/vista-previa", json={}),
            reader.post(f"/solicitudes/{wanted}/rechazar", json={"motivo": "no"}),
            reader.post("/solicitudes/firmar", json=body),
        ]
        for answer in answers:
            problem(answer, 404, "SOLICITUD_NOT_FOUND")
