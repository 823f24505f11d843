"""What docs/embedding.md tells integrators to copy works as it stands."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.support.browsers.browsers import Opener, axe, choose_file
from tests.support.browsers.host_page import HostPage, Reply
from tests.support.documents.pdfs import one_page
from tests.support.faces.fake_frame import FakeService

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "embedding.md"
IFRAME_URL = "https://firma.example.com"


def sample(kind: str) -> str:
    """The guide's code of a kind."""
    (code,) = re.findall(
        rf"^```{kind}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    return str(code)


@pytest.fixture
def service() -> Iterator[FakeService]:
    """A service that plays the appliance."""
    with FakeService("") as played:
        yield played


@pytest.fixture
def site(service: FakeService) -> Iterator[HostPage]:
    """An integrator's site, made of the guide's samples and header."""
    with HostPage() as host:
        service.play["parent"] = host.origin()
        service.tokens.append("token-1")
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; "
            f"connect-src 'self' {service.web_url}; frame-src {service.iframe_url}"
        )
        host.put("/", sample("html"), policy=policy)
        code = sample("js").replace(IFRAME_URL, service.iframe_url)
        host.put("/firma.js", code, "text/javascript")
        host.put("/firma.css", sample("css"), "text/css")
        host.on(
            "POST",
            "/mi-backend/sesion",
            lambda _: Reply.of_json({"tokenSession": "token-1"}),
        )
        yield host


async def start(page: Page, site: HostPage) -> None:
    """Give the sample page a document and start."""
    await page.goto(site.url())
    await choose_file(page.locator("#archivo"), "contrato.pdf", one_page())
    await page.click("#firmar")
    await expect(page.locator("#estado")).to_contain_text("Conectado")


@pytest.mark.parametrize("delivery", ["binary", "url"])
async def test_sample_page_signs(
    service: FakeService, site: HostPage, page: Page, delivery: str
) -> None:
    """The sample connects, hands the document over, and takes either delivery."""
    service.play["delivery"] = delivery
    await start(page, site)
    await page.frames[-1].click("#sign")

    size = len(one_page()) + len(b"\n% firmado\n")
    await expect(page.locator("#estado")).to_have_text(
        f"Firmado: firmado-contrato.pdf, {size} bytes"
    )


async def test_sample_page_shows_errors(site: HostPage, page: Page) -> None:
    """The sample tells code and message of an error."""
    await start(page, site)
    await page.frames[-1].evaluate(
        "post('error', { code: 'SESSION_TOKEN_EXPIRED', message: 'La sesión venció.' })"
    )

    await expect(page.locator("#estado")).to_have_text(
        "SESSION_TOKEN_EXPIRED: La sesión venció."
    )


async def test_sample_page_embeds_nothing_without_a_session(
    site: HostPage, page: Page
) -> None:
    """A backend with a wrong key refuses: said in words, with no frame around it."""
    refusal = Reply.of_json({"code": "API_KEY_INVALID"}, status=502)
    site.on("POST", "/mi-backend/sesion", lambda _: refusal)
    await page.goto(site.url())
    await page.click("#firmar")

    await expect(page.locator("#estado")).to_contain_text("No se pudo empezar la firma")
    await expect(page.locator("iframe")).to_have_count(0)


async def test_sample_page_is_accessible_and_big_enough(
    site: HostPage, open_page: Opener
) -> None:
    """The sample is no bad example: axe finds nothing, the frame has its size."""
    page = await open_page("desktop")
    await start(page, site)

    assert await axe(page) == []
    box = await page.locator("iframe").bounding_box()
    assert box is not None
    assert box["width"] >= 400
    assert box["height"] >= 500
