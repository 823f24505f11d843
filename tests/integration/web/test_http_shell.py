"""What holds for every route: closed by default, strict, hardened, logged."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from quart import Quart
from quart.testing.utils import sentinel
from quart.typing import TestClientProtocol as Client
from quart.typing import TestHTTPConnectionProtocol as Connection
from structlog.testing import capture_logs

from appliance.web import auth, request_log
from tests.support.factories.fakes import request_view
from tests.support.installation.api import (
    CUIL,
    ORIGIN,
    ApiServices,
    create_api,
    shorten_body_timeout,
)
from tests.support.installation.installation import Installation

PUBLIC = {
    "auth.login",
    "auth.otp",
    "ayuda.ask",
    "ayuda.withdraw",
    "developer_docs.choose_language",
    "developer_docs.file",
    "developer_docs.index",
    "developer_docs.page",
    "enrolment.enrol",
    "enrolment.keep",
    "files.static_file",
    "home.find",
    "home.home",
    "openapi.show",
    "pki.ca_certificate",
    "pki.ca_crl",
    "pki.ocsp_get",
    "pki.ocsp_post",
    "pki.root_certificate",
    "pki.root_crl",
    "public.healthz",
    "public.jwks",
    "public.readyz",
    "revocar.revoke",
    "sdk.file",
    "sdk.file_of_version",
    "sdk.listing",
    "sessions.new_session",
    "solicitudes.download_signed",
    "tsa.stamp",
    "verificar.verify",
}
BACKENDS = "integration_"
"""How the names of routes for integrators' backends begin."""
PAGES = ("/alta/", "/ayuda", "/docs/", "/revocar", "/static/", "/verificar/")
JSON = {"Content-Type": "application/json"}
LOGIN = {"usuario": CUIL, "password": "no es"}


@pytest.fixture
def app(api_services: ApiServices) -> Quart:
    """The REST API."""
    return create_api(api_services)


@pytest.fixture
def client(app: Quart) -> Client:
    """A client without cookies."""
    return app.test_client(use_cookies=False)


@pytest.fixture
def hasty_client(app: Quart, client: Client) -> Client:
    """The same, of a face that hardly waits for a body."""
    shorten_body_timeout(app)
    return client


def address(rule: str) -> str:
    """An address that a rule answers."""
    return re.sub(r"<[^>]+>", "7", rule)


def test_public_routes_are_exactly_these(app: Quart) -> None:
    """Being public is an explicit mark, and this is who has it."""
    marked = {
        rule.endpoint
        for rule in app.url_map.iter_rules()
        if auth.is_public(app.view_functions[rule.endpoint])
    }

    assert {name for name in marked if not name.startswith(BACKENDS)} == PUBLIC


async def test_routes_of_backends_demand_a_key(app: Quart, client: Client) -> None:
    """They have another credential than a bearer: without it 401 all the same."""
    seen = set()
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith(BACKENDS):
            assert auth.is_public(app.view_functions[rule.endpoint])
            for method in (rule.methods or set()) - {"OPTIONS", "HEAD"}:
                answer = await client.open(
                    address(rule.rule), method=method, json=sentinel
                )
                seen.add((answer.status_code, (await answer.get_json())["code"]))

    assert seen == {(401, "API_KEY_MISSING")}


async def test_every_other_route_demands_bearer(app: Quart, client: Client) -> None:
    """A walk over the URL map: without a bearer 401, whatever the method."""
    seen = {}
    for rule in app.url_map.iter_rules():
        if rule.endpoint in PUBLIC - {"solicitudes.download_signed"}:
            continue
        for method in (rule.methods or set()) - {"OPTIONS"}:
            response = await client.open(
                address(rule.rule), method=method, json=sentinel
            )
            seen[method, rule.rule] = response.status_code

    assert len(seen) >= 10
    assert set(seen.values()) == {401}


async def test_every_answer_hardened(app: Quart, client: Client) -> None:
    """Security headers and request id are on every answer, errors included."""
    paths = [address(rule.rule) for rule in app.url_map.iter_rules()]
    for path in [*paths, "/nada", "/solicitudes/"]:
        headers = (await client.get(path)).headers

        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        policy = headers["Content-Security-Policy"].split("; ")
        assert {"default-src 'none'", "frame-ancestors 'none'"} <= {*policy}
        assert path.startswith(PAGES) or len(policy) == 2
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Strict-Transport-Security"].startswith("max-age=")
        kept = {"no-store", "public, max-age=300"}
        assert headers["Cache-Control"] in (
            kept | {"no-cache"} if path == "/sdk/" else kept
        )
        assert len(headers["X-Request-Id"]) == 24
        assert "Server" not in headers
        assert "Set-Cookie" not in headers


