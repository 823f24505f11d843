"""What the signer reads when something is wrong, in either language, and ways out."""

import re

import pytest
from playwright.async_api import Frame, Page, expect

from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, until_focused
from tests.support.browsers.ceremony import at, go
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.documents import pdfs

PDF = pdfs.one_page()


def _console(page: Page) -> list[str]:
    said: list[str] = []
    page.on("console", lambda line: said.append(line.text))
    return said


async def _placing(site: FrameSite, person: TestPerson, page: Page) -> Frame:
    """The frame of a signer who gave the code and is asked for a place."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await at(frame, "place")
    return frame


@pytest.mark.parametrize("mistake", ["no nonce", "key of the integrator"])
async def test_wrong_init_is_told_plainly_and_can_be_left(
    site: FrameSite, person: TestPerson, page: Page, mistake: str
) -> None:
    """A sentence for the signer, the detail in the console, and a way out."""
    said = _console(page)
    token = await site.ready(page)
    init = site.init(token, person)
    if mistake == "no nonce":
        del init["nonce"]
    else:
        init["apiKey"] = "rbk_test_secret"
    await site.send(page, "init", init)
    error = await site.wait(page, "error")
    frame = site.frame(page)
    await at(frame, "refused")
    panel = frame.locator("#panel")
    await expect(panel).to_contain_text("Esta página no pidió bien la firma")
    await expect(panel).not_to_contain_text(error["message"])
    told = [line for line in said if error["code"] in line]
    assert len(told) == 1
    assert error["field"] in told[0]
    assert error["requestId"] in told[0]
    assert token not in told[0]
    assert "rbk_test" not in told[0]
    await frame.get_by_role("button", name="Cancelar").click()

    assert await site.wait(page, "cancelled") == {"reason": "signer"}
    await at(frame, "cancelled")
    await site.send(page, "init", site.init(token, person))
    await site.wait(page, "handshake.ack")


@pytest.mark.parametrize("mistake", ["prefix", "origin", "nothing"])
async def test_frame_that_hears_nothing_says_so(
    site: FrameSite, person: TestPerson, open_page: Opener, mistake: str
) -> None:
    """To the signer and to the developer, each in their words; init still works."""
    page = await open_page(alone=True)
    await page.clock.install()
    said = _console(page)
    token = await site.ready(page)
    frame = site.frame(page)
    init = site.init(token, person)
    if mistake == "prefix":
        await page.evaluate(
            "([data, target]) => frames[0].contentWindow.postMessage(data, target)",
            [{"type": "acme.init", "payload": init}, site.iframe_url],
        )
    if mistake == "origin":
        await frame.evaluate(
            """(data) => dispatchEvent(new MessageEvent("message",
                 { data, origin: "https://otra.example", source: parent }))""",
            {"type": "svc.init", "payload": init},
        )
    await expect(frame.locator("#title")).to_have_text("Un momento")
    await page.clock.fast_forward(11_000)
    await expect(frame.locator("#title")).to_have_text("La firma todavía no empezó")
    (told,) = [line for line in said if "no svc.init" in line]
    named = {"prefix": "acme.init", "origin": "https://otra.example", "nothing": "none"}
    assert named[mistake] in told
    assert token not in "".join(said)
    await site.send(page, "init", {**init, "autoLoadFile": file_of(PDF)})

    await site.wait(page, "handshake.ack")
    await at(frame, "read")


async def test_leaving_is_asked_where_something_is_lost(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Not before anything was done; after the code by keyboard, and Escape stays."""
    frame = await _placing(site, person, page)
    cancel = frame.get_by_role("button", name="Cancelar")
    await cancel.focus()
    await page.keyboard.press("Enter")
    dialog = frame.get_by_role("dialog", name="¿Salir sin firmar?")
    await expect(dialog).to_be_visible()
    await until_focused(dialog.get_by_role("button", name="Seguir acá"))
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await until_focused(cancel)
    assert await site.payloads(page, "cancelled") == []
    await page.keyboard.press("Enter")
    await dialog.get_by_role("button", name="Salir").press("Enter")

    assert await site.wait(page, "cancelled") == {"reason": "signer"}


