"""`{base_url}` with a path: asked for with and without it, carried by every link."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.domain.vocab import RequestState, VouchedBy
from appliance.web.server.public_path import paths_of, without
from tests.support.factories.fakes import request_view
from tests.support.installation.api import API, EMAIL, SIGN, ApiServices, Caller
from tests.support.installation.installation import Installation

BASE = "https://firma.example/firma-api"
CUIL = "20055361682"


@pytest.fixture
async def under_path(tmp_path: Path) -> AsyncIterator[ApiServices]:
    """The core of a face whose public address has a path."""
    web = {"base_url": BASE, "web_url": "https://firma.example/sesiones"}
    async with Installation(tmp_path, web=web).api() as opened:
        yield opened


@pytest.fixture
async def caller(under_path: ApiServices) -> Caller:
    """A signer with two requests that wait, and a signed one."""
    person, _ = await under_path.add_person()
    await under_path.add_requests(person, 7, 9)
    states = {7: RequestState.PENDING, 8: RequestState.PENDING, 9: RequestState.SIGNED}
    under_path.requests.views = [
        request_view(number, person, state) for number, state in states.items()
    ]
    return Caller(under_path, await under_path.bearer(person))


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("/firma-api/solicitudes", "/solicitudes"),
        ("/solicitudes", "/solicitudes"),
        ("/firma-api", "/"),
        ("/firma-api/", "/"),
        ("/firma-apis/solicitudes", "/firma-apis/solicitudes"),
        ("/a/firma-api/solicitudes", "/a/firma-api/solicitudes"),
        ("/firma-api/v2/x", "/x"),
        ("/firma-api/firma-api/x", "/firma-api/x"),
    ],
)
def test_path_is_taken_once(asked: str, path: str) -> None:
    """Whole parts of it, at its beginning alone, the longest one."""
    prefixes = paths_of(BASE, f"{BASE}/v2", "https://firma.example")

    assert without(asked, prefixes) == path


@pytest.mark.parametrize("prefix", ["", "/firma-api", "/sesiones"])
async def test_web_server_may_keep_or_strip_it(caller: Caller, prefix: str) -> None:
    """Every route is there, by either public path."""
    for path, status in (
        ("/healthz", 200),
        ("/.well-known/jwks.json", 200),
        ("/solicitudes", 200),
        ("/nada", 404),
    ):
        assert (await caller.get(f"{prefix}{path}")).status_code == status


async def test_links_carry_it(under_path: ApiServices, caller: Caller) -> None:
    """The signed document's, the next page's, and the one of work going on."""
    signed = await caller.post(
        "/firma-api/solicitudes/firmar", {**SIGN, "solicitudId": 9}
    )
    url = (await signed.get_json())["documentoFirmado"]
    listed = await caller.get("/firma-api/solicitudes?limite=1")
    under_path.signing.slow = True
    going_on = await caller.post("/firma-api/solicitudes/firmar", SIGN)

    assert url.startswith(f"{BASE}/solicitudes/9/documento?clave=")
    assert listed.headers["Link"].startswith(f"<{BASE}/solicitudes?")
    assert going_on.headers["Location"] == "/firma-api/solicitudes/7"
    path = url.removeprefix("https://firma.example")
    assert (await caller.client.get(path)).status_code == 200


async def test_people_and_tokens_carry_it(
    under_path: ApiServices, caller: Caller
) -> None:
    """Links that people get, the code of a stamp, `iss` and `aud`."""
    invited = await under_path.invitations.invite(
        "operator", CUIL, "Ana", f"b{EMAIL}", VouchedBy.OFFICER
    )
    token = caller.headers["Authorization"].split()[1].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(token + "=="))
    page = await caller.client.get(
        "/verificar", headers={"Accept": "text/html,application/xhtml+xml"}
    )

    assert invited.url.startswith(f"{BASE}/alta/")
    assert under_path.settings.verify_url == f"{BASE}/verificar"
    assert claims["iss"] == claims["aud"] == BASE
    assert 'href="/firma-api/static/' in await page.get_data(as_text=True)


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/",
        "https://a.example/b/",
        "https://a.example//b",
        "https://a.example/../b",
        "https://a.example/b?c",
        "https://a.example/b#c",
        "https://a.example/b c",
        "https://a.example/ñ",
        "ftp://a.example",
    ],
)
def test_address_is_plain(tmp_path: Path, url: str) -> None:
    """No final slash, no dots, nothing to escape."""
    with pytest.raises(ValueError, match="base_url"):
        Installation(tmp_path, web={"base_url": url}).settings(API)


def test_frame_is_another_origin_than_a_path(tmp_path: Path) -> None:
    """A path does not make another origin."""
    with pytest.raises(ValueError, match="iframe_url: must be an origin of its own"):
        Installation(
            tmp_path,
            web={"base_url": BASE, "iframe_url": "https://firma.example"},
        ).settings(API)
