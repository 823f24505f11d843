"""The demo integrator's page against a frame that plays the service."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest
from playwright.async_api import Frame, Locator, Page, Response, expect

from appliance.web.sdk import MODULE
from tests.support.browsers.browsers import (
    Opener,
    choose_file,
    click_inside,
    press_on,
    tab_to,
    until,
)
from tests.support.browsers.demo_site import EMAIL, DemoSite, running_demo_site
from tests.support.browsers.host_page import Reply
from tests.support.browsers.page_appearance import LOADED_AT, PageAppearance
from tests.support.documents.pdfs import one_page
from tests.support.faces.fake_frame import API_KEY, BATCH, PROCESS

PDF = one_page()


class StartSite(Protocol):
    """Starts a demo site for a test."""

    def __call__(self, **play: Any) -> DemoSite:
        """Start it; `play` as in `running_demo_site`."""


@pytest.fixture
def start_site(tmp_path: Path) -> Iterator[StartSite]:
    """Starts demo sites that end with the test."""
    with ExitStack() as stack:

        def start(**play: Any) -> DemoSite:
            site: AbstractContextManager[DemoSite] = running_demo_site(tmp_path, **play)
            return stack.enter_context(site)

        yield start


async def visit(page: Page, demo_site: DemoSite) -> None:
    """Open the page, and wait until its script has taken it up."""
    await page.goto(demo_site.url)
    await expect(page.locator("form:not([inert])")).to_be_visible()


async def fill(page: Page, demo_site: DemoSite, content: bytes = PDF) -> None:
    """Open the page and give it a document."""
    await visit(page, demo_site)
    await choose_file(page.locator("#file"), "acta ñ.pdf", content)


async def begin(page: Page, demo_site: DemoSite) -> Frame:
    """Give the page a document and open the frame; the frame, once connected."""
    await fill(page, demo_site)
    await page.click("#open")
    await expect(done(page, "ack")).to_be_visible()
    return frame_of(page)


def done(page: Page, step: str) -> Locator:
    """A step of the page's progress, when it is done."""
    return page.locator(f"#steps [data-step={step}][data-done]")


def frame_of(page: Page) -> Frame:
    """The iframe's content."""
    return page.frames[-1]


async def received(frame: Frame) -> list[dict[str, Any]]:
    """Messages that the frame got."""
    messages: list[dict[str, Any]] = await frame.evaluate("received")
    return messages


async def test_frame_has_the_attributes_of_the_contract(
    start_site: StartSite, page: Page
) -> None:
    """The iframe is embedded as "Iframe embedding" has it."""
    site = start_site()
    await begin(page, site)

    frame = page.locator("iframe")
    assert await frame.get_attribute("id")
    assert await frame.get_attribute("title") == "Firma del documento"
    assert await frame.get_attribute("allow") == (
        "clipboard-read; clipboard-write; camera *; microphone"
    )
    assert await frame.get_attribute("src") == (
        f"{site.service.iframe_url}/embed/?sessionToken=token-1"
    )
    box = await frame.bounding_box()
    assert box is not None
    assert box["width"] >= 400
    assert box["height"] >= 500


async def test_init_carries_all_fields_and_the_document(
    start_site: StartSite, page: Page
) -> None:
    """`init` follows `ready`, with a fresh nonce, the token and `autoLoadFile`."""
    frame = await begin(page, start_site())

    (message,) = await received(frame)
    payload = message["payload"]
    assert message["type"] == "svc.init"
    assert payload["sessionToken"] == "token-1"
    assert payload["nonce"] != payload["idemKey"]
    assert payload["userData"] == {
        "cuil": "20-26756539-3",
        "email": EMAIL,
        "name": "Bruno Díaz",
    }
    assert payload["autoLoadFile"]["fileName"] == "acta ñ.pdf"
    assert payload["autoLoadFile"]["mime"] == "application/pdf"
    size = f"acta ñ.pdf · {len(PDF)} bytes"
    await expect(page.frame_locator("iframe").locator("#document")).to_have_text(size)