async def test_leaving_before_anything_is_done_asks_nothing(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """One tap, as there is nothing to lose."""
    await site.open(page, person)
    frame = site.frame(page)
    await at(frame, "pick")
    await frame.get_by_role("button", name="Cancelar").click()

    assert await site.wait(page, "cancelled") == {"reason": "signer"}


async def test_leaving_a_document_that_is_read_is_asked(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Whoever taps beside *Continuar* stays where they were."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await at(frame, "read")
    await frame.get_by_role("button", name="Cancelar").click()
    await frame.get_by_role("dialog").get_by_role("button", name="Seguir acá").click()
    await at(frame, "read")
    assert await site.payloads(page, "cancelled") == []
    await ceremony.leave(frame)

    assert await site.wait(page, "cancelled") == {"reason": "signer"}


async def test_host_that_leaves_takes_the_question_with_it(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A question whose step is over asks nobody any more."""
    frame = await _placing(site, person, page)
    await frame.get_by_role("button", name="Cancelar").click()
    await expect(frame.get_by_role("dialog")).to_be_visible()
    await site.send(page, "cancel", {})
    await at(frame, "cancelled")

    await expect(frame.get_by_role("dialog")).to_have_count(0)


async def _ways_out(frame: Frame) -> dict[str, tuple[float, float]]:
    """Where the ways out are: from the left, and from the top or the bottom."""
    found = await frame.evaluate(
        """() => [...document.querySelectorAll("#leave, #bar .out button")].map((b) => {
          const r = b.getBoundingClientRect();
          const name = b.title || b.textContent;
          return [name, r.left, b.id ? r.top : innerHeight - r.bottom]; })"""
    )
    return {name: (round(x), round(y)) for name, x, y in found}


async def test_ways_out_stay_where_they_are(
    site: FrameSite, person: TestPerson, phone: Page
) -> None:
    """*Cancelar*, apart from all else, and *Rechazar…* have one place each."""
    await site.open(phone, person, autoLoadFile=file_of(PDF))
    frame = site.frame(phone)
    await at(frame, "read")
    first = await _ways_out(frame)
    assert list(first) == ["Cancelar", "Rechazar…"]
    await go(frame)
    await ceremony.give_code(frame, person)
    await at(frame, "place")
    places = [await _ways_out(frame)]
    await go(frame)
    await at(frame, "password")
    places.append(await _ways_out(frame))

    for found in places:
        assert {n: x for n, (x, _) in found.items()} == {
            n: x for n, (x, _) in first.items()
        }
        assert all(abs(y - first[n][1]) <= 8 for n, (_, y) in found.items())


async def test_reason_is_kept_and_rejecting_is_asked(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """What was written waits for whoever goes back; one tap rejects nothing."""
    frame = await _placing(site, person, page)
    await frame.get_by_role("button", name="Rechazar…").click()
    await frame.fill("#reason", "Falta el anexo")
    await frame.get_by_role("button", name="Volver").click()
    await at(frame, "place")
    await frame.get_by_role("button", name="Rechazar…").click()
    await expect(frame.locator("#reason")).to_have_value("Falta el anexo")
    await go(frame)
    dialog = frame.get_by_role("dialog")
    await dialog.get_by_role("button", name="No rechazar").click()
    assert site.states(person) == ["pendiente"]
    await ceremony.refuse(frame)

    assert (await site.wait(page, "rejected"))["reason"] == "Falta el anexo"


async def test_warnings_change_language(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """What the service says of the document, too; what was read stays on the screen."""
    damaged = pdfs.javascript() + b"tail"
    await site.open(page, person, autoLoadFile=file_of(damaged))
    frame = site.frame(page)
    await at(frame, "read")
    warnings = frame.locator(".warning")
    await expect(warnings).to_contain_text("Tenía bytes antes de su comienzo")
    await expect(warnings).to_contain_text("El documento")

    await frame.locator("#language").click()

    await expect(warnings).to_contain_text("There were bytes before its start")
    await expect(warnings).not_to_contain_text("El documento")
    await go(frame)
    await at(frame, "code")


async def test_errors_and_hidden_words_change_language(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The error stays, in the other language; so do status, pages and the mark."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await at(frame, "read")
    status = frame.locator("#status")
    await expect(status).to_have_text("El documento está en pantalla.")
    await frame.locator("#language").click()
    await expect(status).to_have_text("The document is on the screen.")
    await expect(frame.get_by_role("group", name="Page 1 of 1")).to_be_visible()
    await go(frame)
    await at(frame, "code")
    await frame.fill("#code", "000000")
    await go(frame)
    alert = frame.locator("#alert")
    await expect(alert).to_contain_text("The code is wrong")
    await frame.locator("#language").click()
    await expect(alert).to_contain_text(re.compile("El código"))
    assert await frame.input_value("#code") == "000000"
    await frame.locator("#code").focus()
    await frame.fill("#code", "12")
    await go(frame)
    await expect(alert).to_have_text("El código tiene 6 dígitos.")
    await frame.locator("#language").click()
    await expect(alert).to_have_text("The code has 6 digits.")
    await ceremony.give_code(frame, person)
    await at(frame, "place")
    await frame.locator("#language").click()

    await expect(frame.locator(".stamp")).to_have_attribute(
        "aria-label", re.compile("^Tu marca")
    )


async def test_wrong_code_is_typed_over(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The wrong one is selected, and the focus is there."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await at(frame, "code")
    await page.keyboard.type("000000")
    await page.keyboard.press("Enter")
    await expect(frame.locator("#alert")).to_be_visible()
    await page.keyboard.type(person.totp.now())
    await page.keyboard.press("Enter")

    await at(frame, "place")


async def test_progress_goes_on_by_way_of_the_list(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Who picks says first who they are: then comes the reading."""
    site.new_request(person, PDF, "pendiente.pdf")
    await site.open(page, person)
    frame = site.frame(page)
    seen = []

    async def look() -> None:
        now = await frame.evaluate(
            "[...document.querySelectorAll('#progress li')]"
            ".findIndex((e) => e.hasAttribute('aria-current'))"
        )
        seen.append(now)

    await frame.get_by_role("button", name="Firmar uno que me mandaron").click()
    await at(frame, "code")
    await look()
    await ceremony.give_code(frame, person)
    await at(frame, "requests")
    await look()
    await frame.get_by_role("button", name="pendiente.pdf").click()
    await at(frame, "read")
    await look()
    await go(frame)
    await at(frame, "place")
    await look()
    await go(frame)
    await at(frame, "password")
    await look()

    assert seen == [1, 2, 2, 3, 4]


@pytest.mark.parametrize("lang", ["es", "en"])
async def test_name_that_ends_with_a_dot_ends_its_sentence(
    site: FrameSite, person: TestPerson, page: Page, lang: str
) -> None:
    """No second full stop, in the frame or in what the host is told."""
    site.rename("Mi Tienda S.A.")
    init = site.init(await site.ready(page), person)
    del init["nonce"]
    await site.send(page, "init", init)
    frame = site.frame(page)
    await at(frame, "refused")
    if lang == "en":
        await frame.get_by_role("button", name="English").click()

    told = "Avisale a Mi Tienda S.A." if lang == "es" else "Tell Mi Tienda S.A."
    panel = frame.locator("#panel")
    await expect(panel).to_contain_text(told)
    await expect(panel).not_to_contain_text("S.A..")
    assert ".." not in (await site.wait(page, "error"))["message"]


@pytest.mark.parametrize("expired", [False, True])
async def test_frame_that_is_opened_alone_says_whose_it_is(
    site: FrameSite, page: Page, *, expired: bool
) -> None:
    """Who sent it, what to do, and that its time is over where it is."""
    token = site.token()
    if expired:
        site.expire(token)
    await page.goto(site.src(token))
    await at(page.main_frame, "alone")
    panel = page.locator("#panel")

    await expect(panel).to_contain_text("Estudio Contable Sur")
    title = "La sesión terminó" if expired else "Esta página no se abre sola"
    await expect(panel.get_by_role("heading")).to_have_text(title)
    if expired:
        await expect(panel).to_contain_text("Se terminó el tiempo")
    there = panel.get_by_role("link", name="Ir a ")
    assert await there.get_attribute("href") == site.origin
    await expect(panel.get_by_role("link", name="Verificar una firma")).to_be_visible()
    await page.get_by_role("button", name="English").click()
    await expect(panel).to_contain_text("ran out" if expired else "Go to that site")


async def test_rejecting_from_reading_says_what_the_code_is_for(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """And the steps keep their order, there and back."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await at(frame, "read")
    names = await frame.locator("#progress li").all_inner_texts()
    await frame.get_by_role("button", name="Rechazar…").click()
    await at(frame, "code")
    await expect(frame.locator("#panel")).to_contain_text("Para rechazar el documento")
    assert await frame.locator("#progress li").all_inner_texts() == names
    await ceremony.give_code(frame, person)
    await at(frame, "reject")
    await frame.get_by_role("button", name="Volver").click()
    await at(frame, "read")
    assert await frame.locator("#progress li").all_inner_texts() == names
    await go(frame)
    await at(frame, "place")
    assert await frame.locator("#progress li").all_inner_texts() == names


async def test_what_is_typed_wrongly_is_named_as_the_signer_reads_it(
    site: FrameSite, page: Page
) -> None:
    """CUIL and e-mail, and not the names that they have on the wire."""
    said = {"dni": "11222333", "email": "nadie@demo.example"}
    await site.open(page, None, userData=said, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await at(frame, "identify")
    alert = frame.locator(".field #alert")
    for cuil, email, told in (
        ("", "ana@demo.example", "Revisá el CUIL"),
        ("20-2675653", "ana@demo.example", "Revisá el CUIL"),
        ("20-26756539-2", "ana@demo.example", "Revisá el CUIL"),
        ("20-26756539-3", "ana", "Revisá el correo"),
        ("20-26756539-3", "", "Revisá el correo"),
    ):
        await frame.fill("#cuil", cuil)
        await frame.fill("#email", email)
        await go(frame)
        await expect(alert, f"{cuil} {email}").to_contain_text(told)
        await expect(alert).not_to_contain_text("campo")
        await frame.locator("#alert").evaluate("(e) => e.replaceChildren()")


async def test_file_that_is_refused_is_named_and_its_size_is_in_words(
    site: FrameSite, page: Page
) -> None:
    """The signer's own file by its name, the host's without; never in bytes."""
    await site.open(page, None, userData={"dni": "11222333", "email": "a@b.example"})
    frame = site.frame(page)
    await at(frame, "pick")
    uploads: list[str] = []
    page.on("request", lambda r: uploads.append(r.url) if r.method == "POST" else None)
    await frame.locator("#file").evaluate(
        """(input) => {
          const whole = new DataTransfer();
          whole.items.add(new File([new Uint8Array(50_000_001)], "grande.pdf"));
          input.files = whole.files;
          input.dispatchEvent(new Event("change"));
        }"""
    )
    await expect(frame.locator("#alert")).to_have_text(
        "No se abrió grande.pdf. El documento supera los 50 MB. "
        "Elegí otro archivo, o avisale a Estudio Contable Sur."
    )
    assert not [url for url in uploads if url.endswith("/document")]
    assert await site.errors(page) == []
    await page.evaluate(
        """([target, length]) => send("svc.load.file", { fileName: "grande.pdf",
             mime: "application/pdf", base64: "A".repeat(length) }, target)""",
        [site.iframe_url, 66_666_672],
    )
    error = await site.wait(page, "error")

    assert error["code"] == "DOCUMENT_TOO_LARGE"
    assert error["message"] == "El documento supera los 50 MB."
    await at(frame, "refused")
    await expect(frame.locator("#panel")).to_contain_text(error["message"])
