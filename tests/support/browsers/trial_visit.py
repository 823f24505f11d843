"""A visitor who tries a trial in a browser, with what its demo site shows and no more.

with demo_site_of(trial) as first:
    visitor = TrialVisitor(page, look)
    await visitor.arrive(first)
    await visitor.sign()
"""

import asyncio
import re
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.async_api import Frame, Locator, Page, expect

from tests.support.appliance.trial import Trial
from tests.support.browsers import ceremony
from tests.support.processes.rubrica import run_rubrica, start_rubrica

Look = Callable[[Page, str], Awaitable[object]]
_FIRST: Final = re.compile(r"^    (https?://\S+)$", re.MULTILINE)
_MAIL_S: Final = 120
"""Longest that a mail of the trial takes, in seconds."""
_NOW: Final = re.compile("^cambia en")
"""Said of a code that is accepted now."""


@contextmanager
def demo_site_of(trial: Trial) -> Iterator[str]:
    """Run the demo site of a trial.

    Args:
        trial: that runs.

    Yields:
        The address that `./quickstart` says to open first.
    """
    settings = ("--settings", str(trial.settings_file))
    with start_rubrica(
        *(*settings, "demo", "host"), stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("demo integrator: http")
            shown = run_rubrica(*settings, "demo", "show")
            assert shown.returncode == 0, shown.stderr
            yield _FIRST.findall(shown.stdout)[0]
        finally:
            process.terminate()


@dataclass
class TrialVisitor:
    """Somebody in front of a browser.

    Args:
        page: of the browser.
        look: is called at each step, for pictures.
        corner: of the page, where the visible signature goes.
    """

    page: Page
    look: Look
    corner: str = "bottomRight"

    async def arrive(self, first: str) -> None:
        """Open the first address, until the page shows a code."""
        await self.page.goto(first)
        await expect(self.page.locator("form:not([inert])")).to_be_visible()
        await expect(self.page.locator("#visit")).to_be_visible()
        await expect(self._row("code").locator("code")).to_have_text(
            re.compile(r"^\d{3} \d{3}$")
        )
        await self.look(self.page, "site")

    async def sign(self) -> None:
        """Sign the sample document in the frame."""
        await self.page.click("#open")
        frame = await self._connected()
        await self._read(frame)
        await self._give_code(frame)
        await self._place_and_sign(frame)

    async def sign_asked(self) -> None:
        """Sign the request that a mail led to: it is shown after the code alone."""
        frame = await self._connected()
        await self._give_code(frame)
        await self._read(frame)
        await self._place_and_sign(frame)

    async def follow_mail(self, first: str) -> None:
        """Open the newest mail of the trial once it has come, and follow its link."""
        await self.page.goto(f"{first}correos")
        mails = self.page.get_by_role("link", name="Ver", exact=True)
        async with asyncio.timeout(_MAIL_S):
            while not await mails.count():
                await self.page.reload()
        await mails.first.click()
        await self.look(self.page, "mail")
        await self.page.get_by_role("link", name="Firmar").click()
        await expect(self.page.locator("#asked")).to_contain_text("contrato.pdf")

    async def _connected(self) -> Frame:
        page = self.page
        await expect(page.locator("#steps [data-step=ack][data-done]")).to_be_visible()
        (frame,) = [one for one in page.frames if "/embed/" in one.url]
        return frame

    async def _read(self, frame: Frame) -> None:
        await ceremony.at(frame, "read")
        await expect(frame.locator(".page").first).to_be_visible()
        await self.look(self.page, "read")
        await ceremony.go(frame)

    async def _give_code(self, frame: Frame) -> None:
        await ceremony.at(frame, "code")
        await frame.fill("#code", await self.code())
        await self.look(self.page, "code")
        await ceremony.go(frame)

    async def _place_and_sign(self, frame: Frame) -> None:
        await ceremony.at(frame, "place")
        await frame.check(f"input[name=corner][value={self.corner}]")
        await self.look(self.page, "place")
        await ceremony.go(frame)
        await ceremony.at(frame, "password")
        await frame.fill("#password", await self.shown("signing"))
        await self.look(self.page, "password")
        await ceremony.go(frame)
        await ceremony.at(frame, "done")
        await expect(self.page.locator("#result .good")).to_have_count(3)

    async def download(self) -> bytes:
        """Save the signed PDF."""
        async with self.page.expect_download() as download:
            await (
                self.page.locator("#result")
                .get_by_role("link", name="Descargar")
                .click()
            )
        return Path(await (await download.value).path()).read_bytes()

    async def verification_page(self) -> str:
        """The address of the signature's public page, as the result links to it."""
        return await self._link("Ver la página de verificación")

    async def console_page(self) -> str:
        """The console's address, as the result links to it."""
        return await self._link("Abrir la consola")

    async def _link(self, name: str) -> str:
        link = self.page.locator("#result").get_by_role("link", name=name)
        await expect(link).to_be_visible()
        return str(await link.get_attribute("href"))

    async def code(self) -> str:
        """The signer's code, once it is accepted."""
        return await self._accepted("code")

    async def enter_console(self, console: Page) -> None:
        """Sign in to the console with what the result shows.

        Args:
            console: a page at its address.
        """
        await console.get_by_label("Nombre").fill(await self.shown("console-user"))
        await console.get_by_label("Contraseña").fill(
            await self.shown("console-password")
        )
        await console.get_by_label("Código").fill(await self._accepted("console-code"))
        async with console.expect_navigation():
            await console.get_by_role("button", name="Ingresar", exact=True).click()

    async def shown(self, row: str) -> str:
        """A value that the page shows, without the blank inside a code."""
        text = await self._row(row).locator("code").text_content()
        assert text, row
        return text.replace(" ", "")

    async def _accepted(self, row: str) -> str:
        await expect(self._row(row).locator(".left")).to_have_text(_NOW)
        return await self.shown(row)

    def _row(self, row: str) -> Locator:
        return self.page.locator(f".key-{row}").last
