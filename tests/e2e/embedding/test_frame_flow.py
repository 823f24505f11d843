"""The frame, from a host on another site to a signed document.

Source: spec "What the service does", "States and transitions"; decisions "Iframe".
"""

import base64
import hashlib
import io
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from pikepdf import Pdf
from playwright.async_api import Browser, Page, expect

from appliance.domain.text.civil_time import ZONE
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.lent_person import lend
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, choose_file, tab_to, until_focused
from tests.support.browsers.frame_host import ALLOW, FrameSite, file_of, user_data
from tests.support.browsers.host_page import HostPage
from tests.support.documents import pdfs
from tests.support.documents.field_pdfs import Field, with_fields
from tests.support.documents.validators import pdfsig, pyhanko_valid, signature_boxes

PDF = pdfs.one_page()


@dataclass(frozen=True, slots=True)
class Signed:
    """A document that was signed, with its frame still on the host's page."""

    site: FrameSite
    person: TestPerson
    page: Page
    init: dict[str, Any]
    completed: dict[str, Any]

    @property
    def pdf(self) -> bytes:
        """It, as the host got it."""
        text = self.completed["delivery"]["fileBase64"]
        return base64.b64decode(text, validate=True)


@pytest.fixture(scope="module")
async def signed(
    appliance: Appliance, people: dict[Appliance, TestPerson], chromium: Browser
) -> AsyncIterator[Signed]:
    """One signature, which several tests look at."""
    person = lend(appliance, people)
    opener = Opener(chromium, None)
    with HostPage() as host:
        site = FrameSite(appliance, host)
        page = await opener()
        init = await site.open(page, person, autoLoadFile=file_of(PDF))
        await ceremony.whole(site.frame(page), person)
        completed = await site.wait(page, "signature.completed")
        yield Signed(site, person, page, init, completed)
        await opener.close()
    opener.watch.check()


async def test_host_of_another_site_gets_the_signed_document(
    appliance: Appliance, signed: Signed
) -> None:
    """Base64 whose bytes are those that `document` describes, and a valid PDF."""
    completed, pdf = signed.completed, signed.pdf

    assert completed["document"] == {
        "fileName": "contrato.pdf",
        "sha256": hashlib.sha256(pdf).hexdigest(),
        "size": len(pdf),
        "mime": "application/pdf",
    }
    assert completed["idemKey"] == signed.init["idemKey"]
    assert completed["delivery"]["mode"] == "binary"
    assert pdf.startswith(PDF)
    (verdict,) = pdfsig(pdf)
    assert verdict.valid
    assert pyhanko_valid(pdf, appliance.roots)


async def test_binary_delivery_has_an_address_too(signed: Signed) -> None:
    """`url` is additive: the same bytes, for hosts that would rather fetch them."""
    assert signed.site.fetch(signed.completed["delivery"]["url"]) == signed.pdf


async def test_signed_tells_when_and_where_it_is_checked(signed: Signed) -> None:
    """Document, date, and the public page of this very signature."""
    facts = signed.site.frame(signed.page).locator("#body .facts").first
    await expect(facts).to_contain_text("contrato.pdf")
    await expect(facts).to_contain_text(
        re.compile(r"Fecha\s*\d{2}/\d{2}/\d{4},? \d{2}:\d{2}")
    )
    address = await facts.get_by_role("link").get_attribute("href")
    assert address is not None

    assert signed.person.name.split()[0][0] in signed.site.fetch(address).decode()


async def test_iframe_has_the_attributes_of_the_contract(signed: Signed) -> None:
    """The page's iframe is as the contract has it, and the frame works in it."""
    page = signed.page
    frame = page.locator("iframe")

    assert await frame.get_attribute("allow") == ALLOW
    assert await page.evaluate("document.getElementById('firma') === frames[0]")
    policy = await signed.site.frame(page).evaluate(
        "document.featurePolicy.allowedFeatures()"
    )
    assert {"camera", "microphone", "clipboard-read", "clipboard-write"} <= set(policy)


