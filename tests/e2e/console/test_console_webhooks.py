"""Webhooks in the console, in a real browser and by keyboard alone."""

import re
import uuid

import pytest
from playwright.async_api import Page, expect

from appliance.bootstrap import ServiceRegistry
from tests.support.appliance.administrators import Administrator, new_administrator
from tests.support.appliance.appliance import Appliance
from tests.support.browsers.browsers import press_on, tab_to

_ATTEMPT_MS = 60_000
SECRET = re.compile(r"whsec_[A-Za-z0-9+/]{43}=")


@pytest.fixture(scope="module")
def administrator(appliance: Appliance) -> Administrator:
    """Somebody who signs in once."""
    return new_administrator(appliance)


async def test_webhook_is_made_tried_and_removed_by_keyboard(
    page: Page, administrator: Administrator
) -> None:
    """Its secret is shown once; what was sent has each attempt and goes out again."""
    code = f"estudio-{uuid.uuid4().hex[:6]}"

    async def create(front: ServiceRegistry) -> None:
        await front.integrators.create("operator", code, "Estudio")

    administrator.appliance.do(create)
    await administrator.sign_in(page, f"/admin/integrators/{code}")

    async def press(role: str, name: str) -> None:
        found = page.get_by_role("link" if role == "link" else "button", name=name)
        await press_on(page, found.first)

    await press("link", "Webhooks")
    await tab_to(page, page.get_by_label("Dirección", exact=True))
    await page.keyboard.insert_text("ftp://app.example")
    await page.keyboard.press("Enter")
    await press_on(page, page.get_by_role("alert").get_by_role("link").first)
    await expect(page.get_by_label("Dirección", exact=True)).to_be_focused()
    await page.keyboard.press("Control+A")
    # Nobody answers there: no name is known below that one.
    await page.keyboard.insert_text("http://rubrica.invalid/rubrica")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("textbox", name="Secreto")).to_have_text(SECRET)
    await press("link", "Ya lo guardé")
    await expect(page.get_by_text(SECRET)).to_have_count(0)
    await press("button", "Enviar un evento de prueba")
    await expect(page.locator(".notice")).to_contain_text("en camino")
    # The attempt comes to the page by itself.
    await expect(page.locator(".timeline li")).to_have_count(1, timeout=_ATTEMPT_MS)
    await press("button", "Intentar ahora")
    await expect(page.locator(".notice")).to_contain_text("de nuevo")
    await press("link", "Entregas: rubrica.invalid")
    await expect(page.get_by_role("link", name="Evento de prueba")).to_have_count(1)
    await press("link", "Apagar")
    await press("button", "Apagar")
    await expect(page.locator(".notice")).to_contain_text("quedó apagado")
    await press("button", "Encender")
    await press("link", "Quitar")
    await press("button", "Quitar el webhook")
    await expect(page.locator(".notice")).to_contain_text("Se quitó el webhook")
    await expect(page.get_by_text("Todavía no hay webhooks")).to_be_visible()
