"""Enrolling and verifying in real browsers: nothing typed twice, every look sound."""

import asyncio
from pathlib import Path

import pyotp
from playwright.async_api import Dialog, Page, Route, expect

from appliance.bootstrap import ServiceRegistry
from appliance.domain.integrators.integrators import Invitation
from appliance.domain.vocab import VouchedBy
from tests.support.appliance.appliance import Appliance
from tests.support.browsers.browsers import (
    SCHEMES,
    SIZES,
    Opener,
    axe,
    press_on,
    until_focused,
)
from tests.support.browsers.page_appearance import LOADED_AT, PageAppearance

LOGIN, SIGNING = "clave de ingreso ñ", "clave de firma ñ"


def _invite(appliance: Appliance) -> Invitation:
    """A link for somebody new."""
    cuil = appliance.next_cuil()

    async def invite(front: ServiceRegistry) -> Invitation:
        return await front.invitations.invite(
            "console:c1", cuil, "Ana Núñez", f"p{cuil}@demo.example", VouchedBy.OFFICER
        )

    return appliance.do(invite)


async def _sound(page: Page, opener: Opener, name: str) -> None:
    """No fault of accessibility, nothing cut off; keep pictures."""
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert await axe(page, colours=scheme != SCHEMES[0]) == []
        await opener.picture(page, f"{name}-{scheme}", full=True)
    assert await page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


async def _seed(page: Page) -> str:
    return (await page.locator("#seed").inner_text()).replace(" ", "")


async def test_page_reaches_the_lower_edge_of_a_telephone(
    open_page: Opener, appliance: Appliance
) -> None:
    """No band of another colour under the card, however little stands on it."""
    page = await open_page("phone")
    for address in ("/", "/verificar", "/nada", "/alta/nada"):
        await page.goto(f"{appliance.base_url}{address}")
        ends = await page.locator("main").evaluate(
            "(e) => e.getBoundingClientRect().bottom"
        )
        assert ends >= await page.evaluate("innerHeight") - 1, address


async def test_pages_are_sound(open_page: Opener, appliance: Appliance) -> None:
    """Home, the code's form, a wrong code, what is not there, the enrolment."""
    page = await open_page(LOADED_AT)
    look = PageAppearance(
        page, open_page, "public", sizes={**SIZES, "narrow": (320, 640)}
    )
    link = _invite(appliance)
    stops = {
        "home": "/",
        "verify": "/verificar",
        "verify-wrong": "/verificar?codigo=12-ab",
        "verify-unknown": "/verificar/0123456789ABCDEFGHJKMNPQRS",
        "missing": "/nada",
        "link-over": f"/solicitudes/1/documento?clave={'x' * 43}",
        "enrolment-over": "/alta/x",
        "revoke": "/revocar",
        "enrolment": f"/alta/{link.code}",
    }
    for name, path in stops.items():
        await page.goto(f"{appliance.base_url}{path}")
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await look.at(name)

    assert look.faults == []


async def test_mistakes_cost_no_typing(
    open_page: Opener, appliance: Appliance, tmp_path: Path
) -> None:
    """All faults at once; passwords stay, through another language too; PIN to keep."""
    page = await open_page("phone", permissions=["clipboard-read", "clipboard-write"])
    await page.goto(f"{appliance.base_url}/alta/{_invite(appliance).code}")
    assert (
        await page.get_by_role("link", name="Abrir en la app").get_attribute("href")
        or ""
    ).startswith("otpauth://totp/")
    await page.get_by_role("button", name="Copiar la clave").click()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied.replace(" ", "") == await _seed(page)

    scanned = await _seed(page)
    await page.reload()
    assert await _seed(page) == scanned
    other = await open_page("desktop")
    await other.goto(page.url)
    assert await _seed(other) != scanned

    await page.locator("#login_password").fill(LOGIN)
    await page.locator("#signing_password").fill("corta7")
    await page.locator("#totp_code").fill("12345")
    await press_on(page, page.get_by_role("button", name="Terminar el alta"))
    summary = page.get_by_role("alert")
    await expect(summary.get_by_role("listitem")).to_have_count(4)
    await until_focused(summary)
    await _sound(page, open_page, "public-enrolment-faults-phone")
    assert LOGIN not in await page.content()

    await page.get_by_role("link", name="English").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Choose how")
    assert "lang=en" in page.url
    assert await page.locator("#login_password").input_value() == LOGIN
    assert await _seed(page) == scanned
    await page.get_by_label("Show what I type").first.check()
    await expect(page.locator("#login_password")).to_have_attribute("type", "text")

    await page.locator("#login_password_again").fill(LOGIN)
    await page.locator("#signing_password").fill(SIGNING)
    await page.locator("#signing_password_again").fill(SIGNING)
    await page.locator("#totp_code").fill(pyotp.TOTP(await _seed(page)).now())
    await page.get_by_role("button", name="Finish the enrolment").click()
    pin = page.locator("#pin")
    await expect(pin).to_be_visible()
    await _sound(page, open_page, "public-enrolment-done-phone")

    await page.get_by_role("button", name="Copy", exact=True).click()
    assert await page.evaluate("navigator.clipboard.readText()") == (
        await pin.inner_text()
    )
    async with page.expect_download() as started:
        await page.get_by_role("button", name="Download as text").click()
    kept = tmp_path / "pin.txt"
    await (await started.value).save_as(kept)
    assert await pin.inner_text() in kept.read_text(encoding="utf-8")
    assert (await started.value).suggested_filename == "revocation-pin.txt"


