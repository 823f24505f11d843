"""Where the console begins and ends: focus, band, menu, and filters that contradict."""

from typing import Any, Final

import pytest
from playwright.async_api import Page, expect

from tests.support.appliance.administrators import Administrator, new_administrator
from tests.support.appliance.appliance import Appliance
from tests.support.browsers.browsers import Opener, axe

_MENU: Final = """() => [...document.querySelectorAll(".menu a")].map((entry) => {
  const box = entry.getBoundingClientRect();
  const name = entry.firstChild.textContent.trim();
  return [name, box.left, box.top, box.width, box.height];
})"""
"""Each entry with its place."""


@pytest.fixture(scope="module")
def administrator(appliance: Appliance) -> Administrator:
    """Somebody who signs in once."""
    return new_administrator(appliance)


async def test_sign_in_begins_in_its_first_field(
    page: Page, administrator: Administrator
) -> None:
    """One types at once; after a refusal the alert is read first."""
    await page.goto(administrator.url("/admin/login"))
    name = page.get_by_label("Nombre", exact=True)
    await expect(name).to_be_focused()

    await page.keyboard.insert_text("nadie")
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("alert")).to_be_focused()
    await expect(name).to_have_value("nadie")


@pytest.mark.parametrize("width", [390, 1280])
async def test_menu_stays_where_it_is_from_page_to_page(
    page: Page, administrator: Administrator, width: int
) -> None:
    """Whichever entry is the current one, none moves or grows; and it is marked."""
    await page.set_viewport_size({"width": width, "height": 900})
    await administrator.sign_in(page, "/admin/")
    before: list[Any] = await page.evaluate(_MENU)
    assert len(before) == 8
    for entry, *_ in before:
        await page.locator(".menu").get_by_role("link", name=entry, exact=True).click()
        current = page.locator(".menu a[aria-current=page]")
        await expect(current).to_contain_text(entry)
        assert await page.evaluate(_MENU) == before


async def test_band_reaches_the_edge_of_short_pages_too(
    page: Page, administrator: Administrator
) -> None:
    """No gutter is kept beside it for a scrollbar that is not there."""
    await page.goto(administrator.url("/admin/login"))

    told = await page.evaluate(
        """() => ({
          gutter: getComputedStyle(document.documentElement).scrollbarGutter,
          left: document.documentElement.clientWidth
            - document.querySelector(".ribbon").getBoundingClientRect().right,
        })"""
    )

    assert told == {"gutter": "auto", "left": 0}


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("path", ["/admin/requests", "/admin/audit"])
async def test_days_in_the_wrong_order_are_marked_at_both(
    open_page: Opener, administrator: Administrator, path: str, width: int
) -> None:
    """What was typed stays; the summary leads to each field."""
    page = await open_page("desktop")
    await page.set_viewport_size({"width": width, "height": 900})
    await administrator.sign_in(page, f"{path}?since=2026-05-02&until=2026-05-01")

    for name, day in (("since", "2026-05-02"), ("until", "2026-05-01")):
        field = page.locator(f"#f-{name}")
        await expect(field).to_have_attribute("aria-invalid", "true")
        await expect(field).to_have_value(day)
    links = page.get_by_role("alert").get_by_role("link")
    await expect(links).to_have_count(2)
    assert await axe(page) == []
    await links.last.press("Enter")
    await expect(page.locator("#f-until")).to_be_focused()
    # The same day is one day.
    await page.goto(administrator.url(f"{path}?since=2026-05-02&until=2026-05-02"))
    await expect(page.locator("[aria-invalid]")).to_have_count(0)
