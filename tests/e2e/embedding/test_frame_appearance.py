"""Every state of the frame in every look: pictures, axe, nothing runs out."""

import asyncio

from playwright.async_api import Frame, Route, expect

from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener
from tests.support.browsers.ceremony import at, go
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.browsers.page_appearance import EACH_FITS, LOADED_AT, PageAppearance
from tests.support.documents.field_pdfs import Field, with_fields

AGREEMENT = with_fields(
    Field("locación.inquilina", rects=[(60, 90, 280, 160)]),
    Field("locación.garante", rects=[(310, 90, 530, 160)]),
    Field("escribanía", rects=[(60, 180, 280, 250)], read_only=True),
    Field("auditoría", rects=[]),
    script=True,
)
"""With fields that can be signed, one that cannot, and one on no page."""


async def begin(open_page: Opener) -> PageAppearance:
    """A page that is looked at in every size."""
    page = await open_page(LOADED_AT)
    return PageAppearance(page, open_page, "frame", full=False, fits=EACH_FITS)


async def test_ceremony_is_accessible_in_every_look(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """From waiting for the host to the signed document, errors included."""
    looks = await begin(open_page)
    page = looks.page
    token = await site.ready(page)
    frame = site.frame(page)
    await looks.at("01-waiting", frame)
    await site.send(page, "init", site.init(token, person))
    await at(frame, "pick")
    await looks.at("02-pick", frame)
    await site.send(page, "load.file", file_of(AGREEMENT, "Acuerdo ñandú.pdf"))
    await at(frame, "read")
    await site.wait(page, "document.loaded")
    await looks.at("03-read", frame)
    await go(frame)
    await at(frame, "code")
    await looks.at("04-code", frame)
    await frame.fill("#code", "000000")
    await go(frame)
    await expect(frame.locator("#alert")).to_be_visible()
    await looks.at("05-code-wrong", frame)
    await ceremony.give_code(frame, person)
    await at(frame, "place")
    await frame.check("input[value=topRight]")
    await expect(frame.locator(".stamp img")).to_be_visible()
    await looks.at("06-place", frame)
    await frame.get_by_label("locación.inquilina").check()
    await expect(frame.locator("#page")).to_be_hidden()
    await looks.at("06-place-field", frame)
    await go(frame)
    await at(frame, "password")
    await looks.at("07-password", frame)
    await frame.fill("#password", "no es esta")
    await go(frame)
    await expect(frame.locator("#alert")).to_be_visible()
    await looks.at("08-password-wrong", frame)
    await _sign_slowly(looks, frame, person)
    await at(frame, "done")
    await looks.at("11-done", frame)

    assert looks.faults == []


async def _sign_slowly(looks: PageAppearance, frame: Frame, person: TestPerson) -> None:
    """Sign, with time to look at it, and with the answer lost on the way."""
    signed, seen = asyncio.Event(), asyncio.Event()

    async def lose(route: Route) -> None:
        await route.fetch()
        await signed.wait()
        await route.abort()

    async def hold(route: Route) -> None:
        await seen.wait()
        await route.continue_()

    await looks.page.route("**/embed/api/sign", lose)
    await looks.page.route("**/embed/api/state?wait=1", hold)
    await ceremony.sign(frame, person)
    await at(frame, "signing")
    await looks.at("09-signing", frame)
    signed.set()
    await expect(frame.locator("html")).to_have_attribute("data-state", "reconciling")
    await looks.at("10-checking", frame)
    seen.set()


async def test_other_states_are_accessible_in_every_look(
    site: FrameSite,
    person: TestPerson,
    open_page: Opener,
) -> None:
    """Asking who it is, lists, ends, and pages that do not go on."""
    looks = await begin(open_page)
    page = looks.page
    stranger = {"dni": "11222333", "email": "nadie@demo.example"}
    site.new_request(person, AGREEMENT, "Acuerdo ñandú.pdf")
    site.new_request(
        person, AGREEMENT, "Contrato de locación con opción de compra, 2026.pdf"
    )
    await site.open(page, None, userData=stranger)
    frame = site.frame(page)
    await at(frame, "pick")
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await at(frame, "identify")
    await looks.at("12-identify", frame)
    await frame.fill("#cuil", "20-26756539-3")
    await go(frame)
    await expect(frame.locator("#alert")).to_be_visible()
    await looks.at("13-identify-unknown", frame)
    await frame.fill("#cuil", person.cuil)
    await frame.fill("#email", person.email)
    await go(frame)
    await ceremony.give_code(frame, person)
    await expect(frame.locator(".choices button")).to_have_count(2)
    await looks.at("14-requests", frame)
    await frame.get_by_role("button", name="Volver").click()
    await frame.get_by_role("button", name="Cancelar").click()
    await expect(frame.get_by_role("dialog")).to_be_visible()
    await looks.at("15-leave", frame)
    await frame.get_by_role("button", name="Salir").click()
    await at(frame, "cancelled")
    await looks.at("15-cancelled", frame)

    token = site.token()
    site.expire(token)
    await site.visit(page)
    await site.mount(page, token)
    await site.wait(page, "error")
    await looks.at("16-expired", site.frame(page))

    await site.visit(page)
    await site.mount(page, "x" * 43)
    await expect(page.frame_locator("iframe").locator("h1")).to_be_visible()
    await looks.at("17-unknown", site.frame(page))

    await page.goto(site.src(site.token()))
    await at(page.main_frame, "alone")
    await looks.at("18-alone", page)

    assert looks.faults == []


async def test_refusals_are_accessible_in_every_look(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """A document that is refused, one that is rejected, a signer who cannot sign."""
    looks = await begin(open_page)
    page = looks.page
    await site.open(page, person, autoLoadFile=file_of(b"<html>no pdf</html>"))
    frame = site.frame(page)
    await at(frame, "refused")
    await looks.at("19-refused", frame)
    await site.send(page, "load.file", file_of(AGREEMENT, "Acuerdo ñandú.pdf"))
    await at(frame, "read")
    await frame.get_by_role("button", name="Rechazar…").click()
    await ceremony.give_code(frame, person)
    await at(frame, "reject")
    await looks.at("20-reject", frame)
    await frame.fill("#reason", "Falta el anexo")
    await go(frame)
    await expect(frame.get_by_role("dialog")).to_be_visible()
    await looks.at("20-reject-asked", frame)
    await frame.get_by_role("button", name="Sí, rechazar").click()
    await at(frame, "rejected")
    await looks.at("21-rejected", frame)

    site.lock(person)
    await site.next_code(person)
    await site.open(page, person, autoLoadFile=file_of(AGREEMENT))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await at(frame, "blocked")
    await looks.at("22-barred", frame)

    assert looks.faults == []
