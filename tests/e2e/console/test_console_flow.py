"""What administrators do in the console, in real browsers."""

import re
import uuid
from itertools import product

import httpx
import pytest
from playwright.async_api import Locator, Page, expect

from appliance.bootstrap import ServiceRegistry
from tests.support.appliance.administrators import (
    Administrator,
    enrol,
    new_administrator,
)
from tests.support.appliance.appliance import Appliance
from tests.support.browsers.browsers import (
    SIZES,
    Opener,
    axe,
    choose_file,
    press_on,
    tab_to,
    until,
)
from tests.support.browsers.host_page import HostPage
from tests.support.documents import pdfs
from tests.support.faults.password_guessing import guess_at_person
from tests.support.patience import CALL_S

_REFUSED = "chrome-error://chromewebdata/"
KEY = re.compile(r"rbk_test_[0-9a-z]{12}_[0-9A-Za-z]{49}")


@pytest.fixture(scope="module")
def administrator(appliance: Appliance) -> Administrator:
    """Somebody who signs in once."""
    return new_administrator(appliance)


def new_code() -> str:
    """A code for an integrator that nobody has."""
    return f"estudio-{uuid.uuid4().hex[:6]}"


async def fill(page: Page, **fields: str) -> None:
    """Fill fields by their label."""
    for label, value in fields.items():
        await page.get_by_label(label, exact=True).fill(value)


def button(page: Page, name: str) -> Locator:
    """A button by its words."""
    return page.get_by_role("button", name=name, exact=True)


async def send(page: Page, name: str) -> None:
    """Press a form's button, and be where it leads to."""
    async with page.expect_navigation():
        await button(page, name).click()


async def make_key(page: Page, administrator: Administrator) -> str:
    """Sign in and make an integrator with a key, which is shown; its code."""
    code = new_code()
    await administrator.be_signed_in(page, "/admin/integrators/new")
    await fill(page, Código=code, Nombre="Estudio")
    await send(page, "Crear")
    await page.goto(administrator.url(f"/admin/integrators/{code}/keys"))
    await fill(page, Etiqueta="Backend")
    await button(page, "Crear clave").click()
    return code


async def open_session(appliance: Appliance, code: str, key: str) -> httpx.Response:
    """Do what an integrator's backend does."""
    async with httpx.AsyncClient(base_url=appliance.base_url, timeout=CALL_S) as client:
        return await client.post(
            f"/api/integration/session/new?id={code}", headers={"X-Api-Key": key}
        )


async def test_integrator_domain_and_key(
    page: Page, appliance: Appliance, administrator: Administrator
) -> None:
    """From an empty list to a key that opens a session."""
    code = new_code()
    await administrator.sign_in(page)
    await page.get_by_role("link", name="Integradores").click()
    await page.get_by_role("link", name="Crear un integrador").click()
    await fill(page, Código=code, Nombre="Estudio Contable Sur")
    await button(page, "Crear").click()

    await expect(page.get_by_role("heading", level=1)).to_contain_text(code)
    await page.get_by_role("link", name="Dominios").first.click()
    await fill(page, Origen="http://app.example")
    await button(page, "Autorizar").click()
    await expect(page.locator("#e-origin")).to_contain_text("https://")
    assert await axe(page) == []
    await fill(page, Origen="https://app.example")
    await button(page, "Autorizar").click()
    await expect(page.get_by_role("row", name="https://app.example")).to_be_visible()

    await page.get_by_role("link", name="Claves de API").click()
    await fill(page, Etiqueta="Backend")
    await button(page, "Crear clave").click()
    key = await page.get_by_role("textbox", name="Clave de API").text_content()
    assert key is not None
    assert KEY.fullmatch(key)
    assert await axe(page) == []
    # Another language would lose it; to leave is asked first.
    await expect(button(page, "English")).to_have_count(0)
    page.once("dialog", lambda dialog: dialog.dismiss())
    async with page.expect_event("dialog"):
        await page.get_by_role("link", name="Webhooks").click()
    await expect(page.get_by_role("textbox", name="Clave de API")).to_have_text(key)
    await page.get_by_role("link", name="Ya guardé la clave").click()
    await expect(button(page, "English")).to_be_visible()
    await expect(page.get_by_role("row", name="Backend")).to_contain_text("Activa")
    assert not KEY.search(await page.content())
    assert (await open_session(appliance, code, key)).status_code == 200