async def test_load_file_follows_the_ack_when_so_chosen(
    start_site: StartSite, page: Page
) -> None:
    """A document may be handed over by `load.file`, never before the ack."""
    await fill(page, start_site())
    await page.evaluate("document.getElementById('handover').value = 'load'")
    await page.click("#open")
    await expect(page.frame_locator("iframe").locator("#document")).to_contain_text(
        "acta"
    )

    init, file = await received(frame_of(page))
    assert "autoLoadFile" not in init["payload"]
    assert file["type"] == "svc.load.file"
    assert file["payload"]["base64"].startswith("JVBERi")


async def test_init_on_load_connects_a_frame_that_is_late(
    start_site: StartSite, page: Page
) -> None:
    """A host may start on the iframe's `onload`, without waiting for `ready`."""
    await fill(page, start_site(silent=True))
    await page.evaluate("document.getElementById('way').value = 'plain'")
    await page.evaluate("document.getElementById('start').value = 'load'")
    await page.click("#open")

    await expect(done(page, "ack")).to_be_visible()


async def test_page_uses_the_sdk_by_its_hash(start_site: StartSite, page: Page) -> None:
    """The frame stands in `<svc-signer>`, whose script the service has."""
    site = start_site()
    await begin(page, site)

    await expect(page.locator("#container > svc-signer iframe")).to_have_count(1)
    script = page.locator("script[integrity]")
    assert await script.get_attribute("src") == f"{site.service.web_url}/sdk/{MODULE}"
    assert str(await script.get_attribute("integrity")).startswith("sha384-")


async def test_plain_messages_do_the_same(start_site: StartSite, page: Page) -> None:
    """Without the SDK: the same init, the same events, the same document."""
    sent = []
    for way in ("element", "plain"):
        await fill(page, start_site())
        await page.evaluate(
            "(way) => { document.getElementById('way').value = way }", way
        )
        await page.click("#open")
        await expect(done(page, "ack")).to_be_visible()
        (message,) = await received(frame_of(page))
        await frame_of(page).click("#sign")
        await expect(page.locator("#result .good")).to_have_count(3)
        told = page.locator("#log .fromFrame code")
        sent.append((message, await told.all_inner_texts()))
        assert await page.locator("svc-signer").count() == (way == "element")

    (by_element, heard), (plain, heard_plain) = sent
    for name in ("nonce", "idemKey"):
        assert by_element["payload"].pop(name) != plain["payload"].pop(name)
    assert by_element == plain
    assert heard == heard_plain


async def test_page_without_the_sdk_signs_too(
    start_site: StartSite, open_page: Opener
) -> None:
    """Where the service has none, or another one than the page's hash says."""
    page = await open_page()
    site = start_site()
    script = b"globalThis.spoilt = true;"
    allow = {"Access-Control-Allow-Origin": "*"}
    site.service.on(
        "GET",
        f"/sdk/{MODULE}",
        lambda _: Reply(script, "text/javascript", headers=allow),
    )
    await begin(page, site)

    assert await page.evaluate("globalThis.spoilt") is None
    await expect(page.locator("#container > iframe")).to_have_count(1)
    await expect(page.locator("#way-field")).to_be_hidden()


@pytest.mark.parametrize("delivery", ["binary", "url"])
async def test_signed_document_is_checked_and_downloaded(
    start_site: StartSite, page: Page, delivery: str
) -> None:
    """Either delivery ends in a checked document that can be saved."""
    frame = await begin(page, start_site(delivery=delivery))
    await frame.click("#sign")

    result = page.locator("#result")
    await expect(result.locator(".good")).to_have_count(3)
    signed = PDF + b"\n% firmado\n"
    await expect(result).to_contain_text(hashlib.sha256(signed).hexdigest())
    async with page.expect_download() as download:
        await result.get_by_role("link", name="Descargar").click()
    saved = await download.value
    assert saved.suggested_filename == "acta ñ-firmado.pdf"
    assert (await saved.path()).read_bytes() == signed


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ("{ sha256: '0'.repeat(64) }", "El SHA-256 NO coincide con el informado"),
        ("{ size: 1 }", "El tamaño NO coincide"),
    ],
)
async def test_other_bytes_than_announced_are_told(
    start_site: StartSite, page: Page, changes: str, verdict: str
) -> None:
    """A document that is not the announced one is not shown as good."""
    frame = await begin(page, start_site())
    await frame.evaluate(f"complete({changes})")

    await expect(page.locator("#result .bad")).to_contain_text(verdict)


