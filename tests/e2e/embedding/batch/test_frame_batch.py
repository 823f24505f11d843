"""A session that the backend opened for a batch, from the API to every signature."""

import base64
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect
from sqlalchemy import update

from appliance.bootstrap import ServiceRegistry
from appliance.database.tables import signature_request
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.signing_command import GivenParameters
from tests.support.appliance.appliance import TestPerson
from tests.support.appliance.backends import TestBackend, assert_valid
from tests.support.appliance.http_calls import sign
from tests.support.browsers import ceremony
from tests.support.browsers.batches import (
    NAMES,
    asked,
    listed,
    read_all,
    shown,
    token_for,
)
from tests.support.browsers.browsers import Opener, axe, press_on, resize, tab_to
from tests.support.browsers.frame_host import FrameSite
from tests.support.documents import pdfs


def ask_for_page_9(site: FrameSite, request: int) -> None:
    """Have a request want its mark on a page that its document has not."""
    preset = SignaturePreset(GivenParameters.of(page=9))

    async def change(front: ServiceRegistry) -> None:
        async with front.core.store.write() as transaction:
            await transaction.connection.execute(
                update(signature_request)
                .where(signature_request.c.id == request)
                .values(preset=preset.to_json())
            )

    site.appliance.do(change)


async def test_three_are_signed_with_one_password(
    site: FrameSite,
    person: TestPerson,
    page: Page,
    backend: TestBackend,
) -> None:
    """Each is read first; the host gets each by its own event, and one for all."""
    made = asked(backend, person)
    frame = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(frame, person)
    await expect(frame.locator("#title")).to_have_text("3 documentos para firmar")
    await expect(frame.locator("#read-count-label")).to_have_text("0 de 3 abiertos")
    await expect(frame.locator(".message p")).to_have_text("Tus recibos")
    assert await axe(frame) == []
    await ceremony.go(frame)
    for number, name in enumerate(NAMES, 1):
        await ceremony.at(frame, "read")
        await expect(frame.locator("#title")).to_have_text(name)
        others = "" if number == 3 else f" · {3 - number} más por abrir"
        await expect(frame.locator(".walk .hint")).to_have_text(
            f"Documento {number} de 3{others}"
        )
        # The list has shown it: it takes no room from each document.
        await expect(frame.locator(".message")).to_have_count(0)
        await ceremony.go(frame)
    await ceremony.at(frame, "password")
    await expect(frame.locator("#consent")).to_have_text(
        "Con tu contraseña firmás los 3 documentos; ya los abriste."
    )
    assert site.seen_requests(person) == [
        each["solicitudId"] for each in made["solicitudes"]
    ]

    await ceremony.sign(frame, person)
    await ceremony.at(frame, "done")
    end = await site.wait(page, "batch.completed")

    assert end == {
        "loteId": made["loteId"],
        "total": 3,
        "firmados": 3,
        "fallidos": 0,
    }
    told = await site.payloads(page, "signature.completed")
    assert [each["signedDocId"] for each in told] == [
        str(each["solicitudId"]) for each in made["solicitudes"]
    ]
    for each in told:
        assert_valid(
            site.appliance, base64.b64decode(each["delivery"]["fileBase64"]), 1
        )
        assert len(site.fetch(each["delivery"]["url"])) == each["document"]["size"]
    await expect(frame.locator("#outcome")).to_have_text(
        "3 firmados. Estudio Contable Sur ya los tiene."
    )
    dates = frame.locator(".results .hint")
    await expect(dates).to_have_text([re.compile(r"^\d\d/\d\d/\d{4} \d\d:\d\d")] * 3)
    check = frame.get_by_role("link", name="Página de verificación de febrero.pdf")
    shown_at = await check.get_attribute("href") or ""
    assert shown_at.startswith(f"{site.appliance.settings.verify_url}/")
    async with page.expect_download() as download:
        await frame.get_by_role("button", name="Descargar febrero-firmado.pdf").click()
    assert (await download.value).suggested_filename == "febrero-firmado.pdf"
    assert await axe(frame) == []


