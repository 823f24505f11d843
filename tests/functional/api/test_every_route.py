"""What holds for every address of the running API."""

import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from appliance.api.app import create_api
from appliance.bootstrap import ServiceRegistry
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import ORIGIN, head, problem, raw
from tests.support.patience import CALL_S

PKI = {
    "/pki/root.cer",
    "/pki/ca.cer",
    "/pki/root.crl",
    "/pki/ca.crl",
}
PUBLIC = {
    "/auth/login",
    "/auth/otp",
    "/healthz",
    "/readyz",
    "/.well-known/jwks.json",
    "/api/integration/session/new",
    "/alta/7",
    "/alta/7/guardado",
    "/",
    "/verificar",
    "/revocar",
    "/ayuda",
    "/ayuda/retirar/7",
    "/verificar/7",
    "/static/7",
    "/docs",
    "/docs/7/",
    "/docs/7/7",
    "/docs/files/7",
    "/docs/openapi.json",
    "/sdk/",
    "/sdk/7",
    "/sdk/7/7",
    *PKI,
    "/pki/ocsp",
    "/pki/ocsp/7",
    "/tsa",
}
CACHED = {"/.well-known/jwks.json", "/docs/openapi.json", "/sdk/", *PKI}
"""What caches may keep."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
POLICY = "default-src 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
Route = tuple[str, frozenset[str]]


@pytest.fixture(scope="module")
def routes(appliance: Appliance) -> list[Route]:
    """Every address of the URL map with its methods, numbers filled in."""

    async def walk(front: ServiceRegistry) -> list[Route]:
        found: dict[str, set[str]] = {}
        for rule in create_api(front).url_map.iter_rules():
            path = re.sub(r"<[^>]+>", "7", rule.rule)
            found.setdefault(path, set()).update(rule.methods or ())
        return [(path, frozenset(methods)) for path, methods in found.items()]

    return appliance.do(walk)


@pytest.fixture
def anyone(appliance: Appliance) -> Iterator[httpx.Client]:
    """A client that is not signed in."""
    with appliance.client() as opened:
        yield opened


def test_every_route_but_the_public_ones_wants_a_bearer(
    anyone: httpx.Client, routes: list[Route]
) -> None:
    """A walk over the URL map: closed unless it is one of these."""
    seen = {
        (path, method): anyone.request(method, path).status_code
        for path, methods in routes
        for method in methods - {"OPTIONS"}
        if path not in PUBLIC
    }

    assert len(seen) >= 10
    assert set(seen.values()) == {401}
    assert {path for path, _ in routes} >= PUBLIC


def test_every_answer_is_hardened(
    anyone: httpx.Client, client: httpx.Client, routes: list[Route]
) -> None:
    """Security headers and a request id, whatever the answer, signed in or not."""
    paths = [path for path, _ in routes]
    for path in [*paths, "/", "/nada", "/solicitudes/", "/solicitudes/999999"]:
        for method in ("GET", "POST", "OPTIONS", "TRACE"):
            for caller in (anyone, client):
                answer = caller.request(method, path)

                for name, value in HEADERS.items():
                    assert answer.headers[name] == value
                page = answer.headers.get("Content-Type", "").startswith("text/html")
                policy = PAGE_POLICY if page else POLICY
                assert answer.headers["Content-Security-Policy"] == policy
                assert len(answer.headers["X-Request-Id"]) == 24
                assert "Server" not in answer.headers
                assert "Set-Cookie" not in answer.headers
                cached = path in CACHED and answer.status_code == 200
                assert ("no-store" not in answer.headers["Cache-Control"]) == cached


@pytest.mark.parametrize("method", ["TRACE", "DELETE", "PUT", "PATCH", "BREW", "get"])
def test_method_that_an_address_lacks(
    client: httpx.Client, routes: list[Route], method: str
) -> None:
    """405 in our shape, saying what is allowed; a TRACE echoes nothing."""
    for path, methods in routes:
        answer = client.request(method, path, headers={"X-Echo": "echo-me"})
        if method.upper() in methods:
            # HTTP methods are case-sensitive; the server reads `get` as `GET`.
            continue
        told = problem(answer, 405, "METHOD_NOT_ALLOWED")
        assert told["allowed"] == sorted(methods)
        assert set(answer.headers["Allow"].split(", ")) == set(methods)
        assert "echo-me" not in answer.text


def test_head_is_get_without_its_body(client: httpx.Client) -> None:
    """The same headers, no body."""
    got, headed = client.get("/solicitudes"), client.head("/solicitudes")

    assert headed.status_code == got.status_code == 200
    assert headed.content == b""
    assert headed.headers["Content-Type"] == got.headers["Content-Type"]
    assert headed.headers["Content-Length"] == got.headers["Content-Length"]


def test_options_says_what_an_address_does(
    anyone: httpx.Client, routes: list[Route]
) -> None:
    """Without a bearer, and without a word on anybody."""
    for path, methods in routes:
        answer = anyone.options(path)

        assert (answer.status_code, answer.content) == (204, b"")
        assert set(answer.headers["Allow"].split(", ")) == set(methods)


def test_connection_is_kept_for_the_next_call(appliance: Appliance) -> None:
    """Two calls in a row on one connection are both answered, refusals too."""
    one = head(appliance, "GET /solicitudes HTTP/1.1")

    answers = raw(appliance, one + one)

    assert [answer.status for answer in answers] == [401, 401]


def test_no_cors_without_a_listed_origin(anyone: httpx.Client) -> None:
    """An appliance that lists nobody lets no page call."""
    answer = anyone.get("/solicitudes", headers={"Origin": ORIGIN})

    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_listed_origin_may_call(
    limited_appliance: Appliance, limited_signer: TestPerson
) -> None:
    """A preflight without a bearer, then the call, with what the page may read.

    Source: decisions "CORS".
    """
    preflight = httpx.options(
        f"{limited_appliance.base_url}/solicitudes/firmar",
        headers={
            "Origin": ORIGIN,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, content-type, if-match",
        },
        timeout=CALL_S,
    )
    with limited_appliance.client(limited_signer) as client:
        call = client.get("/solicitudes", headers={"Origin": ORIGIN})

    assert preflight.status_code == 204
    allowed = preflight.headers["Access-Control-Allow-Headers"].lower()
    for name in ("authorization", "content-type", "if-match", "idempotency-key"):
        assert name in allowed
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    for answer in (preflight, call):
        assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert "Origin" in answer.headers["Vary"]
        assert "Access-Control-Allow-Credentials" not in answer.headers
    assert "Link" in call.headers["Access-Control-Expose-Headers"]


def test_listed_origin_reads_errors_too(limited_appliance: Appliance) -> None:
    """A refusal, of us or of the framework, is readable where the call is."""
    for path in ("/solicitudes", "/solicitudes/7", "/auth/login", "/solicitudes/x"):
        answer = httpx.get(
            f"{limited_appliance.base_url}{path}",
            headers={"Origin": ORIGIN},
            timeout=CALL_S,
        )

        assert answer.status_code in {401, 404, 405}
        assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", f"{ORIGIN}.evil.example", f"{ORIGIN}:443", "null", "*"],
)
def test_other_origin_gets_nothing(limited_appliance: Appliance, origin: str) -> None:
    """An origin is listed exactly or not at all."""
    headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    url = f"{limited_appliance.base_url}/solicitudes/firmar"

    for answer in (
        httpx.options(url, headers=headers, timeout=CALL_S),
        httpx.get(url, timeout=CALL_S),
    ):
        names = [name for name in answer.headers if name.startswith("access-control")]
        assert names == []


def test_no_cors_outside_its_addresses(limited_appliance: Appliance) -> None:
    """Keys and health are no business of other origins' pages."""
    for path in ("/healthz", "/readyz", "/.well-known/jwks.json"):
        answer = httpx.get(
            f"{limited_appliance.base_url}{path}",
            headers={"Origin": ORIGIN},
            timeout=CALL_S,
        )

        assert answer.status_code == 200
        assert "Access-Control-Allow-Origin" not in answer.headers


def test_readiness_names_every_part(anyone: httpx.Client) -> None:
    """`/healthz` and `/readyz` answer anybody, without a detail of anything."""
    assert anyone.get("/healthz").json() == {"status": "ok"}
    ready = anyone.get("/readyz").json()

    assert ready["status"] == "ok"
    assert len(ready["checks"]) >= 3
    assert set(ready["checks"].values()) == {"ok"}


def test_listener_is_on_its_address_alone(appliance: Appliance) -> None:
    """It listens where the settings say, and on no other address of the machine."""
    port = urlsplit(appliance.base_url).port
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", port or 0), timeout=2).close()
