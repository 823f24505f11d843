"""The pages for developers as a browser gets them: whole, linked, from here alone."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from quart.typing import TestClientProtocol as HttpClient

from appliance.developer_docs.pages import PAGES
from appliance.domain.errors import ErrorCode
from tests.support.installation.api import ApiServices, create_api
from tests.support.installation.installation import Installation

BROWSER: Final = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ADDRESSES: Final = [
    f"/docs/{lang}/{page.name}" for lang in ("es", "en") for page in PAGES
]
WEB_URL: Final = "https://sesiones.firma.example"


@dataclass
class Read(HTMLParser):
    """What a page links, loads and names."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    styled: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element."""
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        elif tag == "link":
            self.loaded.append(given["href"])
        elif "src" in given:
            self.loaded.append(given["src"])
        self.styled += [name for name in given if name == "style" or name[:2] == "on"]


@pytest.fixture
async def api_services(tmp_path: Path) -> AsyncIterator[ApiServices]:
    """The core of a face whose session API has an address of its own."""
    async with Installation(tmp_path, web={"web_url": WEB_URL}).api() as made:
        yield made


@pytest.fixture
def client(api_services: ApiServices) -> HttpClient:
    """A browser's calls."""
    return create_api(api_services).test_client()


async def read(client: HttpClient, address: str) -> Read:
    """A page."""
    answer = await client.get(address, headers=BROWSER)
    assert answer.status_code == 200, address
    found = Read()
    found.feed(await answer.get_data(as_text=True))
    return found


@pytest.mark.parametrize("address", ADDRESSES)
async def test_page_is_whole(client: HttpClient, address: str) -> None:
    """In its language, by its policy, with nothing inline and nothing from outside."""
    answer = await client.get(address, headers=BROWSER)
    text = await answer.get_data(as_text=True)
    found = Read()
    found.feed(text)

    lang = address.split("/")[2]
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Content-Language"] == lang
    assert f'<html lang="{"es-AR" if lang == "es" else lang}">' in text
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "script" not in found.tags
    assert "style" not in found.tags
    assert found.styled == []
    assert found.loaded
    assert all(each.startswith("../../static/") for each in found.loaded)
    assert len(found.ids) == len(set(found.ids))
    assert text.count("<h1") == 1


async def test_every_link_leads_somewhere(client: HttpClient) -> None:
    """Pages, their anchors, files, what they load; those outside are few."""
    pages = {address: await read(client, address) for address in ADDRESSES}
    outside, seen = set(), set()
    for address, page in pages.items():
        for link in [*page.links, *page.loaded]:
            if re.match(r"[a-z]+:", link):
                outside.add(link)
                continue
            target, anchor = urldefrag(urljoin(address, link))
            if anchor:
                assert unquote(anchor) in pages[target].ids, (address, link)
            seen.add(target)

    assert outside == {"https://www.standardwebhooks.com"}
    assert seen >= set(ADDRESSES)
    for target in seen - set(ADDRESSES):
        assert (await client.get(target)).status_code == 200, target


@pytest.mark.parametrize(
    ("asked", "lang"), [("en-GB", "en"), ("es-AR", "es"), ("fr", "es")]
)
async def test_docs_lead_to_the_readers_language(
    client: HttpClient, asked: str, lang: str
) -> None:
    """By Accept-Language; the address is relative, whatever path is before it."""
    answer = await client.get("/docs", headers={"Accept-Language": asked})

    assert answer.status_code == 303
    assert answer.headers["Location"] == f"./docs/{lang}/"
    assert answer.headers["Vary"] == "Accept-Language"


async def test_page_that_is_known_is_not_sent_again(client: HttpClient) -> None:
    """By its ETag; another page has another one."""
    first = await client.get("/docs/es/guide")
    tag = first.headers["ETag"]
    again = await client.get("/docs/es/guide", headers={"If-None-Match": tag})
    other = await client.get("/docs/es/errors", headers={"If-None-Match": tag})

    assert again.status_code == 304
    assert await again.get_data() == b""
    assert again.headers["ETag"] == tag
    assert other.status_code == 200
    assert first.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "address",
    [
        "/docs/fr/",
        "/docs/es/nada",
        "/docs/es/index",
        "/docs/files/nada",
        "/docs/files/iframe.html",
    ],
)
async def test_page_that_is_not_there_is_told(client: HttpClient, address: str) -> None:
    """To a person on a page, to a program as a problem."""
    seen = await client.get(address, headers=BROWSER)
    called = await client.get(address)

    assert seen.status_code == called.status_code == 404
    assert "No hay nada en esta dirección" in await seen.get_data(as_text=True)
    assert (await called.get_json())["code"] == "NOT_FOUND"


async def test_index_wants_its_slash(client: HttpClient) -> None:
    """Links of a page are relative."""
    answer = await client.get("/docs/es")

    assert answer.status_code == 308
    assert answer.headers["Location"] == "./es/"


@pytest.mark.parametrize(
    ("address", "location"),
    [
        ("/docs/", "../docs"),
        ("/docs/es/guide/", "../guide"),
        ("/docs/es/guide/?a=b%2F", "../guide?a=b%2F"),
        ("/verificar/", "../verificar"),
        ("/healthz/", "../healthz"),
    ],
)
async def test_page_without_a_slash_is_found_with_one(
    client: HttpClient, address: str, location: str
) -> None:
    """People type one more; the way leads to the same host, whatever its name."""
    answer = await client.get(address)

    assert answer.status_code == 308
    assert answer.headers["Location"] == location


@pytest.mark.parametrize(
    "address", ["/no/", "/docs/es/guide//", "/docs//", "/solicitudes/"]
)
async def test_slash_leads_nowhere_where_nothing_is(
    client: HttpClient, address: str
) -> None:
    """Neither do several; what changes something is not repeated elsewhere."""
    assert (await client.get(address)).status_code == 404
    assert (await client.post("/auth/login/")).status_code == 404


async def test_guide_is_of_this_installation(client: HttpClient) -> None:
    """Whoever copies a block calls the right address."""
    page = await (await client.get("/docs/es/guide")).get_data(as_text=True)

    assert f"WEB_URL={WEB_URL}\n" in page


async def test_errors_have_an_anchor_each(client: HttpClient) -> None:
    """What an answer says as `code` leads to its entry."""
    page = await read(client, "/docs/es/errors")

    assert set(map(str, ErrorCode)) <= set(page.ids)


async def test_files_are_saved(client: HttpClient) -> None:
    """Samples and vectors, as files."""
    sample = await client.get("/docs/files/request.py")
    vectors = await client.get("/docs/files/webhook-vectors.json")

    assert sample.headers["Content-Disposition"].startswith("attachment;")
    assert "import httpx" in await sample.get_data(as_text=True)
    assert json.loads(await vectors.get_data())[0]["valido"] is True


async def test_every_page_is_kept_once(api_services: ApiServices) -> None:
    """However often and by whomever it is asked for."""
    app = create_api(api_services)
    asking = app.test_client()
    for _ in range(2):
        for address in [*ADDRESSES, "/docs/es/nada", "/docs/fr/guide"]:
            await asking.get(address)

    assert len(app.extensions["rubrica.developer_docs"]) == len(ADDRESSES)
