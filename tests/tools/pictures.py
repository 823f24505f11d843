"""Take the pictures of the README: `python -m tests.tools.pictures`.

A fresh trial is set up, a demo person signs in the frame, and three pictures are
written to docs/pictures: the frame, the console, and the signed page.
"""

import asyncio
import io
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.async_api import Page, async_playwright, expect

from tests.support.appliance.trial import running_trial
from tests.support.browsers import browsers
from tests.support.browsers.trial_visit import TrialVisitor, demo_site_of
from tests.support.processes.scratch import short_folder

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs/pictures"
LARGEST: Final = 150_000
"""Bytes of a picture."""
NAMES: Final = ("frame.png", "console.png", "signed.png")
_SIZE: Final = (1280, 800)
_COLOURS: Final = 128
_DPI: Final = 110
_SHOWN: Final = 0.33
"""Part of the signed page, from its top."""
_STEP_OF_THE_FRAME: Final = "read"
_PAINT_MS: Final = 500


async def take() -> dict[str, bytes]:
    """Sign a document of a fresh trial, and take the pictures.

    Returns:
        PNG by name.
    """
    taken: dict[str, bytes] = {}

    async def look(page: Page, step: str) -> None:
        if step == _STEP_OF_THE_FRAME:
            # A frame of another site paints in a process of its own, a little later.
            await page.wait_for_timeout(_PAINT_MS)
            taken["frame.png"] = await page.screenshot(animations="disabled")

    with (
        short_folder() as folder,
        running_trial(folder) as trial,
        demo_site_of(trial) as first,
    ):
        async with (
            async_playwright() as playwright,
            browsers.chromium(playwright) as browser,
        ):
            expect.set_options(timeout=browsers.PATIENCE_MS)
            context = await browser.new_context(
                viewport={"width": _SIZE[0], "height": _SIZE[1]}, locale="es-AR"
            )
            visitor = TrialVisitor(await context.new_page(), look, "topRight")
            await visitor.arrive(first)
            await visitor.sign()
            taken["signed.png"] = _page_of(await visitor.download(), folder)
            console = await context.new_page()
            await console.goto(await visitor.console_page())
            await visitor.enter_console(console)
            await console.get_by_role("link", name="Solicitudes", exact=True).click()
            await console.locator("tbody tr").first.locator("a").first.click()
            await expect(console.get_by_text("Firmada", exact=True)).to_be_visible()
            taken["console.png"] = await console.screenshot(animations="disabled")
    return taken


def _page_of(pdf: bytes, folder: Path) -> bytes:
    """Draw the upper part of the first page of a PDF."""
    signed = folder / "signed.pdf"
    signed.write_bytes(pdf)
    subprocess.run(
        [
            *("pdftoppm", "-r", str(_DPI), "-singlefile", "-png"),
            *(signed, signed.with_suffix("")),
        ],
        check=True,
    )
    with Image.open(signed.with_suffix(".png")) as drawn:
        # Below the stamp the sample is blank.
        upper = drawn.crop((0, 0, drawn.width, int(drawn.height * _SHOWN)))
    out = io.BytesIO()
    upper.save(out, "PNG")
    return out.getvalue()


def write(taken: Mapping[str, bytes], folder: Path = FOLDER) -> None:
    """Write pictures with few colours, which text and lines need no more of.

    Args:
        taken: PNG by name.
        folder: where they go.

    Raises:
        SystemExit: one is too large.
    """
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        with Image.open(io.BytesIO(taken[name])) as picture:
            small = picture.convert("RGB").quantize(_COLOURS)
        out = io.BytesIO()
        small.save(out, "PNG", optimize=True)
        if out.tell() > LARGEST:
            raise SystemExit(f"{name}: {out.tell()} bytes, at most {LARGEST}")
        (folder / name).write_bytes(out.getvalue())


def main() -> int:
    """Take and write them."""
    write(asyncio.run(take()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
