"""What is waited for in the frame: told, counted, and given up at a press."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Error, Frame, Locator, Page, Route, expect

from embed.assets import Assets, load_assets
from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import choose_file
from tests.support.browsers.ceremony import at, go
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.browsers.slow_line import SlowLine
from tests.support.documents import pdfs

PDF: Final = pdfs.one_page()
PAGES: Final = 100
HEAVY_BYTES: Final = 30_000_000
FIRST_PAGE_BYTES: Final = 5 * 187_500
"""What a line of 1.5 Mb/s brings in five seconds."""


async def value_of(bar: Locator) -> float:
    """How far a progress bar is."""
    value: float = await bar.evaluate("(bar) => bar.value")
    return value


async def until_beyond(bar: Locator, value: float) -> float:
    """Wait until a progress bar is further than that; how far it is."""
    reached: float = await bar.evaluate(
        """(bar, value) => new Promise((done) => {
          const look = () => {
            if (bar.value > value) done(bar.value);
            else requestAnimationFrame(look);
          };
          look();
        })""",
        value,
    )
    return reached


class Held:
    """Calls that are not answered before a test says so."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self._go_on = asyncio.Event()
        self._ended: list[asyncio.Event] = []

    async def hold(self, route: Route) -> None:
        """Keep a call from the service."""
        self._ended.append(ended := asyncio.Event())
        self.begun.set()
        await self._go_on.wait()
        # Who has given a call up asks for no answer.
        with suppress(Error):
            await route.abort()
        ended.set()

    async def let_go(self) -> None:
        """End them as a lost network does."""
        self._go_on.set()
        for each in self._ended:
            await each.wait()


@asynccontextmanager
async def held(page: Page, path: str, method: str | None = None) -> AsyncIterator[Held]:
    """Have calls to a path of the frame's API be held."""
    calls = Held()

    async def take(route: Route) -> None:
        if method in {None, route.request.method}:
            await calls.hold(route)
        else:
            await route.fallback()

    address = re.compile(rf"/embed/(api|v/[0-9a-f]+)/{path}(\?.*)?$")
    await page.route(address, take)
    try:
        yield calls
    finally:
        await calls.let_go()
        await page.unroute(address, take)


@pytest.fixture(scope="module")
def assets() -> Assets:
    """The files that the page loads."""
    return load_assets()


@pytest.fixture(scope="module")
def heavy() -> bytes:
    """A document of 30 MB, each page with a picture of its own."""
    return pdfs.heavy(PAGES, HEAVY_BYTES)


async def test_first_page_of_a_large_document_is_seen_at_once(
    site: FrameSite, person: TestPerson, page: Page, heavy: bytes
) -> None:
    """By what five seconds of a slow line bring; the rest is counted to its end."""
    site.new_request(person, heavy, "grande.pdf")
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    line = await SlowLine.of(frame)
    await line.slow()
    await frame.get_by_role("button", name="grande.pdf").click()
    await expect(frame.locator(".page:first-child > canvas.paper")).to_be_attached()

    assert line.received_bytes < FIRST_PAGE_BYTES
    bar = frame.locator("#came-bar")
    begun = await value_of(bar)
    await until_beyond(bar, begun)
    await expect(frame.locator("#came")).to_contain_text(" de 30")
    await line.free()
    await expect(bar).to_be_hidden()
    assert await value_of(bar) == len(heavy)
    # Hardly a byte came twice, and not page by page.
    assert line.received_bytes < 1.1 * len(heavy)
    assert line.calls < 20
    await ceremony.whole_of_picked(frame, person)
    assert site.states(person) == ["firmada"]


async def test_file_that_is_sent_tells_how_far_it_is_and_can_be_given_up(
    site: FrameSite, person: TestPerson, page: Page, tmp_path: Path, heavy: bytes
) -> None:
    """Bytes of the total; who does not want to send it is back where they chose it."""
    path = tmp_path / "grande.pdf"
    path.write_bytes(heavy)
    await site.open(page, person)
    frame = site.frame(page)
    await at(frame, "pick")
    line = await SlowLine.of(frame)
    await line.slow()
    await frame.locator("#file").set_input_files(path)
    await expect(frame.locator("#title")).to_have_text("Enviamos el documento")
    await until_beyond(frame.locator("#moved"), 0)
    await expect(frame.locator("#moved-label")).to_contain_text(" de 30")
    await frame.get_by_role("button", name="No enviarlo").click()
    await at(frame, "pick")
    await line.free()
    await choose_file(frame.locator("#file"), "chico.pdf", PDF)
    await at(frame, "read")

    assert site.states(person) == []
    assert await site.errors(page) == []


