"""The session endpoint: what an integrator's backend asks and is told."""

import base64
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from appliance.bootstrap import ServiceRegistry
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.api_keys import checksum, new_api_key
from appliance.domain.integrators.integrators import KeyView, NewKey, PageKind
from appliance.domain.vocab import Environment
from appliance.embedding.session import Sessions
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.http_calls import problem
from tests.support.factories.fakes import MovingClock
from tests.support.patience import CALL_S
from tests.support.processes.scratch import free_port

NEW = "/api/integration/session/new"


@dataclass(frozen=True)
class Backend:
    """An integrator's backend: its code, its key, and a way to call."""

    appliance: Appliance
    code: str
    key: NewKey

    def call(
        self,
        *,
        code: str | None = None,
        key: str | None = None,
        headers: dict[str, str] | None = None,
        content: bytes = b"",
    ) -> httpx.Response:
        """Ask for a session as the spec has it, but for what is given."""
        sent = {
            "X-Api-Key": self.key.secret if key is None else key,
            **(headers or {}),
        }
        return httpx.post(
            f"{self.appliance.settings.web.web_url}{NEW}",
            params={"id": self.code if code is None else code},
            headers={name: value for name, value in sent.items() if value},
            content=content,
            timeout=CALL_S,
        )

    def view(self) -> KeyView:
        """How the key stands now."""

        async def read(front: ServiceRegistry) -> list[KeyView]:
            return await front.integrators.keys(self.code)

        return next(k for k in self.appliance.do(read) if k.id == self.key.key.id)


@pytest.fixture
def backend(appliance: Appliance) -> Backend:
    """The integrator `demo` with a key of its own for this test."""

    async def make(front: ServiceRegistry) -> NewKey:
        return await front.integrators.create_key("operator", "demo", "prueba")

    return Backend(appliance, "demo", appliance.do(make))


def test_session_new_answers_the_token(backend: Backend) -> None:
    """A good id and key give a token, and until when it is valid.

    Source: spec "Session token response", "POST …/session/new".
    """
    before = datetime.now(UTC)

    answer = backend.call()

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    told = answer.json()
    assert told.keys() == {"tokenSession", "validUntil"}
    assert len(base64.urlsafe_b64decode(told["tokenSession"] + "=")) == 32
    lifetime = datetime.fromisoformat(told["validUntil"]) - before
    assert timedelta(seconds=1798) < lifetime < timedelta(seconds=1805)


def test_session_resolves_the_integrator(backend: Backend) -> None:
    """From the token alone the frame knows integrator and key.

    Source: spec "Authentication", row "Iframe".
    """
    token = backend.call().json()["tokenSession"]

    page = backend.appliance.do(lambda front: front.sessions.page(token, None))

    assert page.kind is PageKind.LIVE
    assert page.integrator_code == "demo"
    assert backend.view().last_used is not None


def test_token_1799_1801(backend: Backend) -> None:
    """A token works 30 minutes from its issue, and not a second more.

    Source: spec "States and transitions", "Limits".
    """
    token = backend.call().json()["tokenSession"]
    start = datetime.now(UTC)

    async def use(front: ServiceRegistry) -> list[ErrorCode | None]:
        seen: list[ErrorCode | None] = []
        for seconds in (1798, 1801):
            clock = MovingClock(start + timedelta(seconds=seconds))
            sessions = Sessions(front.core.store, front.lookup, clock, front.settings)
            try:
                await sessions.exchange(token)
            except ApplianceError as error:
                seen.append(error.code)
            else:
                seen.append(None)
        return seen

    assert backend.appliance.do(use) == [None, ErrorCode.SESSION_TOKEN_EXPIRED]


def test_new_token_replaces_an_expired_one(backend: Backend) -> None:
    """The backend gets as many tokens as it asks for, each another one.

    Source: spec "Errors", row "HTTP 401".
    """
    tokens = {backend.call().json()["tokenSession"] for _ in range(3)}

    assert len(tokens) == 3


@pytest.mark.parametrize(
    "wrong",
    ["id", "key", "both", "key of another", "revoked", "changed letter"],
)
def test_bad_id_and_bad_key_are_one_answer(backend: Backend, wrong: str) -> None:
    """Nothing tells which of the two was not right.

    Source: decisions "API keys"; spec "Authentication".
    """
    answer = _wrong_call(backend, wrong)

    assert answer.status_code == 401
    assert "WWW-Authenticate" in answer.headers
    told = answer.json()
    del told["requestId"]
    assert told == {
        "type": "urn:rubrica:error:API_KEY_INVALID",
        "title": "Sin sesión",
        "status": 401,
        "detail": "El integrador o su clave de API no son correctos.",
        "code": "API_KEY_INVALID",
        "category": "fix_request",
    }


