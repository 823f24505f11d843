"""The frame in Firefox: a signature, a blocked origin, a repeated init."""

import base64

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, until
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.browsers.host_page import HostPage
from tests.support.documents import pdfs
from tests.support.documents.validators import pyhanko_valid

PDF = pdfs.one_page()


async def test_firefox_signs(
    appliance: Appliance, site: FrameSite, person: TestPerson, open_firefox: Opener
) -> None:
    """From ready to a valid signed document."""
    page = await open_firefox()
    await site.open(page, person, autoLoadFile=file_of(PDF))
    await site.wait(page, "document.loaded")
    await ceremony.whole(site.frame(page), person, "topRight")
    completed = await site.wait(page, "signature.completed")

    signed = base64.b64decode(completed["delivery"]["fileBase64"])
    assert pyhanko_valid(signed, appliance.roots)
    assert await site.types(page) == [
        "svc.ready",
        "svc.handshake.ack",
        "svc.signature.completed",
    ]


async def test_firefox_blocks_an_unregistered_origin(
    appliance: Appliance, host: HostPage, open_firefox: Opener
) -> None:
    """The frame does not load, and who tried is noted."""
    site = FrameSite(appliance, host, register=False)
    page = await open_firefox()
    await site.visit(page)
    await site.mount(page, site.token())
    await until(lambda: open_firefox.watch.errors)

    assert site.blocked() == [site.origin]
    assert await site.log(page) == []
    # Firefox tells of it as of an error of the page.
    (told,) = open_firefox.watch.errors
    assert "frame-ancestors" in told
    open_firefox.watch.errors.clear()


async def test_firefox_acks_a_repeated_init(
    site: FrameSite, person: TestPerson, open_firefox: Opener
) -> None:
    """Each init is answered; the document is loaded once."""
    page = await open_firefox()
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    await site.wait(page, "document.loaded")
    for number in range(2, 5):
        await site.send(page, "init", {**init, "nonce": f"nonce {number}"})
        await site.wait(page, "handshake.ack", number)

    assert len(await site.payloads(page, "document.loaded")) == 1
    assert await site.errors(page) == []
