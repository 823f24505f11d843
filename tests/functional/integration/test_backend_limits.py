"""How much a backend may call for, and how it is told.

Source: docs/integration.md "Limits"; draft-ietf-httpapi-ratelimit-headers-10.
"""

import base64
import json
import re
import socket
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import httpx
import pytest

from appliance.domain.integrators.api_keys import ApiKeyScope
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backends import REQUESTS, TestBackend, backend_of
from tests.support.appliance.http_calls import problem
from tests.support.appliance.rate_windows import in_one_minute
from tests.support.documents import pdfs
from tests.support.processes.scratch import short_folder

LIMITS: Final = "/api/integration/limits"
DOCUMENTS: Final = "/api/integration/documents"
SESSION: Final = "/api/integration/session/new"
LIMITED: Final = """[integration]
calls_per_minute = 20
sessions_per_minute = 3
requests_per_day = 2
upload_bytes_per_day = 1048576
"""


@pytest.fixture(scope="module")
def limited() -> Iterator[Appliance]:
    """An appliance of low rates."""
    with short_folder() as folder, Appliance.made(folder, more=LIMITED) as appliance:
        yield appliance


@pytest.fixture
def backend(limited: Appliance) -> Iterator[TestBackend]:
    """A backend that has called for nothing yet."""
    with backend_of(limited) as made:
        yield made


def test_what_is_left_is_told(backend: TestBackend) -> None:
    """By the call, which counts as one, and in the headers of every answer."""
    first = backend.client.get(LIMITS)
    second = backend.client.get(REQUESTS)

    assert [
        (each["nombre"], each["maximo"], each["ventana"], each["quedan"])
        for each in first.json()
    ] == [
        ("llamadas", 20, 60, 19),
        ("sesiones", 3, 60, 3),
        ("solicitudes", 2, 86_400, 2),
        ("bytes", 1_048_576, 86_400, 1_048_576),
    ]
    assert all(0 < each["renuevaEn"] <= each["ventana"] for each in first.json())
    assert first.headers["RateLimit-Policy"] == '"llamadas";q=20;w=60'
    assert re.fullmatch(r'"llamadas";r=19;t=\d+', first.headers["RateLimit"])
    assert re.fullmatch(r'"llamadas";r=18;t=\d+', second.headers["RateLimit"])


def test_calls_beyond_the_rate_are_told_when(limited: Appliance) -> None:
    """By key: another one of the same integrator calls on."""

    def call() -> tuple[str, list[httpx.Response]]:
        with backend_of(limited) as backend:
            return backend.code, [backend.client.get(REQUESTS) for _ in range(21)]

    code, answers = in_one_minute(call)

    assert [each.status_code for each in answers[:20]] == [200] * 20
    problem(answers[20], 429, "RATE_LIMITED")
    assert 1 <= int(answers[20].headers["Retry-After"]) <= 120
    assert answers[20].headers["RateLimit"].startswith('"llamadas";r=0;t=')
    with backend_of(limited, code=code) as other:
        assert other.client.get(REQUESTS).status_code == 200


def test_sessions_have_a_rate_of_their_own(limited: Appliance) -> None:
    """Both calls count: three are opened in all; a wrong key takes nothing of it."""

    def call() -> list[httpx.Response]:
        with backend_of(limited) as backend:
            whose, post = {"id": backend.code}, backend.client.post
            for _ in range(5):
                post(SESSION, params=whose, headers={"X-Api-Key": "rbk_test_x"})
            return [
                post(SESSION, params=whose),
                post("/api/integration/sessions", json={}),
                post(SESSION, params=whose),
                post(SESSION, params=whose),
                post("/api/integration/sessions", json={}),
            ]

    *opened, refused, refused_too = in_one_minute(call)

    assert [each.status_code for each in opened] == [200, 201, 200]
    assert '"sesiones";r=0' in opened[2].headers["RateLimit"]
    problem(refused, 429, "RATE_LIMITED")
    problem(refused_too, 429, "RATE_LIMITED")


def test_requests_of_a_day_are_the_integrators(
    limited: Appliance, backend: TestBackend
) -> None:
    """A key more does not make them more."""
    person = limited.new_person()
    for name in ("uno", "dos"):
        assert backend.ask(pdfs.one_page(name), person).status_code == 201

    with backend_of(limited, code=backend.code) as other:
        answer = other.ask(pdfs.one_page("tres"), person)

    problem(answer, 429, "RATE_LIMITED")
    assert '"solicitudes";r=0' in answer.headers["RateLimit"]


def test_integrator_has_so_many_bytes_a_day(
    limited: Appliance, backend: TestBackend
) -> None:
    """Whether a body says how long it is or not; another integrator's are its own."""
    pdf = pdfs.heavy(1, 400_000)
    sent = {"Content-Type": "application/pdf"}
    assert backend.client.post(DOCUMENTS, content=pdf, headers=sent).status_code == 201
    chunked = backend.client.post(
        DOCUMENTS, content=iter([pdf[:1000], pdf[1000:]]), headers=sent
    )
    assert chunked.status_code == 201

    refused = backend.client.post(DOCUMENTS, content=pdf, headers=sent)

    problem(refused, 429, "RATE_LIMITED")
    left = {
        each["nombre"]: each["quedan"] for each in backend.client.get(LIMITS).json()
    }
    assert left["bytes"] == 1_048_576 - 2 * len(pdf)
    with backend_of(limited, ApiKeyScope.REQUESTS_WRITE) as other:
        answer = other.client.post(DOCUMENTS, content=pdf, headers=sent)
        assert answer.status_code == 201


