"""What is read stays in view, and the height that the frame asks for is enough."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Frame, Locator, Page, expect

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.lent_person import lend
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, resize
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.browsers.host_page import HostPage
from tests.support.documents import pdfs

PAGES: Final = 14
LONG: Final = pdfs.pages(PAGES)
WINDOWS: Final = {"phone": (390, 844), "desktop": (1280, 800)}

_MIDDLE: Final = """() => {
  const area = document.getElementById("document").getBoundingClientRect();
  const y = (Math.max(area.top, 0) + Math.min(area.bottom, innerHeight)) / 2;
  const pages = [...document.querySelectorAll(".page")];
  const at = pages.findIndex((page) => page.getBoundingClientRect().bottom > y);
  const box = pages[at].getBoundingClientRect();
  return { page: at + 1, down: (y - box.top) / box.height };
}"""
"""What is in the middle of the document's area: the page, and how far down it."""


@pytest.fixture(scope="module", params=WINDOWS)
async def opened(
    request: pytest.FixtureRequest,
    appliance: Appliance,
    people: dict[Appliance, TestPerson],
    chromium: Browser,
) -> AsyncIterator[Frame]:
    """A frame in a window of a size with a long document on the screen."""
    opener = Opener(chromium, None)
    person = lend(appliance, people)
    with HostPage() as host:
        site = FrameSite(appliance, host)
        site.rename("Mi Tienda S.A.")
        page = await opener(request.param)
        await site.open(page, person, autoLoadFile=file_of(LONG))
        await ceremony.at(site.frame(page), "read")
        yield site.frame(page)
        await opener.close()
    opener.watch.check()


@pytest.fixture
async def reading(opened: Frame, request: pytest.FixtureRequest) -> Frame:
    """That frame in its own size, twelve pages on."""
    await resize(opened.page, WINDOWS[request.node.callspec.params["opened"]], opened)
    await go_on(opened)
    return opened


async def go_on(frame: Frame) -> None:
    """Turn to page 12, and not to its edge, where the next pixel is another page."""
    await frame.fill("#at", "12")
    await frame.press("#at", "Enter")
    await expect(frame.locator("#at")).to_have_value("12")
    await frame.evaluate(
        """() => {
          const page = document.querySelectorAll(".page")[11];
          page.scrollIntoView({ block: "center" });
        }"""
    )
    await settled(frame)


async def press(page: Page, button: Locator) -> None:
    """Press a button where it is: Playwright's own click scrolls to it before."""
    box = await button.bounding_box()
    assert box is not None
    await page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


async def settled(frame: Frame) -> None:
    """Let what follows a change of size or place be done."""
    await frame.evaluate(
        """() => new Promise((done) => {
          let left = 4;
          const next = () => (left-- ? requestAnimationFrame(next) : done());
          next();
        })"""
    )


async def still_there(frame: Frame, before: dict[str, Any]) -> None:
    """Demand that the same place of the same page is in the middle."""
    await settled(frame)
    now = await frame.evaluate(_MIDDLE)
    assert now["page"] == before["page"]
    assert now["down"] == pytest.approx(before["down"], abs=0.05)
    await expect(frame.locator("#at")).to_have_value(str(before["page"]))


async def test_zoom_keeps_the_place_that_is_read(reading: Frame) -> None:
    """Bigger, smaller and back, by button and by key: it is page 12 all the time."""
    page = reading.page
    before = await reading.evaluate(_MIDDLE)
    assert before["page"] == 12
    for way in ("button", "keyboard"):
        for name, times in (("Más grande", 4), ("Más chico", 6), ("Más grande", 2)):
            button = reading.get_by_role("button", name=name)
            for _ in range(times):
                if way == "button":
                    await press(page, button)
                else:
                    await button.focus()
                    await page.keyboard.press("Enter")
                await still_there(reading, before)