async def test_warnings_of_an_earlier_session_stand_above_the_password(
    site: FrameSite, person: TestPerson, page: Page, backend: TestBackend
) -> None:
    """Who opened a document before this session is told again what to know of it."""
    made = asked(backend, person, contents=[pdfs.javascript()])
    token = token_for(backend, made["loteId"])
    frame = await shown(site, page, token, person)
    await listed(frame, person)
    await read_all(frame)
    await expect(frame.locator("#warned")).to_have_count(0)

    frame = await shown(site, page, token, person)
    await ceremony.at(frame, "documents")
    await ceremony.go(frame)
    await ceremony.at(frame, "password")
    await expect(frame.locator("#warned")).to_contain_text(NAMES[0])
    await expect(frame.locator("#warned li")).to_have_count(1)
    await ceremony.sign(frame, person)

    await site.wait(page, "batch.completed")


async def test_page_that_comes_back_finds_what_it_left(
    site: FrameSite, person: TestPerson, page: Page, backend: TestBackend
) -> None:
    """What was opened stays so; one that was withdrawn meanwhile is not signed.

    A message that not all of them have is told with its document alone.
    """
    made = asked(backend, person)
    token = token_for(backend, made["loteId"])
    frame = await shown(site, page, token, person)
    await listed(frame, person)
    await ceremony.go(frame)
    await ceremony.read(frame)
    await expect(frame.locator("#title")).to_have_text("febrero.pdf")
    process = made["solicitudes"][1]["procesoId"]
    gone = backend.client.post(f"/api/integration/requests/{process}/cancel", json={})
    assert gone.status_code == 200, gone.text
    process = made["solicitudes"][2]["procesoId"]
    other = {"mensaje": "Este es el último"}
    changed = backend.client.patch(f"/api/integration/requests/{process}", json=other)
    assert changed.status_code == 200, changed.text

    frame = await shown(site, page, token, person)
    await ceremony.at(frame, "documents")
    await expect(frame.locator(".message")).to_have_count(0)
    states = frame.locator(".batch .state")
    await expect(states).to_have_text(["Abierto", "Retirado", "Sin abrir"])
    await ceremony.go(frame)
    await ceremony.at(frame, "read")
    await expect(frame.locator(".message p")).to_have_text("Este es el último")
    await ceremony.go(frame)
    await ceremony.at(frame, "password")
    await expect(frame.locator("#consent")).to_contain_text(
        "2 documentos que quedan; ya los abriste."
    )
    await ceremony.sign(frame, person)
    await ceremony.at(frame, "done")

    end = await site.wait(page, "batch.completed")
    assert (end["firmados"], end["fallidos"]) == (2, 1)
    await expect(frame.locator(".results .state")).to_have_text(
        ["Firmado", "Retirado", "Firmado"]
    )
    first = await site.payloads(page, "signature.completed")
    site.appliance.refresh(person)
    again = await shown(site, page, token_for(backend, made["loteId"]), person)
    await ceremony.give_code(again, person)
    await ceremony.at(again, "done")
    await site.wait(page, "batch.completed")
    repeated = await site.payloads(page, "signature.completed")
    assert [e["eventId"] for e in repeated] == [e["eventId"] for e in first]


async def test_one_is_rejected_and_the_rest_is_signed(
    site: FrameSite,
    person: TestPerson,
    page: Page,
    backend: TestBackend,
    pictures: Path | None,
) -> None:
    """The host is told of no rejection of the whole; a wrong password costs a try."""
    made = asked(backend, person, NAMES[:2])
    frame = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(frame, person)
    await ceremony.go(frame)
    await ceremony.at(frame, "read")
    await frame.get_by_role("button", name="Rechazar…").click()
    await ceremony.refuse(frame)
    await ceremony.at(frame, "documents")
    said = "Rechazaste enero.pdf. Todavía te falta uno."
    await expect(frame.get_by_role("status")).to_have_text(said)
    await expect(frame.locator(".success")).to_have_text(said)
    await expect(frame.get_by_role("alert")).to_be_hidden()
    await expect(frame.locator("#title")).to_have_text("1 documento para firmar")
    await expect(frame.locator("#read-count-label")).to_have_text("0 de 1 abierto")
    await expect(frame.locator("#tally")).to_have_text(
        "En total, 2 documentos: 1 sin abrir, 1 rechazado."
    )
    assert await axe(frame) == []
    if pictures is not None:
        for size in ((1280, 800), (390, 844)):
            await resize(page, size, frame)
            await page.screenshot(path=pictures / f"batch-rejected-{size[0]}.png")
    await read_all(frame, 1)
    await expect(frame.locator("#consent")).to_have_text(
        "Con tu contraseña firmás 1 documento; ya lo abriste."
    )
    await frame.fill("#password", "no es esta contraseña")
    await ceremony.go(frame)
    await expect(frame.get_by_role("alert")).to_contain_text("contraseña")
    await ceremony.sign(frame, person)
    await ceremony.at(frame, "done")

    end = await site.wait(page, "batch.completed")
    assert (end["firmados"], end["fallidos"]) == (1, 1)
    assert await site.payloads(page, "rejected") == []
    await expect(frame.locator("#title")).to_have_text("1 firmado, 1 rechazado")
    await expect(frame.locator("#outcome")).to_have_text(
        "1 firmado. Estudio Contable Sur ya lo tiene."
    )


