"""The same call again, at once or later, by a client that stayed or left."""

import hashlib
import json
import socket
from functools import partial
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import (
    at_once,
    command,
    head,
    problem,
    sign,
    state_of,
)
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import held, until
from tests.support.patience import CALL_S

PDF = "application/pdf"
SIGN = "/solicitudes/firmar"


@pytest.fixture
def request_id(appliance: Appliance, signer: TestPerson) -> int:
    """A fresh request."""
    return appliance.new_request(signer, pdfs.one_page())


def test_repeat_gives_the_stored_answer_without_a_password(
    signer: TestPerson, client: httpx.Client, request_id: int, appliance: Appliance
) -> None:
    """Defaults written out are the same parameters; the password is not looked at.

    Source: decisions "repeating firmar".
    """
    first = sign(client, signer, request_id).json()
    written_out = {"fontColor": "BLACK", "fontSize": 12, "x": None, "y": None}

    again = sign(client, signer, request_id, **written_out, password="cualquiera")

    assert again.status_code == 200
    assert again.json()["sha256"] == first["sha256"]
    assert len(appliance.intents(request_id)) == 1


def test_twenty_at_once_make_one_document(
    signer: TestPerson, appliance: Appliance, client: httpx.Client, request_id: int
) -> None:
    """Twenty equal calls in parallel: one signature, the same answer to all."""
    body = command(signer, request_id)
    headers = dict(client.headers)

    def call() -> httpx.Response:
        url = f"{appliance.base_url}{SIGN}"
        return httpx.post(url, json=body, headers=headers, timeout=CALL_S)

    answers = at_once([call] * 20)

    assert [answer.status_code for answer in answers] == [200] * 20
    assert len({answer.json()["sha256"] for answer in answers}) == 1
    (intent,) = appliance.intents(request_id)
    assert intent.state.value == "completada"


def test_other_parameters_at_once_conflict(
    signer: TestPerson, appliance: Appliance, client: httpx.Client, request_id: int
) -> None:
    """Of calls with different parameters one signs; the others are told why not."""
    headers = dict(client.headers)

    def call(size: int) -> httpx.Response:
        url = f"{appliance.base_url}{SIGN}"
        body = command(signer, request_id, fontSize=size)
        return httpx.post(url, json=body, headers=headers, timeout=CALL_S)

    answers = at_once([partial(call, size) for size in range(10, 16)])

    (won,) = [answer for answer in answers if answer.status_code == 200]
    lost = [answer for answer in answers if answer is not won]
    assert {answer.status_code for answer in lost} == {409}
    assert {answer.json()["code"] for answer in lost} <= {
        "IN_PROGRESS",
        "ALREADY_SIGNED",
    }
    assert len(appliance.intents(request_id)) == 1


def test_client_that_hangs_up_repeats(
    signer: TestPerson, appliance: Appliance, client: httpx.Client, request_id: int
) -> None:
    """Whoever leaves in the middle of the call finds its result by repeating it."""
    body = json.dumps(command(signer, request_id)).encode()
    address = urlsplit(appliance.base_url)
    with (
        held(appliance),
        socket.create_connection((address.hostname, address.port)) as connection,
    ):
        connection.sendall(
            head(
                appliance,
                f"POST {SIGN} HTTP/1.1",
                "Content-Type: application/json",
                f"Content-Length: {len(body)}",
                f"Authorization: {client.headers['Authorization']}",
            )
            + body
        )
        # In the middle: after the password is read, before the document is there.
        until(lambda: state_of(client, request_id) == "en_proceso")

    answer = sign(client, signer, request_id)

    assert answer.status_code == 200, answer.text
    (intent,) = appliance.intents(request_id)
    assert intent.state.value == "completada"


