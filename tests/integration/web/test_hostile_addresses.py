"""Texts that look like addresses and are none, wherever one comes in: never a 500."""

import asyncio
import http.client
import socket
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

import pytest
from quart import Quart

from admin_ui.session import COOKIE
from appliance.domain.text.urls import read_address
from appliance.settings import RevocationSettings
from appliance.settings.pki import ExternalTsaSettings
from appliance.settings.web import WebSettings
from appliance.system.http_client import BadAnswerError
from tests.support.browsers.demo_site import running_demo_site
from tests.support.installation.api import ApiServices, create_api
from tests.support.installation.console import NAME, PASSWORD, Console
from tests.support.installation.frame import Frame
from tests.support.installation.installation import Installation
from worker.network.guarded_http import GuardedHttp, host_of

pytestmark = pytest.mark.full

HOSTILE = [
    "http://[",
    "http://a]b/",
    "//[",
    "http://℀.com",
    "http://[1.2.3.4]/",
    "http://[::1",
    "http://[v1.]/",
    "http://[fe80::1%25]/",
    "http://host:99999/",
    "http://host:x/",
    "http://host:-1/",
    "http://:@/",
    "[",
    "http://a@[/",
    "https://" + "[" * 300,
    "http://xn--",
    "/admin/ñandú?q=ó€¾",
    "/admin/[",
    "/admin//[",
    "//",
    "\\\\[",
    "://",
    "http:///x",
]
IN_HEADERS = [text.encode().decode("latin-1") for text in HOSTILE]
"""As a server hands over the bytes of a header."""
HEADERS = ("Host", "Origin", "Referer", "X-Forwarded-For", "Forwarded")
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console on a fresh database."""
    async with Installation(tmp_path).console() as made:
        yield made


@pytest.mark.parametrize("text", HOSTILE)
def test_helper_reads_or_gives_nothing(text: str) -> None:
    """Whatever came, nothing is raised, then or later."""
    parts = read_address(text)

    assert parts is None or (parts.hostname, parts.port) is not None


async def test_sign_in_ends_well_wherever_it_was_to_lead(console: Console) -> None:
    """A right sign-in opens its session and leads into the console."""
    for text in HOSTILE:
        console.cookies.clear()
        shown = await console.get(f"/admin/login?{urlencode({'next': text})}")
        fields = {"name": NAME, "password": PASSWORD, "code": console.code()}
        answer = await console.send_form("/admin/login", {**fields, "next": text})

        assert (shown.status, answer.status) == (200, 303), text
        assert answer.location.startswith("/admin/"), text
        assert answer.location.isascii(), text
        assert COOKIE in console.cookies, text
        assert (await console.get(answer.location)).status in {200, 303, 404}, text


async def test_choice_of_language_leads_into_the_console(console: Console) -> None:
    """Where the form says to go back to is nobody's word."""
    for text in HOSTILE:
        answer = await console.send_form(
            "/admin/language", {"lang": "en", "back": text}
        )

        assert answer.status == 303, text
        assert answer.location.startswith("/admin/"), text
        assert answer.location.isascii(), text


async def test_code_that_is_no_address_is_told_kindly(
    api_services: ApiServices,
) -> None:
    """The public form takes addresses, for people copy them."""
    client = create_api(api_services).test_client()
    for text in HOSTILE:
        answer = await client.get(
            "/verificar", query_string={"codigo": text}, headers=BROWSER
        )

        assert answer.status_code == 422, text


async def test_page_of_the_frame_comes_whatever_frames_it(frame: Frame) -> None:
    """The Referer is noted where it says something, and nothing else hangs on it."""
    token = await frame.services.token()
    for text in IN_HEADERS:
        headers = {"Referer": text, "Sec-Fetch-Dest": "iframe", "Origin": text}
        answer = await frame.page(token, **headers)

        assert answer.status_code == 200, text


@pytest.mark.parametrize("name", HEADERS)
async def test_headers_with_an_address_make_no_fault_of_ours(
    api_services: ApiServices, frame: Frame, console: Console, name: str
) -> None:
    """Host, Origin, Referer and what proxies say, on every face."""
    faces: list[tuple[Quart, tuple[str, ...]]] = [
        (create_api(api_services), ("/", "/verificar", "/solicitudes", "/no")),
        (frame.app, ("/embed/", "/embed/api/init", "/no")),
        (console.app, ("/admin/", "/admin/login", "/admin/language", "/no")),
    ]
    for app, paths in faces:
        client = app.test_client(use_cookies=False)
        for path, method, text in product(paths, ("GET", "POST"), IN_HEADERS[:9]):
            headers = {**BROWSER, name: text}
            answer = await client.open(path, method=method, headers=headers, json=None)
            assert answer.status_code < 500, (path, method, text)


