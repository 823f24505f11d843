"""Turns and mails in the console: nothing of them is cut off, however narrow it is."""

from typing import Final

import pytest
from playwright.async_api import Page, expect
from sqlalchemy import insert

from appliance.bootstrap import ServiceRegistry
from appliance.core.database import tables
from appliance.domain.ids import new_id
from appliance.domain.mail.mails import MailKind, MailState
from tests.support.appliance.administrators import new_administrator
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backends import backend_of
from tests.support.documents import pdfs

_TURNS: Final = (1, 1, 2, 3)
_ANSWER: Final = "452 no room for this mail at the moment, please try again later"
_CUT_OFF: Final = """() => [...document.querySelectorAll("main *")]
  .filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth)
  .map((e) => e.outerHTML.slice(0, 120))"""


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
