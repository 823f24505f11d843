"""What goes wrong is said where the signer looks: inside the window, at its field.

Source: WCAG 2.2, 3.3.1 and 2.4.11.
"""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from playwright.async_api import Frame, Page, Route, expect

from appliance.domain.errors import SENTENCES
from appliance.web import i18n
from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import (
    Opener,
    choose_file,
    is_focused,
    resize,
    until_focused,
)
from tests.support.browsers.ceremony import at, go
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.documents import pdfs

_HIDDEN: Final = """(e) => {
  const b = e.getBoundingClientRect();
  const faults = [];
  if (b.height < 16) faults.push("no height");
  if (b.top < 0 || b.left < 0 || b.bottom > innerHeight || b.right > innerWidth) {
    faults.push(`${b.top} to ${b.bottom} of ${innerHeight}`);
  }
  for (const [x, y] of [[b.left + 4, b.top + 4], [b.right - 4, b.bottom - 4]]) {
    const over = document.elementFromPoint(x, y);
    if (!e.contains(over)) faults.push(`under ${over?.outerHTML.slice(0, 80)}`);
  }
  return faults;
}"""
"""What hides an element from who looks at the window, if anything does."""


WINDOWS: Final = {
    "es": [(400, 500), (390, 844), (1280, 800)],
    "en": [(400, 500)],
}
"""Width and height in CSS pixels, by language: the second has the least room alone."""


class Watcher:
    """Provokes messages and looks at where they are.

    Args:
        page: of the host.
        frame: in it.
        lang: of the signer.
    """

    def __init__(self, page: Page, frame: Frame, lang: str) -> None:
        self.page = page
        self.frame = frame
        self.lang = lang
        sentences = (i18n.translate(lang, text) for text in SENTENCES.values())
        self.longest = max(sentences, key=len)
        self.faults: dict[str, Any] = {}

    async def see(self, name: str, field: str | None = None) -> None:
        """Demand a message that is in the window, and above its field."""
        box = self.frame.locator("#alert")
        await expect(box, name).to_be_visible()
        hidden = await box.evaluate(_HIDDEN)
        if field is not None:
            told = await box.bounding_box()
            there = await self.frame.locator(field).bounding_box()
            assert told is not None
            assert there is not None
            gap = there["y"] - (told["y"] + told["height"])
            if not 0 <= gap < 24:
                hidden.append(f"{gap} above its field")
            if not await is_focused(self.frame.locator(field)):
                hidden.append("the focus is elsewhere")
        if hidden:
            self.faults[f"{name} in {self.page.viewport_size}"] = hidden

    async def windows(self) -> AsyncIterator[None]:
        """Have a window of each size in turn, where no message is shown yet."""
        for size in WINDOWS[self.lang]:
            await resize(self.page, size, self.frame)
            await self.frame.locator("#alert").evaluate("(e) => { e.hidden = true; }")
            yield

    async def press(self, name: str, where: str | None, **fields: str) -> None:
        """Type into fields and press the main button, where that is refused."""
        async for _ in self.windows():
            for field, value in fields.items():
                await self.frame.fill(f"#{field}", value)
            await go(self.frame)
            await self.see(name, where)

    async def provoke(
        self, path: str, name: str, where: str | None = None, **problem: Any
    ) -> None:
        """Press the main button while a call is refused, then while it is lost."""
        told = {
            "code": "TEST",
            "category": "retry",
            "detail": self.longest,
            "requestId": "r-1",
            **problem,
        }

        async def refuse(route: Route) -> None:
            await route.fulfill(status=400, body=json.dumps(told))

        async def lose(route: Route) -> None:
            await route.abort()

        address = f"**/embed/api/{path}"
        for kind, answer in (("refused", refuse), ("lost", lose)):
            if kind == "lost" and path == "sign":
                continue  # an unknown outcome is asked for, not told as an error
            await self.page.route(address, answer)
            async for _ in self.windows():
                await go(self.frame)
                await self.see(f"{name} {kind}", where if kind == "refused" else None)
            await self.page.unroute(address)


@pytest.mark.parametrize("lang", WINDOWS)
async def test_every_message_is_in_the_window(
    site: FrameSite, person: TestPerson, open_page: Opener, lang: str
) -> None:
    """In every step, whatever its field and however long it is."""
    page = await open_page(locale="es-AR" if lang == "es" else "en-GB")
    stranger = {"dni": "11222333", "email": "nadie@demo.example"}
    await site.open(page, None, userData=stranger)
    frame = site.frame(page)
    watcher = Watcher(page, frame, lang)
    await at(frame, "pick")
    async for _ in watcher.windows():
        await choose_file(frame.locator("#file"), "no.pdf", b"no PDF at all")
        await watcher.see("file")
    await site.send(page, "load.file", file_of(pdfs.pages(3)))
    await _identify(watcher, person)
    await _sign(watcher, person)
    # What the page tells the host by itself would be answered, and take away that
    # there is no connection.
    await site.wait(page, "signature.completed")
    await watcher.provoke("download", "done")

    assert not watcher.faults, watcher.faults


