"""Browsers for a run, pages for a test.

One Chromium and at most one Firefox a run; each test has pages of its own. What is
told in `test_whole_story` is done in a Chromium with all that people have.
Screenshots go to the folder that RUBRICA_SCREENSHOTS names; without it none is taken.
"""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import (
    Browser,
    Page,
    Playwright,
    async_playwright,
    expect,
)

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.lent_person import lend
from tests.support.browsers import browsers
from tests.support.browsers.browsers import Opener, SharedContexts
from tests.support.browsers.frame_host import FrameSite
from tests.support.browsers.host_page import HostPage

PICTURES_VARIABLE = "RUBRICA_SCREENSHOTS"


def _need(program: str) -> None:
    """Skip where the release has no such browser (see `ensure_browsers`)."""
    if not os.access(program, os.X_OK):
        pytest.skip(f"no browser {program}")


@pytest.fixture(scope="session")
async def playwright() -> AsyncIterator[Playwright]:
    """Playwright, which drives the browsers."""
    expect.set_options(timeout=browsers.PATIENCE_MS)
    async with async_playwright() as running:
        yield running


@pytest.fixture(scope="session")
async def chromium(playwright: Playwright) -> AsyncIterator[Browser]:
    """The run's Chromium, of which nobody sees more than the page."""
    _need(browsers.CHROMIUM)
    async with browsers.chromium(playwright) as browser:
        yield browser


@pytest.fixture
async def whole_chromium(playwright: Playwright) -> AsyncIterator[Browser]:
    """A Chromium as people have it."""
    _need(browsers.WHOLE_CHROMIUM)
    async with browsers.chromium(
        playwright, program=browsers.WHOLE_CHROMIUM
    ) as browser:
        yield browser


@pytest.fixture(scope="session")
async def firefox(
    playwright: Playwright, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Browser]:
    """The run's Firefox, started by the first test that wants it."""
    _need(browsers.FIREFOX)
    downloads = tmp_path_factory.mktemp("firefox-downloads")
    async with browsers.firefox(playwright, downloads) as browser:
        yield browser


@pytest.fixture
def pictures() -> Path | None:
    """Where screenshots go, if they are wanted."""
    if not (named := os.environ.get(PICTURES_VARIABLE)):
        return None
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def shared_contexts() -> SharedContexts:
    """Contexts that tests have after each other; each ends with its browser."""
    return {}


@pytest.fixture
async def open_page(
    chromium: Browser, shared_contexts: SharedContexts, pictures: Path | None
) -> AsyncIterator[Opener]:
    """Opens pages in Chromium, and fails the test for what they complained of."""
    opener = Opener(chromium, pictures, shared_contexts)
    yield opener
    await opener.close()
    opener.watch.check()


@pytest.fixture
async def open_firefox(
    firefox: Browser, pictures: Path | None
) -> AsyncIterator[Opener]:
    """Opens pages in Firefox, and fails the test for what they complained of."""
    opener = Opener(firefox, pictures)
    yield opener
    await opener.close()
    opener.watch.check()


@pytest.fixture
async def page(open_page: Opener) -> Page:
    """A page of 1280 by 800."""
    return await open_page("desktop")


@pytest.fixture
async def phone(open_page: Opener) -> Page:
    """A page of 390 by 844 that is touched."""
    return await open_page("phone")


@pytest.fixture
def host() -> Iterator[HostPage]:
    """A web server for an integrator's page."""
    with HostPage() as serving:
        yield serving


@pytest.fixture
def site(appliance: Appliance, host: HostPage) -> FrameSite:
    """An integrator of its own with a page on another site than the frame."""
    return FrameSite(appliance, host)


@pytest.fixture(scope="session")
def people() -> dict[Appliance, TestPerson]:
    """The one person of each appliance that tests are lent after each other."""
    return {}


@pytest.fixture
def person(appliance: Appliance, people: dict[Appliance, TestPerson]) -> TestPerson:
    """Somebody who can sign, as if they were new."""
    return lend(appliance, people)