async def _picking(site: FrameSite, person: TestPerson, page: Page) -> Frame:
    """A proven signer before the list of what waits for them."""
    site.new_request(person, PDF, "a.pdf")
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    await at(frame, "requests")
    return frame


async def _reading(site: FrameSite, person: TestPerson, page: Page) -> Frame:
    """The host's document on the screen."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await at(frame, "read")
    return frame


async def _asked_for_code(site: FrameSite, person: TestPerson, page: Page) -> Frame:
    """The code is to be typed next."""
    frame = await _reading(site, person, page)
    await go(frame)
    await at(frame, "code")
    return frame


async def _placing(site: FrameSite, person: TestPerson, page: Page) -> Frame:
    """The place of the mark is to be chosen next."""
    frame = await _asked_for_code(site, person, page)
    await ceremony.give_code(frame, person)
    await at(frame, "place")
    return frame


async def _picks(frame: Frame, person: TestPerson) -> None:
    del person
    await frame.get_by_role("button", name="a.pdf").click()


async def _goes_on(frame: Frame, person: TestPerson) -> None:
    del person
    await go(frame)


async def _turns_a_corner(frame: Frame, person: TestPerson) -> None:
    del person
    await frame.check("input[value=topRight]")


async def _switches_language(frame: Frame, person: TestPerson) -> None:
    del person
    await frame.locator("#language").click()


@dataclass(frozen=True)
class Wait:
    """Something that a signer waits for, and may leave."""

    before: Callable[[FrameSite, TestPerson, Page], Awaitable[Frame]]
    act: Callable[[Frame, TestPerson], Awaitable[None]]
    path: str
    """What is not answered."""
    words: str
    """What they read meanwhile."""


SERVICE: Final = "Esperamos al servicio de firma…"
WAITS: Final = {
    "who they are": Wait(_reading, _goes_on, "identify", SERVICE),
    "their code": Wait(
        _asked_for_code, ceremony.give_code, "otp", "Comprobamos tu código…"
    ),
    "that they read it": Wait(_asked_for_code, ceremony.give_code, "seen", "código…"),
    "their mark": Wait(_asked_for_code, ceremony.give_code, "place", "código…"),
    "another place": Wait(
        _placing, _turns_a_corner, "place", "Vemos dónde queda tu marca…"
    ),
    "one of the list": Wait(_picking, _picks, "choose", SERVICE),
    "its pages": Wait(_picking, _picks, "document", "Abriendo el documento"),
    "the other language": Wait(
        _reading, _switches_language, "strings/en.json", "Cargamos el otro idioma…"
    ),
}


@pytest.mark.parametrize("name", WAITS)
async def test_wait_is_told_and_can_be_left(
    site: FrameSite, person: TestPerson, page: Page, name: str
) -> None:
    """Words for what is waited for, and *Cancelar* leaves at once."""
    wait = WAITS[name]
    frame = await wait.before(site, person, page)
    async with held(page, wait.path) as calls:
        await wait.act(frame, person)
        await calls.begun.wait()
        told = frame.locator("#wait:visible, [data-step=loading] #panel")
        await expect(told).to_contain_text(wait.words)
        await ceremony.leave(frame)

        assert await site.wait(page, "cancelled") == {"reason": "signer"}
        await at(frame, "cancelled")
    await expect(frame.locator("#wait")).to_be_hidden()
    assert await site.errors(page) == []


@pytest.mark.parametrize(("path", "method"), [("init", "POST"), ("document", "POST")])
async def test_what_the_host_has_begun_can_be_left(
    site: FrameSite, person: TestPerson, page: Page, path: str, method: str
) -> None:
    """Before the ack, and while its document is on its way: nothing to lose yet."""
    token = await site.ready(page)
    frame = site.frame(page)
    async with held(page, path, method) as calls:
        await site.send(
            page, "init", site.init(token, person, autoLoadFile=file_of(PDF))
        )
        await calls.begun.wait()
        await expect(frame.locator("#body")).not_to_be_empty()
        await frame.get_by_role("button", name="Cancelar").click()

        assert await site.wait(page, "cancelled") == {"reason": "signer"}
        await at(frame, "cancelled")


async def test_signature_and_its_delivery_say_what_is_waited_for(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """They are not left: closing the page undoes nothing, and that is said."""
    frame = await _placing(site, person, page)
    await go(frame)
    async with held(page, "sign", "POST") as calls:
        await ceremony.sign(frame, person)
        await calls.begun.wait()
        await at(frame, "signing")
        await expect(frame.locator("#panel")).to_contain_text("la firma sigue")
        await expect(frame.locator("#wait")).to_be_hidden()
    # The call was lost: what became of it is asked for, and said.
    await at(frame, "password")
    await expect(frame.locator("#alert")).to_be_visible()


async def test_download_of_the_signed_document_can_be_given_up(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """What is saved is counted, too, and the signature stays."""
    site.deliver_inline_up_to(0)
    frame = await _reading(site, person, page)
    await ceremony.whole(frame, person)
    await site.wait(page, "signature.completed")
    async with held(page, "download") as calls:
        await go(frame)
        await calls.begun.wait()
        await expect(frame.locator("#wait")).to_contain_text(
            "Descarga de contrato-firmado.pdf"
        )
        await frame.get_by_role("button", name="Detener").click()
        await expect(frame.locator("#wait")).to_be_hidden()
    async with page.expect_download():
        await go(frame)

    assert site.states(person) == ["firmada"]


async def test_page_says_something_before_its_modules_have_come(
    site: FrameSite, page: Page
) -> None:
    """On a slow line nobody looks at an empty frame."""
    async with held(page, "main.js") as calls:
        await site.visit(page)
        await site.mount(page, site.token())
        await calls.begun.wait()
        inside = page.frame_locator("iframe").locator("#panel")

        await expect(inside).to_contain_text("Se está abriendo la página para firmar.")


async def test_page_asks_for_all_that_it_needs_at_once(
    site: FrameSite, page: Page, assets: Assets
) -> None:
    """Nothing is known only when something else has come: two rounds, then `ready`."""
    needed = {*assets.modules, "boot.js", "tokens.css", "frame.css", "strings/es.json"}
    asked: list[str] = []
    all_asked = asyncio.Event()

    async def take(route: Route) -> None:
        name = route.request.url.split(f"{assets.version}/")[1]
        asked.append(name)
        if needed <= {*asked}:
            all_asked.set()
        # The first script stands before the rest of the page.
        if name != "boot.js":
            await all_asked.wait()
        await route.continue_()

    await page.route(f"**{assets.base}/**", take)
    await site.ready(page)

    assert {name: asked.count(name) for name in needed} == dict.fromkeys(needed, 1)


async def test_large_document_goes_on_coming_after_a_wrong_password(
    site: FrameSite, person: TestPerson, page: Page, heavy: bytes
) -> None:
    """It rests while it is signed, and comes to its end once that is refused."""
    site.new_request(person, heavy, "grande.pdf")
    await site.open(page, person)
    frame = site.frame(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await ceremony.give_code(frame, person)
    line = await SlowLine.of(frame)
    await line.slow()
    await frame.get_by_role("button", name="grande.pdf").click()
    await ceremony.read(frame)
    await ceremony.choose_place(frame)
    await at(frame, "password")
    await frame.fill("#password", "not-the-password")
    await go(frame)
    await expect(frame.locator("#alert")).to_be_visible()
    assert await value_of(frame.locator("#came-bar")) < len(heavy)
    await line.free()

    await expect(frame.locator("#came-bar")).to_be_hidden()
    assert await value_of(frame.locator("#came-bar")) == len(heavy)
    await ceremony.sign(frame, person)
    await at(frame, "done")