async def problem(response: Any, status: int, code: str) -> dict[str, Any]:
    """Check an error's shape, and give its members."""
    members: dict[str, Any] = json.loads(await response.get_data())
    assert (response.status_code, members["code"]) == (status, code)
    assert response.headers["Content-Type"] == "application/problem+json"
    assert members["status"] == status
    assert members["requestId"] == response.headers["X-Request-Id"]
    assert members.keys() >= {"type", "title", "detail", "category"}
    return members


@pytest.mark.parametrize("header", [None, "", " ", "Bearer", "Bearer ", "Basic YTpi"])
async def test_bearer_missing(client: Client, header: str | None) -> None:
    """No bearer at all is told apart from a bad one."""
    headers = {} if header is None else {"Authorization": header}

    response = await client.get("/solicitudes", headers=headers)

    members = await problem(response, 401, "TOKEN_MISSING")
    assert members["category"] == "new_session"
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="rubrica"'


@pytest.mark.parametrize("token", ["x", "a.b.c", "A" * 9000])
async def test_bearer_invalid(client: Client, token: str) -> None:
    """A bad bearer is a bad bearer, however long."""
    headers = {"Authorization": f"Bearer {token}"}

    response = await client.get("/solicitudes", headers=headers)

    await problem(response, 401, "TOKEN_INVALID")


async def test_expired_bearer_told(api_services: ApiServices, client: Client) -> None:
    """An expired bearer has a code of its own."""
    person, _ = await api_services.add_person()
    headers = await api_services.bearer(person)
    api_services.clock.forward(900)

    response = await client.get("/solicitudes", headers=headers)

    await problem(response, 401, "TOKEN_EXPIRED")


@pytest.mark.parametrize(
    "name", ["Authorization", "Content-Type", "If-Match", "Idempotency-Key"]
)
async def test_repeated_header_refused(
    api_services: ApiServices, client: Client, name: str
) -> None:
    """Two headers of one kind are two meanings."""
    from werkzeug.datastructures import Headers  # noqa: PLC0415 (only here)

    person, _ = await api_services.add_person()
    headers = Headers(list((await api_services.bearer(person)).items()))
    headers.add(name, "a")
    if name != "Authorization":
        headers.add(name, "b")

    response = await client.get("/solicitudes", headers=headers)

    told = await problem(response, 400, "BAD_HEADER")
    assert (told["field"], name in str(told["detail"])) == (name, True)


async def test_length_and_coding_together_refused(client: Client) -> None:
    """A body with two lengths is refused."""
    headers = {**JSON, "Transfer-Encoding": "chunked", "Content-Length": "2"}

    response = await client.post("/auth/login", headers=headers, data=b"{}")

    await problem(response, 400, "BAD_HEADER")


async def test_too_many_headers_refused(client: Client) -> None:
    """More than a hundred headers are refused, and not one less."""
    # The test client has two of its own.
    headers = {f"X-{number}": "1" for number in range(98)}

    assert (await client.get("/healthz", headers=headers)).status_code == 200
    response = await client.get("/healthz", headers={**headers, "X-More": "1"})
    assert "100" in str((await problem(response, 400, "BAD_HEADER"))["detail"])


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nada", 404, "NOT_FOUND"),
        ("GET", "/solicitudes/", 404, "NOT_FOUND"),
        ("GET", "/solicitudes/abc", 404, "NOT_FOUND"),
        ("GET", "/static/app.js", 404, "NOT_FOUND"),
        ("DELETE", "/solicitudes", 405, "METHOD_NOT_ALLOWED"),
        ("TRACE", "/solicitudes", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/solicitudes/firmar", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/auth/login", 405, "METHOD_NOT_ALLOWED"),
    ],
)
async def test_unknown_address_or_method(
    client: Client, method: str, path: str, status: int, code: str
) -> None:
    """The framework's own refusals have our shape, and 405 says what is allowed."""
    response = await client.open(path, method=method, json=sentinel)

    await problem(response, status, code)
    assert ("Allow" in response.headers) == (status == 405)


