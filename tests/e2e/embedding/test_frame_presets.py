"""A request whose look and place were chosen when it was asked for, in the frame.

Source: docs/frame.md; docs/api.md, "The look and place of a signature".
"""

import base64

import pytest
from playwright.async_api import Frame, Page, expect

from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import Restriction
from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, axe
from tests.support.browsers.frame_host import FrameSite
from tests.support.documents import pdfs
from tests.support.documents.validators import signature_boxes

PDF = pdfs.pages(3)
GIVEN = GivenParameters.of(page=2, x=200, y=300, font_size=20, font_color="BLUE")
SIZES = ["phone", "desktop"]


async def placing(
    site: FrameSite, person: TestPerson, page: Page, preset: SignaturePreset
) -> Frame:
    """The frame at the place of a request that was picked from the list."""
    site.new_request(person, PDF, "contrato.pdf", preset)
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    await frame.get_by_role("button", name="contrato.pdf").click()
    await ceremony.read(frame)
    await ceremony.at(frame, "place")
    await expect(frame.locator(".page").nth(1).locator(".stamp")).to_be_visible()
    await expect(frame.locator("#viewer")).to_have_attribute("aria-busy", "false")
    return frame


async def signed_at(
    site: FrameSite, person: TestPerson, page: Page
) -> tuple[int, list[float]]:
    """Page number, and left and top of the mark in the signed document."""
    await ceremony.sign(site.frame(page), person)
    completed = await site.wait(page, "signature.completed")
    found = signature_boxes(base64.b64decode(completed["delivery"]["fileBase64"]))
    ((number, x0, _, _, y1),) = found
    return number, [x0, 842 - y1]


@pytest.mark.parametrize("size", SIZES)
async def test_place_that_was_asked_for_is_proposed(
    site: FrameSite,
    person: TestPerson,
    open_page: Opener,
    size: str,
) -> None:
    """It is chosen to begin with, by the name of who asked, and signed there."""
    page = await open_page(size)
    frame = await placing(site, person, page, SignaturePreset(GIVEN))
    asked = frame.get_by_label("Donde la pidió Estudio Contable Sur")
    await expect(asked).to_be_checked()
    await expect(frame.locator("#page")).to_be_hidden()
    await open_page.picture(page, f"frame-preset-{size}")

    await ceremony.go(frame)
    await ceremony.at(frame, "password")
    await frame.locator("summary").click()
    told = frame.get_by_text("Donde la pidió Estudio Contable Sur, página 2")
    await expect(told).to_be_visible()
    number, place = await signed_at(site, person, page)
    assert number == 2
    assert place == pytest.approx([200, 300], abs=1)