async def test_key_is_copied(open_page: Opener, administrator: Administrator) -> None:
    """The copy button puts the whole key on the clipboard and says so."""
    page = await open_page(permissions=["clipboard-read", "clipboard-write"])
    await make_key(page, administrator)

    await page.locator(".secret").get_by_role("button", name="Copiar").click()

    await expect(page.get_by_role("status")).to_have_text("Copiado")
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert KEY.fullmatch(copied)


async def test_keyboard_alone_suffices(
    page: Page, administrator: Administrator
) -> None:
    """Sign-in, integrator, domain and key without a mouse, focus always in sight."""
    code = new_code()
    await page.goto(administrator.url())
    for label, value in {
        "Nombre": administrator.name,
        "Contraseña": administrator.password,
        "Código": administrator.code(),
    }.items():
        await tab_to(page, page.get_by_label(label, exact=True))
        await page.keyboard.insert_text(value)
    await page.keyboard.press("Enter")
    await page.wait_for_url(administrator.url())

    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Ir al contenido")
    await expect(skip).to_be_focused()
    await expect(skip).to_be_in_viewport()
    await press_on(page, page.get_by_role("link", name="Integradores"))
    await press_on(page, page.get_by_role("link", name="Crear un integrador"))
    await tab_to(page, page.get_by_label("Código", exact=True))
    await page.keyboard.insert_text("Mal código")
    await page.keyboard.press("Enter")
    # What is wrong has the focus, and leads to its field.
    summary = page.get_by_role("alert")
    await expect(summary).to_be_focused()
    await press_on(page, summary.get_by_role("link").first)
    await expect(page.get_by_label("Código", exact=True)).to_be_focused()
    await page.keyboard.press("Control+A")
    await page.keyboard.insert_text(code)
    await tab_to(page, page.get_by_label("Nombre", exact=True))
    await page.keyboard.insert_text("Estudio")
    await press_on(page, button(page, "Crear"))

    await page.wait_for_url(administrator.url(f"/admin/integrators/{code}"))
    await press_on(page, page.get_by_role("link", name="Dominios").first)
    await tab_to(page, page.get_by_label("Origen", exact=True))
    await page.keyboard.insert_text("https://app.example")
    await page.keyboard.press("Enter")
    await press_on(page, page.get_by_role("link", name="Claves de API").first)
    await tab_to(page, page.get_by_label("Etiqueta", exact=True))
    await page.keyboard.insert_text("Backend")
    await press_on(page, button(page, "Crear clave"))
    await expect(page.get_by_role("textbox", name="Clave de API")).to_have_text(KEY)
    await press_on(page, page.get_by_role("link", name="Ya guardé la clave"))
    revoke = page.get_by_role("row", name="Backend").get_by_role("link").last
    await press_on(page, revoke)
    await press_on(page, button(page, "Revocar la clave"))
    await expect(page.get_by_role("row", name="Backend")).to_contain_text("Revocada")


async def test_focus_is_seen_on_every_control(
    page: Page, administrator: Administrator
) -> None:
    """Whatever Tab reaches has an outline."""
    await administrator.be_signed_in(page, "/admin/_ui")
    seen = set()
    for _ in range(90):
        await page.keyboard.press("Tab")
        found = await page.evaluate(
            """() => {
              const e = document.activeElement, s = getComputedStyle(e);
              return [e.tagName + e.className + e.id + e.textContent.slice(0, 20),
                      s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2];
            }"""
        )
        if found[0] in seen and found[0].startswith("BODY"):
            break
        seen.add(found[0])
        assert found[1] or found[0].startswith("BODY"), found

    assert len(seen) > 30