BODIES: dict[str, tuple[dict[str, str], bytes, int, str]] = {
    "text": ({"Content-Type": "text/plain"}, b"{}", 415, "CONTENT_TYPE"),
    "form": (
        {"Content-Type": "application/x-www-form-urlencoded"},
        b"a=b",
        415,
        "CONTENT_TYPE",
    ),
    "no_type": ({"Content-Type": ""}, b"{}", 415, "CONTENT_TYPE"),
    "latin1": (
        {"Content-Type": "application/json; charset=latin-1"},
        b"{}",
        415,
        "CONTENT_TYPE",
    ),
    "gzip": ({**JSON, "Content-Encoding": "gzip"}, b"{}", 415, "CONTENT_TYPE"),
    "empty": (JSON, b"", 400, "BODY_NOT_OBJECT"),
    "blank": (JSON, b" \n", 400, "BODY_NOT_OBJECT"),
    "array": (JSON, b"[1]", 400, "BODY_NOT_OBJECT"),
    "text_value": (JSON, b'"x"', 400, "BODY_NOT_OBJECT"),
    "null": (JSON, b"null", 400, "BODY_NOT_OBJECT"),
    "malformed": (JSON, b'{"usuario":', 400, "JSON_INVALID"),
    "bad_utf8": (JSON, b'{"usuario":"\xff"}', 400, "JSON_INVALID"),
    "nan": (JSON, b'{"usuario":NaN}', 400, "JSON_INVALID"),
    "twice": (JSON, b'{"usuario":"a","usuario":"b"}', 400, "JSON_INVALID"),
    "deep": (JSON, b"[" * 2000, 400, "JSON_INVALID"),
    "unknown": (JSON, b'{"user":"a"}', 400, "FIELD_UNKNOWN"),
    "missing": (JSON, b"{}", 400, "FIELD_MISSING"),
    "declared_large": (
        {**JSON, "Content-Length": "99999999"},
        b"{}",
        413,
        "BODY_TOO_LARGE",
    ),
    "large": (JSON, b"x" * 4097, 413, "BODY_TOO_LARGE"),
}


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"), BODIES.values(), ids=BODIES.keys()
)
async def test_body_refused(
    client: Client,
    headers: dict[str, str],
    body: bytes,
    status: int,
    code: str,
) -> None:
    """Every bad body has its answer, and none is a 500."""
    response = await client.post("/auth/login", headers=headers, data=body)

    await problem(response, status, code)


async def test_body_accepted_at_its_limit(client: Client) -> None:
    """A body of exactly the limit is read."""
    body = json.dumps(LOGIN).encode().ljust(4096)

    response = await client.post("/auth/login", headers=JSON, data=body)

    await problem(response, 401, "LOGIN_FAILED")


async def test_body_refused_when_streamed_beyond_limit(
    client: Client,
) -> None:
    """Without a declared length the limit holds while the body arrives."""
    async with client.request("/auth/login", method="POST", headers=JSON) as sent:
        for _ in range(5):
            await sent.send(b" " * 1000)

    await problem(await sent.as_response(), 413, "BODY_TOO_LARGE")


async def test_body_refused_when_it_stalls(hasty_client: Client) -> None:
    """A body that stops arriving is not waited for."""
    async with hasty_client.request("/auth/login", method="POST", headers=JSON) as sent:
        await sent.send(b'{"usuario":')

    await problem(await sent.as_response(), 408, "BODY_TIMEOUT")


async def trickle(sent: Connection) -> None:
    """Send a little of a body again and again."""
    while True:
        await sent.send(b" " * 32)
        await asyncio.sleep(0.02)


async def test_body_refused_when_it_trickles(hasty_client: Client) -> None:
    """The time counts for the whole body, not for each piece."""
    async with hasty_client.request("/auth/login", method="POST", headers=JSON) as sent:
        coming = asyncio.create_task(trickle(sent))
    coming.cancel()

    await problem(await sent.as_response(), 408, "BODY_TIMEOUT")


@pytest.mark.parametrize(
    ("accepted", "said"),
    [
        (None, "No hay nada en esta dirección."),
        ("es-AR,es;q=0.9", "No hay nada en esta dirección."),
        ("en-US,en;q=0.9", "There is nothing at this address."),
        ("fr", "No hay nada en esta dirección."),
        ("fr,en;q=0.1", "There is nothing at this address."),
        ("*", "No hay nada en esta dirección."),
        (";;;q=,\x7f", "No hay nada en esta dirección."),
    ],
)
async def test_error_told_in_language_asked_for(
    client: Client, accepted: str | None, said: str
) -> None:
    """Spanish unless English is asked for."""
    headers = {} if accepted is None else {"Accept-Language": accepted}

    response = await client.get("/nada", headers=headers)

    assert (await problem(response, 404, "NOT_FOUND"))["detail"] == said


