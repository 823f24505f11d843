"""What a backend wants to go wrong in a session, as the host's page is told of it.

Source: docs/integration.md, "Test mode".
"""

from typing import Any

from playwright.async_api import Page

from appliance.domain.integrators.integrators import SessionFault
from tests.support.appliance.appliance import TestPerson
from tests.support.appliance.backends import TestBackend, backend_of
from tests.support.browsers import ceremony
from tests.support.browsers.frame_host import FrameSite
from tests.support.documents import pdfs

PDF = pdfs.one_page()


def faulty(
    backend: TestBackend, person: TestPerson, fault: SessionFault
) -> tuple[str, dict[str, Any]]:
    """A token, and what is asked for in its session, which is to go wrong so."""
    made = backend.made(PDF, person)
    answer = backend.client.post(
        "/api/integration/sessions",
        json={"procesoId": made["procesoId"], "falla": fault.value},
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["tokenSession"], made


async def to_the_password(
    site: FrameSite, page: Page, token: str, person: TestPerson
) -> None:
    """Embed the frame, and press the button that signs."""
    await site.visit(page)
    await site.mount(page, token)
    await site.wait(page, "ready")
    await site.send(page, "init", site.init(token, person))
    await site.wait(page, "handshake.ack")
    frame = site.frame(page)
    await ceremony.give_code(frame, person)
    await ceremony.read(frame)
    await ceremony.choose_place(frame)
    await ceremony.sign(frame, person)


async def test_token_is_over(site: FrameSite, person: TestPerson, page: Page) -> None:
    """Told as of any other: the page is ready, then in error."""
    with backend_of(site.appliance, code=site.code) as backend:
        token, _ = faulty(backend, person, SessionFault.EXPIRED)

        await site.visit(page)
        await site.mount(page, token)
        await site.wait(page, "error")

    assert await site.errors(page) == ["SESSION_TOKEN_EXPIRED"]


async def test_hsm_is_busy(site: FrameSite, person: TestPerson, page: Page) -> None:
    """The host is told that it may be tried again; nothing is signed."""
    with backend_of(site.appliance, code=site.code) as backend:
        token, made = faulty(backend, person, SessionFault.BUSY)

        await to_the_password(site, page, token, person)
        told = await site.wait(page, "error")

        assert (told["code"], told["retryable"]) == ("HSM_UNAVAILABLE", True)
        assert backend.read(made["procesoId"])["estado"] == "pendiente"


async def test_tsa_is_slow(site: FrameSite, person: TestPerson, page: Page) -> None:
    """It is signed all the same."""
    with backend_of(site.appliance, code=site.code) as backend:
        token, made = faulty(backend, person, SessionFault.SLOW)

        await to_the_password(site, page, token, person)
        await site.wait(page, "signature.completed")

        assert backend.read(made["procesoId"])["estado"] == "firmada"


async def test_signer_rejects(site: FrameSite, person: TestPerson, page: Page) -> None:
    """In place of signing; the host is told as of any rejection."""
    with backend_of(site.appliance, code=site.code) as backend:
        token, made = faulty(backend, person, SessionFault.REJECTION)

        await to_the_password(site, page, token, person)
        await site.wait(page, "rejected")

        told = backend.read(made["procesoId"])
        assert told["estado"] == "rechazada"
        assert told["firmantes"][0]["motivo"] == "Rechazo de prueba"
