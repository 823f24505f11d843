"""The frame's pages and files over HTTP: their headers, and what stands in them.

Source: research "Iframe: security headers"; decisions "Iframe".
"""

import hashlib
import io
import json
import re
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PIL import Image

from appliance.admission.signing_calls import SigningCalls
from appliance.bootstrap import ServiceRegistry
from appliance.domain.appearance.details import Logo, LogoPicture
from appliance.integrators.logo_store import INSTALLATION, LogoStore
from appliance.integrators.logos import Logos
from embed.app import create_embed
from embed.assets import Assets
from embed.reports import SESSION_MOST
from tests.support.factories.fake_sandbox import PlayedSandbox
from tests.support.installation.frame import (
    CODE,
    ORIGINS,
    SECURITY,
    Frame,
    problem,
    text,
)
from tests.support.installation.installation import Installation


@pytest.mark.parametrize("address", ["token", "public id"])
async def test_page_has_exactly_the_policy(frame: Frame, address: str) -> None:
    """Everything from our own origin, nothing inline, framed by whom it may be."""
    token = await frame.services.token()
    if address == "token":
        answer = await frame.page(token)
    else:
        known = await frame.services.services.sessions.page(token, None)
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
    token = await frame.services.token("nuevo")
    answer = await frame.page(token)

    policy = answer.headers["Content-Security-Policy"]
    assert policy.endswith("frame-ancestors 'none'")


async def test_expired_page_keeps_its_ancestors_and_says_401(frame: Frame) -> None:
    """The message can be shown where the session was, for a day."""
    token = await frame.services.token()
    frame.services.services.clock.forward(1800)
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


@pytest.mark.parametrize(("address", "status"), [("/", 200), ("/embed/", 401)])
async def test_who_opens_the_frame_by_itself_is_told_where_to_go(
    frame: Frame, address: str, status: int
) -> None:
    """A person's browser gets words and a way on; a program what it always got."""
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    english = {**browser, "Accept-Language": "en"}
    answer = await frame.client.get(address, headers=browser)
    body = await text(answer)
    read = await text(await frame.client.get(address, headers=english))
    program = await frame.client.get(address)

    assert answer.status_code == status
    assert "<script" not in body
    assert "Acá se firman documentos, dentro de otros sitios" in body
    assert 'href="http' in body
    assert "Documents are signed here, inside other sites" in read
    assert program.status_code == (404 if address == "/" else 401)


@pytest.mark.parametrize("address", ["/nada", "/embed/nada", "/embed/api/nada"])
async def test_unknown_address_is_a_page_for_a_person(
    frame: Frame, address: str
) -> None:
    """In their language, with a way on; a program gets its problem."""
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = await frame.client.get(address, headers=browser)
    body = await text(answer)
    english = await text(await frame.client.get(f"{address}?lang=en", headers=browser))

    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "<script" not in body
    assert '<html lang="es-AR"' in body
    assert 'href="https://firma.example"' in body
    assert "Referencia: " in body
    assert '<html lang="en"' in english
    assert "Reference: " in english
    assert await problem(await frame.client.get(address)) == (404, "NOT_FOUND")


async def test_pages_without_a_session_have_the_same_dress(frame: Frame) -> None:
    """Whose service it is, the other language, and a way on."""
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    unknown = f"/embed/?sessionToken={'x' * 43}"
    for address in ("/", "/embed/", unknown, "/nada"):
        body = await text(await frame.client.get(address, headers=browser))
        assert 'class="mark"' in body
        assert frame.services.services.settings.installation in body
        assert 'hreflang="en"' in body
        assert 'href="https://firma.example"' in body
    # The other language of this page is this page.
    body = await text(await frame.client.get("/embed/?s=-&lang=en", headers=browser))
    assert "This session does not exist" in body
    assert "?s=-&amp;lang=es" in body


async def test_missing_slash_leads_to_the_same_origin(frame: Frame) -> None:
    """Whatever host and scheme the call names, the token goes nowhere else."""
    answer = await frame.client.get(
        "/embed?sessionToken=a%26b&x=1",
        headers={"Host": "mala.example", "X-Forwarded-Proto": "http"},
    )

    assert answer.status_code == 308
    assert answer.headers["Location"] == "./embed/?sessionToken=a%26b&x=1"
    assert await text(answer) == ""
    assert {name: answer.headers[name] for name in ("Cache-Control",)} == {
        "Cache-Control": "no-store"
    }