async def test_what_cannot_be_signed_is_told_beside_its_document(
    site: FrameSite,
    person: TestPerson,
    page: Page,
    backend: TestBackend,
    pictures: Path | None,
) -> None:
    """The host has the others at once; the signer leaves it at these."""
    made = asked(backend, person, NAMES[:2])
    ask_for_page_9(site, made["solicitudes"][1]["solicitudId"])
    frame = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(frame, person)
    await read_all(frame, 2)
    await ceremony.sign(frame, person)
    await ceremony.at(frame, "partial")
    await site.wait(page, "signature.completed")
    await expect(frame.locator("#title")).to_have_text("1 firmado, 1 sin firmar")
    await expect(frame.locator(".results .state.pending")).to_contain_text(
        "No se firmó: "
    )
    assert await site.payloads(page, "batch.completed") == []
    assert await axe(frame) == []
    if pictures is not None:
        await page.screenshot(path=pictures / "batch-partial.png")

    await frame.get_by_role("button", name="Terminar así").click()
    await ceremony.at(frame, "done")

    end = await site.wait(page, "batch.completed")
    assert (end["firmados"], end["fallidos"]) == (1, 1)
    assert len(await site.payloads(page, "signature.completed")) == 1


async def test_keyboard_alone_signs_in_english(
    site: FrameSite,
    person: TestPerson,
    page: Page,
    backend: TestBackend,
    pictures: Path | None,
) -> None:
    """Nobody needs a mouse; a renewed session goes on where it was."""
    made = asked(backend, person, NAMES[:2])
    frame = await shown(site, page, token_for(backend, made["loteId"]), person)
    await ceremony.at(frame, "code")
    await press_on(page, frame.locator("#language"))
    await tab_to(page, frame.locator("#code"))
    await page.keyboard.type(person.totp.now())
    await page.keyboard.press("Enter")
    await ceremony.at(frame, "documents")
    await press_on(page, frame.get_by_role("button", name="febrero.pdf"))
    await ceremony.at(frame, "read")
    token = token_for(backend, made["loteId"])
    await site.send(page, "session.renew", {"sessionToken": token})
    await press_on(page, frame.get_by_role("button", name="See all of them"))
    await ceremony.at(frame, "documents")
    await expect(frame.locator("#read-count-label")).to_have_text("1 of 2 opened")
    main = frame.locator("#bar .primary")
    await press_on(page, main)
    await ceremony.at(frame, "read")
    await expect(frame.locator("#title")).to_have_text("enero.pdf")
    await press_on(page, main)
    await ceremony.at(frame, "password")
    if pictures is not None:
        await frame.locator("summary").click()
        await page.screenshot(path=pictures / "batch-password-en.png")
    await tab_to(page, frame.locator("#password"))
    await page.keyboard.type(person.signing_password)
    await page.keyboard.press("Enter")
    await ceremony.at(frame, "done")

    end = await site.wait(page, "batch.completed")
    assert (end["firmados"], end["fallidos"]) == (2, 0)
    async with page.expect_download() as download:
        await press_on(page, frame.get_by_role("button", name="Download enero"))
    assert (await download.value).suggested_filename == "enero-firmado.pdf"


