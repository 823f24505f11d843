"""Every state of the frame in every look: pictures, axe, nothing runs out."""

import asyncio
from dataclasses import dataclass, field

import pytest
from playwright.async_api import Frame, Page, Route, expect

from tests.parts import ceremony
from tests.parts.appliance import TestPerson
from tests.parts.browsers import SCHEMES, SIZES, Opener, axe
from tests.parts.ceremony import at, go
from tests.parts.field_pdfs import Field, with_fields
from tests.parts.frame_host import FrameSite, file_of

_TOO_WIDE = """() => [...document.querySelectorAll("body *")]
  .filter((e) => e.checkVisibility() && !e.closest("#viewer, .visually-hidden")
     && e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => e.outerHTML.slice(0, 120))"""


AGREEMENT = with_fields(
    Field("locación.inquilina", rects=[(60, 90, 280, 160)]),
    Field("locación.garante", rects=[(310, 90, 530, 160)]),
    Field("escribanía", rects=[(60, 180, 280, 250)], read_only=True),
    Field("auditoría", rects=[]),
    script=True,
)
"""With fields that can be signed, one that cannot, and one on no page."""


@dataclass
class Looks:
    """Looks at a frame of one size in both schemes, and keeps what is wrong."""

    opener: Opener
    page: Page
    size: str
    faults: dict[str, list[str]] = field(default_factory=dict)

    async def see(self, frame: Frame | Page, name: str) -> None:
        """Take pictures, run axe, look for what is cut off at the side."""
        found: list[str] = []
        for scheme in SCHEMES:
            await self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await self.opener.picture(self.page, f"frame-{name}-{self.size}-{scheme}")
            found += await axe(frame, colours=scheme != SCHEMES[0])
        found += await frame.evaluate(_TOO_WIDE)
        if found:
            self.faults[name] = found


@pytest.mark.parametrize("size", SIZES)
async def test_ceremony_is_accessible_in_every_look(
    site: FrameSite, person: TestPerson, open_page: Opener, size: str
) -> None:
    """From waiting for the host to the signed document, errors included."""
    page = await open_page(size)
    looks = Looks(open_page, page, size)
    token = await site.ready(page)
    frame = site.frame(page)
    await looks.see(frame, "01-waiting")
    await site.send(page, "init", site.init(token, person))
    await at(frame, "pick")
    await looks.see(frame, "02-pick")
    await site.send(page, "load.file", file_of(AGREEMENT, "Acuerdo ñandú.pdf"))
    await at(frame, "read")
    await site.wait(page, "document.loaded")
    await looks.see(frame, "03-read")
    await go(frame)
    await at(frame, "code")
    await looks.see(frame, "04-code")
    await frame.fill("#code", "000000")
    await go(frame)
    await expect(frame.locator("#alert")).to_be_visible()
    await looks.see(frame, "05-code-wrong")
    await ceremony.give_code(frame, person)
    await at(frame, "place")
    await frame.check("input[value=topRight]")
    await expect(frame.locator(".stamp img")).to_be_visible()
    await looks.see(frame, "06-place")
    await frame.get_by_label("locación.inquilina").check()
    await expect(frame.locator("#page")).to_be_hidden()
    await looks.see(frame, "06-place-field")
    await go(frame)
    await at(frame, "password")
    await looks.see(frame, "07-password")
    await frame.fill("#password", "no es esta")
    await go(frame)
    await expect(frame.locator("#alert")).to_be_visible()
    await looks.see(frame, "08-password-wrong")
    await _sign_slowly(looks, frame, person)
    await at(frame, "done")
    await looks.see(frame, "11-done")

    assert not looks.faults, looks.faults


async def _sign_slowly(looks: Looks, frame: Frame, person: TestPerson) -> None:
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
    await looks.see(frame, "09-signing")
    signed.set()
    await expect(frame.locator("html")).to_have_attribute("data-state", "reconciling")
    await looks.see(frame, "10-checking")
    seen.set()


@pytest.mark.parametrize("size", SIZES)
async def test_other_states_are_accessible_in_every_look(
    site: FrameSite,
    person: TestPerson,
    open_page: Opener,
    size: str,
) -> None:
    """Asking who it is, lists, ends, and pages that do not go on."""
    page = await open_page(size)
    looks = Looks(open_page, page, size)
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
    await looks.see(frame, "12-identify")
    await frame.fill("#cuil", "20-26756539-3")
    await go(frame)
    await expect(frame.locator("#alert")).to_be_visible()
    await looks.see(frame, "13-identify-unknown")
    await frame.fill("#cuil", person.cuil)
    await frame.fill("#email", person.email)
    await go(frame)
    await ceremony.give_code(frame, person)
    await expect(frame.locator(".choices button")).to_have_count(2)
    await looks.see(frame, "14-requests")
    await frame.get_by_role("button", name="Volver").click()
    await frame.get_by_role("button", name="Cancelar").click()
    await expect(frame.get_by_role("dialog")).to_be_visible()
    await looks.see(frame, "15-leave")
    await frame.get_by_role("button", name="Salir").click()
    await at(frame, "cancelled")
    await looks.see(frame, "15-cancelled")

    token = site.token()
    site.expire(token)
    await site.visit(page)
    await site.mount(page, token)
    await site.wait(page, "error")
    await looks.see(site.frame(page), "16-expired")

    await site.visit(page)
    await site.mount(page, "x" * 43)
    await expect(page.frame_locator("iframe").locator("h1")).to_be_visible()
    await looks.see(site.frame(page), "17-unknown")

    await page.goto(site.src(site.token()))
    await at(page.main_frame, "alone")
    await looks.see(page, "18-alone")

    assert not looks.faults, looks.faults


@pytest.mark.parametrize("size", SIZES)
async def test_refusals_are_accessible_in_every_look(
    site: FrameSite, person: TestPerson, open_page: Opener, size: str
) -> None:
    """A document that is refused, one that is rejected, a signer who cannot sign."""
    page = await open_page(size)
    looks = Looks(open_page, page, size)
    await site.open(page, person, autoLoadFile=file_of(b"<html>no pdf</html>"))
    frame = site.frame(page)
    await at(frame, "refused")
    await looks.see(frame, "19-refused")
    await site.send(page, "load.file", file_of(AGREEMENT, "Acuerdo ñandú.pdf"))
    await at(frame, "read")
    await frame.get_by_role("button", name="Rechazar…").click()
    await ceremony.give_code(frame, person)
    await at(frame, "reject")
    await looks.see(frame, "20-reject")
    await frame.fill("#reason", "Falta el anexo")
    await go(frame)
    await expect(frame.get_by_role("dialog")).to_be_visible()
    await looks.see(frame, "20-reject-asked")
    await frame.get_by_role("button", name="Sí, rechazar").click()
    await at(frame, "rejected")
    await looks.see(frame, "21-rejected")

    site.lock(person)
    await site.next_code(person)
    await site.open(page, person, autoLoadFile=file_of(AGREEMENT))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await at(frame, "blocked")
    await looks.see(frame, "22-barred")

    assert not looks.faults, looks.faults
