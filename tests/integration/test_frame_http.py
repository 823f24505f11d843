"""The embed role over HTTP: pages and their headers, files, the same-origin API.

Source: research "Iframe: security headers"; decisions "Iframe".
"""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from quart import Quart, Response
from quart import typing as quart_typing

from appliance.bootstrap import Front
from appliance.web.auth import is_public
from embed.api import LATE
from embed.app import create_embed
from embed.assets import Assets, load_assets
from tests.parts.frame_desk import CODE, FrameDesk, open_frame_desk

ORIGINS = ("https://app.example", "https://otra.example:8443")
PDF = b"%PDF one"
SECURITY = {
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


@pytest.fixture(scope="session")
def assets() -> Assets:
    """The page's files, read once."""
    return load_assets()


@dataclass
class Frame:
    """The role and its services."""

    desk: FrameDesk
    app: Quart
    client: quart_typing.TestClientProtocol

    async def page(self, token: str, **headers: str) -> Response:
        """The frame's page for a token."""
        return await self.client.get(f"/embed/?sessionToken={token}", headers=headers)

    async def call(
        self, path: str, bearer: str = "", body: Any = None, **more: Any
    ) -> Response:
        """Call the API."""
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        headers |= more.pop("headers", {})
        if body is not None:
            more["json"] = body
        method = "POST" if body is not None or "data" in more else "GET"
        return await self.client.open(
            f"/embed/api/{path}", method=method, headers=headers, **more
        )

    async def opened(self) -> tuple[str, dict[str, Any]]:
        """A bearer, and what the page was told with it."""
        token = await self.desk.token()
        page = await self.desk.desk.sessions.page(token, None)
        body = {"page": page.session_public_id, "init": init_of(token)}
        told = await (await self.call("init", body=body)).get_json()
        return told["bearer"], told["session"]


def init_of(token: str, **changes: Any) -> dict[str, Any]:
    """An init payload."""
    payload = {
        "nonce": "n",
        "idemKey": "k",
        "sessionToken": token,
        "userData": {"cuil": "20-26756539-3", "email": "a@b.example", "phone": ""},
    }
    return {**payload, **changes}


@pytest.fixture
async def frame(tmp_path: Path, assets: Assets) -> AsyncIterator[Frame]:
    """The role over fresh storage, with two registered origins."""
    web = {"iframe_url": "https://marco.example", "base_url": "https://firma.example"}
    documents = {"limit_bytes": 4096}
    async with open_frame_desk(tmp_path, web=web, documents=documents) as desk:
        for origin in ORIGINS:
            await desk.desk.integrators.add_domain("operator", CODE, origin)
        front = SimpleNamespace(
            settings=desk.desk.settings,
            clock=desk.desk.clock,
            sessions=desk.desk.sessions,
            framing=desk.framing,
            frame_signing=desk.signing,
            health=None,
        )
        app = create_embed(cast("Front", front), assets)
        yield Frame(desk, app, app.test_client())


async def text(answer: Response) -> str:
    """The body of an answer."""
    body: str = await answer.get_data(as_text=True)
    return body


async def problem(answer: Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    told = await answer.get_json()
    return answer.status_code, told["code"]


@pytest.mark.parametrize("address", ["token", "public id"])
async def test_page_has_exactly_the_policy(frame: Frame, address: str) -> None:
    """Everything from our own origin, nothing inline, framed by whom it may be."""
    token = await frame.desk.token()
    if address == "token":
        answer = await frame.page(token)
    else:
        known = await frame.desk.desk.sessions.page(token, None)
        got = await frame.client.get(f"/embed/?s={known.session_public_id}")
        answer = got

    assert answer.status_code == 200
    assert answer.headers["Content-Security-Policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self' blob: data:; font-src 'self'; connect-src 'self'; "
        "worker-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'; "
        f"frame-ancestors {' '.join(ORIGINS)}"
    )
    assert {name: answer.headers[name] for name in SECURITY} == SECURITY
    assert "X-Frame-Options" not in answer.headers
    assert "Set-Cookie" not in answer.headers
    permissions = answer.headers["Permissions-Policy"]
    assert "camera=(self)" in permissions
    assert "geolocation=()" in permissions


async def test_integrator_without_origins_is_framed_by_nobody(frame: Frame) -> None:
    """None registered: `'none'`."""
    token = await frame.desk.token("nuevo")
    answer = await frame.page(token)

    policy = answer.headers["Content-Security-Policy"]
    assert policy.endswith("frame-ancestors 'none'")


async def test_expired_page_keeps_its_ancestors_and_says_401(frame: Frame) -> None:
    """The message can be shown where the session was, for a day."""
    token = await frame.desk.token()
    frame.desk.desk.clock.forward(1800)
    answer = await frame.page(token)

    assert answer.status_code == 401
    policy = answer.headers["Content-Security-Policy"]
    assert policy.endswith(f"frame-ancestors {' '.join(ORIGINS)}")
    assert boot_of(await text(answer))["kind"] == "expired"


@pytest.mark.parametrize(
    "address", ["", "?sessionToken=", f"?sessionToken={'x' * 43}", "?s=../../x", "?s="]
)
async def test_unknown_session_gets_words_without_script(
    frame: Frame, address: str
) -> None:
    """401, framed by anybody, and nothing in it that could do anything."""
    answer = await frame.client.get(f"/embed/{address}")
    body = await text(answer)

    assert answer.status_code == 401
    policy = answer.headers["Content-Security-Policy"]
    assert policy.endswith("frame-ancestors *")
    assert "script-src" not in policy
    assert "<script" not in body
    assert "Esta sesión no existe" in body


async def test_token_is_stripped_by_the_first_line_of_the_first_script(
    frame: Frame, assets: Assets
) -> None:
    """Nothing of the page runs before the address is clean."""
    token = await frame.desk.token()
    body = await text(await frame.page(token))
    scripts = re.findall(r"<script[^>]*>", body)

    assert scripts[0] == f'<script src="{assets.base}/boot.js">'
    first = assets.files["boot.js"].content.decode().splitlines()[0]
    assert first.startswith("history.replaceState(null,")
    assert token not in body


async def test_page_has_nothing_inline(frame: Frame) -> None:
    """No inline script, style or handler: only data."""
    body = await text(await frame.page(await frame.desk.token()))
    inline = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", body)

    assert inline == ['<script type="application/json" id="boot">']
    assert not re.findall(r"\son\w+=|\sstyle=|<style|javascript:", body)


async def test_names_cannot_break_out_of_the_page(frame: Frame) -> None:
    """What an integrator is called is text wherever it stands."""
    name = "</script><img src=x onerror=alert(1)>\"'&"
    await frame.desk.desk.integrators.change("operator", CODE, name=name)
    body = await text(await frame.page(await frame.desk.token()))

    assert "<img" not in body
    assert boot_of(body)["integrator"] == name


def boot_of(body: str) -> dict[str, Any]:
    """What a page starts from."""
    found = re.search(r'id="boot">(.*?)</script>', body, re.DOTALL)
    assert found is not None
    boot: dict[str, Any] = json.loads(found[1])
    return boot


async def test_boot_data_are_no_secret(frame: Frame) -> None:
    """What the page starts from opens nothing."""
    token = await frame.desk.token()
    boot = boot_of(await text(await frame.page(token)))

    assert set(boot) == {
        "kind",
        "session",
        "integrator",
        "origins",
        "environment",
        "prefix",
        "language",
        "maxDocumentBytes",
        "statics",
        "pdfjs",
    }
    assert boot["prefix"] == "svc"


@pytest.mark.parametrize(
    ("headers", "noted"),
    [
        ({"Referer": "https://mala.example/a?b"}, ["https://mala.example"]),
        ({"Referer": "https://MALA.example:8443/"}, ["https://mala.example:8443"]),
        ({"Referer": "https://u:p@mala.example/"}, ["https://mala.example"]),
        ({"Referer": "https://app.example/pago"}, []),
        ({"Referer": "https://marco.example/embed/"}, []),
        ({"Referer": "javascript:alert(1)"}, []),
        ({"Referer": "https://"}, []),
        ({}, []),
        ({"Referer": "https://mala.example/", "Sec-Fetch-Dest": "document"}, []),
    ],
)
async def test_origin_that_may_not_frame_is_noted(
    frame: Frame, headers: dict[str, str], noted: list[str]
) -> None:
    """By Referer and Sec-Fetch-Dest; what is no origin is not kept."""
    token = await frame.desk.token()
    await frame.page(token, **{"Sec-Fetch-Dest": "iframe", **headers})

    blocked = await frame.desk.desk.integrators.blocked_origins(CODE)
    assert [view.origin for view in blocked] == noted


async def test_registered_origin_is_noted_as_seen(frame: Frame) -> None:
    """Who may and does frame is told apart from who never did."""
    token = await frame.desk.token()
    headers = {"Sec-Fetch-Dest": "iframe", "Referer": "https://app.example/x"}
    await frame.page(token, **headers)

    listed = await frame.desk.desk.integrators.domains(CODE)
    assert [view.origin for view in listed if view.seen] == ["https://app.example"]


async def test_files_are_kept_by_browsers_for_good(
    frame: Frame, assets: Assets
) -> None:
    """Their address names their content, so they never change."""
    answer = await frame.client.get(f"{assets.base}/main.js")

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert "immutable" in answer.headers["Cache-Control"]
    # Without it the worker of an isolated page would be refused.
    assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"


async def test_files_are_packed_for_who_takes_it(frame: Frame, assets: Assets) -> None:
    """pdf.js goes over the line at a fourth of its size."""
    path = f"{assets.base}/pdfjs/pdf.worker.min.mjs"
    packed = await frame.client.get(path, headers={"Accept-Encoding": "gzip, br"})
    plain = await frame.client.get(path, headers={"Accept-Encoding": "gzip;q=0"})

    assert packed.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain.headers
    assert len(await packed.get_data()) * 2 < len(await plain.get_data())


@pytest.mark.parametrize(
    "path",
    ["/main.js", "/../api.py", "/%2e%2e/app.py", "/pdfjs/../main.js", "/pdfjs/", "/x"],
)
async def test_nothing_beside_the_files_is_served(
    frame: Frame, assets: Assets, path: str
) -> None:
    """Another version, a folder above, a folder: not there."""
    base = "/embed/v/0000000000000000" if path == "/main.js" else assets.base
    answer = await frame.client.get(base + path)

    assert answer.status_code in {400, 404}


async def test_every_route_is_closed_unless_marked(frame: Frame) -> None:
    """Each route of the API wants a bearer, but init and the warning."""
    open_ones = set()
    for rule in frame.app.url_map.iter_rules():
        view = frame.app.view_functions[rule.endpoint]
        if is_public(view):
            open_ones.add(rule.rule)
            continue
        path = rule.rule.replace("<digits:number>", "1")
        method = (
            frame.client.post if "POST" in (rule.methods or ()) else frame.client.get
        )
        answer = await method(path)
        assert await problem(answer) == (401, "TOKEN_MISSING")

    assert open_ones == {
        "/embed/",
        "/embed/v/<version>/<path:name>",
        "/embed/api/init",
        "/embed/api/legacy",
        "/healthz",
    }


async def test_routes_that_outlive_the_session_exist(frame: Frame) -> None:
    """The list names real routes."""
    assert {rule.endpoint for rule in frame.app.url_map.iter_rules()} >= LATE


async def test_bearer_ends_sharp_but_for_what_was_begun(frame: Frame) -> None:
    """At 1,799 s it works; at 1,800 s only outcome and renewal are answered."""
    bearer, _ = await frame.opened()
    frame.desk.desk.clock.forward(1799)
    assert (await frame.call("state", bearer)).status_code == 200
    frame.desk.desk.clock.forward(1)

    answer = await frame.call("identify", bearer, {"cuil": "x", "email": "x"})
    assert await problem(answer) == (401, "SESSION_TOKEN_EXPIRED")
    assert (await frame.call("state", bearer)).status_code == 200


async def test_later_init_supersedes_the_bearer(frame: Frame) -> None:
    """Of two frames with one token the later one has the session."""
    token = await frame.desk.token()
    page = await frame.desk.desk.sessions.page(token, None)
    body = {"page": page.session_public_id, "init": init_of(token)}
    first = await (await frame.call("init", body=body)).get_json()
    await frame.call("init", body=body)

    answer = await frame.call("state", first["bearer"])
    assert await problem(answer) == (401, "SESSION_SUPERSEDED")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"nonce": ""}, "nonce"),
        ({"nonce": 7}, "nonce"),
        ({"sessionToken": None}, "sessionToken"),
        ({"userData": []}, "userData"),
        ({"userData": {"cuil": "20-26756539-3"}}, "userData.email"),
        ({"userData": {"email": "a@b.example"}}, "userData.cuil"),
        (
            {"userData": {"email": "a@b.example", "cuil": "20-26756539-2"}},
            "userData.cuil",
        ),
        ({"userData": {"email": "a@b.example", "dni": "1234567890"}}, "userData.dni"),
        (
            {
                "userData": {
                    "email": "a@b.example",
                    "dni": "11222333",
                    "cuil": "20-26756539-3",
                }
            },
            "userData.dni",
        ),
        ({"userData": {"email": "no", "cuil": "20-26756539-3"}}, "userData.email"),
    ],
)
async def test_init_that_is_not_valid_names_its_field(
    frame: Frame, changes: dict[str, Any], field: str
) -> None:
    """The server judges by itself, whatever a page would let through."""
    token = await frame.desk.token()
    answer = await frame.call(
        "init", body={"page": "", "init": init_of(token, **changes)}
    )
    told = await answer.get_json()

    assert (answer.status_code, told["code"]) == (400, "INIT_INVALID")
    assert told["field"] == field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gender", "W"),
        ("phone", "123"),
        ("name", "x" * 201),
        ("address", "x" * 301),
        ("dni", "abc"),
    ],
)
async def test_optional_fields_are_checked_when_present(
    frame: Frame, field: str, value: str
) -> None:
    """Gender, phone, name and address have their forms."""
    user = {"cuil": "20-26756539-3", "email": "a@b.example", field: value}
    token = await frame.desk.token()
    answer = await frame.call(
        "init", body={"page": "", "init": init_of(token, userData=user)}
    )
    told = await answer.get_json()

    assert told["field"] == f"userData.{field}"