def test_what_is_refused_takes_nothing(
    limited: Appliance, backend: TestBackend
) -> None:
    """Neither a body that is too large, nor a repeated call, nor a refused document."""
    person = limited.new_person()
    pdf = pdfs.one_page("una vez")
    key = {"Idempotency-Key": "una-vez"}
    body = {
        "firmantes": [{"cuil": person.cuil}],
        "documento": {"contenido": base64.b64encode(pdf).decode()},
    }
    made = [backend.client.post(REQUESTS, json=body, headers=key) for _ in range(3)]
    refused = backend.client.post(REQUESTS, json={**body, "firmantes": []})
    before = backend.client.get(LIMITS).json()

    # Of what is sent nothing is read: the length alone is too much.
    address = urlsplit(limited.settings.web.web_url)
    with socket.create_connection((address.hostname, address.port)) as sent:
        sent.sendall(
            f"POST {DOCUMENTS} HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"X-Api-Key: {backend.key.secret}\r\nContent-Type: application/pdf\r\n"
            "Content-Length: 10737418240\r\n\r\n".encode()
        )
        status = sent.recv(12)
    after = backend.client.get(LIMITS).json()

    assert [each.status_code for each in made] == [201] * 3
    assert refused.status_code == 400
    assert status == b"HTTP/1.1 413"
    left = [
        {each["nombre"]: each["quedan"] for each in told} for told in (before, after)
    ]
    assert left[0]["solicitudes"] == left[1]["solicitudes"] == 1
    assert left[0]["bytes"] == left[1]["bytes"]


def test_repeated_call_is_answered_when_nothing_is_left(
    limited: Appliance, backend: TestBackend
) -> None:
    """It makes nothing new; a new one is told which limit it met."""
    person = limited.new_person()
    pdf = base64.b64encode(pdfs.heavy(1, 400_000)).decode()
    body = {"firmantes": [{"cuil": person.cuil}], "documento": {"contenido": pdf}}
    first, second = ({"Idempotency-Key": name} for name in ("uno", "dos"))
    made = backend.client.post(REQUESTS, json=body, headers=first)
    assert made.status_code == 201, made.text
    assert backend.ask(pdfs.one_page("dos"), person).status_code == 201

    again = backend.client.post(REQUESTS, json=body, headers=first)
    more = backend.client.post(REQUESTS, json=body, headers=second)

    assert again.status_code == 201, again.text
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json()["procesoId"] == made.json()["procesoId"]
    problem(more, 429, "RATE_LIMITED")
    assert "el límite de bytes (1048576 por día)" in more.json()["detail"]


def test_more_than_there_ever_may_be_is_no_matter_of_time(
    limited: Appliance, backend: TestBackend
) -> None:
    """A batch of more than a day's requests, and a body of more than its bytes."""
    person = limited.new_person()
    uploaded = backend.client.post(
        DOCUMENTS,
        content=pdfs.one_page(),
        headers={"Content-Type": "application/pdf"},
    ).json()["documentoId"]
    wanted = {
        "firmante": {"cuil": person.cuil},
        "documentos": [{"documentoId": uploaded}] * 3,
    }

    many = backend.client.post("/api/integration/batches", json=wanted)
    large = backend.client.post(
        DOCUMENTS,
        content=pdfs.heavy(1, 1_100_000),
        headers={"Content-Type": "application/pdf"},
    )

    problem(many, 400, "FIELD_INVALID")
    assert many.json()["allowed"] == ["1..2 objetos"]
    problem(large, 413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("path", [DOCUMENTS, REQUESTS])
def test_body_of_unknown_length_counts_as_any(
    limited: Appliance, backend: TestBackend, path: str
) -> None:
    """By what was read of it; also where it brings a request."""
    person = limited.new_person()
    options = json.dumps({"firmantes": [{"cuil": person.cuil}]})
    pdf = pdfs.heavy(1, 600_000)
    head = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n'
        b"Content-Type: application/pdf\r\n\r\n"
    )
    rest = (
        b'\r\n--x\r\nContent-Disposition: form-data; name="options"\r\n\r\n'
        + options.encode()
        if path == REQUESTS
        else b""
    )
    whole = head + pdf + rest + b"\r\n--x--\r\n"
    sent = {"Content-Type": "multipart/form-data; boundary=x"}

    answers = [
        backend.client.post(path, content=iter([whole]), headers=sent) for _ in range(2)
    ]

    assert answers[0].status_code == 201, answers[0].text
    problem(answers[1], 429, "RATE_LIMITED")
    left = {
        each["nombre"]: each["quedan"] for each in backend.client.get(LIMITS).json()
    }
    assert left["bytes"] == 1_048_576 - len(whole)
