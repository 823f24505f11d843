"""Asking for help in real browsers: looks, accessibility, keyboard, both languages."""

from playwright.async_api import expect

from appliance.bootstrap import ServiceRegistry
from appliance.domain.vocab import HelpTopic
from appliance.people.help_request_store import HelpRequestStore
from tests.support.appliance.appliance import Appliance
from tests.support.browsers.browsers import Opener, press_on, tab_to
from tests.support.browsers.page_appearance import LOADED_AT, PageAppearance


async def test_page_is_sound(open_page: Opener, appliance: Appliance) -> None:
    """Empty, with everything wrong, filed for nobody, and with nothing to withdraw."""
    page = await open_page(LOADED_AT)
    look = PageAppearance(page, open_page, "ayuda")
    await page.goto(f"{appliance.base_url}/ayuda")
    await expect(page.get_by_role("heading", level=1)).to_have_text("¿No podés firmar?")
    await look.at("empty")

    await page.locator("form").evaluate("(form) => { form.noValidate = true; }")
    await page.get_by_role("button", name="Pedir ayuda").click()
    await expect(page.get_by_role("alert")).to_contain_text("CUIL")
    await look.at("wrong")

    await page.get_by_label("No tengo mi teléfono").check()
    await page.get_by_label("CUIL").fill("20-26756539-3")
    await page.get_by_label("Correo").fill("nadie@demo.example")
    await page.get_by_role("button", name="Pedir ayuda").click()
    title = page.get_by_role("heading", level=1)
    await expect(title).to_have_text("Tu pedido quedó registrado")
    await look.at("filed")

    await page.goto(f"{appliance.base_url}/ayuda/retirar/nada")
    await expect(title).to_have_text("No hay ningún pedido que retirar")
    await look.at("over")

    assert look.faults == []


async def test_keyboard_alone_asks_for_help(
    open_page: Opener, appliance: Appliance
) -> None:
    """From the reason to the word that it is filed, in English, without a mouse."""
    person = appliance.new_person()
    page = await open_page("phone", locale="en-GB")
    await page.goto(f"{appliance.base_url}/ayuda?motivo=contrasena")

    await tab_to(page, page.get_by_label("I forgot my signing password"))
    await tab_to(page, page.get_by_label("CUIL"))
    await page.keyboard.insert_text(person.cuil)
    await tab_to(page, page.get_by_label("E-mail"))
    await page.keyboard.insert_text(person.email)
    await press_on(page, page.get_by_role("button", name="Ask for help"))

    await expect(page.get_by_role("heading", level=1)).to_have_text(
        "Your request is filed"
    )

    async def topics(front: ServiceRegistry) -> list[HelpTopic]:
        async with front.core.store.read() as transaction:
            found = await HelpRequestStore(transaction).of_person(person.id)
        return [each.topic for each in found]

    assert appliance.do(topics) == [HelpTopic.PASSWORD]