async def test_empty_and_unknown_fields_are_no_mistake(frame: Frame) -> None:
    """Hosts send whole forms, and fields that we never heard of."""
    token = await frame.desk.token()
    page = await frame.desk.desk.sessions.page(token, None)
    user = {
        "dni": "",
        "cuil": "20-26756539-3",
        "email": "a@b.example",
        "gender": None,
        "phone": "",
        "favourite": "mate",
    }
    init = init_of(token, userData=user, idemKey="", integratorId="old")
    answer = await frame.call(
        "init", body={"page": page.session_public_id, "init": init}
    )

    assert answer.status_code == 200


async def test_document_is_taken_by_name_and_bytes(frame: Frame) -> None:
    """The name comes in percent-encoding; findings come back in words."""
    bearer, _ = await frame.opened()
    headers = {"Content-Type": "application/pdf", "X-File-Name": "acta%20%C3%B1.pdf"}
    answer = await frame.call("document", bearer, data=PDF, headers=headers)
    told = await answer.get_json()

    assert told["document"]["name"] == "acta ñ.pdf"
    assert told["document"]["pages"] == [[595, 842]] * 3
    assert told["document"]["findings"] == ["El documento contiene JavaScript."]
    original = await frame.call("document", bearer)
    assert await original.get_data() == PDF
    assert "attachment" in original.headers["Content-Disposition"]


