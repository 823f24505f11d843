"""The pages for developers in real browsers: looks, accessibility, keyboard, phone."""

import pytest
from playwright.async_api import expect

from appliance.developer_docs.pages import PAGES
from tests.support.appliance.appliance import Appliance
from tests.support.browsers.browsers import Opener, press_on, until_focused
from tests.support.browsers.page_appearance import LOADED_AT, PageAppearance


@pytest.mark.parametrize("name", [page.name for page in PAGES])
async def test_page_is_sound(
    open_page: Opener, appliance: Appliance, name: str
) -> None:
    """In every size and scheme; code and tables scroll within themselves."""
    page = await open_page(LOADED_AT)
    look = PageAppearance(page, open_page, "docs")
    await page.goto(f"{appliance.base_url}/docs/es/{name}")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    # What repeats itself a hundred times is looked at a few times.
    await page.evaluate(
        """() => {
          const sections = [...document.querySelectorAll("section")];
          sections.slice(2, -1).forEach((each) => each.remove());
          sections.forEach((each) =>
            [...each.querySelectorAll("article")].slice(3).forEach((e) => e.remove()));
        }"""
    )
    await look.at(name or "index")

    assert look.faults == []


async def test_keyboard_and_no_script_go_everywhere(
    open_page: Opener, appliance: Appliance
) -> None:
    """From the skip link to another page, to the other language and to an error."""
    page = await open_page("phone", java_script_enabled=False)
    await page.goto(f"{appliance.base_url}/docs")
    await expect(page).to_have_url(f"{appliance.base_url}/docs/es/")

    await page.get_by_role("link", name="Guía de diez minutos").first.click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(
        "Guía de diez minutos"
    )
    await page.get_by_role("link", name="English").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Ten-minute guide")
    await page.get_by_role("link", name="Errors", exact=True).first.click()
    await page.get_by_role("link", name="API_KEY_SCOPE").click()
    await expect(page).to_have_url(f"{appliance.base_url}/docs/en/errors#API_KEY_SCOPE")


async def test_keyboard_reaches_contents(
    open_page: Opener, appliance: Appliance
) -> None:
    """The first Tab offers to skip the menu; what is on the page unfolds by Enter."""
    page = await open_page("phone")
    await page.goto(f"{appliance.base_url}/docs/es/webhooks")
    await page.keyboard.press("Tab")
    await until_focused(page.get_by_role("link", name="Ir al contenido"))

    await press_on(page, page.locator("summary"))
    await press_on(page, page.get_by_role("link", name="Vectores de prueba").first)
    await expect(page).to_have_url(
        f"{appliance.base_url}/docs/es/webhooks#vectores-de-prueba"
    )