async def test_unknown_error_is_silent(
    api_services: ApiServices, client: Client
) -> None:
    """An unknown error says nothing but the id under which the log knows it."""
    person, _ = await api_services.add_person()
    api_services.requests.failure = RuntimeError("secreto")

    with capture_logs() as logs:
        response = await client.get(
            "/solicitudes", headers=await api_services.bearer(person)
        )

    members = await problem(response, 500, "INTERNAL")
    assert "secreto" not in json.dumps(members)
    fault = next(entry for entry in logs if entry["event"] == "unknown_error")
    assert {entry["log_level"] for entry in logs} == {"error"}
    assert fault["requestId"] == members["requestId"]
    assert "RuntimeError" in fault["trace"]
    assert "secreto" not in repr(logs)


async def test_one_event_a_request_of_listed_fields(
    api_services: ApiServices, client: Client
) -> None:
    """One wide event, without query string, path or token."""
    person, _ = await api_services.add_person()
    api_services.requests.views = [request_view(7, person)]
    headers = await api_services.bearer(person)

    with capture_logs() as logs:
        await client.get("/solicitudes/7/documento?clave=SECRETO", headers=headers)

    (event,) = [entry for entry in logs if entry["event"] == "request"]
    assert event.keys() - {"event", "log_level"} <= request_log.FIELDS
    assert event["route"] == "/solicitudes/<digits:solicitud>/documento"
    assert (event["status"], event["code"]) == (409, "NOT_SIGNED_YET")
    assert (event["person"], event["solicitudId"]) == (person, 7)
    assert "SECRETO" not in repr(logs)
    assert headers["Authorization"].split()[1] not in repr(logs)


async def test_probe_that_finds_all_well_is_no_news(client: Client) -> None:
    """Whoever watches asks every few seconds: its line is for who looks for it."""
    with capture_logs() as logs:
        await client.get("/healthz")
        await client.get("/clave")

    assert [(each["route"], each["log_level"]) for each in logs] == [
        ("/healthz", "debug"),
        ("(none)", "info"),
    ]


async def test_event_of_unknown_address_says_no_path(
    client: Client,
) -> None:
    """A path that nobody knows is not logged: it may hold anything."""
    with capture_logs() as logs:
        await client.get("/clave/SECRETO")

    assert [entry["route"] for entry in logs] == ["(none)"]


async def test_preflight_answered_for_listed_origin(
    client: Client,
) -> None:
    """A listed origin may call with a bearer, never with credentials."""
    headers = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }

    response = await client.options("/solicitudes/firmar", headers=headers)

    assert response.status_code == 204
    assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert "POST" in response.headers["Access-Control-Allow-Methods"]
    for name in ("Authorization", "Content-Type", "If-Match", "Idempotency-Key"):
        assert name in response.headers["Access-Control-Allow-Headers"]
    assert "Access-Control-Allow-Credentials" not in response.headers
    assert "Origin" in response.headers["Vary"]


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", f"{ORIGIN}.evil.example", f"{ORIGIN}/", "null", "*"],
)
async def test_other_origin_gets_nothing(client: Client, origin: str) -> None:
    """An origin is listed exactly or not at all."""
    headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}

    for response in (
        await client.options("/solicitudes/firmar", headers=headers),
        await client.get("/solicitudes", headers=headers),
    ):
        assert not [
            name for name in dict(response.headers) if name.startswith("Access-")
        ]


async def test_cors_on_errors_and_exposed_headers(client: Client) -> None:
    """A page can read an error, and the headers that it needs."""
    response = await client.get("/solicitudes", headers={"Origin": ORIGIN})

    assert response.status_code == 401
    assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
    for name in ("Location", "Link", "Retry-After", "X-Request-Id", "ETag"):
        assert name in response.headers["Access-Control-Expose-Headers"]


async def test_no_cors_outside_its_paths(client: Client) -> None:
    """Health and keys are no business of other origins' pages."""
    for path in ("/healthz", "/readyz", "/.well-known/jwks.json"):
        headers = (await client.get(path, headers={"Origin": ORIGIN})).headers

        assert "Access-Control-Allow-Origin" not in headers


async def test_plain_http_tells_no_hsts(tmp_path: Path) -> None:
    """A trial over http must not pin https."""
    async with Installation(
        tmp_path, web={"base_url": "http://127.0.0.1:8080"}
    ).api() as api_services:
        response = await create_api(api_services).test_client().get("/healthz")

    assert "Strict-Transport-Security" not in response.headers


async def test_websocket_refused(app: Quart) -> None:
    """A WebSocket handshake is closed, to a known address too."""
    scope: Any = {
        "type": "websocket",
        "asgi": {"version": "3.0"},
        "path": "/solicitudes",
        "query_string": b"",
        "headers": [],
        "subprotocols": [],
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)

    assert [message["type"] for message in sent] == ["websocket.close"]