def test_idempotency_key_binds_one_command(
    appliance: Appliance, signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """The same key with the same command repeats; with another it conflicts.

    Source: decisions "repeating firmar".
    """
    second = appliance.new_request(signer, pdfs.one_page())
    headers = {"Idempotency-Key": f"pedido-{request_id}"}

    first = client.post(SIGN, json=command(signer, request_id), headers=headers)
    again = client.post(SIGN, json=command(signer, request_id), headers=headers)
    other = client.post(SIGN, json=command(signer, second), headers=headers)

    assert first.json()["sha256"] == again.json()["sha256"]
    problem(other, 409, "IDEMKEY_CONFLICT")
    assert state_of(client, second) == "pendiente"


@pytest.mark.parametrize("key", ["", "a b", "ñ".encode(), "x" * 129])
def test_idempotency_key_of_another_form_refused(
    signer: TestPerson, client: httpx.Client, request_id: int, key: str | bytes
) -> None:
    """1 to 128 visible ASCII characters."""
    headers = {b"Idempotency-Key": key if isinstance(key, bytes) else key.encode()}

    answer = client.post(SIGN, json=command(signer, request_id), headers=headers)

    problem(answer, 400, "BAD_HEADER")


def test_if_match_of_the_document_seen_signs(
    signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """The ETag of the detail signs; a weak one, or another, does not."""
    tag = client.get(f"/solicitudes/{request_id}").headers["ETag"]
    assert tag == f'"{hashlib.sha256(pdfs.one_page()).hexdigest()}"'
    body = command(signer, request_id)

    weak = client.post(SIGN, json=body, headers={"If-Match": f"W/{tag}"})
    bare = client.post(SIGN, json=body, headers={"If-Match": tag.strip('"')})
    right = client.post(SIGN, json=body, headers={"If-Match": tag})

    problem(weak, 412, "DOCUMENT_CHANGED")
    problem(bare, 400, "BAD_HEADER")
    assert right.status_code == 200


def test_work_that_outlasts_the_call_is_202(
    limited_appliance: Appliance, limited_signer: TestPerson
) -> None:
    """While no worker works: 202 and where to look; then the same call gives it.

    Source: decisions "answer".
    """
    request = limited_appliance.new_request(limited_signer, pdfs.one_page())
    with limited_appliance.client(limited_signer) as client:
        with held(limited_appliance):
            answer = sign(client, limited_signer, request)
            listed = client.get("/solicitudes").json()
            moved = sign(client, limited_signer, request, fontSize=20)
            rejected = client.post(
                f"/solicitudes/{request}/rechazar", json={"motivo": "tarde"}
            )
        later = answer
        while later.status_code == 202:
            later = sign(client, limited_signer, request)

    assert answer.status_code == 202
    assert answer.json() == {"status": "en_proceso", "solicitudId": request}
    assert answer.headers["Location"] == f"/solicitudes/{request}"
    assert int(answer.headers["Retry-After"]) > 0
    assert {e["solicitudId"]: e["estado"] for e in listed}[request] == "en_proceso"
    problem(moved, 409, "IN_PROGRESS")
    problem(rejected, 409, "STATE")
    assert later.json()["status"] == "success"


@pytest.mark.parametrize("form", ["json", "multipart"])
def test_pdf_that_outlasts_the_call_is_503(
    limited_appliance: Appliance, limited_signer: TestPerson, form: str
) -> None:
    """Who asked for a PDF gets one or an error, never JSON to be saved as a PDF.

    Source: decisions "PDF in the answer".
    """
    document = pdfs.one_page()
    request = limited_appliance.new_request(limited_signer, document)
    body = command(limited_signer, request)
    with limited_appliance.client(limited_signer) as client:

        def ask() -> httpx.Response:
            if form == "json":
                return client.post(SIGN, json=body, headers={"Accept": PDF})
            options = json.dumps(body).encode()
            parts = [
                ("file", ("a.pdf", document, PDF)),
                ("options", ("options", options, "application/json")),
            ]
            return client.post(SIGN, files=parts)

        with held(limited_appliance):
            answer = ask()
        later = answer
        while later.status_code == 503:
            later = ask()

    members = problem(answer, 503, "STILL_SIGNING")
    assert (members["category"], members["solicitudId"]) == ("retry", request)
    assert int(answer.headers["Retry-After"]) == members["retryAfter"] > 0
    assert (later.status_code, later.headers["Content-Type"]) == (200, PDF)
    assert later.content.startswith(document)
