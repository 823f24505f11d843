"""Requests to people who cannot sign: the request and the person say so, and why."""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from sqlalchemy import insert, update

from appliance.api.wire.processes import _obstacle
from appliance.database.tables import credential, outside_status
from appliance.domain.ids import PersonId, RequestId
from appliance.domain.pki.certificates import StatusKind
from appliance.domain.vocab import CredentialState, PersonState, RequestState
from appliance.people.person_store import PersonStore
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_store import RequestStore
from tests.integration.console.forms import (
    ANA,
    ANA_DIGITS,
    LUIS,
    lock,
    open_acme_console,
    with_secret,
)
from tests.integration.console.health_page import plain
from tests.support.factories.held_credential import hold
from tests.support.installation.console import PDF, Console
from tests.support.pki.outside_ca import der

Barred = Callable[[Console], Awaitable[PersonId]]


@pytest.fixture
async def console(tmp_path: Path, each_url: str) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in, on each database."""
    async with open_acme_console(tmp_path, each_url) as made:
        yield made


async def invited(console: Console) -> PersonId:
    """Somebody who has not enrolled."""
    return await console.person(enrolled=False)


async def disabled(console: Console) -> PersonId:
    """Somebody whom an administrator has disabled."""
    person = await console.person()
    async with console.services.store.write() as transaction:
        await PersonStore(transaction).move(
            person, PersonState.ACTIVE, PersonState.DISABLED
        )
    return person


async def locked(console: Console) -> PersonId:
    """Somebody whose signing password is locked."""
    person = await with_secret(console)
    await hold(console.services.store, person, ANA_DIGITS, console.clock.now())
    await lock(console, person)
    return person


async def revoked(console: Console) -> PersonId:
    """Somebody whose renewed certificate is revoked."""
    person = await console.person()
    console.clock.forward(1)
    await hold(console.services.store, person, ANA_DIGITS, console.clock.now())
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            update(credential)
            .where(credential.c.state == CredentialState.ACTIVE.value)
            .values(state=CredentialState.REVOKED.value)
        )
    return person


async def revoked_outside(console: Console) -> PersonId:
    """Somebody whose certificate the outside CA that issued it has revoked."""
    person = await without(console)
    held = await hold(console.services.store, person, ANA_DIGITS, console.clock.now())
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            insert(outside_status).values(
                kind=StatusKind.REVOKED.value,
                subject=hashlib.sha256(der(held.certificate)).hexdigest(),
                der=b"",
                this_update=console.clock.now(),
                next_update=console.clock.now(),
            )
        )
    return person


async def expired(console: Console) -> PersonId:
    """Somebody whose certificate has ended."""
    person = await console.person()
    ended = console.clock.now() - timedelta(hours=1)
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(update(credential).values(not_after=ended))
    return person


async def not_yet(console: Console) -> PersonId:
    """Somebody whose certificate is not yet in force."""
    person = await console.person()
    begins = console.clock.now() + timedelta(hours=1)
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            update(credential).values(not_before=begins)
        )
    return person


async def without(console: Console) -> PersonId:
    """Somebody who has enrolled, and whose certificate is being made."""
    person = await console.person(enrolled=False)
    async with console.services.store.write() as transaction:
        await PersonStore(transaction).move(
            person, PersonState.INVITED, PersonState.ACTIVE
        )
    return person


_USABLE = "CERTIFICATE_NOT_USABLE"
_CASES: list[tuple[Barred, str, str, str | None]] = [
    (
        invited,
        "El firmante todavía no completó el alta.",
        "Hasta que lo complete no puede firmar.",
        "SIGNER_PENDING_APPROVAL",
    ),
    (
        disabled,
        "El firmante está deshabilitado.",
        "La persona está deshabilitada: no puede firmar.",
        _USABLE,
    ),
    (
        locked,
        "La contraseña de firma está bloqueada por demasiados intentos fallidos.",
        "La contraseña de firma está bloqueada.",
        "SIGN_LOCKED",
    ),
    (
        revoked,
        "El certificado del firmante está revocado.",
        "El certificado está revocado: esta persona no puede firmar.",
        _USABLE,
    ),
    (
        revoked_outside,
        "El certificado del firmante está revocado.",
        "La CA que emitió el certificado lo revocó: esta persona no puede firmar.",
        # An integrator is told of it once somebody tries.
        None,
    ),
    (
        expired,
        "El certificado del firmante venció.",
        "El certificado venció: esta persona no puede firmar.",
        _USABLE,
    ),
    (
        not_yet,
        "El firmante no tiene un certificado vigente.",
        "No hay un certificado vigente: esta persona todavía no puede firmar.",
        _USABLE,
    ),
]


async def code_of(console: Console, number: int) -> str | None:
    """`motivo` of a request's signer: why they cannot sign, for the integrator."""
    request = RequestId(number)
    async with console.services.store.read() as transaction:
        view = await RequestStore(transaction).get(request)
        shown = await ProcessStore(transaction).signers([request])
    assert view is not None
    return _obstacle(view, shown[request])