async def test_unreachable_download_is_told_and_stays_offered(
    start_site: StartSite, page: Page
) -> None:
    """Where the document cannot be fetched for checking, its address is given."""
    site = start_site(delivery="url")
    frame = await begin(page, site)
    site.service.play["parent"] = "https://other.example"  # no CORS for this page
    await frame.click("#sign")

    await expect(page.locator("#result .bad")).to_contain_text("No se pudo traer")
    href = await page.locator("#result a").get_attribute("href")
    assert href == site.service.url("/download")


async def test_expired_session_is_renewed_with_the_same_key(
    start_site: StartSite, page: Page
) -> None:
    """The page asks its backend for a new token; the idempotency key stays."""
    expired = {"code": "SESSION_TOKEN_EXPIRED", "message": "La sesión venció."}
    site = start_site(error=expired)
    await fill(page, site)
    await page.click("#open")
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("SESSION_TOKEN_EXPIRED")
    (first,) = await received(frame_of(page))

    site.service.play["error"] = None
    await alert.get_by_role("button").click()
    await expect(done(page, "ack")).to_be_visible()

    (second,) = await received(frame_of(page))
    assert second["payload"]["sessionToken"] == "token-2"
    assert second["payload"]["idemKey"] == first["payload"]["idemKey"]
    assert second["payload"]["nonce"] != first["payload"]["nonce"]


async def test_reload_continues_what_is_under_way(
    start_site: StartSite, page: Page
) -> None:
    """The same token, idempotency key and document: no other session, no request."""
    site = start_site()
    (before,) = await received(await begin(page, site))
    await page.reload()
    await expect(done(page, "ack")).to_be_visible()

    (after,) = await received(frame_of(page))
    assert before["payload"].pop("nonce") != after["payload"].pop("nonce")
    assert after == before
    assert site.service.tokens == ["token-1"]
    await frame_of(page).click("#sign")
    await expect(page.locator("#result .good")).to_have_count(3)


async def test_reload_after_the_end_begins_anew(
    start_site: StartSite, page: Page
) -> None:
    """Nothing is continued after *Empezar de nuevo*, or where the signer cancelled."""
    frame = await begin(page, start_site())
    await page.click("#again")
    await page.reload()
    await expect(page.locator("form:not([inert])")).to_be_visible()
    await expect(page.locator("#container iframe")).to_have_count(0)

    await choose_file(page.locator("#file"), "acta.pdf", PDF)
    await page.click("#open")
    await expect(done(page, "ack")).to_be_visible()
    frame = frame_of(page)
    await frame.evaluate("post('cancelled', {})")
    await expect(page.locator("#status")).to_contain_text("sigue pendiente")
    await page.reload()
    await expect(page.locator("form:not([inert])")).to_be_visible()
    await expect(page.locator("#container iframe")).to_have_count(0)


async def test_link_of_a_mail_opens_its_request(
    start_site: StartSite, page: Page
) -> None:
    """The frame opens for that request, without a document, with its signer's data."""
    site = start_site()
    await page.goto(f"{site.url}?proceso={PROCESS}&solicitud=8&lote=")
    await expect(done(page, "ack")).to_be_visible()

    (message,) = await received(frame_of(page))
    assert "autoLoadFile" not in message["payload"]
    assert message["payload"]["userData"] == {
        "cuil": "20-26756539-3",
        "email": EMAIL,
        "name": "Bruno Díaz",
    }
    await expect(page.locator("#asked")).to_contain_text("Bruno Díaz")
    await expect(page.locator("#asked")).to_contain_text("acuerdo.pdf")
    (asked,) = [call for call in site.service.calls if call.target.endswith("sessions")]
    assert json.loads(asked.body) == {"solicitudId": 8}

    await page.reload()
    await expect(done(page, "ack")).to_be_visible()
    assert site.service.tokens == ["token-1"]


