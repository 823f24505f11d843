"""The drill of an outage: *Inicio* and the menu say by themselves what is broken."""

import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import pytest
from playwright.async_api import expect

from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.vocab import SignatureLevel, TimestampPolicy
from tests.support.appliance.administrators import new_administrator
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.http_calls import sign
from tests.support.browsers.browsers import SCHEMES, Opener, axe
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import execute, harmed
from tests.support.faults.role_faults import handed_over, stopped
from tests.support.services.fake_tsa import Mode
from tests.support.services.outside_services import (
    FIRST,
    OutsideServices,
    running_outside_services,
)

_LONG_MS: Final = 120_000
"""A process counts as silent after 15 s; the rest is the machine's."""
_TROUBLES: Final = (
    ("Un proceso no está funcionando", "workers"),
    ("El disco de los documentos está casi lleno", "ground"),
    ("Una autoridad de sellado de tiempo no responde", "tsas"),
    ("Hay webhooks que no se entregan", "delivery"),
    ("Hay correos que no se entregan", "delivery"),
    ("No hay una copia de seguridad reciente", "ground"),
)
_LATER: Final = "2100-01-01 00:00:00.000000"
_DISK: Final = {
    "rubrica_record_up": 1.0,
    "rubrica_documents_disk_free_bytes": 400_000_000.0,
}


@pytest.fixture(scope="module")
def world() -> Iterator[OutsideServices]:
    """Timestamping authorities outside."""
    with running_outside_services() as made:
        yield made


@pytest.fixture(scope="module")
def own(world: OutsideServices) -> Iterator[Appliance]:
    """An appliance that the drill may break."""
    with harmed(more=world.settings) as made:
        yield made


@contextmanager
def written(appliance: Appliance, begin: str, end: str) -> Iterator[None]:
    """What a role would write to the record, for the time of a block."""
    execute(appliance, begin)
    try:
        yield
    finally:
        execute(appliance, end)


@contextmanager
def outage(own: Appliance, world: OutsideServices) -> Iterator[None]:
    """All of it at once: worker, TSA, mail, webhook, backup, disk."""
    person = own.new_person()
    level, preferred = SignatureLevel.B_T, TimestampPolicy.PREFERRED
    wishes = ProfileWishes(level, preferred, tsa=(FIRST,))
    request = own.new_request(person, pdfs.one_page(), wishes=wishes)
    at = "2026-01-01 00:00:00.000000"
    with ExitStack() as faults:
        world.first.mode = Mode.HTTP_ERROR
        with own.client(person) as client:
            assert sign(client, person, request).is_success
        hook = secrets.token_hex(8)
        for each in (
            written(
                own,
                "INSERT INTO webhook_endpoint (id, integrator, url, label, events, "  # noqa: S608 (ours)
                f"secret_sealed, created, failing_since) SELECT '{hook}', id, "
                f"'https://a/', '', '[]', '', '{at}', '{at}' FROM integrator LIMIT 1",
                f"UPDATE webhook_endpoint SET removed = '{at}' WHERE id = '{hook}'",  # noqa: S608 (ours)
            ),
            written(
                own,
                "INSERT INTO mail_message (id, person, kind, detail, state, answer, "  # noqa: S608 (ours)
                "tries, due, created, ended, fence) SELECT 'drill', id, 'invitation', "
                f"'{{}}', 'refused', '550', 1, '{at}', '{at}', '{_LATER}', 0 "
                "FROM person LIMIT 1",
                "DELETE FROM mail_message WHERE id = 'drill'",
            ),
            written(
                own,
                f"INSERT INTO installation (name, value) VALUES ('backup', '{at}Z')",  # noqa: S608 (ours)
                "DELETE FROM installation WHERE name = 'backup'",
            ),
            handed_over(own, "chores", **_DISK),
            stopped(own, "signing-2"),
        ):
            faults.enter_context(each)
        yield
    world.first.mode = Mode.GOOD


@pytest.mark.parametrize("size", ["phone", "desktop"])
async def test_outage_is_told_wherever_an_administrator_stands(
    size: str, open_page: Opener, own: Appliance, world: OutsideServices
) -> None:
    """Nobody reloads a page; from *Inicio* the keyboard leads to what is wrong."""
    marta = new_administrator(own)
    home, people = await open_page(size), await open_page(size)
    await marta.sign_in(home, "/admin/")
    await people.goto(marta.url("/admin/people"))
    mark = people.locator("#health-mark .mark")
    troubles = home.locator(".troubles li")

    with outage(own, world):
        for title, section in _TROUBLES:
            told = troubles.filter(has_text=title)
            await expect(told.first).to_be_visible(timeout=_LONG_MS)
            link = told.first.get_by_role("link")
            await expect(link).to_have_attribute("href", f"/admin/health#{section}")
        await expect(mark).to_have_attribute("data-tone", "bad", timeout=_LONG_MS)
        await expect(people.locator("#health-said")).to_contain_text(
            "Hay algo que no funciona."
        )
        for scheme in SCHEMES:
            await home.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert await axe(home) == []
            await open_page.picture(home, f"console-outage-{size}-{scheme}", full=True)
        await open_page.picture(people, f"console-outage-mark-{size}")
        worker = troubles.filter(has_text=_TROUBLES[0][0]).first
        await worker.get_by_role("link").focus()
        await home.keyboard.press("Enter")
        await expect(home).to_have_url(re.compile("/admin/health#workers$"))
        await expect(home.locator("h2#workers")).to_be_in_viewport()
        assert await axe(home) == []
        await open_page.picture(home, f"console-outage-health-{size}", full=True)

    await home.goto(marta.url())
    for title, _ in _TROUBLES:
        if "sellado" not in title:
            gone = troubles.filter(has_text=title)
            await expect(gone).to_have_count(0, timeout=_LONG_MS)


@pytest.mark.parametrize("size", ["phone", "desktop"])
async def test_failed_request_is_asked_again(
    size: str, open_page: Opener, own: Appliance
) -> None:
    """Its page says why, that nothing tries it again, and the keyboard asks again."""
    person = own.new_person()
    request = own.new_request(person, pdfs.one_page(f"de nuevo {size}"))
    execute(
        own,
        "UPDATE signature_request SET state = 'fallida', reason = 'TSA_UNAVAILABLE' "  # noqa: S608 (ours)
        f"WHERE id = {request}",
    )
    marta = new_administrator(own)
    page = await open_page(size)
    await marta.sign_in(page, f"/admin/requests/{request}")
    alert = page.locator("#request .alert")
    await expect(alert).to_contain_text("No se reintenta.")
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert await axe(page) == []
        await open_page.picture(page, f"console-failed-{size}-{scheme}")

    await page.get_by_role("button", name="Pedir de nuevo").focus()
    await page.keyboard.press("Enter")

    await expect(page.get_by_text("reemplaza a la que falló")).to_be_visible()
    assert not page.url.endswith(f"/{request}")
    with own.client(person) as client:
        answer = sign(client, person, int(page.url.rpartition("/")[2]))
    assert answer.is_success