async def test_everything_works_without_scripts(
    open_page: Opener, appliance: Appliance, administrator: Administrator
) -> None:
    """Forms, confirmations, filters and files need no script."""
    page = await open_page(java_script_enabled=False)
    code = await make_key(page, administrator)
    await expect(page.get_by_role("textbox", name="Clave de API")).to_have_text(KEY)
    await expect(page.get_by_role("button", name="Copiar")).to_have_count(0)
    await page.get_by_role("link", name="Ya guardé la clave").click()
    await page.get_by_role("row").get_by_role("link", name="Rotar").click()
    await page.get_by_label("7 días").check()
    await button(page, "Crear la clave nueva").click()
    await page.get_by_role("link", name="Ya guardé la clave").click()
    await expect(page.get_by_text("En reemplazo")).to_be_visible()

    signer = appliance.new_person("Zulema Íñiguez")
    await page.goto(administrator.url("/admin/people"))
    await page.get_by_role("searchbox").fill("iniguez")
    await button(page, "Filtrar").click()
    await page.get_by_role("link", name="Zulema Íñiguez").first.click()
    await page.get_by_role("link", name="Pedir una firma").click()
    await page.get_by_label("Documento").set_input_files(
        {
            "name": "Poder.pdf",
            "mimeType": "application/pdf",
            "buffer": pdfs.javascript(),
        }
    )
    await page.get_by_label("Integrador").fill(code)
    await button(page, "Pedir la firma").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Poder.pdf")
    # The story tells it too, in a list that is ordered.
    told = page.locator("ul").get_by_text("El documento contiene JavaScript.")
    await expect(told).to_be_visible()
    with appliance.client(signer) as client:
        (request,) = client.get("/solicitudes").json()
    assert request["documento"] == "Poder.pdf"


async def test_blocked_origin_shows_by_itself(
    page: Page, appliance: Appliance, administrator: Administrator
) -> None:
    """An origin that tries shows without a reload; allowing it asks back."""
    code = new_code()
    tried = "https://otro.example"
    await administrator.be_signed_in(page, "/admin/integrators/new")
    await fill(page, Código=code, Nombre="Estudio")
    await send(page, "Crear")
    await page.goto(administrator.url(f"/admin/integrators/{code}/domains"))
    await page.get_by_label("Origen", exact=True).fill("https://a medio")

    appliance.do(lambda front: front.sessions.note_blocked(code, tried))

    row = page.get_by_role("row", name=tried)
    await expect(row).to_be_visible()
    await expect(page.get_by_label("Origen", exact=True)).to_be_focused()
    await expect(page.get_by_label("Origen", exact=True)).to_have_value(
        "https://a medio"
    )
    await expect(row).to_contain_text("Sin verificar")
    await row.get_by_role("link", name="Autorizar").click()
    heading = page.get_by_role("heading", name=tried)
    await expect(heading).to_be_visible()
    assert await axe(page) == []
    await send(page, "Autorizar")
    await expect(page.get_by_text("nunca visto")).to_be_visible()
    await expect(page.locator("#blocked").get_by_role("row")).to_have_count(0)


async def test_invited_person_enrols(
    page: Page,
    open_page: Opener,
    appliance: Appliance,
    administrator: Administrator,
) -> None:
    """The link of the console ends in a certificate that its page shows by itself."""
    await administrator.be_signed_in(page, "/admin/people/new")
    await page.get_by_label("CUIL").fill(appliance.next_cuil())
    await fill(page, Nombre="Eva Ñandú")
    await page.get_by_label("Correo").fill(f"{new_code()}@demo.example")
    await page.get_by_label("Una persona de prueba").check()
    await button(page, "Generar el enlace").click()
    link = await page.get_by_role("textbox", name="Enlace de alta").text_content()
    assert link is not None
    assert link.startswith(appliance.base_url)
    await page.get_by_role("link", name="Ya lo entregué").click()
    await expect(page.get_by_text("Todavía no completó el alta.")).to_be_visible()
    assert link not in await page.content()

    theirs = await open_page("phone")
    await theirs.goto(link)
    await enrol(theirs)

    await page.reload()
    issuer = page.get_by_role("definition").filter(has_text="DEMO SIN VALIDEZ")
    await expect(issuer).to_be_visible()
    await expect(page.get_by_text("Activa", exact=True)).to_be_visible()


