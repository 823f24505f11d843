"""The trial's telephone on the demo site: codes and passwords beside the frame."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support.browsers.browsers import Opener, axe_everywhere, press_on, tab_to
from tests.support.browsers.demo_site import DemoSite, running_demo_site
from tests.support.documents.pdfs import one_page

BRUNO: Final = "20-26756539-3"
ANA: Final = "20-05536168-2"
CONSOLE: Final = "http://127.0.0.1:8082/admin/"


class KnownDesk:
    """Two people whose codes a test sets."""

    def __init__(self) -> None:
        self.codes = {ANA: ("111222", 0.0), BRUNO: ("333444", 0.0)}
        self.is_away = False

    def visit(self) -> dict[str, Any] | None:
        """What the site shows."""
        if self.is_away:
            return None
        return {
            "people": [
                {
                    "cuil": cuil,
                    "name": name,
                    "email": f"{name.split()[0].lower()}@demo.example",
                    "password": f"ingreso-{name[0]}",
                    "signing_password": f"firma-{name[0]}",
                    "code": self.codes[cuil][0],
                    "wait_s": self.codes[cuil][1],
                }
                for cuil, name in ((ANA, "Ana María Núñez"), (BRUNO, "Bruno Díaz"))
            ],
            "console": {
                "url": CONSOLE,
                "user": "admin",
                "password": "consola",
                "code": "555666",
                "wait_s": 0.0,
            },
            "step_left_s": 3_000.0,
            "docs_url": "http://127.0.0.1:8080/docs",
            "verify_url": "http://127.0.0.1:8080/verificar",
        }

    def signature_page(self, request: int) -> str | None:
        """The same for every request."""
        return f"http://127.0.0.1:8080/verificar/{request}"


@pytest.fixture
def desk() -> KnownDesk:
    """Codes of both people are accepted now."""
    return KnownDesk()


@pytest.fixture
def demo_site(tmp_path: Path, desk: KnownDesk) -> Iterator[DemoSite]:
    """A site with a desk; its form has Bruno."""
    with ExitStack() as stack:
        yield stack.enter_context(
            running_demo_site(tmp_path, desk=desk, sample=one_page())
        )


async def visit(page: Page, demo_site: DemoSite) -> None:
    """Open the site, until it shows a code."""
    await page.goto(demo_site.url)
    await expect(value(page, "code")).not_to_be_empty()


def value(page: Page, row: str) -> Locator:
    """A value of the card."""
    return page.locator(f"#visit .key-{row} code")


async def test_card_shows_the_signer_of_the_form(
    demo_site: DemoSite, page: Page
) -> None:
    """Code, both passwords, and seconds until the code changes."""
    await visit(page, demo_site)

    await expect(value(page, "code")).to_have_text("333 444")
    await expect(value(page, "signing")).to_have_text("firma-B")
    await expect(value(page, "login")).to_have_text("ingreso-B")
    left = page.locator("#visit .key-code .left")
    await expect(left).to_contain_text("cambia en ")


async def test_chosen_person_fills_the_form(demo_site: DemoSite, page: Page) -> None:
    """And a CUIL that is typed chooses the person."""
    await visit(page, demo_site)

    await page.select_option("#visit-person", label="Ana María Núñez")
    await expect(page.locator("#cuil")).to_have_value(ANA)
    await expect(page.locator("#email")).to_have_value("ana@demo.example")
    await expect(value(page, "code")).to_have_text("111 222")

    await page.fill("#cuil", BRUNO.replace("-", ""))
    await expect(value(page, "code")).to_have_text("333 444")
    await page.fill("#cuil", "20-11111111-2")
    await expect(value(page, "code")).to_have_text("333 444")


async def test_value_is_copied_by_keyboard(demo_site: DemoSite, page: Page) -> None:
    """Without the blank that the page shows in a code, and it is said."""
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await visit(page, demo_site)

    await tab_to(page, page.get_by_role("button", name="Copiar: Código").first)
    await page.keyboard.press("Enter")

    await expect(page.locator("#visit-status")).to_contain_text("Copiado")
    assert await page.evaluate("navigator.clipboard.readText()") == "333444"


async def test_code_that_was_used_gives_way_to_the_next(
    demo_site: DemoSite, page: Page, desk: KnownDesk
) -> None:
    """The page learns it by itself, and says from when the next one is accepted."""
    await visit(page, demo_site)

    desk.codes[BRUNO] = ("777888", 2_000.0)

    await expect(value(page, "code")).to_have_text("777 888")
    left = page.locator("#visit .key-code .left")
    await expect(left).to_contain_text("vale en ")


async def test_desk_that_is_away_is_told_and_comes_back(
    demo_site: DemoSite, page: Page, desk: KnownDesk
) -> None:
    """The page asks again, and needs no reload."""
    desk.is_away = True
    await page.goto(demo_site.url)
    alert = page.locator("#visit-alert")
    await expect(alert).to_contain_text("no están disponibles")

    desk.is_away = False

    await expect(value(page, "code")).to_have_text("333 444")
    await expect(alert).to_be_hidden()


async def test_console_is_at_hand(demo_site: DemoSite, page: Page) -> None:
    """Its address and who signs in there, behind a summary."""
    await visit(page, demo_site)

    await press_on(page, page.locator("#visit-console summary"))

    link = page.get_by_role("link", name="Abrir la consola")
    await expect(link).to_have_attribute("href", CONSOLE)
    await expect(value(page, "console-user")).to_have_text("admin")
    await expect(value(page, "console-code")).to_have_text("555 666")


@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.parametrize("lang", ["es", "en"])
async def test_card_stays_at_hand_beside_the_frame(
    demo_site: DemoSite, open_page: Opener, size: str, lang: str
) -> None:
    """Code and signing password are in view while the frame asks for them."""
    page = await open_page(size)
    await page.goto(f"{demo_site.url}?lang={lang}")
    await expect(value(page, "code")).not_to_be_empty()
    assert await axe_everywhere(page) == []
    await open_page.picture(page, f"telephone-{size}-{lang}")
    await expect(page.locator("#open-now")).to_be_in_viewport()
    await page.click("#open-now")
    await expect(page.locator("#steps [data-step=ack][data-done]")).to_be_visible()

    await expect(value(page, "code")).to_be_in_viewport()
    await expect(value(page, "signing")).to_be_in_viewport()
    assert await axe_everywhere(page) == []
    wide = "document.documentElement.scrollWidth <= innerWidth"
    assert await page.evaluate(wide)
    await open_page.picture(page, f"telephone-{size}-{lang}-open")


async def test_site_outside_a_trial_has_no_card(tmp_path: Path, page: Page) -> None:
    """Neither the card nor a word of it."""
    with running_demo_site(tmp_path) as site:
        await page.goto(site.url)
        await expect(page.locator("form:not([inert])")).to_be_visible()

        await expect(page.locator("#visit")).to_be_hidden()
        await expect(page.locator(".guide-keys")).to_be_hidden()


async def test_frame_whose_certificate_is_not_accepted_yet_is_told(
    tmp_path: Path, page: Page
) -> None:
    """Some browsers ask about each port: the page has the link, then goes on."""
    with running_demo_site(tmp_path, is_shared=True, sample=one_page()) as site:
        frame = f"{site.service.iframe_url}/embed/"
        await page.route(frame, lambda route: route.abort("failed"))
        await page.goto(site.url)
        await page.click("#open-now")

        alert = page.get_by_role("alert")
        await expect(alert).to_contain_text("todavía no confía")
        link = alert.get_by_role("link", name=site.service.iframe_url)
        await expect(link).to_have_attribute("href", frame)
        await expect(page.locator("#container iframe")).to_have_count(0)

        await page.unroute(frame)
        await alert.get_by_role("button", name="Pedir una sesión nueva").click()
        await expect(page.locator("#steps [data-step=ack][data-done]")).to_be_visible()