async def test_last_page_is_still_the_one_after_zooming_out_and_in(
    reading: Frame,
) -> None:
    """Where nothing follows that could be scrolled to, nothing drifts either."""
    await reading.fill("#at", str(PAGES))
    await reading.press("#at", "Enter")
    await settled(reading)
    await reading.evaluate(
        """() => {
          const pages = document.querySelectorAll(".page");
          pages[pages.length - 1].scrollIntoView({ block: "center" });
        }"""
    )
    await settled(reading)
    before = await reading.evaluate(_MIDDLE)
    for name in ("Más chico", "Más chico", "Más grande", "Más grande"):
        await press(reading.page, reading.get_by_role("button", name=name))
        await settled(reading)
        await expect(reading.locator("#at")).to_have_value(str(before["page"]))
    await still_there(reading, before)


_BOTH_WAYS: Final = ((844, 390), (700, 900), (1280, 800), (390, 844), (1280, 800))
"""Windows narrower, turned, and wider, across the two layouts in both directions."""


async def test_frame_of_another_size_keeps_the_place_that_is_read(
    reading: Frame,
) -> None:
    """Made narrower, turned, and back, also across the two layouts."""
    before = await reading.evaluate(_MIDDLE)
    for size in _BOTH_WAYS:
        await resize(reading.page, size, reading)
        await still_there(reading, before)


async def test_frame_of_another_size_keeps_the_place_after_zooming_there_and_back(
    reading: Frame,
) -> None:
    """Also where the mouse is left over the frame, and the page was chosen since."""
    for name in ("Más grande", "Más chico"):
        for _ in range(4):
            await press(reading.page, reading.get_by_role("button", name=name))
            await settled(reading)
    await go_on(reading)
    before = await reading.evaluate(_MIDDLE)
    assert before["page"] == 12
    for size in _BOTH_WAYS:
        await resize(reading.page, size, reading)
        await still_there(reading, before)


async def test_page_chosen_right_before_another_size_is_the_one_that_is_kept(
    reading: Frame,
) -> None:
    """Before it was told that anything was scrolled, there may be another width."""
    await reading.evaluate(
        """() => {
          const at = document.getElementById("at");
          at.value = "5";
          at.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
          document.getElementById("viewer").style.width = "70%";
        }"""
    )
    await settled(reading)
    now = await reading.evaluate(_MIDDLE)
    await reading.evaluate("document.getElementById('viewer').style.width = ''")
    await settled(reading)

    assert now["page"] == 5
    await still_there(reading, now)


async def test_who_scrolls_after_zooming_is_followed(reading: Frame) -> None:
    """What was kept in view is let go; the next zoom keeps what is read then."""
    await reading.get_by_role("button", name="Más grande").click()
    await reading.fill("#at", "3")
    await reading.press("#at", "Enter")
    await settled(reading)
    before = await reading.evaluate(_MIDDLE)
    await reading.get_by_role("button", name="Más grande").click()
    await still_there(reading, before)
    for _ in range(2):
        await reading.get_by_role("button", name="Más chico").click()


_LINES: Final = """(e) => {
  const range = document.createRange();
  range.selectNodeContents(e);
  return new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size;
}"""
"""In how many lines the words of an element stand."""


async def test_page_has_the_room_on_a_telephone(reading: Frame) -> None:
    """One row of tools, and the name above stands whole, at 390 and at 320 px."""
    for width, height, share in ((390, 844, 0.6), (320, 640, 0.45)):
        await resize(reading.page, (width, height), reading)
        await settled(reading)
        tools = await reading.locator("#tools").bounding_box()
        bar = await reading.locator("#bar").bounding_box()
        assert tools is not None
        assert bar is not None
        assert tools["height"] < 2 * 44
        seen = bar["y"] - tools["y"] - tools["height"]
        assert seen / height > share
        who = reading.locator("#top .who")
        assert await who.evaluate("(e) => e.scrollHeight <= e.clientHeight")
        assert await who.evaluate(_LINES) <= 2
        # No word of it is broken: the longest one fits.
        assert await who.evaluate("(e) => e.clientWidth") > 60


