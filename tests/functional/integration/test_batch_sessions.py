"""Sessions for a batch, over HTTP: what is signed in them, and what is told of it."""

import base64
import threading
import time
from typing import Any

import httpx

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    TestBackend,
    assert_valid,
    backend_of,
    ready_batch,
)
from tests.support.documents import pdfs
from tests.support.patience import CALL_S

SESSIONS = "/api/integration/sessions"


def asked(
    backend: TestBackend, person: TestPerson, count: int = 2, **more: Any
) -> dict[str, Any]:
    """A batch of as many documents."""
    documents = [
        {
            "contenido": base64.b64encode(pdfs.one_page(f"Recibo {each}")).decode(),
            "nombre": f"recibo-{each}.pdf",
        }
        for each in range(count)
    ]
    answer = backend.client.post(
        "/api/integration/batches",
        json={"firmante": {"cuil": person.cuil}, "documentos": documents, **more},
    )
    return ready_batch(backend.client, answer)


def opened(backend: TestBackend, **wanted: Any) -> httpx.Response:
    """The answer to the backend that opens a session."""
    return backend.client.post(SESSIONS, json=wanted)


class Page:
    """What the frame's page does, without a browser."""

    def __init__(self, appliance: Appliance, told: dict[str, Any]) -> None:
        self._at = f"{appliance.iframe_url}/embed/api/"
        self._headers: dict[str, str] = {}
        self._told = told

    def start(self, person: TestPerson) -> None:
        """Send the initial message."""
        init = {
            "nonce": "n",
            "sessionToken": self._told["tokenSession"],
            "userData": {"cuil": person.cuil, "email": person.email},
        }
        answer = self.ask("init", page=self._told["sesionId"], init=init)
        assert answer.status_code == 200, answer.text
        self._headers["Authorization"] = f"Bearer {answer.json()['bearer']}"

    def call(self, path: str, **body: Any) -> dict[str, Any]:
        """Post; the answer's body, which must be right."""
        answer = self.ask(path, **body)
        assert answer.status_code in {200, 202}, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def ask(self, path: str, **body: Any) -> httpx.Response:
        """Post."""
        return httpx.post(
            self._at + path, json=body, headers=self._headers, timeout=CALL_S
        )

    def get(self, path: str) -> httpx.Response:
        """Get."""
        return httpx.get(self._at + path, headers=self._headers, timeout=CALL_S)

    def prove(self, person: TestPerson) -> dict[str, Any]:
        """Say and prove who signs."""
        self.call("identify", cuil=person.cuil, email=person.email)
        return self.call("otp", code=person.totp.now())

    def read(self, request: int) -> None:
        """Open one, and go on from it."""
        shown = self.call("choose", request=request)
        self.call("seen", sha256=shown["document"]["sha256"])

    def settled(self) -> dict[str, Any]:
        """How it stands once nothing is being signed any more."""
        until = time.monotonic() + 60
        told: dict[str, Any] = self.get("state").json()
        while told["state"] == "signing":
            assert time.monotonic() < until, told
            threading.Event().wait(0.1)
            told = self.get("state").json()
        return told


def test_batch_is_signed_by_one_password(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """What is told of each is what its bytes are, and they are valid signatures."""
    person = people[0]
    made = asked(backend, person)
    numbers = [each["solicitudId"] for each in made["solicitudes"]]
    page = Page(appliance, opened(backend, loteId=made["loteId"]).json())
    page.start(person)
    appliance.refresh(person)
    told = page.prove(person)
    assert told["batch"]["total"] == 2
    too_early = page.ask("sign-batch", password=person.signing_password)
    assert too_early.json()["code"] == "DOCUMENT_CHANGED"
    for number in numbers:
        page.read(number)
    wrong = page.ask("sign-batch", password="not this one")
    assert wrong.json()["code"] == "SIGN_PASSWORD_WRONG"
    alone = page.ask(
        "sign",
        password=person.signing_password,
        corner="bottomLeft",
        page=1,
        sha256="00" * 32,
    )
    assert alone.json()["code"] == "SESSION_IN_USE"

    begun = page.call("sign-batch", password=person.signing_password)
    assert begun["refused"] == []
    end = page.settled()

    assert (end["state"], end["batch"]["signed"]) == ("signed", 2)
    for number in numbers:
        event = page.get(f"completed?request={number}").json()
        pdf = page.get(f"download?request={number}").content
        assert event["document"]["size"] == len(pdf)
        assert_valid(appliance, pdf, 1)
    member = made["solicitudes"][0]
    history = [e["evento"] for e in backend.read(member["procesoId"])["historia"]]
    assert history == ["creada", "vista", "firmada"]
    assert opened(backend, loteId=made["loteId"]).status_code == 201


def test_backend_is_told_what_cannot_be_opened(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """What is not there, somebody else's, taken back, or asked for wrongly."""
    made = asked(backend, people[0])
    lote = made["loteId"]
    with backend_of(appliance) as stranger:
        for wrong, status, code in (
            (opened(stranger, loteId=lote), 404, "LOTE_NOT_FOUND"),
            (opened(backend, loteId="x"), 404, "LOTE_NOT_FOUND"),
            (opened(backend, loteId=lote, solicitudId=1), 400, "FIELD_INVALID"),
            (opened(backend, loteId=lote, procesoId="x"), 400, "FIELD_INVALID"),
            (opened(backend, loteId=7), 400, "FIELD_INVALID"),
        ):
            assert (wrong.status_code, wrong.json()["code"]) == (status, code)
    backend.client.post(f"/api/integration/batches/{lote}/cancel", json={})
    gone = opened(backend, loteId=lote)
    assert (gone.status_code, gone.json()["code"]) == (409, "STATE")


def test_integrator_chooses_what_has_to_be_opened(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """A sample is marked in the list, of `ninguna` nothing; no more is demanded."""
    person = people[0]
    for openings, demanded in (("muestra", 3), ("ninguna", 0)):
        made = asked(backend, person, 5, aperturas=openings)
        read = backend.client.get(f"/api/integration/batches/{made['loteId']}").json()
        page = Page(appliance, opened(backend, loteId=made["loteId"]).json())
        page.start(person)
        appliance.refresh(person)
        told = page.prove(person)["batch"]
        listed = page.get("batch?after=0").json()["list"]

        assert read["aperturas"] == told["openings"] == openings
        marked = [each["id"] for each in listed if each["open"]]
        assert told["unread"] == len(marked) == demanded
        for at, number in enumerate(marked):
            too_early = page.ask("sign-batch", password=person.signing_password)
            assert too_early.json()["code"] == "DOCUMENT_CHANGED"
            page.read(number)
            state = page.get("state").json()
            assert state["batch"]["unread"] == demanded - at - 1
        page.call("sign-batch", password=person.signing_password)
        end = page.settled()

        assert (end["state"], end["batch"]["signed"]) == ("signed", 5)
        for each in made["solicitudes"]:
            kept = backend.read(each["procesoId"])["historia"]
            was_opened = "vista" in [event["evento"] for event in kept]
            assert was_opened is (each["solicitudId"] in marked)


def test_openings_are_one_of_three_words(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """Another one refuses the call."""
    answer = backend.client.post(
        "/api/integration/batches",
        json={
            "firmante": {"cuil": people[0].cuil},
            "documentos": [{"documentoId": "x"}],
            "aperturas": "algunas",
        },
    )

    assert answer.status_code == 400
    fields = [each["field"] for each in answer.json()["errors"]]
    assert "aperturas" in fields