async def test_one_document_stays_until_the_next_is_there(
    site: FrameSite, person: TestPerson, page: Page, backend: TestBackend
) -> None:
    """Nothing is emptied in between, and the focus stays on the button."""
    made = asked(backend, person)
    frame = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(frame, person)
    await ceremony.go(frame)
    await ceremony.at(frame, "read")
    await frame.locator(".page .paper").wait_for()
    await frame.evaluate(
        """() => {
          window.seen = [];
          const look = () => {
            const papers = document.querySelectorAll("#viewer .page .paper").length;
            window.seen.push(`${document.body.dataset.step} ${papers}`);
          };
          new MutationObserver(look).observe(document.body, {
            subtree: true, childList: true, attributeFilter: ["data-step"],
          });
        }"""
    )

    main = frame.locator("#bar .primary")
    await press_on(page, main)
    await expect(frame.locator("#title")).to_have_text("febrero.pdf")
    await expect(frame.locator("#viewer .textLayer")).to_contain_text("febrero")
    await expect(main).to_be_focused()
    await press_on(page, frame.get_by_role("button", name="Documento anterior"))
    await expect(frame.locator("#title")).to_have_text("enero.pdf")
    await expect(frame.locator("#title")).to_be_focused()
    await expect(frame.locator("#viewer .textLayer")).to_contain_text("enero")

    assert set(await frame.evaluate("window.seen")) == {"read 1"}


async def test_session_that_runs_out_says_so(
    site: FrameSite, person: TestPerson, page: Page, backend: TestBackend
) -> None:
    """In the midst of reading; a later one goes on with what was read."""
    made = asked(backend, person)
    token = token_for(backend, made["loteId"])
    frame = await shown(site, page, token, person)
    await listed(frame, person)
    for name in NAMES[:2]:
        async with page.expect_response("**/embed/api/seen"):
            await ceremony.go(frame)
            await expect(frame.locator("#title")).to_have_text(name)
    site.expire(token)
    await ceremony.go(frame)
    await ceremony.at(frame, "blocked")
    await site.wait(page, "error")
    assert await site.errors(page) == ["SESSION_TOKEN_EXPIRED"]

    site.appliance.refresh(person)
    later = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(later, person)
    await expect(later.locator("#read-count-label")).to_have_text("2 de 3 abiertos")


async def test_what_was_on_the_screen_stays_opened_for_who_leaves(
    site: FrameSite, person: TestPerson, page: Page, backend: TestBackend
) -> None:
    """By *Cancelar*, or by closing the page: nothing of it is pressed."""
    made = asked(backend, person)
    frame = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(frame, person)
    await ceremony.go(frame)
    await site.wait(page, "document.loaded")
    await ceremony.leave(frame)
    await ceremony.at(frame, "cancelled")
    first, second, _ = (each["solicitudId"] for each in made["solicitudes"])
    assert site.seen_requests(person) == [first]

    site.appliance.refresh(person)
    later = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(later, person)
    await expect(later.locator("#read-count-label")).to_have_text("1 de 3 abiertos")
    async with page.expect_response("**/embed/api/seen") as noted:
        await ceremony.go(later)
    assert (await noted.value).status == 200
    await page.goto("about:blank")
    assert site.seen_requests(person) == [first, second]


async def test_nobody_else_gets_further(
    site: FrameSite, person: TestPerson, page: Page, backend: TestBackend
) -> None:
    """Somebody else is as unknown there as somebody who does not exist."""
    other = site.appliance.new_person("Otra Persona")
    made = asked(backend, person, NAMES[:1])
    frame = await shown(site, page, token_for(backend, made["loteId"]), other)

    await site.wait(page, "signer.unknown")
    await ceremony.at(frame, "identify")