async def test_request_is_made_and_followed(
    page: Page, appliance: Appliance, administrator: Administrator
) -> None:
    """A request made here is signed elsewhere, and its page tells it by itself."""
    signer = appliance.new_person("Rocío Vera")
    await administrator.be_signed_in(page, f"/admin/requests/new?cuil={signer.cuil}")
    await choose_file(page.get_by_label("Documento"), "Acta.pdf", pdfs.one_page())
    await page.get_by_label("Integrador").fill("integrador de pru")
    offered = page.locator("#l-integrator option[value=demo]")
    await expect(offered).to_have_text("Integrador de prueba")
    await page.get_by_label("Integrador").fill("demo")
    await button(page, "Pedir la firma").click()
    await expect(page.get_by_text("Pendiente", exact=True)).to_be_visible()
    number = int(page.url.rpartition("/")[2])

    with appliance.client(signer) as client:
        order = {"solicitudId": number, "password": signer.signing_password}
        assert client.post("/solicitudes/firmar", json=order).status_code == 200

    await expect(page.get_by_text("Firmada", exact=True)).to_be_visible()
    await expect(page.get_by_text("Clave usada")).to_be_visible()
    await page.get_by_role("link", name="En la auditoría").click()
    await (
        page.get_by_role("row", name="Solicitud firmada")
        .get_by_role("link")
        .last.click()
    )
    await expect(page.get_by_text("Entera")).to_be_visible()


