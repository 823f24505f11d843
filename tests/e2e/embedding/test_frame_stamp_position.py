"""The mark anywhere on any page: by click, drag and keys; and reading page by page.

Source: WCAG 2.2, 2.1.1 and 2.5.7; decisions "x, y".
"""

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, Frame, Page, Route, expect

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.lent_person import lend
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, resize, tab_to, until_focused
from tests.support.browsers.ceremony import at, go
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.browsers.host_page import HostPage
from tests.support.documents import pdfs
from tests.support.documents.validators import signature_boxes

_WHERE = """(e) => { const p = e.parentElement.getBoundingClientRect();
  const s = e.getBoundingClientRect();
  return [(s.x - p.x) / p.width * 595, (s.y - p.y) / p.height * 842,
          s.width / p.width * 595, s.height / p.height * 842]; }"""


async def _placing(
    site: FrameSite, person: TestPerson, page: Page, pages: int = 3
) -> Frame:
    """The frame at the choice of place."""
    await site.open(page, person, autoLoadFile=file_of(pdfs.pages(pages)))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await at(frame, "place")
    await expect(frame.locator(".stamp")).to_be_visible()
    return frame


@pytest.fixture(scope="module")
async def opened(
    appliance: Appliance, people: dict[Appliance, TestPerson], chromium: Browser
) -> AsyncIterator[Frame]:
    """A frame at the choice of place, for tests that do not go on from there."""
    person = lend(appliance, people)
    opener = Opener(chromium, None)
    with HostPage() as host:
        page = await opener()
        yield await _placing(FrameSite(appliance, host), person, page, pages=5)
        await opener.close()
    opener.watch.check()


@pytest.fixture
async def placing(opened: Frame) -> AsyncIterator[Frame]:
    """That frame come to anew: with the mark where it is at first, on page 1."""
    await opened.fill("#page", "1")
    await opened.check("input[value=bottomLeft]")
    await expect(opened.locator("#viewer")).to_have_attribute("aria-busy", "false")
    await go(opened)
    await at(opened, "password")
    await opened.get_by_role("button", name="Volver").click()
    await at(opened, "place")
    await expect(opened.locator("#page")).to_have_value("1")
    await expect(opened.locator(".page").first.locator(".stamp")).to_be_visible()
    yield opened
    await opened.page.unroute_all()


async def _hold(
    page: Page, times: int | None = None
) -> tuple[asyncio.Event, asyncio.Event]:
    """Keep back what asks for a place: that it did, and leave to go on.

    Args:
        page: that asks.
        times: how many are kept back; all of them by default.
    """
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await go_on.wait()
        await route.continue_()

    await page.route("**/embed/api/place", hold, times=times)
    return asked, go_on


async def _settled(frame: Frame) -> list[float]:
    """Left, top, width and height of the mark, in points, once it stands."""
    await expect(frame.locator("input[value=custom]")).to_be_checked()
    await expect(frame.locator("#viewer")).to_have_attribute("aria-busy", "false")
    found: list[float] = await frame.locator(".stamp").evaluate(_WHERE)
    return found


async def _signed_at(site: FrameSite, person: TestPerson, page: Page) -> Any:
    """Page number and box of the mark in the signed document, from its top left."""
    await go(site.frame(page))
    return await _signed(site, person, page)


async def _signed(site: FrameSite, person: TestPerson, page: Page) -> Any:
    """The same, from the password on."""
    await ceremony.sign(site.frame(page), person)
    completed = await site.wait(page, "signature.completed")
    found = signature_boxes(base64.b64decode(completed["delivery"]["fileBase64"]))
    ((number, x0, y0, x1, y1),) = found
    return number, [x0, 842 - y1, x1 - x0, y1 - y0]


