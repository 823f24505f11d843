"""Several signers of one turn, asked by an integrator's backend.

Source: docs/integration.md "Several in one turn".
"""

import base64
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    REQUESTS,
    TestBackend,
    assert_valid,
    backend_of,
    sign,
)
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import order_crash, until
from worker.failpoints import FILE_WRITTEN, PUBLISHED

PDF = pdfs.one_page()


@pytest.fixture(scope="module")
def four(appliance: Appliance, people: list[TestPerson]) -> list[TestPerson]:
    """Four people who can sign."""
    return [*people, *(appliance.new_person(name) for name in ("Eva Gil", "Tom Rey"))]


def asked(
    backend: TestBackend, people: Sequence[TestPerson], turns: Sequence[int | None]
) -> dict[str, Any]:
    """A request that has these turns; None: as it comes."""
    signers = [
        {"cuil": person.cuil, "turno": turn}
        for person, turn in zip(people, turns, strict=True)
    ]
    return backend.made(PDF, firmantes=signers)


def call(appliance: Appliance, person: TestPerson, request: int) -> httpx.Response:
    """Firmar, however it is answered."""
    with appliance.client(person) as client:
        return client.post(
            "/solicitudes/firmar",
            json={"solicitudId": request, "password": person.signing_password},
        )


def states(told: dict[str, Any]) -> list[str]:
    """Of each signer."""
    return [each["estado"] for each in told["firmantes"]]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_sign_in_any_order(
    appliance: Appliance,
    backend: TestBackend,
    people: list[TestPerson],
    order: tuple[int, int],
) -> None:
    """The second one signs what the first one made, whoever that is."""
    told = asked(backend, people, (1, 1))
    assert states(told) == ["pendiente", "pendiente"]
    assert [each["turno"] for each in told["firmantes"]] == [1, 1]
    assert [each["orden"] for each in told["firmantes"]] == [1, 2]
    path = f"{REQUESTS}/{told['procesoId']}"

    for count, at in enumerate(order):
        request = told["firmantes"][at]["solicitudId"]
        with appliance.client(people[at]) as client:
            assert client.get(f"/solicitudes/{request}").json()["firmas"] == count
        sign(appliance, people[at], request)
        now = backend.read(told["procesoId"])
        assert now["estado"] == ("pendiente", "firmada")[count]
        # That it came as, whatever was signed meanwhile.
        assert now["documento"]["sha256"] == told["documento"]["sha256"]
        assert backend.client.get(f"{path}/original").content == PDF

    whole = backend.client.get(f"{path}/document").content
    assert_valid(appliance, whole, 2)
    after = backend.read(told["procesoId"])
    last = after["firmantes"][order[1]]["versiones"][-1]["sha256"]
    assert backend.client.get(f"{path}/document").headers["ETag"] == f'"{last}"'
    events = [(each["evento"], each.get("anterior")) for each in after["historia"]]
    assert events == [("creada", None)] * 2 + [("firmada", None)] * 2


def test_one_then_two_then_one(
    appliance: Appliance, backend: TestBackend, four: list[TestPerson]
) -> None:
    """Each turn comes once all of the one before have signed."""
    told = asked(backend, four, (None, 3, 3, None))
    assert [each["turno"] for each in told["firmantes"]] == [1, 3, 3, 4]
    requests = [each["solicitudId"] for each in told["firmantes"]]
    waits, turn = "en_espera", "pendiente"
    expected = [
        (0, [turn, waits, waits, waits]),
        (2, ["firmada", turn, turn, waits]),
        (1, ["firmada", turn, "firmada", waits]),
        (3, ["firmada", "firmada", "firmada", turn]),
    ]
    for at, before in expected:
        assert states(backend.read(told["procesoId"])) == before
        sign(appliance, four[at], requests[at])

    after = backend.read(told["procesoId"])
    assert after["estado"] == "firmada"
    turns = [
        (each["solicitudId"], each["anterior"])
        for each in after["historia"]
        if each["evento"] == "turno"
    ]
    assert turns == [
        (requests[1], requests[0]),
        (requests[2], requests[0]),
        (requests[3], requests[1]),
    ]
    created = [
        each.get("anterior") for each in after["historia"] if each["evento"] == "creada"
    ]
    assert created == [None, requests[0], requests[0], requests[2]]
    path = f"{REQUESTS}/{told['procesoId']}/document"
    assert_valid(appliance, backend.client.get(path).content, 4)