def _wrong_call(backend: Backend, wrong: str) -> httpx.Response:
    secret = backend.key.secret
    if wrong == "revoked":
        key_id = backend.key.key.id
        backend.appliance.do(
            lambda front: front.integrators.revoke_key("operator", key_id)
        )
    letter = "a" if secret[30] != "a" else "b"
    keys = {
        "key": "rbk_test_x",
        "both": "x" * 5000,
        "key of another": _key_of_another(backend.appliance).secret,
        "changed letter": secret[:30] + letter + secret[31:],
    }
    code = "nadie" if wrong in {"id", "both"} else backend.code
    return backend.call(code=code, key=keys.get(wrong, secret))


def _key_of_another(appliance: Appliance) -> NewKey:
    async def make(front: ServiceRegistry) -> NewKey:
        known = {view.code for view in await front.integrators.list()}
        if "otro" not in known:
            await front.integrators.create("operator", "otro", "Otro")
        return await front.integrators.create_key("operator", "otro", "x")

    return appliance.do(make)


def test_bad_id_costs_what_a_bad_key_costs(backend: Backend) -> None:
    """Neither answer is quicker, so that time tells nothing either."""
    cases: dict[str, Callable[[], httpx.Response]] = {
        "id": lambda: backend.call(code="nadie"),
        "unknown": lambda: backend.call(key=_like(backend.key.secret)),
        "form": lambda: backend.call(key="x"),
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(15):
        for name, call in cases.items():
            began = time.perf_counter()
            assert call().status_code == 401
            times[name].append(time.perf_counter() - began)

    middles = sorted(sorted(taken)[7] for taken in times.values())
    assert middles[-1] < 3 * middles[0]


def _like(secret: str) -> str:
    """A key of the right form and checksum that nobody was given."""
    body = secret[:-6]
    body = body[:-3] + ("abc" if not body.endswith("abc") else "abd")
    return body + checksum(body)


def test_missing_key_is_said(backend: Backend) -> None:
    """A forgotten header is no wrong key.

    Source: spec "Header `X-Api-Key`".
    """
    with backend.appliance.client() as client:
        for headers in ({}, {"X-Api-Key": ""}):
            answer = client.post(f"{NEW}?id=demo", headers=headers)

            problem(answer, 401, "API_KEY_MISSING")
            assert answer.headers["WWW-Authenticate"].startswith("ApiKey")


@pytest.mark.parametrize("scheme", ["Bearer", "ApiKey", "bearer"])
def test_key_in_authorization_is_told_where_it_goes(
    backend: Backend, scheme: str
) -> None:
    """A key that came as a bearer is not used; the answer names its header."""
    headers = {"Authorization": f"{scheme} {backend.key.secret}"}
    with backend.appliance.client() as client:
        answer = client.post(f"{NEW}?id=demo", headers=headers)

    told = problem(answer, 401, "API_KEY_MISSING")
    assert "X-Api-Key, no en Authorization" in str(told["detail"])
    assert backend.key.secret not in answer.text


def test_key_of_the_other_environment_is_said(backend: Backend) -> None:
    """The public prefix of a key tells where it belongs, and so does the answer."""
    key = new_api_key(Environment.PROD).text

    told = problem(backend.call(key=key), 401, "API_KEY_ENVIRONMENT")

    assert "PREPROD" in str(told["detail"])
    assert key not in str(told)


def test_session_needs_the_id(backend: Backend) -> None:
    """Without `id` it is said to be missing; with two, to be there once.

    Source: spec "Query parameter `id`".
    """
    headers = {"X-Api-Key": backend.key.secret}
    with backend.appliance.client() as client:
        missing = client.post(NEW, headers=headers)
        twice = client.post(f"{NEW}?id=demo&id=demo", headers=headers)

    told = problem(missing, 400, "FIELD_MISSING")
    assert (told["field"], told["detail"]) == ("id", "Falta el campo id.")
    assert problem(twice, 400, "QUERY_INVALID")["allowed"] == ["una sola vez"]


def test_session_passes_over_other_parameters(backend: Backend) -> None:
    """As over the body: what a client or proxy adds ends no session."""
    with backend.appliance.client() as client:
        answer = client.post(
            NEW,
            params={"id": "demo", "v": "2"},
            headers={"X-Api-Key": backend.key.secret},
        )

    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"", ""),
        (b"{}", "application/json"),
        (b"not json", "application/json"),
        (b"a=b", "application/x-www-form-urlencoded"),
        (b"\xff" * 65_536, "application/octet-stream"),
    ],
    ids=["none", "empty object", "broken", "form", "64 KiB"],
)
def test_session_ignores_the_body(
    backend: Backend, content: bytes, media_type: str
) -> None:
    """The spec sends none; some clients send something: it is not looked at.

    Source: spec "Request body: none"; decisions "body at session/new".
    """
    answer = backend.call(content=content, headers={"Content-Type": media_type})

    assert answer.status_code == 200


