"""Real browsers: pages that are watched, accessibility, keyboard, pictures.

    page = await open_page("phone", "dark")
    await axe(page.frames[1])
    await picture(page, "frame-ready")

Every page reports violations of a Content-Security-Policy in any of its frames,
and errors that no script caught; the fixture fails the test at its end. The
browsers are Debian's; Playwright only drives them.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Frame,
    Locator,
    Page,
    Playwright,
    WebError,
)

WHOLE_CHROMIUM: Final = os.environ.get("RUBRICA_CHROMIUM") or "/usr/bin/chromium"
"""Chromium as people have it."""
# Debian's command for it is a shell script that stays, and hands no signal on.
_BARE_CHROMIUM: Final = "/usr/lib/chromium/chromium-headless-shell"
CHROMIUM: Final = (
    _BARE_CHROMIUM
    if "RUBRICA_CHROMIUM" not in os.environ and os.access(_BARE_CHROMIUM, os.X_OK)
    else WHOLE_CHROMIUM
)
"""The same engine without menus, tabs and toolbars, which would be painted for nobody;
where the release has no package of it, the whole one."""
FIREFOX: Final = os.environ.get("RUBRICA_FIREFOX") or "/usr/bin/firefox-esr"
PATIENCE_MS: Final = 60_000
"""Longest wait for what a page does: a machine that is busy with other things says
nothing of it."""
SIZES: Final = {"phone": (390, 844), "desktop": (1280, 800)}
"""Width and height in CSS pixels."""
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
_CHROMIUM_ARGUMENTS: Final = (
    # A frame of another site has a process of its own, as in the browsers of people:
    # Chromium does it by itself, without menus it does not.
    "--site-per-process",
    # Pages are painted by the processor: there is no graphics card to look for.
    "--disable-gpu",
    # Nothing here speaks HTTP/3.
    "--disable-quic",
    # No page that welcomes, no fetches of its own, no updates, no account.
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# A frame's clicks and keys only arrive without process isolation for sites.
_FIREFOX_PREFERENCES: Final = {"fission.webContentIsolationStrategy": 0}
_OF_COLOURS: Final = ["color-contrast", "link-in-text-block"]
"""Rules of axe-core that can find something else in another colour scheme."""
_MARK: Final = "rubrica-csp:"
_LISTEN: Final = (
    "addEventListener('securitypolicyviolation', (e) => console.error('"
    + _MARK
    + "' + JSON.stringify([e.effectiveDirective, e.blockedURI, e.sourceFile,"
    " e.lineNumber, location.origin])))"
)


SharedContexts = dict[tuple[Browser, str, str], BrowserContext]
"""Contexts by browser, and by size and scheme of their pages."""


@dataclass
class Watch:
    """What pages complained of.

    Without slots: Playwright keeps a mark on the object whose method it calls.
    """

    violations: list[str] = field(default_factory=list)
    """Violations of a policy: directive, what was blocked, where."""
    console: list[str] = field(default_factory=list)
    """Other errors on the console: failed loads, blocked frames."""
    errors: list[str] = field(default_factory=list)
    """Errors that no script caught."""

    def follow(self, context: BrowserContext) -> None:
        """Watch all pages of a context."""
        context.on("console", self._note)
        context.on("weberror", self._note_error)

    def leave(self, context: BrowserContext) -> None:
        """Watch them no more."""
        context.remove_listener("console", self._note)
        context.remove_listener("weberror", self._note_error)

    def _note(self, message: ConsoleMessage) -> None:
        if message.type != "error":
            return
        if message.text.startswith(_MARK):
            self.violations.append(message.text.removeprefix(_MARK))
        else:
            self.console.append(message.text)

    def _note_error(self, error: WebError) -> None:
        self.errors.append(str(error.error))

    def check(self) -> None:
        """Fail when a policy was violated or an error was not caught."""
        assert not self.violations, f"policy violated: {self.violations}"
        assert not self.errors, f"not caught: {self.errors}"

    def expect_violation(self, pattern: str) -> None:
        """Demand a violation that a test provokes, and forget it.

        Args:
            pattern: regular expression, searched in directive and address.
        """
        found = [line for line in self.violations if re.search(pattern, line)]
        assert found, self.violations
        self.violations = [line for line in self.violations if line not in found]


class Opener:
    """Opens pages of one browser, and closes them.

    Contexts are dear: each fetches and compiles what a page loads anew. One of a size
    and scheme is shared by the tests of a run, and has no page, cookie or permission
    left when the next one gets it. What else belongs to a context, as the clock that
    Playwright plays, wants one of its own.

    Args:
        browser: that opens them.
        pictures: folder of screenshots, or None where nobody wants them.
        shared: contexts that are kept between openers; none by default.
    """

    def __init__(
        self,
        browser: Browser,
        pictures: Path | None,
        shared: SharedContexts | None = None,
    ) -> None:
        self.watch = Watch()
        self.pictures = pictures
        self._browser = browser
        self._shared: SharedContexts = {} if shared is None else shared
        self._lends = shared is not None
        self._lent: list[BrowserContext] = []
        self._own: list[BrowserContext] = []

    async def __call__(
        self,
        size: str = "desktop",
        scheme: str = "light",
        *,
        alone: bool = False,
        **options: Any,
    ) -> Page:
        """Open a page.

        Args:
            size: one of `SIZES`.
            scheme: `light` or `dark`; Firefox knows light alone.
            alone: in a context of its own, as it always is with options.
            **options: more of Playwright's `new_context`.

        Returns:
            An empty page, speaking Spanish unless `locale` says otherwise.
        """
        if options or alone or not self._lends:
            context = await self._new_context(size, scheme, **options)
            self._own.append(context)
            self.watch.follow(context)
            return await context.new_page()
        key = (self._browser, size, scheme)
        context = self._shared.get(key) or await self._new_context(size, scheme)
        self._shared[key] = context
        if context not in self._lent:
            self._lent.append(context)
            self.watch.follow(context)
        return await context.new_page()

    async def _new_context(
        self, size: str, scheme: str, **options: Any
    ) -> BrowserContext:
        width, height = SIZES[size]
        choice: dict[str, Any] = {
            "viewport": {"width": width, "height": height},
            "locale": "es-AR",
        }
        if self._browser.browser_type.name == "chromium":
            choice |= {"color_scheme": scheme, "is_mobile": size == "phone"}
            choice["has_touch"] = size == "phone"
        context = await self._browser.new_context(**(choice | options))
        context.set_default_timeout(PATIENCE_MS)
        await context.add_init_script(_LISTEN)
        return context

    async def close(self) -> None:
        """Close every page that was opened; shared contexts are as they were."""
        for context in self._own:
            await context.close()
        for context in self._lent:
            for page in context.pages:
                await page.close()
            await context.unroute_all()
            await context.clear_cookies()
            await context.clear_permissions()
            self.watch.leave(context)

    async def picture(self, page: Page, name: str, *, full: bool = False) -> None:
        """Take a screenshot, where somebody wants it.

        Args:
            page: to be taken.
            name: of the file, without ending.
            full: the whole page instead of what is in view; frames of other
                sites are then painted in part.
        """
        if self.pictures is None:
            return
        # A frame of another site paints in a process of its own, a little later.
        await page.wait_for_timeout(150)
        path = self.pictures / f"{name}.png"
        await page.screenshot(path=path, full_page=full, animations="disabled")


@asynccontextmanager
async def chromium(
    playwright: Playwright, *arguments: str, program: str = CHROMIUM
) -> AsyncIterator[Browser]:
    """Run Debian's Chromium without a window.

    Args:
        playwright: that drives it.
        *arguments: more of its command line, as for a fake camera.
        program: `CHROMIUM` or `WHOLE_CHROMIUM`.
    """
    browser = await playwright.chromium.launch(
        executable_path=program, args=[*_CHROMIUM_ARGUMENTS, *arguments]
    )
    try:
        yield browser
    finally:
        await browser.close()


@asynccontextmanager
async def firefox(
    playwright: Playwright, downloads: Path, **preferences: str | float | bool
) -> AsyncIterator[Browser]:
    """Run Debian's Firefox ESR without a window.

    Args:
        playwright: that drives it.
        downloads: folder where downloads end; no event tells of them.
        **preferences: of Firefox, dots written as two underscores.
    """
    more = {name.replace("__", "."): value for name, value in preferences.items()}
    browser = await playwright.firefox.launch(
        channel="moz-firefox",
        executable_path=FIREFOX,
        downloads_path=downloads,
        firefox_user_prefs={**_FIREFOX_PREFERENCES, **more},
    )
    try:
        yield browser
    finally:
        await browser.close()


async def until(happened: Callable[[], object]) -> None:
    """Wait for what a browser does in its own time.

    Args:
        happened: true, or anything but empty, when it did.
    """
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.02)


_RUN_AXE: Final = """async ({ options, appeared }) => {
  const now = [...document.querySelectorAll("*")].filter((e) => e.checkVisibility());
  const seen = appeared ? window.rubricaSeen : new Set();
  const fresh = now.filter((e) => !seen.has(e));
  window.rubricaSeen = new Set([...seen, ...fresh]);
  if (appeared && fresh.length === 0) return { violations: [] };
  return axe.run(appeared ? { include: fresh } : document, options);
}"""


async def axe(
    frame: Frame | Page, *, colours: bool = False, appeared: bool = False
) -> list[str]:
    """Find faults of accessibility in one frame, by axe-core.

    Run in the top page it would skip frames of other origins without a word:
    give each frame by itself, or use `axe_everywhere`.

    Args:
        frame: to be looked at.
        colours: look at colours alone.
        appeared: look at those elements alone that came into view since the last
            look, as in a window of another size.

    Returns:
        A line for each faulty element: rule, element, what is wrong.
    """
    if not await frame.evaluate("'axe' in window"):
        await frame.evaluate(AXE_SCRIPT)
    # For frames inside it would wait, and skip most of them all the same.
    # It would load style sheets and media anew, for rules that are off or idle here.
    options: dict[str, Any] = {
        "resultTypes": ["violations"],
        "iframes": False,
        "preload": False,
    }
    if colours:
        options["runOnly"] = {"type": "rule", "values": _OF_COLOURS}
    given = {"options": options, "appeared": appeared}
    found = await frame.evaluate(_RUN_AXE, given)
    return [
        f"{fault['id']}: {node['html'][:160]}: {node['failureSummary']}"
        for fault in found["violations"]
        for node in fault["nodes"]
    ]


async def axe_everywhere(page: Page, *, colours: bool = False) -> list[str]:
    """Find faults of accessibility in a page and in every frame of it."""
    return [line for frame in page.frames for line in await axe(frame, colours=colours)]


_HAS_WIDTH: Final = """(width) => new Promise((done, fail) => {
  const since = performance.now();
  const look = () => {
    const { clientWidth } = document.documentElement;
    if (clientWidth === width) done();
    else if (performance.now() - since > 60_000) fail(`${clientWidth} px wide`);
    else setTimeout(look, 10);
  };
  look();
})"""
"""A frame of another site hears of its size a little later."""


async def resize(page: Page, size: tuple[int, int], *frames: Frame | Page) -> None:
    """Show a page in a window of another size, until frames in it have theirs too.

    Args:
        page: it.
        size: width and height in CSS pixels.
        *frames: that are looked at next: the page itself, or in it.
    """
    width, height = size
    await page.set_viewport_size({"width": width, "height": height})
    for frame in frames:
        inside = frame is not page and frame is not page.main_frame
        own = await _width_of(frame) if inside else width
        await frame.evaluate(_HAS_WIDTH, own)


_IS_PAINTED: Final = """(e) => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done)))"""
"""Ends once a frame in view was painted after whatever changed."""


async def click_inside(locator: Locator) -> None:
    """Click on what is in a frame of another site, after a change of the window.

    The browser decides which frame gets a click by what was painted last, and no page;
    a frame that is out of view paints nothing, so that its new size is not known there.

    Args:
        locator: what is clicked on, in view or not.
    """
    await locator.scroll_into_view_if_needed()
    await locator.evaluate(_IS_PAINTED)
    await locator.click()


async def _width_of(frame: Frame | Page) -> int:
    """Width of the element that a frame is in."""
    assert isinstance(frame, Frame)
    element = await frame.frame_element()
    width: int = await element.evaluate("(e) => e.clientWidth")
    return width


async def is_focused(locator: Locator) -> bool:
    """Whether keys go to an element, in whichever frame it is."""
    focused: bool = await locator.evaluate(
        "(e) => e === document.activeElement && document.hasFocus()"
    )
    return focused


async def until_focused(locator: Locator) -> None:
    """Wait until keys go to an element.

    A frame of another site learns from the browser that it has the focus, a little
    later than its element has.
    """
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not await is_focused(locator):
        assert time.monotonic() < deadline, f"it does not get the focus: {locator}"
        await asyncio.sleep(0.02)


async def tab_to(page: Page, locator: Locator, *, most: int = 60) -> None:
    """Press Tab until an element has the focus, as somebody without a mouse does.

    Args:
        page: that gets the keys.
        locator: the element, in any frame.
        most: presses after which it counts as out of reach.
    """
    for _ in range(most):
        if await is_focused(locator):
            return
        await page.keyboard.press("Tab")
    assert await is_focused(locator), f"out of the keyboard's reach: {locator}"


async def press_on(page: Page, locator: Locator, key: str = "Enter") -> None:
    """Reach an element by Tab and press a key on it."""
    await tab_to(page, locator)
    await page.keyboard.press(key)


async def choose_file(
    field: Locator, name: str, content: bytes, kind: str = "application/pdf"
) -> None:
    """Give a file to a file field, in every browser and any frame.

    Firefox refuses Playwright's own way inside a frame of another origin.
    """
    await field.evaluate(
        """(input, [name, kind, bytes]) => {
          const transfer = new DataTransfer();
          const file = new File([new Uint8Array(bytes)], name, { type: kind });
          transfer.items.add(file);
          input.files = transfer.files;
          input.dispatchEvent(new Event("change", { bubbles: true }));
        }""",
        [name, kind, list(content)],
    )