async def test_token_is_stripped_by_the_first_line_of_the_first_script(
    frame: Frame, assets: Assets
) -> None:
    """Nothing of the page runs before the address is clean."""
    token = await frame.services.token()
    body = await text(await frame.page(token))
    scripts = re.findall(r"<script[^>]*>", body)

    assert scripts[0] == f'<script src="{assets.base}/boot.js">'
    first = assets.files["boot.js"].content.decode().splitlines()[0]
    assert first.startswith("history.replaceState(null,")
    assert token not in body


IMPORT = re.compile(
    r'^(?:import|\} from|import .* from) ?.*"\./(\w+\.js)";', re.MULTILINE
)


def imported_by(name: str, assets: Assets) -> set[str]:
    """A module, and every module that it needs."""
    found, todo = set[str](), [name]
    while todo:
        found.add(each := todo.pop())
        text = assets.files[each].content.decode()
        todo += [one for one in IMPORT.findall(text) if one not in found]
    return found


async def test_page_names_all_that_its_modules_need(
    frame: Frame, assets: Assets
) -> None:
    """Nothing is found out only when something else has come."""
    body = await text(await frame.page(await frame.services.token()))
    preloaded = re.findall(r'<link rel="modulepreload" href="([^"]+)">', body)
    words = re.findall(r'<link rel="preload" href="([^"]+)" as="fetch"', body)

    needed = {f"{assets.base}/{name}" for name in imported_by("main.js", assets)}
    assert len(needed) > 20
    assert {*preloaded} == needed
    assert words == [f"{assets.base}/strings/{boot_of(body)['language']}.json"]
    assert body.index("boot.js") < body.index("modulepreload")


async def test_page_that_is_loaded_again_knows_it(frame: Frame) -> None:
    """Its address has no token any more."""
    token = await frame.services.token()
    first = boot_of(await text(await frame.page(token)))
    again = await frame.client.get(f"/embed/?s={first['session']}")

    assert first["isReloaded"] is False
    assert boot_of(await text(again))["isReloaded"] is True


async def test_page_has_nothing_inline(frame: Frame) -> None:
    """No inline script, style or handler: only data."""
    body = await text(await frame.page(await frame.services.token()))
    inline = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", body)

    assert inline == ['<script type="application/json" id="boot">']
    assert not re.findall(r"\son\w+=|\sstyle=|<style|javascript:", body)