@pytest.mark.parametrize(
    ("barred", "of_request", "of_person", "code"),
    _CASES,
    ids=[each[0].__name__ for each in _CASES],
)
async def test_signer_who_cannot_sign_is_told_of(
    console: Console, barred: Barred, of_request: str, of_person: str, code: str | None
) -> None:
    """With the next step; to the integrator by a code."""
    person = await barred(console)
    number = await console.request(ANA_DIGITS)

    request = unescape((await console.get(f"/admin/requests/{number}")).text)
    here = unescape((await console.get(f"/admin/people/{person}")).text)

    said = plain(request)
    assert "Esta solicitud " in said
    assert "no se puede firmar" in said
    assert of_request in said
    assert f'href="/admin/people/{person}">Ir a la página de la persona' in request
    assert of_person in plain(here)
    asked = "1 solicitud espera a esta persona, que todavía no puede firmar."
    assert asked in plain(here)
    assert await code_of(console, number) == code


async def test_certificate_that_is_being_made_is_waited_for(console: Console) -> None:
    """The person's page says so, without a second alert."""
    person = await without(console)
    number = await console.request(ANA_DIGITS)

    here = plain(unescape((await console.get(f"/admin/people/{person}")).text))
    request = plain(unescape((await console.get(f"/admin/requests/{number}")).text))

    assert "Hasta entonces la persona no puede firmar." in here
    assert "No hay un certificado vigente" not in here
    assert "El firmante no tiene un certificado vigente." in request


async def test_signer_who_can_sign_is_not_told_of(console: Console) -> None:
    """Nor one whose request is over."""
    person = await console.person()
    number = await console.request(ANA_DIGITS)
    for page in (f"/admin/requests/{number}", f"/admin/people/{person}"):
        assert "no se puede firmar" not in (await console.get(page)).text
        assert "no puede firmar" not in (await console.get(page)).text
    assert await code_of(console, number) is None

    async with console.services.store.write() as transaction:
        await PersonStore(transaction).move(
            person, PersonState.ACTIVE, PersonState.DISABLED
        )
        await RequestStore(transaction).move(
            RequestId(number), RequestState.PENDING, RequestState.EXPIRED
        )
    page = (await console.get(f"/admin/requests/{number}")).text
    assert "no se puede firmar" not in page
    assert await code_of(console, number) is None


async def test_later_signer_who_cannot_sign_is_marked(console: Console) -> None:
    """Among those who sign in turn, on the page of each."""
    await console.person()
    await console.person(LUIS.replace("-", ""), "Luis Peña", enrolled=False)
    await console.upload(
        "/admin/requests", PDF, "a.pdf", integrator="acme", cuil=ANA, then=LUIS, days=""
    )

    first = plain(unescape((await console.get("/admin/requests/1")).text))

    assert "Luis Peña Todavía no puede firmar" in first
    assert "Ana María Núñez Todavía no puede firmar" not in first
    assert "no se puede firmar" not in first
