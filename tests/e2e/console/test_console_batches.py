"""A batch in the console, in a real browser and by keyboard alone."""

import base64
from typing import Any, Final

import pytest
from playwright.async_api import Page, expect

from tests.support.appliance.administrators import new_administrator
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    BATCHES,
    TestBackend,
    backend_of,
    prepared,
    ready_batch,
)
from tests.support.browsers.browsers import Opener, axe, press_on
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import held

_CUT_OFF: Final = """() => [...document.querySelectorAll("main *")]
  .filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth)
  .map((e) => e.outerHTML.slice(0, 120))"""


def _asked(backend: TestBackend, person: TestPerson, reference: str) -> dict[str, Any]:
    """A batch of two documents."""
    pdf = base64.b64encode(pdfs.one_page("Recibo")).decode()
    documents = [
        {"contenido": pdf, "nombre": f"recibo de sueldo {n}.pdf"} for n in range(2)
    ]
    answer = backend.client.post(
        "/api/integration/batches",
        json={
            "firmante": {"cuil": person.cuil},
            "documentos": documents,
            "referencia": reference,
        },
    )
    return ready_batch(backend.client, answer)


@pytest.mark.parametrize("width", [390, 1280])
async def test_batch_is_found_and_left_by_keyboard(
    page: Page, appliance: Appliance, open_page: Opener, width: int
) -> None:
    """From a search to its list, to one of its requests and back, and to all."""
    administrator = new_administrator(appliance)
    reference = f"recibos-2026-11-{width}"
    with backend_of(appliance) as backend:
        made = _asked(backend, appliance.new_person("Ana María Núñez"), reference)
        await page.set_viewport_size({"width": width, "height": 900})
        await administrator.sign_in(page, "/admin/requests")

        await page.get_by_role("searchbox").focus()
        await page.keyboard.insert_text(reference)
        await page.keyboard.press("Enter")
        documents = page.get_by_role("link", name="recibo de sueldo")
        await expect(documents).to_have_count(2)
        await open_page.picture(page, f"batch-searched-{width}", full=True)
        assert await page.evaluate(_CUT_OFF) == []
        assert await axe(page) == []

        await press_on(page, page.get_by_role("link", name=reference, exact=True))
        chip = page.get_by_role("link", name=f"Lote: {reference}")
        await expect(chip).to_be_visible()
        await expect(documents).to_have_count(2)
        await open_page.picture(page, f"batch-listed-{width}", full=True)
        assert await page.evaluate(_CUT_OFF) == []
        assert await axe(page) == []

        await press_on(page, page.get_by_role("link", name="Pendiente: 2"))
        await expect(page.get_by_role("link", name="Estado: Pendiente")).to_be_visible()
        await expect(documents).to_have_count(2)

        await press_on(page, documents.first)
        lote = page.get_by_role("link", name=reference, exact=True)
        await expect(lote).to_be_visible()
        await open_page.picture(page, f"batch-request-{width}", full=True)
        assert await page.evaluate(_CUT_OFF) == []
        assert await axe(page) == []

        await press_on(page, lote)
        await expect(page).to_have_url(
            administrator.url(f"/admin/requests?batch={made['loteId']}")
        )
        await press_on(page, chip)
        await expect(page).to_have_url(administrator.url("/admin/requests"))


@pytest.mark.parametrize("width", [390, 1280])
async def test_batch_is_followed_until_it_is_ready(
    page: Page, appliance: Appliance, open_page: Opener, width: int
) -> None:
    """Its progress stands above the list, and its requests come by themselves."""
    administrator = new_administrator(appliance)
    person = appliance.new_person("Ana María Núñez")
    pdf = base64.b64encode(pdfs.one_page(f"Recibo {width}")).decode()
    document = {"contenido": pdf, "nombre": "recibo de sueldo.pdf"}
    reference = f"en-camino-{width}"
    with backend_of(appliance) as backend:
        await page.set_viewport_size({"width": width, "height": 900})
        with held(appliance, "chores"):
            asked = backend.client.post(
                BATCHES,
                json={
                    "firmante": {"cuil": person.cuil},
                    "documentos": [document],
                    "referencia": reference,
                },
            )
            assert asked.status_code == 202, asked.text
            await administrator.sign_in(page, "/admin/requests")
            lote = page.get_by_role("link", name=reference, exact=True)
            await press_on(page, lote)
            progress = page.get_by_text("0 de 1 documentos revisados")
            await expect(progress).to_be_visible()
            await expect(page.get_by_text("En preparación")).to_be_visible()
            await open_page.picture(page, f"batch-prepared-{width}", full=True)
            assert await page.evaluate(_CUT_OFF) == []
            assert await axe(page) == []
        document_link = page.get_by_role("link", name="recibo de sueldo")
        await expect(document_link).to_have_count(1)
        await expect(progress).to_have_count(0)


@pytest.mark.parametrize("width", [390, 1280])
async def test_refused_batch_shows_its_errors(
    page: Page, appliance: Appliance, open_page: Opener, width: int
) -> None:
    """The first ten, and the others once they are asked for."""
    administrator = new_administrator(appliance)
    person = appliance.new_person("Ana María Núñez")
    broken = {"contenido": base64.b64encode(b"Hola").decode()}
    reference = f"con-errores-{width}"
    with backend_of(appliance) as backend:
        asked = backend.client.post(
            BATCHES,
            json={
                "firmante": {"cuil": person.cuil},
                "documentos": [broken] * 12,
                "referencia": reference,
            },
        )
        prepared(backend.client, asked)
        await page.set_viewport_size({"width": width, "height": 900})
        await administrator.sign_in(page, f"/admin/requests?q={reference}")
        field = page.get_by_text("documentos[0].contenido")
        await expect(field).to_be_visible()
        last = page.get_by_text("documentos[11].contenido")
        await expect(last).to_be_hidden()
        more = page.get_by_text("2 errores más")
        await more.focus()
        await page.keyboard.press("Enter")
        await expect(last).to_be_visible()
        await open_page.picture(page, f"batch-refused-{width}", full=True)
        assert await page.evaluate(_CUT_OFF) == []
        assert await axe(page) == []
