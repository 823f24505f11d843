"""A network that goes and comes back: nothing is said or shown that does not hold.

Source: decisions "Iframe"; spec "Signature-completed payload".
"""

import asyncio
import base64
from typing import Final

import pytest
from playwright.async_api import Frame, Locator, Page, Route, expect

from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.ceremony import at, go
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.documents import pdfs
from tests.support.documents.field_pdfs import Field, with_fields
from tests.support.documents.validators import signature_boxes

LOST = "No hay conexión. Probá de nuevo."
TRYING = "No hay conexión; seguimos intentando."
PLACES = "**/embed/api/place"


async def _placing(
    site: FrameSite, person: TestPerson, page: Page, pdf: bytes
) -> Frame:
    """The frame at the choice of place."""
    await site.open(page, person, autoLoadFile=file_of(pdf))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await at(frame, "place")
    await expect(frame.locator("input[value=bottomLeft]")).to_be_checked()
    return frame


async def _lose(page: Page) -> None:
    """Have what asks for a place be lost, until `unroute`."""
    await page.route(PLACES, lambda route: route.abort())


async def _signed_at(
    site: FrameSite, person: TestPerson, page: Page
) -> tuple[int, float, float]:
    """Page, left and bottom of the mark in the signed document, in points."""
    await ceremony.sign(site.frame(page), person)
    completed = await site.wait(page, "signature.completed")
    found = signature_boxes(base64.b64decode(completed["delivery"]["fileBase64"]))
    ((number, x0, y0, _, _),) = found
    return number, x0, y0