async def test_names_cannot_break_out_of_the_page(frame: Frame) -> None:
    """What an integrator is called is text wherever it stands."""
    name = "</script><img src=x onerror=alert(1)>\"'&"
    await frame.services.services.integrators.change("operator", CODE, name=name)
    body = await text(await frame.page(await frame.services.token()))

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
    token = await frame.services.token()
    boot = boot_of(await text(await frame.page(token)))

    assert set(boot) == {
        "kind",
        "session",
        "isReloaded",
        "integrator",
        "origins",
        "environment",
        "prefix",
        "language",
        "maxDocumentBytes",
        "statics",
        "pdfjs",
        "home",
        "help",
        "revocation",
        "mailed",
        "installation",
        "contact",
        "contactHref",
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
    token = await frame.services.token()
    await frame.page(token, **{"Sec-Fetch-Dest": "iframe", **headers})

    blocked = await frame.services.services.integrators.blocked_origins(CODE)
    assert [view.origin for view in blocked] == noted


async def test_stranger_plants_no_origin(frame: Frame) -> None:
    """Neither with an expired token, nor with what stands in addresses, nor at will."""
    token = await frame.services.token()
    page = await frame.services.services.sessions.page(token, None)
    tries = {"Sec-Fetch-Dest": "iframe", "Referer": "https://mala.example/"}
    await frame.client.get(f"/embed/?s={page.session_public_id}", headers=tries)
    assert await frame.services.services.integrators.blocked_origins(CODE) == []

    for number in range(SESSION_MOST + 5):
        headers = {**tries, "Referer": f"https://mala{number}.example/"}
        await frame.page(token, **headers)
    noted = await frame.services.services.integrators.blocked_origins(CODE)
    assert len(noted) == SESSION_MOST

    frame.services.services.clock.forward(1800)
    await frame.page(token, **tries)
    again = await frame.services.services.integrators.blocked_origins(CODE)
    assert [view.origin for view in again] == [view.origin for view in noted]


async def test_registered_origin_is_noted_as_seen(frame: Frame) -> None:
    """Who may and does frame is told apart from who never did."""
    token = await frame.services.token()
    headers = {"Sec-Fetch-Dest": "iframe", "Referer": "https://app.example/x"}
    await frame.page(token, **headers)

    listed = await frame.services.services.integrators.domains(CODE)
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


async def test_worker_may_load_its_decoders_and_nothing_from_elsewhere(
    frame: Frame, assets: Assets
) -> None:
    """A worker is held to the policy of its script; other files need none."""
    worker = await frame.client.get(f"{assets.base}/pdfjs/pdf.worker.min.mjs")
    other = await frame.client.get(f"{assets.base}/pdfjs/pdf.min.mjs")

    assert worker.headers["Content-Security-Policy"] == (
        "default-src 'none'; script-src 'self'; connect-src 'self'; "
        "frame-ancestors 'none'"
    )
    usual = "default-src 'none'; frame-ancestors 'none'"
    assert other.headers["Content-Security-Policy"] == usual


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


@pytest.mark.parametrize("environment", ["PREPROD", "PROD"])
async def test_page_is_under_embed_in_both_environments(
    tmp_path: Path, migrated_url: str, assets: Assets, environment: str
) -> None:
    """The path is `/embed/`, and the page says which environment it is of."""
    top: dict[str, Any] = {"environment": environment, "trial": False}
    top["web"] = {
        "trusted_proxies": [],
        "base_url": "https://firma.example",
        "iframe_url": "https://marco.firma.example",
    }
    async with Installation(tmp_path, migrated_url, **top).frame_services() as services:
        front = SimpleNamespace(
            help_requests=None,
            settings=services.services.settings,
            clock=services.services.clock,
            sessions=services.services.sessions,
            framing=services.framing,
            frame_signing=services.signing,
            signing_calls=SigningCalls(),
            frame_batches=services.batches,
            health=None,
            logos=Logos(
                services.services.store, PlayedSandbox(), services.services.clock
            ),
        )
        client = create_embed(cast("ServiceRegistry", front), assets).test_client()
        token = await services.token()
        body = await text(await client.get(f"/embed/?sessionToken={token}"))

    assert boot_of(body)["environment"] == environment
    # PREPROD is no word for a signer.
    said = {"PREPROD": "PRUEBA", "PROD": "PROD"}[environment]
    ribbon = f'<p class="ribbon {environment.lower()}" title="{environment}">{said}</p>'
    assert ribbon in body


async def test_integrator_is_shown_by_logo_or_initial(frame: Frame) -> None:
    """The logo comes from our own origin, for good; without one, a letter stands."""
    body = await text(await frame.page(await frame.services.token()))
    assert '<span class="monogram" aria-hidden="true">A</span>' in body

    pixels = bytes(range(2 * 3 * 3))
    logo = Logo(hashlib.sha256(pixels).hexdigest(), 3, 2)
    store, clock = frame.services.services.store, frame.services.services.clock
    async with store.write() as transaction:
        picture = LogoPicture(logo, zlib.compress(pixels))
        await LogoStore(transaction).use(INSTALLATION, picture, clock.now())
    body = await text(await frame.page(await frame.services.token()))
    found = re.search(r'<img class="logo" src="([^"]+)" width="3" height="2"', body)
    assert found is not None
    answer = await frame.client.get(found[1])
    assert answer.headers["Content-Type"] == "image/png"
    assert "immutable" in answer.headers["Cache-Control"]
    with Image.open(io.BytesIO(await answer.get_data(as_text=False))) as drawn:
        assert (drawn.size, drawn.mode, drawn.tobytes()) == ((3, 2), "RGB", pixels)


@pytest.mark.parametrize("name", ["0" * 64, "A" * 64, "x", "..%2fx"])
async def test_no_other_picture_is_served(frame: Frame, name: str) -> None:
    """What is no logo of the record is not there."""
    answer = await frame.client.get(f"/embed/logo/{name}.png")

    assert answer.status_code in {400, 404}