@pytest.mark.parametrize(
    ("body", "kind", "name", "code"),
    [
        (
            b"%PDF" + b"x" * 4096,
            "application/pdf",
            "a.pdf",
            (413, "DOCUMENT_TOO_LARGE"),
        ),
        (b"", "application/pdf", "a.pdf", (422, "DOCUMENT_EMPTY")),
        (b"<html>", "application/pdf", "a.pdf", (422, "PDF_MALFORMED")),
        (PDF, "application/octet-stream", "a.pdf", (415, "CONTENT_TYPE")),
        (PDF, "application/pdf", "a.exe", (422, "FILENAME")),
        (PDF, "application/pdf", "../a.pdf", (422, "FILENAME")),
        (PDF, "application/pdf", "%FF.pdf", (422, "FILENAME")),
        (PDF, "application/pdf", "x" * 3000, (422, "FILENAME")),
    ],
)
async def test_document_that_cannot_be_taken_is_refused(
    frame: Frame, body: bytes, kind: str, name: str, code: tuple[int, str]
) -> None:
    """By the REST API's codes."""
    bearer, _ = await frame.opened()
    headers = {"Content-Type": kind, "X-File-Name": name}
    answer = await frame.call("document", bearer, data=body, headers=headers)

    assert await problem(answer) == code


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("otp", {}, "FIELD_INVALID"),
        ("otp", {"code": 123456}, "FIELD_INVALID"),
        ("otp", [], "BODY_NOT_OBJECT"),
        ("identify", {"email": "a@b.example"}, "FIELD_INVALID"),
        ("identify", {"cuil": 7, "email": "a@b.example"}, "FIELD_INVALID"),
        ("identify", {"cuil": "20-26756539-3", "email": "x"}, "FIELD_INVALID"),
        ("choose", {"request": True}, "FIELD_INVALID"),
        ("choose", {"request": 0}, "FIELD_INVALID"),
        ("choose", {"request": 1}, "IDENTITY_MISMATCH"),
        ("place", {"corner": "middle", "page": 1}, "FIELD_INVALID"),
        ("place", {"corner": "topLeft", "page": 0}, "FIELD_INVALID"),
        ("place", {"corner": "topLeft", "page": True}, "FIELD_INVALID"),
        ("place", {"corner": "topLeft", "page": 1}, "SESSION_IN_USE"),
        ("sign", {"corner": "topLeft", "page": 1, "password": ""}, "FIELD_INVALID"),
        (
            "sign",
            {"corner": "topLeft", "page": 1, "password": "x", "sha256": "0"},
            "SESSION_IN_USE",
        ),
        ("renew", {"sessionToken": "x"}, "SESSION_TOKEN_INVALID"),
        ("cancel", {"reason": ""}, "FIELD_INVALID"),
        ("legacy", {"session": 7}, "FIELD_INVALID"),
    ],
)
async def test_bodies_are_read_strictly(
    frame: Frame, path: str, body: Any, code: str
) -> None:
    """No input whatsoever yields a 500."""
    bearer, _ = await frame.opened()
    answer = await frame.call(path, bearer, body)
    status, told = await problem(answer)

    assert told == code
    assert status < 500


