"""The browser parts of tests themselves: what they watch, reach and find."""

from collections.abc import Iterator

import pytest
from playwright.async_api import Page, expect

from tests.support.browsers.browsers import (
    Opener,
    axe,
    axe_everywhere,
    is_focused,
    press_on,
    until,
)
from tests.support.browsers.host_page import HostPage

HOST = """<!doctype html><html lang="es"><title>Host</title><main><h1>Host</h1>
<iframe title="marco" src="{frame}" width="400" height="300"></iframe></main>"""
FRAME = """<!doctype html><html lang="es"><title>Marco</title><main><h1>Marco</h1>
{more}</main>"""


@pytest.fixture
def sites() -> Iterator[HostPage]:
    """A host page on 127.0.0.1, its frame on localhost: two sites."""
    with HostPage() as pages:
        frame = pages.url("/frame", "localhost")
        pages.put("/", HOST.format(frame=frame))
        yield pages


async def test_violation_inside_a_frame_of_another_site_is_caught(
    sites: HostPage, open_page: Opener
) -> None:
    """A policy that a frame violates fails the test, whose frame it ever is."""
    inline = FRAME.format(more="<p style='color: red'>rojo</p>")
    sites.put("/frame", inline, policy="default-src 'none'")
    page = await open_page()
    await page.goto(sites.url())
    await until(lambda: open_page.watch.violations)

    with pytest.raises(AssertionError, match="style-src-attr"):
        open_page.watch.check()
    open_page.watch.expect_violation("style-src-attr.*localhost")


async def test_error_that_no_script_caught_is_noted(
    sites: HostPage, open_page: Opener
) -> None:
    """An exception in a frame fails the test."""
    sites.put("/frame", FRAME.format(more="<script>throw new Error('ay')</script>"))
    page = await open_page()
    await page.goto(sites.url())
    await until(lambda: open_page.watch.errors)

    with pytest.raises(AssertionError, match="ay"):
        open_page.watch.check()
    open_page.watch.errors.clear()


async def test_axe_looks_into_frames_of_another_site(
    sites: HostPage, page: Page
) -> None:
    """A field without a label is found in the frame, though not from the top."""
    sites.put("/frame", FRAME.format(more="<input>"))
    await page.goto(sites.url())

    assert await axe(page) == []
    faults = await axe_everywhere(page)
    assert [fault.split(":")[0] for fault in faults] == ["label"]


async def test_keyboard_reaches_into_a_frame(sites: HostPage, page: Page) -> None:
    """Tab goes from the page into the frame, and keys go where the focus is."""
    sites.put("/frame", FRAME.format(more="<button>uno</button><button>dos</button>"))
    await page.goto(sites.url())
    second = page.frame_locator("iframe").get_by_text("dos")
    await second.evaluate("e => e.onclick = () => { e.textContent = 'hecho' }")

    await press_on(page, second)

    await expect(page.frame_locator("iframe").get_by_text("hecho")).to_be_visible()
    assert not await is_focused(page.frame_locator("iframe").get_by_text("uno"))


async def test_blocked_frame_is_seen_on_the_console(
    sites: HostPage, open_page: Opener
) -> None:
    """A frame whose ancestors are not allowed does not show, and it is told why."""
    sites.put("/frame", FRAME.format(more=""), policy="frame-ancestors 'none'")
    page = await open_page()
    await page.goto(sites.url())

    await until(lambda: page.frames[-1].url.startswith("chrome-error:"))
    await until(lambda: "frame-ancestors" in "".join(open_page.watch.console))


async def test_firefox_types_into_a_frame_of_another_site(
    sites: HostPage, open_firefox: Opener
) -> None:
    """Clicks and keys arrive there, which takes a preference."""
    sites.put("/frame", FRAME.format(more="<label>Nombre <input></label>"))
    page = await open_firefox()
    await page.goto(sites.url())
    field = page.frame_locator("iframe").get_by_label("Nombre")
    await field.click()
    await page.keyboard.type("Ñandú")

    await expect(field).to_have_value("Ñandú")