async def test_names_of_steps_stand_in_one_line(reading: Frame) -> None:
    """In the narrow column beside the document, in both languages."""
    await resize(reading.page, WINDOWS["desktop"], reading)
    for other in ("English", "Español"):
        await settled(reading)
        for name in await reading.locator("#progress li span").all():
            await expect(name).to_be_visible()
            assert await name.evaluate(_LINES) == 1
        await reading.get_by_role("button", name=other).click()
        lang = "en" if other == "English" else "es-AR"
        await expect(reading.locator("html")).to_have_attribute("lang", lang)


_FOLLOW: Final = """() => {
  const frame = document.getElementById("firma");
  frame.style.height = "300px";
  addEventListener("message", ({ data }) => {
    if (data.type === "svc.resize") frame.style.height = `${data.payload.height}px`;
  });
}"""


async def whole_in_view(page: Page, part: Locator) -> None:
    """Demand that a part of the frame lies wholly in it."""
    box = await part.bounding_box()
    outer = await page.locator("#firma").bounding_box()
    assert box is not None
    assert outer is not None
    assert box["y"] >= outer["y"] - 1
    assert box["y"] + box["height"] <= outer["y"] + outer["height"] + 1


@pytest.mark.parametrize("size", WINDOWS)
async def test_height_that_is_told_is_enough_and_comes_to_rest(
    site: FrameSite, person: TestPerson, open_page: Opener, size: str
) -> None:
    """A host that follows `svc.resize` shows every step, and nothing swings."""
    page = await open_page(size)
    token = await site.ready(page)
    await page.evaluate(_FOLLOW)
    init = site.init(token, person, autoLoadFile=file_of(LONG))
    await site.send(page, "init", init)
    frame = site.frame(page)

    async def comfortable(least: int, *parts: str) -> None:
        await settled(frame)
        told = (await site.payloads(page, "resize"))[-1]["height"]
        assert told >= least
        assert await frame.evaluate("innerHeight") == told
        for part in parts:
            await whole_in_view(page, frame.locator(part))

    await ceremony.at(frame, "read")
    await expect(frame.locator(".page canvas").first).to_be_visible()
    await comfortable(720, "#tools", "#bar")
    await ceremony.read(frame)
    await ceremony.at(frame, "code")
    await comfortable(500, "#code", "#bar")
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "place")
    await expect(frame.locator(".stamp img")).to_be_visible()
    await comfortable(720, ".stamp", "#bar")
    await ceremony.choose_place(frame)
    await ceremony.at(frame, "password")
    await comfortable(500, "#password", "#bar")
    heights = [payload["height"] for payload in await site.payloads(page, "resize")]
    # One or two a step: none follows from the last one's effect.
    assert len(heights) <= 12, heights


async def test_low_frame_shows_the_number_of_the_page(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """At 640 px the bar of actions covers nothing of the choice of place."""
    page = await open_page("desktop")
    await page.set_viewport_size({"width": 1280, "height": 640})
    await site.open(page, person, autoLoadFile=file_of(LONG))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "place")
    number = await frame.locator("#page").bounding_box()
    bar = await frame.locator("#bar").bounding_box()
    assert number is not None
    assert bar is not None
    assert number["y"] + number["height"] <= bar["y"]
    await page.set_viewport_size({"width": 550, "height": 700})
    await ceremony.choose_place(frame)
    await ceremony.sign(frame, person)
    await ceremony.at(frame, "done")
    button = await frame.locator("#bar .primary").bounding_box()
    around = await frame.locator("#bar").bounding_box()
    assert button is not None
    assert around is not None
    # As far from the left as from the right: nothing seems to be missing.
    left = button["x"] - around["x"]
    right = around["x"] + around["width"] - button["x"] - button["width"]
    assert left == pytest.approx(right, abs=1)
