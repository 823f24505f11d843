"""The SDKs at `/sdk/`: listed with their SRI, readable by pages of any origin."""

import base64
import hashlib
import json
from pathlib import Path

import pytest
from quart.typing import TestClientProtocol as Client

from appliance.web import sdk
from tests.support.installation.api import ApiServices, code, create_api

KINDS = {
    ".js": "text/javascript; charset=utf-8",
    ".ts": "text/plain; charset=utf-8",
    ".tgz": "application/gzip",
    ".whl": "application/zip",
}


@pytest.fixture
def client(api_services: ApiServices) -> Client:
    """A client of the REST API, without cookies."""
    return create_api(api_services).test_client(use_cookies=False)


async def test_each_listed_file_is_served_as_told(client: Client) -> None:
    """With its size and integrity, its type, and for pages of any origin."""
    index = await client.get("/sdk/")
    told = json.loads(await index.get_data())

    assert index.headers["Content-Type"] == "application/json"
    names = {row["nombre"] for row in told["archivos"]}
    assert {
        "rubrica-embed.js",
        "rubrica-embed.classic.js",
        "rubrica-embed.d.ts",
    } < names
    assert len(names) == 5
    for row in told["archivos"]:
        response = await client.get(f"/sdk/{row['nombre']}")
        content = bytes(await response.get_data(as_text=False))
        digest = base64.b64encode(hashlib.sha384(content).digest()).decode()
        assert row["integridad"] == f"sha384-{digest}"
        assert row["tamano"] == len(content)
        assert response.headers["Content-Type"] == KINDS[Path(row["nombre"]).suffix]
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        versioned = await client.get(f"/sdk/{told['version']}/{row['nombre']}")
        assert await versioned.get_data() == content


async def test_file_is_not_sent_again(client: Client) -> None:
    """Whoever has it is told so, by its ETag."""
    first = await client.get("/sdk/rubrica-embed.js")
    tag = first.headers["ETag"]
    again = await client.get("/sdk/rubrica-embed.js", headers={"If-None-Match": tag})

    assert first.headers["Cache-Control"] == "no-cache"
    assert again.status_code == 304
    assert await again.get_data() == b""
    assert again.headers["ETag"] == tag


@pytest.mark.parametrize(
    "path",
    [
        "/sdk/index.json",
        "/sdk/other.js",
        "/sdk/..%2F__init__.py",
        "/sdk/0.0.1/rubrica-embed.js",
    ],
)
async def test_nothing_else_is_handed_out(client: Client, path: str) -> None:
    """What the list lacks does not exist, nor do files of other versions."""
    members = await code(await client.get(path), 404)

    assert members["code"] == "NOT_FOUND"


@pytest.mark.parametrize("path", ["/sdk/", "/sdk/rubrica-embed.js", "/sdk/1/a.js"])
@pytest.mark.parametrize("left", ["nothing", "a list alone"])
async def test_what_was_not_built_is_absent(
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    left: str,
) -> None:
    """404, with the reason: also where a part of it was lost."""
    if left != "nothing":
        index = (sdk.FILES / sdk.INDEX).read_bytes()
        (tmp_path / sdk.INDEX).write_bytes(index)
    found = sdk.built(tmp_path)
    monkeypatch.setattr(sdk, "built", lambda: found)
    members = await code(await client.get(path), 404)

    assert members["code"] == "NOT_FOUND"
    assert "SDK" in members["detail"]
