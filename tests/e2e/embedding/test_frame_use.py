"""The frame as people use it: keyboard, language, small windows, browsers that refuse.

Source: decisions "Iframe".
"""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Page, Route, expect

from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import (
    Opener,
    axe,
    press_on,
    resize,
    tab_to,
    until_focused,
)
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.documents import pdfs

PDF = pdfs.one_page()


async def test_keyboard_alone_signs(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """From the document to the download nobody needs a mouse."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    main = frame.locator("#bar .primary")
    await ceremony.at(frame, "read")
    await press_on(page, main)
    await ceremony.at(frame, "code")
    await tab_to(page, frame.locator("#code"))
    await page.keyboard.type(person.totp.now())
    await page.keyboard.press("Enter")
    await ceremony.at(frame, "place")
    await tab_to(page, frame.locator("input[value=bottomLeft]"))
    await page.keyboard.press("ArrowDown")
    await expect(frame.locator("input[value=bottomRight]")).to_be_checked()
    await press_on(page, main)
    await ceremony.at(frame, "password")
    await tab_to(page, frame.locator("#password"))
    await page.keyboard.type(person.signing_password)
    await page.keyboard.press("Enter")
    await ceremony.at(frame, "done")
    async with page.expect_download() as download:
        await press_on(page, main)

    saved = await download.value
    assert saved.suggested_filename == "contrato-firmado.pdf"


async def test_signed_document_is_saved_while_the_host_is_still_being_told(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Whatever that takes: the press is not lost, and the host is told after."""
    saved = asyncio.Event()

    async def hold(route: Route) -> None:
        await saved.wait()
        await route.continue_()

    await page.route("**/embed/api/completed", hold)
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.whole(frame, person)
    await ceremony.at(frame, "done")
    async with page.expect_download():
        await frame.locator("#bar .primary").click()
    saved.set()

    assert await site.wait(page, "signature.completed")


async def test_focus_begins_each_step_at_its_title(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A signer inside the frame hears the new step; one outside keeps the focus."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.at(frame, "read")
    assert not await frame.evaluate("document.hasFocus()")
    await ceremony.go(frame)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "place")

    await until_focused(frame.locator("#title"))


async def test_language_is_switched_in_the_frame(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Spanish of Argentina first, English one press away, errors included."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.at(frame, "read")
    await expect(frame.locator("html")).to_have_attribute("lang", "es-AR")
    await frame.locator("#language").click()
    await expect(frame.locator("html")).to_have_attribute("lang", "en")
    await ceremony.go(frame)
    await ceremony.at(frame, "code")
    await expect(frame.locator("#title")).to_have_text("Your code")
    await frame.fill("#code", "000000")
    await ceremony.go(frame)

    await expect(frame.locator("#alert")).to_contain_text("The code is wrong")


_NO_STORAGE = """
if (parent !== window) {
  for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches"]) {
    Object.defineProperty(window, name, { get() { throw new DOMException("no"); } });
  }
  Object.defineProperty(document, "cookie", {
    get() { throw new DOMException("no"); }, set() { throw new DOMException("no"); },
  });
  Object.defineProperty(navigator, "serviceWorker", { get() { throw Error("no"); } });
}
"""


async def test_frame_needs_neither_cookie_nor_storage(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """With storage and cookies of third parties refused, it signs all the same."""
    await page.add_init_script(_NO_STORAGE)
    await site.open(page, person, autoLoadFile=file_of(PDF))
    await ceremony.whole(site.frame(page), person)
    await site.wait(page, "signature.completed")

    assert await page.context.cookies() == []


async def test_frame_leaves_nothing_in_the_browser(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """No cookie, no storage, no database after a whole signature."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    await ceremony.whole(site.frame(page), person)
    left = await site.frame(page).evaluate(
        """async () => {
          const looks = [() => document.cookie.length, () => localStorage.length,
            () => sessionStorage.length,
            async () => (await indexedDB.databases()).length,
            async () => (await caches.keys()).length];
          // Where the browser gives third parties no storage, there is nothing.
          return Promise.all(looks.map(async (look) => {
            try { return await look(); } catch { return 0; }
          }));
        }"""
    )

    assert left == [0, 0, 0, 0, 0]
    assert await page.context.cookies() == []


async def test_many_pages_are_drawn_when_they_come_near(
    site: FrameSite, person: TestPerson, phone: Page
) -> None:
    """80 pages on a phone: few canvases at a time, the last page readable."""
    await site.open(phone, person, autoLoadFile=file_of(pdfs.pages(80)))
    loaded = await site.wait(phone, "document.loaded")
    frame = site.frame(phone)
    assert loaded["pages"] == 80
    assert await frame.locator("canvas").count() < 8
    await frame.locator(".page").last.scroll_into_view_if_needed()

    await expect(frame.locator(".page").last.locator(".textLayer")).to_have_text(
        "Page 80"
    )
    assert await frame.locator("canvas").count() < 12
    assert await frame.locator("#bar .primary").is_visible()


async def test_document_that_the_browser_cannot_draw_is_shown_by_pictures(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Without pdf.js the server's pictures serve, and the signature is made."""
    await page.route("**/pdf.min.mjs", lambda route: route.abort())
    await site.open(page, person, autoLoadFile=file_of(PDF))
    await site.wait(page, "document.loaded")
    frame = site.frame(page)

    await expect(frame.locator(".page img")).to_be_visible()
    await ceremony.whole(frame, person)


SMALL: Final = ((400, 500), (320, 256), (844, 390))
"""The least recommended size, 400 % zoom, and a phone on its side: width, height."""


async def test_small_frames_hide_nothing(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """In every step nothing is wider than the frame or too small for a finger."""
    page = await open_page()
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    faults: dict[str, Any] = {}

    async def look(step: str) -> None:
        await ceremony.at(frame, step)
        for size in SMALL:
            await resize(page, size, frame)
            wide = await frame.evaluate(
                "(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)"
                "(document.documentElement)"
            )
            low = await frame.evaluate(_SMALL_TARGETS)
            if wide or low:
                faults[f"{step} in {size}"] = [wide, low]
            await open_page.picture(page, f"frame-small-{size[0]}x{size[1]}-{step}")

    await look("read")
    await ceremony.go(frame)
    await look("code")
    await ceremony.give_code(frame, person)
    await look("place")
    await ceremony.go(frame)
    await look("password")
    await ceremony.sign(frame, person)
    await look("done")

    assert not faults, faults


_SMALL_TARGETS = """() => [...document.querySelectorAll("button, input, a, .button")]
  .filter((e) => e.checkVisibility() && !e.closest(".visually-hidden"))
  .map((e) => e.type === "radio" ? e.closest("label") : e)
  .filter((e) => { const b = e.getBoundingClientRect();
                   return b.height < 44 || b.width < 44; })
  .filter((e) => !e.matches("#file"))
  .map((e) => e.outerHTML.slice(0, 100))"""


async def test_motion_and_colours_follow_the_signer(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """Reduced motion slows the spinner down; forced colours keep every choice seen."""
    page = await open_page(reduced_motion="reduce", forced_colors="active")
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "place")
    outline = await frame.locator(".corner:has(:checked)").evaluate(
        "(e) => getComputedStyle(e).outlineStyle"
    )

    assert outline == "solid"
    assert await axe(frame) == []
    await open_page.picture(page, "frame-forced-colours")


CORPUS = Path(__file__).parents[3].parent / "shared" / "corpus"
DEMANDING = ["jp2k-resetprob", "bitmap-halftone-grid", "noembed-jis7", "issue2099-1"]
"""JPEG 2000, JBIG2, a CMap and standard fonts that are not embedded."""


@pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the shared corpus does not stand beside the project"
)
async def test_pictures_and_fonts_are_drawn_without_webassembly(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """pdf.js finds all that it needs at our origin, within the strict policy."""
    page = await open_page()
    failed: list[str] = []
    page.on(
        "response",
        lambda r: (
            failed.append(r.url)
            if r.status >= 400 and r.url.startswith(site.iframe_url)
            else None
        ),
    )
    await site.open(page, person)
    for number, name in enumerate(DEMANDING, start=1):
        pdf = (CORPUS / f"{name}.pdf").read_bytes()
        await site.send(page, "load.file", file_of(pdf, f"{name}.pdf"))
        await site.wait(page, "document.loaded", number)
        # Drawn when the browser gets to it; pictures would stand there instead.
        await expect(site.frame(page).locator(".page canvas").first).to_be_visible()

    assert failed == []
