"""A signer in the frame: what they press and type, in any browser.

await read(frame)
await give_code(frame, person)
await choose_place(frame)
await sign(frame, person)
"""

import asyncio
from typing import Final

from playwright.async_api import Error, Frame

from tests.support.appliance.appliance import TestPerson
from tests.support.browsers.browsers import PATIENCE_MS

_AT: Final = """(name) => new Promise((done) => {
  const look = () => {
    if (document.body?.dataset.step !== name) return;
    watch.disconnect();
    done();
  };
  const watch = new MutationObserver(look);
  const what = { subtree: true, childList: true, attributeFilter: ["data-step"] };
  watch.observe(document, what);
  look();
})"""
_GONE: Final = ("context was destroyed", "navigat")
"""What Playwright says of a document that another one took the place of."""


async def at(frame: Frame, name: str) -> None:
    """Wait until a step is shown, in this document or in one that follows.

    The page tells when: asking again and again would take longer, and the processor.
    """
    try:
        async with asyncio.timeout(PATIENCE_MS / 1000):
            await _until_at(frame, name)
    except TimeoutError as exc:
        shown = await frame.locator("body").inner_text()
        msg = f"step {name} never came; shown is: {shown}"
        raise AssertionError(msg) from exc


async def _until_at(frame: Frame, name: str) -> None:
    while True:
        try:
            await frame.evaluate(_AT, name)
        except Error as exc:
            if not any(words in exc.message for words in _GONE):
                raise
        else:
            return


async def go(frame: Frame) -> None:
    """Press the main button."""
    await frame.locator("#bar .primary").click()


async def read(frame: Frame) -> None:
    """Read the document and go on."""
    await at(frame, "read")
    await go(frame)


async def give_code(frame: Frame, person: TestPerson) -> None:
    """Type the present code and go on."""
    await at(frame, "code")
    await frame.fill("#code", person.totp.now())
    await go(frame)


async def choose_place(frame: Frame, corner: str = "bottomLeft") -> None:
    """Choose a corner and go on."""
    await at(frame, "place")
    await frame.check(f"input[name=corner][value={corner}]")
    await go(frame)


async def sign(frame: Frame, person: TestPerson) -> None:
    """Type the signing password and sign."""
    await at(frame, "password")
    await frame.fill("#password", person.signing_password)
    await go(frame)


async def leave(frame: Frame) -> None:
    """Leave without signing, and say so once more."""
    await frame.get_by_role("button", name="Cancelar").click()
    await frame.get_by_role("dialog").get_by_role("button", name="Salir").click()


async def refuse(frame: Frame) -> None:
    """Reject for good, from the step that asks why, and say so once more."""
    await frame.get_by_role("button", name="Rechazar definitivamente").click()
    await frame.get_by_role("dialog").get_by_role("button", name="Sí, rechazar").click()


async def whole_of_picked(frame: Frame, person: TestPerson) -> None:
    """From a request that a proven signer picked to the signature."""
    await read(frame)
    await choose_place(frame)
    await sign(frame, person)
    await at(frame, "done")


async def whole(frame: Frame, person: TestPerson, corner: str = "bottomLeft") -> None:
    """From the document on the screen to the signature."""
    await read(frame)
    await give_code(frame, person)
    await choose_place(frame, corner)
    await sign(frame, person)
    await at(frame, "done")
