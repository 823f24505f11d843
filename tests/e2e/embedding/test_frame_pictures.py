"""Pictures on a page are seen by who signs it, however they are compressed."""

from typing import Final

from playwright.async_api import Frame, Locator, Request, expect

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.lent_person import lend
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.browsers.host_page import HostPage
from tests.support.documents.picture_pdfs import PICTURES, black_pictures

_MIDDLE: Final = """(paper) => {
  const width = paper.naturalWidth ?? paper.width;
  const height = paper.naturalHeight ?? paper.height;
  const canvas = new OffscreenCanvas(1, 1);
  const into = canvas.getContext("2d");
  into.drawImage(paper, width / 2, height / 2, 1, 1, 0, 0, 1, 1);
  return [...into.getImageData(0, 0, 1, 1).data];
}"""
"""Colour of the pixel in the middle of a page's canvas or picture."""
_ENDED_BY_THE_PAGE: Final = {"net::ERR_ABORTED", "NS_BINDING_ABORTED"}
BY_THE_SERVER: Final = {"too many pixels", "broken"}
BLACK: Final = [0, 0, 0, 255]
WHITE: Final = [255, 255, 255, 255]


async def test_pictures_are_seen_by_who_signs(
    appliance: Appliance, people: dict[Appliance, TestPerson], open_page: Opener
) -> None:
    """By pdf.js where it decodes them, else by the server; nothing is left out."""
    person = lend(appliance, people)
    with HostPage() as host:
        site = FrameSite(appliance, host)
        page = await open_page("desktop")
        lost = list[str]()

        def lose(request: Request) -> None:
            # A page that is passed by is no longer asked for.
            if request.failure not in _ENDED_BY_THE_PAGE:
                lost.append(request.url)

        page.on("requestfailed", lose)
        await site.open(page, person, autoLoadFile=file_of(black_pictures()))
        frame = site.frame(page)
        await ceremony.at(frame, "read")

        for number, kind in enumerate(PICTURES, start=1):
            paper = await paper_of(frame, number)
            by_server = await paper.evaluate("(paper) => paper.localName === 'img'")
            seen = await paper.evaluate(_MIDDLE)
            expected = WHITE if kind == "broken" else BLACK
            assert (kind, by_server, seen) == (kind, kind in BY_THE_SERVER, expected)
        assert lost == []


async def paper_of(frame: Frame, number: int) -> Locator:
    """What is drawn of a page, once it is."""
    await frame.fill("#at", str(number))
    await frame.press("#at", "Enter")
    paper = frame.locator(f".page:nth-child({number}) > .paper")
    await expect(paper).to_be_attached()
    return paper
