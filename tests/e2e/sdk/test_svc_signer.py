"""<svc-signer> in browsers: around the real frame, and around one that is played."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from playwright.async_api import Frame, Page, expect

from appliance.system.catalogues import LANGUAGES
from appliance.web import sdk
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import backend_of
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, axe
from tests.support.browsers.frame_host import ALLOW, FrameSite
from tests.support.browsers.host_page import HostPage, Reply
from tests.support.documents import pdfs
from tests.support.faces.fake_frame import FakeService
from tests.support.patience import CALL_S
from tests.support.processes.plain_http import NO_TLS

README: Final = Path(__file__).resolve().parents[3] / "sdk/javascript/README.md"
PDF: Final = pdfs.one_page()
_PAGE: Final = """<!doctype html>
<html lang="es"><meta charset="utf-8"><title>Sitio</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<main><h1>Firmar</h1><div id="place"></div></main>
SCRIPT
</html>
"""
_CLASSIC: Final = '<script src="/rubrica-embed.classic.js"></script>'
_MODULE: Final = (
    '<script type="module">import * as made from "/rubrica-embed.js";'
    "globalThis.RubricaEmbed = made;</script>"
)
_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; connect-src 'self' {web}; "
    "frame-src {frame}"
)
_OPEN: Final = """([frameUrl, given, attributes]) => {
  const signer = document.createElement("svc-signer");
  signer.setAttribute("frame-url", frameUrl);
  for (const [name, value] of Object.entries(attributes))
    signer.setAttribute(name, value);
  globalThis.signer = signer;
  globalThis.told = [];
  const names = ["ready", "connected", "loaded", "completed", "rejected", "cancelled",
    "unknown", "error", "expiring", "state", "resize", "message"];
  for (const name of names)
    signer.addEventListener(name, ({ detail }) => told.push([name, detail]));
  globalThis.asked = 0;
  signer.fetchToken = async () => {
    asked += 1;
    const answer = await fetch("/sesion", { method: "POST" });
    return (await answer.json()).tokenSession;
  };
  signer.userData = { cuil: "20-26756539-3", email: "bruno@demo.example" };
  Object.assign(signer, given);
  document.getElementById("place").replaceChildren(signer);
}"""


def sample(appliance: Appliance) -> str:
    """The page of the README, with the addresses of an appliance."""
    listed = httpx.get(
        f"{appliance.base_url}/sdk/", verify=NO_TLS, timeout=CALL_S
    ).json()
    (integrity,) = (
        row["integridad"]
        for row in listed["archivos"]
        if row["nombre"] == "rubrica-embed.js"
    )
    (page,) = re.findall(
        r"^```html\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return (
        str(page)
        .replace("https://api.example.com", appliance.base_url)
        .replace("https://firma.example.com", appliance.iframe_url)
        .replace("sha384-…", integrity)
    )


async def sign_on_the_sample_page(
    appliance: Appliance, site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Serve the README's page as an integrator does, and sign on it."""
    text = sample(appliance).replace("20-26756539-3", person.cuil)
    site.host.put("/firmar", text.replace("bruno@demo.example", person.email))
    site.host.put("/contrato.pdf", PDF, "application/pdf")
    site.host.on(
        "POST",
        "/mi-backend/sesion",
        lambda _: Reply.of_json({"tokenSession": site.token()}),
    )
    await page.goto(site.host.url("/firmar"))
    await expect(page.locator("svc-signer iframe")).to_be_visible()
    await ceremony.whole(await frame_of(page), person, "topRight")

    await expect(page.locator("#estado")).to_have_text(
        re.compile("^Firmado: .+[.]pdf$")
    )


def served_sample(appliance: Appliance, lang: str) -> str:
    """The page that the documentation of an appliance shows, as a reader copies it."""
    shown = httpx.get(
        f"{appliance.base_url}/docs/{lang}/sdk", verify=NO_TLS, timeout=CALL_S
    ).text
    (page,) = re.findall(r'<code class="language-html">(.*?)</code>', shown, re.DOTALL)
    return html.unescape(page)