async def test_large_document_is_delivered_by_its_address(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Above the integrator's limit the mode is `url`; its page may fetch it."""
    site.deliver_inline_up_to(1000)
    await site.open(page, person, autoLoadFile=file_of(PDF))
    await ceremony.whole(site.frame(page), person)
    completed = await site.wait(page, "signature.completed")

    delivery = completed["delivery"]
    assert delivery["mode"] == "url"
    assert "fileBase64" not in delivery
    size, digest = await page.evaluate(
        """async (url) => {
          const bytes = await (await fetch(url)).arrayBuffer();
          const hash = await crypto.subtle.digest("SHA-256", bytes);
          const hex = [...new Uint8Array(hash)]
            .map((byte) => byte.toString(16).padStart(2, "0")).join("");
          return [bytes.byteLength, hex];
        }""",
        delivery["url"],
    )
    assert completed["document"]["size"] == size
    assert completed["document"]["sha256"] == digest


async def test_signer_brings_the_document(
    appliance: Appliance, site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Document loading is optional: the signer picks a file of their own."""
    await site.open(page, person)
    frame = site.frame(page)
    await ceremony.at(frame, "pick")
    await choose_file(frame.locator("#file"), "acta ñandú.pdf", PDF)
    await ceremony.whole(frame, person)
    completed = await site.wait(page, "signature.completed")

    assert completed["document"]["fileName"] == "acta ñandú.pdf"
    signed = base64.b64decode(completed["delivery"]["fileBase64"])
    assert pyhanko_valid(signed, appliance.roots)


async def test_signer_picks_a_request_of_this_integrator(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Only this integrator's pending requests are offered, to a proven signer."""
    mine = site.new_request(person, PDF, "pendiente.pdf")
    site.appliance.new_request(person, PDF, "ajeno.pdf")
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "requests")
    (shown,) = await frame.locator(".choices button").all_inner_texts()
    assert "pendiente.pdf" in shown
    assert "Estudio Contable Sur" in shown
    assert "1 página" in shown
    # Two of one name are told apart by it.
    assert "enviado el " in shown
    await frame.get_by_role("button", name="pendiente.pdf").click()
    await ceremony.at(frame, "read")
    # Fetched and drawn is not read: that is what leaving the page says.
    assert mine not in site.seen_requests(person)
    await ceremony.read(frame)
    await ceremony.choose_place(frame)
    assert site.seen_requests(person) == [mine]
    await ceremony.sign(frame, person)
    completed = await site.wait(page, "signature.completed")

    assert completed["signedDocId"] == str(mine)
    assert (mine, "firmada") in site.requests(person)


async def test_cancelled_frame_leaves_a_picked_request_pending(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A request from elsewhere is not rejected because a frame was closed."""
    mine = site.new_request(person, PDF, "pendiente.pdf")
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    await frame.get_by_role("button", name="pendiente.pdf").click()
    await ceremony.read(frame)
    await ceremony.at(frame, "place")
    await ceremony.leave(frame)
    await site.wait(page, "cancelled")

    assert site.requests(person) == [(mine, "pendiente")]


@pytest.mark.parametrize("digits", [8, 7])
async def test_dni_alone_finds_the_one_person(
    site: FrameSite, person: TestPerson, page: Page, digits: int
) -> None:
    """`dni` is the alternative to `cuil`; seven digits are padded."""
    wanted = person
    if digits == 7:
        wanted = site.appliance.new_person(number=1_234_567)
    said = user_data(wanted)
    del said["cuil"]
    said["dni"] = wanted.cuil[2:10].lstrip("0") if digits == 7 else wanted.cuil[2:10]
    await site.open(page, None, userData=said, autoLoadFile=file_of(PDF))
    await ceremony.whole(site.frame(page), wanted)

    await site.wait(page, "signature.completed")


async def test_dni_that_finds_nobody_asks_for_the_cuil(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The frame asks; the host need not know."""
    said = {"dni": "11222333", "email": person.email}
    await site.open(page, None, userData=said, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.at(frame, "identify")
    await frame.fill("#cuil", person.cuil)
    await ceremony.go(frame)
    await ceremony.give_code(frame, person)
    await ceremony.choose_place(frame)
    await ceremony.sign(frame, person)

    await site.wait(page, "signature.completed")


@pytest.mark.parametrize("who", ["unknown", "other address", "disabled"])
async def test_signer_who_does_not_fit_is_told_the_same(
    site: FrameSite, person: TestPerson, page: Page, who: str
) -> None:
    """Unknown, known under another address, or disabled: one body for all."""
    said = user_data(person)
    if who == "unknown":
        said["cuil"] = "20-26756539-3"
    if who == "other address":
        said["email"] = "otra@demo.example"
    if who == "disabled":
        site.disable(person)
    await site.open(page, None, userData=said, autoLoadFile=file_of(PDF))
    await ceremony.read(site.frame(page))
    assert await site.wait(page, "signer.unknown") == {}

    asked = site.frame(page)
    await expect(asked.locator("#body")).to_contain_text(
        "pedile a Estudio Contable Sur"
    )
    # Once, where nothing was typed yet; above the field after it was.
    await expect(asked.locator("#alert")).to_be_hidden()
    await asked.fill("#email", "nadie@demo.example")
    await ceremony.go(asked)
    await expect(asked.locator(".field #alert")).to_contain_text("No te encontramos")
    await expect(asked.get_by_text("No te encontramos")).to_have_count(1)
    # The signer may put it right here: what comes next proves that no error came.
    await ceremony.leave(asked)
    await site.wait(page, "cancelled")
    assert await site.errors(page) == []
    assert len(await site.payloads(page, "signer.unknown")) == 2


async def test_signer_who_cannot_sign_is_told_after_the_code(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A lock is told with its time and whom to ask, before place and password."""
    since = site.lock(person)
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "blocked")

    panel = frame.locator("#panel")
    await expect(panel).to_contain_text("Ahora no podés firmar")
    await expect(panel).to_contain_text(f"{since.astimezone(ZONE):%d/%m/%Y}")
    # The people of the host's page cannot unlock it.
    await expect(panel).to_contain_text("Te puede ayudar quien administra")
    await expect(frame.get_by_role("button", name="Pedir ayuda")).to_be_visible()
    error = await site.wait(page, "error")
    assert error["code"] == "SIGN_LOCKED"
    assert error["message"] in await panel.inner_text()
    assert site.requests(person) == []


async def test_signer_who_is_locked_meanwhile_is_told_the_same(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """No field to type into that changes nothing: since when, and whom to ask."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.choose_place(frame)
    await ceremony.at(frame, "password")
    since = site.lock(person)
    await ceremony.sign(frame, person)
    await ceremony.at(frame, "blocked")

    panel = frame.locator("#panel")
    await expect(panel).to_contain_text("Ahora no podés firmar")
    await expect(panel).to_contain_text(f"{since.astimezone(ZONE):%d/%m/%Y}")
    # The people of the host's page cannot unlock it.
    await expect(panel).to_contain_text("Te puede ayudar quien administra")
    await expect(frame.get_by_role("button", name="Pedir ayuda")).to_be_visible()
    await expect(frame.get_by_role("button", name="Firmar")).to_have_count(0)
    error = await site.wait(page, "error")
    assert error["code"] == "SIGN_LOCKED"
    assert site.states(person) == ["pendiente"]


async def test_code_works_once(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """A code that another session used up is not called wrong, and opens nothing."""
    one, two = await open_page(), await open_page()
    for page in (one, two):
        await site.open(page, person, autoLoadFile=file_of(PDF))
        await ceremony.read(site.frame(page))
        await ceremony.at(site.frame(page), "code")
    code = person.totp.now()
    await site.frame(one).fill("#code", code)
    await ceremony.go(site.frame(one))
    await ceremony.at(site.frame(one), "place")

    await site.frame(two).fill("#code", code)
    await ceremony.go(site.frame(two))

    await expect(site.frame(two).locator("#alert")).to_contain_text("ya lo usaste")


async def test_wrong_password_says_how_many_are_left(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """It counts after the right code only; the host is not told, details stay open."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.choose_place(frame)
    await ceremony.at(frame, "password")
    await frame.get_by_text("Datos de la firma").click()
    details = frame.locator("#body details")
    await expect(details).to_have_attribute("open", "")
    await frame.fill("#password", "otra contraseña")
    await ceremony.go(frame)

    await expect(frame.locator("#alert")).to_contain_text("Intentos restantes: 9.")
    await until_focused(frame.locator("#password"))
    await expect(frame.locator("#password")).to_have_value("")
    await expect(details).to_have_attribute("open", "")
    await ceremony.sign(frame, person)
    await site.wait(page, "signature.completed")
    assert await site.errors(page) == []


@pytest.mark.parametrize(
    ("corner", "page_number"),
    [
        ("topLeft", 1),
        pytest.param("topRight", 2, marks=pytest.mark.long),
        ("bottomRight", 3),
        ("none", 1),
    ],
)
async def test_mark_lies_where_it_was_shown(
    site: FrameSite, person: TestPerson, page: Page, corner: str, page_number: int
) -> None:
    """The box on the screen and the annotation in the file are one place."""
    await site.open(page, person, autoLoadFile=file_of(pdfs.pages(3)))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "place")
    await frame.check(f"input[value={corner}]")
    await frame.fill("#page", str(page_number))
    await frame.locator("#page").blur()
    # The mark of the choice before is on the screen until the answers are here.
    await expect(frame.locator("#viewer")).to_have_attribute("aria-busy", "false")
    shown = None
    if corner != "none":
        await expect(
            frame.locator(f".page:nth-child({page_number}) .stamp")
        ).to_be_visible()
        shown = await frame.locator(".stamp").evaluate(
            """(e) => { const p = e.parentElement.getBoundingClientRect();
              const s = e.getBoundingClientRect();
              return [(s.x - p.x) / p.width * 595, (s.y - p.y) / p.height * 842,
                      s.width / p.width * 595, s.height / p.height * 842]; }"""
        )
    await ceremony.go(frame)
    await ceremony.sign(frame, person)
    completed = await site.wait(page, "signature.completed")

    found = signature_boxes(base64.b64decode(completed["delivery"]["fileBase64"]))
    if shown is None:
        assert found == []
    else:
        ((number, x0, y0, x1, y1),) = found
        assert number == page_number
        assert [x0, 842 - y1, x1 - x0, y1 - y0] == pytest.approx(shown, abs=1.5)


async def test_field_of_the_document_is_chosen(
    appliance: Appliance, site: FrameSite, person: TestPerson, page: Page
) -> None:
    """By keyboard from the list, or by a click on its box; the mark fills it."""
    fields = [Field("a.uno"), Field("a.dos", rects=[(320, 400, 540, 470)])]
    barred = Field("a.tres", rects=[(60, 600, 200, 660)], read_only=True)
    pdf = with_fields(*fields, barred)
    await site.open(page, person, autoLoadFile=file_of(pdf))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "place")
    barred_field = frame.get_by_label("a.tres")
    await expect(barred_field).to_be_disabled()
    entry = frame.locator("label").filter(has=barred_field)
    await expect(entry).to_contain_text("Quien hizo el documento no permite firmar acá")
    await expect(frame.locator(".own-field")).to_have_count(2)
    await tab_to(page, frame.locator("input[value=bottomLeft]"))
    for _ in range(4):
        await page.keyboard.press("ArrowDown")
    await expect(frame.get_by_label("a.uno")).to_be_checked()
    await expect(frame.locator(".stamp img")).to_have_attribute(
        "alt", re.compile("^Firmado por, ")
    )
    await frame.locator(".own-field[title='a.dos']").click()
    await expect(frame.get_by_label("a.dos")).to_be_checked()
    await ceremony.go(frame)
    await expect(frame.locator("#body")).to_contain_text("Campo a.dos")
    await ceremony.sign(frame, person)
    completed = await site.wait(page, "signature.completed")

    signed = base64.b64decode(completed["delivery"]["fileBase64"])
    with Pdf.open(io.BytesIO(signed)) as opened:
        (parent,) = opened.Root.AcroForm.Fields
        filled = [str(field.T) for field in parent.Kids if "/V" in field]
    assert filled == ["dos"]
    assert pyhanko_valid(signed, appliance.roots)


async def test_page_that_is_none_is_refused_at_its_field(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """In words, at the field, which has the focus; and the host hears of no typo."""
    await site.open(page, person, autoLoadFile=file_of(pdfs.pages(2)))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "place")
    told = "Escribí un número de página, de 1 a 2."
    for typed in ("9", "", "0", "1.5"):
        await frame.fill("#page", typed)
        await ceremony.go(frame)
        await expect(frame.locator(".field #alert"), typed).to_have_text(told)
        await expect(frame.locator("#page")).to_have_attribute("aria-invalid", "true")
        await until_focused(frame.locator("#page"))
        await frame.fill("#page", "1")
        await frame.locator("#page").blur()
        await expect(frame.locator("#alert")).to_be_hidden()
    await ceremony.go(frame)
    await ceremony.sign(frame, person)
    await site.wait(page, "signature.completed")

    assert await site.errors(page) == []


async def test_key_in_a_browser_is_refused_and_flagged(
    site: FrameSite, page: Page
) -> None:
    """A page that calls the session endpoint itself gets nothing; the key is marked."""
    await site.visit(page)
    outcome = await page.evaluate(
        """([url, key]) => fetch(url, { method: "POST", headers: { "X-Api-Key": key } })
             .then((a) => a.status, () => "blocked")""",
        [
            f"{site.appliance.base_url}/api/integration/session/new?id={site.code}",
            site.key,
        ],
    )
    assert outcome == "blocked"

    # A request without the header's preflight: an extension, or an old browser.
    assert site.call_as_browser() == 403
    assert site.flagged() == ["browser"]


async def test_signer_goes_back_from_a_request_to_the_list(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Who picked the wrong one picks another; only what was left by *go on* is seen."""
    site.new_request(person, PDF, "uno.pdf")
    other = site.new_request(person, pdfs.pages(2), "dos.pdf")
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    await frame.get_by_role("button", name="uno.pdf").click()
    await ceremony.at(frame, "read")
    await frame.get_by_role("button", name="Volver a la lista").click()
    await frame.get_by_role("button", name="dos.pdf").click()
    await expect(frame.locator(".page")).to_have_count(2)
    await ceremony.whole_of_picked(frame, person)
    completed = await site.wait(page, "signature.completed")

    assert completed["signedDocId"] == str(other)
    assert site.seen_requests(person) == [other]
