"""A frame that another token, or nothing, came to: nobody waits for nothing."""

import asyncio
import re

from playwright.async_api import Page, Response, Route, expect

from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener
from tests.support.browsers.ceremony import at
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.documents import pdfs

PDF = pdfs.one_page()


async def test_page_that_is_left_acks_no_other_session(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A new token in the same iframe: the page that comes answers, nobody before it."""
    await site.open(page, person)
    token = site.token()
    go_on = asyncio.Event()
    answers: asyncio.Queue[int] = asyncio.Queue()

    async def hold(route: Route) -> None:
        answer = await route.fetch()
        await go_on.wait()
        await route.fulfill(response=answer)

    def note(answer: Response) -> None:
        if answer.url.endswith("/embed/api/init"):
            answers.put_nowait(answer.status)

    await page.route(re.compile(rf"/embed/\?sessionToken={token}$"), hold)
    page.on("response", note)
    init = site.init(token, person, autoLoadFile=file_of(PDF))
    await page.evaluate(
        "([src, type, payload, target]) => {"
        " frames[0].src = src; send(type, payload, target); }",
        [site.src(token), "svc.init", init, site.iframe_url],
    )
    # Asked for at first, and once more when the page could have been gone.
    assert [await answers.get(), await answers.get()] == [200, 200]
    assert len(await site.payloads(page, "handshake.ack")) == 1
    go_on.set()
    await site.wait(page, "ready", 2)
    await site.send(page, "init", init)
    await site.wait(page, "handshake.ack", 2)

    await at(site.frame(page), "read")


async def test_page_that_stays_takes_another_session_up(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A host that keeps its iframe for the next signature is acked all the same."""
    await site.open(page, person)
    token = site.token()
    await site.send(page, "init", site.init(token, person, autoLoadFile=file_of(PDF)))
    await site.wait(page, "handshake.ack", 2)
    await ceremony.whole(site.frame(page), person)

    assert site.states(person) == ["firmada"]


async def test_frame_that_is_loaded_again_alone_says_what_to_do(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """It announces itself again, and can be left; an init still goes on."""
    page = await open_page(alone=True)
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    await at(site.frame(page), "read")
    await page.clock.install()
    await site.frame(page).evaluate("location.reload()")
    await site.wait(page, "ready", 2)
    frame = site.frame(page)
    await page.clock.fast_forward(4_000)
    await expect(frame.locator("#title")).to_have_text("Recargá toda la página")
    await expect(frame.locator("#body")).to_contain_text("Estudio Contable Sur")
    await expect(frame.get_by_role("button", name="Cancelar")).to_be_visible()
    await site.wait(page, "ready", 3)
    await site.send(page, "init", init)

    await site.wait(page, "handshake.ack", 2)
    await at(frame, "read")


async def test_frame_that_is_loaded_again_alone_can_be_left(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Without a word of its host."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    await at(site.frame(page), "read")
    await site.frame(page).evaluate("location.reload()")
    await site.wait(page, "ready", 2)
    await site.frame(page).get_by_role("button", name="Cancelar").click()

    assert await site.wait(page, "cancelled") == {"reason": "signer"}
