"""What the console tells at length: nothing is cut off, however narrow it is."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.async_api import Page, expect
from sqlalchemy import delete, insert

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from appliance.domain.audit.verification import AuditCheck
from appliance.domain.ids import new_id
from appliance.domain.mail.mails import MailKind, MailState
from appliance.record.installation_store import AUDIT, note_audit_check
from tests.support.appliance.administrators import new_administrator
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backends import backend_of
from tests.support.browsers.browsers import axe, press_on
from tests.support.documents import pdfs
from tests.support.faults.altered_rows import altered

_TURNS: Final = (1, 1, 2, 3)
_ANSWER: Final = "452 no room for this mail at the moment, please try again later"
_CUT_OFF: Final = """() => [...document.querySelectorAll("main *")]
  .filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth)
  .map((e) => e.outerHTML.slice(0, 120))"""

_LOOSE: Final = """() => [...document.querySelectorAll("main td[data-label]")]
  .filter((cell) => [...cell.childNodes]
    .filter((e) => e.nodeType === Node.ELEMENT_NODE || e.textContent.trim()).length > 1)
  .map((cell) => cell.outerHTML.slice(0, 200))"""
"""Cells of several parts: on a phone each but the first stands below the label."""


@pytest.fixture
def wrong_audit(appliance: Appliance) -> Iterator[None]:
    """A check of the audit that found much."""

    async def note(front: ServiceRegistry) -> None:
        outcome = AuditCheck(front.clock.now(), 1200, 12, 45_000, 340)
        await note_audit_check(front.settings, outcome)

    async def forget(front: ServiceRegistry) -> None:
        async with front.core.store.write() as transaction:
            await transaction.connection.execute(
                delete(tables.installation).where(tables.installation.c.name == AUDIT)
            )

    appliance.do(note)
    yield
    appliance.do(forget)


async def _mails(front: ServiceRegistry, person: str, request: int) -> None:
    """One mail in each state, as if it had been tried."""
    now = front.core.clock.now()
    async with front.core.store.write() as transaction:
        for state in MailState:
            await transaction.connection.execute(
                insert(tables.mail_message).values(
                    id=new_id(),
                    person=person,
                    request=request,
                    kind=MailKind.REMINDER.value,
                    detail={},
                    state=state.value,
                    answer=_ANSWER,
                    tries=2,
                    due=now,
                    created=now,
                    ended=None if state is MailState.PENDING else now,
                    fence=0,
                )
            )


@pytest.mark.parametrize("width", [390, 1280])
async def test_turns_and_mails_fit(
    page: Page, appliance: Appliance, width: int
) -> None:
    """On a phone and on a desk: a request, its signer, and the integrator's mail."""
    administrator = new_administrator(appliance)
    people = [appliance.new_person(f"Ana María Núñez {n}") for n in "abcd"]
    with backend_of(appliance) as backend:
        signers = [
            {"cuil": person.cuil, "turno": turn}
            for person, turn in zip(people, _TURNS, strict=True)
        ]
        told = backend.made(pdfs.one_page(), *people, firmantes=signers)
        first = told["firmantes"][0]
        who, request = first["personaId"], first["solicitudId"]
        appliance.do(lambda front: _mails(front, who, request))
        await page.set_viewport_size({"width": width, "height": 900})
        await administrator.sign_in(page, f"/admin/requests/{request}")
        await expect(page.get_by_text("En espera de otro firmante")).to_have_count(2)
        assert await page.evaluate(_CUT_OFF) == []
        for path in (
            f"/admin/people/{who}",
            f"/admin/integrators/{backend.code}/mail",
        ):
            await page.goto(administrator.url(path))
            assert await page.evaluate(_CUT_OFF) == []


@pytest.mark.parametrize("width", [390, 1280])
async def test_copy_and_what_was_wrong_fit(
    page: Page, appliance: Appliance, width: int
) -> None:
    """A repaired document: both files, both hashes and all warnings."""
    administrator = new_administrator(appliance)
    with backend_of(appliance) as backend:
        person = appliance.new_person()
        told = backend.made(pdfs.javascript() + b"tail", person)
        request = told["firmantes"][0]["solicitudId"]
        await page.set_viewport_size({"width": width, "height": 900})
        await administrator.sign_in(page, f"/admin/requests/{request}")
        for label in (
            "Descargar la copia que se firma",
            "Descargar el archivo tal como llegó",
        ):
            await expect(page.get_by_role("link", name=label)).to_be_visible()
        await expect(page.get_by_text("distinta. Tenía bytes")).to_have_count(2)
        assert await page.evaluate(_CUT_OFF) == []


@pytest.mark.usefixtures("wrong_audit")
@pytest.mark.parametrize("width", [390, 1280])
async def test_wrong_audit_is_told_beside_its_labels(
    page: Page, appliance: Appliance, width: int
) -> None:
    """*Salud*: state, what to do and what was found, each in its cell."""
    administrator = new_administrator(appliance)
    await page.set_viewport_size({"width": width, "height": 900})
    await administrator.sign_in(page, "/admin/health")
    row = page.get_by_role("row", name="Última verificación de la auditoría")
    await expect(row).to_contain_text("12 cadenas rotas, 340 hechos sin explicación")
    await expect(row).to_contain_text("Ejecutá rubrica audit verify")
    assert await page.evaluate(_LOOSE) == []
    assert await page.evaluate(_CUT_OFF) == []


@pytest.mark.parametrize("width", [390, 1280])
async def test_refused_key_says_why_and_leads_to_the_way_out(
    page: Page, appliance: Appliance, width: int
) -> None:
    """Of a person whose name somebody changed; by keyboard."""
    administrator = new_administrator(appliance)
    person = appliance.new_person("María Belén Fernández Ocampo")
    here = f"/admin/people/{person.id}"
    await page.set_viewport_size({"width": width, "height": 900})
    with altered(appliance, tables.person, person.id, name="María Belén F. de Paz"):
        await administrator.sign_in(page, here)
        card = page.get_by_role("article")
        await expect(card).to_contain_text("Los procesos de firma rechazan esta clave.")
        assert await axe(page) == []
        assert await page.evaluate(_CUT_OFF) == []
        await press_on(page, card.get_by_role("link", name="Empezar de nuevo"))
        await page.wait_for_url(administrator.url(f"{here}/credentials/reissue"))
