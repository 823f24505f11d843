"""How much of the page is seen where the mark is placed, and that nothing is lost."""

from typing import Any, Final

import pytest
from playwright.async_api import Frame, expect

from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import SCHEMES, Opener, resize, tab_to
from tests.support.browsers.ceremony import at
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.documents import pdfs
from tests.support.documents.field_pdfs import Field, with_fields

WINDOWS: Final = [
    (390, 844),
    (390, 664),
    (400, 560),
    (580, 560),
    (800, 600),
    (1000, 700),
    (1280, 800),
]
"""Phones with and without the browser's bars, and frames of hosts: width, height."""
LEAST_SHARE: Final = 0.4
"""Of the frame's height: the page that bears the mark."""

FIELDS: Final = with_fields(
    *(
        Field(f"firma.{n}", rects=[(60, 60 + 60 * n, 280, 110 + 60 * n)])
        for n in range(8)
    )
)

_SHARE = """() => {
  const page = document.querySelector(".stamp").parentElement;
  const { left, width } = page.getBoundingClientRect();
  const x = Math.max(left + width / 2, 1);
  let seen = 0;
  for (let y = 0; y < innerHeight; y += 1) {
    seen += page.contains(document.elementFromPoint(x, y)) ? 1 : 0;
  }
  return seen / innerHeight;
}"""

_COVERED = """(e) => {
  const b = e.getBoundingClientRect();
  return [[b.left + 4, b.top + 4], [b.right - 4, b.bottom - 4]]
    .filter(([x, y]) => !e.contains(document.elementFromPoint(x, y)))
    .map(([x, y]) => `${x}, ${y} of ${innerWidth}, ${innerHeight}`);
}"""

_EACH_COVERED = f"""(all) => all.map((e) => {{
  e.scrollIntoViewIfNeeded();
  return [e.innerText || e.id, ({_COVERED})(e)];
}})"""


async def _placing(
    site: FrameSite, person: TestPerson, opener: Opener, pdf: bytes
) -> Frame:
    """The frame at the choice of place."""
    page = await opener()
    await site.open(page, person, autoLoadFile=file_of(pdf))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await at(frame, "place")
    return frame


async def _again(frame: Frame, window: tuple[int, int]) -> None:
    """Come to the step anew, in a window of that size."""
    await ceremony.go(frame)
    await at(frame, "password")
    await resize(frame.page, window, frame)
    await frame.get_by_role("button", name="Volver").click()
    await at(frame, "place")
    await expect(frame.locator(".stamp img")).to_be_visible()


async def _pictures(opener: Opener, frame: Frame, name: str) -> None:
    for scheme in SCHEMES:
        await frame.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await opener.picture(frame.page, f"frame-room-{name}-{scheme}")
    await _settled(frame)


async def _settled(frame: Frame) -> None:
    """Wait until pages are drawn and the mark has been scrolled to."""
    await expect(frame.locator("#viewer")).to_have_attribute("aria-busy", "false")
    await expect(frame.locator(".stamp")).to_be_in_viewport(ratio=1)


async def test_page_and_mark_are_what_is_seen_most(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """Four tenths of the frame are page, and the mark lies there uncovered."""
    frame = await _placing(site, person, open_page, pdfs.pages(3))
    faults: dict[tuple[int, int], Any] = {}
    for window in WINDOWS:
        await _again(frame, window)
        await _pictures(open_page, frame, f"{window[0]}x{window[1]}")
        share = await frame.evaluate(_SHARE)
        covered = await frame.locator(".stamp").evaluate(_COVERED)
        if share < LEAST_SHARE or covered:
            faults[window] = [round(share, 2), covered]

    assert faults == {}


async def test_every_choice_is_reached(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """Each comes into view and is not covered, however many fields there are."""
    frame = await _placing(site, person, open_page, FIELDS)
    choices = frame.locator(".corner, #page, .page-field button, #bar button")
    faults: dict[str, Any] = {}
    for window in WINDOWS:
        await _again(frame, window)
        await _pictures(open_page, frame, f"{window[0]}x{window[1]}-fields")
        covered = await choices.evaluate_all(_EACH_COVERED)
        faults |= {f"{window} {name}": fault for name, fault in covered if fault}
        share = await frame.evaluate(_SHARE)
        if share < LEAST_SHARE:
            faults[f"{window} share"] = round(share, 2)

    assert await frame.locator(".corner").count() == 14
    assert faults == {}


@pytest.mark.parametrize("window", [(390, 664), (800, 600)])
async def test_mark_comes_into_view_wherever_it_is_put(
    site: FrameSite, person: TestPerson, open_page: Opener, window: tuple[int, int]
) -> None:
    """By keyboard: the corner, the other page, and the mark itself."""
    frame = await _placing(site, person, open_page, pdfs.pages(3))
    await _again(frame, window)
    page = frame.page
    mark = frame.locator(".stamp")
    for corner in ("topLeft", "topRight", "bottomRight"):
        await frame.check(f"input[value={corner}]")
        await _settled(frame)
        assert await mark.evaluate(_COVERED) == []
    await frame.fill("#page", "3")
    await page.keyboard.press("Tab")
    await expect(frame.locator(".page").nth(2).locator(".stamp")).to_be_in_viewport(
        ratio=1
    )
    await tab_to(page, mark)
    for _ in range(30):
        await page.keyboard.press("ArrowUp")
    await expect(frame.locator("input[value=custom]")).to_be_checked()
    await _settled(frame)

    assert await mark.evaluate(_COVERED) == []
