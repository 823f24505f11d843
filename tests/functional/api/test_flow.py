"""The flow of the spec, from sign-in to a verified download."""

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import httpx
import pytest

from appliance.domain.clock import SystemClock
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import problem, sign, state_of
from tests.support.documents import pdfs
from tests.support.documents.long_term_validators import lt_failures
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.faults.fault_injection import held
from tests.support.patience import CALL_S


def test_flow_login_to_verified_download(
    appliance: Appliance, signer: TestPerson
) -> None:
    """Password, code, list, sign, download, verify: as the spec tells it.

    Source: spec "What the service does", 6.
    """
    request = appliance.new_request(signer, pdfs.one_page())
    with appliance.client() as client:
        challenge = client.post(
            "/auth/login",
            json={"usuario": signer.cuil, "password": signer.login_password},
        ).json()
        token = client.post(
            "/auth/otp",
            json={
                "loginToken": challenge["loginToken"],
                "codigo": signer.totp.now(),
            },
        ).json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        listed = client.get("/solicitudes").json()
        assert request in [entry["solicitudId"] for entry in listed]
        answer = client.post(
            "/solicitudes/firmar",
            json={"solicitudId": request, "password": signer.signing_password},
        )
        assert answer.status_code == 200, answer.text
        signed = client.get(answer.json()["documentoFirmado"]).content

    (verdict,) = pdfsig(signed)
    assert verdict.valid
    # A trial signs B-LT: what its validation needs stands in the file.
    assert answer.json()["nivel"] == "B-LT"
    assert lt_failures(signed, appliance.roots[0], SystemClock().now()) == []
    assert pyhanko_valid(signed, appliance.roots)