async def _fill_in(page: Page) -> None:
    """Type what the form asks for, rightly."""
    for name in ("login_password", "login_password_again"):
        await page.locator(f"#{name}").fill(LOGIN)
    for name in ("signing_password", "signing_password_again"):
        await page.locator(f"#{name}").fill(SIGNING)
    await page.locator("#totp_code").fill(pyotp.TOTP(await _seed(page)).now())


async def test_page_waits_for_the_key_and_keeps_the_pin(
    open_page: Opener, appliance: Appliance
) -> None:
    """Told as pending it asks on by itself; the PIN stays until it is kept."""
    page = await open_page("phone")
    link = f"{appliance.base_url}/alta/{_invite(appliance).code}"

    async def pending(route: Route) -> None:
        answer = await route.fetch()
        text = await answer.text()
        waiting = text.replace('class="standing"', 'class="standing" data-waits')
        assert waiting != text
        await route.fulfill(response=answer, body=waiting)

    await page.goto(link)
    await _fill_in(page)
    await page.route(link, pending, times=1)
    await page.get_by_role("button", name="Terminar el alta").click()
    pin = page.locator("#pin")
    await expect(pin).to_be_visible()
    shown = await pin.inner_text()
    await expect(page.locator("[data-waits]")).to_have_count(0)
    assert await pin.inner_text() == shown
    title = page.get_by_role("heading", level=1)
    await expect(title).to_have_text("Listo: ya podés firmar")

    await expect(page.locator("[data-after]")).to_contain_text("Qué sigue ahora")

    await page.route(link, pending, times=1)
    await page.reload()
    await expect(page.locator("[data-waits]")).to_have_count(0)
    await expect(title).to_have_text("Listo: ya podés firmar")
    assert await pin.inner_text() == shown

    await page.get_by_role("link", name="English").click()
    await expect(title).to_have_text("Done: you can sign now")
    assert await pin.inner_text() == shown
    await page.get_by_role("link", name="Español").click()
    await expect(title).to_have_text("Listo: ya podés firmar")
    assert await pin.inner_text() == shown

    await page.get_by_role("button", name="Ya lo guardé").click()
    await expect(pin).to_have_count(0)
    await page.reload()
    await expect(title).to_have_text("Listo: ya podés firmar")
    await expect(pin).to_have_count(0)
    await expect(page.locator("main")).to_contain_text("pedile uno nuevo")
    await _sound(page, open_page, "public-enrolment-reloaded-phone")


async def test_faults_go_while_the_form_is_sent(
    open_page: Opener, appliance: Appliance
) -> None:
    """What was wrong before is not said of what is being looked at."""
    page = await open_page("desktop")
    link = f"{appliance.base_url}/alta/{_invite(appliance).code}"
    await page.goto(link)
    await page.get_by_role("button", name="Terminar el alta").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await _fill_in(page)
    sent, go_on = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        sent.set()
        await go_on.wait()
        await route.continue_()

    await page.route(link, hold)
    await page.get_by_role("button", name="Terminar el alta").click()
    await sent.wait()
    await expect(page.get_by_role("alert")).to_be_hidden()
    await expect(page.locator(".error:visible")).to_have_count(0)
    go_on.set()

    await expect(page.locator("#pin")).to_be_visible()


async def test_who_leaves_before_keeping_the_pin_is_asked(
    open_page: Opener, appliance: Appliance
) -> None:
    """The browser asks until the person says that they have kept it."""
    page = await open_page("phone")
    asked: list[str] = []

    async def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    page.on("dialog", stay)
    await page.goto(f"{appliance.base_url}/alta/{_invite(appliance).code}")
    await _fill_in(page)
    await page.get_by_role("button", name="Terminar el alta").click()
    pin = page.locator("#pin")
    await expect(pin).to_be_visible()
    # In a browser that keeps no cookies another language would lose it.
    await page.context.clear_cookies(name="__Host-rubrica-pin")
    async with page.expect_event("dialog"):
        await page.get_by_role("link", name="English").click()
    await expect(pin).to_be_visible()
    assert asked == ["beforeunload"]

    await page.get_by_role("button", name="Ya lo guardé").click()
    await expect(pin).to_have_count(0)
    await page.get_by_role("link", name="English").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(
        "Done: you can sign now"
    )
    assert asked == ["beforeunload"]


async def test_enrolment_needs_no_script(
    open_page: Opener, appliance: Appliance
) -> None:
    """Without a script the form works, and offers nothing that would not."""
    page = await open_page("desktop", java_script_enabled=False)
    await page.goto(f"{appliance.base_url}/alta/{_invite(appliance).code}")
    await expect(page.get_by_role("button")).to_have_count(1)

    for name in ("login_password", "login_password_again"):
        await page.locator(f"#{name}").fill(LOGIN)
    for name in ("signing_password", "signing_password_again"):
        await page.locator(f"#{name}").fill(SIGNING)
    seed = (await page.locator("#seed").text_content() or "").replace(" ", "")
    await page.locator("#totp_code").fill(pyotp.TOTP(seed).now())
    await page.get_by_role("button", name="Terminar el alta").click()

    pin = page.locator("#pin")
    await expect(pin).to_be_visible()
    shown = await pin.inner_text()
    await page.get_by_role("link", name="English").click()
    assert await pin.inner_text() == shown
    await page.get_by_role("button", name="I have kept it").click()
    await expect(pin).to_have_count(0)
    assert "lang=en" in page.url
