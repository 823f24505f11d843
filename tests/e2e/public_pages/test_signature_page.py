"""The page of a signature in a browser: signed, refuted, not checked, both widths."""

import secrets

from playwright.async_api import expect

from tests.functional.powers.test_signature_page import (
    code_of,
    forged,
    original_of,
    signed_with_code,
)
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.http_calls import sign
from tests.support.browsers.browsers import SIZES, Opener, until_focused
from tests.support.browsers.page_appearance import LOADED_AT, PageAppearance
from tests.support.documents import pdfs


async def test_each_state_is_sound(open_page: Opener, appliance: Appliance) -> None:
    """What is told of a signature, and of one that never was."""
    page = await open_page(LOADED_AT)
    look = PageAppearance(
        page, open_page, "signature", sizes={**SIZES, "narrow": (320, 640)}
    )
    person = appliance.new_person("María Inés Sarmiento")
    with appliance.client(person) as client:
        request, code, sha256 = signed_with_code(appliance, person, client)
        plain = appliance.new_request(person, pdfs.one_page())
        assert sign(client, person, plain).is_success
    waiting = appliance.new_request(person, pdfs.one_page())
    stops = {
        "signed": (code, "Este código corresponde a un documento firmado acá"),
        "signed-without-code": (
            code_of(appliance, plain),
            "Este código corresponde a un documento firmado acá",
        ),
    }
    heading = page.get_by_role("heading", level=1)
    for name, (asked, told) in stops.items():
        await page.goto(f"{appliance.base_url}/verificar/{asked}")
        await expect(heading).to_have_text(told)
        await look.at(name)
    await expect(page.get_by_text("M••• I••• S•••")).to_be_visible()
    for name, file, told in (
        (
            "refuted",
            original_of(appliance, waiting),
            "No encontramos una firma válida con este código",
        ),
        ("unchecked", secrets.token_hex(32), "Ahora no pudimos comprobar la firma"),
    ):
        with forged(appliance, waiting, request, file) as asked:
            await page.goto(f"{appliance.base_url}/verificar/{asked}")
            await expect(heading).to_have_text(told)
            await look.at(name)
            assert sha256 not in await page.content()
            await page.goto(f"{appliance.base_url}/verificar/{asked}?lang=en")
            await look.at(f"{name}-en")

    assert look.faults == []


async def test_page_for_a_code_begins_in_its_field(
    open_page: Opener, appliance: Appliance
) -> None:
    """On a telephone too, which is not scrolled; where it would be, at the heading."""
    page = await open_page("phone")
    code = page.locator("#codigo")
    await page.goto(f"{appliance.base_url}/verificar")
    await until_focused(code)
    assert await page.evaluate("scrollY") == 0

    await page.set_viewport_size({"width": 390, "height": 200})
    await page.reload()
    await expect(page.locator("form.find")).to_be_attached()
    assert await page.evaluate("document.activeElement === document.body")
    assert await page.evaluate("scrollY") == 0

    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(appliance.base_url)
    await expect(code).to_be_visible()
    assert await page.evaluate("document.activeElement === document.body")
