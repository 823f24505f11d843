"""A session that the backend opened for one request, from the API to the signature."""

from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.support.appliance.appliance import TestPerson
from tests.support.appliance.backends import (
    TestBackend,
    assert_valid,
    backend_of,
    sign,
)
from tests.support.browsers import ceremony
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import execute

PDF = pdfs.one_page()
_MESSAGE = "Es tu recibo de noviembre.\nAvisanos si algo no está bien."


def opened(backend: TestBackend, **wanted: Any) -> httpx.Response:
    """The answer to the backend that opens a session."""
    return backend.client.post("/api/integration/sessions", json=wanted)


async def show(site: FrameSite, page: Page, token: str, person: TestPerson) -> None:
    """Embed the frame with a token, and have it ready for its signer."""
    await site.visit(page)
    await site.mount(page, token)
    await site.wait(page, "ready")
    await site.send(page, "init", site.init(token, person))
    await site.wait(page, "handshake.ack")


async def test_one_request_is_signed_and_told_again(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """No list, no file to choose: the document and its message, once proven who signs.

    A later session for it tells the same event.
    """
    site.new_request(person, PDF, "otro.pdf")
    with backend_of(site.appliance, code=site.code) as backend:
        made = backend.made(PDF, person, mensaje=_MESSAGE)
        told = opened(backend, procesoId=made["procesoId"]).json()
        assert told["solicitudId"] == made["firmantes"][0]["solicitudId"]

        await show(site, page, told["tokenSession"], person)
        frame = site.frame(page)
        await ceremony.give_code(frame, person)
        await ceremony.at(frame, "read")
        await expect(frame.locator(".message p")).to_have_text(_MESSAGE)
        await expect(
            frame.get_by_role("button", name="Volver a la lista")
        ).to_have_count(0)
        await ceremony.whole_of_picked(frame, person)
        completed = await site.wait(page, "signature.completed")

        assert completed["signedDocId"] == str(told["solicitudId"])
        after = backend.read(made["procesoId"])
        assert after["estado"] == "firmada"
        assert [e["evento"] for e in after["historia"]] == [
            "creada",
            "vista",
            "firmada",
        ]

        site.appliance.refresh(person)
        again = opened(backend, solicitudId=told["solicitudId"]).json()
        await show(site, page, again["tokenSession"], person)
        await ceremony.give_code(site.frame(page), person)
        repeated = await site.wait(page, "signature.completed")
        assert repeated["eventId"] == completed["eventId"]


async def test_request_that_fails_while_it_is_read_is_over(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The way on says so, and leads neither to the password nor to a repetition."""
    with backend_of(site.appliance, code=site.code) as backend:
        made = backend.made(PDF, person)
        told = opened(backend, procesoId=made["procesoId"]).json()
    await show(site, page, told["tokenSession"], person)
    frame = site.frame(page)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "read")
    execute(
        site.appliance,
        "UPDATE signature_request SET state = 'fallida', reason = 'TSA_UNAVAILABLE' "  # noqa: S608 (ours)
        f"WHERE id = {told['solicitudId']}",
    )
    await ceremony.read(frame)

    await ceremony.at(frame, "failed")
    error = await site.wait(page, "error")
    assert (error["code"], error["category"]) == ("TSA_UNAVAILABLE", "terminal")
    assert error["retryable"] is False


async def test_nobody_else_gets_further(
    site: FrameSite,
    person: TestPerson,
    page: Page,
) -> None:
    """Somebody else is as unknown there as somebody who does not exist."""
    other = site.appliance.new_person("Otra Persona")
    with backend_of(site.appliance, code=site.code) as backend:
        made = backend.made(PDF, person)
        told = opened(backend, procesoId=made["procesoId"]).json()

        await show(site, page, told["tokenSession"], other)

        await site.wait(page, "signer.unknown")
        await ceremony.at(site.frame(page), "identify")


async def test_no_document_comes_with_it(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """An init that brings a document is refused: the backend said what is signed."""
    with backend_of(site.appliance, code=site.code) as backend:
        made = backend.made(PDF, person)
        told = opened(backend, procesoId=made["procesoId"]).json()
        await site.visit(page)
        await site.mount(page, told["tokenSession"])
        await site.wait(page, "ready")
        init = site.init(told["tokenSession"], person, autoLoadFile=file_of(PDF))
        await site.send(page, "init", init)
        await site.wait(page, "error")

        assert await site.errors(page) == ["INIT_INVALID"]
        (told,) = await site.payloads(page, "error")
        assert "no tiene que mandar ningún documento" in told["message"]


async def test_backend_is_told_what_cannot_be_opened(
    site: FrameSite, person: TestPerson
) -> None:
    """What is not there, somebody else's, withdrawn, waiting, or asked for wrongly."""
    other = site.appliance.new_person("Otra Persona")
    with (
        backend_of(site.appliance, code=site.code) as backend,
        backend_of(site.appliance) as stranger,
    ):
        made = backend.made(PDF, person, other)
        first, second = (each["solicitudId"] for each in made["firmantes"])

        assert opened(backend).status_code == 201
        assert opened(backend).json()["solicitudId"] is None
        for wrong, code in (
            (opened(stranger, procesoId=made["procesoId"]), "SOLICITUD_NOT_FOUND"),
            (opened(stranger, solicitudId=first), "SOLICITUD_NOT_FOUND"),
            (opened(backend, solicitudId=2**50), "SOLICITUD_NOT_FOUND"),
            (opened(backend, solicitudId=second), "STATE"),
            (opened(backend, solicitudId=first, procesoId="x"), "FIELD_INVALID"),
            (opened(backend, otra=1), "FIELD_UNKNOWN"),
        ):
            assert wrong.json()["code"] == code
        backend.client.post(
            f"/api/integration/requests/{made['procesoId']}/cancel", json={}
        )
        assert opened(backend, procesoId=made["procesoId"]).json()["code"] == "STATE"


@pytest.mark.parametrize("at", ["read", "password"])
async def test_document_that_another_one_signed_meanwhile_is_read_again(
    site: FrameSite, person: TestPerson, page: Page, at: str
) -> None:
    """Of several in one turn: what is signed is what was on the screen."""
    other = site.appliance.new_person("Otra Persona")
    signers = [{"cuil": each.cuil, "turno": 1} for each in (person, other)]
    with backend_of(site.appliance, code=site.code) as backend:
        made = backend.made(PDF, firmantes=signers)
        told = opened(backend, procesoId=made["procesoId"]).json()
        await show(site, page, told["tokenSession"], person)
        frame = site.frame(page)
        await ceremony.give_code(frame, person)
        await ceremony.at(frame, "read")
        if at == "password":
            await ceremony.read(frame)
            await ceremony.choose_place(frame)
            await ceremony.at(frame, "password")
        sign(site.appliance, other, made["firmantes"][1]["solicitudId"])

        if at == "password":
            await ceremony.sign(frame, person)
        else:
            await ceremony.read(frame)

        await ceremony.at(frame, "read")
        await expect(frame.get_by_role("alert")).to_contain_text("otra persona firmó")
        await ceremony.whole_of_picked(frame, person)
        await site.wait(page, "signature.completed")
        path = f"/api/integration/requests/{made['procesoId']}/document"
        assert_valid(site.appliance, backend.client.get(path).content, 2)
