"""*Salud* in a real browser: what the roles measure, and what is not well with it."""

import re
import socket

import pytest
from playwright.async_api import Route, expect

from tests.support.appliance.administrators import Administrator, new_administrator
from tests.support.appliance.appliance import Appliance
from tests.support.browsers.browsers import SCHEMES, Opener, axe
from tests.support.faults.role_faults import cramped, garbage

_FULL = "RubricaDescriptorsRunOut"
_REFUSED = "RubricaFiguresRefused"
_SLOTS = ("signing", "chores", "api", "embed", "admin", "sandbox")
_SECTIONS = ("ground", "certificates", "tsas", "status", "workers", "tokens", "pools")


@pytest.fixture
def administrator(appliance: Appliance) -> Administrator:
    """Somebody new."""
    return new_administrator(appliance)


@pytest.mark.parametrize(
    ("size", "lang", "words"),
    [
        ("phone", "", ("Atención", "Más: {} en docs/alerts.md")),
        ("desktop", "English", ("Attention", "More: {} in docs/alerts.md")),
    ],
)
async def test_figures_of_every_role_and_their_faults(
    size: str,
    lang: str,
    words: tuple[str, str],
    open_page: Opener,
    appliance: Appliance,
    administrator: Administrator,
) -> None:
    """Each process by its host; what goes wrong, and is well again, shows by itself."""
    page = await open_page(size)
    await administrator.sign_in(page, "/admin/health")
    title = page.get_by_role("heading", level=1)
    await expect(title).to_have_text("Salud")
    if lang:
        async with page.expect_navigation():
            await page.get_by_role("button", name=lang, exact=True).click()
        await expect(title).to_have_text("Health")
    rows = page.locator("section[aria-labelledby=workers] tbody tr")
    for role in _SLOTS:
        slot = f"{role}/{socket.gethostname()}/1"
        await expect(rows.filter(has_text=slot)).to_have_count(1)
    for name in _SECTIONS:
        await expect(page.locator(f"h2#{name}")).to_be_visible()
    (embed,) = appliance.children("embed")
    attention, more = words

    with garbage(appliance), cramped(embed):
        for slot, alert in (("embed/vm/9", _REFUSED), ("embed/vm/1", _FULL)):
            row = rows.filter(has_text=slot.replace("vm", socket.gethostname()))
            await expect(row).to_contain_text(attention)
            await expect(row).to_contain_text(more.format(alert))
        # Others may stand there: the appliance is shared.
        look = page.locator("section[aria-labelledby=look] a[href='#workers']")
        await look.focus()
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile("#workers$"))
        await expect(page.locator("h2#workers")).to_be_in_viewport()
        for scheme in SCHEMES:
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert await axe(page) == []
            picture = f"console-figures-{size}-{scheme}"
            await open_page.picture(page, picture, full=True)

    await expect(rows.filter(has_text="Rubrica")).to_have_count(0)


async def test_page_outlives_a_console_that_is_away(
    open_page: Opener, administrator: Administrator
) -> None:
    """A proxy's answer takes no section's place, and the page goes on renewing."""
    page = await open_page("desktop")
    await administrator.sign_in(page, "/admin/health")

    async def away(route: Route) -> None:
        body = "<!doctype html><title>503</title><h1>El servicio no responde</h1>"
        await route.fulfill(status=503, content_type="text/html", body=body)

    await page.route("**/admin/health", away)
    async with page.expect_response(lambda answer: answer.status == 503) as refused:
        pass
    await (await refused.value).finished()
    await page.unroute("**/admin/health")
    async with page.expect_response(lambda answer: answer.status == 200) as renewed:
        await expect(page.locator("#live h2#workers")).to_be_visible()
    await (await renewed.value).finished()
    await expect(page.locator("#live h2#workers")).to_be_visible()
    await expect(page.get_by_text("El servicio no responde")).to_have_count(0)
