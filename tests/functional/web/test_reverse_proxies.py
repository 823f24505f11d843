"""Behind real web servers, set up as the documentation's samples say."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import problem
from tests.support.documents import pdfs
from tests.support.patience import CALL_S
from tests.support.processes.scratch import short_folder
from tests.support.services.nginx import API, CONSOLE, FRAME, Proxy, new_port
from tests.support.services.proxies import PROXIES

ONE, OTHER = "127.0.0.2", "127.0.0.3"
TRIES = 4
MB = 1_000_000
_BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"


@dataclass(frozen=True)
class ProxiedAppliance:
    """An appliance and what stands before it."""

    appliance: Appliance
    proxy: Proxy
    signer: TestPerson

    def client(self, host: str, address: str = OTHER) -> httpx.Client:
        """A client of one of the names."""
        return self.proxy.client(host, address)


@pytest.fixture(
    scope="module",
    params=[
        "nginx",
        pytest.param("caddy", marks=pytest.mark.full),
        pytest.param("haproxy", marks=pytest.mark.full),
    ],
)
def proxied_appliance(request: pytest.FixtureRequest) -> Iterator[ProxiedAppliance]:
    """Both, with few tries an address."""
    port = new_port()
    with (
        short_folder() as folder,
        short_folder() as beside,
        Appliance.made(
            folder,
            base_url=f"https://{API}:{port}",
            iframe_url=f"https://{FRAME}:{port}",
            admin_url=f"https://{CONSOLE}:{port}",
            web='trusted_proxies = ["127.0.0.1"]',
            tries=str(TRIES),
        ) as appliance,
        PROXIES[request.param](appliance, beside, port) as proxy,
    ):
        yield ProxiedAppliance(appliance, proxy, appliance.new_person())


def sign_in(client: httpx.Client, user: str, password: str) -> httpx.Response:
    """The first half of a sign-in."""
    return client.post("/auth/login", json={"usuario": user, "password": password})


def test_wrong_tries_of_one_do_not_count_for_another(
    proxied_appliance: ProxiedAppliance,
) -> None:
    """Nor does a client that names itself another address get further tries."""
    with proxied_appliance.client(API, ONE) as bogus:
        statuses = [sign_in(bogus, f"a{n}@x.example", "no").status_code for n in "1234"]
        over = sign_in(bogus, "b@x.example", "no")
        bogus.headers["X-Forwarded-For"] = "203.0.113.9"
        bogus.headers["Forwarded"] = "for=203.0.113.9"
        spoofed = sign_in(bogus, "c@x.example", "no")
    with proxied_appliance.client(API, OTHER) as client:
        right = sign_in(
            client,
            proxied_appliance.signer.cuil,
            proxied_appliance.signer.login_password,
        )
    with proxied_appliance.client(CONSOLE, OTHER) as client:
        console = client.post(
            "/admin/login",
            headers={"Origin": proxied_appliance.appliance.settings.web.admin_url},
            data={"name": "nadie", "password": "no", "code": "1", "next": ""},
        )

    assert statuses == [401] * TRIES
    problem(over, 429, "RATE_LIMITED")
    problem(spoofed, 429, "RATE_LIMITED")
    assert right.status_code == 200
    assert console.status_code == 422


@pytest.mark.parametrize(("host", "path"), [(API, "/nada"), (FRAME, "/embed/nada")])
def test_log_tells_the_clients_address(
    proxied_appliance: ProxiedAppliance, host: str, path: str
) -> None:
    """Not the proxy's."""
    with proxied_appliance.client(host, "127.0.0.7") as client:
        answer = client.get(path)

    told = problem(answer, 404, "NOT_FOUND")
    lines = [
        line
        for line in proxied_appliance.appliance.log.read_text().splitlines()
        if told["requestId"] in line
    ]
    assert len(lines) == 1
    assert re.search(r"address=127\.0\.0\.7\b", lines[0])


def test_word_of_a_stranger_is_not_taken(proxied_appliance: ProxiedAppliance) -> None:
    """Whoever reaches the listener past the proxy names nobody."""
    transport = httpx.HTTPTransport(local_address="127.0.0.9")
    with httpx.Client(transport=transport, timeout=CALL_S) as client:
        told = client.get(
            f"{proxied_appliance.appliance.base_url}/nada",
            headers={"X-Forwarded-For": "203.0.113.77"},
        ).json()

    (line,) = [
        line
        for line in proxied_appliance.appliance.log.read_text().splitlines()
        if told["requestId"] in line
    ]
    assert "address=127.0.0.9" in line