def test_session_refuses_a_large_body(backend: Backend) -> None:
    """Over 64 KiB nothing is taken any more."""
    answer = backend.call(content=b"x" * 65_537)

    assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("name", ["apiKey", "api_key", "X-Api-Key", "key", "anything"])
def test_key_in_the_address_is_refused_and_flagged(backend: Backend, name: str) -> None:
    """A key in an address is in logs already: it is refused and marked.

    Source: decisions "body at session/new".
    """
    with backend.appliance.client() as client:
        answer = client.post(NEW, params={"id": "demo", name: backend.key.secret})

    assert (answer.status_code, answer.json()["code"]) == (400, "API_KEY_IN_URL")
    assert backend.key.secret not in answer.text
    view = backend.view()
    assert (view.flag_reason, view.flagged is not None) == ("url", True)
    assert backend.key.secret not in backend.appliance.log.read_text()


def test_key_in_browser_refused(backend: Backend) -> None:
    """A call that a browser made is refused, and its key marked.

    Source: spec "It is called only from the integrator's backend, never from a
    browser"; decisions "browser calls to the session endpoint".
    """
    marks = {"Origin": "https://app.example", "Sec-Fetch-Site": "same-origin"}

    answer = backend.call(headers=marks)

    assert (answer.status_code, answer.json()["code"]) == (403, "API_KEY_IN_BROWSER")
    assert backend.view().flag_reason == "browser"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://app.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Mode": "cors"},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_server_that_sends_one_mark_is_no_browser(
    backend: Backend, headers: dict[str, str]
) -> None:
    """HTTP libraries of servers send one mark or the other, never both."""
    assert backend.call(headers=headers).status_code == 200
    assert backend.view().flagged is None


def test_session_endpoint_answers_no_other_origin(backend: Backend) -> None:
    """A browser's question before the call gets no permission, nor does a GET.

    Source: decisions "CORS".
    """
    origin = {"Origin": "https://app.example"}
    with backend.appliance.client() as client:
        asked = client.options(
            f"{NEW}?id=demo",
            headers={
                **origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "x-api-key",
            },
        )
        got = client.get(f"{NEW}?id=demo", headers=origin)
    called = backend.call(headers=origin)

    for answer in (asked, got, called):
        names = [name.lower() for name in answer.headers]
        assert not any(name.startswith("access-control-") for name in names)
    assert got.status_code == 405


def test_key_stands_in_no_log_and_no_answer(backend: Backend) -> None:
    """Neither key nor token is logged; what is logged names the integrator's route.

    Source: spec "The API key must never be exposed to a frontend".
    """
    answer = backend.call()

    log = backend.appliance.log.read_text()
    assert NEW in log
    assert backend.key.secret not in log + answer.text
    assert answer.json()["tokenSession"] not in log


def test_two_api_key_headers_are_refused(backend: Backend) -> None:
    """Two keys are two meanings."""
    secret = backend.key.secret
    with backend.appliance.client() as client:
        answer = client.post(
            f"{NEW}?id=demo",
            headers=[("X-Api-Key", secret), ("X-Api-Key", secret)],
        )

    assert (answer.status_code, answer.json()["code"]) == (400, "BAD_HEADER")


def test_env_sealed(backend: Backend) -> None:
    """A PREPROD key and token are invalid on PROD, over the same record.

    Source: spec "Environments"; decisions "environments".
    """
    token = backend.call().json()["tokenSession"]
    with _prod_face(backend.appliance) as (url, settings_file):
        answer = httpx.post(
            f"{url}{NEW}",
            params={"id": "demo"},
            headers={"X-Api-Key": backend.key.secret},
            timeout=CALL_S,
        )
        made = subprocess.run(
            [*_PROD, settings_file, "integrator", "key", "create", "demo", "prod"],
            capture_output=True,
            text=True,
            check=True,
        )
        live = made.stdout.splitlines()[-1]
        there = httpx.post(
            f"{url}{NEW}",
            params={"id": "demo"},
            headers={"X-Api-Key": live},
            timeout=CALL_S,
        )

    problem(answer, 401, "API_KEY_ENVIRONMENT")
    assert there.status_code == 200
    assert live.startswith("rbk_live_")
    assert backend.call(key=live).status_code == 401
    page = backend.appliance.do(
        lambda front: front.sessions.page(there.json()["tokenSession"], None)
    )
    assert page.kind is PageKind.UNKNOWN
    assert token != there.json()["tokenSession"]


