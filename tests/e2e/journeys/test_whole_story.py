"""The whole story in one sitting, with nothing but what the terminal told.

An administrator makes an integrator, its domain and its API key in the console;
the integrator's own site uses them; two people sign there; the console tells it.
"""

import base64
import hashlib
import re
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Frame, Page, expect

from appliance.cli.demo.setup import PEOPLE
from tests.support.appliance.appliance import Appliance
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, choose_file
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.patience import CALL_S
from tests.support.processes.rubrica import run_rubrica, start_rubrica
from tests.support.processes.scratch import free_port, short_folder

Look = Callable[[Page, str], Awaitable[object]]
CODE = "estudio-sur"
CORPUS = Path(__file__).parents[3].parent / "shared" / "corpus"
NAMES = ("issue8570.pdf", "annotation-squiggly.pdf")
_KEEP = """addEventListener("message", ({ data }) => {
  if (data?.type === "svc.signature.completed") (window.kept ??= []).push(data.payload);
});"""
TOLD = {
    "Integrador creado",
    "Dominio autorizado",
    "Clave de API creada",
    "Sesión abierta",
    "Documento cargado en una sesión",
    "Código correcto en una sesión",
    "Solicitud creada",
    "Solicitud firmada",
    "Sesión completada",
}
"""Events that the audit has of the integrator."""