async def test_another_place_may_be_chosen_and_the_first_one_again(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The look stays; a refused place leaves what held before."""
    frame = await placing(site, person, page, SignaturePreset(GIVEN))
    asked = frame.locator("input[value=preset]")
    await frame.check("input[value=topLeft]")
    await expect(frame.locator("#page")).to_be_visible()
    stamp = frame.locator(".page").nth(1).locator(".stamp")
    await expect(stamp).to_be_visible()
    await expect(frame.locator("#viewer")).to_have_attribute("aria-busy", "false")
    wide = await stamp.evaluate("(e) => e.offsetWidth / e.parentElement.offsetWidth")
    # Of 20 pt, the font that was asked for; of 12 pt it would be less than a third.
    assert wide > 0.35

    await asked.check()
    await expect(frame.locator("#page")).to_be_hidden()
    await frame.locator(".page").nth(2).scroll_into_view_if_needed()
    await frame.locator(".page").nth(2).click(position={"x": 200, "y": 200})
    await expect(frame.locator("input[value=custom]")).to_be_checked()
    await expect(frame.locator(".page").nth(2).locator(".stamp")).to_be_visible()
    await ceremony.go(frame)
    assert (await signed_at(site, person, page))[0] == 3


@pytest.mark.parametrize("size", SIZES)
async def test_place_that_is_fixed_is_shown_and_not_offered(
    site: FrameSite,
    person: TestPerson,
    open_page: Opener,
    size: str,
) -> None:
    """No choice, no dragging; a call that says another place is refused."""
    page = await open_page(size)
    preset = SignaturePreset(GIVEN, fixed=True)
    frame = await placing(site, person, page, preset)
    await expect(frame.get_by_role("heading", name="Dónde va tu firma")).to_be_visible()
    await expect(
        frame.get_by_text("Estudio Contable Sur fijó el lugar")
    ).to_be_visible()
    await expect(frame.locator("input[name=corner]")).to_have_count(0)
    await open_page.picture(page, f"frame-preset-fixed-{size}")

    second = frame.locator(".page").nth(1)
    where = "(e) => [e.offsetLeft, e.offsetTop]"
    before = await second.locator(".stamp").evaluate(where)
    await second.click(position={"x": 20, "y": 20})
    assert await second.locator(".stamp").evaluate(where) == before

    await ceremony.go(frame)
    number, place = await signed_at(site, person, page)
    assert number == 2
    assert place == pytest.approx([200, 300], abs=1)


async def test_proposal_that_has_no_room_leaves_the_usual_choice(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A page that went away, such as: the signer is asked as ever."""
    site.new_request(
        person,
        PDF,
        "contrato.pdf",
        SignaturePreset(GivenParameters.of(page=9)),
    )
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    await frame.get_by_role("button", name="contrato.pdf").click()
    await ceremony.read(frame)
    await ceremony.at(frame, "place")

    await expect(frame.locator("input[value=bottomLeft]")).to_be_checked()
    await expect(frame.locator(".page").first.locator(".stamp")).to_be_visible()


async def test_fixed_place_without_room_is_told(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Nothing can be signed there, and nowhere else either."""
    preset = SignaturePreset(GivenParameters.of(page=9), fixed=True)
    site.new_request(person, PDF, "contrato.pdf", preset)
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    await frame.get_by_role("button", name="contrato.pdf").click()
    await ceremony.read(frame)
    await ceremony.at(frame, "failed")

    await expect(frame.get_by_text("No hay página 9")).to_be_visible()
    assert (await site.wait(page, "error"))["code"] == "PAGE_OUT_OF_RANGE"


HIDDEN = GivenParameters.of(
    visible=False,
    reason="Acepto deber 900.000 pesos",
    place="Montevideo",
    restriction=Restriction.NO_CHANGES_ALLOWED,
)
TERMS = [
    ["Motivo de la firma", "Acepto deber 900.000 pesos"],
    ["Lugar de la firma", "Montevideo"],
    [
        "Después de tu firma",
        "no se puede cambiar nada del documento, y nadie más lo puede firmar",
    ],
    ["Tu marca", "no se va a ver en ninguna página"],
]


async def told_terms(frame: Frame) -> list[list[str]]:
    """What the step says of the signature."""
    rows = frame.locator("section.terms .facts > div")
    each = "(rows) => rows.map((row) => [...row.children].map((e) => e.textContent))"
    told: list[list[str]] = await rows.evaluate_all(each)
    return told


@pytest.mark.parametrize("size", SIZES)
async def test_what_no_page_shows_is_told_before_the_password(
    site: FrameSite, person: TestPerson, open_page: Opener, size: str
) -> None:
    """Reason, place, what may follow and no mark; in English, too."""
    page = await open_page(size)
    site.new_request(person, PDF, "contrato.pdf", SignaturePreset(HIDDEN, fixed=True))
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    await frame.get_by_role("button", name="contrato.pdf").click()
    await ceremony.at(frame, "read")
    assert await told_terms(frame) == TERMS
    await open_page.picture(page, f"frame-terms-read-{size}")
    assert await axe(frame) == []
    await ceremony.go(frame)
    await ceremony.at(frame, "place")
    unseen = frame.get_by_text("Estudio Contable Sur pide una firma sin marca visible")
    await expect(unseen).to_be_visible()
    await open_page.picture(page, f"frame-terms-place-{size}")
    await ceremony.go(frame)
    await ceremony.at(frame, "password")
    await expect(frame.locator("#password")).to_be_focused()
    assert await told_terms(frame) == TERMS
    await open_page.picture(page, f"frame-terms-password-{size}")
    assert await axe(frame) == []
    await frame.locator("#language").click()
    await expect(frame.locator(".terms .facts > div").nth(2)).to_have_text(
        "After your signature"
        "nothing in the document may be changed, and nobody else may sign it"
    )

    await ceremony.sign(frame, person)
    completed = await site.wait(page, "signature.completed")
    pdf = base64.b64decode(completed["delivery"]["fileBase64"])
    assert b"Montevideo" in pdf
    assert signature_boxes(pdf) == []


async def test_terms_are_those_of_the_place_that_was_chosen(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A proposal without a mark may get one; a plain signature has none to be told."""
    given = GivenParameters.of(visible=False)
    site.new_request(person, PDF, "contrato.pdf", SignaturePreset(given))
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    await frame.get_by_role("button", name="contrato.pdf").click()
    await ceremony.at(frame, "read")
    assert await told_terms(frame) == TERMS[3:]
    await ceremony.go(frame)
    await ceremony.at(frame, "place")
    asked = frame.get_by_label("Sin marca visible, como la pidió Estudio Contable Sur")
    await expect(asked).to_be_checked()

    await ceremony.choose_place(frame)
    await ceremony.at(frame, "password")
    assert await told_terms(frame) == []
    await frame.get_by_role("button", name="Volver").click()
    await ceremony.choose_place(frame, "none")
    await ceremony.at(frame, "password")
    assert await told_terms(frame) == TERMS[3:]