@pytest.mark.parametrize("said", ["x", ",,,", "1.2.3.4.5", '"', "%00", "a" * 7000])
def test_malformed_header_is_no_fault(
    proxied_appliance: ProxiedAppliance, said: str
) -> None:
    """What a proxy passes on may be anything."""
    with httpx.Client(timeout=CALL_S) as client:
        answer = client.get(
            f"{proxied_appliance.appliance.base_url}/healthz",
            headers={"X-Forwarded-For": said},
        )

    assert answer.status_code == 200


def test_large_document_passes_both_ways(proxied_appliance: ProxiedAppliance) -> None:
    """Through the sample's limits, and is the same on the other side."""
    pdf = pdfs.heavy(20, 20 * MB)
    request = proxied_appliance.appliance.new_request(proxied_appliance.signer, pdf)
    with proxied_appliance.client(API) as client:
        client.headers["Authorization"] = (
            f"Bearer {proxied_appliance.appliance.bearer(proxied_appliance.signer)}"
        )
        options = {
            "solicitudId": request,
            "password": proxied_appliance.signer.signing_password,
        }
        signed = client.post(
            "/solicitudes/firmar",
            files={
                "file": ("a.pdf", pdf, "application/pdf"),
                "options": (None, json.dumps(options), "application/json"),
            },
            headers={"Accept": "application/json"},
        )
        url = httpx.URL(signed.json()["documentoFirmado"])
        answer = client.get(url.raw_path.decode())

    assert (signed.status_code, url.host) == (200, API)
    assert hashlib.sha256(answer.content).hexdigest() == signed.json()["sha256"]


def test_refusals_pass_unchanged(proxied_appliance: ProxiedAppliance) -> None:
    """The service's own words, and the proxy's own refusals in the same form."""
    with proxied_appliance.client(API) as client:
        ours = client.get("/solicitudes")
        head = {"Content-Type": "application/json"}
        theirs = client.post("/auth/login", headers=head, content=b" " * (70 * MB))
    with proxied_appliance.client(FRAME) as client:
        page = client.get("/embed/?t=nada")

    problem(ours, 401, "TOKEN_MISSING")
    assert theirs.status_code == 413
    assert theirs.headers["Content-Type"] == "application/problem+json"
    assert theirs.json()["code"] == "BODY_TOO_LARGE"
    assert "frame-ancestors" in page.headers["Content-Security-Policy"]


@pytest.fixture
def away(proxied_appliance: ProxiedAppliance) -> Iterator[ProxiedAppliance]:
    """The service does not run."""
    proxied_appliance.appliance.stop()
    yield proxied_appliance
    proxied_appliance.appliance.start()


def told_twice(
    proxied_appliance: ProxiedAppliance, ask: Callable[[httpx.Client], httpx.Response]
) -> None:
    """A browser gets a page in both languages, a caller the service's own form."""
    for host in (API, FRAME, CONSOLE):
        with proxied_appliance.client(host) as client:
            client.headers["Accept"] = _BROWSER
            page = ask(client)
            client.headers["Accept"] = "*/*"
            call = ask(client)

        assert page.status_code == call.status_code
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert re.search(r'<html lang="es">.*<h1>.*<div lang="en"><h2>', page.text)
        assert call.headers["Content-Type"] == "application/problem+json"
        assert call.json()["status"] == call.status_code
        for answer in (page, call):
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.headers["Vary"] == "Accept"


def test_service_that_is_away_is_told_in_its_own_form(away: ProxiedAppliance) -> None:
    """With when to come again, and not as a page of the proxy's."""
    answers = []

    def ask(client: httpx.Client) -> httpx.Response:
        answers.append(client.get("/healthz"))
        return answers[-1]

    told_twice(away, ask)

    assert {answer.status_code for answer in answers} == {503}
    assert {answer.headers["Retry-After"] for answer in answers} == {"5"}
    assert {answer.json()["code"] for answer in answers[1::2]} == {"OVERLOADED"}
    assert all("El servicio no responde" in answer.text for answer in answers[::2])


def test_file_that_is_too_large_is_told_to_browsers_too(
    proxied_appliance: ProxiedAppliance,
) -> None:
    """Of a form as of a call, before the service sees it."""
    told_twice(
        proxied_appliance, lambda client: client.post("/", content=b" " * (70 * MB))
    )


def test_nothing_is_upgraded(proxied_appliance: ProxiedAppliance) -> None:
    """Neither to HTTP/2 in clear text behind the proxy, nor to a socket."""
    socket = {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Connection": "Upgrade"}
    http2 = {"HTTP2-Settings": "AAMAAABk", "Connection": "Upgrade, HTTP2-Settings"}
    with proxied_appliance.client(API) as client:
        for protocol, head in (
            ("websocket", {**socket, "Sec-WebSocket-Version": "13"}),
            ("h2c", http2),
        ):
            answer = client.get("/healthz", headers={**head, "Upgrade": protocol})

            assert answer.status_code == 200, protocol
