"""A trial tried in a browser alone: every password and code is on the demo site.

From the address that `./quickstart` says to open first to the signed PDF, its
verification page and the console. On this machine, and by a telephone of the network.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from playwright.async_api import Page, expect

from appliance.cli.demo.network import own_address, private_address
from appliance.settings import SettingsError
from tests.support.appliance.manual import run_block
from tests.support.appliance.trial import Trial, running_trial
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, axe_everywhere
from tests.support.browsers.trial_visit import TrialVisitor, demo_site_of
from tests.support.documents.validators import pdfsig
from tests.support.patience import CALL_S
from tests.support.processes.rubrica import start_rubrica
from tests.support.processes.scratch import free_port, short_folder

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    """A fresh one."""
    with short_folder() as folder, running_trial(folder) as running:
        yield running


@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_trial_needs_no_terminal(
    trial: Trial, open_page: Opener, size: str
) -> None:
    """Sign, save, verify, and sign in to the console."""

    async def look(page: Page, step: str) -> None:
        assert await axe_everywhere(page) == []
        width = await page.evaluate("document.documentElement.scrollWidth")
        assert width <= page.viewport_size["width"]  # type: ignore[index]
        await open_page.picture(page, f"trial-{size}-{step}")

    with demo_site_of(trial) as first:
        visitor = TrialVisitor(await open_page(size), look)
        await visitor.arrive(first)
        await visitor.sign()
        await look(visitor.page, "signed")
        signed = await visitor.download()
        assert pdfsig(signed)[-1].valid

        verification = await open_page(size)
        await verification.goto(await visitor.verification_page())
        await expect(verification.get_by_text("Firmado", exact=True)).to_be_visible()
        await look(verification, "verification")

        console = await open_page(size)
        await console.goto(await visitor.console_page())
        await visitor.enter_console(console)
        await expect(console.get_by_role("heading", level=1)).to_be_visible()
        assert "/login" not in console.url
        await look(console, "console")


async def test_code_of_the_page_is_never_one_that_was_used(
    trial: Trial, open_page: Opener
) -> None:
    """Signing twice in a row: the second code is another one, and is accepted."""

    async def look(_page: Page, _step: str) -> None:
        """Take no picture."""

    with demo_site_of(trial) as first:
        visitor = TrialVisitor(await open_page(), look)
        await visitor.arrive(first)
        for _ in range(2):
            await visitor.sign()
            await visitor.page.click("#again")


async def test_mail_leads_to_the_signature(trial: Trial, open_page: Opener) -> None:
    """Of a request that the trial mails: its link opens the frame for it."""

    async def look(page: Page, step: str) -> None:
        await open_page.picture(page, f"trial-mail-{step}")

    with demo_site_of(trial) as first:
        page = await open_page()
        visitor = TrialVisitor(page, look)
        trial.run(".venv/bin/rubrica --settings var/settings.toml demo request")
        await visitor.follow_mail(first)
        await visitor.sign_asked()
        signed = await visitor.download()
        assert pdfsig(signed)[-1].valid


@contextmanager
def serving(trial: Trial, command: str) -> Iterator[None]:
    """Run a web server of the manual's, in a trial's folder, once it listens."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=trial.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as server:
        try:
            assert server.stdout is not None
            # Its first line comes once it listens.
            assert b"Serving HTTP" in server.stdout.readline()
            yield
        finally:
            server.terminate()


async def test_own_page_signs_as_the_manual_has_it(
    trial: Trial, open_page: Opener
) -> None:
    """The five steps of *Your own page in a trial*, as they are printed."""
    port = str(free_port())
    own = ("8000", port)
    lines: list[str] = []
    run_block("trial.md", "Sign with curl", 0, lines.append)
    run_block("trial.md", "Your own page in a trial", 0, lines.append, own)
    run_block("trial.md", "Your own page in a trial", 1, lines.append)
    run_block("trial.md", "Your own page in a trial", 2, lines.append)
    run_block("trial.md", "Your own page in a trial", 3, lines.append)
    password, code = trial.run("\n".join(lines)).split()[-2:]
    serve: list[str] = []
    run_block("trial.md", "Your own page in a trial", 4, serve.append, own)
    with serving(trial, *serve):
        page = await open_page()
        async with page.expect_event("frameattached"):
            await page.goto(f"http://127.0.0.1:{port}/")
        frame = page.frames[-1]
        await ceremony.at(frame, "code")
        await frame.fill("#code", code)
        await ceremony.go(frame)
        await ceremony.read(frame)
        await ceremony.choose_place(frame)
        await ceremony.at(frame, "password")
        await frame.fill("#password", password)
        await ceremony.go(frame)
        await expect(page.locator("#estado")).to_have_text("Firmado")


@pytest.fixture
def address() -> str:
    """This machine's address in its network."""
    try:
        return private_address(own_address())
    except SettingsError as exc:
        pytest.skip(f"this machine is in no private network: {exc}")


@pytest.fixture
def shared_trial(address: str) -> Iterator[Trial]:
    """A fresh one that the network reaches."""
    with short_folder() as folder, running_trial(folder, address) as running:
        settings = ("--settings", str(running.settings_file))
        with start_rubrica(*settings, "demo", "network") as front:
            try:
                assert front.stdout is not None
                assert front.stdout.readline().startswith("open to the network: ")
                yield running
            finally:
                front.terminate()


async def test_phone_of_the_network_signs(
    shared_trial: Trial, open_page: Opener
) -> None:
    """By TLS; the visit key of the first address shows the codes, and leaves it."""

    async def look(page: Page, step: str) -> None:
        await open_page.picture(page, f"network-{step}")

    with demo_site_of(shared_trial) as first:
        page = await open_page("phone", ignore_https_errors=True)
        visitor = TrialVisitor(page, look)
        await visitor.arrive(first)
        assert "#" not in page.url
        await visitor.sign()
        assert pdfsig(await visitor.download())[-1].valid

        stranger = await open_page("phone", ignore_https_errors=True)
        await stranger.goto(first.partition("#")[0])
        await expect(stranger.locator("#visit-alert")).to_contain_text("./quickstart")
        await look(stranger, "stranger")


def test_terminal_of_a_shared_trial_reaches_it(shared_trial: Trial) -> None:
    """Programs that source `demo.env` trust its certificate."""
    said = shared_trial.run(
        '. var/demo.env; url="$WEB_URL/docs/es/guide"; '
        'curl -sf -o var/page.html -w "%{http_code}" "$url"'
    )

    assert said == "200"
    assert shared_trial.web_url.startswith("https://")
    with pytest.raises(httpx.ConnectError):
        httpx.get(shared_trial.web_url, timeout=CALL_S)