@pytest.mark.parametrize("lang", LANGUAGES)
async def test_page_of_the_documentation_signs(
    appliance: Appliance, site: FrameSite, person: TestPerson, page: Page, lang: str
) -> None:
    """Copied as it stands, with a backend behind it and a person of one's own."""
    with backend_of(appliance, code=site.code) as backend:
        process = backend.made(PDF, person)["procesoId"]
        opened = backend.client.post(
            "/api/integration/sessions", json={"procesoId": process}
        )
    text = served_sample(appliance, lang).replace("20-26756539-3", person.cuil)
    site.host.put("/firmar", text.replace("bruno@example.org", person.email))
    token = {"tokenSession": opened.json()["tokenSession"]}
    site.host.on("POST", "/mi-backend/sesion", lambda _: Reply.of_json(token))
    await page.goto(site.host.url("/firmar"))
    await expect(page.locator("svc-signer iframe")).to_be_visible()
    frame = await frame_of(page)
    # The document is the installation's: it is shown to whoever proved who they are.
    await ceremony.give_code(frame, person)
    await ceremony.whole_of_picked(frame, person)

    await expect(page.locator("#estado")).to_have_text("Firmado: contrato.pdf")


async def frame_of(page: Page) -> Frame:
    """What is in the element's iframe."""
    handle = await page.locator("svc-signer iframe").element_handle()
    frame = await handle.content_frame()
    assert frame is not None
    return frame