async def test_host_that_cancels_too_late_is_told_what_was_signed(
    site: FrameSite, person: TestPerson, page: Page, backend: TestBackend
) -> None:
    """Signed by the API while the frame waits for the password."""
    made = asked(backend, person, NAMES[:2])
    frame = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(frame, person)
    await read_all(frame, 2)
    with site.appliance.client(person) as client:
        for each in made["solicitudes"]:
            answer = sign(client, person, each["solicitudId"])
            assert answer.status_code == 200, answer.text

    await site.send(page, "cancel", {})

    end = await site.wait(page, "batch.completed")
    assert (end["firmados"], end["fallidos"]) == (2, 0)
    assert len(await site.payloads(page, "signature.completed")) == 2
    assert await site.payloads(page, "cancelled") == []


async def test_batch_that_is_rejected_whole_names_itself(
    site: FrameSite,
    person: TestPerson,
    page: Page,
    backend: TestBackend,
    pictures: Path | None,
) -> None:
    """The host hears of the last rejection alone; no browser complains of a focus."""
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text))
    made = asked(backend, person, NAMES[:2])
    frame = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(frame, person)
    for number in range(2):
        await ceremony.go(frame)
        await ceremony.at(frame, "read")
        await frame.get_by_role("button", name="Rechazar…").click()
        await ceremony.at(frame, "reject")
        await expect(frame.get_by_role("button", name="Cancelar")).to_have_count(0)
        await frame.get_by_role("button", name="Rechazar definitivamente").click()
        dialog = frame.get_by_role("dialog")
        keep = dialog.get_by_role("button", name="No rechazar")
        await expect(keep).to_be_focused()
        if number == 0 and pictures is not None:
            await page.screenshot(path=pictures / "batch-reject.png")
        await dialog.get_by_role("button", name="Sí, rechazar").click()
        await ceremony.at(frame, "rejected" if number else "documents")

    await expect(frame.locator("#title")).to_have_text("Rechazaste 2 documentos")
    assert await site.wait(page, "rejected") == {
        "idemKey": "recibos",
        "loteId": made["loteId"],
    }
    assert await site.payloads(page, "batch.completed") == []
    assert [said for said in complaints if "autofocus" in said.lower()] == []


@pytest.mark.parametrize("size", ["phone", "desktop"])
async def test_what_differs_in_the_signatures_is_told_of_each(
    site: FrameSite,
    person: TestPerson,
    open_page: Opener,
    backend: TestBackend,
    size: str,
) -> None:
    """In the list, beside each document, and where one password signs them all."""
    page = await open_page(size)
    debt: dict[str, Any] = {"motivo": "Acepto deber 900.000 pesos", "visible": False}
    stamps = [{"motivo": "Recibí conforme"}, debt, {"motivo": "Recibí conforme"}]
    made = asked(backend, person, stamps=stamps)
    frame = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(frame, person)
    plain = "Motivo de la firma: Recibí conforme"
    unseen = "Tu marca: no se va a ver en ninguna página"
    told = [plain, f"Motivo de la firma: {debt['motivo']} · {unseen}", plain]
    lines = frame.locator(".says")
    await expect(lines).to_have_text(told)
    await open_page.picture(page, f"frame-terms-list-{size}")
    assert await axe(frame) == []
    await ceremony.go(frame)
    for reason in ("Recibí conforme", debt["motivo"], "Recibí conforme"):
        await ceremony.at(frame, "read")
        await expect(frame.locator(".terms dd").first).to_have_text(reason)
        await ceremony.go(frame)
    await ceremony.at(frame, "password")
    await expect(lines).to_have_text(told)
    await expect(lines.nth(1)).to_be_visible()
    await open_page.picture(page, f"frame-terms-batch-{size}")
    assert await axe(frame) == []
    await expect(frame.locator("#password")).to_be_focused()
    await page.keyboard.press("Shift+Tab")
    await expect(frame.locator("ol.names")).to_be_focused()


async def test_what_all_signatures_say_is_told_once(
    site: FrameSite, person: TestPerson, page: Page, backend: TestBackend
) -> None:
    """Above the list, and above the password."""
    made = asked(backend, person, stamps=[{"motivo": "Recibí conforme"}] * 3)
    frame = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(frame, person)
    reason = frame.locator(".terms dd")
    await expect(reason).to_have_text(["Recibí conforme"])
    await expect(frame.locator(".says")).to_have_count(0)
    await read_all(frame)
    await expect(reason).to_have_text(["Recibí conforme"])
    await expect(frame.locator(".says")).to_have_count(0)
