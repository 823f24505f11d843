"""Revoking by PIN in real browsers: looks, accessibility, keyboard, both languages."""

from playwright.async_api import Page, expect

from appliance.bootstrap import ServiceRegistry
from appliance.domain.vocab import CredentialState
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.browsers.browsers import SCHEMES, Opener, axe, press_on, tab_to
from tests.support.browsers.page_appearance import LOADED_AT, PageAppearance


async def _fits(page: Page) -> bool:
    fits: bool = await page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    return fits


async def _sound(page: Page, opener: Opener, name: str) -> None:
    """No fault of accessibility, nothing cut off; keep pictures."""
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert await axe(page) == []
        await opener.picture(page, f"{name}-{scheme}", full=True)
    assert await _fits(page)


def _pin(appliance: Appliance, person: TestPerson) -> str:
    """A new PIN of somebody."""

    async def renew(front: ServiceRegistry) -> str:
        return await front.revocation_pins.renew(person.id, "operator")

    return appliance.do(renew)


async def test_page_is_sound(open_page: Opener, appliance: Appliance) -> None:
    """Empty, with everything wrong in it, and with a wrong PIN."""
    page = await open_page(LOADED_AT)
    look = PageAppearance(page, open_page, "revocar")
    await page.goto(f"{appliance.base_url}/revocar")
    await expect(page.get_by_role("heading", level=1)).to_have_text(
        "Revocá tu certificado"
    )
    await look.at("empty")

    await page.locator("form").evaluate("(form) => { form.noValidate = true; }")
    await page.get_by_role("button", name="Revocar mi certificado").click()
    await expect(page.get_by_role("alert")).to_contain_text("CUIL")
    await look.at("wrong")

    await page.get_by_label("CUIL").fill("20-26756539-3")
    await page.get_by_label("PIN de revocación").fill("ABCD-EFGH-JKMN")
    await page.get_by_label("Entiendo que no se puede deshacer.").check()
    await page.get_by_role("button", name="Revocar mi certificado").click()
    await expect(page.locator("#pin-error")).to_contain_text("no es correcto")
    assert "ABCD" not in await page.content()
    await look.at("refused")

    assert look.faults == []


async def test_keyboard_alone_revokes(open_page: Opener, appliance: Appliance) -> None:
    """From the CUIL to the word that it is done, in English, without a mouse."""
    person = appliance.new_person()
    pin = _pin(appliance, person)
    page = await open_page("phone", locale="en-GB")
    await page.goto(f"{appliance.base_url}/revocar")

    await tab_to(page, page.get_by_label("CUIL"))
    await page.keyboard.insert_text(person.cuil)
    await tab_to(page, page.get_by_label("Revocation PIN"))
    await page.keyboard.insert_text(pin.lower())
    await press_on(page, page.get_by_label("I understand that"), "Space")
    await press_on(page, page.get_by_role("button", name="Revoke my certificate"))

    await expect(page.get_by_role("heading", level=1)).to_have_text(
        "Done: your certificate is revoked"
    )
    await _sound(page, open_page, "revocar-done")

    async def state(front: ServiceRegistry) -> CredentialState:
        (held,) = await front.credentials.of(person.id)
        return held.state

    assert appliance.do(state) in {CredentialState.REVOKING, CredentialState.REVOKED}