def test_both_at_the_same_moment(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """One at a time: who is told to come again comes again, and is taken."""
    for _ in range(3):
        told = asked(backend, people, (1, 1))
        requests = [each["solicitudId"] for each in told["firmantes"]]
        with ThreadPoolExecutor() as pool:
            answers = list(pool.map(call, [appliance] * 2, people, requests))

        for person, request, answer in zip(people, requests, answers, strict=True):
            if answer.status_code != 200:
                assert answer.status_code == 409, answer.text
                assert answer.json()["code"] == "IN_PROGRESS"
                assert 1 <= answer.json()["retryAfter"] <= 5
                sign(appliance, person, request)
        assert 200 in {answer.status_code for answer in answers}
        path = f"{REQUESTS}/{told['procesoId']}/document"
        assert_valid(appliance, backend.client.get(path).content, 2)


def test_document_that_was_seen_is_an_earlier_one(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """412 to who says what they saw; the document is looked at anew, and signed."""
    told = asked(backend, people, (1, 1))
    first, second = (each["solicitudId"] for each in told["firmantes"])
    sign(appliance, people[1], second)
    body = {"solicitudId": first, "password": people[0].signing_password}
    with appliance.client(people[0]) as client:
        seen = {"If-Match": f'"{told["documento"]["sha256"]}"'}
        answer = client.post("/solicitudes/firmar", json=body, headers=seen)
        assert (answer.status_code, answer.json()["code"]) == (412, "DOCUMENT_CHANGED")
        now = client.get(f"/solicitudes/{first}").json()["sha256"]
        seen = {"If-Match": f'"{now}"'}
        answer = client.post("/solicitudes/firmar", json=body, headers=seen)
    assert answer.status_code == 200, answer.text


def test_rejection_by_one_ends_it(
    appliance: Appliance, backend: TestBackend, four: list[TestPerson]
) -> None:
    """For all who have not signed; the state tells of who rejected."""
    told = asked(backend, four, (1, 1, 1, 2))
    requests = [each["solicitudId"] for each in told["firmantes"]]
    sign(appliance, four[0], requests[0])
    with appliance.client(four[2]) as client:
        client.post(f"/solicitudes/{requests[2]}/rechazar", json={"motivo": "no"})

    after = backend.read(told["procesoId"])
    assert states(after) == ["firmada", "cancelada", "rechazada", "cancelada"]
    assert after["estado"] == "rechazada"
    for state, count in (("rechazada", 1), ("cancelada", 0), ("pendiente", 0)):
        answer = backend.client.get(
            REQUESTS, params={"estado": state, "cuil": four[2].cuil}
        )
        found = [each["procesoId"] for each in answer.json()]
        assert found.count(told["procesoId"]) == count
    cancelled = backend.client.post(f"{REQUESTS}/{told['procesoId']}/cancel", json={})
    assert cancelled.json()["code"] == "STATE"


def test_cancellation_ends_the_turn(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """What was signed stays signed."""
    told = asked(backend, people, (1, 1))
    sign(appliance, people[1], told["firmantes"][1]["solicitudId"])

    after = backend.client.post(f"{REQUESTS}/{told['procesoId']}/cancel", json={})

    assert states(after.json()) == ["cancelada", "firmada"]
    assert after.json()["estado"] == "cancelada"


def test_turns_that_cannot_be(backend: TestBackend, four: list[TestPerson]) -> None:
    """Each is refused by its field; nobody signs twice."""
    for turns, field in (
        ((2, 1), "firmantes[1].turno"),
        ((0,), "firmantes[0].turno"),
        ((51,), "firmantes[0].turno"),
        ((50, None), "firmantes[1].turno"),
        (("1",), "firmantes[0].turno"),
        ((1.5,), "firmantes[0].turno"),
    ):
        signers = [
            {"cuil": person.cuil, "turno": turn}
            for person, turn in zip(four, turns, strict=False)
        ]
        answer = backend.ask(PDF, firmantes=signers)
        assert answer.status_code == 400, answer.text
        assert answer.json()["field"] == field
    twice = [{"cuil": four[0].cuil, "turno": 1}] * 2
    answer = backend.ask(PDF, firmantes=twice)
    assert (answer.status_code, answer.json()["field"]) == (400, "firmantes[1]")
    batch = {
        "firmante": {"cuil": four[0].cuil, "turno": 1},
        "documentos": [{"contenido": "JVBERi0="}],
    }
    answer = backend.client.post("/api/integration/batches", json=batch)
    assert answer.json()["code"] == "FIELD_UNKNOWN"


def test_nobody_of_a_shared_turn_certifies(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """By a look that is asked for, either; alone in the first turn they may."""
    look = {"restriccion": "FORM_FILLING"}
    for turns, code in (((1, 1), "SIGNERS_LOCKED_OUT"), ((1, 2), None)):
        signers = [
            {"cuil": people[0].cuil, "turno": turns[0], "sello": look},
            {"cuil": people[1].cuil, "turno": turns[1]},
        ]
        answer = backend.ask(PDF, firmantes=signers)
        assert answer.json().get("code") == code


def test_repeated_call_tells_turns_apart(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """Turns that are as unless given are the same call; others are not."""
    key = {"Idempotency-Key": f"turnos-{backend.code}"}

    def body(*turns: int | None) -> dict[str, Any]:
        return {
            "documento": {"contenido": base64.b64encode(PDF).decode()},
            "firmantes": [
                {"cuil": person.cuil, "turno": turn}
                for person, turn in zip(people, turns, strict=True)
            ],
        }

    first = backend.client.post(REQUESTS, json=body(None, None), headers=key)
    again = backend.client.post(REQUESTS, json=body(1, 2), headers=key)
    other = backend.client.post(REQUESTS, json=body(1, 1), headers=key)

    assert first.json()["procesoId"] == again.json()["procesoId"]
    assert other.json()["code"] == "IDEMKEY_CONFLICT"


def test_session_is_the_first_ones(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """Of those who have not signed; the others are named."""
    told = asked(backend, people, (1, 1))
    first, second = (each["solicitudId"] for each in told["firmantes"])
    sessions = "/api/integration/sessions"

    def opened(**wanted: Any) -> int:
        answer = backend.client.post(sessions, json=wanted)
        assert answer.status_code == 201, answer.text
        request: int = answer.json()["solicitudId"]
        return request

    assert opened(procesoId=told["procesoId"]) == first
    assert opened(solicitudId=second) == second
    sign(appliance, people[0], first)
    assert opened(procesoId=told["procesoId"]) == second


@pytest.mark.parametrize("point", [FILE_WRITTEN, PUBLISHED])
def test_killed_worker_loses_nothing(sqlite_appliance: Appliance, point: str) -> None:
    """Dead before or after the publication: the other one signs what was made."""
    people = [sqlite_appliance.new_person() for _ in range(3)]
    with backend_of(sqlite_appliance) as backend:
        told = asked(backend, people, (1, 1, 2))
        requests = [each["solicitudId"] for each in told["firmantes"]]
        for at in (1, 0):
            order = order_crash(sqlite_appliance, point)
            sign(sqlite_appliance, people[at], requests[at])
            assert not order.exists()
        until(
            lambda: (
                states(backend.read(told["procesoId"]))
                == ["firmada", "firmada", "pendiente"]
            )
        )
        sign(sqlite_appliance, people[2], requests[2])
        path = f"{REQUESTS}/{told['procesoId']}/document"
        assert_valid(sqlite_appliance, backend.client.get(path).content, 3)