async def test_english_is_chosen_and_kept(
    page: Page, administrator: Administrator
) -> None:
    """One button changes the language, here and on the pages after."""
    await administrator.be_signed_in(page, "/admin/people")

    await button(page, "English").click()

    await expect(page).to_have_url(administrator.url("/admin/people"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("People")
    assert await page.locator("html").get_attribute("lang") == "en"
    await page.goto(administrator.url("/admin/audit"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Audit")
    await button(page, "Español").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Auditoría")


async def test_change_of_language_keeps_the_name(
    page: Page, administrator: Administrator
) -> None:
    """What was typed to sign in, but for what is secret; and once only."""
    await page.goto(administrator.url("/admin/login"))
    await fill(page, Nombre="marta", Contraseña="una clave", Código="123456")

    await send(page, "English")

    name = page.get_by_label("Name", exact=True)
    await expect(name).to_have_value("marta")
    await expect(page.get_by_label("Password", exact=True)).to_have_value("")
    await expect(page.get_by_label("Code", exact=True)).to_have_value("")
    stored = await page.evaluate("JSON.stringify({...sessionStorage})")
    assert stored == "{}"
    await page.reload()
    await expect(name).to_have_value("")


async def test_time_is_told_in_full_on_focus(
    page: Page, administrator: Administrator
) -> None:
    """A relative time shows date, time and zone when it is reached."""
    await administrator.be_signed_in(page, "/admin/_ui")
    time = page.locator("time.when").first
    full = time.locator(".when-full")
    await expect(full).to_have_css("opacity", "0")

    await tab_to(page, time)

    await expect(full).to_have_css("opacity", "1")
    await expect(full).to_have_text(re.compile(r"^\d\d/\d\d/\d{4} \d\d:\d\d$"))


async def test_menus_are_short_on_a_phone(
    phone: Page, open_page: Opener, administrator: Administrator
) -> None:
    """The menu takes two rows, whatever is current in it, and tabs take one."""

    async def rows(links: Locator) -> int:
        tops: list[float] = await links.evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect().top)"
        )
        return len(set(tops))

    await administrator.be_signed_in(phone)
    menu = phone.get_by_role("navigation", name="Principal").get_by_role("link")
    for number in range(await menu.count()):
        await menu.nth(number).click()
        await expect(menu.nth(number)).to_have_attribute("aria-current", "page")
        assert await rows(menu) == 2
    await open_page.picture(phone, "console-menu-phone")
    await phone.goto(administrator.url("/admin/integrators/demo/stamp"))
    await expect(menu.nth(1)).to_have_attribute("aria-current", "true")
    assert await rows(phone.locator(".tabs a")) == 1
    await open_page.picture(phone, "console-tabs-phone")


_BOXES = """fields => fields.map(field => {
  const box = field.querySelector("input, select").getBoundingClientRect();
  return [box.left, box.top, box.width].map(Math.round);
})"""


async def test_filters_stand_in_columns(
    open_page: Opener, administrator: Administrator
) -> None:
    """Boxes are of one width and below each other; both days are side by side."""
    page = await open_page("phone")
    await administrator.be_signed_in(page)
    for place, (size, (width, height)) in product(("audit", "requests"), SIZES.items()):
        await page.set_viewport_size({"width": width, "height": height})
        await page.goto(administrator.url(f"/admin/{place}"))
        await open_page.picture(page, f"console-filters-{place}-{size}")
        await _stand_in_columns(page)


async def _stand_in_columns(page: Page) -> None:
    columns = page.locator(".filters > .field:not(:has([name=q]))")
    boxes = await columns.evaluate_all(_BOXES)
    days = await columns.filter(has=page.locator("[type=date]")).evaluate_all(_BOXES)

    top = boxes[0][1]
    lefts = {left for left, row, _ in boxes if row == top}
    assert len(lefts) > 1
    assert {left for left, _, _ in boxes} == lefts
    widths = [width for _, _, width in boxes]
    # A column's share of the row need not be a whole number of pixels.
    assert max(widths) - min(widths) <= 1
    assert len({row for _, row, _ in days}) == 1


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_console_shows_in_no_frame(
    page: Page, administrator: Administrator, host: HostPage, name: str
) -> None:
    """No page shows the console inside itself, whatever its site."""
    await administrator.be_signed_in(page)
    address = administrator.url("/admin/people")
    host.put("/", f"<!doctype html><title>x</title><iframe src={address}></iframe>")

    await page.goto(host.url(name=name))

    await until(lambda: [frame.url for frame in page.frames[1:]] == [_REFUSED])


async def test_firefox_signs_in_and_makes_a_key(
    open_firefox: Opener, appliance: Appliance
) -> None:
    """The cookie, the forms and the policy hold in Firefox too."""
    administrator = new_administrator(appliance)
    page = await open_firefox()
    await make_key(page, administrator)

    await expect(page.get_by_role("textbox", name="Clave de API")).to_have_text(KEY)
    await button(page, "Salir").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Ingresar")
    await page.goto(administrator.url())
    await expect(page).to_have_url(re.compile("/admin/login"))


async def test_certificate_is_revoked_by_keyboard(
    page: Page, appliance: Appliance, administrator: Administrator
) -> None:
    """Reason, confirmation, and the page that sees it published by itself."""
    person = appliance.new_person("Delfina Acuña")
    await administrator.be_signed_in(page, f"/admin/people/{person.id}")
    card = page.get_by_role("article")
    await press_on(page, card.get_by_role("link", name="Revocar"))
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Delfina Acuña")

    await tab_to(page, page.get_by_label("Por qué"))
    await page.keyboard.type("Alguien")
    await press_on(page, button(page, "Revocar"))

    await expect(card).to_contain_text("Alguien más podría usar la clave")
    await expect(card).to_contain_text("Ya no es válido")
    await expect(card.get_by_role("link", name="Revocar")).to_have_count(0)
    assert await axe(page) == []


@pytest.mark.parametrize(
    ("size", "lang", "words"),
    [
        ("desktop", "", ("Olvidar los intentos fallidos", "Tu código")),
        ("phone", "English", ("Forget the failed attempts", "Your own code")),
    ],
)
async def test_attacked_account_is_helped_by_keyboard(
    size: str,
    lang: str,
    words: tuple[str, str],
    open_page: Opener,
    appliance: Appliance,
    administrator: Administrator,
) -> None:
    """From the health page to its owner's, and the line is gone after."""
    person = appliance.new_person(f"Ulises Arrieta {size}")

    async def attack(front: ServiceRegistry) -> None:
        store = front.core.store
        await guess_at_person(store, front, person.id, person.cuil, person.email)

    appliance.do(attack)
    page = await open_page(size)
    await administrator.be_signed_in(page, "/admin/health")
    if lang:
        await send(page, lang)
    forget, code = words

    line = page.get_by_role("link", name=person.name, exact=True)
    title = page.get_by_role("heading", level=1)
    await press_on(page, line)
    await expect(title).to_have_text(person.name)
    await press_on(page, page.get_by_role("link", name=forget))
    await expect(title).to_have_text(forget)
    assert await axe(page) == []
    await tab_to(page, page.get_by_label(code, exact=True))
    await page.keyboard.type(administrator.code())
    await page.keyboard.press("Enter")

    await expect(title).to_have_text(person.name)
    await expect(page.get_by_role("link", name=forget)).to_have_count(0)
    await page.goto(administrator.url("/admin/health"))
    await expect(line).to_have_count(0)