async def test_sample_page_signs(
    appliance: Appliance, site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Ten lines of HTML, the SDK by its integrity, and a document is signed."""
    await sign_on_the_sample_page(appliance, site, person, page)

    assert site.states(person)[-1] == "firmada"


async def test_sample_page_signs_in_firefox(
    appliance: Appliance, site: FrameSite, person: TestPerson, open_firefox: Opener
) -> None:
    """There too."""
    await sign_on_the_sample_page(appliance, site, person, await open_firefox())

    assert site.states(person)[-1] == "firmada"


async def test_page_that_is_loaded_again_after_the_code_goes_on(
    appliance: Appliance, site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Under the same token the element's key is the same: nothing is begun twice."""
    token = site.token()
    text = sample(appliance).replace("20-26756539-3", person.cuil)
    site.host.put("/firmar", text.replace("bruno@demo.example", person.email))
    site.host.put("/contrato.pdf", PDF, "application/pdf")
    answer = Reply.of_json({"tokenSession": token})
    site.host.on("POST", "/mi-backend/sesion", lambda _: answer)
    await page.goto(site.host.url("/firmar"))
    await expect(page.locator("svc-signer iframe")).to_be_visible()
    frame = await frame_of(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "place")
    await page.reload()
    await expect(page.locator("svc-signer iframe")).to_be_visible()
    frame = await frame_of(page)
    await ceremony.read(frame)
    await ceremony.choose_place(frame)
    await ceremony.sign(frame, person)
    await ceremony.at(frame, "done")

    assert site.states(person) == ["firmada"]
    kept = await page.evaluate("JSON.stringify({...sessionStorage})")
    assert token not in kept


@pytest.fixture
def service() -> Iterator[FakeService]:
    """A service that plays the appliance."""
    with FakeService("") as played:
        yield played


@pytest.fixture
def signing_site(service: FakeService, host: HostPage) -> HostPage:
    """An integrator's site: the SDK's files, and a backend that has tokens."""
    built = sdk.built()
    assert built is not None
    service.play["parent"] = host.origin()
    policy = _POLICY.format(web=service.web_url, frame=service.iframe_url)
    host.put("/", _PAGE.replace("SCRIPT", _MODULE), policy=policy)
    host.put("/classic", _PAGE.replace("SCRIPT", _CLASSIC), policy=policy)
    for name in ("rubrica-embed.js", "rubrica-embed.classic.js"):
        served = built.files[name]
        host.put(f"/{name}", served.content, served.media_type)

    def new_token() -> Reply:
        service.tokens.append(f"token-{len(service.tokens) + 1}")
        return Reply.of_json({"tokenSession": service.tokens[-1]})

    host.on("POST", "/sesion", lambda _: new_token())
    return host


async def show(
    page: Page, site: HostPage, service: FakeService, path: str = "/", **given: Any
) -> None:
    """Put an element into the page; `attributes` are of it, all else properties."""
    await page.goto(site.url(path))
    await page.wait_for_function("globalThis.RubricaEmbed !== undefined")
    attributes = given.pop("attributes", {})
    await page.evaluate(_OPEN, [service.iframe_url, given, attributes])


async def told(page: Page, name: str, count: int = 1) -> list[dict[str, Any]]:
    """The details of one kind of event, once there are so many."""
    found = "told.filter(([name]) => name === wanted).map(([, detail]) => detail)"
    await page.wait_for_function(
        f"([wanted, count]) => {found}.length >= count", arg=[name, count]
    )
    details: list[dict[str, Any]] = await page.evaluate(f"(wanted) => {found}", name)
    return details


async def received(page: Page) -> list[dict[str, Any]]:
    """Messages that the frame got."""
    frame = await frame_of(page)
    messages: list[dict[str, Any]] = await frame.evaluate("received")
    return messages


async def post(page: Page, kind: str, payload: str = "{}") -> None:
    """Have the frame send a message."""
    frame = await frame_of(page)
    await frame.evaluate(f"post('{kind}', {payload})")


@pytest.mark.parametrize("path", ["/", "/classic"])
async def test_module_and_classic_script_do_the_same(
    signing_site: HostPage, service: FakeService, page: Page, path: str
) -> None:
    """From the token to the signed document, whose hash the SDK checks."""
    await show(page, signing_site, service, path)
    await page.evaluate("signer.file = new File(['%PDF-1.7 x'], 'acta ñ.pdf')")
    await told(page, "connected")
    await (await frame_of(page)).locator("#document:has-text('acta ñ')").wait_for()
    await (await frame_of(page)).click("#sign")
    (completed,) = await told(page, "completed")

    name, size = await page.evaluate(
        "async (detail) => { const file = await RubricaEmbed.signedDocument(detail);"
        " return [file.name, file.size]; }",
        completed,
    )
    assert (name, size) == ("firmado-acta ñ.pdf", len("%PDF-1.7 x\n% firmado\n"))
    idem_key = await page.evaluate("signer.idemKey")
    assert completed["idemKey"] == idem_key


async def test_other_bytes_than_announced_are_no_document(
    signing_site: HostPage, service: FakeService, page: Page
) -> None:
    """A hash that is not that of the bytes is an error."""
    await show(page, signing_site, service)
    await told(page, "connected")
    await (await frame_of(page)).evaluate("complete({ sha256: '0'.repeat(64) })")
    (completed,) = await told(page, "completed")

    said = await page.evaluate(
        "(detail) => RubricaEmbed.signedDocument(detail).catch((e) => e.message)",
        completed,
    )
    assert said == "the document is not the announced one"


async def test_frame_is_embedded_as_the_contract_has_it(
    signing_site: HostPage, service: FakeService, open_page: Opener
) -> None:
    """Its attributes and size; nothing that keeps it from working; accessible."""
    page = await open_page("phone")
    attributes = {"frame-title": "Firma del acta"}
    await show(page, signing_site, service, attributes=attributes)
    await told(page, "connected")

    frame = page.locator("svc-signer iframe")
    assert await frame.get_attribute("allow") == ALLOW
    assert await frame.get_attribute("title") == "Firma del acta"
    assert await frame.get_attribute("referrerpolicy") == "origin"
    assert await frame.get_attribute("sandbox") is None
    assert await frame.get_attribute("src") == (
        f"{service.iframe_url}/embed/?sessionToken=token-1"
    )
    box = await frame.bounding_box()
    assert box is not None
    assert (box["width"] <= 390, box["height"] >= 500) == (True, True)
    assert await axe(page) == []


async def test_init_is_sent_once_and_again_after_a_reload(
    signing_site: HostPage, service: FakeService, page: Page
) -> None:
    """Once for each `ready`, with a nonce, and the token and key of before."""
    await show(page, signing_site, service, idemKey="clave-1")
    await told(page, "connected")
    (first,) = await received(page)
    await (await frame_of(page)).evaluate("location.reload()")
    await told(page, "connected", 2)
    (again,) = await received(page)

    assert first["type"] == "svc.init"
    assert first["payload"]["idemKey"] == "clave-1"
    assert first["payload"]["sessionToken"] == "token-1"
    assert len(first["payload"]["nonce"]) == 36
    assert again == first
    assert await page.evaluate("asked") == 1


async def test_other_origins_and_windows_are_not_heard(
    signing_site: HostPage, service: FakeService, page: Page
) -> None:
    """Another window of the same page, and the frame once it is elsewhere."""
    await show(page, signing_site, service)
    await told(page, "connected")
    before = await page.evaluate("told.length")
    await page.evaluate(
        "postMessage({ type: 'svc.signature.completed', payload: {} }, '*')"
    )
    # The right window, and another origin.
    await page.evaluate(
        "dispatchEvent(new MessageEvent('message', {"
        " data: { type: 'svc.signature.completed', payload: {} },"
        " origin: 'https://evil.example', source: signer.frame.contentWindow }))"
    )
    # No message, another prefix, another shape: none of them is an event.
    for wrong in ("null", "'svc.error'", "{ type: 7 }", "{ type: 'other.error' }"):
        await (await frame_of(page)).evaluate(
            f"parent.postMessage({wrong}, play.parent)"
        )
    await post(page, "state", "{ state: 'connected' }")
    await told(page, "state")

    names = await page.evaluate("(from) => told.slice(from).map(([n]) => n)", before)
    assert names == ["message", "state"]


async def test_each_message_is_an_event(
    signing_site: HostPage, service: FakeService, page: Page
) -> None:
    """By its own name; types that nobody knows yet are told as `message` alone."""
    attributes = {"prefix": "acme", "auto-height": ""}
    service.play["prefix"] = "acme"
    await show(page, signing_site, service, attributes=attributes)
    await told(page, "connected")
    for kind in ("rejected", "cancelled", "signer.unknown", "document.loaded"):
        await post(page, kind)
    await post(page, "resize", "{ height: 731 }")
    await post(page, "of.later", "{ n: 1 }")
    messages = await told(page, "message", 8)

    for name in ("ready", "rejected", "cancelled", "unknown", "loaded", "resize"):
        assert len(await told(page, name)) == 1
    assert messages[-1] == {"type": "acme.of.later", "payload": {"n": 1}}
    box = await page.locator("svc-signer iframe").bounding_box()
    assert box is not None
    assert box["height"] == 731


async def test_session_is_renewed_before_its_end(
    signing_site: HostPage, service: FakeService, page: Page
) -> None:
    """By another token of the backend; not where the page says that it does so."""
    await show(page, signing_site, service)
    await told(page, "connected")
    await post(page, "session.expiring", "{ secondsLeft: 300 }")
    await (await frame_of(page)).wait_for_function("received.length === 2")
    _, renewed = await received(page)
    await page.evaluate(
        "signer.addEventListener('expiring', (event) => event.preventDefault())"
    )
    await post(page, "session.expiring", "{ secondsLeft: 60 }")
    await told(page, "expiring", 2)

    assert renewed == {
        "type": "svc.session.renew",
        "payload": {"sessionToken": "token-2"},
    }
    assert await page.evaluate("asked") == 2


async def test_backend_that_gives_no_token_is_told(
    signing_site: HostPage, service: FakeService, page: Page
) -> None:
    """No frame is embedded; `restart` tries again."""
    refusal = Reply.of_json({"code": "API_KEY_INVALID"}, 502)
    fresh = signing_site._responders["POST", "/sesion"]
    signing_site.on("POST", "/sesion", lambda _: refusal)
    await show(page, signing_site, service)
    (error,) = await told(page, "error")
    await expect(page.locator("iframe")).to_have_count(0)

    signing_site.on("POST", "/sesion", fresh)
    await page.evaluate("signer.restart()")
    await told(page, "connected")
    assert (error["code"], error["retryable"]) == ("NO_TOKEN", True)


async def test_restart_takes_another_token_and_the_same_key(
    signing_site: HostPage, service: FakeService, page: Page
) -> None:
    """What `new_session` asks for; a closed element opens by nothing else."""
    await show(page, signing_site, service)
    await told(page, "connected")
    (first,) = await received(page)
    # There is nobody to be told, and nothing that opens it again.
    await page.evaluate(
        "signer.addEventListener('sent', () => told.push(['sent', null]));"
        "signer.close(); signer.cancel(); signer.userData = { ...signer.userData }"
    )
    await expect(page.locator("iframe")).to_have_count(0)
    assert await page.evaluate("told.every(([name]) => name !== 'sent')")
    await page.evaluate("signer.restart()")
    await told(page, "connected", 2)
    (second,) = await received(page)

    assert second["payload"]["idemKey"] == first["payload"]["idemKey"]
    assert second["payload"]["sessionToken"] == "token-2"


@pytest.mark.parametrize(
    ("play", "wait_s", "code"), [("silent", 15, "NO_READY"), ("mute", 10, "NO_ACK")]
)
async def test_frame_that_says_nothing_is_told(
    signing_site: HostPage,
    service: FakeService,
    open_page: Opener,
    play: str,
    wait_s: int,
    code: str,
) -> None:
    """Instead of an empty rectangle for ever."""
    page = await open_page("desktop", alone=True)
    await page.clock.install()
    service.play[play] = True
    await show(page, signing_site, service)
    await page.locator("svc-signer iframe").wait_for()
    if play == "mute":
        await told(page, "ready")
    await page.clock.fast_forward((wait_s + 1) * 1000)
    (error,) = await told(page, "error")

    assert error["code"] == code


async def test_element_that_is_moved_opens_again(
    signing_site: HostPage, service: FakeService, page: Page
) -> None:
    """As frameworks do to it; each time once."""
    await show(page, signing_site, service)
    await told(page, "connected")
    await page.evaluate("document.querySelector('main').append(signer)")
    await told(page, "connected", 2)

    await expect(page.locator("iframe")).to_have_count(1)
    assert await page.evaluate("asked") == 1
