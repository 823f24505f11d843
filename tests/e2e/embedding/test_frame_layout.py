"""Where the parts of the frame are: one row of actions, and an order that Tab follows.

Source: WCAG 2.2, 1.4.4, 2.4.3 and 2.5.8.
"""

from typing import Any, Final

import pytest
from playwright.async_api import Frame, Page, expect

from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, resize
from tests.support.browsers.ceremony import at, go
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.browsers.frame_layout import ROWS
from tests.support.browsers.page_appearance import EACH_FITS
from tests.support.documents import pdfs

_WIDEST: Final = """() => [...document.querySelectorAll("#bar button")]
  .sort((a, b) => b.offsetWidth - a.offsetWidth)[0].className"""
_PART: Final = """() => {
  const at = document.hasFocus() ? document.activeElement : null;
  const parts = ["top", "panel", "tools", "viewer", "bar"];
  return parts.find((id) => at?.closest(`#${id}`)) ?? "";
}"""
"""The part of the page that has the focus; empty where the frame has it no more."""
_BOXES: Final = """() => Object.fromEntries(["panel", "document", "bar"].map((id) => {
  const box = document.getElementById(id).getBoundingClientRect();
  const { left, top, right, bottom } = box;
  return [id, { left, top, right, bottom }];
}))"""
_COVERED: Final = """() => [...document.querySelectorAll("button, input, .corner")]
  .filter((e) => e.checkVisibility() && !e.matches(".visually-hidden, [type=radio]"))
  .filter((e) => {
    e.scrollIntoView({ block: "nearest", inline: "nearest" });
    const { left, top, right, bottom } = e.getBoundingClientRect();
    const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return !e.contains(over);
  })
  .map((e) => e.outerHTML.slice(0, 100))"""
"""What is not seen once it was scrolled to."""


async def _in_one_row(frame: Frame) -> None:
    """Demand one row of actions, in both languages, the main one being the widest."""
    for lang in ("en", "es-AR"):
        await frame.locator("#language").click()
        await expect(frame.locator("html")).to_have_attribute("lang", lang)
        step = await frame.locator("body").get_attribute("data-step")
        assert await frame.evaluate(ROWS) == 1, (step, lang)
        if await frame.locator("#bar .primary").count():
            assert "primary" in await frame.evaluate(_WIDEST), (step, lang)
    leave = await frame.locator("#top #leave").bounding_box()
    assert leave is not None
    assert leave["width"] >= 44
    assert leave["height"] >= 44
    bar = frame.locator("#bar")
    await expect(bar.get_by_role("button", name="Cancelar")).to_have_count(0)


async def test_actions_have_one_row_on_a_telephone(
    site: FrameSite, person: TestPerson, phone: Page
) -> None:
    """From the list of what waits to the password; *Cancelar* is at the top."""
    site.new_request(person, pdfs.pages(2), "contrato.pdf")
    await site.open(phone, person)
    frame = site.frame(phone)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await at(frame, "code")
    await _in_one_row(frame)
    await ceremony.give_code(frame, person)
    await at(frame, "requests")
    await _in_one_row(frame)
    await resize(phone, (320, 640), frame)
    assert await frame.evaluate(EACH_FITS) == []
    await resize(phone, (390, 844), frame)
    await frame.get_by_role("button", name="contrato.pdf").click()
    for step in ("read", "place", "password"):
        await at(frame, step)
        await _in_one_row(frame)
        await go(frame)
    await expect(frame.locator("#alert")).to_be_visible()


@pytest.mark.parametrize("window", [(390, 844), (800, 600), (1280, 800)])
async def test_tab_follows_what_is_seen(
    site: FrameSite, person: TestPerson, open_page: Opener, window: tuple[int, int]
) -> None:
    """The panel, the document's tools, the document, and then the way on."""
    page = await open_page("phone" if window[0] == 390 else "desktop")
    await site.open(page, person, autoLoadFile=file_of(pdfs.pages(3)))
    frame = site.frame(page)
    await at(frame, "read")
    await resize(page, window, frame)
    seen = ["panel", "tools", "viewer", "bar"]
    await _in_order(frame, seen)
    await go(frame)
    await at(frame, "code")
    is_wide = window[0] == 1280
    await _in_order(frame, seen if is_wide else ["panel", "bar"], start="#code")
    await ceremony.give_code(frame, person)
    await at(frame, "place")
    await _in_order(frame, seen)
    await go(frame)
    await at(frame, "password")
    await _in_order(frame, seen if is_wide else ["panel", "bar"], start="#password")


async def _in_order(frame: Frame, parts: list[str], start: str = "#title") -> None:
    """Demand that Tab leads through parts of the page, and that they are seen so.

    Args:
        frame: at some step.
        parts: ids, in order.
        start: where the step begins.
    """
    step = await frame.locator("body").get_attribute("data-step")
    await frame.locator(start).focus()
    found = ["panel"]
    for _ in range(60):
        await frame.page.keyboard.press("Tab")
        part: str = await frame.evaluate(_PART)
        if part in {"", "top"}:
            break
        if part != found[-1]:
            found.append(part)
    assert found == parts, step

    boxes: dict[str, dict[str, float]] = await frame.evaluate(_BOXES)
    panel, document, bar = boxes["panel"], boxes["document"], boxes["bar"]
    assert bar["top"] >= panel["top"], step
    if "viewer" in parts:
        is_beside = document["left"] >= panel["right"] - 1
        assert is_beside or document["top"] >= panel["bottom"] - 1, step
        assert bar["bottom"] >= document["bottom"] - 1 or not is_beside, step


async def test_text_twice_as_large_hides_nothing(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """At 390 px: nothing is cut off at the side, and what is pressed can be seen."""
    page = await open_page("phone")
    await site.open(page, person, autoLoadFile=file_of(pdfs.pages(3)))
    frame = site.frame(page)
    await frame.evaluate("document.documentElement.style.fontSize = '200%'")
    faults: dict[str, Any] = {}

    async def look(step: str) -> None:
        await at(frame, step)
        await open_page.picture(page, f"frame-text-twice-{step}")
        cut = await frame.evaluate(EACH_FITS)
        covered = await frame.evaluate(_COVERED)
        if cut or covered:
            faults[step] = [cut, covered]

    await look("read")
    await go(frame)
    await look("code")
    await ceremony.give_code(frame, person)
    await at(frame, "place")
    await frame.check("input[value=custom]")
    await look("place")
    await go(frame)
    await look("password")
    await ceremony.sign(frame, person)
    await look("done")

    assert faults == {}