async def test_link_of_another_person_waits_for_their_address(
    start_site: StartSite, page: Page
) -> None:
    """Of a signer whose e-mail the site does not know, the form asks for it."""
    site = start_site()
    await page.goto(f"{site.url}?proceso={PROCESS}&solicitud=7&lote={BATCH}")
    await expect(page.locator("#email")).to_be_focused()
    assert await page.input_value("#cuil") == "20-05536168-2"
    assert site.service.tokens == []

    await page.fill("#email", "ana@demo.example")
    await page.click("#open")
    await expect(done(page, "ack")).to_be_visible()
    (asked,) = [call for call in site.service.calls if call.target.endswith("sessions")]
    assert json.loads(asked.body) == {"loteId": BATCH}


async def test_link_to_nothing_is_told(start_site: StartSite, page: Page) -> None:
    """A request that the service does not know: its code, and the way on."""
    await page.goto(f"{start_site().url}?proceso=otro")

    await expect(page.locator("#asked")).to_contain_text("No se pudo encontrar")
    await page.get_by_role("link", name="Firmar otro documento").click()
    await expect(page.locator("#asked")).to_be_hidden()


async def test_link_of_a_mail_keeps_its_request_in_the_other_language(
    start_site: StartSite, page: Page
) -> None:
    """The links to the languages keep the parameters."""
    await page.goto(f"{start_site().url}?proceso={PROCESS}&solicitud=8")
    await expect(done(page, "ack")).to_be_visible()
    await page.get_by_role("link", name="English").click()

    await expect(page.locator("#asked")).to_contain_text("has “acuerdo.pdf” to sign")


async def test_error_of_the_frame_is_shown_in_its_words(
    start_site: StartSite, page: Page
) -> None:
    """Another error shows code and message, and offers no new session."""
    frame = await begin(page, start_site())
    await frame.evaluate(
        "post('error', { code: 'BASE64_INVALID', message: 'No es Base64.',"
        " category: 'fix_request', retryable: false, requestId: 'r1' })"
    )

    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("BASE64_INVALID")
    await expect(alert).to_contain_text("No es Base64.")
    await expect(alert.get_by_role("button")).to_have_count(0)


async def test_message_of_another_origin_is_ignored(
    start_site: StartSite, page: Page
) -> None:
    """A window that is not the frame cannot make the page believe anything."""
    await begin(page, start_site())
    forged = {"type": "svc.signature.completed", "payload": {"document": {}}}
    # The page's policy keeps frames of others out: the message is its own.
    await page.evaluate("(m) => window.postMessage(m, '*')", forged)

    await expect(page.locator("#log .ignored")).to_have_count(1)
    await expect(page.locator("#result")).to_be_hidden()
    await expect(done(page, "completed")).to_have_count(0)


async def test_sibling_frame_of_the_same_origin_is_ignored(
    start_site: StartSite, page: Page
) -> None:
    """The right origin is not enough: the message must come from the frame itself."""
    site = start_site()
    await begin(page, site)
    site.service.put(
        "/sibling",
        "<script>parent.postMessage({ type: 'svc.error', payload: { code: 'FORGED' } },"
        f"'{site.url.rstrip('/')}')</script>",
    )
    await page.evaluate(
        "(src) => document.body.append(Object.assign("
        "document.createElement('iframe'), { src }))",
        site.service.iframe_url + "/sibling",
    )

    await expect(page.locator("#log .ignored")).to_have_count(1)
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_other_prefix_of_the_configuration_is_spoken(
    start_site: StartSite, page: Page
) -> None:
    """Event names carry the maker's prefix; the configuration says which."""
    frame = await begin(page, start_site(prefix="firma"))

    (message,) = await received(frame)
    assert message["type"] == "firma.init"


