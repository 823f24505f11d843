"""A signer signs the document that they last fetched, by REST, lote and frame.

Source: finding K12; decisions "seeing before signing".
"""

from typing import Any

import httpx
import pytest

from tests.functional.integration.test_batch_sessions import Page, opened
from tests.functional.integration.test_shared_turns import asked
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import LOTE, TestBackend, sign
from tests.support.appliance.http_calls import problem

PLACE = {"corner": "bottomLeft", "page": 1}


def firmar(client: httpx.Client, person: TestPerson, request: int) -> httpx.Response:
    """Sign, and say nothing of the document that is meant."""
    body = {"solicitudId": request, "password": person.signing_password}
    return client.post("/solicitudes/firmar", json=body)


def two_of_a_turn(
    backend: TestBackend, people: list[TestPerson]
) -> tuple[dict[str, Any], int, int]:
    """A document that both may sign now; the request of each."""
    told = asked(backend, people, (1, 1))
    first, second = (each["solicitudId"] for each in told["firmantes"])
    return told, first, second


def fetch(client: httpx.Client, request: int, how: str) -> None:
    """Fetch by one of the ways that there are."""
    answer = {
        "list": lambda: client.get("/solicitudes"),
        "detail": lambda: client.get(f"/solicitudes/{request}"),
        "original": lambda: client.get(f"/solicitudes/{request}/original"),
        "preview": lambda: client.post(f"/solicitudes/{request}/vista-previa", json={}),
    }[how]()
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("how", ["list", "detail", "original", "preview"])
def test_earlier_document_is_not_signed(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson], how: str
) -> None:
    """412 with what to do; the same call passes once a list was fetched again."""
    _, first, second = two_of_a_turn(backend, people)
    with appliance.client(people[0]) as client:
        fetch(client, first, how)
        sign(appliance, people[1], second)

        told = problem(firmar(client, people[0], first), 412, "DOCUMENT_CHANGED")
        problem(firmar(client, people[0], first), 412, "DOCUMENT_CHANGED")
        fetch(client, first, "list")
        answer = firmar(client, people[0], first)

    assert told["detail"] == (
        "Otra persona firmó el documento desde la última vez que lo viste. "
        "Volvé a mirarlo y después firmá."
    )
    assert answer.status_code == 200, answer.text


def test_document_in_the_call_says_which(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Whoever sends what is there now has it."""
    _, first, second = two_of_a_turn(backend, people)
    with appliance.client(people[0]) as client:
        earlier = client.get(f"/solicitudes/{first}/original").content
        sign(appliance, people[1], second)
        options = f'{{"solicitudId":{first},"password":"{people[0].signing_password}"}}'

        def sent(pdf: bytes) -> httpx.Response:
            return client.post(
                "/solicitudes/firmar",
                files={
                    "file": ("c.pdf", pdf, "application/pdf"),
                    "options": (None, options, "application/json"),
                },
            )

        problem(sent(earlier), 422, "DOCUMENT_MISMATCH")
        now = appliance.client(people[0])
        with now:
            current = now.get(f"/solicitudes/{first}/original").content
        assert sent(current).status_code == 200


def test_lote_refuses_the_changed_one_alone(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Each document goes by itself; the whole is repeated after a new list."""
    _, first, second = two_of_a_turn(backend, people)
    _, other, _ = two_of_a_turn(backend, people)
    body = {
        "solicitudIds": [first, other],
        "password": people[0].signing_password,
    }
    with appliance.client(people[0]) as client:
        fetch(client, first, "list")
        sign(appliance, people[1], second)
        refused, signed = client.post(LOTE, json=body).json()["resultados"]
        fetch(client, first, "list")
        again = client.post(LOTE, json=body).json()

    assert (refused["code"], refused["category"]) == ("DOCUMENT_CHANGED", "fix_request")
    assert signed["status"] == "success"
    assert again["status"] == "success"


def frame_of(
    appliance: Appliance, backend: TestBackend, person: TestPerson, request: int
) -> Page:
    """The frame's page of somebody whose code was right."""
    page = Page(appliance, opened(backend, solicitudId=request).json())
    page.start(person)
    appliance.refresh(person)
    page.prove(person)
    return page


def test_frame_signs_what_is_on_the_screen(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """And what was fetched in the frame counts for a call elsewhere."""
    _, first, second = two_of_a_turn(backend, people)
    page = frame_of(appliance, backend, people[0], first)
    before = page.get("state").json()["document"]["sha256"]
    assert page.get("document").status_code == 200
    page.call("seen", sha256=before)
    sign(appliance, people[1], second)
    password = people[0].signing_password

    stale = page.ask("sign", **PLACE, sha256=before, password=password)
    problem(stale, 412, "DOCUMENT_CHANGED")
    problem(page.ask("seen", sha256=before), 412, "DOCUMENT_CHANGED")
    with appliance.client(people[0]) as client:
        problem(firmar(client, people[0], first), 412, "DOCUMENT_CHANGED")
    now = page.get("state").json()["document"]["sha256"]
    page.call("seen", sha256=now)
    page.call("sign", **PLACE, sha256=now, password=password)

    assert page.settled()["state"] == "signed"


@pytest.mark.parametrize("how", ["document", "page/1", "requests"])
def test_what_the_frame_fetched_counts_elsewhere(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson], how: str
) -> None:
    """A page that was closed before its signer went on: file, picture or list."""
    _, first, second = two_of_a_turn(backend, people)
    page = frame_of(appliance, backend, people[0], first)
    assert page.get(how).status_code == 200
    sign(appliance, people[1], second)

    with appliance.client(people[0]) as client:
        problem(firmar(client, people[0], first), 412, "DOCUMENT_CHANGED")