@pytest.mark.parametrize(
    ("number", "status"),
    [("1", 200), ("3", 200), ("4", 422), ("0", 422), ("9" * 40, 422)],
)
async def test_page_is_drawn_for_browsers_that_cannot(
    frame: Frame, number: str, status: int
) -> None:
    """A PNG of the page, or PAGE_OUT_OF_RANGE."""
    bearer, _ = await frame.opened()
    headers = {"Content-Type": "application/pdf", "X-File-Name": "a.pdf"}
    await frame.call("document", bearer, data=PDF, headers=headers)
    answer = await frame.call(f"page/{number}", bearer)

    assert answer.status_code == status


async def test_nothing_is_signed_yet(frame: Frame) -> None:
    """Neither event nor document before there is a signature."""
    bearer, session = await frame.opened()
    assert session["state"] == "open"
    for path in ("completed", "download"):
        answer = await frame.call(path, bearer)
        assert await problem(answer) == (409, "NOT_SIGNED_YET")
    for path in ("document", "page/1"):
        answer = await frame.call(path, bearer)
        assert await problem(answer) == (404, "SOLICITUD_NOT_FOUND")


async def test_api_answers_have_the_closed_policy(frame: Frame) -> None:
    """What is no page loads nothing and is framed by nobody."""
    bearer, _ = await frame.opened()
    answer = await frame.call("state", bearer)

    policy = answer.headers["Content-Security-Policy"]
    assert policy == "default-src 'none'; frame-ancestors 'none'"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Cache-Control"] == "no-store"