def test_links_start_with_base_url(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """Every address that the service gives out is under {base_url}.

    Source: spec "What the service does", address placeholders.
    """
    for _ in range(2):
        request = appliance.new_request(signer, pdfs.one_page())
    page = client.get("/solicitudes", params={"limite": 1})
    signed = sign(client, signer, request).json()

    base = f"{appliance.base_url}/solicitudes"
    assert page.links["next"]["url"].startswith(f"{base}?")
    assert signed["documentoFirmado"].startswith(f"{base}/{request}/documento?clave=")


def _en_proceso(appliance: Appliance, person: TestPerson, client: httpx.Client) -> str:
    """The state while the workers hold still."""
    request = appliance.new_request(person, pdfs.one_page())
    with ThreadPoolExecutor(1) as pool:
        with held(appliance) as workers:
            assert workers
            call = pool.submit(sign, client, person, request)
            seen = _wait_for(client, request, "en_proceso")
            listed = client.get("/solicitudes").json()
        assert call.result().status_code == 200
    assert request in [each["solicitudId"] for each in listed]
    return seen


def _firmada(appliance: Appliance, person: TestPerson, client: httpx.Client) -> str:
    request = appliance.new_request(person, pdfs.one_page())
    assert sign(client, person, request).status_code == 200
    return state_of(client, request)


def _rechazada(appliance: Appliance, person: TestPerson, client: httpx.Client) -> str:
    request = appliance.new_request(person, pdfs.one_page())
    reject(client, request)
    return state_of(client, request)


def _vencida(appliance: Appliance, person: TestPerson, client: httpx.Client) -> str:
    """The state once its time is over; until the sweep it cannot be signed either."""
    request = appliance.new_request(person, pdfs.one_page())
    appliance.let_lapse(request)
    problem(sign(client, person, request), 409, "STATE")
    return _wait_for(client, request, "vencida")


STATES = {
    "en_proceso": _en_proceso,
    "firmada": _firmada,
    "rechazada": _rechazada,
    "vencida": _vencida,
}


def _wait_for(client: httpx.Client, request: int, state: str) -> str:
    """Wait until a request is in a state; the last one seen."""
    deadline = time.monotonic() + 60
    while (seen := state_of(client, request)) != state and time.monotonic() < deadline:
        time.sleep(0.05)
    return seen


def reject(client: httpx.Client, request: int) -> httpx.Response:
    """Reject a request."""
    return client.post(f"/solicitudes/{request}/rechazar", json={"motivo": "No es mío"})


@pytest.mark.parametrize("state", [*STATES])
def test_estado_is_told(
    appliance: Appliance, signer: TestPerson, client: httpx.Client, state: str
) -> None:
    """Each state that a signer's request can be in here is told by its word.

    Source: decisions "estados".
    """
    assert STATES[state](appliance, signer, client) == state


def test_reject_moves_pendiente_to_rechazada(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """With the signer's reason; it leaves the list."""
    request = appliance.new_request(signer, pdfs.one_page())
    assert state_of(client, request) == "pendiente"

    answer = reject(client, request)

    assert answer.status_code == 200
    assert (answer.json()["estado"], answer.json()["motivo"]) == (
        "rechazada",
        "No es mío",
    )
    listed = [each["solicitudId"] for each in client.get("/solicitudes").json()]
    assert request not in listed


@pytest.mark.parametrize("motivo", [None, "", "  ", 7, "x" * 501, "a\nb", "\x00"])
def test_reject_without_a_reason_refused(
    appliance: Appliance,
    signer: TestPerson,
    client: httpx.Client,
    motivo: str | int | None,
) -> None:
    """A reason is 1 to 500 characters without controls."""
    request = appliance.new_request(signer, pdfs.one_page())
    body = {} if motivo is None else {"motivo": motivo}

    answer = client.post(f"/solicitudes/{request}/rechazar", json=body)

    other: dict[str | int | None, str] = {None: "FIELD_MISSING", "\0": "JSON_INVALID"}
    problem(answer, 400, other.get(motivo, "FIELD_INVALID"))
    assert state_of(client, request) == "pendiente"


@pytest.mark.parametrize("state", ["firmada", "rechazada", "vencida"])
def test_final_state_allows_no_move(
    appliance: Appliance, signer: TestPerson, client: httpx.Client, state: str
) -> None:
    """From a final state there is no way on, by no call.

    Source: decisions "estados".
    """
    assert STATES[state](appliance, signer, client) == state
    query: dict[str, str | int] = {"estado": state, "limite": 1}
    (newest,) = client.get("/solicitudes", params=query).json()
    request = newest["solicitudId"]

    problem(reject(client, request), 409, "STATE")
    again = sign(client, signer, request, fontSize=20)

    problem(again, 409, "ALREADY_SIGNED" if state == "firmada" else "STATE")
    assert state_of(client, request) == state


class SpecClient:
    """A client written from the spec alone: its words, and nothing added."""

    _LISTED: Final = {"solicitudId": int, "documento": str, "estado": str}
    _SIGNED: Final = {"status": str, "documentoFirmado": str}

    def __init__(self, base_url: str, token: str) -> None:
        self._base_url = base_url
        self._bearer = {"Authorization": f"Bearer {token}"}

    def requests(self) -> list[dict[str, Any]]:
        """The requests available to the user."""
        answer = httpx.get(
            f"{self._base_url}/solicitudes", headers=self._bearer, timeout=CALL_S
        )
        assert answer.status_code == 200
        elements = answer.json()
        assert type(elements) is list
        return [self._typed(element, self._LISTED) for element in elements]

    def sign(self, request: int, password: str) -> str:
        """Sign with the values seen in the spec; the address of the PDF."""
        answer = httpx.post(
            f"{self._base_url}/solicitudes/firmar",
            headers={**self._bearer, "Content-Type": "application/json"},
            content=json.dumps(
                {
                    "solicitudId": request,
                    "fontColor": "BLACK",
                    "fontName": "Serif",
                    "fontSize": 12,
                    "fontStyle": "PLAIN",
                    "page": 1,
                    "x": 100,
                    "y": 100,
                    "zoomPercent": 100,
                    "restriccion": "NO_VALUE",
                    "password": password,
                }
            ),
            timeout=CALL_S,
        )
        assert answer.status_code == 200
        members = self._typed(answer.json(), self._SIGNED)
        assert members["status"] == "success"
        return str(members["documentoFirmado"])

    @staticmethod
    def _typed(members: dict[str, Any], known: Mapping[str, type]) -> dict[str, Any]:
        """What it knows of, each of its type; the rest it has never heard of."""
        for name, kind in known.items():
            assert type(members[name]) is kind
        return {name: members[name] for name in known}


def test_client_of_the_spec_alone_never_trips(
    appliance: Appliance, signer: TestPerson
) -> None:
    """What we add is additive: such a client lists, signs and downloads.

    Source: spec "Versioning"; decisions, first paragraph.
    """
    wanted = appliance.new_request(signer, pdfs.pages(2), "Convenio.pdf")
    client = SpecClient(appliance.base_url, appliance.bearer(signer))

    listed = {each["solicitudId"]: each for each in client.requests()}
    assert listed[wanted] == {
        "solicitudId": wanted,
        "documento": "Convenio.pdf",
        "estado": "pendiente",
    }
    url = client.sign(wanted, signer.signing_password)

    download = httpx.get(url, timeout=CALL_S)
    assert download.headers["Content-Type"] == "application/pdf"
    assert pyhanko_valid(download.content, appliance.roots)
    assert wanted not in [each["solicitudId"] for each in client.requests()]
