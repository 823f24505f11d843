"""A page in every size and scheme: pictures, accessibility, nothing cut off.

    look = PageAppearance(await open_page(LOADED_AT), open_page, "console")
    await page.goto(url)
    await look.at("home")
    assert look.faults == []

What is shown is the same document in every size, so that it is loaded once, and
looked at by axe once; in another size what only that one shows, and in the other
scheme, which changes nothing but colours, those.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from playwright.async_api import Frame, Page

from tests.support.browsers.browsers import SCHEMES, SIZES, Opener, axe, resize

LOADED_AT: Final = "phone"
"""The size in which pages are opened that are looked at in all of them."""
_WHOLE_FITS: Final = """() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  return scrollWidth <= clientWidth ? [] : [`${scrollWidth} px wide in ${clientWidth}`];
}"""
"""What has to be scrolled sideways to."""
EACH_FITS: Final = """() => [...document.querySelectorAll("body *")]
  .filter((e) => e.checkVisibility() && !e.closest("#viewer, .visually-hidden")
     && e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => `${e.outerHTML.slice(0, 120)}: cut off`)"""
"""Elements of the frame's page that are cut off at the side, its document apart."""


@dataclass
class PageAppearance:
    """Looks at what one page shows, and keeps what is wrong.

    Args:
        page: of the size `LOADED_AT`.
        opener: that opened it, and takes its pictures.
        prefix: of the pictures' names.
        full: whether pictures are of the whole page; where there are frames, never.
        fits: script that lists what is cut off in a frame.
        sizes: width and height in CSS pixels, by name.
    """

    page: Page
    opener: Opener
    prefix: str
    full: bool = True
    fits: str = _WHOLE_FITS
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=lambda: SIZES)
    faults: list[str] = field(default_factory=list)

    async def at(self, name: str, *frames: Frame | Page) -> None:
        """Look at what is shown now, in every size and scheme.

        Args:
            name: of it.
            *frames: that are looked at; by default the page alone.
        """
        looked_at = frames or (self.page,)
        others = [size for size in self.sizes if size != LOADED_AT]
        for size in (LOADED_AT, *others):
            await self._resize(size, looked_at)
            for scheme in SCHEMES:
                await self._at(name, size, scheme, looked_at)
            for frame in looked_at:
                found = await frame.evaluate(self.fits)
                self.faults += [f"{name}, {size}: {fault}" for fault in found]
        await self._resize(LOADED_AT, looked_at)

    async def _at(
        self, name: str, size: str, scheme: str, frames: tuple[Frame | Page, ...]
    ) -> None:
        """Take a picture, and run axe where something may be new to it."""
        dark = scheme != SCHEMES[0]
        await self.page.emulate_media(
            color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        full = self.full and len(self.page.frames) == 1
        picture = f"{self.prefix}-{name}-{size}-{scheme}"
        await self.opener.picture(self.page, picture, full=full)
        for frame in frames:
            if not dark:
                found = await axe(frame, appeared=size != LOADED_AT)
            elif size == [*self.sizes][-1]:
                found = await axe(frame, colours=True)
            else:
                continue
            self.faults += [f"{name}, {size}, {scheme}: {fault}" for fault in found]

    async def _resize(self, size: str, frames: tuple[Frame | Page, ...]) -> None:
        await resize(self.page, self.sizes[size], *frames)