async def test_corner_that_was_not_taken_is_not_shown_as_chosen(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The corner that holds is checked, and the other one can be chosen again."""
    frame = await _placing(site, person, page, pdfs.one_page())
    wanted = frame.locator("input[value=topRight]")
    await _lose(page)
    await wanted.click()
    await expect(frame.locator("#alert")).to_have_text(LOST)
    await expect(frame.locator("input[value=bottomLeft]")).to_be_checked()
    await page.unroute(PLACES)
    async with page.expect_response(PLACES):
        await wanted.click()
    await expect(frame.locator("#alert")).to_be_hidden()
    await expect(wanted).to_be_checked()
    await go(frame)
    await at(frame, "password")

    number, left, bottom = await _signed_at(site, person, page)
    assert number == 1
    assert left > 595 / 2
    assert bottom > 842 / 2


async def test_who_goes_on_after_a_lost_choice_signs_where_the_mark_is_shown(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Moved on the page while there was no connection: it goes back, list included."""
    frame = await _placing(site, person, page, pdfs.pages(2))
    await _lose(page)
    await frame.locator(".page").first.click(position={"x": 300, "y": 100})
    await expect(frame.locator("#alert")).to_have_text(LOST)
    mark = frame.locator(".stamp")
    await mark.focus()
    await page.keyboard.press("ArrowUp")
    await expect(frame.locator("#viewer")).to_have_attribute("aria-busy", "false")
    await expect(frame.locator("input[value=bottomLeft]")).to_be_checked()
    await go(frame)
    await expect(frame.locator("#alert")).to_have_text(LOST)
    await at(frame, "place")
    await page.unroute(PLACES)
    await go(frame)
    await at(frame, "password")

    number, left, bottom = await _signed_at(site, person, page)
    assert number == 1
    assert left < 595 / 2
    assert bottom < 842 / 4


async def test_page_that_was_not_taken_is_asked_for_by_going_on(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Its number stays as it was typed, and that is the page that is signed."""
    frame = await _placing(site, person, page, pdfs.pages(3))
    await _lose(page)
    await frame.fill("#page", "3")
    await frame.locator("#page").blur()
    await expect(frame.locator("#alert")).to_have_text(LOST)
    await expect(frame.locator("#page")).to_have_value("3")
    await page.unroute(PLACES)
    await go(frame)
    await at(frame, "password")

    assert (await _signed_at(site, person, page))[0] == 3


async def test_field_that_was_not_taken_is_not_shown_as_chosen(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The corner holds, its page is asked for again, and the field can be chosen."""
    frame = await _placing(site, person, page, with_fields(Field("a.uno")))
    field = frame.locator("#field-0")
    await _lose(page)
    await field.click()
    await expect(frame.locator("#alert")).to_have_text(LOST)
    await expect(field).not_to_be_checked()
    await expect(frame.locator("input[value=bottomLeft]")).to_be_checked()
    await page.unroute(PLACES)
    await field.click()

    await expect(field).to_be_checked()
    await expect(frame.locator("#alert")).to_be_hidden()


@pytest.mark.parametrize("back", ["event", "answer"])
async def test_lost_connection_is_said_no_longer_than_it_lasts(
    site: FrameSite, person: TestPerson, page: Page, back: str
) -> None:
    """The browser says that it is back, or an answer of the service does."""
    frame = await _placing(site, person, page, pdfs.one_page())
    await _lose(page)
    await frame.locator("input[value=topRight]").click()
    await expect(frame.locator("#alert")).to_have_text(LOST)
    if back == "event":
        await page.context.set_offline(True)
        await page.context.set_offline(False)
    else:
        await frame.get_by_role("button", name="Descargar").click()

    await expect(frame.locator("#alert")).to_be_hidden()
    await page.unroute(PLACES)


async def test_host_has_the_document_only_once_it_was_told(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Signed and not handed over yet is what the signer reads until then."""
    frame = await _placing(site, person, page, pdfs.one_page())
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await go_on.wait()
        await route.abort()

    await page.route("**/embed/api/completed", hold, times=1)
    await go(frame)
    await ceremony.sign(frame, person)
    await at(frame, "done")
    await asked.wait()
    told = frame.locator("#outcome")
    await expect(told).to_contain_text("Tu firma está en el documento.")
    await expect(told).to_contain_text("Se lo estamos entregando a Estudio Contable")
    await expect(told).not_to_contain_text("ya lo tiene")
    assert await site.payloads(page, "signature.completed") == []
    go_on.set()
    await site.wait(page, "signature.completed")

    await expect(told).to_contain_text("Estudio Contable Sur ya lo tiene.")
    await frame.locator("#language").click()
    await expect(told).to_contain_text("Estudio Contable Sur has it.")


@pytest.mark.parametrize("size", [0, 2_000_000], ids=["whole", "in parts"])
async def test_document_that_cannot_be_opened_is_tried_again_at_a_press(
    site: FrameSite, person: TestPerson, page: Page, size: int
) -> None:
    """The signer reads why, the host hears of it once, and nothing turns meanwhile."""
    pdf = pdfs.heavy(2, size) if size else pdfs.one_page()
    site.new_request(person, pdf, "contrato.pdf")
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    detail = "El documento guardado está dañado."
    problem = {
        "code": "DOCUMENT_DAMAGED",
        "category": "retry",
        "detail": detail,
        "requestId": "r-1",
        "retryAfter": 60,
    }
    document = "**/embed/api/document"
    await page.route(document, lambda route: route.fulfill(status=503, json=problem))
    await frame.get_by_role("button", name="contrato.pdf").click()

    await at(frame, "refused")
    await expect(frame.locator("#panel")).to_contain_text(detail)
    await expect(frame.locator(".spinner")).to_have_count(0)
    assert (await site.wait(page, "error"))["code"] == "DOCUMENT_DAMAGED"
    await page.unroute(document)
    await frame.get_by_role("button", name="Probar de nuevo").click()
    await at(frame, "read")
    assert len(await site.errors(page)) == 1


_HIGH: Final = """() => {
  document.getElementById("firma").style.height = "2400px";
  scrollTo(0, document.body.scrollHeight);
}"""
"""Have the frame be far higher than the window, whose lower end is seen."""


async def _in_the_window(page: Page, part: Locator) -> None:
    """Demand that a part of the frame is in the window, however it is scrolled."""
    box = await part.bounding_box()
    size = page.viewport_size
    assert box is not None
    assert size is not None
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= size["height"]


async def test_lost_connection_is_said_beside_the_button_that_was_pressed(
    site: FrameSite, person: TestPerson, phone: Page
) -> None:
    """The top of a high frame is out of sight: once it failed, and as it is tried."""
    await site.open(phone, person, autoLoadFile=file_of(pdfs.one_page()))
    frame = site.frame(phone)
    await at(frame, "read")
    await phone.evaluate(_HIGH)
    await phone.route("**/embed/api/identify", lambda route: route.abort())
    await go(frame)
    alert = frame.locator("#bar #alert")
    await expect(alert).to_have_text(LOST)
    await _in_the_window(phone, alert)
    await phone.unroute("**/embed/api/identify")
    await go(frame)
    await at(frame, "code")
    await expect(frame.locator("#alert")).to_be_hidden()

    await phone.route("**/embed/api/seen", lambda route: route.abort())
    await ceremony.give_code(frame, person)
    trying = frame.locator("#bar #lost")
    await expect(trying).to_have_text(TRYING)
    await _in_the_window(phone, trying)
    await phone.unroute("**/embed/api/seen")
    await at(frame, "place")
    await expect(frame.locator("#lost")).to_be_hidden()


async def test_refusal_of_a_listed_document_stands_in_its_row(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """However long the list is; the row that was pressed leads on once it can."""
    for name in ("uno.pdf", "dos.pdf"):
        site.new_request(person, pdfs.one_page(), name)
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    await at(frame, "requests")
    await page.route("**/embed/api/choose", lambda route: route.abort())
    row = frame.locator("li").filter(has_text="dos.pdf")
    await row.get_by_role("button").click()
    await expect(row.locator("#alert")).to_have_text(LOST)
    await page.unroute("**/embed/api/choose")
    await row.get_by_role("button").click()

    await at(frame, "read")
    await expect(frame.locator("#title")).to_have_text("dos.pdf")
    await expect(frame.locator("#alert")).to_be_hidden()


async def test_download_that_failed_is_told_at_the_tools(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A change of language draws them anew; the message stays."""
    await site.open(page, person, autoLoadFile=file_of(pdfs.one_page()))
    frame = site.frame(page)
    await at(frame, "read")
    await page.route("**/embed/api/document", lambda route: route.abort())
    await frame.get_by_role("button", name="Descargar").click()
    await expect(frame.locator("#tools #alert")).to_have_text(LOST)
    await frame.locator("#language").click()
    await expect(frame.locator("html")).to_have_attribute("lang", "en")
    await frame.get_by_role("button", name="Download").click()
    await expect(frame.locator("#tools #alert")).to_have_text(
        "There is no connection. Try again."
    )
    await page.unroute("**/embed/api/document")
    async with page.expect_download():
        await frame.get_by_role("button", name="Download").click()

    await expect(frame.locator("#alert")).to_be_hidden()