@dataclass(frozen=True, slots=True)
class Signer:
    """Somebody of the trial."""

    cuil: str
    name: str
    email: str
    signing_password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Trial:
    """A running trial, as its operator has it: its settings and what it printed."""

    settings: Path
    console_url: str
    user: str
    password: str = field(repr=False)
    signers: list[Signer]
    roots: list[bytes]

    @classmethod
    def of(cls, settings: Path, roots: list[bytes]) -> "Trial":
        """Read what `rubrica demo show` prints."""
        told = _run(settings, "demo", "show")
        user, password = re.findall(r"user (\S+), password (\S+)", told)[0]
        emails = {cuil: email for cuil, _, email in PEOPLE}
        rows = re.findall(r"^(\d\d-\d{8}-\d)  (.*?)  +\S+  +(\S+)$", told, re.MULTILINE)
        signers = [
            Signer(cuil, name, emails[cuil.replace("-", "")], signing)
            for cuil, name, signing in rows
        ]
        (console_url,) = re.findall(r"console: +(\S+)/admin/", told)
        return cls(settings, console_url, user, password, signers, roots)

    def code_of(self, who: str) -> str:
        """The next code of somebody's telephone."""
        return _run(self.settings, "demo", "otp", who).strip()

    @contextmanager
    def site(self, key_file: Path, listen: str) -> Iterator[str]:
        """Run the integrator's site; its origin."""
        given = ("--integrator", CODE, "--api-key-file", str(key_file))
        with start_rubrica(
            *("--settings", str(self.settings), "demo", "host"),
            *(*given, "--listen", listen),
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline().startswith("demo integrator: http://")
                yield f"http://{listen}"
            finally:
                process.terminate()


def _run(settings: Path, *arguments: str) -> str:
    done = run_rubrica("--settings", str(settings), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def press(page: Page, name: str) -> None:
    """Press a button, and be on the page that it leads to."""
    async with page.expect_navigation():
        await page.get_by_role("button", name=name, exact=True).click()


async def make_integrator(page: Page, trial: Trial, origin: str, look: Look) -> str:
    """Sign in to the console and make an integrator; its API key."""
    await page.goto(f"{trial.console_url}/admin/")
    await page.get_by_label("Nombre").fill(trial.user)
    await page.get_by_label("Contraseña").fill(trial.password)
    await page.get_by_label("Código").fill(trial.code_of(trial.user))
    await look(page, "console-login")
    await press(page, "Ingresar")
    await look(page, "console-home")
    await page.get_by_role("link", name="Integradores").click()
    await page.get_by_role("link", name="Crear un integrador").click()
    await page.get_by_label("Código", exact=True).fill(CODE)
    await page.get_by_label("Nombre", exact=True).fill("Estudio Contable Sur")
    await look(page, "console-integrator-new")
    await press(page, "Crear")
    await look(page, "console-integrator")
    await page.get_by_role("link", name="Dominios").first.click()
    await page.get_by_label("Origen", exact=True).fill(origin)
    await press(page, "Autorizar")
    await expect(page.get_by_role("row", name=origin)).to_be_visible()
    await look(page, "console-domain")
    await page.get_by_role("link", name="Claves de API").first.click()
    await page.get_by_label("Etiqueta", exact=True).fill("Sitio")
    await press(page, "Crear clave")
    key = await page.get_by_role("textbox", name="Clave de API").text_content()
    assert key is not None
    await look(page, "console-key-shown-once")
    await page.get_by_role("link", name="Ya guardé la clave").click()
    await expect(page.get_by_role("row", name="Sitio")).to_be_visible()
    assert key not in await page.content()
    await look(page, "console-keys")
    return key


async def sign_in_frame(
    page: Page, frame: Frame, trial: Trial, who: Signer, look: Look
) -> None:
    """Read, prove who it is, choose a place, sign."""
    await ceremony.at(frame, "read")
    await expect(frame.locator(".page").first).to_be_visible()
    await look(page, "frame-read")
    await ceremony.go(frame)
    await ceremony.at(frame, "code")
    await frame.fill("#code", trial.code_of(who.cuil))
    await look(page, "frame-code")
    await ceremony.go(frame)
    await ceremony.at(frame, "place")
    await frame.check("input[name=corner][value=bottomRight]")
    await look(page, "frame-place")
    await ceremony.go(frame)
    await ceremony.at(frame, "password")
    await frame.fill("#password", who.signing_password)
    await look(page, "frame-password")
    await ceremony.go(frame)
    await ceremony.at(frame, "done")
    await look(page, "frame-done")


async def sign_at(
    page: Page,
    origin: str,
    trial: Trial,
    who: Signer,
    name: str,
    pdf: bytes,
    look: Look,
) -> tuple[dict[str, Any], bytes]:
    """Sign a document on the integrator's site.

    Returns:
        The payload of `svc.signature.completed`, and the file that was saved.
    """
    await page.goto(origin)
    await expect(page.locator("form:not([inert])")).to_be_visible()
    await page.check("[value=own]")
    await choose_file(page.locator("#file"), name, pdf)
    await page.fill("#cuil", who.cuil)
    await page.fill("#email", who.email)
    await page.locator("summary[data-t=moreData]").click()
    await page.fill("#name", who.name)
    await look(page, "host-form")
    await page.click("#open")
    await expect(page.locator("#steps [data-step=ack][data-done]")).to_be_visible()
    (frame,) = [one for one in page.frames if "/embed/" in one.url]
    await sign_in_frame(page, frame, trial, who, look)
    result = page.locator("#result")
    await expect(result.locator(".good")).to_have_count(3)
    await look(page, "host-signed")
    async with page.expect_download() as download:
        await result.get_by_role("link", name="Descargar").click()
    completed, *repeated = await page.evaluate("window.kept")
    # A host that says `init` again is told again, always of the same signature.
    assert {each["signedDocId"] for each in repeated} <= {completed["signedDocId"]}
    return completed, (await (await download.value).path()).read_bytes()


def check_signed(
    completed: dict[str, Any], saved: bytes, name: str, pdf: bytes, trial: Trial
) -> None:
    """The file is what was announced, and two validators like it."""
    delivery = completed["delivery"]
    if delivery["mode"] == "binary":
        sent = base64.b64decode(delivery["fileBase64"], validate=True)
    else:
        sent = httpx.get(delivery["url"], timeout=CALL_S).content
    assert sent == saved
    assert completed["document"] == {
        "fileName": name,
        "sha256": hashlib.sha256(saved).hexdigest(),
        "size": len(saved),
        "mime": "application/pdf",
    }
    assert saved.startswith(pdf)
    assert pyhanko_valid(saved, trial.roots)
    assert pdfsig(saved)[-1].valid


async def read_audit(page: Page, trial: Trial, signed: list[str], look: Look) -> None:
    """The console tells the story: events, requests, and a chain that is whole."""
    await page.goto(f"{trial.console_url}/admin/audit?integrator={CODE}")
    events = set(await page.locator("table.audit tbody th").all_inner_texts())
    assert events >= TOLD, TOLD - events
    await look(page, "console-audit")
    await page.locator("table.audit tbody tr").first.locator("a.id").click()
    await expect(page.get_by_text("Entera", exact=True)).to_be_visible()
    await look(page, "console-audit-chain")
    for number in signed:
        await page.goto(f"{trial.console_url}/admin/requests/{number}")
        await expect(page.get_by_text("Firmada", exact=True)).to_be_visible()
        await look(page, "console-request")
    await page.goto(f"{trial.console_url}/admin/integrators/{CODE}")
    await look(page, "console-integrator-after")
    await page.goto(f"{trial.console_url}/admin/health")
    await look(page, "console-health")


async def tell(
    trial: Trial,
    open_page: Opener,
    documents: list[tuple[str, bytes]],
    folder: Path,
    look: Look,
) -> None:
    """From the console's sign-in to its audit, signing each document in turn.

    Args:
        trial: that runs.
        open_page: opens the administrator's and the integrator's page.
        documents: name and content; the trial's people sign them in turn.
        folder: private, for the API key.
        look: is shown each step.
    """
    console, page = await open_page(), await open_page()
    await page.add_init_script(_KEEP)
    listen = f"127.0.0.1:{free_port()}"
    key = await make_integrator(console, trial, f"http://{listen}", look)
    key_file = folder / "api-key"
    key_file.touch(mode=0o600)
    key_file.write_text(f"{key}\n")

    signed = []
    with trial.site(key_file, listen) as origin:
        for number, (name, pdf) in enumerate(documents):
            who = trial.signers[number % len(trial.signers)]
            completed, saved = await sign_at(page, origin, trial, who, name, pdf, look)
            check_signed(completed, saved, name, pdf, trial)
            signed.append(completed["signedDocId"])

    await read_audit(console, trial, signed, look)


@pytest.fixture
def chromium(whole_chromium: Browser) -> Browser:
    """The browser that people have."""
    return whole_chromium


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    """A fresh trial with its demo people."""
    with short_folder() as folder, Appliance.made(folder) as appliance:
        _run(appliance.settings_file, "demo", "setup")
        yield Trial.of(appliance.settings_file, appliance.roots)


async def test_whole_story(trial: Trial, open_page: Opener, tmp_path: Path) -> None:
    """An integrator is made, two people sign at its site, the console tells it."""
    documents = [("contrato ñ.pdf", pdfs.one_page()), ("anexo.pdf", pdfs.pages(3))]
    if CORPUS.is_dir():
        documents = [(name, (CORPUS / name).read_bytes()) for name in NAMES]
    steps = 0

    async def look(page: Page, step: str) -> None:
        nonlocal steps
        steps += 1
        await open_page.picture(page, f"story-{steps:02}-{step}")

    await tell(trial, open_page, documents, tmp_path, look)
