"""A signer who cannot go on: no phone, no password, a used code, or no key at all."""

import json
from typing import Any, Final

import pytest
from playwright.async_api import Frame, Page, Route, expect

from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener
from tests.support.browsers.ceremony import at, go
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.documents import pdfs

PDF: Final = pdfs.one_page()
FILED: Final = "Tu pedido quedó registrado"
PHONE: Final = "No tengo mi teléfono"
PASSWORD: Final = "Olvidé mi contraseña de firma"


async def refuse(page: Page, path: str, status: int, **problem: Any) -> None:
    """Have one call of the frame's API refused from now on."""
    told = {"category": "fix_request", "detail": "-", "requestId": "r-1", **problem}

    async def answer(route: Route) -> None:
        await route.fulfill(status=status, body=json.dumps(told))

    await page.route(f"**/embed/api/{path}", answer)


async def ask(frame: Frame, title: str) -> None:
    """Ask for help at the step that says what is lost, by keyboard; come back."""
    await at(frame, "help")
    await expect(frame.locator("#title")).to_have_text(title)
    facts = frame.locator(".facts")
    await expect(facts).to_contain_text("Perdés")
    await expect(facts).to_contain_text("Conservás")
    await frame.locator("#bar .primary").press("Enter")
    await expect(frame.locator("#title")).to_have_text(FILED)
    await frame.get_by_role("button", name="Volver").press("Enter")


async def test_help_is_asked_for_on_both_steps_and_the_signature_goes_on(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """What is lost is said first; the step comes back as it was."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await at(frame, "code")
    await frame.get_by_role("button", name=PHONE).press("Enter")
    await ask(frame, "No tenés tu teléfono")
    await ceremony.give_code(frame, person)
    await ceremony.choose_place(frame)
    await at(frame, "password")
    await frame.get_by_role("button", name=PASSWORD).press("Enter")
    await ask(frame, "Olvidaste tu contraseña de firma")
    await ceremony.sign(frame, person)

    await at(frame, "done")


async def test_used_code_is_not_called_wrong_and_the_next_one_is_counted_down(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """As where the code of the enrolment is typed for the first signature."""
    page = await open_page(alone=True)
    await page.clock.install()
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    used = {"code": "OTP_INVALID", "codeUsed": True, "nextCodeIn": 20}
    await refuse(page, "otp", 401, **used)
    await ceremony.give_code(frame, person)

    alert, timer = frame.locator("#alert"), frame.locator("#next-code")
    await expect(alert).to_contain_text("Ese código ya lo usaste")
    await expect(alert).not_to_contain_text("correcto")
    await expect(timer).to_contain_text("muestra otro código en")
    await page.clock.fast_forward(21_000)
    await expect(timer).to_have_text("Tu app ya muestra otro código: escribí ese.")
    await page.unroute("**/embed/api/otp")
    await ceremony.give_code(frame, person)
    await at(frame, "place")


@pytest.mark.parametrize(
    ("obstacle", "words"),
    [
        ("locked", "Tu contraseña de firma está bloqueada desde"),
        ("expired", "Tu certificado venció"),
        ("revoked", "Tu certificado se revocó"),
        ("missing", "certificado"),
        ("disabled", "No estás"),
    ],
)
async def test_who_cannot_sign_at_all_asks_those_who_can_change_it(
    site: FrameSite, person: TestPerson, page: Page, obstacle: str, words: str
) -> None:
    """Those who run the installation, and not the people of the host's page."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    code = "SIGN_LOCKED" if obstacle == "locked" else "CERTIFICATE_NOT_USABLE"
    barred = {"code": code, "obstacle": obstacle, "since": "2026-11-28T12:00:00Z"}
    await refuse(page, "otp", 423, **barred, category="terminal")
    await ceremony.give_code(frame, person)
    await at(frame, "blocked")

    body = frame.locator("#body")
    await expect(body).to_contain_text(words)
    await expect(body).to_contain_text("quien administra")
    await go(frame)
    await expect(frame.locator("#title")).to_have_text(FILED)


async def test_name_of_the_host_greets_nobody(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Before the code was right nobody has proved who they are."""
    said = {**site.init("-", person)["userData"], "name": "Presidenta de la Nación"}
    await site.open(page, person, autoLoadFile=file_of(PDF), userData=said)
    frame = site.frame(page)
    await ceremony.read(frame)
    await at(frame, "code")

    await expect(frame.locator("body")).not_to_contain_text("Presidenta")
    await expect(frame.locator("#body")).to_contain_text(said["email"])
