"""What an API key may do and from where, chosen in the console in a real browser."""

import uuid

import pytest
from playwright.async_api import Page, expect

from appliance.bootstrap import ServiceRegistry
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import KeyView
from tests.support.appliance.administrators import (
    Administrator,
    Town,
    build_town,
    new_administrator,
)
from tests.support.appliance.appliance import Appliance
from tests.support.browsers.browsers import Opener, axe, press_on, tab_to
from tests.support.browsers.page_appearance import LOADED_AT, PageAppearance

ACTOR = "operator"


@pytest.fixture(scope="module")
def town(appliance: Appliance) -> Town:
    """A console with something on every page."""
    return build_town(appliance)


@pytest.fixture
def administrator(appliance: Appliance) -> Administrator:
    """Somebody new."""
    return new_administrator(appliance)


def new_integrator(appliance: Appliance) -> str:
    """An integrator without keys; its code."""
    code = f"estudio-{uuid.uuid4().hex[:6]}"

    async def make(front: ServiceRegistry) -> None:
        await front.integrators.create(ACTOR, code, "Estudio")

    appliance.do(make)
    return code


def keys_of(appliance: Appliance, code: str) -> list[KeyView]:
    """Its keys, as they stand recorded."""

    async def look(front: ServiceRegistry) -> list[KeyView]:
        return await front.integrators.keys(code)

    return appliance.do(look)


async def test_permissions_are_chosen_by_keyboard(
    page: Page, appliance: Appliance, administrator: Administrator
) -> None:
    """Boxes with the space bar, networks by line, a mistake mended at its field."""
    code = new_integrator(appliance)
    await administrator.sign_in(page)
    await page.goto(administrator.url(f"/admin/integrators/{code}/keys"))
    await tab_to(page, page.get_by_label("Etiqueta", exact=True))
    await page.keyboard.insert_text("Facturación")
    networks = page.get_by_label("Direcciones desde las que se puede usar")
    for label in (
        "Subir documentos, pedir firmas y cancelar solicitudes requests:write",
        "Ver si alguien puede firmar people:read",
        "Abrir sesiones del iframe de firma sessions:write",
    ):
        await press_on(page, page.get_by_label(label, exact=True), "Space")
    await tab_to(page, networks)
    await page.keyboard.insert_text("192.0.2.7")
    await page.keyboard.press("Enter")
    await page.keyboard.insert_text("10.1.2.3/8")
    await press_on(page, page.get_by_role("button", name="Crear clave"))

    summary = page.get_by_role("alert")
    await expect(summary).to_be_focused()
    await expect(summary).to_contain_text("10.0.0.0/8 para toda la red")
    assert await axe(page) == []
    await press_on(page, summary.get_by_role("link"))
    await expect(networks).to_be_focused()
    await expect(networks).to_have_value("192.0.2.7\n10.1.2.3/8")
    await page.keyboard.press("Control+A")
    await page.keyboard.insert_text("192.0.2.7\n10.0.0.0/8")
    await press_on(page, page.get_by_role("button", name="Crear clave"))
    await expect(page.get_by_role("heading", name="Clave creada")).to_be_visible()

    (key,) = keys_of(appliance, code)
    assert key.scopes == (ApiKeyScope.REQUESTS_WRITE, ApiKeyScope.PEOPLE_READ)
    assert key.networks == ("192.0.2.7/32", "10.0.0.0/8")
    await press_on(page, page.get_by_role("link", name="Ya guardé la clave"))
    row = page.get_by_role("row", name="Facturación")
    await expect(row).to_contain_text("Solicitudes: pedir requests:write")
    await expect(row).to_contain_text("desde 192.0.2.7/32, 10.0.0.0/8")


async def test_key_without_permissions_is_led_to_the_boxes(
    page: Page, appliance: Appliance, administrator: Administrator
) -> None:
    """The group of boxes has the fault, and the focus that its link gives."""
    code = new_integrator(appliance)
    await administrator.sign_in(page)
    await page.goto(administrator.url(f"/admin/integrators/{code}/keys"))
    await page.get_by_label("Etiqueta", exact=True).fill("Nada")
    await page.get_by_label("Abrir sesiones del iframe de firma").uncheck()
    await page.get_by_role("button", name="Crear clave").click()

    link = page.get_by_role("alert").get_by_role("link")
    await expect(link).to_have_text("Elegí al menos un permiso.")
    await press_on(page, link)
    boxes = page.get_by_role("group", name="Qué puede hacer")
    await expect(boxes).to_be_focused()
    await expect(boxes).to_have_accessible_description(
        "Elegí al menos un permiso. Solo lo que ese sistema necesita: quien tenga la "
        "clave puede hacerlo."
    )
    assert keys_of(appliance, code) == []


@pytest.mark.parametrize("language", ["Español", "English"])
async def test_keys_are_told_in_each_language(
    open_page: Opener, administrator: Administrator, town: Town, language: str
) -> None:
    """In every size and scheme, with a key of everything and one of little."""
    page = await open_page(LOADED_AT, alone=True)
    look = PageAppearance(page, open_page, f"console-keys-{language}")
    here = f"/admin/integrators/{town.code}/keys"
    await administrator.sign_in(page)
    if language == "English":
        async with page.expect_navigation():
            await page.get_by_role("button", name=language).click()
    for name, path in (
        ("list", here),
        ("rotate", f"{here}/{town.keys[1]}/rotate"),
        ("revoke", f"{here}/{town.keys[1]}/revoke"),
    ):
        await page.goto(administrator.url(path))
        await look.at(name)
        told = {"Español": "Solicitudes: ver", "English": "Requests: see"}[language]
        await expect(page.get_by_text(told).first).to_be_visible()

    assert look.faults == []