# PROD refuses the SQLite and the plain HTTP of this trial, and whatever root would
# make; they do here.
_PROGRAM = """\
import os, sys
from appliance.settings import root
root.contradictions = lambda settings: []
os.geteuid = lambda: 1
from appliance.cli import main
sys.exit(main())
"""
_PROD = (sys.executable, "-c", _PROGRAM, "--settings")


@contextmanager
def _prod_face(appliance: Appliance) -> Iterator[tuple[str, str]]:
    """An `api` role of PROD over the same record, on another port."""
    port = free_port()
    text = appliance.settings_file.read_text()
    old = appliance.base_url.rpartition(":")[2]
    text = text.replace("trial = true", 'environment = "PROD"')
    text = text.replace("[web]", "[web]\ntrusted_proxies = []")
    text = text.replace(f":{old}", f":{port}")
    settings_file = appliance.folder / "prod.toml"
    settings_file.write_text(text)
    process = subprocess.Popen(
        [*_PROD, str(settings_file), "serve", "api"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                httpx.get(f"{url}/healthz", timeout=CALL_S)
                break
            except httpx.TransportError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield url, str(settings_file)
    finally:
        process.terminate()
        process.wait(30)
        settings_file.unlink()


def test_operator_manages_keys_and_domains(appliance: Appliance) -> None:
    """The commands make, rotate, list and revoke; each change is in the audit."""
    run = appliance.rubrica
    made = run("integrator", "key", "create", "demo", "consola", "--days", "30")
    key_id, secret = _key_of(made.stdout)
    rotated = run("integrator", "key", "rotate", key_id, "--overlap", "1")
    successor, _ = _key_of(rotated.stdout)
    assert httpx.post(
        f"{appliance.base_url}{NEW}?id=demo",
        headers={"X-Api-Key": secret},
        timeout=CALL_S,
    ).is_success
    revoked = run("integrator", "key", "revoke", key_id)
    assert "1 unfinished sessions ended" in revoked.stdout
    listed = run("integrator", "key", "list", "demo").stdout
    states = {line.split()[0]: line for line in listed.splitlines()[1:]}
    assert " over " in states[key_id]
    assert " works " in states[successor]
    assert secret not in listed

    origin = "https://comandos.example"
    assert run("integrator", "domain", "add", "demo", origin).returncode == 0
    bad = run("integrator", "domain", "add", "demo", "https://*.example")
    assert bad.returncode == 1
    assert "DOMAIN_INVALID" in bad.stderr
    assert "wildcards are not allowed" in bad.stderr
    assert origin in run("integrator", "domain", "list", "demo").stdout
    assert run("integrator", "domain", "remove", "demo", origin).returncode == 0
    assert origin not in run("integrator", "domain", "list", "demo").stdout


def _key_of(output: str) -> tuple[str, str]:
    """Id and text of a key that a command showed."""
    match = re.search(r"key (\w{12}); .*\n(rbk_test_\w+)", output)
    assert match is not None, output
    return match[1], match[2]


def test_answer_is_plain_json_for_any_client(backend: Backend) -> None:
    """A client that knows the spec alone reads `tokenSession` and no more."""
    answer = backend.call(headers={"Accept": "*/*"})

    assert isinstance(json.loads(answer.content)["tokenSession"], str)


def test_operator_sets_the_prefix_of_an_integrators_messages(
    appliance: Appliance,
) -> None:
    """Its own, and without one the installation's again."""
    run = appliance.rubrica
    run("integrator", "create", "prefijo", "Prefijo S.A.")

    own = run("integrator", "prefix", "prefijo", "firma-sur").stdout
    listed = run("integrator", "list").stdout
    asked = run("integrator", "prefix", "prefijo").stdout
    usual = run("integrator", "prefix", "prefijo", "--default").stdout

    assert own == asked == "prefix firma-sur\n"
    (line,) = [line for line in listed.splitlines() if line.startswith("prefijo ")]
    assert line.split()[-1] == "firma-sur"
    assert usual == "prefix svc (the installation's)\n"