@pytest.fixture
def faces(
    api_services: ApiServices, frame: Frame, console: Console
) -> list[tuple[Quart, str]]:
    """Each face with a page of its own that anybody may ask for."""
    return [
        (create_api(api_services), "/healthz"),
        (frame.app, "/healthz"),
        (console.app, "/admin/login"),
    ]


MALFORMED = (
    *("a" * 64, f"{'a' * 64}.example", "....", "a..b", ".a", "-a.b", "a-.b", "a b"),
    *("a/b", "a@b", "a:b", "a:80:80", "a:123456", "[::1", "::1", "[]", "[g::]", "ñ"),
    *("a\x1bb", "a,b", ".".join(["a" * 60] * 5)),
)
RIGHT = ("", "a", "A.example", "a.example.", "a_b-c.example:8443", "a:", "127.0.0.1:1")


async def test_host_that_is_no_name_is_refused_kindly(
    faces: list[tuple[Quart, str]],
) -> None:
    """On every face, whatever the path; a name or an address is taken."""
    for app, path in faces:
        for host, where in product(MALFORMED, (path, "/no")):
            assert await status_of(app, where, host) == 400, (host, where)
        for host in (*RIGHT, "[::1]:8080"):
            assert await status_of(app, path, host) == 200, host


async def test_path_with_two_slashes_is_another_one(
    faces: list[tuple[Quart, str]],
) -> None:
    """A proxy's rule for the path with one slash does not see it."""
    for app, path in faces:
        for other in (f"/{path}", f"//{path}", f"/%2f{path[1:]}"):
            assert await status_of(app, other, "a") == 404, other


async def status_of(app: Quart, path: str, host: str) -> int:
    """What a call ends with, by its bytes: no client makes anything of them."""
    raw, sent, came = path.encode(), list[dict[str, object]](), list[str]()

    async def receive() -> Any:
        if came:
            await asyncio.Event().wait()
        came.append(path)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: Any = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": raw,
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", host.encode())],
        "client": ("192.0.2.1", 1),
        "server": ("192.0.2.2", 80),
        "extensions": {},
    }
    await app(scope, receive, send)
    return int(str(sent[0]["status"]))


@pytest.mark.parametrize("text", ["http://[", "//[", "http://a]b/"])
def test_demo_site_answers_a_strange_target(tmp_path: Path, text: str) -> None:
    """The whole target of a call is somebody's word, as are Host and Origin."""
    with running_demo_site(tmp_path) as running:
        where = urlsplit(running.url)
        own = f"{where.hostname}:{where.port}"
        for method, host in (("GET", own), ("POST", own), ("GET", text)):
            with socket.create_connection((str(where.hostname), where.port)) as line:
                line.sendall(
                    f"{method} {text} HTTP/1.1\r\nHost: {host}\r\n"
                    f"Origin: {running.url.rstrip('/')}\r\n\r\n".encode()
                )
                answer = http.client.HTTPResponse(line)
                answer.begin()
                assert answer.status in {404, 421}


@pytest.mark.parametrize("text", ["http://[", "http://a]b/", "http://host:99999/"])
async def test_address_of_a_certificate_leads_nowhere(text: str) -> None:
    """CRL and OCSP addresses stand in certificates that somebody else made."""
    caller = GuardedHttp(RevocationSettings())

    with pytest.raises(BadAnswerError):
        await caller.get(text, 100)

    assert host_of(text) == "(none)"


@pytest.mark.parametrize("name", ["base_url", "web_url"])
def test_settings_name_what_is_no_address(name: str) -> None:
    """In words, when they are read."""
    with pytest.raises(ValueError, match="is no address"):
        WebSettings.model_validate({name: "http://["})
    with pytest.raises(ValueError, match="is no address"):
        WebSettings.model_validate({"admin_url": "http://host:99999"})
    with pytest.raises(ValueError, match="is no address"):
        ExternalTsaSettings.model_validate({"url": "http://[/"})