async def test_other_origins_pages_may_read_nothing(frame: Frame) -> None:
    """No CORS on this role, whoever asks."""
    bearer, _ = await frame.opened()
    headers = {"Origin": ORIGINS[0]}
    answer = await frame.call("state", bearer, headers=headers)
    preflight = await frame.client.options(
        "/embed/api/sign",
        headers={**headers, "Access-Control-Request-Method": "POST"},
    )

    assert "Access-Control-Allow-Origin" not in answer.headers
    assert "Access-Control-Allow-Origin" not in preflight.headers


async def test_warning_of_a_page_is_recorded_once(frame: Frame) -> None:
    """A page that repeats its mistake does not flood the audit."""
    token = await frame.desk.token()
    page = await frame.desk.desk.sessions.page(token, None)
    for _ in range(3):
        await frame.call("legacy", body={"session": page.session_public_id})

    events = await frame.desk.desk.audited_names()
    assert events.count("integrator.legacy_credentials") == 1


async def test_log_has_neither_token_nor_password(
    frame: Frame, capsys: pytest.CaptureFixture[str]
) -> None:
    """Addresses of the log are routes; secrets travel elsewhere."""
    token = await frame.desk.token()
    await frame.page(token)
    bearer, _ = await frame.opened()
    body = {"corner": "none", "page": 1, "password": "muy secreta", "sha256": "0"}
    await frame.call("sign", bearer, body)
    captured = capsys.readouterr()
    written = captured.out + captured.err

    assert "/embed/" in written
    assert token not in written
    assert bearer not in written
    assert "muy secreta" not in written


async def test_health_is_told(frame: Frame) -> None:
    """A load balancer knows that the process answers."""
    answer = await frame.client.get("/healthz")

    assert (await answer.get_json()) == {"status": "ok"}


@pytest.mark.parametrize("environment", ["PREPROD", "PROD"])
async def test_page_is_under_embed_in_both_environments(
    tmp_path: Path, assets: Assets, environment: str
) -> None:
    """The path is `/embed/`, and the page says which environment it is of."""
    top: dict[str, Any] = {"environment": environment, "trial": False}
    async with open_frame_desk(tmp_path, **top) as desk:
        front = SimpleNamespace(
            settings=desk.desk.settings,
            clock=desk.desk.clock,
            sessions=desk.desk.sessions,
            framing=desk.framing,
            frame_signing=desk.signing,
            health=None,
        )
        client = create_embed(cast("Front", front), assets).test_client()
        token = await desk.token()
        body = await text(await client.get(f"/embed/?sessionToken={token}"))

    assert boot_of(body)["environment"] == environment
    assert f'<p class="ribbon {environment.lower()}">{environment}</p>' in body