async def test_click_on_a_page_puts_the_mark_there(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Where it was clicked is the mark's middle, on that very page."""
    frame = await _placing(site, person, page)
    second = frame.locator(".page").nth(1)
    await second.scroll_into_view_if_needed()
    await second.click(position={"x": 300, "y": 200})
    await expect(second.locator(".stamp")).to_be_visible()
    box = await _settled(frame)
    scale = await second.evaluate("(e) => 595 / e.getBoundingClientRect().width")
    middle = [box[0] + box[2] / 2, box[1] + box[3] / 2]
    assert middle == pytest.approx([300 * scale, 200 * scale], abs=2)
    assert await frame.input_value("#page") == "2"

    assert await _signed_at(site, person, page) == (2, pytest.approx(box, abs=1.5))


async def test_page_that_is_read_is_told_with_the_document_out_of_sight(
    opened: Frame,
) -> None:
    """Where it was opened behind other steps, its first page is the one."""
    frame = opened

    await expect(frame.locator(".page").first.locator(".stamp")).to_be_visible()
    await expect(frame.locator("#at")).to_have_value("1")


async def test_mark_is_dragged_and_stays_on_the_page(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Dragged past the edge it stops there, and the place is one that is signed."""
    frame = await _placing(site, person, page)
    await frame.check("input[value=topLeft]")
    mark = frame.locator(".stamp")
    await expect(mark).to_have_attribute("style", re.compile(r"top: 2\.\d"))
    await mark.scroll_into_view_if_needed()
    box = await mark.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + 20, box["y"] + 10)
    await page.mouse.down()
    await page.mouse.move(box["x"] + 200, box["y"] + 40, steps=4)
    await page.mouse.move(1270, box["y"] + 60, steps=4)
    await page.mouse.up()
    left, _, width, _ = there = await _settled(frame)

    assert left + width == pytest.approx(595, abs=1.5)
    assert await _signed_at(site, person, page) == (1, pytest.approx(there, abs=1.5))


async def test_arrow_keys_move_the_mark_and_say_where_it_is(placing: Frame) -> None:
    """Ten points a press, one with Shift; never off the page; the focus stays."""
    frame, page = placing, placing.page
    mark = frame.locator(".stamp")
    before = await mark.evaluate(_WHERE)
    await tab_to(page, mark)
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "Shift+ArrowUp"):
        await page.keyboard.press(key)
    await expect(frame.locator("#status")).to_have_text(
        re.compile(r"^Página 1: a [\d,]+ cm de la izquierda y [\d,]+ cm de arriba\.$")
    )
    after = await _settled(frame)
    assert after[:2] == pytest.approx([before[0] + 20, before[1] - 11], abs=1.5)
    await until_focused(mark)
    for _ in range(90):
        await page.keyboard.press("ArrowDown")
    await expect(frame.locator("#status")).to_contain_text("cm de arriba")
    _, top, _, height = await _settled(frame)

    assert top + height == pytest.approx(842, abs=1.5)
    await go(frame)
    await at(frame, "password")
    # Of a step that is over nothing is said any more.
    await expect(frame.locator("#status")).to_be_empty()
    await frame.get_by_role("button", name="Volver").click()
    await at(frame, "place")


@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_who_puts_the_mark_anywhere_reads_how(
    site: FrameSite, person: TestPerson, open_page: Opener, size: str
) -> None:
    """By finger, by mouse and by keyboard: seen once it is chosen, if not before."""
    page = await open_page(size)
    frame = await _placing(site, person, page)
    hint = frame.locator("#custom-hint")
    await frame.check("input[value=custom]")
    await _settled(frame)

    await expect(hint).to_be_in_viewport(ratio=1)
    await expect(hint).to_contain_text("Elegí un punto de la página")
    box = await hint.bounding_box()
    assert box is not None
    assert box["width"] > 200
    keys = hint.locator(".by-keys")
    await expect(keys).to_contain_text("movela con las flechas")
    # A telephone has no keys, until some are used on it.
    assert await keys.is_visible() == (size == "desktop")
    await frame.locator("input[value=custom]").focus()
    await page.keyboard.press("Tab")
    await expect(keys).to_be_visible()


@pytest.mark.parametrize("window", [(390, 844), (390, 664)])
async def test_another_point_leaves_the_page_number_in_view(
    site: FrameSite, person: TestPerson, phone: Page, window: tuple[int, int]
) -> None:
    """Of several pages one is chosen, and the mark put on it, without scrolling."""
    frame = await _placing(site, person, phone)
    await resize(phone, window, frame)
    await frame.check("input[value=custom]")
    await _settled(frame)
    last = frame.get_by_role("button", name="Última página")
    for part in (frame.locator("#page"), last, frame.locator("#custom-hint")):
        await expect(part).to_be_in_viewport(ratio=1)
    await last.click()

    await expect(frame.locator(".page").last.locator(".stamp")).to_be_in_viewport()
    await expect(frame.locator("#page")).to_be_in_viewport(ratio=1)


async def test_who_goes_on_at_once_signs_where_the_mark_was_moved(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Where it is seen is where it is signed, also right after the last press."""
    frame = await _placing(site, person, page)
    mark = frame.locator(".stamp")
    before = await mark.evaluate(_WHERE)
    await tab_to(page, mark)
    await frame.evaluate(
        """() => {
          const mark = document.querySelector(".stamp");
          const press = { key: "ArrowRight", bubbles: true, cancelable: true };
          for (let n = 0; n < 5; n += 1) {
            mark.dispatchEvent(new KeyboardEvent("keydown", press));
          }
          document.querySelector("form").requestSubmit();
        }"""
    )
    there = [before[0] + 50, *before[1:]]

    assert await _signed(site, person, page) == (1, pytest.approx(there, abs=1.5))


async def test_who_goes_on_while_the_place_is_looked_at_signs_there(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """However long its answer takes: the keys that have rested ask no second time."""
    frame = await _placing(site, person, page)
    mark = frame.locator(".stamp")
    before = await mark.evaluate(_WHERE)
    asked, go_on = await _hold(page)
    await frame.evaluate(
        """() => new Promise((rested) => {
          const mark = document.querySelector(".stamp");
          const press = { key: "ArrowRight", bubbles: true, cancelable: true };
          mark.dispatchEvent(new KeyboardEvent("keydown", press));
          document.querySelector("form").requestSubmit();
          // Set after the mark's own timer, and longer: it fires after it.
          setTimeout(rested, 600);
        })"""
    )
    await asked.wait()
    go_on.set()
    there = [before[0] + 10, *before[1:]]

    assert await _signed(site, person, page) == (1, pytest.approx(there, abs=1.5))


async def test_place_is_kept_on_another_page(placing: Frame) -> None:
    """The last page is one press away; where the mark was, it is there too."""
    frame = placing
    await frame.locator(".page").first.click(position={"x": 250, "y": 150})
    before = await _settled(frame)
    await frame.get_by_role("button", name="Última página").click()
    last = frame.locator(".page").last
    await expect(last.locator(".stamp")).to_be_visible()
    assert await frame.input_value("#page") == "5"

    assert await _settled(frame) == pytest.approx(before, abs=1)


async def test_choice_that_comes_late_gives_way_to_a_later_one(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Arrow keys pass by *somewhere else*; what its answer says changes nothing."""
    frame = await _placing(site, person, page)
    asked, go_on = await _hold(page, times=1)
    await frame.check("input[value=custom]")
    await asked.wait()
    await frame.check("input[value=none]")
    await expect(frame.locator(".stamp")).to_have_count(0)
    async with page.expect_response("**/embed/api/place"):
        go_on.set()
    await go(frame)
    await ceremony.sign(frame, person)
    completed = await site.wait(page, "signature.completed")

    assert signature_boxes(base64.b64decode(completed["delivery"]["fileBase64"])) == []


async def test_page_that_is_being_typed_is_left_alone(placing: Frame) -> None:
    """The answer to an earlier choice may come in between."""
    frame = placing
    asked, go_on = await _hold(frame.page, times=1)
    await frame.check("input[value=bottomRight]")
    await asked.wait()
    await frame.fill("#page", "3")
    go_on.set()
    await expect(frame.locator("#viewer")).to_have_attribute("aria-busy", "false")

    await expect(frame.locator("#page")).to_have_value("3")
    await frame.locator("#page").blur()
    await expect(frame.locator(".page").nth(2).locator(".stamp")).to_be_visible()


async def test_page_that_nobody_types_follows_the_mark(placing: Frame) -> None:
    """Also where its field is gone into while the answer is still to come."""
    frame = placing
    asked, go_on = await _hold(frame.page, times=1)
    await frame.get_by_role("button", name="Última página").click()
    await asked.wait()
    await frame.locator("#page").focus()
    go_on.set()
    await expect(frame.locator("#viewer")).to_have_attribute("aria-busy", "false")

    await expect(frame.locator("#page")).to_have_value("5")
    # It goes on; and back, where the mark is still the one of page 5.
    await frame.locator("#page").press("Enter")
    await at(frame, "password")
    await frame.get_by_role("button", name="Volver").click()
    await at(frame, "place")
    await expect(frame.locator(".page").nth(4).locator(".stamp")).to_be_visible()


async def test_refused_page_leaves_the_mark_where_it_is_shown(placing: Frame) -> None:
    """Also where it was refused twice: by leaving its field and by going on."""
    frame = placing
    await frame.fill("#page", "9")
    await go(frame)
    await expect(frame.locator("#alert")).to_be_visible()
    await frame.check("input[value=custom]")

    await expect(frame.locator("#page")).to_have_value("1")
    await expect(frame.locator("#alert")).to_be_hidden()
    assert (await _settled(frame))[0] > 0


async def test_corrected_page_clears_its_error(placing: Frame) -> None:
    """What was mended is not held against anybody."""
    frame = placing
    await frame.fill("#page", "9")
    await frame.locator("#page").blur()
    await expect(frame.locator("#page")).to_have_attribute("aria-invalid", "true")
    await frame.fill("#page", "3")
    await frame.locator("#page").blur()
    await expect(frame.locator(".page").nth(2).locator(".stamp")).to_be_visible()

    await expect(frame.locator("#alert")).to_be_hidden()
    assert await frame.locator("#page").get_attribute("aria-invalid") is None


@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_pages_are_turned_while_reading(
    site: FrameSite, person: TestPerson, open_page: Opener, size: str
) -> None:
    """Next, before, and by number; the number follows who scrolls."""
    page = await open_page(size)
    await site.open(page, person, autoLoadFile=file_of(pdfs.pages(40)))
    frame = site.frame(page)
    await at(frame, "read")
    shown = frame.locator("#at")
    await frame.get_by_role("button", name="Página siguiente").click()
    await expect(shown).to_have_value("2")
    await shown.fill("31")
    await shown.press("Enter")
    await expect(frame.locator(".page").nth(30)).to_be_in_viewport()
    await expect(shown).to_have_value("31")
    await at(frame, "read")
    await frame.get_by_role("button", name="Página anterior").click()
    await expect(shown).to_have_value("30")
    await frame.locator(".page").nth(11).scroll_into_view_if_needed()
    await expect(shown).to_have_value(re.compile("^1[123]$"))
    await shown.fill("999")
    await shown.press("Enter")

    await expect(frame.locator(".page").last).to_be_in_viewport()


@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_four_taps_and_two_fields_sign(
    site: FrameSite, person: TestPerson, open_page: Opener, size: str
) -> None:
    """From the document to the signature, for who takes what is offered."""
    page = await open_page(size)
    await site.open(page, person, autoLoadFile=file_of(pdfs.one_page()))
    frame = site.frame(page)
    await frame.evaluate(
        """() => { window.taps = 0; window.fields = new Set();
          addEventListener("click", (e) => { window.taps += e.isTrusted ? 1 : 0; });
          addEventListener("input", (e) => window.fields.add(e.target.id)); }"""
    )
    await ceremony.read(frame)
    await at(frame, "code")
    await page.keyboard.type(person.totp.now())
    await go(frame)
    await at(frame, "place")
    await go(frame)
    await at(frame, "password")
    await expect(frame.locator("#password")).to_be_in_viewport(ratio=1)
    await page.keyboard.type(person.signing_password)
    await go(frame)
    await at(frame, "done")

    taps, fields = await frame.evaluate("[window.taps, [...window.fields]]")
    assert taps <= 4
    assert fields == ["code", "password"]