async def _identify(watcher: Watcher, person: TestPerson) -> None:
    """All that goes wrong from reading to the right code."""
    page, frame = watcher.page, watcher.frame
    await at(frame, "read")
    await watcher.provoke("identify", "read")
    await _ask_who(page)
    await go(frame)
    await at(frame, "identify")
    await watcher.press("cuil", "#cuil", cuil="20-26756539-2")
    await frame.fill("#cuil", "20-26756539-3")
    await watcher.provoke("identify", "email", "#email", field="email")
    await frame.fill("#cuil", person.cuil)
    await frame.fill("#email", person.email)
    await go(frame)

    await at(frame, "code")
    await watcher.press("short code", "#code", code="12")
    await watcher.press("wrong code", "#code", code="000000")
    await watcher.provoke("otp", "code", "#code")
    await ceremony.give_code(frame, person)


async def _sign(watcher: Watcher, person: TestPerson) -> None:
    """All that goes wrong from the place to the signature."""
    frame = watcher.frame
    await at(frame, "place")
    await watcher.press("page", "#page", page="9")
    await frame.fill("#page", "2")
    await watcher.provoke("place", "place", "#page", field="page")
    await go(frame)

    await at(frame, "password")
    await watcher.press("no password", "#password", password="")
    await watcher.press("wrong password", "#password", password="no es esta")
    await frame.fill("#password", "no es esta")
    await watcher.provoke("sign", "password", "#password")
    await ceremony.sign(frame, person)
    await at(frame, "done")


async def _ask_who(page: Page) -> None:
    """Have the next call for who it is find nobody, without counting as a try."""

    async def nobody(route: Route) -> None:
        await route.fulfill(body=json.dumps({"ask": "cuil"}))

    await page.route("**/embed/api/identify", nobody, times=1)


async def test_too_many_attempts_says_how_long(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Nobody guesses when the next try counts."""
    await site.open(page, person, autoLoadFile=file_of(pdfs.one_page()))
    frame = site.frame(page)
    await ceremony.read(frame)
    await at(frame, "code")
    problem: dict[str, Any] = {
        "code": "RATE_LIMITED",
        "category": "retry",
        "detail": "…",
        "requestId": "r-1",
    }

    async def refuse(route: Route) -> None:
        await route.fulfill(status=429, body=json.dumps(problem))

    await page.route("**/embed/api/otp", refuse)
    for problem["retryAfter"], told in (
        (20, "20 segundos"),
        (45.2, "46 segundos"),
        (90, "2 minutos"),
        (900, "15 minutos"),
    ):
        await frame.fill("#code", "000000")
        await go(frame)
        await expect(frame.locator("#alert")).to_contain_text(f"dentro de {told}")


async def test_language_switch_keeps_what_was_typed(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Who switches goes on where they were, the focus included."""
    await site.open(page, None, userData={"dni": "11222333", "email": "a@b.example"})
    frame = site.frame(page)
    await _ask_who(page)
    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await at(frame, "identify")
    await frame.fill("#cuil", "20-2675")
    await frame.fill("#email", "ana@")
    await frame.locator("#language").click()
    await expect(frame.locator("html")).to_have_attribute("lang", "en")
    assert await frame.input_value("#cuil") == "20-2675"
    assert await frame.input_value("#email") == "ana@"
    await until_focused(frame.locator("#language"))
    await frame.fill("#cuil", person.cuil)
    await frame.fill("#email", person.email)
    await go(frame)
    await at(frame, "code")
    await frame.fill("#code", "123")
    await frame.locator("#language").click()

    await expect(frame.locator("html")).to_have_attribute("lang", "es-AR")
    assert await frame.input_value("#code") == "123"


async def test_code_and_password_are_ready_to_be_typed(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Their fields have the focus, and the step's title is read with them."""
    await site.open(page, person, autoLoadFile=file_of(pdfs.one_page()))
    frame = site.frame(page)
    await ceremony.read(frame)
    await at(frame, "code")
    await until_focused(frame.locator("#code"))
    described = await frame.locator("#code").get_attribute("aria-describedby")
    assert described is not None
    assert described.split()[0] == "title"
    await page.keyboard.type(person.totp.now())
    await page.keyboard.press("Enter")
    await ceremony.choose_place(frame)
    await at(frame, "password")

    await until_focused(frame.locator("#password"))