async def test_unknown_message_of_the_frame_is_harmless(
    start_site: StartSite, page: Page
) -> None:
    """Types that the page does not know are logged and let be."""
    frame = await begin(page, start_site())
    await frame.evaluate("post('state', { state: 'reviewing' })")

    await expect(page.locator("#log .fromFrame").last).to_contain_text("svc.state")
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_reloaded_frame_gets_init_again(
    start_site: StartSite, page: Page
) -> None:
    """A frame that says `ready` again is owed another `init`."""
    frame = await begin(page, start_site())
    await frame.evaluate("received.length = 0; post('ready', {})")

    await expect(page.locator("#log code", has_text="svc.init")).to_have_count(2)
    await frame.wait_for_function("received.length > 0")
    (message,) = await received(frame)
    assert message["payload"]["sessionToken"] == "token-1"


async def test_silent_frame_gets_a_diagnosis(
    start_site: StartSite, open_page: Opener
) -> None:
    """No `ready` for 15 s: the page says what it usually is."""
    page = await open_page(alone=True)
    await page.clock.install()
    await fill(page, start_site(silent=True))
    await page.click("#open")
    await expect(done(page, "session")).to_be_visible()
    await page.clock.run_for(15_100)

    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("El marco no respondió")
    await expect(alert).to_contain_text("registrado")


async def test_frame_that_answers_nothing_gets_a_diagnosis(
    start_site: StartSite, open_page: Opener
) -> None:
    """No ack for 10 s after `init`: the page names the target origin."""
    page = await open_page(alone=True)
    await page.clock.install()
    await fill(page, start_site(mute=True))
    await page.click("#open")
    await expect(done(page, "ready")).to_be_visible()
    await page.clock.run_for(10_100)

    await expect(page.get_by_role("alert")).to_contain_text("origen de destino")


async def test_policy_of_the_page_keeps_other_frames_out(
    start_site: StartSite, open_page: Opener
) -> None:
    """The page's policy allows the configured frame and no other."""
    page = await open_page()
    await visit(page, start_site())
    await page.evaluate(
        "document.body.append(Object.assign(document.createElement('iframe'),"
        " { src: 'https://other.example/' }))"
    )
    await until(lambda: open_page.watch.violations)

    open_page.watch.expect_violation("frame-src.*other.example")


async def test_api_key_never_reaches_the_browser(
    start_site: StartSite, page: Page
) -> None:
    """No answer that the page gets contains the key (rule 1)."""
    responses: list[Response] = []
    # The driver cannot wrap a method of a list.
    page.on("response", lambda response: responses.append(response))  # noqa: PLW0108
    site = start_site()
    await begin(page, site)

    bodies = [await response.body() for response in responses]
    assert any(b"token-1" in body for body in bodies)
    assert not any(API_KEY.encode() in body for body in bodies)


async def test_missing_key_is_told_in_words(start_site: StartSite, page: Page) -> None:
    """Without a key the page says what to run."""
    site = start_site()
    site.key_file.unlink()
    await fill(page, site)
    await page.click("#open")

    await expect(page.get_by_role("alert")).to_contain_text("rubrica demo setup")


async def test_missing_sample_is_told_beside_its_choice(
    start_site: StartSite, page: Page
) -> None:
    """Without its file the page says what to do, and opens no session."""
    site = start_site(sample=PDF)
    site.config_file.with_name("contrato.pdf").unlink()
    await visit(page, site)
    await page.click("#open")

    await expect(page.locator("#sample-error")).to_contain_text("rubrica demo setup")
    await expect(page.locator("#sample")).to_be_focused()
    assert site.service.tokens == []

    await page.check("[name=source][value=own]")
    await choose_file(page.locator("#file"), "acta.pdf", PDF)
    await page.click("#open")
    await expect(done(page, "ack")).to_be_visible()
    await expect(page.locator("#sample-error")).to_be_hidden()


