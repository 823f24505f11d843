"""People as an integrator's backend asks about them, and answers for them."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from appliance.bootstrap import ServiceRegistry
from appliance.identity.registration_officers import RegistrationOfficers
from appliance.keys.count_clearings import CountClearings
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backends import TestBackend, backend_of, let_vouch
from tests.support.patience import CALL_S

SIGNERS = "/api/integration/signers"
IDENTITY = {
    "metodo": "DNI a la vista, en la sucursal",
    "responsable": "Marta Gil, legajo 12",
    "cuando": "2026-05-20T14:00:00-03:00",
}


@pytest.fixture(scope="module")
def backend(appliance: Appliance) -> Iterator[TestBackend]:
    """A backend that may vouch."""
    with backend_of(appliance) as made:
        yield let_vouch(made)


def answered(backend: TestBackend, cuil: str, **fields: Any) -> httpx.Response:
    """The answer to a word for somebody."""
    body = {
        "nombre": "Rosa Sánchez",
        "email": f"p{cuil}@demo.example",
        "identidad": IDENTITY,
        **fields,
    }
    return backend.client.put(f"{SIGNERS}/{cuil}", json=body)


def test_person_is_invited_and_their_state_told(
    appliance: Appliance, backend: TestBackend
) -> None:
    """Unknown, invited with a link that works once it is opened, then the link anew."""
    cuil = appliance.next_cuil()
    before = backend.client.get(f"{SIGNERS}/{cuil}").json()

    made = answered(backend, cuil)

    assert before["estado"] == "desconocida"
    assert (before["puedeFirmar"], before["motivo"]["codigo"]) == (
        False,
        "PERSON_NOT_FOUND",
    )
    assert made.status_code == 201, made.text
    told = made.json()
    assert told["estado"] == "invitada"
    assert told["motivo"]["codigo"] == "SIGNER_PENDING_APPROVAL"
    assert re.fullmatch(r".+/alta/[\w-]{43}", told["enlace"])
    assert "Rosa Sánchez" in httpx.get(told["enlace"], timeout=CALL_S).text
    again = answered(backend, cuil)
    assert (again.status_code, again.json()["enlace"]) == (200, None)
    renewed = answered(backend, cuil, nuevoEnlace=True).json()
    assert renewed["enlace"] not in {None, told["enlace"]}
    assert "Rosa Sánchez" in httpx.get(renewed["enlace"], timeout=CALL_S).text
    assert "Rosa Sánchez" not in httpx.get(told["enlace"], timeout=CALL_S).text


def test_who_can_sign_is_told_so(appliance: Appliance, backend: TestBackend) -> None:
    """With key and certificate; and why not, once they are locked or disabled."""
    person = appliance.new_person()

    assert backend.client.get(f"{SIGNERS}/{person.cuil}").json() == {
        "cuil": f"{person.cuil[:2]}-{person.cuil[2:10]}-{person.cuil[10:]}",
        "estado": "activa",
        "puedeFirmar": True,
        "motivo": None,
    }

    async def disable(front: ServiceRegistry) -> None:
        officers = RegistrationOfficers(
            front.core.store, front.clock, CountClearings(front.lookup)
        )
        await officers.disable("operator", person.id)

    appliance.do(disable)
    told = backend.client.get(f"{SIGNERS}/{person.cuil}").json()
    assert (told["estado"], told["puedeFirmar"]) == ("deshabilitada", False)


def test_link_is_for_who_invited_alone(
    appliance: Appliance, backend: TestBackend
) -> None:
    """Another integrator learns the state and gets no link, whatever it says."""
    cuil = appliance.next_cuil()
    first = answered(backend, cuil).json()
    with backend_of(appliance) as made:
        other = let_vouch(made)
        seen = answered(other, cuil)
        wanted = answered(other, cuil, nuevoEnlace=True)

    assert (seen.status_code, seen.json()["enlace"]) == (200, None)
    assert wanted.json()["code"] == "PERSON_NOT_FOUND"
    assert "Rosa Sánchez" in httpx.get(first["enlace"], timeout=CALL_S).text
    enrolled = appliance.new_person()
    assert answered(backend, enrolled.cuil, nuevoEnlace=True).json()["code"] == (
        "PERSON_STATE"
    )


def test_integrator_without_the_right_vouches_for_nobody(appliance: Appliance) -> None:
    """Whatever scopes its key has."""
    cuil = appliance.next_cuil()
    with backend_of(appliance) as backend:
        refused = answered(backend, cuil)
        state = backend.client.get(f"{SIGNERS}/{cuil}").json()["estado"]

    assert (refused.status_code, refused.json()["code"]) == (403, "VOUCH_REFUSED")
    assert state == "desconocida"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"nombre": ""}, "nombre"),
        ({"nombre": "123"}, "nombre"),
        ({"email": "x"}, "email"),
        ({"identidad": {}}, "identidad.metodo"),
        ({"identidad": 1}, "identidad"),
        ({"identidad": {**IDENTITY, "cuando": "2999-01-01T00:00:00Z"}}, "cuando"),
        ({"identidad": {**IDENTITY, "x": 1}}, "identidad.x"),
        ({"idioma": "pt"}, "idioma"),
    ],
)
def test_bad_word_names_the_field(
    appliance: Appliance, backend: TestBackend, fields: dict[str, Any], field: str
) -> None:
    """And nobody is invited by it."""
    cuil = appliance.next_cuil()

    answer = answered(backend, cuil, **fields)

    assert answer.status_code == 400, answer.text
    assert answer.json()["field"].endswith(field)
    state = backend.client.get(f"{SIGNERS}/{cuil}").json()["estado"]
    assert state == "desconocida"


def test_cuil_of_the_address_is_checked(backend: TestBackend) -> None:
    """What is none is refused as a field."""
    for path in ("20-1", "20-26756539-4", "x" * 300):
        answer = backend.client.get(f"{SIGNERS}/{path}")
        assert (answer.status_code, answer.json()["field"]) == (400, "cuil")