async def test_wrong_fields_are_told_beside_them(
    start_site: StartSite, page: Page
) -> None:
    """Each wrong field says what it wants, and the first gets the focus."""
    site = start_site()
    await visit(page, site)
    await page.fill("#cuil", "20267565393")
    await page.fill("#email", "bruno")
    await page.click("#open")

    await expect(page.locator("#file-error")).to_contain_text("Elegí un archivo PDF")
    await expect(page.locator("#cuil-error")).to_contain_text("11 dígitos")
    await expect(page.locator("#email-error")).to_contain_text("válido")
    await expect(page.locator("#file")).to_be_focused()
    assert site.service.tokens == []


async def test_keyboard_alone_signs(start_site: StartSite, page: Page) -> None:
    """From form to download nobody needs a mouse."""
    await fill(page, start_site())
    await press_on(page, page.locator("#open"))
    await expect(done(page, "ack")).to_be_visible()
    await press_on(page, page.frame_locator("iframe").locator("#sign"))
    await expect(page.locator("#result")).to_be_visible()

    await tab_to(page, page.locator("#result a"))


async def test_every_state_is_accessible_in_every_look(
    start_site: StartSite, open_page: Opener
) -> None:
    """Form, errors, connected, signed and failed: axe finds nothing."""
    page = await open_page(LOADED_AT)
    site = start_site(sample=PDF)
    looks = PageAppearance(page, open_page, "demo")

    async def look(name: str) -> None:
        await looks.at(name, *page.frames)

    await visit(page, site)
    await look("1-form")
    for summary in await page.locator("form summary").all():
        await summary.click()
    await page.check("[value=own]")
    await page.fill("#email", "bruno")
    await page.click("#open")
    await look("2-faults")
    await page.fill("#email", EMAIL)
    await page.check("[value=sample]")
    await page.click("#open")
    await expect(done(page, "ack")).to_be_visible()
    await look("3-connected")
    frame = frame_of(page)
    await frame.evaluate("post('error', { code: 'BUSY', message: 'Probá otra vez.' })")
    await expect(page.get_by_role("alert")).to_be_visible()
    await look("4-error")
    await click_inside(frame.locator("#sign"))
    await expect(page.locator("#result")).to_be_visible()
    await look("5-signed")
    await page.locator("#log summary").last.click()
    await look("6-log")

    assert looks.faults == []


async def test_nothing_runs_out_of_the_page_sideways(
    start_site: StartSite, page: Page
) -> None:
    """At no width is there a need to scroll sideways, with the frame open."""
    await begin(page, start_site())
    wide: dict[int, int] = {}
    for width in (320, 390, 768, 1280):
        await page.set_viewport_size({"width": width, "height": 800})
        wide[width] = await page.evaluate(
            "document.documentElement.scrollWidth"
            " - document.documentElement.clientWidth"
        )

    assert not any(wide.values()), wide


async def test_english_page_has_no_spanish_left(
    start_site: StartSite, open_page: Opener
) -> None:
    """Every sentence of the page has its English."""
    page = await open_page(locale="en-GB")
    await visit(page, start_site())

    await expect(page.locator("html")).to_have_attribute("lang", "en")
    await expect(page.get_by_role("button", name="Start signing")).to_be_visible()
    untold = await page.evaluate(
        "[...document.querySelectorAll('[data-t]')]"
        ".filter((e) => !e.textContent || e.textContent === 'undefined').length"
    )
    assert untold == 0
    await open_page.picture(page, "demo-english")


async def test_firefox_signs_too(start_site: StartSite, open_firefox: Opener) -> None:
    """The page and its protocol hold in Firefox."""
    page = await open_firefox()
    frame = await begin(page, start_site())
    await frame.click("#sign")

    await expect(page.locator("#result .good")).to_have_count(3)
